"""Which requests pass to an upstream elsewhere, and what becomes of their Host: cut at every byte."""

import base64

import pytest

from mcpsniff.proxy.gate import Door, Gate
from tests.proxy.test_tcp_endpoint import cuts
from tests.proxy.wrapped import case_pieces

PORT = 8931
UPSTREAM = "mcp.example.com"
POST = b"POST /mcp HTTP/1.1\r\nHost: %s\r\nContent-Length: 2\r\n\r\n{}"


class Screened:
    """What left of a client's bytes that came in certain pieces, and why not all of them."""

    def __init__(self, pieces: list[bytes], allowed: tuple[str, ...] = (), host: str | None = UPSTREAM) -> None:
        self.gate = Gate(0, Door("127.0.0.1", PORT, allowed), host)
        self.left = b""
        self.rewrites = []
        for piece in pieces:
            self.left += self.gate.feed(0, piece)
            self.rewrites += self.gate.take_rewrites()
            if self.gate.refusal is not None or self.gate.is_over:
                break
        self.refusal = self.gate.refusal

    def applied(self, stream: bytes) -> bytes:
        """The stream with the recorded rewrites done to it."""
        done = 0
        pieces = []
        for body in self.rewrites:
            data = body["data"].encode() if isinstance(body["data"], str) else base64.b64decode(body["data"]["b64"])
            pieces += [stream[done : body["start"]], data]
            done = body["start"] + body["length"]
        return b"".join([*pieces, stream[done:]])


def own(host: bytes = b"127.0.0.1:8931") -> bytes:
    return POST % host


@pytest.mark.parametrize("host", [b"127.0.0.1:8931", b"localhost:8931", b"LOCALHOST:8931", b"[::1]:8931"])
def test_the_upstream_is_named_instead_of_us(host: bytes) -> None:
    stream = own(host) + b"GET /x?a=%20 HTTP/1.1\r\nx-b: 1\r\nX-A: 2\r\nx-b: 3\r\nhost:" + host + b" \r\n\r\n"
    wanted = (
        own(b"mcp.example.com")
        + b"GET /x?a=%20 HTTP/1.1\r\nx-b: 1\r\nX-A: 2\r\nx-b: 3\r\nhost:mcp.example.com \r\n\r\n"
    )
    for pieces in cuts(stream):
        screened = Screened(pieces)
        assert screened.refusal is None
        assert screened.left == wanted == screened.applied(stream)


def test_a_chunked_body_passes_as_it_came() -> None:
    head = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nHost: 127.0.0.1:8931\r\n\r\n"
    body = b"5;x=y\r\nhost:\r\n3\r\n a\n\r\n0\r\nHost: z\r\n\r\n"
    for pieces in cuts(head + body + own()):
        assert Screened(pieces).left == head.replace(b"127.0.0.1:8931", b"mcp.example.com") + body + own(
            b"mcp.example.com"
        )


def test_what_came_of_a_body_leaves_at_once() -> None:
    gate = Gate(0, Door("127.0.0.1", PORT), UPSTREAM)
    assert gate.feed(0, b"POST / HTTP/1.1\r\nHost: 127.0.0.1:8931\r\nTransfer-Encoding: chunked\r\n") == b""
    assert gate.feed(0, b"\r\n").endswith(b"chunked\r\n\r\n")
    for piece in (b"1", b"0", b"\r", b"\n", b"abc", b"d" * 13 + b"\r\n", b"0\r", b"\n\r", b"\n"):
        assert gate.feed(0, piece) == piece
    assert gate.feed(0, b"G") == b""


def test_the_host_as_sent_is_kept_if_that_is_wanted() -> None:
    screened = Screened([own()], host=None)
    assert (screened.left, screened.rewrites) == (own(), [])


