"""Find an event by its number, what belongs to its exchange, the findings on it, and its recorded bytes."""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from mcpsniff.capture.parser import Damage
from mcpsniff.capture.records import CHUNK, Header, Record
from mcpsniff.checks import Finding
from mcpsniff.decoder import Event
from mcpsniff.errors import UsageError
from mcpsniff.protocol.edits import Edit
from mcpsniff.protocol.exchange import Exchange
from mcpsniff.protocol.http import Http, HttpExchange
from mcpsniff.protocol.message import Message
from mcpsniff.transcript.jsonl import JsonLines
from mcpsniff.transcript.rows import Row, RowBuilder
from mcpsniff.transcript.session import Session, Source
from mcpsniff.wire.frames import Frame, Span

PROGRESS_SHOWN: Final = 200
"""Progress notifications of one exchange that are shown."""
CARRIED: Final = 10_000
"""HTTP exchanges of which it is known at one time which request they carried."""
BYTES_KEPT: Final = 4 << 20
"""Recorded bytes of one event that are kept for showing them."""


class NoSuchNumberError(UsageError):
    """There is no event with this number."""


@dataclass(slots=True)
class Found:
    """An event and what belongs to it."""

    number: int
    event: Event
    frame: Frame | None = None
    message: Message | None = None
    exchange: Exchange | None = None
    http: HttpExchange | None = None
    """The HTTP exchange that it is, or that carried it."""
    members: dict[int, Row] = field(default_factory=dict)
    """The rows of its exchange, itself included, and of what it refers to, by their numbers, in order."""
    row: Row | None = None
    """Its own row; None for what has none, such as the end of an exchange that was answered."""
    findings: list[Finding] = field(default_factory=list)
    progress: frozenset[int] = frozenset()
    passed_over: int = 0
    """Progress notifications that are not among ``members``."""
    pieces: list[tuple[Span, bytes]] = field(default_factory=list)
    """Its recorded bytes, at most BYTES_KEPT of them."""


def find_event(source: Source, number: int, *, now_us: int | None = None) -> Found:
    """Return the event with this number; ``source`` is read twice. Raises NoSuchNumberError, CaptureError."""
    found = _first_look(source, number, now_us)
    _second_look(source, found, now_us)
    return found


def event_lines(source: Source, number: int, *, payload: bool, now_us: int | None = None) -> Iterator[bytes]:
    """Give the JSON Lines of the event with this number, of its exchange and of the findings on them.

    Raises NoSuchNumberError, CaptureError.
    """
    found = find_event(source, number, now_us=now_us)
    wanted = _numbers(found) | found.members.keys()
    number_of_http = None if found.http is None else found.http.number
    frames = {row.message.frame.n for row in found.members.values() if row.message is not None}
    if found.message is not None:
        frames.add(found.message.frame.n)
    lines = JsonLines(payload=payload)
    for events in Session(source, now_us=now_us).events():
        for event in events:
            number_of = event.at if isinstance(event, Finding) else event.n
            is_its_http = isinstance(event, Http) and event.exchange.number == number_of_http
            if number_of in wanted or number_of in frames or is_its_http or _is_of(event, found):
                yield lines.lines([event])


def _is_of(event: Event, found: Found) -> bool:
    return isinstance(event, Exchange) and found.exchange is not None and event.request == found.exchange.request


def _first_look(source: Source, number: int, now_us: int | None) -> Found:
    """Find the event, its frame, its message and its exchange."""
    found: Found | None = None
    carried: OrderedDict[int, Exchange | None] = OrderedDict()
    told: OrderedDict[int, HttpExchange] = OrderedDict()
    last = 0
    for events in Session(source, now_us=now_us).events():
        for event in events:
            if isinstance(event, Finding):
                continue
            last = event.n
            if isinstance(event, Http):
                told[event.exchange.number] = event.exchange
                if len(told) > CARRIED:
                    told.popitem(last=False)
                if found is not None and found.frame is not None and found.frame.http == event.exchange.number:
                    found.http = event.exchange
            if isinstance(event, Message) and event.http is not None and event.direction == "c2s":
                carried.setdefault(event.http.number, event.link)
                if len(carried) > CARRIED:
                    carried.popitem(last=False)
            if event.n == number:
                found = _found(event)
            elif (
                found is not None
                and isinstance(found.event, Frame)
                and isinstance(event, Message)
                and event.frame is found.event
                and event.batch is None
            ):
                found.message, found.exchange = event, event.link
    if found is None:
        there = f"its numbers go from 1 to {last:,}" if last else "it has no events"
        raise NoSuchNumberError(f"there is no #{number} in this capture: {there}")
    if found.message is not None:
        found.frame, found.http = found.message.frame, found.message.http
    elif found.frame is not None and found.frame.http is not None:
        found.http = found.http or told.get(found.frame.http)
    elif isinstance(found.event, Http):
        found.exchange = carried.get(found.event.exchange.origin)
    return found


