"""Public bug cases about HTTP (tests/cases/cases.json), as far as the relay decides them; each has its number."""

import json
import os
import signal
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from mcpsniff.proxy.address import parse_upstream
from mcpsniff.proxy.dial import Dialler
from tests.proxy.relayed import EVENTS, Peer, Relay, Upstream, answer, chunk, closes, echo, get, post
from tests.proxy.wrapped import case_pieces, wait_for

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


def test_b53_each_event_arrives_before_the_next_one_is_sent(tmp_path: Path) -> None:
    turn = threading.Semaphore(0)

    def stream(peer: Peer) -> None:
        peer.next_message()
        peer.send(EVENTS + b"Transfer-Encoding: chunked\r\n\r\n")
        for number in range(5):
            assert turn.acquire(timeout=60)
            peer.send(chunk(b"data: event number %d\n\n" % number))
        turn.acquire(timeout=60)

    with Upstream(stream) as upstream, Relay(tmp_path, upstream.url) as relay, relay.connect() as client:
        client.send(get())
        client.read_until(b"\r\n\r\n")
        for number in range(5):
            turn.release()
            client.read_until(b"number %d\n\n\r\n" % number)


def test_b58_nothing_on_the_way_has_a_time_limit() -> None:
    """A test cannot wait for 330 s, but the sockets can be asked: they wait for ever."""
    with Upstream(echo) as upstream:
        dialled, _ = Dialler(parse_upstream(upstream.url)).dial()
        with dialled:
            assert dialled.gettimeout() is None
            assert dialled.getblocking()
            for limit in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
                assert not any(dialled.getsockopt(socket.SOL_SOCKET, limit, 16))
            assert not dialled.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


def test_b60_clients_that_vanish_take_their_upstream_connections_with_them(tmp_path: Path) -> None:
    gone = threading.Semaphore(0)

    def stream(peer: Peer) -> None:
        peer.next_message()
        peer.send(EVENTS + b"\r\ndata: x\n\n")
        assert peer.sees_reset()
        gone.release()

    with Upstream(stream) as upstream, Relay(tmp_path, upstream.url) as relay:
        before = relay.footprint_at_rest()
        clients = [relay.connect() for _ in range(200)]
        for client in clients:
            client.send(get())
        for client in clients:
            client.read_until(b"data: x\n\n")
        assert before == (0, 0) or relay.footprint()[0] == before[0] + 400
        for client in clients:
            client.reset()
        for _ in clients:
            assert gone.acquire(timeout=60)
        assert wait_for(lambda: relay.footprint() == before)
        capture = relay.recorded(lambda capture: len(closes(capture)) == 400)
    ends = closes(capture)
    assert [ends[channel] for channel in range(0, 400, 2)] == [{"how": "reset"}] * 200
    assert [ends[channel] for channel in range(1, 400, 2)] == [
        {"how": "aborted", "error": "the client closed its end"}
    ] * 200
    assert b"notifications/cancelled" not in capture.path.read_bytes()


@pytest.mark.parametrize(
    "framing", [b"Transfer-Encoding: chunked\r\n\r\n1f\r\n", b"\r\n", b"Content-Length: 99\r\n\r\n"]
)
def test_b61_a_stream_that_breaks_off_ends_abnormally(tmp_path: Path, framing: bytes) -> None:
    read = threading.Event()

    def breaks(peer: Peer) -> None:
        peer.next_message()
        peer.send(EVENTS + framing + b'data: {"jsonrpc"')
        assert read.wait(60)
        peer.reset()

    with Upstream(breaks) as upstream, Relay(tmp_path, upstream.url) as relay, relay.connect() as client:
        client.send(get())
        client.read_until(b'{"jsonrpc"')
        read.set()
        assert client.sees_reset()
        assert client.came == EVENTS + framing + b'data: {"jsonrpc"'
        capture = relay.recorded(lambda capture: len(closes(capture)) == 2)
    assert closes(capture) == {0: {"how": "aborted", "error": "the server closed its end"}, 1: {"how": "reset"}}
    assert capture.data(1) == client.came


