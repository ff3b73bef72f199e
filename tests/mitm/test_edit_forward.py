"""Edit mode of the forward proxy: what is MCP goes through the relay, and nothing else does."""

import json
import ssl
import threading
from pathlib import Path
from typing import Any

import h2.config
import h2.connection
import h2.events
import pytest

from mcpsniff.capture.reader import open_capture
from tests.mitm.certificates import Authority
from tests.mitm.http2 import Http2Server, Stream
from tests.mitm.proxied import JSON, Proxy, home, upstream_ca
from tests.mitm.terminator import Terminator
from tests.proxy.relayed import EVENTS, Peer, Upstream, answer, chunk, get, post
from tests.proxy.wrapped import PATIENCE

__all__ = ["home", "upstream_ca"]

ADDON = """
from mcpsniff import notification, refuse

def mcp_edit(message):
    if message.method == "ping":
        message.body["method"] = "pong"
    if message.method == "refused":
        return refuse(message, "not today")
    if message.method == "notifications/x":
        return [message, notification("notifications/y")]
    return message
"""
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
PONG = PING.replace(b"ping", b"pong")
SAID = b'{"jsonrpc":"2.0","id":1,"result":{}}'


@pytest.fixture
def addon(tmp_path: Path) -> Path:
    file = tmp_path / "mine.py"
    file.write_text(ADDON)
    return file


def noting(bodies: list[bytes]) -> Any:
    def script(peer: Peer) -> None:
        while True:
            _, body = peer.next_message()
            bodies.append(body)
            peer.send(answer(SAID if body.startswith(b"{") else b"private", JSON))

    return script


def left(records: list[Any], channel: int) -> bytes:
    """What left of a channel."""
    came = "".join([body for _, kind, at, body in records if kind == "chunk" and at == channel])
    out, at = "", 0
    for _, kind, number, body in records:
        if kind == "rewrite" and number == channel:
            out += came[at : body["start"]] + body["data"]
            at = body["start"] + body["length"]
    return (out + came[at:]).encode()


def test_messages_are_changed_and_others_pass_untouched(tmp_path: Path, addon: Path, upstream_ca: Authority) -> None:
    bodies: list[bytes] = []
    proxy = Proxy(tmp_path, upstream_ca.file, [], addon=addon)
    with (
        Upstream(noting(bodies)) as upstream,
        Terminator(upstream.port, str(upstream_ca.issue())) as secure,
        proxy.running(),
        proxy.secure(secure.port, proxy.session.ca_path) as peer,
    ):
        for body in (b"no MCP: ping", PING, b"more", PING.replace(b"ping", b"refused")):
            peer.send(post(body, JSON, target=f"/{body[:2].hex()}"))
            head, said = peer.next_message()
            assert head.status == 200
    assert json.loads(said)["error"]["message"] == "not today"
    assert bodies == [b"no MCP: ping", PONG, b"more"]
    assert (proxy.seen.recorded, proxy.seen.unrecorded) == (2, 2)
    assert proxy.seen.hosts == [f"https://localhost:{secure.port}"]
    text = proxy.file.read_text()
    assert "no MCP" not in text
    assert '"more' not in text
    opened = {at: body for _, kind, at, body in proxy.records if kind == "open"}
    assert [body["meta"]["upstream"] for body in opened.values()] == [f"https://localhost:{secure.port}"] * 2
    assert left(proxy.records, min(opened)).endswith(PONG)
    assert {body["by"] for _, kind, _, body in proxy.records if kind == "rewrite"} == {"mine"}
    assert proxy.told == []


def test_a_body_is_judged_before_it_goes_on(tmp_path: Path, addon: Path, upstream_ca: Authority) -> None:
    bodies: list[bytes] = []
    proxy = Proxy(tmp_path, upstream_ca.file, [], addon=addon)
    foreign = b'{"a": "' + b"x" * 200_000 + b'"}'
    with Upstream(noting(bodies)) as upstream, proxy.running(), Peer(proxy.connect()) as peer:
        head, _, body = post(PING, JSON, target=f"{upstream.url}/mcp").partition(b"\r\n\r\n")
        for piece in (head + b"\r\n\r\n", body[:9], body[9:30], body[30:]):
            peer.send(piece)
        assert peer.next_message()[1] == SAID
        peer.send(post(foreign, JSON, target=f"{upstream.url}/other"))
        assert peer.next_message()[1] == SAID
    assert bodies == [PONG, foreign]
    assert (proxy.seen.recorded, proxy.seen.unrecorded) == (1, 1)
    assert "xxx" not in proxy.file.read_text()


def legacy(came: threading.Event, endpoint: bytes) -> Any:
    """A server of the transport of 2024-11-05, or of another kind of events."""

    def script(peer: Peer) -> None:
        head, _ = peer.next_message()
        if head.method == "POST":
            peer.send(answer(b"", status="202 Accepted"))
            came.set()
            return
        peer.send(EVENTS + b"Transfer-Encoding: chunked\r\n\r\n")
        peer.send(chunk(endpoint[:9]), chunk(endpoint[9:]))
        assert came.wait(PATIENCE)
        peer.send(chunk(b'data: {"jsonrpc":"2.0","method":"notifications/x"}\n\n'), chunk(b""))

    return script


