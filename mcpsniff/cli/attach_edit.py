"""A held message, or an answer to one, in the user's editor."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from mcpsniff.capture.labels import shown
from mcpsniff.cli.resend_edit import EDITORS, editor
from mcpsniff.cli.resend_signals import Signals, end
from mcpsniff.errors import McpsniffError, UsageError

type Run = Callable[[list[str]], int]
"""Runs an editor, and returns its exit status. Raises OSError and ValueError."""

NO_EDITOR: Final = "there is no editor: set $VISUAL or $EDITOR"


class Draft:
    """A text that is being edited, in a private file. Raises McpsniffError if there is no place for one."""

    def __init__(self, text: str) -> None:
        self._first = text.encode(errors="surrogateescape")
        try:
            descriptor, self.path = tempfile.mkstemp(prefix="mcpsniff-held-", suffix=".json")
            with open(descriptor, "wb") as file:
                file.write(self._first)
        except OSError as error:
            raise McpsniffError(f"there is no place to edit it: {error.strerror}") from None

    def edited(self, run: Run) -> bytes:
        """Let the user edit it (once more), and return what was saved. Raises UsageError if that failed."""
        words = found_editor()
        try:
            status = run([*words, self.path])
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise UsageError(f"the editor {shown(words[0])} cannot be run: {reason}") from None
        if status:
            raise UsageError(f"the editor {shown(words[0])} ended with status {status}")
        return self.saved()

    def saved(self) -> bytes:
        """What was saved last. Raises UsageError if that is gone."""
        try:
            with open(self.path, "rb") as file:
                return file.read()
        except OSError as error:
            raise UsageError(f"what was edited cannot be read: {error.strerror}") from None

    @property
    def is_changed(self) -> bool:
        """True if the file says something else than at first."""
        try:
            return self.saved() != self._first
        except UsageError:
            return False

    def remove(self) -> None:
        """Remove the file."""
        with suppress(OSError):
            os.unlink(self.path)


def found_editor() -> list[str]:
    """The editor's command. Raises UsageError."""
    if any(os.environ.get(name, "").strip() for name in ("VISUAL", "EDITOR")):
        return editor()
    found = next((path for one in EDITORS if (path := shutil.which(one))), None)
    if found is None:
        raise UsageError(NO_EDITOR)
    return [found]


def run_here(words: list[str], signals: Signals) -> int:
    """Run an editor on our own streams, which need be no terminal; ended with us."""
    shown_on = None if sys.stdout.isatty() else 2
    with signals.held():
        child = subprocess.Popen(words, stdout=shown_on)
    try:
        signals.obey()
        return child.wait()
    except BaseException:
        end(child)
        raise
