"""Waiting with a message: when it arrived by the clock of this machine, and until when it is held."""

import time
from typing import Final

from mcpsniff.hooks.editor import Lane
from mcpsniff.hooks.waiting import LONG
from mcpsniff.protocol.message import Message

TICK: Final = 0.05
"""Seconds after which somebody who waits looks whether anybody is left to wait for."""
NOTABLE: Final = 0.0011
"""Seconds that every hold lasts at least: of less than 1 ms the capture says nothing, so it would be missing there."""
CLOCKS: Final = 10_000
"""Conversations of which is remembered how their clock runs."""


class Arrivals:
    """Tells when messages arrived. Several threads may ask at once."""

    def __init__(self) -> None:
        self._clocks: dict[int, int] = {}
        """Of each conversation: what its arrival times lack to those of `time.monotonic_ns`, in microseconds."""

    def of(self, message: Message) -> float:
        """When a message arrived, in seconds as `time.monotonic` counts.

        What waits behind another one that is late has arrived long ago: two answers that came together are both late
        by the same time. The quickest message so far tells how the clock of a capture runs.
        """
        ahead = time.monotonic_ns() // 1000 - message.t
        known = min(self._clocks.pop(message.conversation, ahead), ahead)
        self._clocks[message.conversation] = known
        if len(self._clocks) > CLOCKS:
            self._clocks.pop(next(iter(self._clocks)), None)
        return (message.t + known) / 1e6

    def due(self, message: Message, us: int) -> float:
        """Until when a message is to be held that is to be late by so many microseconds."""
        return max(self.of(message) + us / 1e6, time.monotonic() + NOTABLE)


def wait_until(due: float, lane: Lane, by: str, why: str = "") -> None:
    """Hold the message until then, as `time.monotonic` counts, or until nobody is left to whom it could go."""
    with lane.holding():
        if due - time.monotonic() > LONG:
            lane.held(by, why)
        while not lane.is_gone and (left := due - time.monotonic()) > 0:
            time.sleep(min(left, TICK))
