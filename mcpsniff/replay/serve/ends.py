"""Signals that ask for the end of a replay, from before it can be served to its end: none of them is lost."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

ENDS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""The signals that ask for the end."""


@contextmanager
def noted_ends() -> Iterator[Callable[[], bool]]:
    """Note the signals that ask for the end instead of doing what they do; what is given says whether one came.

    For the time in which modules are loaded: an exception raised by a signal in there may get lost (Python runs parts
    of an import as callbacks, and ignores what they raise). An event loop may take the signals over.
    """
    came: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        came.append(number)

    before: dict[int, Any] = {number: signal.signal(number, note) for number in ENDS}
    try:
        yield lambda: bool(came)
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
