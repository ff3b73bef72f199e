"""Observing addons beside the traffic: a process of its own follows the captures and calls their hooks.

Its standard input is a pipe of which we hold the other end, so it knows when nothing more will come, however we end.
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
"""Seconds that are waited while it tells what came last."""


class Observer:
    """Calls the hooks for the captures at ``paths``; ``words`` are `mcpsniff.hooks.loading.Loaded.observers`.

    What addons print goes to our standard output, or with ``stdout_to_stderr`` to standard error: where the former is
    another's. It gets no signal that is meant for us.
    """

    def __init__(self, paths: "Sequence[str]", words: "Sequence[str]", *, stdout_to_stderr: bool = False) -> None:
        self._pid = 0
        reading, self._writing = os.pipe()
        try:
            command, environment = ourselves("mcpsniff.cli.observe", *words, "--", *paths)
            streams = [(os.POSIX_SPAWN_DUP2, reading, 0)]
            if stdout_to_stderr:
                streams.append((os.POSIX_SPAWN_DUP2, 2, 1))
            self._pid = os.posix_spawn(command[0], command, environment, file_actions=streams)
        except (OSError, ValueError) as error:
            say(f"no addon observes: {error}")
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
                say("the process of the observing addons ended; the recording goes on")

    def finish(self, wait: "Callable[[float], bool]") -> None:
        """Nothing more will be recorded: let it tell what came last. Whatever takes longer goes on without us.

        ``wait`` waits for so many seconds or less, and returns True if nobody wants to wait any longer.
        """
        self.leave()
        until = time.monotonic() + LAST_WORDS
        while self._pid:
            pid, _ = os.waitpid(self._pid, os.WNOHANG)
            if pid:
                self._pid = 0
            elif time.monotonic() >= until or wait(0.1):
                say(f"the observing addons are still at work (process {self._pid})")
                return

    def leave(self) -> None:
        """Nothing more will be recorded, and nobody waits for it: it tells what came last, and ends by itself."""
        if self._writing >= 0:
            os.close(self._writing)
            self._writing = -1
