"""After the server's end: has everything that it wrote reached the client.

Usually its streams end with it, and that is the answer. If one stays open, either another process holds it (a helper
that the server started and forgot), or the client is slow. What is in the pipe by then is delivered, however slow the
client is; what a helper might still write is not waited for.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Final

    from mcpsniff.proxy.pump import Pump

LINGER: "Final" = 0.030
"""Seconds in which the streams may end by themselves before we look into them."""
COUNTING: "Final" = 3
"""Looks that count what is there. One alone might miss bytes that the pump has read but not yet counted."""
LOOK: "Final" = 0.005
"""Seconds between two looks while counting; later, while a slow client is waited for, it is four times that."""
PATIENCE: "Final" = 1.0
"""Seconds that a client may stop reading in the last of stderr, which many never read. For stdout: for ever."""


class Rest:
    """What is still to be delivered of one stream."""

    def __init__(self, pump: "Pump", patience: float) -> None:
        self._pump = pump
        self._patience = patience
        self._target = 0
        self._looks = 0
        self._passed = -1
        self._progress_at = 0.0

    def ended(self) -> bool:
        """Say whether the stream has ended."""
        return self._pump.outcome is not None

    def delivered(self, now: float) -> bool:
        """Look, and say whether nothing is left, or whether the client lost our patience."""
        if self.ended():
            return True
        passed = self._pump.passed
        if self._looks < COUNTING:
            self._looks += 1
            self._target = max(self._target, passed + self._pump.pending())
        if passed != self._passed:
            self._passed, self._progress_at = passed, now
        counted = self._looks == COUNTING
        return counted and (passed >= self._target or now - self._progress_at > self._patience)


class LastWords:
    """Watches the streams of a server that ended at ``now`` (seconds of any clock)."""

    def __init__(self, stdout: "Pump", stderr: "Pump", now: float) -> None:
        self._rests: Iterable[Rest] = (Rest(stdout, float("inf")), Rest(stderr, PATIENCE))
        self._left = COUNTING
        self.look_at = now + LINGER
        """When `delivered` will have something new to say."""

    def delivered(self, now: float) -> bool:
        """Say whether the client has everything, as far as that can be."""
        if all(rest.ended() for rest in self._rests):
            return True
        if now < self.look_at:
            return False
        self._left -= 1
        self.look_at = now + (LOOK if self._left > 0 else 4 * LOOK)
        return all([rest.delivered(now) for rest in self._rests])  # noqa: C419 - each of them has to look
