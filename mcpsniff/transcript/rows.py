"""Turn the decoder's events into the rows of a transcript, one by one, for every form of it.

A row is a message, a line of stderr, the end of a channel, a request that stayed without an answer, an HTTP exchange
that says more than its messages, or a remark of the recorder, together with the findings that hang on it. Texts on a
row are as they were captured: whoever shows them makes them safe first (`mcpsniff.transcript.safe`).
"""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final

from mcpsniff.checks import Finding
from mcpsniff.decoder import Event
from mcpsniff.protocol.edits import Edit
from mcpsniff.protocol.events import Close, Stderr
from mcpsniff.protocol.exchanges import ABANDONED, CANCELLED, OPEN, Exchange
from mcpsniff.protocol.http import Http
from mcpsniff.protocol.message import ERROR, INVALID, NOTIFICATION, REQUEST, RESPONSE, Message
from mcpsniff.protocol.reading import NOT_JSON
from mcpsniff.transcript.edit_rows import edit_row, touch_words
from mcpsniff.transcript.endings import WE_STOPPED, close_words
from mcpsniff.transcript.envelopes import Envelopes
from mcpsniff.transcript.http_rows import HttpRows
from mcpsniff.transcript.http_words import CUT_BY_US
from mcpsniff.transcript.lanes import BROKEN, Lanes
from mcpsniff.transcript.row import BLANK, CLOSE, EDIT, HTTP, NOTE, REPORT, STDERR, UNANSWERED, Row
from mcpsniff.transcript.wording import answer_words, noise_words, notification_words
from mcpsniff.wire.frames import EMPTY_LINE, Frame

__all__ = ["BLANK", "CLOSE", "EDIT", "HTTP", "NOTE", "REPORT", "STDERR", "UNANSWERED", "Row", "RowBuilder"]

