"""Well-formed streams are read as two other parsers read them: h11 (strict) and httptools (llhttp, as Node reads)."""

import h11
import httptools
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpsniff.wire.http1 import Undecoded
from tests.wire.http1_tools import assert_partition, bodies, ends, essence, heads, split

REQUESTS = {
    "get": b"GET /sse HTTP/1.1\r\nHost: localhost:8000\r\nAccept: text/event-stream\r\n\r\n",
    "post": b'POST /mcp HTTP/1.1\r\nhost: a\r\nContent-Length: 17\r\n\r\n{"jsonrpc":"2.0"}',
    "post_chunked": b"POST /mcp HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"5\r\nhello\r\nA;x=1\r\n0123456789\r\n0\r\n\r\n",
    "post_trailers": b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"1\r\nx\r\n0\r\nT: r\r\nU: s\r\n\r\n",
    "empty": b"DELETE /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
    "headers": b"POST /mcp?x=1 HTTP/1.1\r\nhost: a\r\nx-b: 1\r\nX-A: 2\r\nx-b:3\r\n"
    b"Content-TYPE: \tapplication/json \t\r\nEmpty:\r\nContent-Length: 2\r\n\r\n{}",
    "targets": b"GET //mcp HTTP/1.1\r\nHost: a\r\n\r\nGET /mcp%2Fa HTTP/1.1\r\nHost: a\r\n\r\n"
    b"GET http://a/mcp/ HTTP/1.1\r\nHost: a\r\n\r\nOPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
    "pipelined": b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n1POST /b HTTP/1.1\r\nHost: a\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n1\r\n2\r\n0\r\n\r\nGET /c HTTP/1.1\r\nHost: a\r\n\r\n",
}
RESPONSES = {
    "json": b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
    "stream": b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"12\r\nevent: message\r\nda\r\n5\r\nta: 1\r\n0\r\n\r\n",
    "accepted": b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n",
    "until_close": b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nto the end\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
    "no_content": b"HTTP/1.1 204 No Content\r\nServer: x\r\n\r\n",
    "not_modified": b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
    "interim": b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
    "no_reason": b"HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n",
    "odd_status": b"HTTP/1.1 599 A b  c\r\nContent-Length: 3\r\n\r\nabc",
}
ALL = [("c2s", data) for data in REQUESTS.values()] + [("s2c", data) for data in RESPONSES.values()]
IDS = [*REQUESTS, *RESPONSES]

type Read = list[tuple[str | int, list[tuple[str, str]], bytes]]
"""Of each message: target or status, headers, body."""


def ours(direction: str, data: bytes) -> Read:
    parts = split(direction, data)
    for part in parts:
        assert not getattr(part, "flaws", ())
    messages = zip(heads(parts), bodies(parts), strict=True)
    assert len(ends(parts)) == len(heads(parts))
    assert all(end.complete for end in ends(parts))
    return [(head.target or head.status or 0, list(head.headers), body) for head, body in messages]


def text(pairs: list[tuple[bytes, bytes]]) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in pairs]


def by_h11(direction: str, data: bytes) -> Read:
    connection = h11.Connection(h11.SERVER if direction == "c2s" else h11.CLIENT)
    if direction == "s2c":
        connection.send(h11.Request(method="GET", target="/", headers=[("Host", "a")]))
        connection.send(h11.EndOfMessage())
    read: Read = []
    connection.receive_data(data)
    connection.receive_data(b"")
    while True:
        event = connection.next_event()
        if isinstance(event, h11.Request | h11.Response | h11.InformationalResponse):
            name = event.target.decode("latin-1") if isinstance(event, h11.Request) else event.status_code
            read.append((name, text(event.headers.raw_items()), b""))
        elif isinstance(event, h11.Data):
            read[-1] = (*read[-1][:2], read[-1][2] + bytes(event.data))
        elif event is h11.PAUSED:
            connection.send(h11.Response(status_code=200, headers=[("Content-Length", "0")]))
            connection.send(h11.EndOfMessage())
            connection.start_next_cycle()
        elif not isinstance(event, h11.EndOfMessage):
            return read


