"""The endpoint event of the legacy transport: relative in equal length, in whatever pieces and framing it comes."""

import base64
from collections.abc import Iterator
from urllib.parse import urljoin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpsniff.proxy.address import parse_upstream
from mcpsniff.proxy.endpoint import HOLD_BYTES, EndpointWatch, Origins
from mcpsniff.wire.frames import Span
from mcpsniff.wire.http1 import Data, Http1Splitter
from mcpsniff.wire.sse import EventSplitter

UPSTREAM = parse_upstream("http://localhost:8000/sse")
LOCAL = Origins(UPSTREAM, is_local=True)
OFFSET = 1000
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
URL = b"http://127.0.0.1:8000/messages?session_id=abc123"
TAIL = b'event: message\ndata: {"jsonrpc":"2.0","id":1,"result":{}}\n\n'


def chunked(body: bytes, size: int) -> bytes:
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)


def until_close(body: bytes) -> bytes:
    return HEAD + b"\r\n" + body


def with_length(body: bytes) -> bytes:
    return HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body


def in_chunks(body: bytes, size: int = 1 << 20) -> bytes:
    return HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunked(body, size) + b"0\r\n\r\n"


FRAMINGS = {"until close": until_close, "length": with_length, "one chunk": in_chunks}
FRAMINGS |= {f"chunks of {n}": lambda body, n=n: in_chunks(body, n) for n in (1, 7, 30)}


class Relayed:
    """What left, and what was recorded about it, when a response came in certain pieces."""

    def __init__(self, pieces: list[bytes], origins: Origins = LOCAL) -> None:
        watch = EndpointWatch(1, OFFSET, origins)
        self.left = b""
        self.rewrites = []
        self.most_held = came = 0
        for piece in pieces:
            came += len(piece)
            if watch.is_over:
                self.left += piece
                continue
            self.left += watch.feed(0, piece)
            self.rewrites += watch.take_rewrites()
            self.most_held = max(self.most_held, came - len(self.left))
        self.is_over = watch.is_over
        self.left += watch.release()

    def applied(self, stream: bytes) -> bytes:
        """The stream with the recorded rewrites done to it."""
        changed = bytearray(stream)
        for body in self.rewrites:
            data = body["data"].encode() if isinstance(body["data"], str) else base64.b64decode(body["data"]["b64"])
            start = body["start"] - OFFSET
            assert len(data) == body["length"]
            changed[start : start + body["length"]] = data
        return bytes(changed)


def cuts(stream: bytes) -> Iterator[list[bytes]]:
    """The stream whole, in single bytes, and in two pieces, cut at every byte."""
    yield [stream]
    yield [stream[at : at + 1] for at in range(len(stream))]
    for at in range(1, len(stream)):
        yield [stream[:at], stream[at:]]


def first_event(body: bytes) -> tuple[str, bytes]:
    """Type and data of the first event of a stream, by the decoder's own splitter."""
    splitter = EventSplitter(1, "s2c")
    for frame in splitter.feed(0, body, (Span(1, 0, len(body)),)):
        if frame.sse is not None and frame.sse.dispatched:
            return frame.sse.event, frame.payload
    raise AssertionError("no event")


def body_of(stream: bytes) -> bytes:
    """The body of a response, without its framing."""
    splitter = Http1Splitter(1, "s2c")
    parts = [*splitter.feed(0, stream), *splitter.finish(0)]
    return b"".join(part.data for part in parts if isinstance(part, Data))


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"], ids=["LF", "CRLF", "CR"])
@pytest.mark.parametrize("framing", FRAMINGS)
def test_an_absolute_endpoint_becomes_relative_in_equal_length(framing: str, line_end: bytes) -> None:
    body = b"event: endpoint\ndata: " + URL + b"\n\n"
    stream = FRAMINGS[framing](body.replace(b"\n", line_end) + TAIL)
    for pieces in cuts(stream):
        relayed = Relayed(pieces)
        assert len(relayed.left) == len(stream)
        assert relayed.applied(stream) == relayed.left
        assert first_event(body_of(relayed.left)) == ("endpoint", b"/messages?session_id=abc123")
        assert relayed.left.endswith(stream[stream.rindex(URL[-1:]) + 1 :])


