"""A process that outlives us for a moment, to end the server when we are killed outright.

Nobody can catch a KILL, and it may hit the wrapper's whole process group. A parent-death signal would miss the
processes that the server started (npx and shells start the real server) and fires when the spawning *thread* ends. So
a shell of a few hundred kilobytes waits in a session of its own, where no signal to our group reaches it. All it holds
is the reading end of a pipe. The kernel closes our end when we are gone, for whatever reason, and that wakes it.
"""

import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Final

SCRIPT: "Final" = r"""
read -r group || exit 0
read -r tenths || tenths=4
kill -s TERM -- "-$group" || exit 0
while [ "$tenths" -gt 0 ] && kill -s 0 -- "-$group"; do sleep 0.1; tenths=$((tenths - 1)); done
kill -s KILL -- "-$group"
"""
"""Line 1 is the server's process group, line 2 the patience in tenths of a second; 0.4 s when we died without it."""

PATIENCE: "Final" = 10
"""Tenths of a second between TERM and KILL for what the server left running."""


class Guardian:
    """The guardian process; without ``/bin/sh`` there is none, and the session does without."""

    def __init__(self, foreign: "Iterable[int]" = ()) -> None:
        """Start it. ``foreign`` lists descriptors that the server is to inherit and the guardian is not."""
        self._pid = 0
        ours, self._pipe = None, -1
        try:
            ours, self._pipe = os.pipe()
            self._pid = os.posix_spawn(
                "/bin/sh",
                ["mcpsniff-guardian", "-c", SCRIPT],
                {"PATH": "/bin:/usr/bin"},
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, ours, 0),
                    (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_RDWR, 0),
                    (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_RDWR, 0),
                    *((os.POSIX_SPAWN_CLOSE, descriptor) for descriptor in foreign),
                ],
                setsid=True,
            )
        except (OSError, NotImplementedError):
            self._pid = 0
        finally:
            if ours is not None:
                os.close(ours)

    def watch(self, group: int) -> None:
        """Name the process group to end when we are gone."""
        self._tell(f"{group}\n")

    def dismiss(self) -> None:
        """Tell it that nothing is left to do, and reap it."""
        if self._pid:
            # It waits in a read and has started nothing, so this is the quickest way to say so.
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
            self._pid = 0

    def take_over(self) -> None:
        """Leave it to end, in its own time, what the server left running; we are about to go."""
        self._tell(f"{PATIENCE}\n")

    def _tell(self, line: str) -> None:
        if self._pid:
            try:  # noqa: SIM105 - contextlib would be an import before the server's start
                os.write(self._pipe, line.encode("ascii"))
            except OSError:  # somebody killed it
                pass