WAITING_ROWS: Final = 300
"""Rows held back while the decoder may still say whether broken lines belong together."""


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
        self._fresh: Row | None = None
        """The latest row, if it is of the record whose events are being taken."""
        self._quiet: Http | None = None
        """The latest HTTP exchange that has no row, as messages tell of it; it gets one if it gets a finding."""
        self._is_stopped = False
        """True once it was told that mcpsniff was stopped."""
        self._envelopes = Envelopes()
        self._lanes = Lanes()
        self._http = HttpRows(self._lanes)

    def feed(self, events: Iterable[Event]) -> Iterator[Row]:
        """Take the events of a record; give the rows that are complete."""
        self._fresh = self._quiet = None
        self._http.begin()
        for event in events:
            self._latest = max(self._latest, event.t_last if isinstance(event, Frame) else event.t)
            self._event(event)
            while len(self._rows) > 1 and (self._is_settled(self._rows[0]) or len(self._rows) > WAITING_ROWS):
                yield self._take()
        self._end_frame()
        if (row := self._http.unsaid()) is not None:
            self._add(row)

    def _event(self, event: Event) -> None:
        if isinstance(event, Finding):
            self._finding(event)
            return
        if not (isinstance(event, Message) and event.frame is self._frame):
            self._end_frame()
        if isinstance(event, Message):
            self._add(self._message(event), event.frame.n if event.batch is None else None)
        elif isinstance(event, Frame):
            self._begin_frame(event)
        elif isinstance(event, Exchange):
            self._exchange(event)
        elif isinstance(event, Stderr):
            self._add(Row(event.n, event.t, STDERR, title=event.text, lanes=self._lanes.touch(None)))
        elif isinstance(event, Close):
            self._close(event)
        elif isinstance(event, Http):
            self._exchange_of_http(event)
        elif isinstance(event, Edit):
            self._edit(event)
        elif (row := self._http.note(event)) is not None:
            self._add(row)

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
        self._fresh = row

    def _finding(self, finding: Finding) -> None:
        row = self._by_number.get(finding.at)
        if row is not None:
            row.findings.append(finding)
        elif self._frame is not None and finding.at == self._frame.n:
            self._early.append(finding)
        elif self._quiet is not None and finding.at == self._quiet.n:
            quiet, self._quiet = self._quiet, None
            self._add(self._http.row(quiet))
            self._by_number[finding.at].findings.append(finding)
        elif self._fresh is not None and finding.at == self._rowless:
            # Such as an exchange that ended with the latest row.
            self._fresh.findings.append(finding)
        else:
            row = Row(finding.at, finding.t, REPORT, lanes=self._lanes.touch(None), findings=[finding])
            self._rows.append(row)

    def _begin_frame(self, frame: Frame) -> None:
        if EMPTY_LINE in frame.flaws:
            row = Row(frame.n, frame.t_last, BLANK, frame.direction, size=frame.size, lanes=self._lanes.touch(None))
            self._add(row)
        else:
            self._frame = frame

    def _end_frame(self) -> None:
        """An event of a stream that carried no message: it may be worth a row by itself, or what was found about it."""
        frame = self._frame
        if frame is None or frame.sse is None:
            return
        row = self._http.bare(frame) or (self._http.bare_row(frame) if self._early else None)
        self._frame = None
        if row is not None:
            self._add(row)

    def _message(self, message: Message) -> Row:
        row = Row(message.n, message.t, message.kind, message.direction, message=message)
        row.id, row.size = message.id, message.size
        row.envelope = self._envelopes.repeats(message) if message.meta else None
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
            row.words += touch_words(link, message.n) if ends else ()
            row.lanes = self._lanes.touch(message.exchange) if not ends else self._lanes.end(message.exchange or 0)
        else:
            row.title, row.words = noise_words(message)
            row.loud = message.kind == INVALID
            row.lanes = self._lanes.touch(None)
        self._http.message(row, message)
        return row

    def _answer(self, row: Row, message: Message, link: Exchange | None) -> None:
        row.title = message.kind if link is None else link.method
        row.target = None if link is None else link.target
        row.words, row.remark = answer_words(message, link)
        row.words += touch_words(link, message.n)
        row.loud = message.kind != RESPONSE
        row.lanes = self._lanes.touch(None)
        if link is not None and link.response == message.n:
            row.latency_us = link.latency_us
            row.lanes = self._lanes.end(link.request)

    def _exchange(self, exchange: Exchange) -> None:
        """Only what no message tells gets a row: a request that nobody answered."""
        by_hanging_up = exchange.state == CANCELLED and exchange.cancel is None
        if self._http.ends(exchange) or not (by_hanging_up or exchange.state in (OPEN, ABANDONED)):
            self._rowless = exchange.n
            return
        until = self._latest if exchange.state == OPEN else exchange.t
        row = Row(exchange.n, until, UNANSWERED, exchange.direction, exchange.method, exchange.target)
        waited = max(until - exchange.t_request, 0)
        owed = not (exchange.may_be_answered or exchange.is_kept_back)
        row.id, row.loud = exchange.id, exchange.state == ABANDONED and owed
        row.words = (f"{exchange.state} #{exchange.request}",)
        if exchange.state == ABANDONED and exchange.is_refused:
            row.words = (f"refused #{exchange.request}", f"HTTP {exchange.status}")
        elif self._http.is_cut_by_us(exchange):
            row.words += (CUT_BY_US,)
        elif exchange.may_be_answered:
            row.words = (f"unseen #{exchange.request}", "this capture may lack its answer")
        row.words += touch_words(exchange, exchange.n)
        row.latency_us = waited or None
        row.lanes = self._lanes.end(exchange.request, BROKEN)
        if exchange.http is not None:
            row.conversation = self._http.marked(exchange.conversation)
            row.server = self._http.server(exchange.conversation, exchange.authority)
        self._add(row)

    def _edit(self, edit: Edit) -> None:
        """What was changed on the way; what only makes another change true, or takes next to no time, has no row."""
        row = None if self._http.is_known_head(edit) else edit_row(edit, self._lanes)
        if row is None:
            self._rowless = edit.n
            return
        if edit.message is not None and edit.message.meta:
            row.envelope = self._envelopes.known(edit.message)
        self._http.edit(row, edit)
        self._add(row)

    def _exchange_of_http(self, event: Http) -> None:
        """One that its messages tell of is passed over, unless something is found about it."""
        if self._http.is_quiet(event):
            self._quiet, self._rowless = event, event.n
        else:
            self._add(self._http.row(event))

    def _close(self, close: Close) -> None:
        title, remark, loud = close_words(close)
        if title == WE_STOPPED:
            title, self._is_stopped = "" if self._is_stopped else title, True  # every connection says so
        if title:
            lanes = self._lanes.touch(None)
            self._add(Row(close.n, close.t, CLOSE, title=title, remark=remark, loud=loud, lanes=lanes))
        else:
            self._rowless = close.n
