"""What the live view shows of one session: the rows as they become complete, its opening and its end."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Protocol

import orjson

from mcpsniff.protocol.events import Close
from mcpsniff.transcript.closing import closing_lines
from mcpsniff.transcript.endings import close_words
from mcpsniff.transcript.head import Entry
from mcpsniff.transcript.jsonl import JsonLines
from mcpsniff.transcript.layout import wrapped
from mcpsniff.transcript.live.foot import Going, OpenRequests
from mcpsniff.transcript.live.gutter import Gutter
from mcpsniff.transcript.live.session import LiveSession, Step
from mcpsniff.transcript.payload import Style
from mcpsniff.transcript.pretty import Segment
from mcpsniff.transcript.rows import Row, RowBuilder
from mcpsniff.transcript.safe import visible
from mcpsniff.transcript.session import CUT_OFF, HEAD_EVENTS, ending
from mcpsniff.transcript.summary import Summary
from mcpsniff.transcript.text import Print, TextTranscript
from mcpsniff.transcript.units import count, duration

KNOWN_AT_ONCE: Final = frozenset({"started", "capture", "command", "folder", "transport", "route", "filter"})
"""Entries of the head that the capture's first line tells; the others are told by the opening of the session."""
BRIEF: Final = (
    "capture",
    "edited by",
    "command",
    "route",
    "also asked",
    "client",
    "server",
    "revision",
    "conversation",
    "note",
    "filter",
)
"""Entries that are shown where several sessions are."""


class View(Protocol):
    """Shows one session."""

    def feed(self, step: Step) -> None:
        """Take what a record or the time brought."""

    def rest(self) -> None:
        """Nothing more is there at the moment."""

    def end(self, step: Step, *, lost: bool) -> None:
        """The session is over, or (``lost``) what can be seen of it."""

    def waiting(self, now_us: int) -> Iterable[Going]:
        """The requests and the streams that are open."""


def is_news(entry: Entry) -> bool:
    """True for what the opening of the session told, such as which transport over HTTP this is."""
    is_new = entry.name not in KNOWN_AT_ONCE or entry.is_learnt
    return is_new or (entry.name == "transport" and bool(entry.remark))


class LiveRows(RowBuilder):
    """Rows for a view that cannot wait for the next event to show the latest one."""

    def settled(self) -> Iterator[Row]:
        """After all events of a record: the rows on which nothing more is to be expected."""
        while self._rows and self._is_settled(self._rows[0]):
            yield self._take()


