"""The keys of a terminal, one by one, while something else is shown on it; and lending it to an editor."""

import codecs
import errno
import os
import select
import signal
import subprocess
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, Final, Self

from mcpsniff.cli.resend_signals import Signals, end

_LOCAL: Final = 3
"""Where the local modes are in what termios tells."""


class Keys:
    """Reads what is typed on ``descriptor``, a terminal, without the terminal showing it, from `__enter__` on.

    A job in the background neither reads it nor changes its modes. The modes are put back at the end.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.is_gone = False
        """True once the terminal has hung up."""
        self._modes: list[Any] | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._continued = False
        self._was: Any = None

    def __enter__(self) -> Self:
        self._was = signal.signal(signal.SIGCONT, self._continue)
        self._take()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._give_back()
        signal.signal(signal.SIGCONT, self._was)

    @property
    def is_ours(self) -> bool:
        """True while this process is in the foreground of the terminal, or that knows no jobs."""
        if self.is_gone:
            return False
        try:
            return os.tcgetpgrp(self.descriptor) == os.getpgrp()
        except OSError as error:
            self.is_gone = error.errno != errno.ENOTTY
            return not self.is_gone

    def read(self) -> str:
        """What was typed since; nothing if nothing was."""
        if not self.is_ours:
            return ""
        if self._continued or self._modes is None:
            self._continued = False
            self._take()
        if not select.select([self.descriptor], [], [], 0)[0]:
            return ""
        try:
            data = os.read(self.descriptor, 4096)
        except OSError:
            data = b""
        self.is_gone = not data
        return self._decoder.decode(data)

    def run(self, words: list[str], signals: Signals) -> int:
        """Run an editor on the terminal, in a process group of its own, and return its status. Raises OSError.

        So Ctrl-C in it is not ours, nor that of a recorder in whose group we are.
        """
        with self._lent():
            with signals.held():  # none between its start and our knowing of it
                child = subprocess.Popen(
                    words, stdin=self.descriptor, stdout=self.descriptor, stderr=self.descriptor, process_group=0
                )
            try:
                signals.obey()
                return self._followed(child)
            except BaseException:
                with suppress(OSError):
                    os.killpg(child.pid, signal.SIGTERM)
                end(child)
                with suppress(OSError):
                    os.killpg(child.pid, signal.SIGKILL)
                raise

    def _followed(self, child: subprocess.Popen[bytes]) -> int:
        """Let the editor have the terminal until it ends; one that stops, as by Ctrl-Z, goes on at once."""
        while True:
            _in_front(self.descriptor, child.pid)
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGCONT)
            _, status = os.waitpid(child.pid, os.WUNTRACED)
            if not os.WIFSTOPPED(status):
                child.returncode = os.waitstatus_to_exitcode(status)
                return child.returncode

    @contextmanager
    def _lent(self) -> Iterator[None]:
        self._give_back()
        try:
            yield
        finally:
            _in_front(self.descriptor, os.getpgrp())
            self._take()

    def _take(self) -> None:
        if not self.is_ours:
            return
        with suppress(termios.error):
            modes = termios.tcgetattr(self.descriptor)
            if self._modes is None:
                self._modes = [*modes]
            modes[_LOCAL] &= ~(termios.ICANON | termios.ECHO)
            modes[-1] = [*modes[-1]]
            modes[-1][termios.VMIN], modes[-1][termios.VTIME] = 1, 0
            termios.tcsetattr(self.descriptor, termios.TCSADRAIN, modes)

    def _give_back(self) -> None:
        if self._modes is not None and self.is_ours:
            with suppress(termios.error):
                termios.tcsetattr(self.descriptor, termios.TCSADRAIN, self._modes)
        self._modes = None

    def _continue(self, _number: int, _frame: object) -> None:
        """We were stopped, and whoever continued us may have set other modes."""
        self._continued = True


def _in_front(descriptor: int, group: int) -> None:
    """Put a process group into the foreground of the terminal, whether or not we are there."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
    try:
        with suppress(OSError):
            os.tcsetpgrp(descriptor, group)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
