"""Requests that mitmproxy refuses by itself: the client reads whose answer it gets, and why."""

from pathlib import Path

from tests.mitm.proxied import Proxy, home, serving
from tests.proxy.relayed import Peer, Upstream

__all__ = ["home"]


def test_what_a_proxy_cannot_carry_is_answered_in_our_words(tmp_path: Path) -> None:
    proxy = Proxy(tmp_path, None, [])
    with Upstream(serving()) as upstream, proxy.running():
        place = f"127.0.0.1:{upstream.port}"
        with Peer(proxy.connect()) as peer:
            peer.send(f"GET ftp://{place}/ HTTP/1.1\r\nHost: {place}\r\n\r\n".encode())
            scheme = peer.read_all()
        with Peer(proxy.tunnel("127.0.0.1", upstream.port)) as inside:
            inside.send(f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n".encode())
            tunnel = inside.read_all()
    for said, why in ((scheme, b"http:// and https:// alone"), (tunnel, b"it makes no tunnel (CONNECT)")):
        assert said.startswith(b"HTTP/1.1 400 Bad Request\r\nServer: mcpsniff/"), said
        assert why in said
