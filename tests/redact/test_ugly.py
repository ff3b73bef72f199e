"""Captures in parts, joined late, damaged, torn, from a pipe; values that meet the framing."""

import json
import os
import subprocess
import sys
from pathlib import Path

from mcpsniff.capture.reader import open_capture
from mcpsniff.capture.records import Record
from mcpsniff.capture.writer import CaptureWriter
from mcpsniff.export.redact import redact
from tests.capture.capture_files import HEADER, encoded
from tests.redact.planted import REQUEST, RESULT, answer, outline, pipes, post, redacted, rules, wire

MAIL = b"bob@example.com"


def talk() -> list[Record]:
    lines = [
        (n % 2, ((RESULT if n % 2 else REQUEST) % (n // 2, f"{MAIL.decode()} {'x' * 200}")).encode()) for n in range(30)
    ]
    return pipes(*((channel, line + b"\n") for channel, line in lines))


def test_parts_become_one_file_also_joined_late(tmp_path: Path) -> None:
    path, out = tmp_path / "x.mcpcap", tmp_path / "out"
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    writer = CaptureWriter(descriptor, str(path), {**HEADER, "transport": "stdio"}, part_limit=3000)
    for record in talk():
        writer.append([record])
    writer.close()
    for first, places in ((path, 30), (tmp_path / "x.0003.mcpcap", None)):
        capture = open_capture(str(first))
        assert len(capture.parts) > 2
        out.write_bytes(b"")
        report = redact(capture, rules(), str(out))
        assert places in (None, report.places)
        made = open_capture(str(out))
        assert made.joined_late == capture.joined_late
        assert made.header.run != capture.header.run
        assert outline(out) == outline(first)
        assert MAIL not in out.read_bytes()
        for gone in ("x.mcpcap", "x.0002.mcpcap"):
            (tmp_path / gone).unlink(missing_ok=True)


def test_a_damaged_one_stays_as_damaged(tmp_path: Path) -> None:
    lines = encoded(talk(), transport="stdio").split(b"\n")
    lines[10], lines[20] = lines[10][:50], b"\xff" + MAIL
    source, out = tmp_path / "x.mcpcap", tmp_path / "out"
    source.write_bytes(b"\n".join(lines)[:-30])
    out.write_bytes(b"")
    redact(open_capture(str(source)), rules(), str(out))
    messages = [[line for line in outline(path) if line[0] == "Message"] for path in (source, out)]
    assert messages[0] == messages[1]
    assert MAIL not in out.read_bytes()


def test_a_gap_within_a_body(tmp_path: Path) -> None:
    body = (RESULT % (1, "a bob@example.com b" + " " * 60 + "eve@example.com")).encode()
    records = wire(
        (0, post(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')), (1, answer(body)[:-60]), (1, answer(body)[-40:])
    )
    records.insert(4, Record(2500, "gap", 1, {"bytes": 20, "why": "queue"}))
    got = redacted(tmp_path, records)
    assert outline(got.path) == outline(got.source)
    assert b"@example.com" not in got.bytes_of(1)


def test_a_secret_that_is_all_of_a_chunk_does_not_end_the_body(tmp_path: Path) -> None:
    body = (RESULT % (1, "k" * 90)).encode()
    talk = [(0, post(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')), (1, answer(body, chunks=[1] * len(body)))]
    got = redacted(tmp_path, wire(*talk), values=["k" * 90], presets=["none"])
    assert outline(got.path) == outline(got.source)
    assert got.bytes_of(1).endswith(b"1\r\n}\r\n0\r\n\r\n")


def test_a_value_that_begins_within_an_escape(tmp_path: Path) -> None:
    """`\\nbob@…` in a string is a line end and another address than `nbob@…`, and must stay JSON."""
    line = (REQUEST % (1, "nbob@example.com and \\nbob@example.com")).encode() + b"\n"
    got = redacted(tmp_path, pipes((0, line)))
    said = json.loads(got.bytes_of(0))["params"]["arguments"]["x"]
    assert "bob" not in said
    assert outline(got.path) == outline(got.source)


def test_a_long_private_key_over_lines_of_a_log(tmp_path: Path) -> None:
    key = (
        b"-----BEGIN RSA PRIVATE KEY-----\n"
        + b"MIIEpAIBAAKCAQEA0Z3VS5JJcds3xfn\n" * 20
        + b"-----END RSA PRIVATE KEY-----"
    )
    got = redacted(tmp_path, pipes((2, b"loaded " + key[:300]), (2, key[300:] + b"\nready\n")))
    assert got.bytes_of(2) == b"loaded redacted-private-key-1" + b"\n" * 22 + b"ready\n"
    assert outline(got.path) == outline(got.source)


def test_from_a_pipe_to_a_file(tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = [sys.executable, "-m", "mcpsniff", "redact", "-", "-o", str(out), "--pattern", "x{50}"]
    done = subprocess.run(command, input=encoded(talk(), transport="stdio"), capture_output=True)
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"replaced 2 values at " in done.stderr
    assert MAIL not in out.read_bytes()


def test_hostile_numbers_and_depths(tmp_path: Path) -> None:
    deep = b"[1," * 4_000 + b'"bob@example.com"' + b"]" * 4_000
    meta = {"start": "POST /mcp HTTP/1.1", "headers": [["Content-Length", "9" * 5000], ["a"], 7], "authority": 5}
    records = [
        Record(0, "open", 0, {"kind": "http-request", "dir": "c2s", "conn": 0, "meta": meta}),
        Record(1, "chunk", 0, deep),
        Record(2, "mask", 7, {"start": 5, "length": 2**62, "what": "x", "fp": "y"}),
        Record(3, "close", 9, {"how": "eof"}),
    ]
    got = redacted(tmp_path, records, {"channels": {"x": 1, "3": {"kind": "tcp", "offset": -5}, "4": None}})
    assert MAIL not in got.raw
    assert outline(got.path) == outline(got.source)
