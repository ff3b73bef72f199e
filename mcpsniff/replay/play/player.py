"""Playing as a machine without a clock of its own, a terminal or a file: rows and keys in, what is due out."""

from collections.abc import Iterator
from typing import Final

from mcpsniff.replay.play import keys
from mcpsniff.replay.play.bounds import Bound
from mcpsniff.replay.play.clock import Timeline
from mcpsniff.replay.play.reel import Item

END: Final = "end"
BOUND: Final = "bound"
STOPPED: Final = "stopped"


class Player:
    """Plays ``items`` from ``first`` to ``last``; ask `poll` for what is due, and `wait` how long nothing will be."""

    def __init__(
        self, items: Iterator[Item | None], timeline: Timeline, first: Bound | None = None, last: Bound | None = None
    ) -> None:
        self.timeline = timeline
        self.over = ""
        """Why there is nothing more to show: END, BOUND or STOPPED; empty while there is."""
        self.shown: Item | None = None
        """What was shown latest."""
        self.passed_over = 0
        """Rows before ``first``."""
        self.latest_t = 0
        """The latest moment that was shown or passed over."""
        self.is_seeking = False
        """True while it goes to the next finding."""
        self.has_help = False
        """True if the keys are to be explained."""
        self._items = items
        self._first = first
        self._last = last
        self._next: Item | None = None
        self._steps = 0

    @property
    def is_paused(self) -> bool:
        """True if nothing is shown but what a key asks for."""
        return self.timeline.is_paused and not self.is_seeking

    @property
    def is_searching(self) -> bool:
        """True if the next row is not known yet."""
        return self._next is None and not self.over

    def poll(self, now: float) -> Item | None:
        """What is to be shown now. None: nothing is due, or the next row has to be looked for further."""
        if self.over:
            return None
        if self._next is None:
            self._look(now)
        item = self._next
        if item is None or not (self._steps or self.is_seeking or self.timeline.is_due(now)):
            return None
        self.timeline.arrive(now)
        self._steps = max(self._steps - 1, 0)
        self._next, self.shown, self.latest_t = None, item, item.t
        if self.is_seeking and item.is_finding:
            self.is_seeking = False
            self.timeline.pause(now)
        return item

    def wait(self, now: float) -> float:
        """Seconds for which nothing is to be done but listen for keys; infinite in a pause."""
        if self.over or self._next is None or self._steps or self.is_seeking:
            return 0.0
        return self.timeline.left(now)

    def press(self, key: str, now: float) -> None:
        """Do what a key asks for (`mcpsniff.replay.play.keys`)."""
        if key == keys.QUIT:
            self.over = self.over or STOPPED
        elif key == keys.PAUSE:
            self._pause(now)
        elif key == keys.STEP:
            self.is_seeking = False
            self.timeline.pause(now)
            self._steps += 1
        elif key == keys.FINDING:
            self.is_seeking, self._steps = True, 0
        elif key == keys.FASTER:
            self.timeline.faster(now)
        elif key == keys.SLOWER:
            self.timeline.slower(now)
        elif key == keys.HELP:
            self.has_help = not self.has_help

    def _pause(self, now: float) -> None:
        self._steps = 0
        if self.is_seeking:
            self.is_seeking = False
            self.timeline.pause(now)
        elif self.timeline.is_paused:
            self.timeline.resume(now)
        else:
            self.timeline.pause(now)

    def _look(self, now: float) -> None:
        """Take the next from the items; only one, for looking far may take long."""
        try:
            item = next(self._items)
        except StopIteration:
            self.over = END
            return
        if item is None:
            return
        if self._first is not None:
            if not self._first.is_reached(item):
                self.passed_over += not item.late
                self.latest_t = item.t
                return
            self.timeline.jump(item.t if self._first.t is None else self._first.t, now)
            self._first = None
        if self._last is not None and self._last.is_passed(item):
            self.over = BOUND
            return
        self._next = item
        self.timeline.aim(item.t, now)
