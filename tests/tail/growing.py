"""Captures that grow, and `mcpsniff tail` as a process that watches them."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from mcpsniff.capture.records import Record
from tests.capture.capture_files import encoded
from tests.cli.ready import ready
from tests.cli.running import COMMAND, environment
from tests.sessions import OPENS

PATIENCE = 60.0

SERVER = """
import json, os, sys, time
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    while (gate := asked.get("params", {}).get("once")) and not os.path.exists(gate):
        time.sleep(0.02)
    result = {"content": []}
    if asked["method"] == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
        result["serverInfo"] = {"name": "s", "version": "1"}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


def now_rfc3339(ago: float = 0.0) -> str:
    moment = time.time() - ago
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment)) + f".{int(moment % 1 * 1e6):06}Z"


class Growing:
    """A capture that is being written: its recorder's lock is held until `close`."""

    def __init__(self, path: Path, **header: Any) -> None:
        self.path = path
        self._header = {"started": now_rfc3339(), **header}
        self._file = path.open("ab", buffering=0)
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def begin(self, *records: Record) -> Self:
        self._file.write(encoded([*OPENS, *records], **self._header))
        return self

    def write(self, data: bytes) -> None:
        self._file.write(data)

    def append(self, *records: Record) -> None:
        data = encoded(records, **self._header)
        self._file.write(data[data.index(b"\n") + 1 :])

    def cut(self, size: int) -> None:
        self._file.truncate(size)

    def close(self) -> None:
        self._file.close()


class Tail:
    """`mcpsniff tail`, on pipes, or (``columns``) on a terminal, where stderr is shown too."""

    def __init__(self, *words: str, columns: int = 0, cwd: Path | None = None) -> None:
        self.out, self.err = b"", b""
        self._ours: dict[int, str] = {}
        if columns:
            self._master, theirs = pty.openpty()
            self._ours = {self._master: "out"}
            self.resize(columns)
            streams = [theirs] * 3
        else:
            (our_out, their_out), (our_err, their_err) = os.pipe(), os.pipe()
            self._ours = {our_out: "out", our_err: "err"}
            streams = [os.open(os.devnull, os.O_RDONLY), their_out, their_err]
        self._opened = [*self._ours]
        self.process = ready().start(["tail", *words], streams, environment(), cwd)
        for descriptor in {*streams}:
            os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for descriptor in self._opened:
            os.close(descriptor)

    def resize(self, columns: int, lines: int = 40) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def until(self, what: bytes, *, where: str = "out", match: bool = False) -> bytes:
        """Read until ``what`` was written; return all up to then."""
        end = time.monotonic() + PATIENCE
        while not re.search(what if match else re.escape(what), getattr(self, where)):
            self._read(0.1)
            assert time.monotonic() < end, f"{what!r} did not come; {self._latest}"
            assert self._ours, f"it ended before {what!r} came; {self._latest}"
        return bytes(getattr(self, where))

    @property
    def _latest(self) -> str:
        return f"{self.out[-800:]!r} {self.err[-800:]!r}"

    def during(self, seconds: float) -> None:
        """Read for a while."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and self._ours:
            self._read(0.05)

    def settle(self) -> None:
        """Read on to the end of what was written at once, which comes in several pieces: a line, or the foot."""
        end = time.monotonic() + PATIENCE
        before = -1
        while self._ours and (len(self.out) != before or not self.out.endswith((b"\r", b"\n"))):
            before = len(self.out)
            self._read(0.03)
            assert time.monotonic() < end, f"it does not come to a rest; {self._latest}"

    def interrupt(self) -> int:
        """Press Ctrl-C."""
        self.process.send_signal(signal.SIGINT)
        return self.end()

    def end(self) -> int:
        """Read to the end; return the exit status."""
        end = time.monotonic() + PATIENCE
        while self._ours:
            self._read(0.1)
            assert time.monotonic() < end, f"it does not end; {self._latest}"
        return self.process.wait(PATIENCE)

    def _read(self, patience: float) -> bool:
        ready, _, _ = select.select(list(self._ours), [], [], patience)
        for descriptor in ready:
            try:
                data = os.read(descriptor, 65536)
            except OSError:  # Linux says EIO where macOS says end of file
                data = b""
            name = self._ours[descriptor]
            setattr(self, name, getattr(self, name) + data)
            if not data:
                del self._ours[descriptor]
        return bool(ready)


class Client:
    """The client of a wrapped server that answers a request with ``once`` when that file exists."""

    def __init__(self, folder: Path, label: str, *options: str) -> None:
        words = ["stdio", "--no-transcript", "--quiet", "--label", label, "--dir", str(folder), *options, "--"]
        self.process = subprocess.Popen(
            [*COMMAND, *words, sys.executable, "-c", SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env=environment(),
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(PATIENCE)

    def say(self, **message: Any) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def hear(self) -> dict[str, Any]:
        assert self.process.stdout
        line = b""
        while not line.endswith(b"\n"):
            line += self.process.stdout.read(1)
        heard: dict[str, Any] = json.loads(line)
        return heard

    def ask(self, **message: Any) -> dict[str, Any]:
        self.say(**message)
        return self.hear()

    def hello(self) -> None:
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
        self.ask(id=1, method="initialize", params=params)
        self.say(method="notifications/initialized")

    def end(self) -> int:
        assert self.process.stdin
        self.process.stdin.close()
        return self.process.wait(PATIENCE)


def parsed(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines()]


def methods(lines: Sequence[dict[str, Any]]) -> list[str]:
    return [line["method"] for line in lines if line["type"] == "message" and "method" in line]
