"""The terminal of `mcpsniff play`: keys without Enter and without an echo, and everything as it was on every way out.

Ctrl-Z gives the terminal back as it was, and SIGCONT takes it again (POSIX, XBD 11: job control). Signals that would
end the process become `Ended`, so that it can be left in order; whoever catches it lets the signal do what it does.
"""

import os
import select
import signal
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final, Self

from mcpsniff.replay.play.keys import QUIT, Keys

ENDING: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)

_LOCAL: Final = 3
_CONTROLS: Final = 6
"""Places in what `termios.tcgetattr` returns."""


class Ended(BaseException):
    """A signal that ends the process has come."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Terminal:
    """Reads keys from ``descriptor``, a terminal; ``clear`` removes what is in the way before it is given back.

    A context manager. Entering raises OSError where the terminal cannot be used.
    """

    def __init__(self, descriptor: int, clear: Callable[[], None]) -> None:
        self._descriptor = descriptor
        self._clear = clear
        self._keys = Keys()
        self._before: list[Any] = []
        self._handlers: dict[int, Any] = {}
        self._is_ours = self._is_writing = self._is_to_stop = False

    def __enter__(self) -> Self:
        try:
            self._before = termios.tcgetattr(self._descriptor)
            self._take()
        except termios.error as error:
            raise OSError(*error.args) from None
        for number in (*ENDING, signal.SIGTSTP, signal.SIGCONT):
            before = signal.getsignal(number)
            if before is not signal.SIG_IGN:
                self._handlers[number] = before
                signal.signal(number, self._end if number in ENDING else self._job)
        return self

    def __exit__(self, *_: object) -> None:
        self._give_back()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def wait(self, seconds: float) -> list[str]:
        """Wait until a key is pressed, at most so long; return the keys that were. A terminal that is gone is QUIT."""
        if not select.select([self._descriptor], [], [], seconds)[0]:
            return []
        try:
            data = os.read(self._descriptor, 1024)
        except OSError:
            data = b""
        return self._keys.feed(data) if data else [QUIT]

    @contextmanager
    def writing(self) -> Iterator[None]:
        """While something is written the process does not stop: a half-written line could not be cleared."""
        self._is_writing = True
        try:
            yield
        finally:
            self._is_writing = False
        if self._is_to_stop:
            self._stop()

    def _take(self) -> None:
        changed = [*self._before]
        changed[_LOCAL] &= ~(termios.ICANON | termios.ECHO)
        changed[_CONTROLS] = [*changed[_CONTROLS]]
        changed[_CONTROLS][termios.VMIN], changed[_CONTROLS][termios.VTIME] = 1, 0
        self._is_ours = True
        termios.tcsetattr(self._descriptor, termios.TCSANOW, changed)

    def _give_back(self) -> None:
        """Make the terminal as it was. In the background that would stop us, so it is done whatever group has it."""
        if not self._is_ours:
            return
        before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        try:
            termios.tcsetattr(self._descriptor, termios.TCSANOW, self._before)
        except termios.error:
            pass  # it is gone
        finally:
            self._is_ours = False
            signal.signal(signal.SIGTTOU, before)

    def _end(self, number: int, _: FrameType | None) -> None:
        raise Ended(number)

    def _job(self, number: int, _: FrameType | None) -> None:
        if number == signal.SIGTSTP and self._is_writing:
            self._is_to_stop = True
        elif number == signal.SIGTSTP:
            self._stop()
        elif self._is_ours and self._is_in_front():
            self._resume()  # after SIGSTOP, of which nobody is told; the shell may have set its own modes since

    def _stop(self) -> None:
        """Stop as Ctrl-Z stops a process, until it is to go on."""
        self._is_to_stop = False
        self._give_back()
        self._clear()
        ours = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, ours)
        self._resume()

    def _resume(self) -> None:
        try:
            self._take()  # in the background it stops us again, until we are in front
        except termios.error:
            self._is_ours = False

    def _is_in_front(self) -> bool:
        try:
            return os.tcgetpgrp(self._descriptor) == os.getpgrp()
        except OSError:
            return False
