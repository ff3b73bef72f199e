"""Where and how an addon went wrong, in one sentence: never a traceback."""

import os
from typing import Final

from mcpsniff.capture.labels import shown

LONGEST: Final = 300
"""Characters of an addon's own text that are shown."""


def described(error: BaseException) -> str:
    """The type of an exception and what it says, on one line. Does not raise, whatever the addon's own class does."""
    try:
        name = str(error.__class__.__name__)
    except BaseException:  # noqa: BLE001
        name = "an exception"
    try:
        text = " ".join(str(error).split())
    except BaseException:  # noqa: BLE001 - even SystemExit
        text = ""
    return shortened(f"{name}: {text}" if text else name)


def shortened(text: str) -> str:
    """A text of an addon's, fit for a line."""
    return shown(text if len(text) <= LONGEST else f"{text[:LONGEST]}...")


def place(error: BaseException, path: str) -> str:
    """File and line of the last step in the addon at ``path``, or in a file beside it; empty if there is none."""
    folder = os.path.dirname(path)
    found = ""
    try:
        step = error.__traceback__
        while step is not None:
            name = step.tb_frame.f_code.co_filename
            if name == path or (folder and os.path.dirname(name) == folder):
                found = f"{shown(name)}, line {step.tb_lineno}"
            step = step.tb_next
    except BaseException:  # noqa: BLE001 - the addon's own __traceback__
        return found
    return found


def broken(error: BaseException, path: str) -> str:
    """Why the addon at ``path`` cannot be loaded, with file and line. Does not raise."""
    try:
        return _broken(error, path)
    except BaseException:  # noqa: BLE001 - as above
        return f"{shown(path)}: {described(error)}"


def _broken(error: BaseException, path: str) -> str:
    if isinstance(error, SyntaxError) and error.filename is not None:
        text = shown(" ".join((error.msg or "").split()))
        line = "" if not error.lineno else f", line {error.lineno}"
        return f"{shown(str(error.filename))}{line}: {type(error).__name__}: {text}"
    if isinstance(error, OSError) and error.filename in (path, path.encode()) and not place(error, path):
        return f"{shown(path)}: {shown(error.strerror or str(error))}"
    return f"{place(error, path) or shown(path)}: {described(error)}"
