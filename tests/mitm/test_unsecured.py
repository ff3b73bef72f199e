"""A forward proxy in front of servers that expect TLS, and clients that speak plain HTTP with them."""

from pathlib import Path

import pytest

from tests.cli.running import run
from tests.mitm.proxied import ASK, JSON, Proxy, home
from tests.proxy.relayed import Peer, Upstream, answer, post

__all__ = ["home"]

WORDS = b"Client sent an HTTP request to an HTTPS server.\n"


@pytest.mark.parametrize(
    ("said", "status", "code"),
    [
        (b"\x15\x03\x03\x00\x02\x02\x46", 502, "MCP556"),
        (b"\x15\x03\x01\x00\x02\x02\x0a", 502, "MCP556"),
        (answer(WORDS, status="400 Bad Request"), 400, "MCP559"),
    ],
    ids=["alert", "alert with a line end", "words"],
)
def test_the_server_is_told_of_with_the_url_to_use(tmp_path: Path, said: bytes, status: int, code: str) -> None:
    def script(peer: Peer) -> None:
        peer.next_message()
        peer.send(said)

    proxy = Proxy(tmp_path, None, [])
    with Upstream(script) as upstream, proxy.running():
        for _ in range(2):
            with Peer(proxy.connect()) as peer:
                peer.send(post(ASK, JSON, target=f"http://127.0.0.1:{upstream.port}/mcp"))
                head, body = peer.next_message()
            assert (head.status, b"https" in body.lower()) == (status, True)
    use = f"Use https://127.0.0.1:{upstream.port}/mcp for it."
    assert proxy.told == [
        f"the upstream http://127.0.0.1:{upstream.port} expects TLS: it does not take plain HTTP. {use}"
    ]
    shown = run("show", str(proxy.file)).out
    assert f"error {code}" in shown
    assert f"Fix: {use}" in " ".join(shown.split())


@pytest.mark.parametrize(("body", "kind"), [(b"no", "text/plain"), (b'"' + WORDS.strip() + b'"', "application/json")])
def test_another_400_is_none_of_it_and_passes(tmp_path: Path, body: bytes, kind: str) -> None:
    def script(peer: Peer) -> None:
        peer.next_message()
        peer.send(answer(body, f"Content-Type: {kind}", status="400 Bad Request"))

    proxy = Proxy(tmp_path, None, [])
    with Upstream(script) as upstream, proxy.running(), Peer(proxy.connect()) as peer:
        peer.send(post(ASK, JSON, target=f"http://127.0.0.1:{upstream.port}/mcp"))
        assert peer.next_message()[1] == body
    assert proxy.told == []
    assert "MCP559" not in run("show", str(proxy.file)).out
