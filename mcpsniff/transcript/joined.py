"""Several captures on one time line: each with a decoder of its own, put together by wall clock.

The time line begins where the first capture began; a moment of a capture lies at its own ``started`` plus its time.
Numbers are those of each capture. What is held in memory does not grow with the captures.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from heapq import merge
from itertools import chain
from typing import Final, NamedTuple

import orjson

from mcpsniff.decoder import Event
from mcpsniff.errors import UsageError
from mcpsniff.transcript.closing import closing_lines
from mcpsniff.transcript.jsonl import JsonLines
from mcpsniff.transcript.live.gutter import Gutter, distinct
from mcpsniff.transcript.live.view import BRIEF
from mcpsniff.transcript.payload import FOLDED, Style
from mcpsniff.transcript.rows import Row, RowBuilder
from mcpsniff.transcript.session import HEAD_EVENTS, Session, ending
from mcpsniff.transcript.summary import Summary
from mcpsniff.transcript.text import Print, TextTranscript
from mcpsniff.wire.frames import Frame

MOST: Final = 26
"""Captures that can be joined: each has a letter in Markdown."""


class Given(NamedTuple):
    """A session that is to be joined with others."""

    session: Session
    started: str
    """RFC 3339, as in the capture's header."""
    now_us: int | None = None
    """How long it has lasted so far, where it still runs."""


class Joined:
    """One session among several; see `join`."""

    def __init__(self, given: Given, label: str, letter: str, offset_us: int) -> None:
        self.session = given.session
        self.label = label
        self.letter = letter
        self.offset_us = offset_us
        """When it began on the time line, in microseconds."""
        whole = given.session.whole
        now_us = whole.last_t if whole is not None and given.now_us is None else given.now_us
        self.summary = Summary(now_us, given.session.talks)
        self.summary.of = None if whole is None else whole.messages
        self._running = given.now_us is not None
        self._whole_ended = whole is not None and whole.has_ended
        self._builder = RowBuilder(now_us)
        self._first: list[Row] = []
        self._rows = self._decoded()
        self._seen = 0

    def open(self) -> None:
        """Decode its opening, so that its head can be told."""
        for row in self._rows:
            self._first.append(row)
            if self.session.is_introduced or self._seen >= HEAD_EVENTS:
                return

    def rows(self) -> Iterator[tuple[int, Row]]:
        """The rows, each with its time on the time line, which never goes back."""
        latest = 0
        for row in chain(self._first, self._rows):
            self.summary.place(row)
            latest = max(latest, row.t + self.offset_us)
            yield latest, row

    @property
    def ending(self) -> str:
        """What there is to say of how the recording ends, when all rows were given."""
        has_ended = self.summary.has_ended or self._whole_ended
        return ending(self.session, is_running=self._running, has_ended=has_ended)

    def _decoded(self) -> Iterator[Row]:
        for events in self.session.events():
            self._seen += len(events)
            self.summary.feed(events)
            yield from self._builder.feed(events)
        yield from self._builder.finish()


def join(all_given: Sequence[Given]) -> list[Joined]:
    """Place sessions on one time line. Raises UsageError when they are too many."""
    if len(all_given) > MOST:
        raise UsageError(f"at most {MOST} captures can be shown together, not {len(all_given)}")
    begun = [_moment(given.started) for given in all_given]
    labels: list[str] = []
    for given in all_given:
        labels.append(distinct(given.session.label, labels))
    first = min(begun)
    return [
        Joined(given, label, chr(ord("a") + at), (begun[at] - first) // timedelta(microseconds=1))
        for at, (given, label) in enumerate(zip(all_given, labels, strict=True))
    ]


def merged(joined: Sequence[Joined]) -> Iterator[tuple[Joined, Row]]:
    """The rows of all, by time; a row's ``t`` is its time on the time line from here on."""

    def rows_of(one: Joined, at: int) -> Iterator[tuple[int, int, Row]]:
        return ((t, at, row) for t, row in one.rows())

    together: Iterable[tuple[int, int, Row]] = merge(
        *(rows_of(one, at) for at, one in enumerate(joined)), key=lambda item: item[:2]
    )
    for t, at, row in together:
        row.t = t
        yield joined[at], row


def write_joined_text(joined: Sequence[Joined], print_line: Print, width: int, style: Style = FOLDED) -> None:
    """Print the transcript of several sessions, each line with the label of its session."""
    gutter = Gutter(print_line, width)
    for one in joined:
        gutter.join(one.label)
    pages = {one.letter: TextTranscript(_printer(gutter, one.label), gutter.room, style) for one in joined}
    head = TextTranscript(print_line, width, style)
    for one in joined:
        one.open()
        entries = one.session.head()
        print_line([gutter.named(one.label, width)])
        head.entries(entry._replace(lines=1) for entry in entries if entry.name in ("started", *BRIEF))
        print_line([])
    for one, row in merged(joined):
        pages[one.letter].row(row)
    for one in joined:
        if one.ending:
            pages[one.letter].end(one.ending)
    for one in joined:
        print_line([])
        print_line([gutter.named(one.label, width)])
        for line in closing_lines(one.summary, head.width):
            if line != []:
                print_line(line)


def _printer(gutter: Gutter, label: str) -> Print:
    return lambda line: gutter.print(label, line)


def joined_json(joined: Sequence[Joined], *, payload: bool) -> Iterator[bytes]:
    """Give the JSON Lines of several sessions by time; each has members ``label`` and ``timeline_us`` besides."""
    lines = JsonLines(payload=payload)

    def events_of(one: Joined, at: int) -> Iterator[tuple[int, int, list[Event]]]:
        latest = one.offset_us
        for events in one.session.events():
            if events:
                latest = max(latest, one.offset_us + _time(events[0]))
                yield latest, at, events

    for t, at, events in merge(*(events_of(one, at) for at, one in enumerate(joined)), key=lambda item: item[:2]):
        name = orjson.dumps(joined[at].label.encode(errors="backslashreplace").decode())
        for event in events:
            more = f',"timeline_us":{max(t, joined[at].offset_us + _time(event))},"label":'.encode()
            yield lines.lines([event]).removesuffix(b"}\n") + more + name + b"}\n"


def _time(event: Event) -> int:
    return event.t_last if isinstance(event, Frame) else event.t


def _moment(started: str) -> datetime:
    moment = datetime.fromisoformat(started)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
