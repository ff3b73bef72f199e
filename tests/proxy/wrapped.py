"""Drive `mcpsniff stdio` from outside, as a client does, and look at what it left behind."""

import base64
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

REPO = Path(__file__).resolve().parents[2]
CASES = {case["id"]: case for case in json.loads((REPO / "tests/cases/cases.json").read_text(encoding="utf-8"))}
PATIENCE = 60.0
"""Seconds that anything may take on a busy machine before a test gives up."""


STDIO = (sys.executable, "-m", "mcpsniff", "stdio", "--grace", str(PATIENCE))
"""The wrapper for a server that may need long to start and to end; a test about the grace sets its own behind it."""


def case_pieces(name: str) -> list[bytes]:
    """Return the bytes of a case, in the pieces they are to be written in."""
    given = CASES[name]["input"]
    if "text" in given:
        return [given["text"].encode()]
    if "base64" in given:
        return [base64.b64decode(given["base64"])]
    if "chunks_base64" in given:
        return [base64.b64decode(chunk) for chunk in given["chunks_base64"]]
    template = given["template"]
    middle = template["repeat"] * template["count"]
    return [(template["prefix"] + middle + template["suffix"]).encode()]


def environment(**more: str) -> dict[str, str]:
    """Return an environment in which `python -m mcpsniff` finds the package from any folder."""
    return {**os.environ, "PYTHONPATH": str(REPO), **more}


def wait_for[T](probe: Callable[[], T], patience: float = PATIENCE) -> T:
    """Ask ``probe`` until it says something true, or patience ends; return its last word."""
    end = time.monotonic() + patience
    while not (said := probe()) and time.monotonic() < end:
        time.sleep(0.01)
    return said


def is_running(pid: int) -> bool:
    """Say whether a process exists and is not a zombie."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout.strip()
    return bool(state) and not state.startswith("Z")


def is_gone(pid: int) -> bool:
    return not is_running(pid)


def read_number(path: Path) -> int:
    """Return the process id that a server wrote into a file."""

    def probe() -> int:
        text = path.read_text() if path.exists() else ""
        return int(text) if text.endswith("\n") else 0

    number = wait_for(probe)
    assert number, f"nothing in {path}"
    return number


class Wrapped:
    """A wrapped server, with the client's ends of its streams."""

    def __init__(
        self,
        folder: Path,
        command: Sequence[str],
        *options: str,
        env: dict[str, str] | None = None,
        preexec: Callable[[], None] | None = None,
        program: Sequence[str] = STDIO,
    ) -> None:
        self.folder = folder / "captures"
        words = [*program, "--no-transcript", "--dir", str(self.folder), *options, "--", *command]
        self.process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=environment() if env is None else env,
            preexec_fn=preexec,  # noqa: PLW1509 - it only sets limits and signals
            start_new_session=True,
        )
        assert self.process.stdin
        assert self.process.stdout
        assert self.process.stderr
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        self.stderr = b""
        self._drain = threading.Thread(target=self._read_stderr, daemon=True)
        self._drain.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for stream in (self.stdin, self.stdout):
            stream.close()

    def _read_stderr(self) -> None:
        assert self.process.stderr
        while data := self.process.stderr.read(65536):
            self.stderr += data

    def send(self, *pieces: bytes, pause: float = 0.0) -> None:
        """Write pieces to the server, with a pause after each."""
        for piece in pieces:
            rest = memoryview(piece)
            while rest:
                rest = rest[self.stdin.write(rest) or 0 :]
            time.sleep(pause)

    def send_aside(self, *pieces: bytes) -> threading.Thread:
        """Write pieces and close stdin, in a thread of its own."""

        def work() -> None:
            try:
                self.send(*pieces)
            finally:
                self.stdin.close()

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        return thread

    def read_line(self) -> bytes:
        """Return the server's next line."""
        line = b""
        while not line.endswith(b"\n"):
            piece = self.stdout.read(1)
            if not piece:
                return line
            line += piece
        return line

    def read_all(self) -> bytes:
        """Return everything up to the end of the server's stdout."""
        pieces = []
        while piece := self.stdout.read(1 << 20):
            pieces.append(piece)
        return b"".join(pieces)

    def wait(self) -> int:
        """Return the wrapper's exit status as a shell would: 128 + N if a signal ended it."""
        status = self.process.wait(PATIENCE)
        self._drain.join(PATIENCE)
        return status if status >= 0 else 128 - status

    def end(self) -> int:
        """Close stdin and return the exit status."""
        self.stdin.close()
        return self.wait()

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.process.pid, number)

    def recorded(self, probe: Callable[["Captured"], object]) -> None:
        """Wait until the growing capture shows something."""

        def look() -> object:
            paths = list(self.folder.glob("*.mcpcap"))
            return paths and b"\n" in paths[0].read_bytes() and probe(Captured(paths[0]))

        assert wait_for(look)

    def capture(self) -> "Captured":
        """Return what the one capture in the folder holds."""
        (path,) = self.folder.glob("*.mcpcap")
        return Captured(path)


class Captured:
    """A capture file, read with nothing but the standard library."""

    def __init__(self, path: Path) -> None:
        self.path = path
        header, *lines = path.read_bytes().split(b"\n")
        self.damaged = int(bool(lines and lines.pop()))
        self.header = json.loads(header)
        self.records: list[list[Any]] = []
        for line in lines:
            try:
                self.records.append(json.loads(line)[:4])
            except ValueError:
                self.damaged += 1

    def data(self, channel: int) -> bytes:
        """Return all recorded bytes of a channel."""
        return b"".join(
            body.encode() if isinstance(body, str) else base64.b64decode(body["b64"])
            for _, kind, number, body in self.records
            if kind == "chunk" and number == channel
        )

    def bodies(self, kind: str, channel: int) -> list[dict[str, Any]]:
        """Return the bodies of a channel's records of one kind."""
        return [body for _, what, number, body in self.records if what == kind and number == channel]
