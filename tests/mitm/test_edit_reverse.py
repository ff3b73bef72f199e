"""`mcpsniff http https://…` in edit mode: the relay in the clear, and mitmproxy as its way to the server."""

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcpsniff.wire.http1_parts import Head
from tests.mitm.certificates import Authority
from tests.mitm.http2 import Http2Server, Stream
from tests.mitm.secure import secured
from tests.mitm.terminator import Terminator
from tests.proxy.relayed import EVENTS, Peer, Relay, Upstream, answer, chunk, get, post
from tests.proxy.wrapped import PATIENCE

JSON = "Content-Type: application/json"
PING = b'{"jsonrpc": "2.0",  "id": 1, "method": "ping"}'
PONG = PING.replace(b"ping", b"pong")
SAID = b'{"jsonrpc":"2.0","id":1,"result":{"n":1.0}}'
ADDON = """
from mcpsniff import notification, request

def mcp_edit(message):
    if message.method == "ping":
        message.body["method"] = "pong"
    if message.method == "notifications/x":
        return [notification("notifications/before"), message]
    if message.method == "ask":
        return [request("mine"), message]
    return message
"""


@pytest.fixture
def addon(tmp_path: Path) -> str:
    file = tmp_path / "mine.py"
    file.write_text(ADDON)
    return str(file)


def noting(heads: list[Head], bodies: list[bytes]) -> Callable[[Peer], None]:
    def script(peer: Peer) -> None:
        while True:
            head, body = peer.next_message()
            heads.append(head)
            bodies.append(body)
            said = json.loads(body)
            peer.send(answer(SAID.replace(b":1,", b":%s," % json.dumps(said.get("id")).encode()), JSON))

    return script


def left(capture: Any, channel: int) -> bytes:
    """What left of a channel."""
    came, out, at = capture.data(channel).decode(), "", 0
    for _, kind, number, body in capture.records:
        if kind == "rewrite" and number == channel:
            out += came[at : body["start"]] + body["data"]
            at = body["start"] + body["length"]
    return (out + came[at:]).encode()


def test_messages_are_changed_and_made(tmp_path: Path, addon: str) -> None:
    heads: list[Head] = []
    bodies: list[bytes] = []
    with secured(tmp_path, noting(heads, bodies), "--addon", addon, "--host-header", "upstream") as it:
        with it.relay.connect() as peer:
            host = f"127.0.0.1:{it.relay.port}"
            peer.send(post(PING, JSON, "X-b: 1", "x-A: 2", host=host))
            assert peer.next_message()[1] == SAID
            peer.send(post(PING.replace(b"ping", b"ask"), JSON, host=host))
            assert peer.next_message()[1] == SAID
        it.relay.recorded(lambda seen: sum([each[1] == "close" for each in seen.records]) >= 4)
        assert it.relay.stop() == 0
        capture = it.relay.capture()
    assert PONG in bodies
    assert sorted(json.loads(body)["method"] for body in bodies) == ["ask", "mine", "pong"]
    assert {head.get("host") for head in heads} == {f"localhost:{it.terminator.port}"}
    assert [pair for pair in heads[0].headers if pair[0].lower()[:2] == "x-"] == [("X-b", "1"), ("x-A", "2")]
    opened = [body for _, kind, _, body in capture.records if kind == "open"]
    assert {body["meta"]["upstream"] for body in opened} == {f"https://localhost:{it.terminator.port}"}
    assert {body["kind"] for body in opened} == {"tcp"}
    assert len(opened) == 4  # one connection of the client, and one for the request that the addon has made
    assert PONG in left(capture, 0)
    assert f"Host: localhost:{it.terminator.port}".encode() in left(capture, 0)
    assert left(capture, 1).count(SAID) == 2
    assert left(capture, 3) == b""
    assert capture.data(3) != b""


