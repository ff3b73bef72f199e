"""Run the command line as a user does: as a process of its own, on pipes or on a terminal."""

import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

COMMAND = [sys.executable, "-m", "mcpsniff"]
REPO = Path(__file__).resolve().parents[2]


class Ran(NamedTuple):
    status: int
    out: str
    err: str


def environment(**more: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    return {**kept, "PYTHONPATH": str(REPO), "TERM": "xterm-256color", **more}


def run(*words: str, env: Mapping[str, str] | None = None, stdin: bytes = b"", cwd: Path | None = None) -> Ran:
    done = subprocess.run(
        [*COMMAND, *words], input=stdin, capture_output=True, env=environment(**(env or {})), cwd=cwd, timeout=60
    )
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


def on_terminal(*words: str, columns: int = 100, env: Mapping[str, str] | None = None) -> Ran:
    """Run on a terminal of its own; what it shows is in ``out``, stderr too."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    child = subprocess.Popen(
        [*COMMAND, *words], stdin=theirs, stdout=theirs, stderr=theirs, env=environment(**(env or {}))
    )
    os.close(theirs)
    shown = b""
    try:
        while block := os.read(ours, 65536):
            shown += block
    except OSError:  # Linux says EIO where macOS says end of file
        pass
    os.close(ours)
    return Ran(child.wait(60), shown.decode().replace("\r\n", "\n"), "")


def interrupted(*words: str, after: bytes) -> Ran:
    """Run, and send Ctrl-C's signal as soon as ``after`` was written to stdout."""
    child = subprocess.Popen(
        [*COMMAND, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    )
    assert child.stdout is not None
    seen = b""
    while after not in seen:
        seen += os.read(child.stdout.fileno(), 4096)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    return Ran(child.returncode, (seen + out).decode(), err.decode())
