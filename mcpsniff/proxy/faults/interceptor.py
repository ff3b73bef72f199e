"""The interceptor that does faults to messages."""

from collections.abc import Callable
from typing import NamedTuple

from mcpsniff.hooks.actions import HttpHead, Returned, Told
from mcpsniff.hooks.arrivals import Arrivals, wait_until
from mcpsniff.hooks.editor import Lane
from mcpsniff.protocol.message import Message
from mcpsniff.proxy.faults.chosen import Choice, Strike
from mcpsniff.proxy.faults.kinds import LATENCY
from mcpsniff.proxy.faults.places import Places


class Doing(NamedTuple):
    """What is to be done to a message."""

    strikes: list[Strike]
    why: str
    due: float
    """When it is late enough, as `time.monotonic` counts; 0 if it is not to be late."""

    def done(self, message: Message) -> Returned:
        """What becomes of the message then."""
        returned: Returned = Told(message, self.why)
        for kind, value in self.strikes:
            if kind.shape is not None:
                returned = kind.shape(message, value.means, self.why)
        return returned


class Faults:
    """See `mcpsniff.hooks.editor.Interceptor`."""

    name = "faults"

    def __init__(self, choice: Choice) -> None:
        self._choice = choice
        self._places = Places()
        self._arrivals = Arrivals()

    def edit(self, message: Message, lane: Lane) -> Returned:
        """Do what is chosen for this message."""
        doing = self.doing(message, lane.transport, lane)
        if doing is None:
            return message
        if doing.due:
            wait_until(doing.due, lane, self.name, doing.why)
        return doing.done(message)

    def doing(self, message: Message, transport: str, stream: object = None) -> Doing | None:
        """What is to be done to this message, see `Choice.of`; None: nothing. To be asked once for each message."""
        self._arrivals.of(message)
        place = self._places.of(message)
        strikes = self._choice.of(message, place, transport, stream)
        if not strikes:
            return None
        late = [value.means.low for kind, value in strikes if kind.name == LATENCY]
        due = self._arrivals.due(message, late[0]) if late else 0.0
        return Doing(strikes, reason(strikes, place), due)

    def edit_head(self, _head: HttpHead) -> None:
        """Heads stay as they are."""

    def begin(self, remark: Callable[[str], object]) -> None:
        """The capture says which faults were asked for, and the seed."""
        remark(self._choice.remark())

    def end(self) -> list[str]:
        """How often each fault struck."""
        return self._choice.told()


def reason(strikes: list[Strike], place: str) -> str:
    """What records say of faults: their names and values, and the place of the message."""
    return f"fault {' + '.join(strike.text for strike in strikes)} ({place})"
