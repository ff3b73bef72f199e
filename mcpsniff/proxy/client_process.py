"""The client under `mcpsniff run`: started on our own streams in our own process group, as if nobody stood in between.

It shares our group, and with it the terminal: Ctrl-C, Ctrl-Z and a changed window reach it as they would without
us, and so do they reach the others of a pipeline. So those are not passed on a second time; what somebody sends
to us alone is. Where the client stops we stop, so that the shell takes notice; where it ends we end.

The signals are blocked and taken one by one, which tells on Linux who sent each: the terminal, or a process.
"""

import errno
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from shutil import which
from typing import Final

from mcpsniff.proxy.child import LACK, StartError, as_a_shell_would

PASSED_ON: Final = frozenset(
    {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH}
)
"""Signals that are meant for the client when they reach us."""
BY_TERMINAL: Final = frozenset({signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGWINCH})
"""Signals that a terminal sends to all of a process group. (A hang-up may reach the leader of the session alone.)"""
LOOK: Final = 0.02
"""Seconds between two looks for a signal that asks for the end."""
_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_JOB: Final = frozenset({signal.SIGTSTP, signal.SIGCONT, signal.SIGCHLD})
_RESTORED: Final = (signal.SIGPIPE, signal.SIGXFSZ)
"""Signals that Python ignores; an ignored signal would stay ignored in the client."""


class Signals:
    """The signals that reach us from now on, one by one. To be made before any thread, which inherits what waits."""

    def __init__(self) -> None:
        ignored = {number for number in PASSED_ON | _JOB if signal.getsignal(number) is signal.SIG_IGN}
        self._taken = (PASSED_ON | _JOB) - ignored | {signal.SIGCHLD}
        for number in self._taken:
            signal.signal(number, _nothing)  # what is ignored by default would not even wait
        # A write of ours to the terminal must not stop us, when it is another's for the moment.
        self.before: set[int] = set(signal.pthread_sigmask(signal.SIG_BLOCK, {*self._taken, signal.SIGTTOU}))
        """What was blocked when we were started, and is to be so in the client."""

    def take(self) -> tuple[int, bool]:
        """Wait for the next one; return it, and whether our process group has it from the terminal."""
        if sys.platform == "linux":
            info = signal.sigwaitinfo(self._taken)
            return info.si_signo, info.si_signo in BY_TERMINAL and info.si_code > 0
        number = signal.sigwait(self._taken)  # which does not tell who sent it
        return number, number in BY_TERMINAL and _is_foreground()

    def forget(self) -> None:
        """Drop what waits: it was for the client."""
        for number in self._taken & signal.sigpending():
            signal.sigwait({number})

    def asks_for_the_end(self) -> int:
        """Return a waiting signal that asks for the end; 0 if there is none."""
        return next((number for number in _ENDING if number in signal.sigpending()), 0)

    def wait(self, seconds: float) -> bool:
        """Wait for so long; return True, sooner then, if one that asks for the end came in this or an earlier wait."""
        until = time.monotonic() + seconds
        while not self.asks_for_the_end() and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, LOOK))
        return bool(self.asks_for_the_end())

    def stop(self) -> None:
        """Stop as a process does that Ctrl-Z was typed for, until somebody continues us.

        A process group that nobody could continue is not stopped, and neither is one that was continued meanwhile.
        """
        if signal.SIGCONT in signal.sigpending():  # a stop would make it forgotten
            return
        if signal.SIGTSTP in signal.sigpending():  # it was typed, for us too; delivered now it would stop us twice
            signal.sigwait({signal.SIGTSTP})
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTSTP})
        signal.raise_signal(signal.SIGTSTP)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTSTP})
        signal.signal(signal.SIGTSTP, _nothing)


def check(command: str) -> None:
    """Raise StartError if there is no such command, or if it may not be run: before anything else is begun."""
    path = os.environ.get("PATH", os.defpath)
    if which(command, path=path) is not None:
        return
    from mcpsniff.proxy.command import start_error

    folders = [""] if "/" in command else path.split(os.pathsep)
    found = any(os.path.exists(os.path.join(folder, command)) for folder in folders)
    number = errno.EACCES if found else errno.ENOENT
    raise start_error(command, OSError(number, os.strerror(number)))


class Client:
    """A client's process."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], signals: Signals) -> None:
        """Start ``command``, found on PATH. Raises StartError."""
        self._signals = signals
        try:
            self.pid = as_a_shell_would(command, lambda words: self._spawn(words, environment))
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno in LACK:
                raise StartError(f"{error.strerror}: the client cannot be started", 126) from None
            from mcpsniff.proxy.command import start_error

            raise start_error(command[0], error) from None
        self._is_stopped = False
        self.status: int | None = None
        """What `os.waitpid` said; None while the process runs."""

    def follow(self) -> int:
        """Pass signals on, stop where the client stops, and return its exit status: 128 + N if signal N ended it."""
        while not self._look():
            number, by_terminal = self._signals.take()
            if number == signal.SIGCONT:
                if not self._look() and self._is_stopped:
                    self._send(number)
            elif number != signal.SIGCHLD and not by_terminal:
                self._send(number)
        self._signals.forget()
        assert self.status is not None
        if os.WIFSIGNALED(self.status):
            return 128 + os.WTERMSIG(self.status)
        return os.waitstatus_to_exitcode(self.status)

    def _spawn(self, words: list[str], environment: Mapping[str, str]) -> int:
        return os.posix_spawnp(words[0], words, environment, setsigmask=self._signals.before, setsigdef=_RESTORED)

    def _look(self) -> bool:
        """Take note of what became of the client; say whether it has ended."""
        while self.status is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
            except ChildProcessError:  # reaped by nobody we know; its status is lost
                pid, status = self.pid, 0
            if not pid:
                return False
            if os.WIFCONTINUED(status):
                self._is_stopped = False
            elif os.WIFSTOPPED(status):
                self._is_stopped = True
                self._signals.stop()
            else:
                self.status = status
        return True

    def _send(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(self.pid, number)


def _is_foreground() -> bool:
    """Say whether the terminal is our process group's, so that what is typed there reaches all of it."""
    try:
        tty = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(tty) == os.getpgrp()
    except OSError:  # hung up
        return False
    finally:
        os.close(tty)


def _nothing(_number: int, _frame: object) -> None:
    """Handle a signal: that it is not ignored is enough."""
