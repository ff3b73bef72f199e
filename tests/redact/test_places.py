"""What a redacted or masked capture says of itself: its places, its head, its records."""

from pathlib import Path

from mcpsniff.capture.reader import open_capture
from mcpsniff.capture.records import Record
from mcpsniff.export.redact import places
from tests.capture.capture_files import save
from tests.redact.planted import REQUEST, RESULT, answer, pipes, post, redacted, wire


def test_each_place_is_told_with_its_message(tmp_path: Path) -> None:
    said = [
        (0, (REQUEST % (1, "bob@example.com")).encode() + b"\n"),
        (2, b"mail to bob@example.com\n"),
        (1, (RESULT % (1, "sent to bob@example.com")).encode() + b"\n"),
    ]
    got = redacted(tmp_path, pipes(*said), {"cwd": "/home/bob"})
    assert places(got.capture) == [
        "redacted home (header: cwd)",
        "#2 client to server, request tools/call: redacted email (params.arguments.x)",
        "#3 stderr: redacted email",
        "#5 server to client, response to tools/call: redacted email (result.content.0.text)",
    ]
    assert places(open_capture(str(got.source))) == []


def test_heads_and_records(tmp_path: Path) -> None:
    talk = [(0, post(b'{"jsonrpc":"2.0","id":1,"method":"ping"}', "X-Api-Key: k-12345678")), (1, answer(b"{}"))]
    records = wire(*talk)
    records.insert(2, Record(10, "comment", 0, {"text": "by bob@example.com", "by": "me"}))
    got = redacted(tmp_path, records)
    assert places(got.capture) == [
        "channel 0: redacted email (comment: text)",
        "#6 POST /mcp: redacted x api key (X-Api-Key)",
    ]


def test_masked_places_are_told_too(tmp_path: Path) -> None:
    head = post(b'{"jsonrpc":"2.0","id":1,"method":"ping"}', "X-Api-Key: **********")
    records = wire((0, head), (1, answer(b"{}")))
    start = head.index(b"*")
    mask = {"start": start, "length": 10, "what": "x-api-key", "fp": "00112233445566aa"}
    records.insert(3, Record(1000, "mask", 0, mask))
    path = save(tmp_path, "masked.mcpcap", records, transport="http", argv=["--key", "***"])
    assert places(open_capture(str(path))) == ["the header: masked (argv)", "#6 POST /mcp: masked x-api-key"]
    (tmp_path / "r").mkdir()
    records[2] = Record(1000, "chunk", 0, head.replace(b"Host: h", b"Host: bob@example.com"))
    records[3] = Record(1000, "mask", 0, {**mask, "start": start + 14})
    got = redacted(tmp_path / "r", records)
    moved = next(one for one in got.records if one.kind == "mask").body
    assert got.bytes_of(0)[moved["start"] : moved["start"] + moved["length"]] == b"*" * 10


def test_a_rewrite_is_moved(tmp_path: Path) -> None:
    first = b'{"jsonrpc":"2.0","method":"a","params":{"m":"bob@example.com"}}\n'
    second = b'{"jsonrpc":"2.0","method":"b"}\n'
    records = pipes((0, first + second))
    records.insert(
        4, Record(1000, "rewrite", 0, {"start": len(first), "length": len(second), "data": b"x\n", "by": "me"})
    )
    got = redacted(tmp_path, records)
    moved = next(one for one in got.records if one.kind == "rewrite").body
    assert got.bytes_of(0)[moved["start"] : moved["start"] + moved["length"]] == second


def test_what_cannot_be_decoded_is_left_out(tmp_path: Path) -> None:
    body = b"\x1f\x8b\x08" + b"\xff" * 40
    got = redacted(tmp_path, wire((0, post(b"{}")), (1, answer(body, "Content-Encoding: gzip"))))
    assert got.report.unread == 1
    assert body not in got.bytes_of(1)
    gap = next(one for one in got.records if one.kind == "gap")
    assert gap.body == {"bytes": len(body), "why": "secret"}
    assert places(got.capture) == ["channel 1, byte " + str(len(got.bytes_of(1))) + ": redacted unreadable body (body)"]