def legacy(endpoint: bytes, targets: list[str]) -> Upstream:
    """A server of the legacy transport that names ``endpoint``, and keeps the targets it is asked for."""
    posted = threading.Event()

    def serve(peer: Peer) -> None:
        while True:
            head, _ = peer.next_message()
            targets.append(head.target or "")
            if head.method == "POST":
                peer.send(answer(b"Accepted", status="202 Accepted"))
                posted.set()
                continue
            peer.send(EVENTS + b"Transfer-Encoding: chunked\r\n\r\n")
            peer.send(
                chunk(b"event: endpoint\r\ndata: " + endpoint.replace(b"{port}", b"%d" % upstream.port) + b"\r\n\r\n")
            )
            assert posted.wait(60)
            peer.send(chunk(b"data: {}\r\n\r\n"))
            peer.read()

    upstream = Upstream(serve)
    return upstream


def test_b63_an_endpoint_with_an_absolute_path_passes_untouched(tmp_path: Path) -> None:
    targets: list[str] = []
    with legacy(b"/base/messages?sid=1", targets) as upstream, Relay(tmp_path, f"{upstream.url}/base/sse") as relay:
        assert relay.addresses() == [f"http://127.0.0.1:{relay.port}/base/sse"]
        with relay.connect() as stream:
            stream.send(get("/base/sse"))
            stream.read_until(b"event: endpoint\r\ndata: /base/messages?sid=1\r\n\r\n")
            assert relay.ask(post(PING, target="/base/messages?sid=1"))[0].status == 202
            stream.read_until(b"data: {}")
    assert targets == ["/base/sse", "/base/messages?sid=1"]


@pytest.mark.parametrize("again", [False, True], ids=["first request", "after another request"])
def test_b64_an_absolute_endpoint_is_made_relative_and_that_is_recorded(tmp_path: Path, again: bool) -> None:
    targets: list[str] = []
    with legacy(b"http://localhost:{port}/messages?sid=1", targets) as upstream, Relay(tmp_path, upstream.url) as relay:
        with relay.connect() as stream:
            if again:  # a client that looks for Streamable HTTP first, on the same connection
                stream.send(post(PING))
                stream.next_message()
            before = len(stream.came)
            stream.send(get())
            came = stream.read_until(b"\r\n\r\n\r\n")
            relative = b"data: /messages?sid=1\r\n:"
            assert relative in came
            assert relay.ask(post(PING, target="/messages?sid=1"))[0].status == 202
            stream.read_until(b"data: {}")
        capture = relay.recorded(lambda capture: len(capture.bodies("close", 1)) == 1)
    assert targets[-2:] == ["/sse", "/messages?sid=1"]
    (rewrite,) = capture.bodies("rewrite", 1)
    recorded = capture.data(1)
    at, size = rewrite["start"], rewrite["length"]
    assert recorded[at : at + size] == b"http://localhost:%d/messages?sid=1" % upstream.port
    assert rewrite["by"] == "mcpsniff"
    assert len(rewrite["data"]) == size
    left = recorded[:at] + rewrite["data"].encode() + recorded[at + size :]
    assert left[: len(stream.came)] == stream.came
    assert before < at < len(came)


def test_b65_host_passes_as_sent_to_a_loopback_upstream(tmp_path: Path) -> None:
    """The issue decides: there the server itself can see, and refuse, what a browser sends."""

    def shows_host(peer: Peer) -> None:
        head, _ = peer.next_message()
        peer.send(answer(b"", status="421 Misdirected Request") if head.get("host") != "a.b:1" else answer(b"ok"))

    with Upstream(shows_host) as upstream, Relay(tmp_path, upstream.url) as relay:
        assert relay.ask(post(PING, host="a.b:1"))[0].status == 200
        assert relay.ask(post(PING, host="127.0.0.1"))[0].status == 421


