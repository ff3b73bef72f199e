"""One client and one server, whatever is between them: what either says, and what the other gets, as JSON texts.

On every wire `Wire.client` and `Wire.server` send messages and take those that came, in the order in which they came.
Behind mcpsniff stands a server that says what the test lets it say; the client's side is as thin.
"""

import json
import queue
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from mcpsniff.wire.http1 import Http1Splitter
from mcpsniff.wire.http1_parts import Data, End, Head, Part
from mcpsniff.wire.sse import EventSplitter
from tests.mitm.certificates import Authority
from tests.mitm.terminator import Terminator
from tests.proxy.listening import Listening
from tests.proxy.relayed import EVENTS, Peer, Relay, Upstream, answer, chunk, get, post
from tests.proxy.wrapped import PATIENCE, Captured, Wrapped

JSON = "Content-Type: application/json"
BRIDGE = """
import os, socket, sys, threading
link = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
def back():
    while data := link.recv(65536):
        os.write(1, data)
threading.Thread(target=back, daemon=True).start()
while data := os.read(0, 65536):
    link.sendall(data)
"""
"""A server whose stdin and stdout are a socket of the test."""


class Inbox:
    """What came to one side."""

    def __init__(self) -> None:
        self._came: queue.Queue[bytes] = queue.Queue()

    def put(self, text: bytes) -> None:
        self._came.put(text)

    def take(self) -> bytes:
        """The next message that came; AssertionError if none does."""
        try:
            return self._came.get(timeout=PATIENCE)
        except queue.Empty:
            raise AssertionError("no message came") from None

    def rest(self) -> list[bytes]:
        """All that came and was not taken."""
        found = []
        with suppress(queue.Empty):
            while True:
                found.append(self._came.get_nowait())
        return found


class Lines:
    """A side that speaks in lines."""

    def __init__(self, write: Any, source: Any) -> None:
        self.inbox = Inbox()
        self._write = write
        threading.Thread(target=self._read, args=(source,), daemon=True).start()

    def send(self, text: bytes) -> None:
        self._write(text + b"\n")

    def take(self) -> bytes:
        return self.inbox.take()

    def rest(self) -> list[bytes]:
        return self.inbox.rest()

    def _read(self, source: Any) -> None:
        pending = b""
        with suppress(OSError, ValueError):
            while data := source(65536):
                *lines, pending = (pending + data).split(b"\n")
                for line in lines:
                    self.inbox.put(line)


class WebServer:
    """A server over HTTP: a body that answers, or an event stream for each POST; or the legacy transport.

    What it says on its own goes to the latest stream that is open.
    """

    def __init__(self, way: str) -> None:
        self.inbox = Inbox()
        self._way = way
        self._asking: dict[str, Peer] = {}
        self._streams: list[Peer] = []
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self.heads: list[Head] = []
        self.has_stream = threading.Event()

    def play(self, peer: Peer) -> None:
        """One connection of a client."""
        while True:
            head, body = peer.next_message()
            self.heads.append(head)
            if head.method == "GET":
                first = b"event: endpoint\ndata: /message?sessionId=7\n\n" if self._way == "sse" else b": here\n\n"
                peer.send(EVENTS + b"Transfer-Encoding: chunked\r\n\r\n" + chunk(first))
                with self._lock:
                    self._streams.append(peer)
                self.has_stream.set()
                with suppress(OSError, AssertionError):
                    peer.next_message()
                return
            with self._turn:  # what comes because of a response comes after what it responds to
                said = json.loads(body)
                is_request = isinstance(said, dict) and "id" in said and "method" in said
                if self._way == "sse" or not is_request:
                    peer.send(answer(b"", status="202 Accepted"))
                else:
                    with self._lock:
                        self._asking[json.dumps(said["id"])] = peer
                    if self._way == "streams":
                        peer.send(EVENTS + b"Transfer-Encoding: chunked\r\n\r\n" + chunk(b": begun\n\n"))
                self.inbox.put(body)

    def send(self, text: bytes) -> None:
        said = json.loads(text)
        event = b"event: message\ndata: " + text + b"\n\n"
        with self._lock:
            peer = self._asking.pop(json.dumps(said.get("id")), None) if "method" not in said else None
            streams = list(self._asking.values()) if self._way == "streams" else []
            elsewhere = (streams or self._streams)[-1] if peer is None else None
        if peer is None:
            assert elsewhere is not None
            elsewhere.send(chunk(event))
        elif self._way == "streams":
            peer.send(chunk(event) + chunk(b""))
        else:
            peer.send(answer(text, JSON))

    def take(self) -> bytes:
        return self.inbox.take()

    def rest(self) -> list[bytes]:
        return self.inbox.rest()


