"""Remember which ids are finished without remembering every one of them.

A decoder may watch a session for weeks. Integer ids are kept as ranges (SDKs count upwards, so one range holds a
session); other ids in a window of the latest. What fell out of the window is forgotten, and checks then stay silent.
"""

from bisect import bisect_right
from collections import OrderedDict, deque
from typing import Any, Final

WINDOW: Final = 10_000


class IntegerRanges:
    """A set of integers as sorted, disjoint, inclusive ranges; at most ``limit`` of them, the lowest going first."""

    def __init__(self, limit: int = WINDOW) -> None:
        self._starts: list[int] = []
        self._stops: list[int] = []
        self._limit = limit

    def __contains__(self, number: int) -> bool:
        position = bisect_right(self._starts, number) - 1
        return position >= 0 and number <= self._stops[position]

    def __len__(self) -> int:
        return len(self._starts)

    def add(self, number: int) -> None:
        """Put ``number`` into the set, joining the ranges it touches."""
        starts, stops = self._starts, self._stops
        after = bisect_right(starts, number)
        if after and number <= stops[after - 1]:
            return
        joins_left = after > 0 and stops[after - 1] == number - 1
        joins_right = after < len(starts) and starts[after] == number + 1
        if joins_left and joins_right:
            stops[after - 1] = stops.pop(after)
            del starts[after]
        elif joins_left:
            stops[after - 1] = number
        elif joins_right:
            starts[after] = number
        else:
            starts.insert(after, number)
            stops.insert(after, number)
            if len(starts) > self._limit:
                del starts[0], stops[0]


class SharedWindow:
    """One window for many tables: what was remembered first goes first, whichever table it is in."""

    def __init__(self, limit: int = WINDOW) -> None:
        self._entries: deque[tuple[Finished[Any, Any], Any, Any]] = deque()
        self._limit = limit

    def add(self, table: "Finished[Any, Any]", key: Any, value: Any) -> None:
        """``table`` remembers what became of ``key``."""
        self._entries.append((table, key, value))
        if len(self._entries) > self._limit:
            first, oldest, what = self._entries.popleft()
            first.forget(oldest, what)


class Finished[Key, Value]:
    """The latest finished keys with what became of them, and all finished integers.

    The window is ``window`` keys, or one that several tables share.
    """

    def __init__(self, window: int | SharedWindow = WINDOW) -> None:
        self._recent: OrderedDict[Key, Value] = OrderedDict()
        self._shared = window if isinstance(window, SharedWindow) else None
        self._window = window if isinstance(window, int) else WINDOW
        self._integers = IntegerRanges(self._window)

    def add(self, key: Key, value: Value) -> None:
        """Remember that ``key`` is finished."""
        self._recent[key] = value
        self._recent.move_to_end(key)
        if self._shared is not None:
            self._shared.add(self, key, value)
        elif len(self._recent) > self._window:
            self._recent.popitem(last=False)
        if isinstance(key, int):
            self._integers.add(key)

    def forget(self, key: Key, value: Value) -> None:
        """What became of ``key`` is no longer worth its place, unless something else has become of it since."""
        if self._recent.get(key) is value:
            del self._recent[key]
            if not self._recent:
                self._recent = OrderedDict()  # an emptied one keeps the size it had

    def get(self, key: Key) -> Value | None:
        """What became of ``key``, if that is still known."""
        return self._recent.get(key)

    def __contains__(self, key: Key) -> bool:
        return key in self._recent or (isinstance(key, int) and key in self._integers)