def test_b65_host_is_the_upstreams_where_that_is_asked_for(tmp_path: Path) -> None:
    def shows_host(peer: Peer) -> None:
        head, _ = peer.next_message()
        peer.send(answer((head.get("host") or "").encode()))

    with Upstream(shows_host) as upstream, Relay(tmp_path, upstream.url, "--host-header", "upstream") as relay:
        assert relay.ask(post(PING, host=f"localhost:{relay.port}"))[1] == upstream.url.removeprefix("http://").encode()
        capture = relay.recorded(lambda capture: capture.bodies("close", 1))
    (rewrite,) = capture.bodies("rewrite", 0)
    recorded = capture.data(0)
    assert recorded[rewrite["start"] :][: rewrite["length"]] == b"localhost:%d" % relay.port
    assert rewrite["data"] == f"127.0.0.1:{upstream.port}"


def test_b67_b70_b73_headers_pass_as_they_are_both_ways(tmp_path: Path) -> None:
    """Session, revision, connection-level ones (the issue decides on those), in order, case and number as sent."""
    request = post(
        PING,
        "Mcp-Session-Id: Ab~1.x",
        "MCP-Protocol-Version: 2025-06-18",
        "x-b: 1",
        "X-A: 2",
        "x-b: 3",
        "Content-TYPE: application/json",
        "Connection: keep-alive, X-Hop",
        "X-Hop: 1",
        "Proxy-Authorization: Basic Zm9vOmJhcg==",
    )
    reply = answer(b"{}", "Mcp-Session-Id: Ab~1.x", "set-cookie: a=1", "X-z:  odd \t", "Set-Cookie: b=2")
    deletion = b"DELETE /mcp HTTP/1.1\r\nHost: x\r\nMcp-Session-Id: Ab~1.x\r\n\r\n"

    def serve(peer: Peer) -> None:
        peer.next_message()
        peer.send(reply)
        peer.read_all()

    with Upstream(serve) as upstream, Relay(tmp_path, upstream.url, "--keep-secrets") as relay:
        with relay.connect() as client:
            client.send(request)
            client.next_message()
            client.send(deletion)
            client.half_close()
            assert client.read_all() == reply
        assert upstream.peers[0].came == request + deletion
        capture = relay.recorded(lambda capture: len(closes(capture)) == 2)
    assert (capture.data(0), capture.data(1)) == (request + deletion, reply)


def test_b74_a_redirect_is_relayed_and_not_followed(tmp_path: Path) -> None:
    def redirects(peer: Peer) -> None:
        head, _ = peer.next_message()
        assert head.target == "/mcp"
        peer.send(answer(b"", f"Location: http://127.0.0.1:{upstream.port}/mcp/", status="307 Temporary Redirect"))

    with Upstream(redirects) as upstream, Relay(tmp_path, upstream.url) as relay:
        head, _ = relay.ask(post(PING))
        assert (head.status, head.get("location")) == (307, f"http://127.0.0.1:{upstream.port}/mcp/")
        assert len(upstream.peers) == 1


def test_b76_an_answer_of_ours_is_marked_as_ours(tmp_path: Path) -> None:
    with Upstream(echo) as upstream:
        url = upstream.url
    with Relay(tmp_path, url) as relay:
        head, body = relay.ask(post(PING, "Accept: application/json, text/event-stream"))
        capture = relay.recorded(lambda capture: len(closes(capture)) == 2)
    assert (head.status, (head.get("server") or "").partition("/")[0]) == (502, "mcpsniff")
    told = json.loads(body)
    place = url.removeprefix("http://")
    assert (told["jsonrpc"], told["id"], told["error"]["code"]) == ("2.0", None, -32000)
    assert told["error"]["message"].startswith(
        f"mcpsniff: cannot reach the upstream {url} ({place}: Connection refused)"
    )
    assert told["error"]["data"] == {"by": "mcpsniff", "upstream": url, "tried": [f"{place}: Connection refused"]}
    assert capture.data(1) == b""
    (rewrite,) = capture.bodies("rewrite", 1)
    assert (rewrite["by"], rewrite["start"], rewrite["length"]) == ("mcpsniff", 0, 0)
    assert rewrite["data"].encode().endswith(body)
    assert "server" not in capture.bodies("open", 1)[0]["meta"]


