"""The live view of what is being recorded: a process of its own that follows the captures, and may end at any time.

Its standard input is a pipe of which we hold the other end, so it knows when nothing more will come, however we end.
"""

import os
import signal
import time

from mcpsniff.proxy.recording import ourselves
from mcpsniff.proxy.say import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Final

LAST_WORDS: "Final" = 2.0
"""Seconds that it may take to show what came last."""


class LiveView:
    """Shows the captures at ``paths`` on our standard output. It gets no signal that is meant for us.

    ``desk`` is the socket of break points: on a terminal the user decides there about what is held.
    """

    def __init__(self, paths: "Sequence[str]", desk: str | None = None) -> None:
        self._pid = 0
        words = ["--desk", desk, *paths] if desk is not None and os.isatty(0) and os.isatty(1) else paths
        reading, self._writing = os.pipe()
        try:
            command, environment = ourselves("mcpsniff.cli.live", *words)
            streams = [(os.POSIX_SPAWN_DUP2, reading, 0)]
            self._pid = os.posix_spawn(command[0], command, environment, file_actions=streams)
        except (OSError, ValueError) as error:
            say(f"no live view: {error}")
        finally:
            os.close(reading)

    def look(self) -> None:
        """Notice that it has ended, which is said if something went wrong with it."""
        if not self._pid:
            return
        pid, status = os.waitpid(self._pid, os.WNOHANG)
        if pid:
            self._pid = 0
            if status:
                say("the live view ended; the recording goes on (mcpsniff tail shows it, too)")

    def finish(self, wait: "Callable[[float], bool]") -> None:
        """Nothing more will be recorded: let it show what came last.

        ``wait`` waits for so many seconds or less, and returns True if nobody wants to wait any longer.
        """
        os.close(self._writing)
        until = time.monotonic() + LAST_WORDS
        while self._pid:
            pid, _ = os.waitpid(self._pid, os.WNOHANG)
            if pid:
                return
            if time.monotonic() >= until or wait(0.1):
                os.kill(self._pid, signal.SIGTERM)
                return
