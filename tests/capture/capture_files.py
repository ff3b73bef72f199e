"""Captures for the tests, as bytes and as files, made by the real writer."""

from collections.abc import Iterable, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from mcpsniff.capture.reader import Capture, open_stream
from mcpsniff.capture.records import CHUNK, CLOSE, COMMENT, GAP, MASK, OPEN, Record
from mcpsniff.capture.writer import CaptureWriter
from mcpsniff.proxy.answers import as_data

HEADER: dict[str, Any] = {
    "run": "01J0000000000000000000TEST",
    "started": "2026-11-29T10:00:00.000000Z",
    "label": "time",
}

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
SESSION = [
    Record(0, OPEN, 0, {"kind": "stdin", "dir": "c2s", "conn": 0}),
    Record(0, OPEN, 1, {"kind": "stdout", "dir": "s2c", "conn": 0, "of": 0}),
    Record(1532, CHUNK, 0, PING),
    Record(2210, CHUNK, 1, b'{"jsonrpc":"2.0","id":1,"result":{}}\n'),
    Record(2300, CHUNK, 1, b"\xff\x00\n"),
    Record(2400, MASK, 1, {"start": 0, "length": 3, "what": "code", "fp": "0011223344556677"}),
    Record(2500, GAP, 0, {"bytes": 12, "why": "queue"}),
    Record(2600, COMMENT, None, {"text": "here \U0001d11e", "by": "me"}),
    Record(9000, CLOSE, 0, {"how": "eof"}),
    Record(9001, CLOSE, 1, {"how": "exit", "status": 0}),
]


def encoded(records: Sequence[Record] = SESSION, **header: Any) -> bytes:
    """Return the bytes of a capture that holds ``records``."""
    data = bytearray()

    def write(_descriptor: int, block: bytes) -> int:
        data.extend(block)
        return len(block)

    part = header.pop("part", 1)
    writer = CaptureWriter(-1, "x.mcpcap", {**HEADER, **header}, write=write)
    writer._part = part
    writer.append([storable(record) for record in records])
    return bytes(data)


def storable(record: Record) -> Record:
    """The record as the relay gives it to the writer: what left in the place of bytes as text where it is UTF-8."""
    if record.kind == CHUNK or not isinstance(record.body.get("data"), bytes):
        return record
    return record._replace(body={**record.body, "data": as_data(record.body["data"])})


def save(folder: Path, name: str, records: Sequence[Record] = SESSION, **header: Any) -> Path:
    """Write a capture file."""
    path = folder / name
    path.write_bytes(encoded(records, **header))
    return path


def read(data: bytes) -> tuple[list[Record], Capture]:
    """Read a capture given as bytes; return its records and the exhausted capture."""
    capture = open_stream(BytesIO(data), "test.mcpcap")
    return list(capture.records()), capture


def stored(records: Iterable[Record]) -> list[Record]:
    """Leave out the gaps that the reader put in itself."""
    return [record for record in records if not (record.kind == GAP and record.body["why"] == "damage")]
