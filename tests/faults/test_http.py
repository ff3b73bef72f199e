"""A thousand exchanges through `mcpsniff http` with faults, over several connections at once,
and the same again."""

import json
import re
import socket
import threading
from collections import Counter
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from mcpsniff.proxy.faults.recorded import faults_of
from tests.proxy.relayed import Relay

CLIENTS, EACH = 4, 250
DROPPED, NEVER = (17, 18), 1.5
"""Answers that never come, and when a client knows it, in seconds."""
FAULTS = (
    "latency=0ms..3ms,p=0.1", "drop,if=kind:response (id:17 or id:18)", "wrong-id,p=0.05", "error,p=0.05",
    "half-line=10,p=0.05",
    "noise,p=0.05", "invalid-utf8,p=0.05", "status=503,p=0.05", "status=401,p=0.03", "slow=50k,p=0.03", "cut,p=0.03",
    "disconnect,p=0.02",
)  # fmt: skip


class Server(BaseHTTPRequestHandler):
    """Answers with JSON, and gives each session an id."""

    protocol_version = "HTTP/1.1"
    opened: dict[str, int] = {}  # noqa: RUF012

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        session = self.headers.get("Mcp-Session-Id") or f"s{body['params']['client']}"
        text = json.dumps({"jsonrpc": "2.0", "id": body["id"], "result": {"content": [{"type": "text", "text": "x"}]}})
        head = (
            f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: {session}\r\n"
            f"Content-Length: {len(text)}\r\n\r\n"
        )
        self.wfile.write(head.encode() + text.encode())

    def setup(self) -> None:
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def log_message(self, *arguments: object) -> None:
        """Nothing."""


class Client:
    """One session: every call is answered, refused, or cut off, before the next one."""

    def __init__(self, port: int, number: int) -> None:
        self.got: list[str] = []
        self._port, self._number = port, number
        self._connection = HTTPConnection("127.0.0.1", port, timeout=60)

    def open(self) -> None:
        self._ask({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"client": self._number}}, {})

    def run(self) -> None:
        for number in range(1, EACH):
            params = {"name": "echo", "arguments": {"n": number}}
            request = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
            self._ask(request, {"Mcp-Session-Id": f"s{self._number}"})
        self._connection.close()

    def _ask(self, request: dict[str, Any], headers: dict[str, str]) -> None:
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **headers}
        try:
            self._connection.request("POST", "/mcp", json.dumps(request), headers)
            self._connection.sock.settimeout(NEVER if request["id"] in DROPPED else 60)
            self._connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            response = self._connection.getresponse()
            self.got.append(f"{response.status} {response.read()!r}")
        except (OSError, HTTPException) as error:
            self.got.append(type(error).__name__)
            self._connection.close()


@pytest.fixture(scope="module")
def url() -> "object":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/mcp"
    server.shutdown()
    thread.join()
    server.server_close()


def held(folder: Path, url: str, *options: str) -> tuple[Path, list[list[str]], str]:
    """Hold all sessions at once; the capture, what each client got, and what was said at the end."""
    with Relay(folder, url, *options) as relay:
        clients = [Client(relay.port, number) for number in range(CLIENTS)]
        for client in clients:
            client.open()
        threads = [threading.Thread(target=client.run) for client in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert relay.stop() == 0, relay.err
    (capture,) = (folder / "captures").glob("*.mcpcap")
    return capture, [client.got for client in clients], relay.err.decode()


def struck(capture: Path) -> dict[str, list[str]]:
    return {place: [one.text for one in found] for place, found in faults_of(str(capture)).items()}


def test_a_thousand_exchanges_have_the_same_faults_again(tmp_path: Path, url: str) -> None:
    words = [word for fault in FAULTS for word in ("--fault", fault)]
    first, got, said = held(tmp_path / "first", url, *words)
    seed = re.search(r"--fault-seed ([0-9]+) repeats them", said)
    assert seed is not None, said
    faults = struck(first)
    kinds = Counter(one.partition("=")[0] for several in faults.values() for one in several)
    assert min(kinds.values()) > 3, kinds
    assert len(kinds) == 11
    seeded, got_seeded, _ = held(tmp_path / "seeded", url, *words, "--fault-seed", seed[1])
    again, got_again, said = held(tmp_path / "again", url, "--fault-from", str(first))
    assert struck(seeded) == faults
    assert struck(again) == faults
    assert got_seeded == got_again == got
    assert f"faults: all {sum(kinds.values())} of {first.name} again" in said
