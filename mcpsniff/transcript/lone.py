"""One body of an HTTP exchange by itself, annotated: for other programs' pages, where nothing else of it is at hand.

What comes out is YAML that means the messages: they stand as they were sent, what is said of them in comments. It is
judged as a capture that begins in the middle, so nothing is said that would need what came before.
"""

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from mcpsniff.capture.records import Header, Record
from mcpsniff.checks import Finding
from mcpsniff.decoder import Decoder, Event
from mcpsniff.decoder.bodies import is_like_a_message
from mcpsniff.protocol.http import EVENT_STREAM, media_type
from mcpsniff.protocol.message import Message
from mcpsniff.transcript.advice import what_to_do
from mcpsniff.transcript.payload import Style, payload_lines
from mcpsniff.transcript.row import Row
from mcpsniff.transcript.rows import RowBuilder
from mcpsniff.transcript.safe import shortened, visible
from mcpsniff.transcript.text import MARKS, arrow, blamed
from mcpsniff.transcript.units import size
from mcpsniff.wire.frames import Frame

WIDTH: Final = 100
WHOLE_UNTIL: Final = 256 << 10
"""Bytes of a message that are laid out whole; of a longer one the beginning is, since people wait for it."""
LOOK: Final = 64 << 10
"""Bytes of an event stream that are looked at for MCP."""
_NUMBER: Final = re.compile(r"(?:^| )(?:(?:of|for) )?#[0-9]+")
"""Where words name an event by its number, which means something in a capture only."""
_REQUEST, _RESPONSE = range(2)


class Half(NamedTuple):
    """A request or a response."""

    start: str
    """The start line."""
    headers: tuple[tuple[str, str], ...]
    """Without Content-Encoding if the body has none any more."""
    body: bytes | None
    """None if it is not known."""


def is_mcp(content_type: str, body: bytes) -> bool:
    """True if a body holds messages, or events that carry them."""
    if media_type(content_type) == EVENT_STREAM:
        start = body[:LOOK]
        return b'"jsonrpc"' in start or b"event: endpoint" in start or b"event:endpoint" in start
    return is_like_a_message(body)


def annotated(request: Half, response: Half | None = None) -> Iterator[str]:
    """The lines for the body of ``response``, or without one for that of ``request``.

    Events have no numbers here: those of a capture are other ones. Captured text is made visible; no input raises.
    """
    events = list(_events(request, response))
    side = "c2s" if response is None else "s2c"
    builder = RowBuilder()
    rows = {row.n: row for row in (*builder.feed(events), *builder.finish())}
    findings: dict[int, list[Finding]] = {}
    for event in events:
        if isinstance(event, Finding):
            findings.setdefault(event.at, []).append(event)
    carriers = {event.frame.n for event in events if isinstance(event, Message)}
    is_first = True
    for event in events:
        if isinstance(event, Message) and event.frame.direction == side and event.n in rows:
            lines = _message(rows[event.n], event)
            found = [*findings.pop(event.frame.n, ()), *findings.pop(event.n, ())]
        elif isinstance(event, Frame) and event.direction == side and event.sse is not None and event.n not in carriers:
            lines, found = _bare(event), findings.pop(event.n, [])
        else:
            continue
        if not is_first:
            yield "---"
        is_first = False
        yield next(lines)
        for finding in found:
            yield from _finding(finding)
        yield from lines


def _events(request: Half, response: Half | None) -> Iterator[Event]:
    """Decode the exchange as a capture that begins with it."""
    decoder = Decoder(Header("", 2, "", "forward"), joined_late=True)
    for record in _records(request, response):
        yield from decoder.feed(record)


def _records(request: Half, response: Half | None) -> Iterator[Record]:
    for channel, half in enumerate((request, response)):
        if half is None:
            continue
        kind, direction = ("http-request", "c2s") if channel == _REQUEST else ("http-response", "s2c")
        fields: dict[str, Any] = {"kind": kind, "dir": direction, "conn": 0}
        fields |= {"of": _REQUEST} if channel == _RESPONSE else {}
        meta = {"start": half.start, "headers": [list(pair) for pair in half.headers]}
        yield Record(channel, "open", channel, {**fields, "meta": meta})
        if half.body is None:
            yield Record(channel, "gap", channel, {"bytes": 0, "why": "source"})
        elif half.body:
            yield Record(channel, "chunk", channel, half.body)
        yield Record(channel, "close", channel, {"how": "eof"})


def _message(row: Row, message: Message) -> Iterator[str]:
    """What is said of a message, then the message."""
    title = " ".join(visible(text) for text in (row.title, row.target or "") if text)
    details = [word for word in (_NUMBER.sub("", visible(word)) for word in row.words) if word]
    details += [shortened(visible(row.remark), 80)] if row.remark else []
    details += [f"event {shortened(visible(row.event_id), 40)}"] if row.event_id else []
    details += [f"id {shortened(visible(row.id), 40)}"] if row.id is not None else []
    details += [size(row.size)] if row.size is not None else []
    yield f"# {arrow(row)[1]} {title}  {' · '.join(details)}".rstrip()
    whole = len(message.raw) <= WHOLE_UNTIL
    for line in payload_lines(message, Style(whole=whole), WIDTH, ""):
        text = "".join(piece for _, piece in line)
        yield text if whole else f"# {text}" if text.startswith("…") else text


def _bare(frame: Frame) -> Iterator[str]:
    """What is said of an event that carries no message."""
    event = frame.sse
    assert event is not None
    said = []
    if event.dispatched and frame.payload:
        data = shortened(visible(frame.payload.decode(errors="replace")), 200)
        said.append(f"event {shortened(visible(event.event), 60)}: {data}")
    said += [f"comment {shortened(visible(text), 200)}" for text in event.comments[:3]]
    if event.id is not None:
        said.append(f"event id {shortened(visible(event.id), 60) or '(empty)'}")
    if event.retry is not None:
        said.append(f"retry after {event.retry} ms")
    yield f"# ← {' · '.join(said) or 'an event without data'}"


def _finding(finding: Finding) -> Iterator[str]:
    mark = MARKS.get(finding.severity, "•")
    name = f"{finding.severity} {finding.code} {visible(finding.name)}"
    yield f"# {mark} {name}, by {blamed(finding.blame)}: {visible(finding.text)}"
    if fix := what_to_do(finding):
        yield f"#   Fix: {fix}"
