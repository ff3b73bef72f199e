"""TERM and HUP while an editor is open, which has to be seen to before they end the process."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Final, Self

SIGNALS: Final = (signal.SIGTERM, signal.SIGHUP)
_PATIENCE: Final = 3.0
"""Seconds that an editor has to end by itself."""


class Ended(BaseException):
    """A signal that ends the process has come."""


class Signals:
    """While it is entered, TERM and HUP raise Ended; when it is left, the one that came ends the process.

    Those that are ignored, or somebody else's affair, stay so; outside the main thread, all do.
    """

    def __init__(self) -> None:
        self._came: int | None = None
        self._is_held = False
        self._ours: list[signal.Signals] = []

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._ours = [number for number in SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
        for number in self._ours:
            signal.signal(number, self._take)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number in self._ours:
            signal.signal(number, signal.SIG_DFL)
        if self._came is not None:
            os.kill(os.getpid(), self._came)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let what comes meanwhile wait for ``obey``, or until this is left for good."""
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False

    def obey(self) -> None:
        """Raise Ended if a signal has come."""
        if self._came is not None:
            raise Ended

    def _take(self, number: int, _frame: object) -> None:
        is_first, self._came = self._came is None, number if self._came is None else self._came
        if is_first and not self._is_held:
            raise Ended


def end(child: subprocess.Popen[bytes]) -> None:
    """End an editor that was started, and what it has started in our process group: it may be a script for another."""
    others = [pid for pid in _family(child.pid) if pid != child.pid]
    try:
        child.terminate()
        for pid in others:
            _send(pid, signal.SIGTERM)
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until and (child.poll() is None or any(_send(pid, 0) for pid in others)):
            time.sleep(0.02)
    finally:
        child.kill()  # nothing happens where it has ended
        child.wait()
        for pid in others:
            _send(pid, signal.SIGKILL)


def _send(pid: int, number: int) -> bool:
    """Send a signal (0: none); False if the process is gone, or not ours."""
    with suppress(OSError):
        os.kill(pid, number)
        return True
    return False


def _family(pid: int) -> list[int]:
    """A process and its descendants in our process group, parents first; what leaves that group is on its own."""
    command = ["ps", "-A", "-o", "pid=", "-o", "ppid=", "-o", "pgid="]
    try:
        table = subprocess.run(command, capture_output=True, timeout=_PATIENCE, check=False).stdout
        rows = [(int(one), int(parent), int(group)) for one, parent, group in map(bytes.split, table.splitlines())]
    except (OSError, ValueError, subprocess.SubprocessError):
        return [pid]
    ours = [(one, parent) for one, parent, group in rows if group == os.getpgrp()]
    found = [pid]
    for known in found:
        found += [one for one, parent in ours if parent == known and one not in found]
    return found
