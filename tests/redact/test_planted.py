"""A secret is found in every encoding, on every transport, and what happened is the same without it."""

import json
from pathlib import Path

import pytest

from tests.redact.planted import (
    BINARY,
    ENCODINGS,
    REQUEST,
    RESULT,
    SECRET,
    TOKEN,
    answer,
    bodies,
    coded,
    cut,
    outline,
    pipes,
    post,
    redacted,
    wire,
)

REMOVED = b"redacted-value-1"


def planted(name: str) -> tuple[bytes, bytes]:
    """A request and its answer with the secret in them, encoded."""
    there = ENCODINGS[name](SECRET).decode()
    return (REQUEST % (1, there)).encode(), (RESULT % (1, "it is " + there)).encode()


@pytest.mark.parametrize("name", ENCODINGS)
def test_on_pipes_whole_and_torn(name: str, tmp_path: Path) -> None:
    asked, said = planted(name)
    log = b"starting with " + ENCODINGS[name](SECRET) + b" now\n"
    for size in (1 << 16, 7):
        said_so = [(0, one) for one in cut(asked + b"\n", size)]
        said_so += [(2, one) for one in cut(log, size)] + [(1, one) for one in cut(said + b"\n", size)]
        got = redacted(tmp_path, pipes(*said_so), values=[SECRET], presets=["none"])
        assert outline(got.path) == outline(got.source)
        assert sum(got.report.kinds.values()) == 1
        assert got.report.places >= 3
        json.loads(got.bytes_of(0))
        json.loads(got.bytes_of(1))


@pytest.mark.parametrize("name", ENCODINGS)
def test_over_http(name: str, tmp_path: Path) -> None:
    asked, said = planted(name)
    event = b"id: 4\nevent: message\ndata: " + said + b"\n\n"
    responses = [
        answer(said),
        answer(said, chunks=[3, 1, 50, 9]),
        answer(event, kind="text/event-stream", chunks=[1] * 60),
        answer(coded(said, "gzip"), "Content-Encoding: gzip"),
        answer(coded(event, "br"), "Content-Encoding: br", kind="text/event-stream", chunks=[9] * 40),
    ]
    there = ENCODINGS[name](SECRET).decode().replace("\r\n", "")
    head = [f"X-Thing: {there}"]
    talk = [(0, post(asked, *head)) if side == 0 else (1, one) for one in responses for side in (0, 1)]
    got = redacted(tmp_path, wire(*talk), values=[SECRET], presets=["none"])
    assert outline(got.path) == outline(got.source)
    torn = [(channel, piece) for channel, data in talk for piece in cut(data, 11)]
    assert outline(redacted(tmp_path, wire(*torn), values=[SECRET], presets=["none"]).path) == outline(got.source)


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
def test_in_the_bodies_of_a_forward_proxy(coding: str, tmp_path: Path) -> None:
    asked, said = planted("JSON")
    packed = coded(said, coding)
    records = bodies(
        cut(asked, 9), cut(packed, 9), [["Authorization", f"Bearer {TOKEN}"]], [["Content-Encoding", coding]]
    )
    got = redacted(tmp_path, records, values=[SECRET])
    assert outline(got.path) == outline(got.source)
    headers = dict(got.records[0].body["meta"]["headers"])
    assert headers["Content-Length"] == str(len(got.bytes_of(0)))
    assert headers["Authorization"] == "Bearer redacted-api-key-1"
    back = next(one for one in got.records if one.kind == "open" and one.channel == 1)
    assert dict(back.body["meta"]["headers"])["Content-Length"] == str(len(got.bytes_of(1)))


@pytest.mark.parametrize("name", BINARY)
def test_in_bytes_that_are_no_text(name: str, tmp_path: Path) -> None:
    body = b"\x00\xff\x01\x02" * 3 + BINARY[name](SECRET) + b"\x03\x04" * 2
    talk = [(0, post(b"{}")), (1, answer(body, kind="application/octet-stream"))]
    got = redacted(tmp_path, wire(*talk), values=[SECRET], presets=["none"])
    assert outline(got.path) == outline(got.source)
    assert SECRET.encode() not in got.bytes_of(1)


