"""Break points on a terminal: the prompt of `mcpsniff attach`, and the one below the live view of `mcpsniff http`."""

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import termios
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.request import Request, urlopen

import pytest

from mcpsniff.hooks.editor import CHANGED
from tests.breaks.desks import CALL, Session, call
from tests.cli.running import COMMAND, environment
from tests.proxy.wrapped import wait_for

ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")
EDITOR = """#!/bin/sh
trap 'echo an editor got Ctrl-C > /dev/tty' INT
stty -a | tr ' ;' '\\n\\n' | grep icanon
echo editing > /dev/tty
while [ ! -e "$0.go" ]; do sleep 0.05; done
sed -i.b s/1.0/2.0/ "$1"
"""


class Terminal:
    """A process that leads a session on a terminal of its own."""

    def __init__(self, words: list[str], **env: str) -> None:
        self.screen, self._theirs = pty.openpty()
        fcntl.ioctl(self._theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self._modes = termios.tcgetattr(self._theirs)
        self.process = subprocess.Popen(
            [*COMMAND, *words],
            stdin=self._theirs,
            stdout=self._theirs,
            stderr=self._theirs,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - as a terminal emulator does
            env=environment(NO_COLOR="1", **env),
        )
        self._seen = b""
        os.set_blocking(self.screen, False)

    def sees(self, text: str) -> str:
        """Read until this text appears; forget everything up to it, and return that."""

        def probe() -> bool:
            with suppress(OSError):
                self._seen += os.read(self.screen, 65536)
            return text.encode() in ESCAPES.sub(b"", self._seen)

        assert wait_for(probe), ESCAPES.sub(b"", self._seen).decode(errors="replace")[-3000:]
        before, _, self._seen = ESCAPES.sub(b"", self._seen).partition(text.encode())
        return before.decode(errors="replace")

    def type(self, text: str) -> None:
        os.write(self.screen, text.encode())

    def ended(self) -> int:
        """Wait for its end, reading what it says, and return its status."""

        def probe() -> bool:
            with suppress(OSError):
                self._seen += os.read(self.screen, 65536)
            return self.process.poll() is not None

        assert wait_for(probe)
        return self.process.returncode

    @property
    def is_as_it_was(self) -> bool:
        return termios.tcgetattr(self._theirs)[3] == self._modes[3]

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.screen)
        os.close(self._theirs)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    """Run a command on a terminal, with an editor that waits until it may go on."""
    opened: list[Terminal] = []
    editor = tmp_path / "editor"
    editor.write_text(EDITOR)
    editor.chmod(0o700)

    def run(*words: str) -> Terminal:
        opened.append(Terminal([*words], EDITOR=str(editor), VISUAL="", MCPSNIFF_DIR=str(tmp_path / "captures")))
        return opened[-1]

    yield run
    for one in opened:
        one.close()


def test_attached_edit_and_leave(
    session: Callable[..., Session], terminal: Callable[..., Terminal], tmp_path: Path
) -> None:
    one = session("tool:add")
    message = one.held()
    screen = terminal("attach", str(os.getpid()))
    screen.sees("attached to time (process ")
    screen.sees("   1 → tools/call add  id 7")
    assert not screen.is_as_it_was
    screen.type("nonsense\n")
    screen.sees("nonsense is no command; h shows them")
    screen.type("e\n")
    assert "-icanon" not in screen.sees("editing")
    assert os.tcgetpgrp(screen.screen) != screen.process.pid
    screen.type("\x03\x1a")  # neither Ctrl-C nor Ctrl-Z ends the editor, or us
    (tmp_path / "editor.go").touch()
    screen.sees("1 changed")
    assert os.tcgetpgrp(screen.screen) == screen.process.pid
    edit = message.ended()
    assert edit is not None
    assert [(out.what, out.data) for out in edit.leaving] == [(CHANGED, CALL.replace(b"1.0", b"2.0"))]
    held = one.held(call(8))
    screen.sees("   2 → tools/call add  id 8")
    screen.type("q\n")
    assert screen.ended() == 0
    assert screen.is_as_it_was
    assert held.is_waiting


@pytest.mark.parametrize(
    ("how", "status"), [("\x03", 0), ("\x04", 0), (signal.SIGTERM, -signal.SIGTERM), (signal.SIGHUP, -signal.SIGHUP)]
)
def test_however_it_ends_the_terminal_is_as_it_was(
    session: Callable[..., Session], terminal: Callable[..., Terminal], how: str | signal.Signals, status: int
) -> None:
    one = session("tool:add")
    screen = terminal("attach", str(os.getpid()))
    screen.sees("nothing held (h for help)> ")
    if isinstance(how, str):
        screen.type(how)
    else:
        screen.process.send_signal(how)
    assert screen.ended() == status
    assert screen.is_as_it_was
    assert wait_for(lambda: one.points.service is not None and not one.points.service.attached)


