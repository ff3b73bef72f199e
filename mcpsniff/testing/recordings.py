"""A session that is recorded in a test, and what can be asked of it."""

import os
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from mcpsniff.capture.reader import open_capture
from mcpsniff.capture.store import is_being_written, part_path
from mcpsniff.checks import Finding
from mcpsniff.decoder import Event
from mcpsniff.errors import CaptureError
from mcpsniff.protocol.message import Message
from mcpsniff.testing.programs import Program
from mcpsniff.transcript.session import Session

_GRACE: Final = 15.0
"""Seconds that the recorder has to end, once its client should have left."""


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
        """Wait until all is recorded: a proxy is ended, a command ends with its client. Raises CaptureError."""
        self.close()
        deadline = time.monotonic() + _GRACE
        while is_being_written(str(self.path)):
            if time.monotonic() > deadline:
                raise CaptureError(f"the session is still going on after {_GRACE:g} s: the client has not left")
            time.sleep(0.02)
        if not self.path.exists():
            raise CaptureError("nothing was recorded: the client did not start the command, or said nothing")
        return self.path

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
        return [finding for finding in found if not severities or finding.severity in severities]

    def save(self, path: Path) -> None:
        """Copy the capture, all its parts, to ``path``, in the place of what is there."""
        self.stop()
        path.parent.mkdir(parents=True, exist_ok=True)
        for number, part in enumerate(open_capture(str(self.path)).parts, 1):
            target = Path(part_path(str(path), number))
            temporary = target.with_name(f".{target.name}.part")
            shutil.copyfile(part.path, temporary)
            os.chmod(temporary, 0o600)
            os.replace(temporary, target)
