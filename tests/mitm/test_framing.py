"""HTTP/1 that is rare, and that mitmproxy alone cannot carry: trailers, and interim responses."""

from pathlib import Path

import pytest

from tests.mitm.secure import Secured, secured
from tests.proxy.relayed import Peer, answer, echo, post

TRAILERS = "after this body came trailers, not recorded and not passed on: x-sum"
SAID = b'{"jsonrpc":"2.0","id":1,"result":{}}'
ASKED = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


def comments(it: Secured) -> list[tuple[int, str]]:
    """The remarks in the capture, with their channels."""
    return [(channel, what["text"]) for _, kind, channel, what in it.relay.capture().records if kind == "comment"]


def test_a_response_with_trailers_has_an_end(tmp_path: Path) -> None:
    def script(peer: Peer) -> None:
        head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n"
        for _ in range(2):
            peer.next_message()
            peer.send(head + b"%x\r\n%s\r\n0\r\nX-Sum: 1\r\n\r\n" % (len(SAID), SAID))

    with secured(tmp_path, script) as it, it.relay.connect() as client:
        for _ in range(2):  # the connection goes on, too
            client.send(post(ASKED))
            assert client.next_message()[1] == SAID
        it.meta(4)
        assert comments(it) == [(1, TRAILERS), (3, TRAILERS)]


def test_a_request_with_trailers_is_answered(tmp_path: Path) -> None:
    head = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n"
    with secured(tmp_path, echo) as it, it.relay.connect() as client:
        for _ in range(2):
            client.send(head + b"%x\r\n%s\r\n0\r\nX-Sum: 1\r\n\r\n" % (len(ASKED), ASKED))
            assert client.next_message()[1] == ASKED
        it.meta(4)
        assert comments(it) == [(0, TRAILERS), (2, TRAILERS)]


def test_who_said_that_a_request_may_go_on(tmp_path: Path) -> None:
    with secured(tmp_path, echo) as it, it.relay.connect() as client:
        client.send(post(ASKED, "Expect: 100-continue"))
        client.read_until(ASKED)
        it.meta(2)
        ((channel, text),) = comments(it)
    assert (channel, text.partition(" was")[0]) == (0, "100 (Continue)")


@pytest.mark.parametrize("status", ["100 Continue", "102 Processing", "103 Early Hints"])
def test_an_interim_response_passes_and_is_not_taken_for_the_response(tmp_path: Path, status: str) -> None:
    interim = f"HTTP/1.1 {status}\r\nLink: </style.css>\r\n\r\n".encode()

    def script(peer: Peer) -> None:
        while True:
            peer.next_message()
            peer.send(interim)
            peer.send(interim[:20])
            peer.send(interim[20:] + answer(SAID))

    with secured(tmp_path, script) as it, it.relay.connect() as client:
        for _ in range(2):
            client.send(post(ASKED))
            client.came = b""
            assert client.read_until(SAID) == interim + interim + answer(SAID)
        starts = [meta["start"] for meta in it.meta(4)]
        number = status[:3]
        told = f"before this response came {number}, {number}, not recorded and passed on to the client"
        assert comments(it) == [(1, told), (3, told)]
    assert starts == ["POST /mcp HTTP/1.1", "HTTP/1.1 200 OK"] * 2
