"""The forward proxy when things go wrong: what clients are told, what users are told, and what is left alone."""

import json
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import h2.config
import h2.connection
import h2.events
import pytest
from mitmproxy.tls import TlsData

from mcpsniff.errors import McpsniffError
from mcpsniff.proxy.mitm import handshakes
from mcpsniff.proxy.mitm.distrust import HUNG_UP, Distrust
from mcpsniff.proxy.mitm.standing import summary
from mcpsniff.proxy.mitm.trust import authority
from tests.mitm.certificates import Authority
from tests.mitm.http2 import Http2Server
from tests.mitm.proxied import ASK, JSON, SAID, Proxy, home, served, serving, talk, upstream_ca
from tests.proxy.listening import Listening
from tests.proxy.relayed import Peer, Upstream, answer, post
from tests.proxy.wrapped import wait_for

__all__ = ["home", "upstream_ca"]


def issuer(proxy: Proxy, host: str, name: str, port: int) -> str:
    """Who has issued the certificate that a client sees which goes to ``host`` and asks for ``name``."""
    context = ssl.create_default_context(cafile=proxy.session.ca_path)
    context.load_verify_locations(str(proxy.authority))
    with context.wrap_socket(proxy.tunnel(host, port), server_hostname=name) as connection:
        found = cast(dict[str, Any], connection.getpeercert())
        connection.sendall(post(ASK, JSON))
        assert Peer(connection).next_message()[1] == SAID
    return str(dict(pair for names in found["issuer"] for pair in names)["commonName"])


@pytest.mark.parametrize(
    ("only", "host", "name", "is_read"),
    [
        ("127.0.0.1", "localhost", "localhost", False),
        ("127.0.0.1", "127.0.0.1", "127.0.0.1", True),
        ("localhost", "127.0.0.1", "localhost", True),
        ("localhost", "127.0.0.1", "127.0.0.1", False),
        ("*.localhost", "localhost", "localhost", False),
        ("localhost:1", "localhost", "localhost", False),
    ],
)
def test_only_means_the_address_or_the_name_that_tls_asks_for(  # noqa: PLR0917
    tmp_path: Path, upstream_ca: Authority, only: str, host: str, name: str, is_read: bool
) -> None:
    proxy = Proxy(tmp_path, upstream_ca.file, [only])
    with served(upstream_ca) as (_, secure), proxy.running():
        assert (issuer(proxy, host, name, secure.port) == "mitmproxy") is is_read
    assert len(proxy.heads) == is_read
    assert list(proxy.seen.others) == ([] if is_read else [f"{host}:{secure.port}"])
    if not is_read:
        assert [what["text"] for _, kind, _, what in proxy.records if kind == "comment"] == [
            "nothing is recorded: no MCP came through the proxy; what was said past it is unknown"
        ]


def test_a_host_header_decides_nothing(tmp_path: Path) -> None:
    """Neither in a tunnel nor without one, and what is left out is written down in neither."""
    proxy = Proxy(tmp_path, None, ["localhost"], everything=True)
    with Upstream(serving()) as upstream, proxy.running():
        with Peer(proxy.tunnel("127.0.0.1", upstream.port)) as inside:
            assert talk(inside, post(ASK, JSON, host="localhost")) == [SAID]
        with Peer(proxy.connect()) as plain:
            asked = post(ASK, JSON, host="localhost", target=f"http://127.0.0.1:{upstream.port}/mcp")
            assert talk(plain, asked, asked) == [SAID, SAID]
    assert proxy.heads == []
    assert list(proxy.seen.others) == [f"127.0.0.1:{upstream.port}"]


def test_what_only_leaves_out_passes_whatever_it_is(tmp_path: Path) -> None:
    """Bytes that begin like TLS and are none, too."""
    sent = b"\x16\x03\x01\x00\x05\x02\x00\x00\x01\x00 and more"
    proxy = Proxy(tmp_path, None, ["elsewhere"])
    with (
        Upstream(lambda peer: peer.send(peer.read_until(b"more"))) as upstream,
        proxy.running(),
        Peer(proxy.tunnel("127.0.0.1", upstream.port)) as peer,
    ):
        peer.send(sent)
        assert peer.read_all() == sent


def test_a_server_that_lets_wait_is_told_of_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshakes, "PATIENCE", 0.2)
    proxy = Proxy(tmp_path, None, [])
    with Upstream(lambda peer: peer.read_all()) as upstream, proxy.running():
        context = ssl.create_default_context()
        for _ in range(2):
            connection = proxy.tunnel("127.0.0.1", upstream.port)
            connection.settimeout(0.6)
            with pytest.raises(TimeoutError):
                context.wrap_socket(connection, server_hostname="localhost")
    (told,) = proxy.told
    place = f"127.0.0.1:{upstream.port}"
    assert told.startswith(f"the upstream https://{place} does not answer the TLS handshake (")
    assert told.endswith(f"is it plain http://{place}?")
    assert told in [what["text"] for _, kind, _, what in proxy.records if kind == "comment"]


