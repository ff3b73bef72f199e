"""TERM and HUP while something is open that has to be seen to before they end the process."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Final, Self

SIGNALS: Final = (signal.SIGTERM, signal.SIGHUP)


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
