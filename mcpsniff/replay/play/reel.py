"""What is played: the rows of a session, each with the moment at which it is due, decoded as they are asked for.

They are the rows of `mcpsniff show`, where a finding stands below the row it hangs on. One that was made later, such as
that nobody had answered for a minute, is due when it was made, if no other row came in between.
"""

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from mcpsniff.checks import INFO, Finding
from mcpsniff.replay.play.going import Open
from mcpsniff.transcript.rows import Row, RowBuilder
from mcpsniff.transcript.session import HEAD_EVENTS, Session, ending
from mcpsniff.transcript.summary import Summary


class Item(NamedTuple):
    """What is shown at once."""

    t: int
    """When, in microseconds since the start; never less than that of the one before."""
    row: Row
    late: tuple[Finding, ...] = ()
    """Findings of that row, which was shown before; else the row with its own findings is meant."""
    has_more: bool = False
    """True if later findings of the row follow."""

    @property
    def is_finding(self) -> bool:
        """True if there is a finding in it; milestones do not count."""
        findings = self.late or self.row.findings
        return any(finding.severity != INFO for finding in findings)


class Reel:
    """A session to be played; ``now_us`` is how long it has lasted, where it still runs (microseconds)."""

    def __init__(self, session: Session, *, now_us: int | None = None) -> None:
        self.session = session
        whole = session.whole
        latest = whole.last_t if whole is not None and now_us is None else now_us
        self.summary = Summary(latest, session.talks)
        """Of all that was decoded so far, which may be more than was shown."""
        self.summary.of = None if whole is None else whole.messages
        self.open = Open()
        self.is_running = now_us is not None
        """True if the capture is still being written."""
        self._whole_ended = whole is not None and whole.has_ended
        self._builder = RowBuilder(latest)
        self._seen = 0
        self._first: list[Row | None] = []
        self._rows = self._decoded()

    def begin(self) -> None:
        """Decode the opening, so that the head can be told: as far as `mcpsniff show` does for its own."""
        for row in self._rows:
            if row is not None:
                self._first.append(row)
            if self.session.is_introduced or self._seen >= HEAD_EVENTS:
                return

    def items(self) -> Iterator[Item | None]:
        """What is to be shown, in order; None after each record that led to nothing."""
        latest = 0
        for row in chain(self._first, self._rows):
            if row is None:
                yield None
                continue
            latest = max(latest, row.t)
            now = _leading(row.findings, latest)
            late, row.findings = row.findings[len(now) :], now
            yield Item(latest, row, has_more=bool(late))
            for finding in late:
                latest = max(latest, finding.t)
                yield Item(latest, row, (finding,))
        self._first.clear()

    @property
    def ending(self) -> str:
        """What there is to say of how the recording ends, when all rows were given."""
        has_ended = self.summary.has_ended or self._whole_ended
        return ending(self.session, is_running=self.is_running, has_ended=has_ended)

    def _decoded(self) -> Iterator[Row | None]:
        for events in self.session.events():
            self._seen += len(events)
            self.summary.feed(events)
            self.open.feed(events)
            row = None
            for row in self._builder.feed(events):
                yield self._placed(row)
            if row is None:
                yield None
        for row in self._builder.finish():
            yield self._placed(row)

    def _placed(self, row: Row) -> Row:
        self.summary.place(row)
        return row


def _leading(findings: list[Finding], t: int) -> list[Finding]:
    """The first findings up to one that was made after ``t``."""
    for index, finding in enumerate(findings):
        if finding.t > t:
            return findings[:index]
    return findings
