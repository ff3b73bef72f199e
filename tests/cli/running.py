"""Run the command line as a user does: as a process of its own, on pipes or on a terminal (see `ready`)."""

import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import NamedTuple

from tests.cli.ready import ready, suits

COMMAND = [sys.executable, "-m", "mcpsniff"]
REPO = Path(__file__).resolve().parents[2]
PATIENCE = 60.0


class Ran(NamedTuple):
    status: int
    out: str
    err: str


def environment(**more: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    return {**kept, "PYTHONPATH": str(REPO), "TERM": "xterm-256color", **more}


def run(*words: str, env: Mapping[str, str] | None = None, stdin: bytes = b"", cwd: Path | None = None) -> Ran:
    whole = environment(**(env or {}))
    if suits(env or {}):
        return run_in(whole, *words, stdin=stdin, cwd=cwd)
    command = [*COMMAND, *words]
    done = subprocess.run(command, input=stdin, capture_output=True, env=whole, cwd=cwd, timeout=PATIENCE)
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


def run_in(env: Mapping[str, str], *words: str, stdin: bytes = b"", cwd: Path | None = None) -> Ran:
    """Run with this environment and no other."""
    (their_in, our_in), (our_out, their_out), (our_err, their_err) = (os.pipe() for _ in range(3))
    theirs = [their_in, their_out, their_err]
    child = ready().start(words, theirs, env, cwd)
    for descriptor in theirs:
        os.close(descriptor)
    came: dict[int, bytes] = {}
    threads = [Thread(target=_write, args=(our_in, stdin), daemon=True)]
    threads += [Thread(target=_read, args=(source, came), daemon=True) for source in (our_out, our_err)]
    for thread in threads:
        thread.start()
    status = child.wait(PATIENCE)
    for thread in threads:
        thread.join(PATIENCE)
    return Ran(status, came[our_out].decode(), came[our_err].decode())


def _write(sink: int, data: bytes) -> None:
    with suppress(BrokenPipeError), open(sink, "wb") as stream:
        stream.write(data)


def _read(source: int, came: dict[int, bytes]) -> None:
    with open(source, "rb") as stream:
        came[source] = stream.read()


def on_terminal(*words: str, columns: int = 100, env: Mapping[str, str] | None = None, typed: bytes = b"") -> Ran:
    """Run on a terminal of its own, with this typed ahead; what it shows is in ``out``, stderr too."""
    ours, theirs = pty.openpty()
    os.write(ours, typed)
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    child = ready().start(words, [theirs] * 3, environment(**(env or {})), None)
    os.close(theirs)
    shown = b""
    try:
        while block := os.read(ours, 65536):
            shown += block
    except OSError:  # Linux says EIO where macOS says end of file
        pass
    os.close(ours)
    return Ran(child.wait(PATIENCE), shown.decode().replace("\r\n", "\n"), "")


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
    out, err = child.communicate(timeout=PATIENCE)
    return Ran(child.returncode, (seen + out).decode(), err.decode())
