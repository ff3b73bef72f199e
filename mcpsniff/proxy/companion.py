"""A process beside the traffic that follows the captures, and may end at any time.

Its standard input is a pipe of which we hold the other end, so it knows when nothing more will come, however we end. It
gets no signal that is meant for us.
"""

import os
import time

from mcpsniff.proxy.recording import ourselves
from mcpsniff.proxy.say import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Final

LAST_WORDS: "Final" = 2.0
"""Seconds that it may take to tell what came last."""


class Companion:
    """Runs ``module`` of this package with ``words``.

    ``absent`` is said, with the reason, if it cannot be started, ``lost`` if it ends with a failure. With
    ``stdout_to_stderr`` it prints to our standard error.
    """

    def __init__(
        self, module: str, words: "Sequence[str]", *, absent: str, lost: str, stdout_to_stderr: bool = False
    ) -> None:
        self._pid = 0
        self._lost = lost
        self._writing = -1
        try:
            reading, self._writing = os.pipe()
        except OSError as error:
            say(f"{absent}: {error}")
            return
        try:
            command, environment = ourselves(module, *words)
            streams = [(os.POSIX_SPAWN_DUP2, reading, 0)]
            if stdout_to_stderr:
                streams.append((os.POSIX_SPAWN_DUP2, 2, 1))
            self._pid = os.posix_spawn(command[0], command, environment, file_actions=streams)
        except (OSError, ValueError) as error:
            say(f"{absent}: {error}")
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
                say(self._lost)

    def finish(self, wait: "Callable[[float], bool]") -> None:
        """Nothing more will be recorded: let it tell what came last, but for no more than `LAST_WORDS`.

        ``wait`` waits for so many seconds or less, and returns True if nobody wants to wait any longer.
        """
        self.leave()
        until = time.monotonic() + LAST_WORDS
        while self._pid:
            pid, _ = os.waitpid(self._pid, os.WNOHANG)
            if pid:
                self._pid = 0
            elif time.monotonic() >= until or wait(0.1):
                self.outlasted(self._pid)
                return

    def leave(self) -> None:
        """Nothing more will be recorded, and nobody waits for it: it tells what came last, and ends by itself."""
        if self._writing >= 0:
            os.close(self._writing)
            self._writing = -1

    def outlasted(self, pid: int) -> None:
        """It has not ended in time."""
        raise NotImplementedError
