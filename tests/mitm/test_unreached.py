"""MCP to a server that is not reached: the request and our answer are in the capture, and the transcript shows both."""

import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h2.config
import h2.connection
import h2.events
import pytest

from mcpsniff.proxy.mitm.standing import summary
from tests.cli.running import run
from tests.mitm.certificates import Authority
from tests.mitm.proxied import ASK, JSON, Proxy, home, served
from tests.proxy.relayed import Peer, post

__all__ = ["home"]

NO_NAME = "no-such-host.invalid"
"""A name that never resolves (RFC 2606)."""


@contextmanager
def unused() -> Iterator[int]:
    """A port of this machine at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    yield port


def asked_with_http1(connection: socket.socket, target: str) -> tuple[int, bytes]:
    with Peer(connection) as peer:
        peer.send(post(ASK, JSON, target=target))
        head, body = peer.next_message()
    return head.status or 0, body


def at_once(connection: socket.socket) -> tuple[int, bytes]:
    return asked_with_http1(connection, "/mcp")


def asked_in_pieces(connection: socket.socket) -> tuple[int, bytes]:
    """As clients do that send head and body apart, here as late as can be: after the answer."""
    head, _, content = post(ASK, JSON, target="/mcp").partition(b"\r\n\r\n")
    with Peer(connection) as peer:
        peer.send(head + b"\r\n\r\n")
        answer, body = peer.next_message()
        peer.send(content)
        peer.read_all()
    return answer.status or 0, body


def asked_with_http2(connection: socket.socket) -> tuple[int, bytes]:
    client = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding=None))
    client.initiate_connection()
    names = {":method": "POST", ":scheme": "https", ":authority": "localhost", ":path": "/mcp"}
    client.send_headers(1, [*names.items(), ("content-type", "application/json")])
    client.send_data(1, ASK, end_stream=True)
    connection.sendall(client.data_to_send())
    status, body = 0, b""
    while data := connection.recv(1 << 16):
        for event in client.receive_data(data):
            if isinstance(event, h2.events.ResponseReceived):
                status = int(dict(event.headers or ()).get(b":status", b"0"))
            elif isinstance(event, h2.events.DataReceived):
                body += event.data or b""
            elif isinstance(event, h2.events.StreamEnded | h2.events.StreamReset):
                return status, body
    return status, body


def shown(proxy: Proxy, *words: str) -> str:
    return " ".join(run("show", str(proxy.file), *words).out.split())


def is_answered(proxy: Proxy, origin: str, status: int, body: bytes, why: str) -> None:
    """The client, the capture and the transcript have the same answer, and the request before it."""
    assert status == 502
    assert body.startswith(b"mcpsniff: ")
    assert why in body.decode()
    chunks = [what for _, kind, _, what in proxy.records if kind == "chunk"]
    assert chunks == [ASK.decode()]
    (answer,) = [what for _, kind, _, what in proxy.records if kind == "rewrite"]
    assert answer["by"] == "mcpsniff"
    assert answer["data"].endswith(body.decode())
    text = shown(proxy)
    assert "→ ping" in text
    assert "502 POST" in text
    assert why in text
    assert f"route {proxy_url(proxy)} → {origin} " in text
    assert text.count(body.decode().removeprefix("mcpsniff: ").strip()) == 0  # the whole of it is in the finding
    seen = proxy.seen
    assert (seen.recorded, seen.answered, list(seen.hosts), list(seen.unreached)) == (1, 1, [], [origin])
    assert summary(seen) == f"recorded 1 HTTP request that did not reach {origin}"


def proxy_url(proxy: Proxy) -> str:
    return f"http://127.0.0.1:{proxy.port}"


@pytest.mark.parametrize("host", ["127.0.0.1", NO_NAME])
def test_a_plain_request(tmp_path: Path, host: str) -> None:
    proxy = Proxy(tmp_path, None, [])
    with unused() as port, proxy.running():
        status, body = asked_with_http1(proxy.connect(), f"http://{host}:{port}/mcp")
    is_answered(proxy, f"http://{host}:{port}", status, body, f"cannot reach the upstream http://{host}:{port}")
    assert (b"Check how the host is spelled." in body) == (host == NO_NAME) != (b"Is the server running?" in body)


@pytest.mark.parametrize("host", ["127.0.0.1", NO_NAME])
def test_a_tunnel(tmp_path: Path, host: str) -> None:
    """What was to be said in it is never heard; that there was none is in the capture."""
    proxy = Proxy(tmp_path, None, [])
    with unused() as port, proxy.running(), proxy.connect() as connection:
        connection.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        with Peer(connection) as peer:
            assert b" 502 " in peer.read_until(b"\r\n\r\n")
    why = f"a client that asked for a tunnel was answered 502: cannot reach the upstream https://{host}:{port}"
    comments = [what["text"] for _, kind, _, what in proxy.records if kind == "comment"]
    assert why in comments[0]
    assert comments[1].startswith("nothing is recorded: not every server was reached; ")
    text = shown(proxy)
    assert why in text
    assert "MCP560" in text
    fix = "Check how the host is spelled" if host == NO_NAME else "Start the server, and check host and port"
    assert fix in text
    assert (proxy.seen.recorded, list(proxy.seen.others)) == (0, [f"{host}:{port}"])


def test_a_tunnel_to_a_host_that_only_leaves_out_is_not_written_down(tmp_path: Path) -> None:
    proxy = Proxy(tmp_path, None, ["mcp.example"])
    with unused() as port, proxy.running(), proxy.connect() as connection:
        connection.sendall(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        connection.recv(1 << 16)
    assert str(port) not in "".join(str(record) for record in proxy.records)


@pytest.mark.parametrize(
    ("protocol", "asked"), [("http/1.1", at_once), ("http/1.1", asked_in_pieces), ("h2", asked_with_http2)]
)
def test_a_certificate_that_is_not_trusted(
    tmp_path: Path, protocol: str, asked: Callable[[socket.socket], tuple[int, bytes]]
) -> None:
    proxy = Proxy(tmp_path, None, [])
    with served(Authority(tmp_path, "stranger")) as (_, secure), proxy.running():
        context = ssl.create_default_context(cafile=proxy.session.ca_path)
        context.set_alpn_protocols([protocol])
        connection: Any = context.wrap_socket(proxy.tunnel("localhost", secure.port), server_hostname="localhost")
        with connection:
            assert connection.selected_alpn_protocol() == protocol
            status, body = asked(connection)
    is_answered(proxy, f"https://localhost:{secure.port}", status, body, "is not trusted")
    assert shown(proxy).count("--upstream-ca FILE") == 1
