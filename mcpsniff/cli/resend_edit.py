"""`mcpsniff resend --edit`: a request in the user's editor. What was typed is lost only when it is no longer needed."""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import click

from mcpsniff.capture.labels import shown
from mcpsniff.cli.output import note
from mcpsniff.cli.resend_signals import Signals, end
from mcpsniff.errors import McpsniffError, UsageError
from mcpsniff.protocol.message import Message
from mcpsniff.replay.resend.edit import decoded, fault, laid_out, on_one_line
from mcpsniff.replay.resend.talk import edited_message

EDITORS: Final = ("sensible-editor", "vim", "nano", "vi")
_EARLIER: Final = 2
"""Seconds by which the file is older than it is, so that saving is seen where time is kept in whole seconds."""


class Draft:
    """A request that is being edited, in a private file."""

    def __init__(self, message: Message, signals: Signals) -> None:
        self._message = message
        self._signals = signals
        self._text = laid_out(message.raw).encode(errors="surrogateescape")
        self._is_typed = False
        self.is_wanted = False
        """True where the file is to stay, since what was typed came to nothing."""
        descriptor, self.path = tempfile.mkstemp(prefix="mcpsniff-request-", suffix=".json")
        with open(descriptor, "wb") as file:
            file.write(self._text)

    def edited(self) -> bytes | None:
        """The request as the user has changed it; on a terminal asked again until it is one. Raises UsageError.

        None if all its tokens are still the same, which is said.
        """
        while True:
            raw, wrong = self._tried()
            if not wrong and raw == on_one_line(self._text.decode(errors="surrogateescape")):
                note("nothing was changed")
                return None
            if not wrong:
                return raw
            if not (sys.stdin.isatty() and sys.stderr.isatty()):
                raise UsageError(wrong)
            note(shown(wrong))
            click.confirm("mcpsniff: edit it again?", default=True, abort=True, err=True)

    def end(self) -> None:
        """Remove the file, or say where it is."""
        with suppress(OSError):
            with open(self.path, "rb") as file:
                is_typed = file.read() != self._text
            if self.is_wanted and is_typed:
                note(f"what was edited is kept in {shown(self.path)}")
            else:
                os.unlink(self.path)

    def _tried(self) -> tuple[bytes, str]:
        """Let the user edit it once: the text on one line, or why that cannot be sent."""
        data = self._saved()
        text, wrong = decoded(data)
        wrong = wrong or fault(text)
        if wrong:
            return b"", f"what was edited is not JSON: {wrong}"
        raw = on_one_line(text)
        try:
            edited_message(self._message, raw)
        except UsageError as error:
            return b"", str(error)
        return raw, ""

    def _saved(self) -> bytes:
        """What the editor has saved. Raises UsageError where it has not."""
        before = self._aged()
        words = editor()
        shown_on = None if sys.stdout.isatty() else 2  # standard output may be the file that is to have the command
        try:
            status = self._run([*words, self.path], shown_on)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise UsageError(f"the editor {shown(words[0])} cannot be run: {reason}") from None
        try:
            with open(self.path, "rb") as file:
                data = file.read()
            is_saved = self._is_typed or data != self._text or self._stamp() != before
        except OSError as error:
            raise UsageError(
                f"what was edited cannot be read: {error.strerror}: {shown(self.path)}; nothing was sent"
            ) from None
        self._is_typed = self._is_typed or data != self._text
        if status:
            raise UsageError(f"the editor {shown(words[0])} ended with status {status}: nothing was sent")
        if not is_saved:
            raise UsageError("the editor was left without saving: nothing was sent")
        return data

    def _run(self, words: list[str], shown_on: int | None) -> int:
        """Run the editor, which ends when this process is to, and return its status. Raises OSError and ValueError."""
        with self._signals.held():  # none between its start and our knowing of it
            child = subprocess.Popen(words, stdout=shown_on)
        try:
            self._signals.obey()
            return child.wait()
        except BaseException:
            end(child)
            raise

    def _aged(self) -> tuple[int, int]:
        """Make the file older than it is, and return its stamp."""
        with suppress(OSError):
            was = os.stat(self.path).st_mtime
            os.utime(self.path, (was, was - _EARLIER))
            return self._stamp()
        return 0, 0

    def _stamp(self) -> tuple[int, int]:
        """What changes when the file is saved. Raises OSError where it is gone."""
        status = os.stat(self.path)
        return status.st_mtime_ns, status.st_ino


@contextmanager
def draft_of(message: Message) -> Iterator[Draft]:
    """A request that is to be edited. Its file stays, and is named, if an error or a signal ends what is done with it.

    TERM and HUP end the process only when that is seen to.
    """
    with Signals() as signals:
        with signals.held():
            try:
                draft = Draft(message, signals)
            except OSError as error:
                raise McpsniffError(f"there is no place to edit the request: {error.strerror}") from None
        try:
            signals.obey()
            yield draft
        except BaseException:
            draft.is_wanted = True
            raise
        finally:
            with signals.held():
                draft.end()


def editor() -> list[str]:
    """The editor's command: $VISUAL, else $EDITOR, else on a terminal what there is. Raises UsageError."""
    for name in ("VISUAL", "EDITOR"):
        if said := os.environ.get(name, "").strip():
            try:
                return shlex.split(said)
            except ValueError as error:
                raise UsageError(f"${name} is no command: {error}") from None
    if not (sys.stdin.isatty() and (sys.stdout.isatty() or sys.stderr.isatty())):
        raise UsageError("--edit needs a terminal, or an editor in $VISUAL or $EDITOR")
    found = next((path for one in EDITORS if (path := shutil.which(one))), None)
    if found is None:
        raise UsageError("there is no editor: set $VISUAL or $EDITOR")
    return [found]