class LiveText:
    """Prints a session as text.

    ``latest``: of what is there when the first pause comes show only so many rows, and how many were passed over
    (None: all). ``gutter``: several sessions are shown; heads and ends are brief then.
    """

    def __init__(
        self,
        session: LiveSession,
        print_line: Print,
        width: Callable[[], int],
        style: Style,
        *,
        latest: int | None = None,
        gutter: Gutter | None = None,
    ) -> None:
        self._session = session
        self._gutter = gutter
        self._width = width if gutter is None else lambda: gutter.room
        self._print = print_line if gutter is None else lambda line: gutter.print(session.label, line)
        self._style = style
        self._transcript = TextTranscript(self._print, self._width(), style)
        self._rows = LiveRows()
        self._summary = Summary(talks=session.talks)
        self._open = OpenRequests()
        self._held: deque[Row] = deque(maxlen=latest)
        self._all = latest is None
        self._passed_over = self._seen = 0
        self._begun = self._introduced = False
        self._is_apart = True
        """False after lines of the head that were told late: what follows begins with an empty line."""
        self._ending = ""
        self._ended = False

    def feed(self, step: Step) -> None:
        """Print what is complete."""
        if not step.events:
            return
        self._seen += len(step.events)
        for event in step.events:
            if isinstance(event, Close) and (event.ends_process or event.how == "error"):
                self._ending, self._ended = close_words(event)[0], True
        self._open.feed(step.shown, step.events)
        self._summary.feed(step.shown)
        self._give(self._rows.feed(step.shown))
        self._give(self._rows.settled())
        if not self._begun and self._all and (self._session.is_introduced or self._seen >= HEAD_EVENTS):
            self._begin(whole=True)
        elif self._begun:
            self._introduce()

    def rest(self) -> None:
        """Print what was held back in case something comes that belongs to it."""
        self._give(self._rows.finish())
        self._begin()

    def end(self, step: Step, *, lost: bool) -> None:
        """Print the rest and how it ended; a single session's summary, too."""
        self.feed(step)
        self._give(self._rows.finish())
        self._begin(whole=True)
        if not self._gutter:
            self._introduce(at_the_end=True)
        text = ""
        if self._ended and not self._summary.has_ended:
            text = self._ending
        elif not lost:
            text = ending(self._session, is_running=False, has_ended=self._ended)
        self._summary.of = self._session.messages if self._session.is_filtered else None
        if self._gutter:
            self._brief_end(text)
            return
        if text:
            self._page.end(text)
        for line in closing_lines(self._summary, self._page.width):
            self._print(line)

    def waiting(self, now_us: int) -> Iterator[Going]:
        """The requests and the streams that are open, once their rows are shown."""
        if not self._begun:
            return iter(())
        who: Segment | None = None
        if self._gutter:
            who = self._gutter.named(self._session.label, max(self._gutter.column, self._gutter.width // 4))
        return self._open.waiting(now_us, who)

    @property
    def _page(self) -> TextTranscript:
        """The transcript, at the width that there is now."""
        if self._transcript.width != max(self._width(), 20):
            self._transcript = TextTranscript(self._print, self._width(), self._style)
        return self._transcript

    def _give(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self._summary.place(row)
            if self._begun:
                self._set_apart()
                self._page.row(row)
                continue
            self._passed_over += len(self._held) == self._held.maxlen
            self._held.append(row)

    def _begin(self, *, whole: bool = False) -> None:
        """Print the head, ``whole`` or as far as it is known, and the rows up to now."""
        if self._begun:
            return
        self._begun = True
        entries = self._session.head()
        self._introduced = self._session.is_opened or whole
        if not self._introduced:
            entries = [entry for entry in entries if entry.name in KNOWN_AT_ONCE]
        if self._gutter:
            started = next(f"  {entry.value} {entry.remark}" for entry in entries if entry.name == "started")
            self._print([("title", visible(self._session.label)), ("remark", started)])
            self._page.entries(entry._replace(lines=1) for entry in entries if entry.name in BRIEF)
        else:
            self._page.head(self._session.label, entries)
        if self._passed_over:
            rows = count(self._passed_over, "earlier row")
            self._say("remark", f"… {rows} not shown (--from start shows all)")
        while self._held:
            self._page.row(self._held.popleft())

    def _introduce(self, *, at_the_end: bool = False) -> None:
        """Print the part of the head that only the opening of the session told."""
        if self._introduced or not (self._session.is_opened or at_the_end):
            return
        self._introduced = True
        entries: list[Entry] = [entry for entry in self._session.head() if is_news(entry)]
        if self._gutter:
            entries = [entry for entry in entries if entry.name in BRIEF and (entry.value or entry.name == "note")]
        self._print([])
        self._page.entries(entries)
        self._is_apart = False

    def _set_apart(self) -> None:
        if not self._is_apart:
            self._print([])
            self._is_apart = True

    def _brief_end(self, text: str) -> None:
        self._set_apart()
        if text:
            self._say("loud" if text is CUT_OFF else "milestone", text)
        summary = self._summary
        total = count(sum(summary.messages.values()), "message")
        if summary.of is not None:
            total = f"{sum(summary.messages.values()):,} of {count(summary.of, 'message')}"
        found = [count(number, severity) for severity, number in summary.severities().items()]
        took, findings = duration(summary.last_t), ", ".join(found) or "no findings"
        self._say("remark", f"end of this session: {total} in {took}, {findings}")

    def _say(self, role: str, text: str) -> None:
        for line in wrapped(text, self._page.width):
            self._print([(role, line)])


class LiveJson:
    """Writes a session as JSON Lines, the same that `mcpsniff show` gives; ``label`` is put into each if given.

    ``from_now``: leave out what is there when the first pause comes.
    """

    def __init__(
        self, write: Callable[[bytes], object], *, payload: bool, label: str | None = None, from_now: bool = False
    ) -> None:
        self._write = write
        self._lines = JsonLines(payload=payload)
        self._label = b""
        if label is not None:
            self._label = b',"label":' + orjson.dumps(label.encode(errors="backslashreplace").decode())
        self._silent = from_now

    def feed(self, step: Step) -> None:
        """Write the lines."""
        if self._silent or not step.shown:
            return
        if not self._label:
            self._write(self._lines.lines(step.shown))
            return
        for event in step.shown:
            self._write(self._lines.lines([event]).removesuffix(b"}\n") + self._label + b"}\n")

    def rest(self) -> None:
        """From here on everything is new."""
        self._silent = False

    def end(self, step: Step, *, lost: bool) -> None:  # noqa: ARG002
        """Write the last lines."""
        self.feed(step)

    def waiting(self, now_us: int) -> Iterable[Going]:  # noqa: ARG002
        """Nobody watches a clock in JSON."""
        return ()
