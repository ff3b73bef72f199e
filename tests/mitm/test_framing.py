"""HTTP/1 that is rare, and that mitmproxy alone cannot carry: trailers, and interim responses."""

from pathlib import Path

import pytest

from tests.mitm.secure import secured
from tests.proxy.relayed import Peer, answer, echo, post

SAID = b'{"jsonrpc":"2.0","id":1,"result":{}}'
ASKED = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


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


def test_a_request_with_trailers_is_answered(tmp_path: Path) -> None:
    head = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n"
    with secured(tmp_path, echo) as it, it.relay.connect() as client:
        for _ in range(2):
            client.send(head + b"%x\r\n%s\r\n0\r\nX-Sum: 1\r\n\r\n" % (len(ASKED), ASKED))
            assert client.next_message()[1] == ASKED


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
    assert starts == ["POST /mcp HTTP/1.1", "HTTP/1.1 200 OK"] * 2
