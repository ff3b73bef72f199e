"""Ctrl-C while nothing has begun: end at once.

While modules are loaded Python may lose a KeyboardInterrupt (in a callback of the import lock), take one that was
caught for one that was not (in what ``exec`` makes of a dataclass, so that the process dies by the signal), or crash.
So there is none.
"""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

INTERRUPTED: Final = 130


@contextmanager
def interrupted_at_once() -> Iterator[None]:
    """Until it is left, Ctrl-C ends the process with INTERRUPTED, and nothing is cleaned up: nothing may need it.

    Where SIGINT is ignored, or somebody else's affair, that stays so.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    try:
        signal.signal(signal.SIGINT, _end)
    except ValueError:  # not in the main thread, where signals are not ours to handle
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(_number: int, _frame: object) -> None:
    os._exit(INTERRUPTED)


class Remembered:
    """Ctrl-C raises KeyboardInterrupt as always, and is remembered: Python drops what is raised in a destructor.

    A context manager; `check` raises it again for whoever goes on for ever. Where Ctrl-C is ignored, it stays so.
    """

    def __init__(self) -> None:
        self._came = False
        self._before: Any = None
        self._hook = sys.unraisablehook

    def __enter__(self) -> "Remembered":
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._before = signal.signal(signal.SIGINT, self._interrupt)
            self._hook, sys.unraisablehook = sys.unraisablehook, self._dropped
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            sys.unraisablehook = self._hook

    def check(self) -> None:
        """Raise KeyboardInterrupt if Ctrl-C was pressed."""
        if self._came:
            raise KeyboardInterrupt

    def _dropped(self, what: "sys.UnraisableHookArgs") -> None:
        """Say nothing of a Ctrl-C that Python drops: it is remembered."""
        if not self._came or what.exc_type is not KeyboardInterrupt:
            self._hook(what)

    def _interrupt(self, _number: int, _frame: object) -> None:
        self._came = True
        raise KeyboardInterrupt
