"""A command that the system refuses to start: what a shell would make of it, and why it cannot be. Loaded only then."""

import errno
import os

from mcpsniff.capture.labels import shown
from mcpsniff.proxy.child import StartError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Final

NOT_EXECUTABLE: "Final" = 126
NOT_FOUND: "Final" = 127
"""What a shell exits with."""
SHELL: "Final" = "/bin/sh"

_LOOK: "Final" = 256
"""Bytes of a file that tell what it is; Linux reads as many for the ``#!`` line."""


def as_script(command: "Sequence[str]") -> "list[str] | None":
    """Return how a shell runs a ``command`` that is no program for the system, as `execvp` does; None if it is binary.

    Such as an executable script without a ``#!`` line.
    """
    path = _found(command[0])
    if path is None or b"\0" in _beginning(path).partition(b"\n")[0]:
        return None
    return [SHELL, path, *command[1:]]


def start_error(name: str, error: "OSError | ValueError") -> StartError:
    """Put a failed start into words."""
    number = error.errno if isinstance(error, OSError) else None
    searched = "" if "/" in name else f" (PATH searched: {os.environ.get('PATH', os.defpath)})"
    if number in {errno.ENOENT, errno.ENOTDIR}:
        path = _found(name) if number == errno.ENOENT else None
        if path is not None:
            return StartError(f"cannot execute {name}: {_missing(path)}", NOT_FOUND)
        return StartError(f"command not found: {name}{searched}", NOT_FOUND)
    why = (isinstance(error, OSError) and error.strerror) or str(error)
    return StartError(f"cannot execute {name}: {why}{searched}", NOT_EXECUTABLE)


def _missing(path: str) -> str:
    """Say what is not there although the file is: the program that is to run it."""
    line, newline, _ = _beginning(path).partition(b"\n")
    if not line.startswith(b"#!"):
        return "the loader that it was linked for is missing (built for another system?)"
    words = line[2:].strip(b" \t").split(None, 1) or [b""]
    interpreter = os.fsdecode(words[0])
    hint = " (its first line ends in a carriage return, as on Windows)" if newline and line.endswith(b"\r") else ""
    return f"its interpreter {shown(interpreter)} is missing{hint}"


def _found(name: str) -> "str | None":
    """Return the executable file that ``name`` means, as `execvp` looks for it."""
    folders = [""] if "/" in name else os.environ.get("PATH", os.defpath).split(os.pathsep)
    for folder in folders:
        path = os.path.join(folder, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def _beginning(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(_LOOK)
    except OSError:  # executable, but not readable
        return b""
