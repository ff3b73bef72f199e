"""A capture from its records to a whole transcript: decode, build rows, print head, rows and summary as they come."""

import os
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, Protocol

from mcpsniff.capture.content import tells
from mcpsniff.capture.editors import MOST, RECORDER, editors
from mcpsniff.capture.parser import Damage
from mcpsniff.capture.reader import Capture
from mcpsniff.capture.records import COMMENT, Header, Record
from mcpsniff.checks import Finding
from mcpsniff.checks.recorder import damage_finding
from mcpsniff.decoder import Decoder, Event
from mcpsniff.protocol.conversation import Conversation
from mcpsniff.protocol.edits import Edit
from mcpsniff.transcript.head import Entry, head, is_settled
from mcpsniff.transcript.rows import Row, RowBuilder
from mcpsniff.transcript.summary import Summary
from mcpsniff.transcript.talks import Talks
from mcpsniff.wire.frames import Frame

HEAD_EVENTS: Final = 400
"""Events that are looked at before the head is printed, if the opening is not over before."""


class Source(Protocol):
    """What a capture offers; `mcpsniff.capture.reader.Capture` does."""

    header: Header
    path: str
    joined_late: bool
    damage: list[Damage]

    def records(self) -> Iterator[Record]:
        """The records, in order."""


class Whole(NamedTuple):
    """What a session comes to of which only a part is shown."""

    messages: int
    last_t: int
    """The latest moment that is known of, in microseconds since the start."""
    has_ended: bool
    """True once the server's process has ended, or could not be started."""


class Session:
    """The events of one capture, decoded once, in order.

    ``now_us`` is given for a session that still runs: how long ago it started (microseconds); deadlines up to then
    have passed.
    """

    def __init__(self, source: Source, label: str = "", *, now_us: int | None = None) -> None:
        self._source = source
        self._decoder = Decoder(source.header, joined_late=source.joined_late)
        self.label = label or source.header.label or ""
        self._now_us = now_us
        self._last = self._t = 0
        self._is_http = source.header.transport in ("http", "forward")
        self.holds_nothing = True
        """Nothing was recorded so far but that a run began."""
        self.talks = Talks()
        """The conversations over HTTP, of all events so far."""
        known: Iterable[str] = editors(source) if isinstance(source, Capture) else getattr(source, "editors", ())
        self.editors = dict.fromkeys(known)
        """Who changed something on the way, of the whole capture where it can be read twice; captured text."""

    def events(self) -> Iterator[list[Event]]:
        """The events record by record, then what the end brings: open exchanges, and what was unreadable."""
        for record in self._source.records():
            self.take(record)
            if events := self._decoder.feed(record):
                self._take_note(events)
                yield events
        events = [] if self._now_us is None else self._decoder.advance(self._now_us)
        events += self._decoder.finish()
        self._take_note(events)
        yield events
        yield [self._damage(k, damage) for k, damage in enumerate(self._source.damage)]

    def head(self) -> list[Entry]:
        """The head, as far as the events so far tell."""
        parts = len(getattr(self._source, "parts", ()))
        known = self._decoder.conversation
        return head(self._source.header, known, self._source.path, self.talks, parts, editors=[*self.editors])

    def conversation(self, number: int) -> Conversation:
        """The conversation that a message names by its number."""
        return self._decoder.conversation_of(number)

    @property
    def whole(self) -> Whole | None:
        """What the session comes to, where `events` gives only a part of it."""
        return None

    @property
    def has_process(self) -> bool:
        """True if what was recorded ends with a process."""
        return self._source.header.transport in (None, "stdio")

    @property
    def is_over_http(self) -> bool:
        """True if what was recorded is HTTP, as far as the capture's first line or the events so far tell."""
        return self._is_http or self._decoder.conversation.over_http

    @property
    def is_opened(self) -> bool:
        """True once the opening is over, so that it is known who talks."""
        return is_settled(self._decoder.conversation)

    @property
    def is_introduced(self) -> bool:
        """True once the head says all that it will; over HTTP more conversations may come."""
        return self.is_opened and not self._decoder.conversation.over_http

    def take(self, record: Record) -> None:
        """Take note of whether a record holds anything."""
        if self.holds_nothing:
            self.holds_nothing = not (record.kind == COMMENT or tells(record))

    def _take_note(self, events: list[Event]) -> None:
        if self.is_over_http:
            self.talks.feed(events)
        for event in events:
            if isinstance(event, Edit) and not event.is_quiet and len(self.editors) < MOST:
                self.editors.update(dict.fromkeys(event.names or (RECORDER,)))
        for event in reversed(events):
            if not isinstance(event, Finding):
                self._last = event.n
                self._t = event.t_last if isinstance(event, Frame) else event.t
                return

    def _damage(self, k: int, damage: Damage) -> Finding:
        self.holds_nothing = False
        text = f"line {damage.line} of {os.path.basename(damage.path)}: {damage.text}"
        return damage_finding(self._last, k, self._t, text)


class Page(Protocol):
    """A form of the transcript: it is given the parts in order."""

    def head(self, label: str, entries: Iterable[Entry]) -> None:
        """Take the head."""

    def row(self, row: Row) -> None:
        """Take the next row."""

    def end(self, text: str) -> None:
        """Take what there is to say of how the recording ends."""


RUNNING: Final = "the session is still running"
NOTHING: Final = "nothing was recorded"
CUT_OFF: Final = "the recording ends here without an end of the session: mcpsniff or the machine was stopped"


def write(session: Session, page: Page, *, now_us: int | None = None, running: bool = False) -> Summary:
    """Give ``page`` the head and all rows of ``session``, row by row as they are decoded; return the summary.

    ``running`` says that the capture is still being written, and ``now_us`` how long the session has lasted by now, in
    microseconds; without it open requests have waited until the last event.

    The head is given once the opening is over, over HTTP and at the latest after HEAD_EVENTS events, and always first.
    """
    whole = session.whole
    if whole is not None and now_us is None:
        now_us = whole.last_t
    summary, builder = Summary(now_us, session.talks), RowBuilder(now_us)
    summary.of = None if whole is None else whole.messages
    held: list[Row] = []
    seen, opened = 0, False

    def give(rows: Iterable[Row], *, at_the_end: bool = False) -> None:
        nonlocal opened
        if not opened:
            held.extend(rows)
            if not (at_the_end or session.is_introduced or seen >= HEAD_EVENTS):
                return
            page.head(session.label, session.head())
            opened = True
            rows = held
        for row in rows:
            summary.place(row)
            page.row(row)

    for events in session.events():
        seen += len(events)
        summary.feed(events)
        give(builder.feed(events))
    give(builder.finish(), at_the_end=True)
    has_ended = summary.has_ended or (whole is not None and whole.has_ended)
    if text := ending(session, is_running=running, has_ended=has_ended):
        page.end(text)
    return summary


def ending(session: Session, *, is_running: bool, has_ended: bool) -> str:
    """What is to be said at the end of a transcript besides its rows; empty if nothing."""
    if is_running:
        return f"{RUNNING}; {NOTHING} yet" if session.holds_nothing else RUNNING
    if session.has_process and not has_ended:
        return CUT_OFF
    return NOTHING if session.holds_nothing else ""
