"""Both addons in mitmproxy's own console, on a terminal."""

import os
import pty
import re
import select
import socket
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.addons.stock import ADDONS, free_port
from tests.importers.talk import INITIALIZE, RESULT, decoded, said
from tests.proxy.relayed import JSON, Peer, Upstream, answer, post
from tests.proxy.wrapped import PATIENCE, environment, wait_for

ENTER, QUIT, YES = b"\r", b"q", b"y"
OWN_SCREEN, LEFT = b"\x1b[?1049h", b"\x1b[?1049l"


class Console:
    """`mitmproxy` with both addons as a reverse proxy for ``url``, on a terminal of its own."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.port = folder / "captures", free_port()
        self.folder.mkdir(mode=0o700)
        words = ["--mode", f"reverse:{url}@127.0.0.1:{self.port}", "--set", f"confdir={folder / 'conf'}"]
        words += [word for name in ("mcp_capture", "mcp_view") for word in ("-s", str(ADDONS / f"{name}.py"))]
        self.written = b""
        self._terminal, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (40, 120))
        self.process = subprocess.Popen(
            [os.path.join(os.path.dirname(sys.executable), "mitmproxy"), *words],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environment(MCPSNIFF_DIR=str(self.folder), TERM="xterm-256color", LC_ALL="C.UTF-8"),
            start_new_session=True,
        )
        os.close(theirs)

    def read(self) -> bool:
        """Take what was written; False once it has ended."""
        while select.select([self._terminal], [], [], 0.05)[0]:
            try:
                data = os.read(self._terminal, 65536)
            except OSError:
                return False
            if not data:
                return False
            self.written += data
        return True

    def sees(self, text: str) -> bool:
        """Wait until a text was written, whatever its colours."""
        return bool(wait_for(lambda: self.read() and text in re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", self.text)))

    @property
    def text(self) -> str:
        return self.written.decode(errors="replace")

    def press(self, keys: bytes) -> None:
        os.write(self._terminal, keys)

    def end(self) -> int:
        """Return the exit status, once it has ended."""
        end = time.monotonic() + PATIENCE
        while self.read() and time.monotonic() < end:
            pass
        return self.process.wait(PATIENCE)


@pytest.fixture
def server() -> Iterator[Upstream]:
    def serve(peer: Peer) -> None:
        while True:
            peer.next_message()
            peer.send(answer(said(id=0, result=RESULT), JSON.decode().strip()))

    with Upstream(serve) as upstream:
        yield upstream


@pytest.mark.parametrize("how", ["q", "SIGTERM"])
def test_the_console_shows_messages_is_not_written_over_and_leaves_a_whole_capture(
    tmp_path: Path, server: Upstream, how: str
) -> None:
    console = Console(tmp_path, server.url)
    try:
        assert console.sees("mcpsniff: recording to"), console.text
        with Peer(socket.create_connection(("127.0.0.1", console.port), PATIENCE)) as peer:
            peer.send(post(said(id=0, method="initialize", params=INITIALIZE), JSON.decode().strip()))
            peer.next_message()
            assert console.sees("/mcp"), console.text
            console.press(ENTER)
            assert console.sees("→ initialize  id 0"), console.text
            if how == "q":
                console.press(QUIT + QUIT + YES)
            else:
                console.process.terminate()
            assert console.end() == 0
    finally:
        console.process.kill()
        console.process.wait()
    (path,) = console.folder.glob("*.mcpcap")
    before, _, after = console.written.partition(OWN_SCREEN)[2].partition(LEFT)
    assert b"\nmcpsniff" not in before, "it speaks in mitmproxy's own places as long as they are there"
    assert f"mcpsniff: recorded in {path}" in after.decode()
    assert b"Traceback" not in console.written
    messages, exchanges, _ = decoded(str(path))
    assert [one.kind for one in messages] == ["request", "response"]
    assert [one.state for one in exchanges] == ["answered"]
    assert path.with_suffix(".md").exists() or wait_for(path.with_suffix(".md").exists)
