"""What the waiting main thread is woken by: signals, and words from the threads that pump."""

import os
import select
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

PASSED_ON: "Final" = (
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
"""Signals that are meant for the server when they reach us."""
JOB: "Final" = (signal.SIGTSTP, signal.SIGCONT)
"""Signals of a shell's job control, which are meant for both."""


class Wakeup:
    """One pipe that both signal handlers and threads write single bytes to, in the order things happened.

    A byte below 128 is a signal's number; larger ones are whatever `tell` was given. From the moment this object
    exists no signal of `PASSED_ON` ends the process: it is kept until somebody asks. One that was ignored when we were
    started (``nohup``) stays ignored, for us and for the server.
    """

    def __init__(self) -> None:
        reading, self._writing = os.pipe()
        self._reading = reading
        os.set_blocking(reading, False)
        os.set_blocking(self._writing, False)
        signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        for number in (*PASSED_ON, *JOB, signal.SIGCHLD):
            if number == signal.SIGCHLD or signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, _nothing)
        self._poll = select.poll()
        self._poll.register(reading, select.POLLIN)

    def tell(self, code: int) -> None:
        """Wake the main thread with ``code`` (128 to 255), from any thread."""
        os.write(self._writing, bytes([code]))

    def wait(self, seconds: float | None) -> bytes:
        """Wait until something happens, for at most ``seconds`` (None: for ever), and return what did."""
        self._poll.poll(None if seconds is None else max(0, int(seconds * 1000) + 1))
        try:
            return os.read(self._reading, 4096)
        except BlockingIOError:
            return b""


def stop(number: signal.Signals, *, group: bool) -> None:
    """Stop as a process without a handler does at ``number``, and return when somebody continues us.

    With ``group`` all of our process group is stopped so. A group that nobody could continue is not stopped.
    """
    handler = signal.signal(number, signal.SIG_DFL)
    if group:
        os.killpg(os.getpgrp(), number)
    else:
        signal.raise_signal(number)
    signal.signal(number, handler)


def _nothing(_number: int, _frame: object) -> None:
    """Handle a signal: that its number went into the pipe is enough."""
