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
    "a coding that is not known to all": START + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "a coding with a parameter": START + b"Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n",
    "a coding after what is a blank for some": START + b"Transfer-Encoding: \xa0chunked\r\n\r\n0\r\n\r\n",
    "the same length twice": START + b"Content-Length: 2, 2\r\n\r\n{}",
    "folded": START + b"X: a\r\n Content-Length: 3\r\n\r\n",
    "a Host after a CR": START + b"X: a\rHost: evil.example\r\n\r\n",
    "a length after a CR": START + b"X: a\rTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "an end of CRs": START + b"X: a\r\rGET / HTTP/1.1\rHost: evil.example\r\r\r\n\r\n",
    "LF alone": START.replace(b"\r", b"") + b"\n",
    "LF alone in a line": START + b"X: a\nContent-Length: 2\r\n\r\n{}",
    "NUL in a name": START + b"Transfer-Encoding\0: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "a control character in a value": START + b"Content-Length: 2\r\nX: a\x0bb\r\n\r\n{}",
    "no colon": START + b"Content-Length 2\r\n\r\n",
    "another version": START.replace(b"/1.1", b"/1.2") + b"\r\n",
    "two versions": START.replace(b"HTTP/1.1", b"HTTP/1.0 HTTP/1.1") + b"\r\n",
    "two blanks": START.replace(b" ", b"  ", 1) + b"\r\n",
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


EVIL = b"GET /evil HTTP/1.1\r\nHost: evil.example\r\n\r\n"
CHUNKS = {
    "LF ends a size": b"2\nab\r\n0\r\n\r\n",
    "LF ends an extension": b"2;\nxx\r\n30\r\n0\r\n\r\n",
    "CR in an extension": b"2;a\rb\r\nab\r\n0\r\n\r\n",
    "LF ends a chunk": b"2\r\nab\n0\r\n\r\n",
    "LF ends the body": b"2\r\nab\r\n0\n\n",
    "a blank after a size": b"%x \r\n" % len(EVIL),
    "a blank before a size": b" %x\r\n" % len(EVIL),
    "a prefix": b"0x30\r\n",
    "a sign": b"+30\r\n",
    "too much": b"2\r\nabc\r\n0\r\n\r\n",
    "a trailer after a CR": b"0\r\nX: a\rHost: evil.example\r\n\r\n",
    "a trailer without a name": b"0\r\n: evil.example\r\n\r\n",
}


@pytest.mark.parametrize("name", CHUNKS)
def test_nothing_passes_after_a_chunk_that_can_be_read_in_two_ways(name: str) -> None:
    head = START + b"Transfer-Encoding: chunked\r\n\r\n"
    passed = head.replace(b"localhost:8931", b"mcp.example.com")
    for pieces in cuts(head + CHUNKS[name] + EVIL):
        screened = Screened(pieces)
        assert screened.refusal is not None
        assert screened.refusal.status == 400
        assert (passed + CHUNKS[name]).startswith(screened.left)
        assert EVIL not in screened.left
    assert Screened([head + CHUNKS[name] + EVIL]).left == b""


SENT = {
    "by fetch": b"GET /mcp?a=%20&b=[c] HTTP/1.1\r\nhost: localhost:8931\r\naccept: */*\r\nconnection: close\r\n\r\n",
    "an old client's empty line": own() + b"\r\n" + own(),
    "an empty value": START + b"X-Empty:\r\nContent-Length: 0\r\n\r\n",
    "UTF-8 in a value": START + "User-Agent: Straße\r\n\r\n".encode(),
    "a tab in a value": START + b"User-Agent: a\tb\r\n\r\n",
    "an underscore in a name": START + b"api_key: b\r\n\r\n",
    "patch": START.replace(b"POST", b"patch") + b"\r\n",
    "HTTP/1.0": START.replace(b"/1.1", b"/1.0") + b"Content-Length: 2\r\n\r\n{}",
    "chunks with leading zeros": START + b"transfer-encoding: Chunked\r\n\r\n000a\r\n0123456789\r\n0000\r\n\r\n",
}


@pytest.mark.parametrize("name", SENT)
def test_what_clients_send_passes(name: str) -> None:
    for pieces in cuts(SENT[name]):
        screened = Screened(pieces)
        assert screened.refusal is None
        assert screened.left == screened.applied(SENT[name])


UPGRADE = b"GET /1 HTTP/1.1\r\nHost: localhost:8931\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n"
UPGRADED = UPGRADE.replace(b"localhost:8931", b"mcp.example.com")
SWITCHES = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n"


