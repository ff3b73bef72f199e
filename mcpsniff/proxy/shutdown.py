"""When an unwilling server is due which signal: the order that MCP gives for stdio, as pure arithmetic.

basic/lifecycle#shutdown of the specification: close the server's input, wait, SIGTERM, wait, SIGKILL.
"""

import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

KILL_AFTER: "Final" = 1.0
"""Seconds from our TERM to our KILL."""

_NEVER: "Final" = float("inf")


class ShutdownOrder:
    """Collects reasons for the server to end, and says which signal is due when. Times are seconds of any clock."""

    def __init__(self, grace: float) -> None:
        self._grace = grace
        self._term_at = _NEVER
        self._kill_at = _NEVER

    def hang_up(self, now: float) -> None:
        """Note that the client is gone: ``grace``, TERM, 1 s, KILL."""
        self._term_at = min(self._term_at, now + self._grace)
        self._kill_at = min(self._kill_at, now + self._grace + KILL_AFTER)

    def signalled(self, now: float) -> None:
        """Note that a signal that asks for the end was passed on: ``grace``, KILL."""
        self._kill_at = min(self._kill_at, now + self._grace)

    def left_behind(self, at: float) -> None:
        """Note that the server itself has ended; if others are left of its group: TERM at ``at``, 1 s, KILL."""
        self._term_at = at
        self._kill_at = at + KILL_AFTER

    def longest(self) -> float:
        """Return the seconds after which no server is left that was asked to end."""
        return self._grace + KILL_AFTER

    def next_at(self) -> float:
        """Return when the next signal is due (infinity: never)."""
        return min(self._term_at, self._kill_at)

    def due(self, now: float) -> "list[signal.Signals]":
        """Return the signals due by ``now``; each is returned once."""
        signals = []
        if self._term_at <= now:
            self._term_at = _NEVER
            signals.append(signal.SIGTERM)
        if self._kill_at <= now:
            self._term_at = self._kill_at = _NEVER
            signals.append(signal.SIGKILL)
        return signals