def by_httptools(direction: str, data: bytes) -> Read:
    read: Read = []

    class Listener:
        in_body = False

        def on_message_begin(self) -> None:
            self.in_body = False
            read.append((0, [], b""))

        def on_url(self, url: bytes) -> None:
            read[-1] = (str(read[-1][0] or "") + url.decode("latin-1"), *read[-1][1:])

        def on_header(self, name: bytes, value: bytes) -> None:
            if not self.in_body:  # later ones are trailers
                read[-1][1].append((name.decode("latin-1"), value.decode("latin-1").strip(" \t")))

        def on_headers_complete(self) -> None:
            self.in_body = True
            if direction == "s2c":
                read[-1] = (parser.get_status_code(), *read[-1][1:])

        def on_body(self, body: bytes) -> None:
            read[-1] = (*read[-1][:2], read[-1][2] + body)

    listener = Listener()
    parser = (httptools.HttpRequestParser if direction == "c2s" else httptools.HttpResponseParser)(listener)
    parser.feed_data(data)
    return read


@pytest.mark.parametrize(("direction", "data"), ALL, ids=IDS)
def test_well_formed_streams_are_read_as_others_read_them(direction: str, data: bytes) -> None:
    read = ours(direction, data)
    assert read
    assert read == by_h11(direction, data)
    assert read == by_httptools(direction, data)


@pytest.mark.parametrize(("direction", "data"), ALL, ids=IDS)
def test_well_formed_streams_at_every_cut(direction: str, data: bytes) -> None:
    whole = split(direction, data)
    assert_partition(whole, len(data))
    for place in range(len(data) + 1):
        assert essence(split(direction, data[:place], data[place:])) == essence(whole)
    assert essence(split(direction, *(bytes([byte]) for byte in data))) == essence(whole)


@pytest.mark.parametrize(
    ("direction", "data"),
    [pytest.param(*one, id=name) for one, name in zip(ALL, IDS, strict=True) if name != "until_close"],
)
def test_a_tail_changes_nothing_before_it(direction: str, data: bytes) -> None:
    whole = split(direction, data)
    for tail in (data, b"garbage", b"\r\n", b"\x00\x01"):
        after = split(direction, data + tail)
        assert essence(after)[: len(essence(whole))] == essence(whole)


@pytest.mark.parametrize(("direction", "data"), ALL, ids=IDS)
def test_a_stream_that_ends_anywhere_says_so(direction: str, data: bytes) -> None:
    begins = {head.spans[0].start for head in heads(split(direction, data))}
    for stop in range(1, len(data)):
        parts = split(direction, data[:stop])
        assert_partition(parts, stop)
        clean = all(end.complete for end in ends(parts)) and not any(isinstance(part, Undecoded) for part in parts)
        if data == RESPONSES["until_close"]:
            assert clean == (stop >= data.index(b"to the end"))
        else:
            assert clean == (stop in begins)


NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9-]{0,8}", fullmatch=True).map(lambda name: "X-" + name)
VALUES = st.from_regex(r"([!-~]([ -~]{0,8}[!-~])?)?", fullmatch=True)
HEADERS = st.lists(st.tuples(NAMES, VALUES), max_size=4)
BODY = st.binary(max_size=40)


@st.composite
def messages(draw: st.DrawFn, direction: str) -> bytes:
    """One well-formed message with a body of known length."""
    fields = draw(HEADERS)
    body = draw(BODY)
    if direction == "c2s":
        method, path = (
            draw(st.sampled_from(["GET", "POST", "DELETE"])),
            draw(st.from_regex("[a-z/?=%]{0,9}", fullmatch=True)),
        )
        start, fields = f"{method} /{path} HTTP/1.1", [("Host", "a"), *fields]
    else:
        start = (
            f"HTTP/1.1 {draw(st.sampled_from([200, 202, 400, 404, 503]))} {draw(st.sampled_from(['', 'OK', 'a b']))}"
        )
    if draw(st.booleans()):
        places = sorted(draw(st.lists(st.integers(0, len(body)), max_size=3)))
        pieces = [body[a:b] for a, b in zip([0, *places], [*places, len(body)], strict=True)]
        coded = b"".join(f"{len(piece):x}\r\n".encode() + piece + b"\r\n" for piece in pieces if piece) + b"0\r\n\r\n"
        fields, body = [*fields, ("Transfer-Encoding", "chunked")], coded
    else:
        fields = [*fields, ("Content-Length", str(len(body)))]
    head = "".join(f"{name}: {value}\r\n" for name, value in fields)
    return f"{start}\r\n{head}\r\n".encode() + body


@given(st.lists(messages("c2s"), min_size=1, max_size=3).map(b"".join))
@settings(max_examples=150)
def test_requests_are_read_as_others_read_them(data: bytes) -> None:
    assert ours("c2s", data) == by_h11("c2s", data) == by_httptools("c2s", data)


@given(messages("s2c"))
@settings(max_examples=150)
def test_responses_are_read_as_others_read_them(data: bytes) -> None:
    assert ours("s2c", data) == by_h11("s2c", data) == by_httptools("s2c", data)