def test_an_upgrade_that_is_not_granted_yet_changes_nothing() -> None:
    for pieces in cuts(UPGRADE + own() + EVIL):
        screened = Screened(pieces)
        assert screened.left == UPGRADED + own(b"mcp.example.com")
        assert screened.refusal is not None
        assert screened.refusal.status == 403


@pytest.mark.parametrize(
    "response",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(SWITCHES), SWITCHES),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(SWITCHES), SWITCHES),
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\n\r\n",
        SWITCHES[:-1],
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n" + SWITCHES,
    ],
)
def test_only_the_server_can_grant_an_upgrade(response: bytes) -> None:
    for pieces in cuts(response):
        gate = Gate(0, Door("127.0.0.1", PORT), UPSTREAM)
        assert gate.feed(0, UPGRADE) == UPGRADED
        for piece in pieces:
            gate.hear(0, piece)
        assert gate.feed(0, own()) == own(b"mcp.example.com")
        assert gate.feed(0, EVIL) == b""
        assert not gate.is_over
        assert gate.refusal is not None


@pytest.mark.parametrize("before", [b"", b"HTTP/1.1 100 Continue\r\n\r\n"])
def test_after_an_upgrade_nothing_is_screened(before: bytes) -> None:
    asked = b"HEAD / HTTP/1.1\r\nHost: localhost:8931\r\n\r\n"
    answered = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"
    for pieces in cuts(answered + before + SWITCHES + b"\x81\x05hello"):
        gate = Gate(0, Door("127.0.0.1", PORT), UPSTREAM)
        assert gate.feed(0, asked + UPGRADE).endswith(UPGRADED)
        assert not gate.is_over
        for piece in pieces:
            gate.hear(0, piece)
        assert gate.feed(0, b"\x81\x85") == b"\x81\x85"
        assert gate.is_over
        assert gate.refusal is None


def test_after_a_tunnel_that_the_server_grants_nothing_is_screened() -> None:
    for status, passes in ((b"200", True), (b"403", False)):
        gate = Gate(0, Door("127.0.0.1", PORT, ("*",)), UPSTREAM)
        gate.feed(0, REFUSED["tunnel"])
        gate.hear(0, b"HTTP/1.1 " + status + b" X\r\n\r\n")
        assert gate.feed(0, b"\x16\x03\x01") == (b"\x16\x03\x01" if passes else b"")
        assert gate.is_over == passes
        assert (gate.refusal is None) == passes


@pytest.mark.parametrize(
    "request_",
    [
        b"GET http://u:S3CRET@x.example/a?access_token=S3CRET#S3CRET HTTP/1.1\r\nHost: localhost:8931\r\n\r\n",
        b"GET http://u:S3/CRET@x.example HTTP/1.1\r\nHost: localhost:8931\r\n\r\n".replace(b"S3/", b"/S3"),
        b"GET access_token=S3CRET HTTP/1.1\r\nHost: localhost:8931\r\n\r\n",
        b"GET urn:x?access_token=S3CRET HTTP/1.1\r\nHost: localhost:8931\r\n\r\n",
        b"CONNECT S3CRET@x.example:443 HTTP/1.1\r\nHost: localhost:8931\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: u:S3CRET@x.example\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x.example?access_token=S3CRET\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x.example/?access_token=S3CRET\r\nHost: y#S3CRET\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost:8931\r\nOrigin: http://u:S3CRET@x.example\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost:8931\r\nOrigin: http://x.example/?code=S3CRET\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost:8931\r\nOrigin: http://x.example/#code=S3CRET\r\n\r\n",
    ],
)
def test_what_is_masked_is_not_told_again_by_our_answer(request_: bytes) -> None:
    screened = Screened([request_])
    assert screened.refusal is not None
    assert screened.refusal.status == 403
    assert b"CRET" not in screened.refusal.to(screened.gate.refused)


@pytest.mark.parametrize(
    ("request_", "told"),
    [
        (REFUSED["foreign Host"], "names rebind.example:8931, not"),
        (REFUSED["two Hosts"], "names 127.0.0.1:8931, rebind.example, not"),
        (REFUSED["no Host"], "names nothing, not"),
        (REFUSED["foreign Origin"], "a page of http://evil.example;"),
        (REFUSED["null Origin"], "a page of null;"),
        (REFUSED["forward proxy"], "is for http://evil.example;"),
        (REFUSED["tunnel"], "is for evil.example:443;"),
        (b"GET / HTTP/1.1\r\nHost: " + b"a" * 5000 + b"\r\n\r\n", "names " + "a" * 199 + "\u2026, not"),
    ],
)
def test_our_answer_tells_the_name_to_allow(request_: bytes, told: str) -> None:
    refusal = Screened([request_]).refusal
    assert refusal is not None
    assert told in refusal.error