def test_b77_statuses_without_content_pass(tmp_path: Path) -> None:
    replies = [
        b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 405 Method Not Allowed\r\nAllow: POST\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\n\r\n",
    ]

    def serve(peer: Peer) -> None:
        for reply in replies:
            peer.next_message()
            peer.send(reply)
        peer.read()

    with Upstream(serve) as upstream, Relay(tmp_path, upstream.url) as relay, relay.connect() as client:
        for request in (post(PING), get("/mcp"), b"DELETE /mcp HTTP/1.1\r\nHost: x\r\n\r\n", post(PING)):
            client.send(request)
            client.next_message()
        assert client.came == b"".join(replies)


def test_b79_all_bytes_of_a_streamed_body_pass_to_the_last_one(tmp_path: Path) -> None:
    pieces = [b"a" * 4096, b"b" * 4096, b"c" * 512]

    def serve(peer: Peer) -> None:
        _, body = peer.next_message()
        assert body == b"".join(pieces)
        peer.send(b"HTTP/1.1 200 OK\r\n\r\n", *pieces)

    with Upstream(serve) as upstream, Relay(tmp_path, upstream.url) as relay, relay.connect() as client:
        client.send(post(b"".join(pieces)))
        assert client.read_all() == b"HTTP/1.1 200 OK\r\n\r\n" + b"".join(pieces)
        client.socket.close()
        capture = relay.recorded(lambda capture: len(closes(capture)) == 2)
    assert capture.data(1) == client.came


@pytest.mark.parametrize("options", [[], ["--host-header", "upstream", "--allow-host", "*"]], ids=["blind", "screened"])
def test_b133_the_target_passes_byte_for_byte(tmp_path: Path, options: list[str]) -> None:
    targets = ["/mcp", "/mcp/", "/mcp?x=1", "/mcp%2Fa", "//mcp", "/a/../b", "/%", "/mcp?a=b%20c&&", "/mcp#f", "*"]
    seen: list[str] = []

    def serve(peer: Peer) -> None:
        while True:
            head, _ = peer.next_message()
            seen.append(head.target or "")
            peer.send(answer(b""))

    with Upstream(serve) as upstream, Relay(tmp_path, upstream.url, *options) as relay, relay.connect() as client:
        for target in targets:
            client.send(post(PING, target=target))
            client.next_message()
    assert seen == targets


def test_b134_what_does_not_name_us_is_refused_and_reaches_nobody(tmp_path: Path) -> None:
    with Upstream(echo) as upstream, Relay(tmp_path, upstream.url, "--host-header", "upstream") as relay:
        (request,) = case_pieces("B134")
        head, body = relay.ask(request)
        assert (head.status, (head.get("server") or "").partition("/")[0]) == (403, "mcpsniff")
        assert b"rebind.example:8931" in body
        capture = relay.recorded(lambda capture: len(closes(capture)) == 2)
        assert [peer.came for peer in upstream.peers] == [b""]
    assert capture.data(0) == request
    assert capture.data(1) == b""
    assert capture.bodies("rewrite", 1)[0]["by"] == "mcpsniff"
    assert closes(capture)[0] == {"how": "aborted", "error": "mcpsniff refused the request"}


def test_b136_no_request_starts_a_process(tmp_path: Path) -> None:
    def serve(peer: Peer) -> None:
        head, _ = peer.next_message()
        assert "command=touch" in (head.target or "")
        peer.send(answer(b"", status="404 Not Found"))

    with Upstream(serve) as upstream, Relay(tmp_path, upstream.url) as relay:
        (request,) = case_pieces("B136")
        assert relay.ask(request)[0].status == 404
        parents = subprocess.run(["ps", "-axo", "ppid="], capture_output=True, text=True).stdout.split()
        assert str(os.getpid()) in parents
        assert str(relay.process.pid) not in parents
        assert relay.stop(signal.SIGINT) == 0
    assert not list(tmp_path.rglob("pwned"))
