"""Choose the events that a filter shows: of a capture that can be read twice, or of a session while it goes on.

`Selection` reads all events once and keeps one bit for each; then it picks those that are shown, in order.
`LiveSelector` takes the events as they come and gives those that are shown as soon as that is certain: what belongs to
an undecided exchange is held until it matches or ends. Both give the same events; those of the live one may stand in
another order.
"""

from array import array
from collections.abc import Iterable, Iterator

from mcpsniff.checks import Finding
from mcpsniff.decoder import Event
from mcpsniff.protocol.events import Close
from mcpsniff.protocol.http import UNDECODED, Http
from mcpsniff.protocol.message import Message
from mcpsniff.transcript.filter.expression import Filter
from mcpsniff.transcript.filter.groups import Groups
from mcpsniff.wire.frames import Frame


class LiveSelector:
    """Chooses among events as they come."""

    def __init__(self, chosen: Filter) -> None:
        self._groups: Groups[Event] = Groups(chosen, list)

    def feed(self, events: Iterable[Event]) -> list[Event]:
        """Take all events that a record led to (or several records); return those that are shown by now."""
        return sorted(self._groups.feed([(event, event) for event in events]), key=_place)

    def finish(self) -> list[Event]:
        """Nothing more comes: return what is still to be shown."""
        return sorted(self._groups.finish(), key=_place)


def _place(event: Event) -> tuple[int, bool]:
    """Findings have no number: they come after the event that they hang on."""
    return (event.at, True) if isinstance(event, Finding) else (event.n, False)


class Selection:
    """Chooses among the events of a session that is gone through twice: `learn`, then `pick`."""

    def __init__(self, chosen: Filter) -> None:
        self._groups: Groups[int] = Groups(chosen, lambda: array("Q"))
        self._bits = bytearray()
        self.messages = 0
        """Messages of the whole session."""
        self.shown = 0
        """Those among them that are shown."""
        self.exchanges = self.exchanges_shown = 0
        """HTTP exchanges of the whole session, and those among them that are shown."""
        self.last_t = 0
        """The latest moment of the whole session, in microseconds since it started."""
        self.has_ended = False
        """True if the whole session tells of the end of the server's process, or that it could not be started."""

    @property
    def is_empty(self) -> bool:
        """True if nothing is shown."""
        return not self._bits

    def learn(self, lists: Iterable[list[Event]]) -> None:
        """Go through all events for the first time; each list holds all that a record led to."""
        place = 0
        for events in lists:
            marked = []
            for event in events:
                is_message = type(event) is Message
                is_exchange = isinstance(event, Http) and event.is_first and event.state != UNDECODED
                marked.append((event, place << 2 | is_exchange << 1 | is_message))
                place += 1
                self.messages += is_message
                self.exchanges += is_exchange
                self._note(event)
            self._mark(self._groups.feed(marked))
        self._mark(self._groups.finish())

    def pick(self, lists: Iterable[list[Event]]) -> Iterator[list[Event]]:
        """Go through the same events for the second time: of each list those that are shown."""
        bits, place = self._bits, 0
        for events in lists:
            chosen = []
            for event in events:
                if place >> 3 < len(bits) and bits[place >> 3] >> (place & 7) & 1:
                    chosen.append(event)
                place += 1
            yield chosen

    def _mark(self, shown: list[int]) -> None:
        bits = self._bits
        for number in shown:
            place, self.shown = number >> 2, self.shown + (number & 1)
            self.exchanges_shown += number >> 1 & 1
            if place >> 3 >= len(bits):
                bits.extend(bytes((place >> 3) + 1 - len(bits)))
            bits[place >> 3] |= 1 << (place & 7)

    def _note(self, event: Event) -> None:
        self.last_t = max(self.last_t, event.t_last if isinstance(event, Frame) else event.t)
        if isinstance(event, Close) and (event.ends_process or event.how == "error"):
            self.has_ended = True
