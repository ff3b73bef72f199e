"""The clock of a recording that is played: which recorded moment it is, and when the next row is due.

It reads no clock itself: ``now`` is always given, in seconds of any clock that never goes back. Recorded times are
microseconds since the session started.

As with asciinema, a gap between two rows is first cut to the longest that is waited for, then divided by the speed. In
a gap that was cut the recorded time runs faster, so that it is right at both ends.
"""

import math
from typing import Final

NO_WAITING: Final = math.inf
"""The speed at which nothing is waited for."""
FASTEST: Final = 64.0
SLOWEST: Final = 1 / 16
"""The speeds between which `Timeline.faster` and `Timeline.slower` go; one step beyond FASTEST is NO_WAITING."""
BEHIND: Final = 0.25
"""Seconds that are caught up: who was stopped for longer goes on from there instead of rushing."""

_US: Final = 1_000_000
_SOON: Final = 1e-6
"""Seconds that are not waited for."""


class Timeline:
    """The recorded time, at ``speed``; ``idle_us`` is the longest gap that is waited for, None for any."""

    def __init__(self, speed: float, idle_us: int | None, *, now: float, at_us: int = 0) -> None:
        self.speed = speed
        self._idle_us = idle_us
        self._from = self._target = at_us
        self._length = 0
        """Of the gap, after the cut."""
        self._passed = 0.0
        """So much of it had passed at ``_since``, in microseconds; more than all of it: so much too late."""
        self._since: float | None = now
        """None in a pause."""

    @property
    def is_paused(self) -> bool:
        """True if the time stands still."""
        return self._since is None

    @property
    def cut_us(self) -> int | None:
        """How long the gap before the next row was in the recording, if it is not waited for as long as that."""
        gap = self._target - self._from
        return gap if gap > self._length else None

    def jump(self, t: int, now: float) -> None:
        """Be at a recorded moment."""
        self._from = self._target = t
        self._length, self._passed = 0, 0.0
        if self._since is not None:
            self._since = now

    def aim(self, t: int, now: float) -> None:
        """The next row is of this recorded moment. Call it once for each, after the row before has arrived."""
        late = max(self._elapsed(now) - self._length, 0.0)
        gap = max(t - self._target, 0)
        self._from, self._target = self._target, self._target + gap
        self._length = gap if self._idle_us is None else min(gap, self._idle_us)
        self._passed = 0.0 if self.speed == NO_WAITING else min(late, BEHIND * self.speed * _US)
        if self._since is not None:
            self._since = now

    def arrive(self, now: float) -> None:
        """The row that was aimed at is shown, be it due or not."""
        late = max(self._elapsed(now) - self._length, 0.0)
        self._from, self._length = self._target, 0
        self._passed = 0.0 if math.isinf(late) else late
        if self._since is not None:
            self._since = now

    def is_due(self, now: float) -> bool:
        """True if the row is to be shown."""
        return self.left(now) < _SOON

    def left(self, now: float) -> float:
        """Seconds until the row is due; infinite in a pause."""
        if self._since is None:
            return math.inf
        return max((self._length - self._elapsed(now)) / self.speed / _US, 0.0)

    def position(self, now: float) -> int:
        """Return which recorded moment it is."""
        if not self._length:
            return self._target
        passed = min(self._elapsed(now), self._length)
        return self._from + round((self._target - self._from) * (passed / self._length))

    def pause(self, now: float) -> None:
        """Stop the time, if it runs."""
        if self._since is not None:
            self._passed, self._since = self._elapsed(now), None

    def resume(self, now: float) -> None:
        """Let the time run, if it does not."""
        if self._since is None:
            self._since = now

    def set_speed(self, speed: float, now: float) -> None:
        """Go on at another speed."""
        if self._since is not None:
            self._passed, self._since = min(self._elapsed(now), float(self._length)), now
        self.speed = speed

    def faster(self, now: float) -> None:
        """Double the speed, up to no waiting at all."""
        self.set_speed(NO_WAITING if self.speed >= FASTEST else min(self.speed * 2, FASTEST), now)

    def slower(self, now: float) -> None:
        """Halve the speed."""
        self.set_speed(FASTEST if self.speed > FASTEST else max(self.speed / 2, min(SLOWEST, self.speed)), now)

    def _elapsed(self, now: float) -> float:
        """How much of the gap has passed, in microseconds; beyond its end it goes on."""
        if self._since is None:
            return self._passed
        if self.speed == NO_WAITING:
            return max(self._passed, float(self._length))
        return self._passed + (now - self._since) * self.speed * _US
