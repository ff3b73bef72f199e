"""Turn the decoder's events into the rows of a transcript, one by one, for every form of it.

A row is a message, a line of stderr, the end of a channel, a request that stayed without an answer, or a remark of the
recorder, together with the findings that hang on it. Texts on a row are as they were captured: whoever shows them
makes them safe first (`mcpsniff.transcript.safe`).
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from mcpsniff.checks import Finding
from mcpsniff.decoder import Event
from mcpsniff.protocol.events import Close, Note, Stderr
from mcpsniff.protocol.exchanges import ABANDONED, OPEN, Exchange
from mcpsniff.protocol.message import ERROR, INVALID, NOTIFICATION, REQUEST, RESPONSE, Message
from mcpsniff.protocol.reading import NOT_JSON
from mcpsniff.transcript.endings import close_words
from mcpsniff.transcript.lanes import BROKEN, Lanes
from mcpsniff.transcript.wording import answer_words, noise_words, note_words, notification_words
from mcpsniff.wire.frames import EMPTY_LINE, Frame

BLANK: Final = "blank"
STDERR: Final = "stderr"
CLOSE: Final = "close"
UNANSWERED: Final = "unanswered"
NOTE: Final = "note"
REPORT: Final = "report"

WAITING_ROWS: Final = 300
"""Rows held back while the decoder may still say whether broken lines belong together."""


@dataclass(slots=True)
class Row:
    """One row. ``n`` is the number of its event, the same as in the JSON output."""

    n: int
    t: int
    kind: str
    direction: str | None = None
    title: str = ""
    """The method, or what stands in its place."""
    target: str | None = None
    """What the message is about, such as the tool's name."""
    words: tuple[str, ...] = ()
    """What mcpsniff says of it, such as ``answers #8``; only words of its own."""
    remark: str = ""
    """The few words of the peer that matter most, such as an error's message."""
    id: str | None = None
    size: int | None = None
    latency_us: int | None = None
    lanes: str = ""
    loud: bool = False
    """True for what nobody should overlook: noise, a failure, an end with a status other than 0."""
    frame: int | None = None
    """The number of the frame whose findings hang on this row too."""
    message: Message | None = None
    findings: list[Finding] = field(default_factory=list)


