"""A server that wants the terminal itself: ssh and sudo ask for passwords there, whatever their streams are.

The server is in a process group of its own, so on a terminal it is in the background, and the system stops whoever
reads the terminal or sets it from there (SIGTTIN, SIGTTOU). Started without us it would be in the foreground with its
client. So when it is stopped for that reason, and the foreground is ours to give, it is lent to the server's group; we
take it back when the server goes on to speak to its client, when what is typed seems to be for us, or at the end.

Loaded when the first such stop occurs, or when our own input is a terminal.
"""

import os
import select
import signal
import termios
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

    from mcpsniff.proxy.pump import Pump

WANTED: "Final" = (signal.SIGTTIN, signal.SIGTTOU)
"""What a process of the background is stopped by when it reads a terminal, or sets it."""
LOOK: "Final" = 0.1
"""Seconds between two looks whether the server still needs what was lent to it."""
NAP: "Final" = 0.05
"""Seconds between two tries to read a terminal that is lent."""
REFUSED: "Final" = (
    "the server is stopped: it wants the terminal (to ask for a password?), which is in use by its client;"
    " let it do without (ssh-agent, SSH_ASKPASS, sudo -n), or continue it with kill -CONT"
)


class Terminal:
    """The controlling terminal, which we share with the process group ``group``. OSError if there is none."""

    def __init__(self, group: int) -> None:
        self._group = group
        self._tty = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        self._seen = 0
        self._untaken = False
        self.look_at = float("inf")
        """When `look` is due."""

    def is_lent(self) -> bool:
        """Say whether the server has it."""
        return self._foreground() == self._group

    def is_elsewhere(self) -> bool:
        """Say whether neither we nor the server have it: our whole job is in the background."""
        return self._foreground() not in {self._group, os.getpgrp()}

    def lend(self, passed: int, now: float) -> bool:
        """Give it to the server, which so far has said ``passed`` bytes; return False if it is in use.

        If we lead our group it is ours: a shell started us, and waits. Otherwise our client is in the group, and would
        be stopped at its next read. One that reads key by key (a full-screen program) has it in use; it shows in the
        terminal's mode.
        """
        if not self.is_lent():
            in_use = not termios.tcgetattr(self._tty)[3] & termios.ICANON
            if in_use and os.getpgrp() != os.getpid():
                return False
            self._give(self._group)
        self._seen, self._untaken, self.look_at = passed, False, now + LOOK
        return True

    def look(self, stdin: "Pump", passed: int, now: float) -> None:
        """Take it back if the server has said something since, or if nobody takes what has been typed for a while."""
        self.look_at = now + LOOK
        untaken = stdin.pending() > 0
        if passed != self._seen or (untaken and self._untaken) or not self.is_lent():
            self.take_back()
        self._untaken = untaken

    def take_back(self) -> None:
        """Take it back, if the server has it."""
        self.look_at = float("inf")
        if self.is_lent():
            self._give(os.getpgrp())

    def _foreground(self) -> int:
        try:
            return os.tcgetpgrp(self._tty)
        except OSError:  # hung up
            return 0

    def _give(self, group: int) -> None:
        """Make ``group`` the foreground. From the background that stops the caller, unless it blocks the signal."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
        try:
            os.tcsetpgrp(self._tty, group)
        except OSError:  # hung up, or the group is gone
            pass
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def turn_taking(group: "Callable[[], int]") -> "Callable[[int, int], bytes]":
    """Return an `os.read` for a terminal that does not read while it is lent to the process group that ``group`` tells.

    A read that waits in the system would take what is typed for the server, so it waits for input without reading.
    """

    def read(descriptor: int, size: int) -> bytes:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        while True:
            poll.poll()
            try:
                lent = os.tcgetpgrp(descriptor) == group()
            except OSError:  # not our controlling terminal
                lent = False
            if not lent:
                return os.read(descriptor, size)
            time.sleep(NAP)

    return read
