"""Exceptions that nobody is there for, in threads and tasks of addons: one line each, once, never a traceback."""

import sys
import sysconfig
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from mcpsniff.capture.labels import shown
from mcpsniff.hooks.faults import described, shortened

if TYPE_CHECKING:
    import asyncio

TOLD_LIMIT: Final = 50
"""Different failures that are told of."""
_told: Final[set[str]] = set()
_OTHERS: Final = (sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), "<frozen")


def tell(say: Callable[[str], object]) -> None:
    """From now on threads that fail, and what is thrown away and fails, are told of by ``say``."""

    def of_thread(args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None and not isinstance(args.exc_value, SystemExit):
            _once(say, sentence("a thread of an addon", args.exc_value))

    def of_rest(args: "sys.UnraisableHookArgs") -> None:
        # A loop that could not be made has been told of by whoever wanted it.
        if args.exc_value is not None and getattr(args.object, "__qualname__", "") != "BaseEventLoop.__del__":
            _once(say, sentence("what an addon has thrown away", args.exc_value))

    threading.excepthook = of_thread
    sys.unraisablehook = of_rest


def of_loop(loop: "asyncio.AbstractEventLoop", context: dict[str, Any]) -> None:  # noqa: ARG001
    """Tell of a task of an addon that has failed, as an exception handler of the loop."""
    from mcpsniff.hooks.context import ctx

    error = context.get("exception")
    if isinstance(error, BaseException):
        _once(ctx.say, sentence("a task of an addon", error))
    else:
        _once(ctx.say, shortened(f"a task of an addon: {context.get('message')}"))


def of_loop_thread(error: BaseException) -> None:
    """Tell of what has ended the loop of asynchronous hooks for a moment."""
    from mcpsniff.hooks.context import ctx

    _once(ctx.say, sentence("a task of an addon", error))


def sentence(what: str, error: BaseException) -> str:
    """That ``what`` has failed, with file and line."""
    where = _place(error)
    return f"{what} failed: {f'{where}: ' if where else ''}{described(error)}"


def _once(say: Callable[[str], object], text: str) -> None:
    if text not in _told and len(_told) < TOLD_LIMIT:
        _told.add(text)
        say(text)


def _place(error: BaseException) -> str:
    """File and line of the last step in code of the user's, or in any, if there is none."""
    found = last = ""
    step = error.__traceback__
    while step is not None:
        name = step.tb_frame.f_code.co_filename
        last = f"{shown(name)}, line {step.tb_lineno}"
        found = found if name.startswith(_OTHERS) else last
        step = step.tb_next
    return found or last