def _found(event: Event) -> Found:
    found = Found(event.n if not isinstance(event, Finding) else event.at, event)
    if isinstance(event, Message):
        found.message, found.exchange = event, event.link
    elif isinstance(event, Exchange):
        found.exchange = event
    elif isinstance(event, Frame):
        found.frame = event
    elif isinstance(event, Http):
        found.http = event.exchange
    elif isinstance(event, Edit):
        found.exchange, found.http = event.link, event.http
    return found


def _numbers(found: Found) -> set[int]:
    """The numbers that are looked for."""
    wanted = {found.number}
    if found.message is not None:
        wanted.add(found.message.n)
    exchange = found.exchange
    if exchange is not None:
        wanted.update({exchange.request, exchange.n, *exchange.progress[:PROGRESS_SHOWN]})
        wanted.update(n for n in (exchange.response, exchange.cancel, exchange.late) if n is not None)
        wanted.update(touch.n for touch in exchange.touches)
    return wanted


def _second_look(source: Source, found: Found, now_us: int | None) -> None:
    """Collect the rows of the exchange, the findings on the event, and its bytes."""
    if found.exchange is not None:
        found.progress = frozenset(found.exchange.progress)
        found.passed_over = max(0, len(found.exchange.progress) - PROGRESS_SHOWN)
    bytes_of = RecordedBytes(source, _spans(found))
    builder = RowBuilder(now_us)
    for events in Session(bytes_of, now_us=now_us).events():
        for row in builder.feed(events):
            _take(found, row)
    for row in builder.finish():
        _take(found, row)
    found.findings = found.row.findings if found.row is not None else []
    found.pieces = bytes_of.pieces()


def _referred(found: Found) -> set[int]:
    """The numbers that the facts of the message name; of an edit, the message that it is of."""
    if isinstance(found.event, Edit):
        return set() if found.event.of is None else {found.event.of.n}
    return set() if found.message is None else {fact.n for fact in found.message.facts if fact.n is not None}


def _take(found: Found, row: Row) -> None:
    """Keep a row that is asked for."""
    itself = row.frame == found.number or row.n == (found.number if found.message is None else found.message.n)
    exchange = found.exchange
    if itself and found.row is None:
        found.row = row
    link = None if row.message is None else row.message.link
    if exchange is None:
        belongs = itself
    elif link is not None:
        is_progress = row.n in found.progress
        belongs = link.request == exchange.request and (
            not is_progress or len(found.members) <= PROGRESS_SHOWN or itself
        )
    elif row.exchange is not None:
        belongs = itself or row.exchange == exchange.request
    else:
        carried = row.http is not None and row.http == exchange.http and exchange.direction == "c2s"
        belongs = itself or carried or row.n == exchange.n
    if belongs or row.n in _referred(found):
        found.members[row.n] = row


def _spans(found: Found) -> tuple[Span, ...]:
    if found.message is not None:
        return found.message.spans
    return () if isinstance(found.event, Exchange | Finding) else found.event.spans


class RecordedBytes:
    """A capture that keeps some of the bytes that are read from it."""

    def __init__(self, source: Source, spans: tuple[Span, ...]) -> None:
        self._source = source
        self._kept = [(span, bytearray()) for span in spans]
        self._offsets = _first_offsets(source.header)
        self._room = BYTES_KEPT
        self.header, self.path, self.joined_late = source.header, source.path, source.joined_late
        self.damage: list[Damage] = []

    def records(self) -> Iterator[Record]:
        """The records, in order."""
        for record in self._source.records():
            if record.kind == CHUNK and record.channel is not None:
                self._keep(record.channel, record.body)
            yield record
        self.damage = list(self._source.damage)

    def pieces(self) -> list[tuple[Span, bytes]]:
        """The bytes that were kept, with the places they come from."""
        return [(span, bytes(kept)) for span, kept in self._kept]

    def _keep(self, channel: int, data: bytes) -> None:
        start = self._offsets.get(channel, 0)
        self._offsets[channel] = start + len(data)
        for span, kept in self._kept:
            if span.channel == channel and span.start < start + len(data) and start < span.stop:
                piece = data[max(span.start - start, 0) : span.stop - start][: self._room]
                self._room -= len(piece)
                kept.extend(piece)


def _first_offsets(header: Header) -> dict[int, int]:
    """Where the channels stand at the beginning of a capture whose first parts are gone."""
    offsets = {}
    for number, fields in (header.channels or {}).items():
        offset = fields.get("offset") if isinstance(fields, dict) else None
        if number.isdecimal() and isinstance(offset, int):
            offsets[int(number)] = offset
    return offsets