def test_a_live_stream_is_edited(tmp_path: Path, addon: str) -> None:
    came = threading.Event()

    def script(peer: Peer) -> None:
        peer.next_message()
        peer.send(EVENTS + b"Transfer-Encoding: chunked\r\n\r\n")
        peer.send(chunk(b'id: 7\ndata: {"jsonrpc":"2.0","method":"notifications/x"}\n\n'))
        assert came.wait(PATIENCE)
        peer.send(chunk(b'data: {"jsonrpc":"2.0","id":1,"method":"ping"}\n\n'), chunk(b""))

    with secured(tmp_path, script, "--addon", addon) as it:
        with it.relay.connect() as peer:
            peer.send(get("/mcp"))
            got = peer.read_until(b'"notifications/x"}\n\n')
            assert b'event: message\ndata: {"jsonrpc":"2.0","method":"notifications/before"}\n\n' in got
            came.set()
            got = peer.read_until(b"\r\n0\r\n\r\n")
        assert it.relay.stop() == 0
        capture = it.relay.capture()
    assert b'data: {"jsonrpc":"2.0","id":1,"method":"pong"}\n\n' in got
    assert left(capture, 1) == got


def test_a_server_of_http2_is_reached(tmp_path: Path, addon: str) -> None:
    bodies: list[bytes] = []

    def script(stream: Stream) -> None:
        bodies.append(stream.body)
        stream.head((":status", "200"), ("content-type", "application/json"))
        stream.data(SAID, end=True)

    authority = Authority(tmp_path)
    with (
        Http2Server(str(authority.issue()), script) as server,
        Relay(tmp_path, server.url, "--upstream-ca", str(authority.file), "--addon", addon) as relay,
        relay.connect() as peer,
    ):
        for _ in range(2):
            peer.send(post(PING, JSON))
            assert peer.next_message()[1] == SAID
        assert server.connections == 1
    assert bodies == [PONG, PONG]


@pytest.mark.parametrize("insecure", [False, True])
def test_a_server_that_is_not_trusted_is_answered_for_unless_told_otherwise(
    tmp_path: Path, addon: str, insecure: bool
) -> None:
    more = ["--insecure"] * insecure
    bodies: list[bytes] = []
    with secured(tmp_path, noting([], bodies), "--addon", addon, *more, trusts=False) as it, it.relay.connect() as peer:
        peer.send(post(PING, JSON))
        head, body = peer.next_message()
        if insecure:
            assert (head.status, body) == (200, SAID)
            return
        assert peer.read_all().endswith(body)
        assert it.relay.stop() == 0
        capture = it.relay.capture()
    assert (head.status, (head.get("server") or "").split("/")[0]) == (502, "mcpsniff")
    assert b"is not trusted" in body
    assert bodies == []
    assert b"is not trusted" in it.relay.err
    (ours,) = [record[3] for record in capture.records if record[1] == "rewrite" and record[3]["by"] == "mcpsniff"]
    assert ours["data"].endswith(body.decode())
    assert capture.data(1) == b""


def test_foreign_pages_are_refused_before_the_server_is_asked(tmp_path: Path, addon: str) -> None:
    bodies: list[bytes] = []
    with secured(tmp_path, noting([], bodies), "--addon", addon, "--host-header", "upstream") as it:
        head, body = it.relay.ask(post(PING, JSON, host="evil.example"))
        assert (head.status, b"evil.example" in body) == (403, True)
        head, body = it.relay.ask(post(PING, JSON, "Origin: https://evil.example", host=f"127.0.0.1:{it.relay.port}"))
        assert head.status == 403
    assert bodies == []


def test_plain_and_secure_upstreams_stand_side_by_side(tmp_path: Path, addon: str) -> None:
    authority = Authority(tmp_path)
    bodies: list[bytes] = []
    with (
        Upstream(noting([], bodies)) as upstream,
        Terminator(upstream.port, str(authority.issue())) as secure,
        Relay(
            tmp_path, f"a={upstream.url}", f"b={secure.url}", "--upstream-ca", str(authority.file), "--addon", addon
        ) as relay,
    ):
        for address in relay.addresses():
            relay.port = int(address.split(":")[2].split("/")[0])
            assert relay.ask(post(PING, JSON))[1] == SAID
        assert relay.stop() == 0
        files = sorted(file.name[:2] for file in relay.folder.glob("*.mcpcap"))
    assert bodies == [PONG, PONG]
    assert files == ["a-", "b-"]
