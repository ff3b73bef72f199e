"""The interceptor that does faults to messages."""

import time
from collections.abc import Callable
from typing import Final

from mcpsniff.hooks.actions import HttpHead, Returned, Told
from mcpsniff.hooks.editor import Lane
from mcpsniff.protocol.message import Message
from mcpsniff.proxy.faults.chosen import Choice, Strike
from mcpsniff.proxy.faults.kinds import LATENCY
from mcpsniff.proxy.faults.places import Places

TICK: Final = 0.05
"""Seconds after which somebody who waits looks whether anybody is left to wait for."""
CLOCKS: Final = 10_000
"""Conversations of which is remembered how their clock runs."""


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
        arrived = self._arrived(message)
        place = self._places.of(message)
        strikes = self._choice.of(message, place, lane)
        if not strikes:
            return message
        why = reason(strikes, place)
        returned: Returned = Told(message, why)
        for kind, value in strikes:
            if kind.name == LATENCY:
                _wait(lane, (arrived + value.means.low) / 1e6)
        for kind, value in strikes:
            if kind.shape is not None:
                returned = kind.shape(message, value.means, why)
        return returned

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


def _wait(lane: Lane, due: float) -> None:
    """Hold the message until then, as `time.monotonic` counts."""
    with lane.holding():
        while not lane.is_gone and (left := due - time.monotonic()) > 0:
            time.sleep(min(left, TICK))