@pytest.mark.parametrize(
    ("url", "relative"),
    [
        (b"http://localhost:8000/messages", b"/messages"),
        (b"http://[::1]:8000/messages", b"/messages"),
        (b"HTTP://LocalHost:8000/Messages", b"/Messages"),
        (b"//127.0.0.1:8000/messages", b"/messages"),
        (b"http://127.0.0.1:8000", b"/"),
        (b"http://127.0.0.1:8000?s=1", b"/?s=1"),
        (b"http://127.0.0.1:8000/m%C3%A9?s=\xc3\xa9", b"/m%C3%A9?s=\xc3\xa9"),
        (b"http://127.0.0.1:8000/a?to=http://127.0.0.1:8000/b", b"/a?to=http://127.0.0.1:8000/b"),
    ],
)
def test_all_names_of_loopback_are_one(url: bytes, relative: bytes) -> None:
    stream = in_chunks(b"event: endpoint\r\ndata: " + url + b"\r\n\r\n")
    relayed = Relayed([stream])
    assert first_event(body_of(relayed.left)) == ("endpoint", relative)
    assert len(relayed.left) == len(stream)


@pytest.mark.parametrize(
    "before", [b"\xef\xbb\xbf", b": hello\n\n", b"retry: 3000\n\n", b"id: 7\n\n\n", b":" + b"x" * 200 + b"\n"]
)
@pytest.mark.parametrize("form", [b"event:endpoint\ndata:%s\n\n", b"data: %s\nevent: endpoint\nid: 1\n: c\n\n"])
def test_what_may_stand_before_and_beside_it(before: bytes, form: bytes) -> None:
    stream = until_close(before + form % URL + TAIL)
    for pieces in cuts(stream):
        relayed = Relayed(pieces)
        assert first_event(body_of(relayed.left)) == ("endpoint", b"/messages?session_id=abc123")
        assert relayed.applied(stream) == relayed.left != stream


UNTOUCHED = {
    "relative": b"event: endpoint\ndata: /messages?s=1\n\n",
    "no slash": b"event: endpoint\ndata: messages\n\n",
    "another port": b"event: endpoint\ndata: http://127.0.0.1:8001/messages\n\n",
    "another host": b"event: endpoint\ndata: http://example.com:8000/messages\n\n",
    "no port": b"event: endpoint\ndata: http://127.0.0.1/messages\n\n",
    "https": b"event: endpoint\ndata: https://127.0.0.1:8000/messages\n\n",
    "user information": b"event: endpoint\ndata: http://u@127.0.0.1:8000/messages\n\n",
    "would name a host": b"event: endpoint\ndata: http://127.0.0.1:8000//example.com/x\n\n",
    "another event": b"event: message\ndata: " + URL + b"\n\n",
    "no event": b"data: " + URL + b"\n\n",
    "two events": b"event: endpoint\nevent: message\ndata: " + URL + b"\n\n",
    "two lines": b"event: endpoint\ndata: " + URL + b"\ndata: x\n\n",
    "second event": b"data: x\n\nevent: endpoint\ndata: " + URL + b"\n\n",
    "no end": b"event: endpoint\ndata: " + URL + b"\n",
    "event of another block": b"event: endpoint\n\ndata: " + URL + b"\n\n",
    "longer name": b"event: endpoints\ndata: " + URL + b"\n\n",
    "empty": b"",
}


@pytest.mark.parametrize("name", UNTOUCHED)
def test_everything_else_passes_as_it_is(name: str) -> None:
    for framing in FRAMINGS.values():
        stream = framing(UNTOUCHED[name])
        for pieces in cuts(stream):
            relayed = Relayed(pieces)
            assert (relayed.left, relayed.rewrites) == (stream, [])


ABSOLUTE = b"event: endpoint\ndata: " + URL + b"\n\n"


