"""A capture that stands in for a server in a test."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from mcpsniff.testing.programs import Program
from mcpsniff.testing.serve import MARK, REPORT
from mcpsniff.testing.verdict import Report, merged

TRANSPORTS: Final = ("stdio", "http", "sse")
_MODULE: Final = "mcpsniff.testing.serve"
_GRACE: Final = 5.0
"""Seconds that a server on pipes has to end by itself, when its client should have left; then to obey TERM."""


class Replay:
    """A capture as a server: a command to start it with (stdio), or a running one at a URL (http, sse).

    ``folder`` is an empty one for the reports. ``transport`` is one of `TRANSPORTS`, ``options`` are those of
    `mcpsniff replay --serve`. Raises McpsniffError where the capture cannot be served.
    """

    def __init__(self, capture: Path, folder: Path, transport: str, options: Iterable[str]) -> None:
        self.path = capture
        """The capture."""
        self.transport = transport
        self._folder = folder
        words = [_MODULE, str(folder), str(capture), "--serve", transport, *options]
        self.command: list[str] = [] if transport != "stdio" else [sys.executable, "-m", *words]
        """What starts the server, over stdio; it may be started more than once."""
        self._program = None if transport == "stdio" else Program(words, "serving the capture at ")

    @property
    def url(self) -> str:
        """Where the server is; empty over stdio."""
        return "" if self._program is None else self._program.url

    @property
    def process(self) -> "subprocess.Popen[bytes] | None":
        """The process that serves; None over stdio, where the client starts it."""
        return None if self._program is None else self._program.process

    @property
    def report(self) -> Report:
        """What came of it, as ``--report`` tells it, of all starts together; the server is ended first."""
        self.stop()
        return self.report_so_far()

    def report_so_far(self) -> Report:
        """The same of the servers that have ended by now."""
        reports = []
        for file in sorted(self._folder.glob(f"*{REPORT}")):
            with suppress(OSError, ValueError):
                reports.append(json.loads(file.read_bytes()))
        whole = merged(reports)
        whole["killed"] = sum(not mark.with_suffix(REPORT).exists() for mark in self._marks())
        return whole

    def stop(self) -> None:
        """End the server: what listens at once, what was started on pipes when it has had time to end by itself."""
        if self._program is not None:
            self._program.end()
        elif not _ended(self._marks(), _GRACE):
            _signal(self._marks(), signal.SIGTERM)
            if not _ended(self._marks(), _GRACE):
                _signal(self._marks(), signal.SIGKILL)
                _ended(self._marks(), _GRACE)

    def _marks(self) -> list[Path]:
        return sorted(self._folder.glob(f"*{MARK}"))


def _ended(marks: list[Path], patience: float) -> bool:
    """Wait until none of the processes behind these marks runs; False if one still does after so many seconds."""
    deadline = time.monotonic() + patience
    while any(True for _ in _running(marks)):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _running(marks: list[Path]) -> Iterator[int]:
    """The ids of the processes that hold their mark, so that no id is meant that another process has by now."""
    for mark in marks:
        with mark.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                with suppress(ValueError):
                    yield int(file.read() or "0")


def _signal(marks: list[Path], number: int) -> None:
    for process in _running(marks):
        if process:
            with suppress(ProcessLookupError):
                os.kill(process, number)


def check(capture: Path, **options: Any) -> None:
    """Raise UsageError or CaptureError where `mcpsniff replay` would not serve this capture with these options."""
    from mcpsniff.cli.replay_serve import open_to_replay, talks_of
    from mcpsniff.replay.reading import read_script

    opened = open_to_replay({"capture": str(capture), "directory": None, **options})
    talks_of(read_script(opened), options["server"], over_http=options["over_http"])