def test_a_stream_is_on_trial_until_it_is_known_to_be_mcp(tmp_path: Path, addon: Path, upstream_ca: Authority) -> None:
    came = threading.Event()
    proxy = Proxy(tmp_path, upstream_ca.file, [], addon=addon)
    with (
        Upstream(legacy(came, b"event: endpoint\ndata: /post?s=1\n\n")) as upstream,
        Terminator(upstream.port, str(upstream_ca.issue())) as secure,
        proxy.running(),
        proxy.secure(secure.port, proxy.session.ca_path) as peer,
        proxy.secure(secure.port, proxy.session.ca_path) as other,
    ):
        peer.send(get())
        assert b"data: /post?s=1\n" in peer.read_until(b"s=1\n\n")
        other.send(post(PING, JSON, target="/post?s=1"))
        assert other.next_message()[0].status == 202
        got = peer.read_until(b"\r\n0\r\n\r\n")
    assert b'"notifications/x"}\n\n' in got
    assert b'event: message\ndata: {"jsonrpc":"2.0","method":"notifications/y"}\n\n' in got
    assert (proxy.seen.recorded, proxy.seen.unrecorded) == (2, 0)
    opened = [body["meta"] for _, kind, _, body in proxy.records if kind == "open"]
    assert [meta["upstream"] for meta in opened] == [f"https://localhost:{secure.port}"] * 4
    assert [body["data"].count("notifications/y") for _, kind, _, body in proxy.records if kind == "rewrite"] == [0, 1]


def test_a_foreign_stream_passes_untouched(tmp_path: Path, addon: Path, upstream_ca: Authority) -> None:
    came = threading.Event()
    came.set()
    proxy = Proxy(tmp_path, upstream_ca.file, [], addon=addon)
    first = b"data: hello\n\n"
    with (
        Upstream(legacy(came, first)) as upstream,
        Terminator(upstream.port, str(upstream_ca.issue())) as secure,
        proxy.running(),
        proxy.secure(secure.port, proxy.session.ca_path) as peer,
    ):
        peer.send(get())
        got = peer.read_until(b"\r\n0\r\n\r\n")
    assert b"notifications/y" not in got
    assert (proxy.seen.recorded, proxy.seen.unrecorded) == (0, 1)
    assert not [kind for _, kind, *_ in proxy.records if kind != "comment"]


def test_http2_clients_share_what_is_idle(tmp_path: Path, addon: Path, upstream_ca: Authority) -> None:
    bodies: list[bytes] = []
    proxy = Proxy(tmp_path, upstream_ca.file, [], addon=addon)

    def script(stream: Stream) -> None:
        bodies.append(stream.body)
        stream.head((":status", "200"), ("content-type", "application/json"))
        stream.data(SAID, end=True)

    with Http2Server(str(upstream_ca.issue()), script) as server, proxy.running():
        context = ssl.create_default_context(cafile=proxy.session.ca_path)
        context.set_alpn_protocols(["h2"])
        with context.wrap_socket(proxy.tunnel("localhost", server.port), server_hostname="localhost") as secure:
            assert secure.selected_alpn_protocol() == "h2"
            client = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding=None))
            client.initiate_connection()
            for number in (1, 3, 5):
                names = {":method": "POST", ":scheme": "https", ":authority": "localhost", ":path": "/mcp"}
                client.send_headers(number, [*names.items(), ("content-type", "application/json")])
                client.send_data(number, PING, end_stream=True)
                secure.sendall(client.data_to_send())
                assert answered(secure, client) == SAID
        assert server.connections == 2  # mitmproxy's own at the beginning, and that of the relay
    assert bodies == [PONG] * 3
    assert proxy.seen.recorded == 3


def answered(secure: ssl.SSLSocket, client: h2.connection.H2Connection) -> bytes:
    """The body of the next response."""
    body = b""
    while True:
        for event in client.receive_data(secure.recv(1 << 16)):
            if isinstance(event, h2.events.DataReceived):
                body += event.data or b""
            elif isinstance(event, h2.events.StreamEnded):
                return body


def test_a_server_that_is_not_trusted_is_answered_for(tmp_path: Path, addon: Path, upstream_ca: Authority) -> None:
    other = Authority(tmp_path, "other CA")
    proxy = Proxy(tmp_path, upstream_ca.file, [], addon=addon)
    with (
        Upstream(noting([])) as upstream,
        Terminator(upstream.port, str(other.issue())) as secure,
        proxy.running(),
        Peer(proxy.connect()) as peer,
    ):
        peer.send(post(PING, JSON, target=f"https://localhost:{secure.port}/mcp"))
        answer, said = peer.next_message()
        peer.read_all()
    assert answer.status == 502
    assert b"is not trusted" in said
    assert (proxy.seen.recorded, proxy.seen.answered) == (1, 1)
    assert list(proxy.seen.unreached) == [f"https://localhost:{secure.port}"]
    (words,) = [body for _, kind, _, body in proxy.records if kind == "rewrite" and body["by"] == "mcpsniff"]
    assert words["data"].endswith(said.decode())
    assert len(proxy.told) == 1


def test_what_goes_on_is_recorded_to_its_end(tmp_path: Path, addon: Path, upstream_ca: Authority) -> None:
    hold = threading.Event()
    proxy = Proxy(tmp_path, upstream_ca.file, [], addon=addon)
    with (
        Upstream(legacy(hold, b"event: endpoint\ndata: /post?s=1\n\n")) as upstream,
        Terminator(upstream.port, str(upstream_ca.issue())) as secure,
        proxy.running(),
        proxy.secure(secure.port, proxy.session.ca_path) as peer,
    ):
        peer.send(get())
        peer.read_until(b"s=1\n\n")
        proxy.seen = proxy.session.finish()
        hold.set()
    capture = open_capture(str(proxy.file))
    assert [record.body["how"] for record in capture.records() if record.kind == "close"] == ["aborted", "aborted"]
    assert not capture.damage