class WebClient:
    """A client over HTTP: each message a POST on a connection of its own, and a stream for what the server says."""

    def __init__(self, way: str, connect: Callable[[], socket.socket]) -> None:
        self.inbox = Inbox()
        self._way = way
        self._connect = connect
        self._peers: list[Peer] = []
        self._endpoint: queue.Queue[str] = queue.Queue()
        self.statuses: list[int | None] = []
        target = "/sse" if way == "sse" else "/mcp"
        threading.Thread(target=self._ask, args=(get(target, "Mcp-Session-Id: 7"),), daemon=True).start()
        self._target = self._endpoint.get(timeout=PATIENCE) if way == "sse" else "/mcp"

    def send(self, text: bytes) -> None:
        request = post(
            text, JSON, "Accept: application/json, text/event-stream", *self._routing(text), target=self._target
        )
        threading.Thread(target=self._ask, args=(request,), daemon=True).start()

    def take(self) -> bytes:
        return self.inbox.take()

    def rest(self) -> list[bytes]:
        return self.inbox.rest()

    def close(self) -> None:
        for peer in self._peers:
            with suppress(OSError):
                peer.socket.shutdown(socket.SHUT_RDWR)
            peer.socket.close()

    def _routing(self, text: bytes) -> list[str]:
        """Headers that say what the body says, and the session."""
        said = json.loads(text)
        if self._way == "sse" or not isinstance(said, dict) or "method" not in said:
            return ["Mcp-Session-Id: 7"]
        name = (said.get("params") or {}).get("name")
        return ["Mcp-Session-Id: 7", f"Mcp-Method: {said['method']}", *([f"Mcp-Name: {name}"] if name else [])]

    def _ask(self, request: bytes) -> None:
        with suppress(OSError):
            peer = Peer(self._connect())
            peer.socket.settimeout(None)
            self._peers.append(peer)
            peer.send(request)
            self._read(peer)

    def _read(self, peer: Peer) -> None:
        body = b""
        events: EventSplitter | None = None
        for part in _parts(peer):
            if isinstance(part, Head):
                self.statuses.append(part.status)
                is_stream = "text/event-stream" in ", ".join(part.all("content-type"))
                events = EventSplitter(0, "s2c") if is_stream else None
            elif isinstance(part, Data) and events is None:
                body += part.data
            elif isinstance(part, Data) and events is not None:
                for frame in events.feed(0, part.data, [part.span]):
                    self._take_event(frame.sse.event if frame.sse else "", frame.payload)
            elif isinstance(part, End):
                if body:
                    self.inbox.put(body)
                return

    def _take_event(self, event: str, data: bytes) -> None:
        if event == "endpoint":
            self._endpoint.put(data.decode())
        elif data:
            self.inbox.put(data)


class Wire:
    """A client, a server, and mcpsniff between them."""

    def __init__(self, client: Any, server: Any, finish: Any) -> None:
        self.client, self.server = client, server
        self._finish = finish
        self.capture: Captured
        self.said = ""
        """What mcpsniff has said on stderr, once it is over."""

    def finish(self) -> Captured:
        """End the session, and read what was recorded."""
        self.capture, self.said = self._finish()
        return self.capture


WIRES: Sequence[str] = ("stdio", "sse", "json", "streams", "sse-tls", "json-tls", "streams-tls", "streams-forward")
"""stdio; over HTTP legacy event streams, answers as JSON, answers as event streams; these to a server with TLS; and
with TLS on both sides of a forward proxy."""


@contextmanager
def wire(name: str, folder: Path, *options: str) -> Iterator[Wire]:
    """A session on the wire ``name`` through mcpsniff with these options."""
    with ExitStack() as stack:
        yield _pipes(stack, folder, options) if name == "stdio" else _web(stack, name, folder, options)


def _pipes(stack: ExitStack, folder: Path, options: Sequence[str]) -> Wire:
    joined: queue.Queue[socket.socket] = queue.Queue()

    class Bridge(Listening):
        def serve(self, connection: socket.socket) -> None:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            joined.put(connection)

    bridge = stack.enter_context(Bridge())
    wrapped = stack.enter_context(Wrapped(folder, [sys.executable, "-c", BRIDGE, str(bridge.port)], *options))
    server = joined.get(timeout=PATIENCE)
    stack.callback(server.close)

    def finish() -> tuple[Captured, str]:
        assert wrapped.end() == 0, wrapped.stderr
        return wrapped.capture(), wrapped.stderr.decode()

    return Wire(Lines(wrapped.send, wrapped.stdout.read), Lines(server.sendall, server.recv), finish)


def _web(stack: ExitStack, name: str, folder: Path, options: Sequence[str]) -> Wire:
    way, _, tls = name.partition("-")
    server = WebServer(way)
    upstream = stack.enter_context(Upstream(server.play))
    url, trust = upstream.url, []
    if tls:
        authority = Authority(folder)
        terminator = stack.enter_context(Terminator(upstream.port, str(authority.issue())))
        url, trust = terminator.url, ["--upstream-ca", str(authority.file)]
    words = [] if tls == "forward" else [url + ("/sse" if way == "sse" else "/mcp")]
    command = "forward" if tls == "forward" else "http"
    home = {"HOME": str(folder)} if tls else {}
    relay = stack.enter_context(Relay(folder, *words, *trust, *options, command=command, env=home))
    client = WebClient(way, lambda: _connected(relay, folder, terminator.port if tls == "forward" else 0))
    stack.callback(client.close)
    assert server.has_stream.wait(PATIENCE)

    def finish() -> tuple[Captured, str]:
        client.close()
        assert relay.stop() == 0, relay.err
        return relay.capture(), relay.err.decode()

    return Wire(client, server, finish)


def _connected(relay: Relay, home: Path, port: int) -> socket.socket:
    """A connection to the relay; with ``port``, TLS to there through it."""
    plain = socket.create_connection(("127.0.0.1", relay.port), PATIENCE)
    if not port:
        return plain
    plain.sendall(f"CONNECT localhost:{port} HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode())
    came = b""
    while b"\r\n\r\n" not in came:
        came += plain.recv(1)
    context = ssl.create_default_context(cafile=str(home / ".mitmproxy" / "mitmproxy-ca-cert.pem"))
    return context.wrap_socket(plain, server_hostname="localhost")


def _parts(peer: Peer) -> Iterator[Part]:
    """The parts of a response as they come."""
    splitter = Http1Splitter(0, "s2c")
    while True:
        data = peer.read()
        if not data:
            yield from splitter.finish(0)
            return
        yield from splitter.feed(0, data)
