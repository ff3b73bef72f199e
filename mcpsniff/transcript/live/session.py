"""A session that is decoded while it goes on: the same events as `mcpsniff.transcript.session.Session` gives."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from mcpsniff.capture.parser import Damage
from mcpsniff.capture.records import Header, Record
from mcpsniff.decoder import Event
from mcpsniff.protocol.message import Message
from mcpsniff.transcript.head import Entry, without_hint
from mcpsniff.transcript.session import Session

if TYPE_CHECKING:
    from mcpsniff.transcript.filter import Filter

LAG_US: Final = 500_000
"""How far the decoder's time stays behind (microseconds): a record takes a moment from the wire to us, and a deadline
must not pass before a record that came in time."""


@dataclass(slots=True)
class Facts:
    """What is known of a capture that grows, besides its records; a `mcpsniff.transcript.session.Source`."""

    header: Header
    path: str
    joined_late: bool
    damage: list[Damage]

    def records(self) -> Iterator[Record]:
        """None: they are fed."""
        return iter(())


class Step(NamedTuple):
    """What a moment brings."""

    events: list[Event]
    shown: list[Event]
    """Those among them, and among earlier ones, that are certain by now to be shown."""


class LiveSession(Session):
    """A session to which records and time are fed; ``only`` chooses what is shown of it."""

    def __init__(self, facts: Facts, label: str, only: "Filter | None" = None) -> None:
        super().__init__(facts, label)
        self._only = only
        self._selector = None
        if only is not None:
            from mcpsniff.transcript.filter import LiveSelector

            self._selector = LiveSelector(only)
        self._facts = facts
        self.messages = 0
        """Messages so far, those that are not shown included."""

    @property
    def is_filtered(self) -> bool:
        """True if only a part is shown."""
        return self._selector is not None

    @property
    def now_us(self) -> int:
        """The moment of the latest event, in microseconds since the start."""
        return self._t

    def feed(self, record: Record) -> Step:
        """What a record leads to."""
        self.take(record)
        return self._step(self._decoder.feed(record))

    def advance(self, now_us: int) -> Step:
        """What passed without a record: ``now_us`` microseconds have gone by since the start."""
        return self._step(self._decoder.advance(now_us - LAG_US))

    def finish(self) -> Step:
        """What the end brings: exchanges that are open, and what was unreadable."""
        events = self._decoder.finish()
        self._take_note(events)
        damage: list[Event] = [self._damage(k, damage) for k, damage in enumerate(self._facts.damage)]
        if self._selector is None:
            return Step(events + damage, events + damage)
        shown = self._selector.feed(events) + self._selector.feed(damage) + self._selector.finish()
        return Step(events + damage, shown)

    def head(self) -> list[Entry]:
        """The head, as far as the events so far tell."""
        entries = super().head()
        if self._only is not None:
            alone = "each message by itself" if self._only.alone else ""
            entries = without_hint(entries, self._only.fields)
            entries.append(Entry("filter", self._only.expression, alone))
        return entries

    def _step(self, events: list[Event]) -> Step:
        if not events:
            return Step(events, events)
        self._take_note(events)
        self.messages += sum([isinstance(event, Message) for event in events])
        return Step(events, events if self._selector is None else self._selector.feed(events))