@pytest.mark.parametrize(
    "stream",
    [
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 80\r\n\r\n" + ABSOLUTE,
        b"HTTP/1.1 404 X\r\nContent-Type: text/event-stream\r\n\r\n" + ABSOLUTE,
        HEAD + b"Content-Encoding: gzip\r\n\r\n" + ABSOLUTE,
        b"SSH-2.0-OpenSSH_9.6\r\n" + ABSOLUTE,
        b"\x00\x01\x02" + ABSOLUTE,
        ABSOLUTE,
    ],
    ids=["no stream", "an error", "compressed", "no HTTP", "bytes", "no head"],
)
def test_only_an_uncompressed_event_stream_is_looked_at(stream: bytes) -> None:
    for pieces in cuts(stream):
        relayed = Relayed(pieces)
        assert (relayed.left, relayed.rewrites, relayed.is_over) == (stream, [], True)
        assert relayed.most_held == 0


def test_an_interim_response_before_it() -> None:
    stream = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + in_chunks(ABSOLUTE)
    for pieces in cuts(stream):
        relayed = Relayed(pieces)
        assert relayed.applied(stream) == relayed.left != stream


@pytest.mark.parametrize(
    "body",
    [
        b'event: message\ndata: {"jsonrpc":"2.0"}\n\n',
        b'data: {"jsonrpc":"2.0"}\n\n',
        b"id: 1\nretry: 3000\ndata: \n\n",
        b": ping\n\n: ping\n\n" * 20,
        b"event: endpoint\ndata: messages\n\n",
    ],
)
def test_nothing_is_held_of_another_stream(body: bytes) -> None:
    stream = in_chunks(body)
    assert Relayed([stream[at : at + 1] for at in range(len(stream))]).most_held == 0


def test_only_the_address_is_held_and_only_so_much_of_it() -> None:
    start = until_close(b": ping\n\nevent: endpoint\ndata: ")
    watch = EndpointWatch(1, 0, LOCAL)
    assert watch.feed(0, start + b"http") == start
    assert watch.feed(0, b"://127.0.0.1:8000/x\n") == b""
    assert watch.is_holding
    held = b"http://127.0.0.1:8000/x\n"
    piece = b":" + b"y" * 999 + b"\n"
    left = b""
    while not left:
        left = watch.feed(0, piece)
        held += piece
    assert left == held
    assert HOLD_BYTES < len(held) <= HOLD_BYTES + len(piece)
    assert watch.is_over


def test_one_that_is_held_too_long_is_released_as_it_is() -> None:
    watch = EndpointWatch(1, 0, LOCAL)
    stream = until_close(b"event: endpoint\ndata: " + URL + b"\n")
    assert watch.feed(0, stream) + watch.release() == stream
    assert watch.is_over
    assert watch.take_rewrites() == []


def test_an_upstream_elsewhere_has_its_own_name_only() -> None:
    origins = Origins(parse_upstream("http://mcp.example.com/sse"), is_local=False)
    for host, changes in ((b"mcp.example.com", True), (b"MCP.example.com:80", True), (b"127.0.0.1", False)):
        stream = until_close(b"event: endpoint\ndata: http://" + host + b"/messages\n\n")
        assert bool(Relayed([stream], origins).rewrites) is changes


@given(st.text(alphabet="/?#:.@[]\\ab01", max_size=30))
def test_law_a_client_comes_to_the_same_place_at_our_port(rest: str) -> None:
    """Whatever follows the origin: if it is cut, the rest resolves to the same path on the stream's own origin."""
    url = "http://127.0.0.1:8000" + rest
    relative = LOCAL.relative(url.encode())
    if relative is not None:
        ours = urljoin("http://127.0.0.1:9000/sse", relative.decode())
        assert ours.startswith("http://127.0.0.1:9000/")


@given(st.lists(st.sampled_from([b"data:", b"event:", b" ", b"endpoint", URL, b"\n", b"\r", b":", b"x"]), max_size=12))
def test_law_lengths_never_change_and_cuts_do_not_matter(pieces: list[bytes]) -> None:
    stream = in_chunks(b"".join(pieces), 13)
    whole = Relayed([stream])
    single = Relayed([stream[at : at + 1] for at in range(len(stream))])
    assert len(whole.left) == len(stream)
    assert whole.left == whole.applied(stream)
    assert single.left == whole.left
