"""A stock mitmdump with our addon, in front of a scripted server."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.proxy.relayed import Peer
from tests.proxy.wrapped import PATIENCE, REPO, environment, wait_for

ADDONS = REPO / "addons"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Mitmdump:
    """`mitmdump -s addons/mcp_capture.py` as a reverse proxy for ``url``, its captures in ``folder``."""

    def __init__(self, folder: Path, url: str, *more: str, transcript: bool = False) -> None:
        self.folder = folder / "captures"
        self.port = free_port()
        self._log = folder / "mitmdump.log"
        words = ["-s", str(ADDONS / "mcp_capture.py"), "--mode", f"reverse:{url}@127.0.0.1:{self.port}"]
        words += ["--set", f"confdir={folder / 'conf'}", "--set", "keep_host_header=true"]
        words += ["--set", f"mcp_transcript={str(transcript).lower()}"]
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [os.path.join(os.path.dirname(sys.executable), "mitmdump"), *words, *more],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment(MCPSNIFF_DIR=str(self.folder), PYTHONUNBUFFERED="1"),
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        assert wait_for(lambda: "listening" in self.log or "recording to" in self.log), self.log
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    @property
    def log(self) -> str:
        """What it has said."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def connect(self) -> Peer:
        return Peer(socket.create_connection(("127.0.0.1", self.port), PATIENCE))

    def stop(self, number: Any = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)