def test_a_server_that_answers_in_plain_http_is_told_with_the_url(tmp_path: Path) -> None:
    def plain(peer: Peer) -> None:
        peer.read()
        peer.send(answer(b"what?", status="400 Bad Request"))

    proxy = Proxy(tmp_path, None, [])
    with Upstream(plain) as upstream, proxy.running(), proxy.secure(upstream.port, proxy.session.ca_path) as peer:
        peer.send(post(ASK, JSON, target="/mcp?key=1"))
        head, body = peer.next_message()
    place = f"localhost:{upstream.port}"
    assert (head.status, head.get("content-type")) == (502, "text/plain; charset=utf-8")
    assert body.decode() == (
        f"mcpsniff: TLS with the upstream https://{place} failed: it answers in plain text, as servers of http:// do."
        f" Use http://{place}/mcp for it.\n"
    )


def test_a_tunnel_to_nowhere_is_answered_in_our_words(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    proxy = Proxy(tmp_path, None, [])
    with proxy.running():
        for host, why in ((f"127.0.0.1:{port}", f"127.0.0.1:{port}: Connection refused"), ("no.invalid:443", "n")):
            with Peer(proxy.connect()) as peer:
                peer.send(f"CONNECT {host} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                said = peer.read_all().decode()
            assert said.startswith("HTTP/1.1 502 Bad Gateway\r\nServer: mcpsniff/")
            assert f"mcpsniff: cannot reach the upstream https://{host.removesuffix(':443')} ({why}" in said
            assert "<html" not in said
            assert "connection_strategy" not in said


def test_a_request_to_the_proxy_itself_is_answered_in_our_words(tmp_path: Path) -> None:
    proxy = Proxy(tmp_path, None, [])
    with proxy.running():
        for request in (b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", b"GET / HTTP/1.0\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n"):
            with Peer(proxy.connect()) as peer:
                peer.send(request)
                said = peer.read_all()
            assert said.startswith(b"HTTP/1.1 403 Forbidden\r\nServer: mcpsniff/"), said
            assert b"run mcpsniff http URL" in said
    assert (proxy.seen.recorded, proxy.seen.unrecorded, proxy.seen.rejected, list(proxy.seen.others)) == (0, 0, 3, [])
    assert summary(proxy.seen) == "nothing is recorded: mcpsniff itself answered 3 requests"


def test_what_cannot_be_read_is_told_once_without_a_word_of_it(tmp_path: Path) -> None:
    proxy = Proxy(tmp_path, None, [])
    with proxy.running():
        for _ in range(2):
            with Peer(proxy.connect()) as peer:
                peer.send(post(ASK, JSON, target="http://secret:word/mcp"))
                assert peer.read_all().startswith(b"HTTP/1.1 400 ")
    why = "a client was answered 400: what the client sends cannot be read as HTTP/1.1 (Bad HTTP request line"
    assert proxy.told[0].startswith(why)
    comments = [what["text"] for _, kind, _, what in proxy.records if kind == "comment"]
    assert comments[:-1] == proxy.told == list(proxy.seen.rejections)
    assert "secret" not in str(proxy.records) + str(proxy.told)
    assert (len(proxy.told), proxy.seen.rejected) == (1, 2)


def test_an_ipv6_address_without_brackets_is_what_host_says(tmp_path: Path) -> None:
    try:
        upstream = Upstream(serving(), socket.AF_INET6)
    except OSError:
        pytest.skip("this machine has no IPv6")
    proxy = Proxy(tmp_path, None, [])
    with upstream, proxy.running():
        target = f"http://::1:{upstream.port}/mcp"
        with Peer(proxy.connect()) as peer:
            assert talk(peer, *[post(ASK, JSON, host=f"[::1]:{upstream.port}", target=target)] * 2) == [SAID, SAID]
        for host in ("[::1]", f"[::2]:{upstream.port}", f"::1:{upstream.port}", "localhost"):
            with Peer(proxy.connect()) as peer:
                peer.send(post(ASK, JSON, host=host, target=target))
                assert peer.read_all().startswith(b"HTTP/1.1 400 ")
    assert (proxy.seen.recorded, list(proxy.seen.hosts)) == (2, [f"http://[::1]:{upstream.port}"])
    assert len(proxy.told) == 1


@pytest.mark.parametrize("protocol", ["http/1.1", "h2"])
def test_so_is_one_that_goes_to_the_proxy_with_tls(tmp_path: Path, protocol: str) -> None:
    """With HTTP/2 it names the proxy as the server, as does a tunnel to itself."""
    proxy = Proxy(tmp_path, None, [])
    with proxy.running():
        context = ssl.create_default_context(cafile=proxy.session.ca_path)
        context.set_alpn_protocols([protocol])
        with context.wrap_socket(proxy.connect(), server_hostname="localhost") as connection:
            if protocol == "h2":
                head, body, _ = Http2Client(connection).ask(ASK, authority=f"127.0.0.1:{proxy.port}")
                said = head[":status"].encode() + body
            else:
                connection.sendall(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{proxy.port}\r\n\r\n".encode())
                said = connection.recv(1 << 16)
        with Peer(proxy.connect()) as peer:
            peer.send(f"CONNECT 127.0.0.1:{proxy.port} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            tunnel = peer.read_all()
    for answer_ in (said, tunnel):
        assert b"403" in answer_
        assert b"mcpsniff: this is a proxy: " in answer_
        assert b"destination unknown" not in answer_


class Http2Client:
    """One connection of a client of HTTP/2."""

    def __init__(self, connection: ssl.SSLSocket) -> None:
        self._socket = connection
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        self.h2.initiate_connection()

    def ask(self, body: bytes, authority: str = "localhost") -> tuple[dict[str, str], bytes, int | None]:
        """Return head, body, and by which error the stream was reset."""
        number = self.h2.get_next_available_stream_id()
        place = [(":method", "POST"), (":scheme", "https"), (":authority", authority), (":path", "/mcp")]
        self.h2.send_headers(number, [*place, ("content-type", "application/json")])
        self.h2.send_data(number, body, end_stream=True)
        head: dict[str, str] = {}
        came = b""
        while True:
            self._socket.sendall(self.h2.data_to_send())
            for event in self.h2.receive_data(self._socket.recv(1 << 16)):
                if isinstance(event, h2.events.ResponseReceived):
                    head = {str(name): str(value) for name, value in event.headers or ()}
                elif isinstance(event, h2.events.DataReceived):
                    came += event.data or b""
                elif isinstance(event, h2.events.StreamReset):
                    return head, came, int(event.error_code or 0)
                elif isinstance(event, h2.events.StreamEnded):
                    return head, came, None


@contextmanager
def http2(proxy: Proxy, port: int) -> Iterator[Http2Client]:
    context = ssl.create_default_context(cafile=proxy.session.ca_path)
    context.set_alpn_protocols(["h2"])
    with context.wrap_socket(proxy.tunnel("localhost", port), server_hostname="localhost") as connection:
        assert connection.selected_alpn_protocol() == "h2"
        yield Http2Client(connection)


def test_clients_of_http2_are_answered_in_our_words(tmp_path: Path) -> None:
    proxy = Proxy(tmp_path, None, [])
    with served(Authority(tmp_path, "stranger")) as (_, secure), proxy.running(), http2(proxy, secure.port) as client:
        for _ in range(2):
            head, body, reset = client.ask(ASK)
            assert (head[":status"], reset) == ("502", None)
            assert head["server"].startswith("mcpsniff/")
            assert b"mcpsniff: the upstream https://localhost" in body
            assert b"is not trusted" in body
    assert len(proxy.told) == 1
    assert [what["by"] for _, kind, _, what in proxy.records if kind == "rewrite"] == ["mcpsniff"] * 2
    assert [what["how"] for _, kind, _, what in proxy.records if kind == "close"] == ["eof"] * 4


def test_a_stream_that_the_server_resets_is_reset_for_a_client_of_http2(tmp_path: Path, upstream_ca: Authority) -> None:
    proxy = Proxy(tmp_path, upstream_ca.file, [])
    with (
        Http2Server(str(upstream_ca.issue()), lambda stream: stream.reset()) as server,
        proxy.running(),
        http2(proxy, int(server.url.rpartition(":")[2])) as client,
    ):
        assert client.ask(ASK) == ({}, b"", 2)
    assert [what["how"] for _, kind, channel, what in proxy.records if kind == "close" and channel == 1] == ["reset"]


@pytest.mark.parametrize(
    ("error", "refusal", "words"),
    [
        ("tlsv1 alert unknown ca", "unknown ca", ""),
        ("OpenSSL Error([('SSL routines', '', 'ssl/tls alert certificate unknown')])", "certificate unknown", ""),
        ("sslv3 alert bad certificate", "bad certificate", ""),
        ("The client disconnected during the handshake. If this happens consistently for x, this may", "", HUNG_UP),
        (
            "The client may not trust the proxy's certificate for x (OpenSSL Error([('a', '', 'no shared cipher')]))",
            "",
            "did not agree on TLS (no shared cipher)",
        ),
        ("Client and mitmproxy cannot agree on a TLS version to use. You may", "", "(no version in common)"),
        ("OpenSSL Error([('SSL routines', '', 'tlsv1 alert protocol version')])", "", "(protocol version)"),
        ("connection closed early", "", ""),
    ],
)
def test_a_refused_certificate_is_told_from_a_handshake_that_ends_otherwise(
    error: str, refusal: str, words: str
) -> None:
    left: list[tuple[str, str, bool]] = []
    distrust = Distrust(lambda *_: None, lambda *what: left.append(what))
    server = SimpleNamespace(address=("mcp.test", 443))
    conn = SimpleNamespace(id="1", error=error, sni=None)
    data = cast(TlsData, SimpleNamespace(conn=conn, context=SimpleNamespace(server=server)))
    distrust.tls_failed_client(data)
    assert (distrust.refusals, left) == ([], [])  # it was shown no certificate
    for _ in range(2):
        distrust.tls_start_client(data)
        distrust.tls_failed_client(data)
    assert distrust.refusals == ([("mcp.test:443", refusal)] if refusal else [])
    assert [host for host, _, _ in left] == (["mcp.test:443"] if words else [])
    assert all(said.endswith(words) for _, said, _ in left)
    assert distrust.suspects == ([("mcp.test:443", HUNG_UP)] if words == HUNG_UP else [])
    assert bool(distrust.disagreed) == (words not in {"", HUNG_UP})


@pytest.mark.parametrize("comes_back", [False, True])
def test_a_client_that_hangs_up_when_it_was_shown_our_certificate_is_likely_to_refuse_it(
    tmp_path: Path, upstream_ca: Authority, comes_back: bool
) -> None:
    """As Python's asyncio and Node do, without an alert."""
    proxy = Proxy(tmp_path, upstream_ca.file, [])
    hello = ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), hello, server_hostname="localhost").do_handshake()
    with served(upstream_ca) as (_, secure), proxy.running():
        connection = proxy.tunnel("localhost", secure.port)
        connection.sendall(hello.read())
        connection.recv(1)
        connection.close()
        assert wait_for(lambda: bool(proxy.told))
        if comes_back:
            with proxy.secure(secure.port, proxy.session.ca_path) as peer:
                assert talk(peer, post(ASK, JSON)) == [SAID]
    place = f"localhost:{secure.port}"
    assert (list(proxy.seen.refusals), list(proxy.seen.suspects)) == ([], [(place, HUNG_UP)] * (not comes_back))
    assert proxy.told[0].startswith(f"a client {HUNG_UP} for {place}; if it always does, it may not trust mcpsniff's")
    comments = [what["text"] for _, kind, _, what in proxy.records if kind == "comment"]
    assert comments[0] == f"a client {HUNG_UP} for {place}"
    concluded = f"a client refused mcpsniff's certificate for {place}, it seems ({HUNG_UP})"
    assert comments.count(concluded) == (not comes_back)
    assert summary(proxy.seen) == (
        f"recorded 1 HTTP exchange with https://{place}"
        if comes_back
        else f"nothing is recorded: what a client had to say to {place} is unknown"
    )


class Picky(Listening):
    """A server that lets nobody in without a certificate, with this version of TLS."""

    def __init__(self, ca: Authority, version: ssl.TLSVersion) -> None:
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(ca.issue())
        self._context.load_verify_locations(ca.file)
        self._context.verify_mode = ssl.CERT_REQUIRED
        self._context.maximum_version = version
        super().__init__()

    def serve(self, connection: socket.socket) -> None:
        with suppress(OSError), self._context.wrap_socket(connection, server_side=True) as secure:
            secure.recv(1)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_server_that_wants_a_certificate_is_told_of(
    tmp_path: Path, upstream_ca: Authority, version: ssl.TLSVersion
) -> None:
    proxy = Proxy(tmp_path, upstream_ca.file, [])
    with (
        Picky(upstream_ca, version) as server,
        proxy.running(),
        proxy.secure(server.port, proxy.session.ca_path) as peer,
    ):
        peer.send(post(ASK, JSON, "Accept: application/json"))
        head, body = peer.next_message()
    assert head.status == 502
    assert "it wants a certificate of its client, and mcpsniff has none" in json.loads(body)["error"]
    assert len(proxy.told) == 1


def test_an_authority_that_is_over_is_told_of_with_what_to_do(tmp_path: Path) -> None:
    over = Authority(tmp_path).issue(days=-1).read_bytes()
    for name in ("mitmproxy-ca.pem", "mitmproxy-ca-cert.pem"):
        (tmp_path / name).write_bytes(over)
    with pytest.raises(McpsniffError, match=r"ended on [0-9-]{10}: remove .*mitmproxy-ca\* to have a new one made"):
        authority(str(tmp_path))
