"""The interceptor that does faults to messages."""

import time
from collections.abc import Callable
from typing import Final, NamedTuple

from mcpsniff.hooks.actions import HttpHead, Returned, Told
from mcpsniff.hooks.editor import Lane
from mcpsniff.protocol.message import Message
from mcpsniff.proxy.faults.chosen import Choice, Strike
from mcpsniff.proxy.faults.kinds import LATENCY
from mcpsniff.proxy.faults.places import Places

TICK: Final = 0.05
"""Seconds after which somebody who waits looks whether anybody is left to wait for."""
NOTABLE: Final = 0.0011
"""Seconds that every hold lasts at least: of less than 1 ms the capture says nothing, so the fault would be missing."""
CLOCKS: Final = 10_000
"""Conversations of which is remembered how their clock runs."""


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
        self._clocks: dict[int, int] = {}
        """Of each conversation: what its arrival times lack to those of `time.monotonic_ns`, in microseconds."""

    def edit(self, message: Message, lane: Lane) -> Returned:
        """Do what is chosen for this message."""
        doing = self.doing(message, lane.transport, lane)
        if doing is None:
            return message
        if doing.due:
            with lane.holding():
                while not lane.is_gone and (left := doing.due - time.monotonic()) > 0:
                    time.sleep(min(left, TICK))
        return doing.done(message)

    def doing(self, message: Message, transport: str, stream: object = None) -> Doing | None:
        """What is to be done to this message, see `Choice.of`; None: nothing. To be asked once for each message."""
        arrived = self._arrived(message)
        place = self._places.of(message)
        strikes = self._choice.of(message, place, transport, stream)
        if not strikes:
            return None
        late = [value.means.low for kind, value in strikes if kind.name == LATENCY]
        due = max((arrived + late[0]) / 1e6, time.monotonic() + NOTABLE) if late else 0.0
        return Doing(strikes, reason(strikes, place), due)

    def edit_head(self, _head: HttpHead) -> None:
        """Heads stay as they are."""

    def begin(self, remark: Callable[[str], object]) -> None:
        """The capture says which faults were asked for, and the seed."""
        remark(self._choice.remark())

    def end(self) -> list[str]:
        """How often each fault struck."""
        return self._choice.told()

    def _arrived(self, message: Message) -> int:
        """When a message arrived, by the clock of this machine, in microseconds.

        What waits behind another one that is late has arrived long ago: two answers that came together are both late
        by the same time. The quickest message so far tells how the clock of a capture runs.
        """
        now = time.monotonic_ns() // 1000
        ahead = now - message.t
        known = self._clocks.pop(message.conversation, ahead)
        self._clocks[message.conversation] = min(known, ahead)
        if len(self._clocks) > CLOCKS:
            del self._clocks[next(iter(self._clocks))]
        return message.t + min(known, ahead)


def reason(strikes: list[Strike], place: str) -> str:
    """What records say of faults: their names and values, and the place of the message."""
    return f"fault {' + '.join(strike.text for strike in strikes)} ({place})"
