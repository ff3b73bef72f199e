"""A process that outlives us for a moment, to end the server when we are killed outright.

Nobody can catch a KILL, and it may hit the wrapper's whole process group. A parent-death signal would miss the
processes that the server started (npx and shells start the real server) and fires when the spawning *thread* ends. So
a shell of a few hundred kilobytes waits in a session of its own, where no signal to our group reaches it. All it holds
is the reading end of a pipe. The kernel closes our end when we are gone, for whatever reason, and that wakes it.
"""

import os
import signal

from mcpsniff.proxy.say import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

SCRIPT: "Final" = r"""
read -r tenths || tenths=4
kill -s TERM -- "-$1" || exit 0
while [ "$tenths" -gt 0 ] && kill -s 0 -- "-$1"; do sleep 0.1; tenths=$((tenths - 1)); done
kill -s KILL -- "-$1"
"""
"""Its argument is the server's process group. It waits for a line that says how many tenths of a second to wait between
TERM and KILL; the end of the pipe without it means that we died, and 0.4 s."""

PATIENCE: "Final" = 10
"""Tenths of a second between TERM and KILL for what the server left running."""


class Guardian:
    """The guardian process; without ``/bin/sh`` there is none, and the session does without."""

    def __init__(self, group: int) -> None:
        """Start it to watch over the process group ``group``. None but the standard descriptors may be inheritable."""
        self._pid = 0
        try:
            waits_on, self._pipe = os.pipe()
        except OSError as error:
            _without(error)
            return
        try:
            self._pid = os.posix_spawn(
                "/bin/sh",
                ["mcpsniff-guardian", "-c", SCRIPT, "mcpsniff-guardian", str(group)],
                {"PATH": "/bin:/usr/bin"},
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, waits_on, 0),
                    (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_RDWR, 0),
                    (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_RDWR, 0),
                ],
                setsid=True,
            )
        except (OSError, NotImplementedError) as error:
            _without(error)
        os.close(waits_on)

    def dismiss(self) -> None:
        """Tell it that nothing is left to do, and reap it."""
        if self._pid:
            # It waits in a read and has started nothing, so this is the quickest way to say so.
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
            self._pid = 0

    def take_over(self) -> None:
        """Leave it to end, in its own time, what the server left running; we are about to go."""
        if self._pid:
            try:  # noqa: SIM105 - contextlib would be an import before the server's start
                os.write(self._pipe, b"%d\n" % PATIENCE)
            except OSError:  # somebody killed it
                pass


def _without(error: "OSError | NotImplementedError") -> None:
    why = (isinstance(error, OSError) and error.strerror) or error
    say(f"no guardian ({why}): a KILL of this process may leave the server running")