REFUSED = {
    "foreign Host": own(b"rebind.example:8931"),
    "another port": own(b"127.0.0.1:8932"),
    "no port": own(b"127.0.0.1"),
    "the upstream's own": own(b"mcp.example.com"),
    "no Host": b"GET / HTTP/1.1\r\n\r\n",
    "two Hosts": b"GET / HTTP/1.1\r\nHost: 127.0.0.1:8931\r\nHost: rebind.example\r\n\r\n",
    "hidden Host": b"GET / HTTP/1.1\r\nHost : rebind.example\r\nHost: 127.0.0.1:8931\r\n\r\n",
    "foreign Origin": b"GET / HTTP/1.1\r\nHost: 127.0.0.1:8931\r\nOrigin: http://evil.example\r\n\r\n",
    "null Origin": b"GET / HTTP/1.1\r\nHost: 127.0.0.1:8931\r\nOrigin: null\r\n\r\n",
    "odd Origin": b"GET / HTTP/1.1\r\nHost: 127.0.0.1:8931\r\nOrigin: http://localhost@evil.example\r\n\r\n",
    "file": b"GET / HTTP/1.1\r\nHost: 127.0.0.1:8931\r\nOrigin: file://\r\n\r\n",
    "forward proxy": b"GET http://evil.example/ HTTP/1.1\r\nHost: 127.0.0.1:8931\r\n\r\n",
    "tunnel": b"CONNECT evil.example:443 HTTP/1.1\r\nHost: 127.0.0.1:8931\r\n\r\n",
}


@pytest.mark.parametrize("name", REFUSED)
def test_b134_a_request_that_does_not_name_us_or_comes_from_a_page_is_refused(name: str) -> None:
    for pieces in cuts(REFUSED[name]):
        screened = Screened(pieces)
        assert screened.left == b""
        assert screened.refusal is not None
        assert screened.refusal.status == 403
        assert "--allow-host" in screened.refusal.error


def test_b134_the_case() -> None:
    screened = Screened(case_pieces("B134"))
    assert screened.left == b""
    assert screened.refusal is not None
    assert screened.refusal.status == 403
    assert b" 403 " in screened.refusal.to(screened.gate.refused)


def test_what_came_before_a_refused_request_has_passed() -> None:
    stream = own() + REFUSED["foreign Origin"] + own()
    for pieces in cuts(stream):
        screened = Screened(pieces)
        assert screened.left == own(b"mcp.example.com")
        assert screened.refusal is not None


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("foreign Host", "rebind.example"),
        ("foreign Host", "REBIND.example:8931"),
        ("foreign Host", "*"),
        ("foreign Origin", "evil.example"),
        ("foreign Origin", "*"),
        ("null Origin", "*"),
        ("tunnel", "*"),
        ("no Host", "*"),
    ],
)
def test_names_can_be_allowed(name: str, allowed: str) -> None:
    screened = Screened([REFUSED[name]], (allowed,))
    assert screened.refusal is None
    assert screened.applied(REFUSED[name]) == screened.left != b""


@pytest.mark.parametrize(
    "origin", [b"http://localhost:6274", b"http://127.0.0.1:8931", b"https://[::1]", b"http://a.localhost"]
)
def test_a_page_of_this_machine_is_not_foreign(origin: bytes) -> None:
    stream = b"GET / HTTP/1.1\r\nHost: 127.0.0.1:8931\r\nOrigin: " + origin + b"\r\n\r\n"
    assert Screened([stream]).refusal is None


START = b"POST / HTTP/1.1\r\nHost: localhost:8931\r\n"
AMBIGUOUS = {
    "both lengths": START + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": START + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    "no length": START + b"Content-Length: +3\r\n\r\nabc",
    "unknown coding": START + b"Transfer-Encoding: chunked, x\r\n\r\n",
    "folded": START + b"X: a\r\n Content-Length: 3\r\n\r\n",
    "http/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "bytes": b"\x16\x03\x01\x02\x00\x01\x00",
    "after the end": own() + b"\x00\x01\x02\r\n\r\n",
}


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_what_cannot_be_screened_does_not_pass(name: str) -> None:
    for pieces in cuts(AMBIGUOUS[name]):
        screened = Screened(pieces)
        assert screened.refusal is not None
        assert screened.refusal.status == 400
        assert screened.left in {b"", own(b"mcp.example.com")}


def test_after_an_upgrade_nothing_is_screened() -> None:
    stream = b"GET / HTTP/1.1\r\nHost: localhost:8931\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
    for pieces in cuts(stream + b"\x81\x05hello"):
        screened = Screened(pieces)
        assert screened.gate.is_over
        assert screened.left.startswith(stream.replace(b"localhost:8931", b"mcp.example.com"))
        assert (stream.replace(b"localhost:8931", b"mcp.example.com") + b"\x81\x05hello").startswith(screened.left)