def test_over_the_data_lines_of_an_event(tmp_path: Path) -> None:
    event = b'data: {"jsonrpc":"2.0","method":"a",\ndata: "params":{"t":"first-line\ndata: second-line"}}\n\n'
    talk = [(0, post(b"{}")), (1, answer(event, kind="text/event-stream"))]
    got = redacted(tmp_path, wire(*talk), values=["first-line\nsecond-line"], presets=["none"])
    assert b"first-line" not in got.bytes_of(1)
    got = redacted(tmp_path, wire(*talk), values=["linesecond"], presets=["none"])
    assert b"second" not in got.bytes_of(1)


def test_the_lengths_are_true_again(tmp_path: Path) -> None:
    asked, said = planted("JSON")
    talk = [(0, post(asked)), (1, answer(said, chunks=[5, 30]))]
    got = redacted(tmp_path, wire(*talk), values=[SECRET], presets=["none"])
    head, _, body = got.bytes_of(0).partition(b"\r\n\r\n")
    assert f"Content-Length: {len(body)}".encode() in head
    rest = got.bytes_of(1).partition(b"\r\n\r\n")[2]
    plain = b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        plain, rest = plain + rest[: int(size, 16)], rest[int(size, 16) + 2 :]
    assert json.loads(plain)["result"]["content"][0]["text"] == "it is redacted-value-1"


def test_in_what_records_tell(tmp_path: Path) -> None:
    from mcpsniff.capture.records import Record

    said = (RESULT % (1, SECRET)).encode()
    records = pipes((0, (REQUEST % (1, "x")).encode() + b"\n"), (1, (RESULT % (1, "y")).encode() + b"\n"))
    records[-3:-3] = [
        Record(5000, "comment", None, {"text": f"look at {SECRET}", "by": "me"}),
        Record(5001, "comment", 1, {"text": f"look at {SECRET}", "by": SECRET}),
        Record(5002, "rewrite", 1, {"start": 0, "length": 5, "data": said, "by": "addon"}),
    ]
    records[-1] = Record(900_002, "close", 1, {"how": "error", "error": f"no {SECRET}"})
    header = {
        "argv": ["python", "server.py", "--api-key", "k1", f"--x={SECRET}", "TOKEN=abcd1234"],
        "cwd": "/home/alice/work",
        "label": SECRET,
        "upstream": f"http://h/?a={SECRET}",
        "listen": SECRET,
    }
    got = redacted(tmp_path, records, header, values=[SECRET])
    assert got.capture.header.argv == (
        "python", "server.py", "--api-key", "redacted-api-key-1", "--x=redacted-value-1", "TOKEN=redacted-token-1",
    )  # fmt: skip
    assert got.capture.header.cwd == "/home/redacted-home-1/work"
    assert outline(got.path) == outline(got.source)
    assert got.raw.count(b"redacted-value-1") == 9


def test_equal_values_stay_equal_and_others_different(tmp_path: Path) -> None:
    texts = ["mail bob@example.com", "and eve@example.com", "and bob@example.com again", "bob%40example.com"]
    lines = [(1, (RESULT % (n, text)).encode() + b"\n") for n, text in enumerate(texts, 1)]
    got = redacted(tmp_path, pipes(*lines))
    said = [json.loads(line)["result"]["content"][0]["text"] for line in got.bytes_of(1).splitlines()]
    one, two = "redacted-email-1@example.invalid", "redacted-email-2@example.invalid"
    assert said == [f"mail {one}", f"and {two}", f"and {one} again", one.replace("@", "%40")]


def test_a_seed_names_them_alike_in_all_files(tmp_path: Path) -> None:
    first = redacted(tmp_path, pipes((2, b"a bob@example.com\n")), seed="x").bytes_of(2)
    second = redacted(tmp_path, pipes((2, b"eve@example.com b bob@example.com\n")), seed="x").bytes_of(2)
    other = redacted(tmp_path, pipes((2, b"a bob@example.com\n")), seed="y").bytes_of(2)
    assert first.split()[1] == second.split()[2] != second.split()[0]
    assert first != other


def test_a_redacted_capture_redacted_again_is_the_same(tmp_path: Path) -> None:
    records = pipes((2, b"a bob@example.com /home/bob token=abc123def456\n"))
    once = redacted(tmp_path, records)
    (tmp_path / "twice").mkdir()
    twice = redacted(tmp_path / "twice", once.records)
    assert twice.bytes_of(2) == once.bytes_of(2)
    more = redacted(
        tmp_path / "twice", [*once.records[:3], *pipes((2, b"x redacted-email-1@example.invalid eve@a.org\n"))[3:]]
    )
    assert more.bytes_of(2) == b"x redacted-email-1@example.invalid redacted-email-2@example.invalid\n"
