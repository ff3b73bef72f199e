"""A forward proxy in this process, with servers of MCP behind it."""

import json
import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mcpsniff.proxy.mitm.forward import ForwardSession, Seen
from mcpsniff.wire.http1 import Head, Http1Splitter
from tests.mitm.certificates import Authority
from tests.mitm.terminator import Terminator
from tests.proxy.relayed import Peer, Upstream, answer
from tests.proxy.wrapped import PATIENCE

ASK = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
SAID = b'{"jsonrpc":"2.0","id":1,"result":{}}'
JSON = "Content-Type: application/json"


class Proxy:
    """A forward proxy in this process. Once it has ended, what it saw and what it recorded."""

    def __init__(
        self, folder: Path, ca: Path | None, only: Sequence[str], *, everything: bool = False, addon: Path | None = None
    ) -> None:
        self.told: list[str] = []
        self.file = folder / "forward.mcpcap"
        self.authority = ca
        """The file of the authority that the servers' certificates come from."""
        self.seen: Seen
        options = {"output": str(self.file), "dir": None, "label": None, "keep_secrets": False, "no_transcript": True}
        more = {"quiet": True, "upstream_ca": None if ca is None else str(ca), "insecure": False}
        self.session = ForwardSession(
            {**options, **more, "addon": [] if addon is None else [str(addon)], "set": []},
            listen=("127.0.0.1", 0),
            only=only,
            everything=everything,
            label="forward",
            tell=self.told.append,
        )

    @contextmanager
    def running(self) -> Iterator["Proxy"]:
        url = self.session.start()
        self.port = int(url.rpartition(":")[2])
        try:
            yield self
        finally:
            self.seen = self.session.finish()

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), PATIENCE)

    def tunnel(self, host: str, port: int) -> socket.socket:
        connection = self.connect()
        connection.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        came = b""
        while b"\r\n\r\n" not in came:
            came += connection.recv(1)
        assert b" 200 " in came.split(b"\r\n")[0], came
        return connection

    def secure(self, port: int, trust: str | Path, name: str = "localhost") -> Peer:
        """TLS through a tunnel, for a client that trusts the authority in the file ``trust``."""
        context = ssl.create_default_context(cafile=str(trust))
        return Peer(context.wrap_socket(self.tunnel(name, port), server_hostname=name))

    @property
    def records(self) -> list[Any]:
        return [json.loads(line)[:4] for line in self.file.read_text().splitlines()[1:]]

    @property
    def heads(self) -> list[str]:
        """The start lines of the recorded requests."""
        lines: dict[int, list[str]] = {}
        splitters: dict[int, Http1Splitter] = {}
        for _, kind, channel, body in self.records:
            if kind == "open" and body["dir"] == "c2s":
                lines[channel] = [body["meta"]["start"]] if "start" in body["meta"] else []
                if body["kind"] == "tcp":
                    splitters[channel] = Http1Splitter(channel, "c2s")
            elif kind == "chunk" and channel in splitters:
                heads = [part for part in splitters[channel].feed(0, body.encode()) if isinstance(part, Head)]
                lines[channel] += [head.start_line.decode() for head in heads]
        return [line for each in lines.values() for line in each]


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home for mitmproxy's CA, which is made once for all of these tests."""
    base = tmp_path_factory.getbasetemp() / "forward-home"
    base.mkdir(exist_ok=True)
    monkeypatch.setenv("HOME", str(base))


@pytest.fixture(scope="module")
def upstream_ca(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("upstream"))


def serving(pages: dict[str, bytes] | None = None) -> Callable[[Peer], None]:
    """A server of MCP, which has other pages, too."""

    def script(peer: Peer) -> None:
        while True:
            head, body = peer.next_message()
            page = (pages or {}).get((head.target or "").partition("?")[0])
            if page is not None:
                peer.send(page)
            elif body == ASK:
                peer.send(answer(SAID, JSON))
            else:
                peer.send(answer(b"private", "Content-Type: text/plain"))

    return script


@contextmanager
def served(ca: Authority) -> Iterator[tuple[Upstream, Terminator]]:
    """A server of MCP, plain and with TLS."""
    with Upstream(serving()) as upstream, Terminator(upstream.port, str(ca.issue())) as secure:
        yield upstream, secure


def talk(peer: Peer, *requests: bytes) -> list[bytes]:
    """Send requests one after the other; return the bodies of the responses."""
    bodies = []
    for request in requests:
        peer.send(request)
        bodies.append(peer.next_message()[1])
    return bodies
