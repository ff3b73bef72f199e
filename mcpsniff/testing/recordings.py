"""A session that is recorded in a test, and what can be asked of it."""

import os
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Final

from mcpsniff.capture.labels import shown
from mcpsniff.capture.reader import open_capture
from mcpsniff.capture.records import CLOSE, OPEN
from mcpsniff.capture.store import is_being_written, part_path
from mcpsniff.checks import Finding
from mcpsniff.decoder import Event
from mcpsniff.errors import CaptureError, UsageError
from mcpsniff.protocol.message import Message
from mcpsniff.testing.programs import Program
from mcpsniff.transcript.session import Session

_GRACE: Final = 15.0
"""Seconds that the recorder has to end, once its client has left."""
_LEAVING: Final = 3.0
"""Seconds for which a client may still be connected when the recording is asked for."""


class Told(Finding):
    """A finding that a failed assertion shows in a line."""

    __slots__ = ()

    @classmethod
    def of(cls, finding: Finding) -> "Told":
        """The same finding."""
        return cls(**{one.name: getattr(finding, one.name) for one in fields(finding)})

    def __repr__(self) -> str:
        """Code, severity, who is to blame, the number of the event, and what is wrong."""
        return f"<{self.code} {self.severity} by {self.blame} at #{self.at}: {self.text!r}>"


class Recording:
    """A session that is being recorded: a command to be started in the place of the server's, or a URL in that of its.

    ``path`` is where the capture is; there must be no such file yet. Raises McpsniffError if the proxy does not listen.
    """

    def __init__(self, path: Path, *, command: Sequence[str] = (), url: str | None = None) -> None:
        self.path = path
        """The capture. It grows while the session lasts."""
        options = ["-o", str(path), "--no-transcript", "--quiet"]
        self.command: list[str] = []
        """What starts the server and records what is said to it, where a command is recorded."""
        if command:
            self.command = [sys.executable, "-m", "mcpsniff", "stdio", *options, "--", *command]
        self._program = None if url is None else Program(["mcpsniff", "http", *options, url])

    @property
    def url(self) -> str:
        """Where the proxy listens, where a URL is recorded; else empty."""
        return "" if self._program is None else self._program.url

    def stop(self) -> Path:
        """Wait until all is recorded: a proxy is ended, a command ends with its client. Raises CaptureError.

        A client that is still connected is waited for a moment only.
        """
        self.close()
        begun = time.monotonic()
        while is_being_written(str(self.path)):
            waited = time.monotonic() - begun
            if waited > _GRACE or (waited > _LEAVING and not self._has_left()):
                who = "its server has not ended" if self._has_left() else "close the client before you ask for it"
                raise CaptureError(f"the session is still being recorded: {who}")
            time.sleep(0.02)
        if not self.path.exists():
            raise CaptureError("nothing was recorded: the client did not start the command, or said nothing")
        return self.path

    def _has_left(self) -> bool:
        """True if the client has closed the server's input."""
        try:
            records = list(open_capture(str(self.path)).records())
        except CaptureError:
            return False
        of_client = {record.channel for record in records if record.kind == OPEN and record.body.get("dir") == "c2s"}
        return any(record.kind == CLOSE and record.channel in of_client for record in records)

    def close(self) -> None:
        """End the proxy, if there is one."""
        if self._program is not None:
            self._program.end()

    def events(self) -> list[Event]:
        """All events of the session, as the decoder gives them. Ends the recording. Raises CaptureError."""
        return [event for events in Session(open_capture(str(self.stop()))).events() for event in events]

    def messages(self, method: str | None = None) -> list[Message]:
        """The messages in order, both ways; only those with this method if it is given."""
        found = (event for event in self.events() if isinstance(event, Message))
        return [message for message in found if method in (None, message.method)]

    def findings(self, *severities: str) -> list[Finding]:
        """What was found to be wrong; only of these severities (error, warning, note, info) if some are given."""
        found = (event for event in self.events() if isinstance(event, Finding))
        return [Told.of(finding) for finding in found if not severities or finding.severity in severities]

    def save(self, path: Path) -> None:
        """Copy the capture, all its parts, to ``path``, in the place of what is there."""
        self.stop()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            for number, part in enumerate(open_capture(str(self.path)).parts, 1):
                _copy(Path(part.path), Path(part_path(str(path), number)))
        except OSError as error:
            raise CaptureError(f"cannot keep the capture as {shown(str(path))}: {error.strerror}") from None


def check_place(path: Path) -> None:
    """Raise UsageError where no capture can be kept: in the place of a folder, or below a file."""
    above = next((one for one in path.parents if one.exists()), path)
    if path.is_dir() or not above.is_dir():
        wrong = path if path.is_dir() else above
        what = "a folder: say the name of a file" if path.is_dir() else "no folder"
        raise UsageError(f"cannot keep the capture as {shown(str(path))}: {shown(str(wrong))} is {what}")


def _copy(source: Path, target: Path) -> None:
    """A private copy, which appears as a whole. Raises OSError."""
    temporary = target.with_name(f".{target.name}.part")
    try:
        shutil.copyfile(source, temporary)
        os.chmod(temporary, 0o600)
        os.replace(temporary, target)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