def test_the_session_ends_while_somebody_is_attached(
    session: Callable[..., Session], terminal: Callable[..., Terminal]
) -> None:
    one = session("tool:add")
    screen = terminal("attach", str(os.getpid()))
    screen.sees("nothing held (h for help)> ")
    message = one.held()
    screen.sees("1 held")
    one.end()
    message.ended()
    screen.sees("the session has ended")
    assert screen.ended() == 0
    assert screen.is_as_it_was


def is_group(number: int) -> bool:
    try:
        os.killpg(number, 0)
    except ProcessLookupError:
        return False
    return True


def test_ended_by_a_signal_in_the_midst_of_editing(
    session: Callable[..., Session], terminal: Callable[..., Terminal]
) -> None:
    one = session("tool:add")
    message = one.held()
    screen = terminal("attach", str(os.getpid()))
    screen.sees("1 held")
    screen.type("e\n")
    screen.sees("editing")
    editor = os.tcgetpgrp(screen.screen)
    screen.process.terminate()
    assert screen.ended() == -signal.SIGTERM
    assert screen.is_as_it_was
    assert wait_for(lambda: not is_group(editor))
    assert message.is_waiting


class Upstream(BaseHTTPRequestHandler):
    """A server that answers with the arguments that it got."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        data = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": asked["params"]["arguments"]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def upstream() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/mcp"
    server.shutdown()
    server.server_close()


class Asked:
    """A request on its way."""

    def __init__(self, url: str, number: int, tool: str = "add") -> None:
        params = {"name": tool, "arguments": {"a": 1.0}}
        message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        self._request = Request(url, json.dumps(message).encode(), headers)
        self.answer: Any = None
        self.thread = Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        with urlopen(self._request, timeout=60) as response:
            self.answer = json.loads(response.read())

    def ended(self) -> Any:
        self.thread.join(60)
        return self.answer


def test_below_the_live_view(terminal: Callable[..., Terminal], upstream: str, tmp_path: Path) -> None:
    screen = terminal("http", "--break", "tool:add dir:c2s", "--no-transcript", upstream)
    screen.sees("give the client ")
    url = screen.sees(" in the place of").strip()
    screen.sees("→ client to server")
    first = Asked(url, 1)
    screen.sees("   1 → tools/call add  id 1")
    assert Asked(url, 2, "other").ended()["result"] == {"a": 1.0}
    screen.sees("answered #")
    screen.type("e 1\n")
    assert "-icanon" not in screen.sees("editing")
    screen.type("\x03")  # which is the editor's alone
    screen.sees("an editor got Ctrl-C")
    assert Asked(url, 3, "other").ended()["result"] == {"a": 1.0}
    (tmp_path / "editor.go").touch()
    screen.sees("1 changed")
    assert first.ended()["result"] == {"a": 2.0}
    second = Asked(url, 4)
    screen.sees("tools/call add  id 4")
    screen.sees("1 held")
    screen.type("refuse not today\n")
    assert second.ended()["error"] == {"code": -32000, "message": "not today"}
    third = Asked(url, 5)
    screen.sees("tools/call add  id 5")
    screen.sees("1 held")
    screen.type("\x03")
    assert third.ended()["result"] == {"a": 1.0}
    screen.sees("recorded in ")
    assert screen.ended() == 0
    assert screen.is_as_it_was


def test_detached_from_the_live_view_it_goes_on(terminal: Callable[..., Terminal], upstream: str, folder: Path) -> None:
    screen = terminal("http", "--break", "tool:add dir:c2s", "--no-transcript", "--label", "mine", upstream)
    screen.sees("give the client ")
    url = screen.sees(" in the place of").strip()
    screen.sees("→ client to server")
    screen.type("list\n")
    screen.sees("break points: tool:add dir:c2s")
    screen.type("q\n")
    screen.sees(f"detached: mcpsniff attach {screen.process.pid}")
    assert wait_for(lambda: screen.is_as_it_was)
    asked = Asked(url, 1)
    screen.sees("is held at a break point: mcpsniff attach ")
    assert [path.name for path in folder.iterdir()] == [f"{screen.process.pid}.sock"]
    done = subprocess.run(
        [*COMMAND, "attach", "mine", "--pass", "1"], env=environment(), stdin=subprocess.DEVNULL, capture_output=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert asked.ended()["result"] == {"a": 1.0}
    screen.process.send_signal(signal.SIGTERM)
    assert screen.ended() == 0
    assert list(folder.iterdir()) == []
