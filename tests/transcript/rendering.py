"""Render records in every form, as `mcpsniff show` does."""

import json
from collections.abc import Sequence
from io import BytesIO
from typing import Any

import orjson

from mcpsniff.capture.reader import Capture, open_stream
from mcpsniff.capture.records import Record
from mcpsniff.transcript.closing import closing_lines
from mcpsniff.transcript.jsonl import JsonLines
from mcpsniff.transcript.markdown import write_markdown
from mcpsniff.transcript.payload import FOLDED, Style
from mcpsniff.transcript.session import Session, write
from mcpsniff.transcript.terminal import plain
from mcpsniff.transcript.text import WIDTH, TextTranscript
from tests.capture.capture_files import encoded


def capture(records: Sequence[Record], **header: Any) -> Capture:
    return open_stream(BytesIO(encoded(records, **header)), "test.mcpcap")


def text(
    records: Sequence[Record],
    *,
    width: int = WIDTH,
    style: Style = FOLDED,
    now_us: int | None = None,
    running: bool = False,
    **header: Any,
) -> str:
    out: list[str] = []
    print_line = plain(out.append)
    session = Session(capture(records, **header), now_us=now_us)
    summary = write(session, TextTranscript(print_line, width, style), now_us=now_us, running=running)
    for line in closing_lines(summary, width):
        print_line(line)
    return "".join(out)


def markdown(
    records: Sequence[Record],
    *,
    style: Style = FOLDED,
    now_us: int | None = None,
    running: bool = False,
    **header: Any,
) -> str:
    stream = BytesIO()
    session = Session(capture(records, **header), now_us=now_us)
    write_markdown(session, stream, style, now_us=now_us, running=running)
    return stream.getvalue().decode()


def json_bytes(records: Sequence[Record], *, payload: bool = False, **header: Any) -> bytes:
    lines = JsonLines(payload=payload)
    return b"".join(lines.lines(events) for events in Session(capture(records, **header)).events())


def json_lines(records: Sequence[Record], *, payload: bool = False, **header: Any) -> list[dict[str, Any]]:
    """The lines parsed; each is checked against two strict parsers."""
    data = json_bytes(records, payload=payload, **header)
    assert data.endswith(b"\n") or not data
    parsed = []
    for line in data.split(b"\n")[:-1]:
        parsed.append(strict(line))
        try:
            orjson.loads(line)
        except orjson.JSONDecodeError as error:
            if "infinity" not in str(error):  # 1e400 is strict JSON that orjson cannot hold
                raise
    return parsed


def strict(line: bytes) -> dict[str, Any]:
    """Parse as RFC 8259 has it; digits are kept by giving every number as Decimal would spell it."""

    def refuse(word: str) -> None:
        raise ValueError(f"{word} is not JSON")

    value = json.loads(line.decode(), parse_constant=refuse, parse_int=int if len(line) < 4000 else str)
    assert isinstance(value, dict)
    return value


def of_type(lines: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [line for line in lines if line["type"] == kind]
