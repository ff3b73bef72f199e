"""Legs: what the relay of edit mode dials when its server speaks TLS."""

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcpsniff.proxy.address import parse_upstream
from mcpsniff.proxy.dial import UnreachableError
from mcpsniff.proxy.mitm.handshakes import Failure
from mcpsniff.proxy.mitm.legs import LegDialler, Legs, LegSocket, begin
from tests.mitm.certificates import Authority
from tests.mitm.http2 import Http2Server, Stream
from tests.mitm.terminator import Terminator
from tests.proxy.relayed import EVENTS, Peer, Upstream, answer, chunk, get, post
from tests.proxy.wrapped import PATIENCE

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
SAID = b'{"jsonrpc":"2.0","id":1,"result":{}}'
JSON = "Content-Type: application/json"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("legs"))


@pytest.fixture(scope="module")
def said() -> list[str]:
    """What was said to the user."""
    return []


@pytest.fixture(scope="module")
def legs(authority: Authority, said: list[str]) -> Iterator[Legs]:
    def failed(_address: tuple[str, int], failure: Failure) -> None:
        assert failure.refusal is not None
        said.append(failure.refusal.which)

    engine, legs = begin({"upstream_ca": str(authority.file), "insecure": False}, lambda *_: None, failed)
    yield legs
    engine.stop()


def opened(legs: Legs, url: str) -> tuple[Peer, LegSocket]:
    end = legs.open(parse_upstream(url))
    return Peer(end), end


def answering(peer: Peer) -> None:
    while True:
        head, body = peer.next_message()
        peer.send(answer(SAID if body == PING else b"{}", JSON, f"X-Host: {head.get('host')}"))


def test_requests_pass_one_after_another(legs: Legs, authority: Authority) -> None:
    with Upstream(answering) as upstream, Terminator(upstream.port, str(authority.issue())) as secure:
        peer, end = opened(legs, secure.url)
        with peer:
            for _ in range(2):
                peer.send(post(PING, host="anything:1"))
                head, body = peer.next_message()
                assert (head.status, body, head.get("x-host")) == (200, SAID, "anything:1")
        assert secure.names == ["localhost"]  # one connection
    assert end.last_words is None


def test_an_event_stream_passes_event_by_event(legs: Legs, authority: Authority) -> None:
    def script(peer: Peer) -> None:
        peer.next_message()
        peer.send(EVENTS + b"Transfer-Encoding: chunked\r\n\r\n" + chunk(b"data: 1\n\n"))
        assert came.wait(PATIENCE)
        peer.send(chunk(b"data: 2\n\n"))

    came = threading.Event()

    with Upstream(script) as upstream, Terminator(upstream.port, str(authority.issue())) as secure:
        first, _ = opened(legs, secure.url)
        with first:
            first.send(get())
            assert b"data: 2" not in first.read_until(b"data: 1\n\n")
            came.set()
            first.read_until(b"data: 2\n\n")


def test_a_server_that_is_not_trusted_is_told_of_beside_the_connection(
    legs: Legs, tmp_path: Path, said: list[str]
) -> None:
    other = Authority(tmp_path, "other CA")
    with Upstream(answering) as upstream, Terminator(upstream.port, str(other.issue())) as secure:
        peer, end = opened(legs, secure.url)
        with peer:
            peer.send(post(PING))
            assert peer.read_all() == b""
    assert end.last_words is not None
    assert end.last_words.startswith(b"HTTP/1.1 502 ")
    assert b"a CA which mcpsniff does not know" in end.last_words
    assert len([text for text in said if "other CA" in text]) == 1


def test_a_server_that_hangs_up_is_passed_on_as_that(legs: Legs, authority: Authority) -> None:
    with (
        Upstream(lambda peer: peer.next_message()) as upstream,
        Terminator(upstream.port, str(authority.issue())) as secure,
    ):
        peer, end = opened(legs, secure.url)
        with peer:
            peer.send(post(PING))
            assert peer.read_all() == b""
    assert end.last_words is None


def test_what_is_no_request_is_told_of_beside_the_connection(legs: Legs) -> None:
    peer, end = opened(legs, "https://localhost:1")
    with peer:
        peer.send(b"\x16\x03\x01\x02\x00\x01\x00")
        assert peer.read_all() == b""
    assert end.last_words is not None
    assert b"TLS, not HTTP" in end.last_words


def test_a_port_where_nobody_listens_is_told_of(legs: Legs) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    peer, end = opened(legs, f"https://127.0.0.1:{port}")
    with peer:
        peer.send(post(PING))
        assert peer.read_all() == b""
    assert end.last_words is not None
    assert b"Is the server running?" in end.last_words


def test_a_relay_that_leaves_ends_the_connection_to_the_server(legs: Legs, authority: Authority) -> None:
    left = threading.Event()

    def script(peer: Peer) -> None:
        peer.next_message()
        peer.send(EVENTS + b"Transfer-Encoding: chunked\r\n\r\n" + chunk(b"data: 1\n\n"))
        peer.read()
        left.set()

    with Upstream(script) as upstream, Terminator(upstream.port, str(authority.issue())) as secure:
        peer, _ = opened(legs, secure.url)
        with peer:
            peer.send(get())
            peer.read_until(b"data: 1\n\n")
        assert left.wait(PATIENCE)


def test_a_body_of_http2_without_a_length_gets_an_end_that_can_be_missed(legs: Legs, authority: Authority) -> None:
    def script(stream: Stream) -> None:
        stream.head((":status", "200"), ("content-type", "text/event-stream"))
        stream.data(b"data: 1\n\n", end=True)

    with Http2Server(str(authority.issue()), script) as server:
        peer, _ = opened(legs, server.url)
        with peer:
            for _ in range(2):
                peer.send(get())
                head, body = peer.next_message()
                assert (head.framing, body) == ("chunked", b"data: 1\n\n")
        assert server.connections == 1


def test_dialling_after_the_end_fails_in_words() -> None:
    engine, legs = begin({"upstream_ca": None, "insecure": False}, lambda *_: None, lambda *_: None)
    dialler = LegDialler(parse_upstream("https://localhost:1"))
    dialler.legs = legs
    end, address = dialler.dial()
    assert address == ("localhost", 1)
    end.close()
    engine.stop()
    with pytest.raises(UnreachableError):
        dialler.dial()