class RowBuilder:
    """Builds rows from events; a row is given as soon as nothing more can come to hang on it.

    ``now_us`` is how long the session has lasted so far (microseconds), where it still runs: open requests have waited
    until then, else until the last event.
    """

    def __init__(self, now_us: int | None = None) -> None:
        self._latest = 0 if now_us is None else now_us
        self._rows: deque[Row] = deque()
        self._by_number: dict[int | None, Row] = {}
        self._early: list[Finding] = []
        self._frame: Frame | None = None
        self._rowless = 0
        """The number of the latest event that has no row of its own."""
        self._lanes = Lanes()

    def feed(self, events: Iterable[Event]) -> Iterator[Row]:
        """Take events; give the rows that are complete."""
        for event in events:
            self._latest = max(self._latest, event.t_last if isinstance(event, Frame) else event.t)
            self._event(event)
            while len(self._rows) > 1 and (self._is_settled(self._rows[0]) or len(self._rows) > WAITING_ROWS):
                yield self._take()

    def _event(self, event: Event) -> None:
        if isinstance(event, Finding):
            self._finding(event)
        elif isinstance(event, Message):
            self._add(self._message(event), event.frame.n if event.batch is None else None)
        elif isinstance(event, Frame):
            self._begin_frame(event)
        elif isinstance(event, Exchange):
            self._exchange(event)
        elif isinstance(event, Stderr):
            self._add(Row(event.n, event.t, STDERR, title=event.text, lanes=self._lanes.touch(None)))
        elif isinstance(event, Close):
            self._close(event)
        else:
            self._add(self._note(event))

    def finish(self) -> Iterator[Row]:
        """Nothing more comes: give the rows that are left."""
        while self._rows:
            yield self._take()

    def _take(self) -> Row:
        row = self._rows.popleft()
        for number in (row.n, row.frame):
            if self._by_number.get(number) is row:
                del self._by_number[number]
        return row

    def _is_settled(self, row: Row) -> bool:
        """Broken lines are judged only when the lines after them have been seen."""
        return row.kind != INVALID or bool(row.findings) or row.message is None or NOT_JSON not in row.message.flaws

    def _add(self, row: Row, frame: int | None = None) -> None:
        self._rows.append(row)
        self._by_number[row.n] = row
        if frame is not None:
            row.frame = frame
            self._by_number[frame] = row
        row.findings.extend(self._early)
        self._early.clear()
        self._frame = None

    def _finding(self, finding: Finding) -> None:
        row = self._by_number.get(finding.at)
        if row is not None:
            row.findings.append(finding)
        elif self._frame is not None and finding.at == self._frame.n:
            self._early.append(finding)
        elif self._rows and finding.at == self._rowless:
            # Such as an exchange that ended with the latest row.
            self._rows[-1].findings.append(finding)
        else:
            row = Row(finding.at, finding.t, REPORT, lanes=self._lanes.touch(None), findings=[finding])
            self._rows.append(row)

    def _begin_frame(self, frame: Frame) -> None:
        if EMPTY_LINE in frame.flaws:
            row = Row(frame.n, frame.t_last, BLANK, frame.direction, size=frame.size, lanes=self._lanes.touch(None))
            self._add(row)
        else:
            self._frame = frame

    def _message(self, message: Message) -> Row:
        row = Row(message.n, message.t, message.kind, message.direction, message=message)
        row.id, row.size = message.id, message.size
        link = message.link
        if message.kind == REQUEST:
            row.title = message.method or ""
            row.target = None if link is None else link.target
            row.lanes = self._lanes.touch(None) if link is None else self._lanes.begin(link.request)
        elif message.kind in (RESPONSE, ERROR) or (link is not None and message.kind == INVALID):
            self._answer(row, message, link)
        elif message.kind == NOTIFICATION:
            row.title = message.method or ""
            row.target, row.words, row.remark = notification_words(message)
            ends = link is not None and link.cancel == message.n
            row.lanes = self._lanes.touch(message.exchange) if not ends else self._lanes.end(message.exchange or 0)
        else:
            row.title, row.words = noise_words(message)
            row.loud = message.kind == INVALID
            row.lanes = self._lanes.touch(None)
        return row

    def _answer(self, row: Row, message: Message, link: Exchange | None) -> None:
        row.title = message.kind if link is None else link.method
        row.target = None if link is None else link.target
        row.words, row.remark = answer_words(message, link)
        row.loud = message.kind != RESPONSE
        row.lanes = self._lanes.touch(None)
        if link is not None and link.response == message.n:
            row.latency_us = link.latency_us
            row.lanes = self._lanes.end(link.request)

    def _exchange(self, exchange: Exchange) -> None:
        """Only what no message tells gets a row: a request that nobody answered."""
        if exchange.state not in (OPEN, ABANDONED):
            self._rowless = exchange.n
            return
        until = self._latest if exchange.state == OPEN else exchange.t
        row = Row(exchange.n, until, UNANSWERED, exchange.direction, exchange.method, exchange.target)
        waited = max(until - exchange.t_request, 0)
        row.id, row.loud = exchange.id, exchange.state == ABANDONED
        row.words = (f"{exchange.state} #{exchange.request}",)
        row.latency_us = waited or None
        row.lanes = self._lanes.end(exchange.request, BROKEN)
        self._add(row)

    def _close(self, close: Close) -> None:
        title, remark, loud = close_words(close)
        if title:
            lanes = self._lanes.touch(None)
            self._add(Row(close.n, close.t, CLOSE, title=title, remark=remark, loud=loud, lanes=lanes))
        else:
            self._rowless = close.n

    def _note(self, note: Note) -> Row:
        title, remark = note_words(note)
        return Row(note.n, note.t, NOTE, title=title, remark=remark, lanes=self._lanes.touch(None))
