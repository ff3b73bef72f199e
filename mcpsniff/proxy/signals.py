"""The signals that a relay without a child hears of: they become bytes of a pipe, which its loop waits for."""

import os
import select
import signal

from mcpsniff.proxy.say import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

_ENDING: "Final" = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Signals:
    """Signals that ask for the end, and the ends of child processes, as bytes of a pipe."""

    def __init__(self) -> None:
        self.descriptor, writing = os.pipe()
        os.set_blocking(self.descriptor, False)
        os.set_blocking(writing, False)
        self._is_urgent = False
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _noticed)
        self.are_noticed()

    def arrived(self) -> bool:
        """Read what has come; return True if a signal that asks for the end is among it."""
        try:
            return bool(set(os.read(self.descriptor, 4096)) & set(_ENDING))
        except BlockingIOError:
            return False

    def wait(self, seconds: float) -> bool:
        """Wait for at most so long; return True, at once from then on, if one came in this or an earlier wait."""
        if not self._is_urgent:
            poll = select.poll()
            poll.register(self.descriptor, select.POLLIN)
            self._is_urgent = bool(poll.poll(seconds * 1000)) and self.arrived()
        return self._is_urgent

    def are_noticed(self) -> None:
        """A signal that asks for the end is told by `arrived` and `wait`."""
        self._handle(_noticed)

    def leave_at_once(self) -> None:
        """From now on a signal that asks for the end ends the process, whatever it is doing."""
        self._handle(_leave)

    def _handle(self, handler: "Callable[[int, object], None]") -> None:
        """Let ``handler`` have them, but for those that were ignored when we were started."""
        for number in _ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, handler)


def warn_if_deaf() -> None:
    """Say how to end this process if Ctrl-C is ignored, as in commands that a script starts with ``&`` (POSIX)."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        say(f"Ctrl-C is ignored here (started with &): end it with kill {os.getpid()}")


def _noticed(_number: int, _frame: object) -> None:
    """Handle a signal: that its number went into the pipe is enough."""


def _leave(number: int, _frame: object) -> None:
    """Handle a signal that comes once more while what was said is stored."""
    os._exit(128 + number)
