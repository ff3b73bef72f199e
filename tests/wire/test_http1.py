"""HTTP/1.1 as it is met: sloppy heads are read and flagged, framing follows RFC 9112 section 6.3, losses survived."""

import pytest

from mcpsniff.wire.http1 import HEAD_LIMIT, Data, End, Head, Http1Splitter, Part, Trailers, Undecoded
from tests.wire.http1_tools import CHANNEL, assert_partition, bodies, ends, essence, heads, split, undecoded

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def split_everywhere(direction: str, data: bytes, expect: tuple[str, ...] = ()) -> list[Part]:
    """All parts, after making sure that no cut changes them."""
    whole = split(direction, data, expect=expect)
    assert_partition(whole, len(data))
    for place in range(1, len(data)):
        assert essence(split(direction, data[:place], data[place:], expect=expect)) == essence(whole)
    assert essence(split(direction, *(bytes([byte]) for byte in data), expect=expect)) == essence(whole)
    return whole


REQUEST_FLAWS = [
    (b"POST /mcp HTTP/1.1\nHost: a\nContent-Length: 2\n\n{}", "bare-lf"),
    (b"POST /mcp HTTP/1.1\r\nHost: a\nContent-Length: 2\r\n\r\n{}", "bare-lf"),
    (b"\r\n\r\nPOST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}", "leading-blank-line"),
    (b"\nPOST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}", "leading-blank-line"),
    (b"POST  /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}", "bad-start-line"),
    (b"POST /mcp\tHTTP/1.1 \r\nHost: a\r\nContent-Length: 2\r\n\r\n{}", "bad-start-line"),
    (b"POST /mcp http/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}", "bad-start-line"),
    (b"post /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}", "lower-case-method"),
    (b"POST /mcp HTTP/1.2\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}", "bad-version"),
    (b"POST /mcp HTTP/1.1\r\nHost : a\r\nContent-Length\t:2\r\n\r\n{}", "space-before-colon"),
    (b"POST /mcp HTTP/1.1\r\nHost: a\r\n \t \r\nContent-Length:\r\n 2\r\n\r\n{}", "folded-header"),
    (b"POST /mcp HTTP/1.1\r\nHost: a\r\nno colon\r\nContent-Length: 2\r\n\r\n{}", "bad-header"),
    (b"POST /mcp HTTP/1.1\r\nHost: a\r\n: x\r\nContent-Length: 2\r\n\r\n{}", "bad-header"),
    (b"POST /mcp HTTP/1.1\r\n Host: a\r\nContent-Length: 2\r\n\r\n{}", "bad-header"),
    (b"POST /mcp HTTP/1.1\r\nHost: a\r\nx(y): z\r\nContent-Length: 2\r\n\r\n{}", "bad-header"),
    (b"POST /mcp HTTP/1.1\r\nHost: a\r\nx: a\rb\r\nContent-Length: 2\r\n\r\n{}", "bare-cr"),
    (b"POST /mcp HTTP/1.1\r\nHost: a\r\nx: \x00\r\nContent-Length: 2\r\n\r\n{}", "control-character"),
    (b"POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 2, 2\r\n\r\n{}", "repeated-length"),
    (b"POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}", "repeated-length"),
    (b"POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 20\r\n\r\n{}", "conflicting-length"),
    (b"POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 2, x\r\n\r\n{}", "bad-length"),
]


@pytest.mark.parametrize(("data", "flaw"), REQUEST_FLAWS)
def test_a_sloppy_request_is_read_and_flagged(data: bytes, flaw: str) -> None:
    head, body, end = split_everywhere("c2s", data)
    assert isinstance(head, Head)
    assert isinstance(body, Data)
    assert isinstance(end, End)
    assert head.flaws == (flaw,)
    assert (head.method or "").upper() == "POST"
    assert head.target == "/mcp"
    assert (head.get("HOST"), head.framing, head.length) == ("a", "length", 2)
    assert (body.data, end.complete, end.flaws) == (b"{}", True, ())


RESPONSE_FLAWS = [
    (b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\n{}", "no-reason-phrase", "length"),
    (b"HTTP/1.1  200 OK\r\nContent-Length: 2\r\n\r\n{}", "bad-start-line", "length"),
    (b"http/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "bad-start-line", "length"),
    (b"HTTP/3 200 OK\r\nContent-Length: 2\r\n\r\n{}", "bad-version", "length"),
    (b"HTTP/1.1 200 OK\nContent-Length: 2\n\n{}", "bare-lf", "length"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\n{}", "bad-length", "close"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n{}", "bad-length", "close"),
    (b"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n{}", "bad-length", "close"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nX: 2\r\n\r\n{}", "bad-transfer-encoding", "close"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\n{}", "bad-transfer-encoding", "close"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n{}", "bad-transfer-encoding", "close"),
    (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, Chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        "bad-transfer-encoding",
        "chunked",
    ),
    (b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", "chunked-in-http10", "chunked"),
]


@pytest.mark.parametrize(("data", "flaw", "framing"), RESPONSE_FLAWS)
def test_a_sloppy_response_is_read_and_flagged(data: bytes, flaw: str, framing: str) -> None:
    parts = split_everywhere("s2c", data) if len(data) < 1000 else split("s2c", data)
    head, body, end = parts
    assert isinstance(head, Head)
    assert isinstance(body, Data)
    assert isinstance(end, End)
    assert (head.flaws, head.framing, head.status) == ((flaw,), framing, 200)
    assert (body.data, end.complete) == (b"{}", True)


BODY_FLAWS = [
    (b"2\n{}\r\n0\r\n\r\n", ("bare-lf",)),
    (b"2\r\n{}\n0\r\n\r\n", ("bare-lf",)),
    (b"2\r\n{}\r\n0\n\n", ("bare-lf",)),
    (b"2;a\r\n{}\r\n0\r\n\r\n", ()),
    (b"2;a\rb\r\n{}\r\n0\r\n\r\n", ("bare-cr",)),
    (b"2;\n{}\r\n0\r\n\r\n", ("bare-lf",)),
    (b"2 \r\n{}\r\n0\r\n\r\n", ("chunk-white-space",)),
    (b" 2\r\n{}\r\n0\r\n\r\n", ("chunk-white-space",)),
    (b"2 ;a=b\r\n{}\r\n0\r\n\r\n", ()),
    (b'0002;a="x;y"\r\n{}\r\n000;z\r\n\r\n', ()),
]


@pytest.mark.parametrize(("coded", "flaws"), BODY_FLAWS)
def test_sloppy_chunks_are_read_and_flagged(coded: bytes, flaws: tuple[str, ...]) -> None:
    _, body, end = split_everywhere("s2c", CHUNKED + coded)
    assert isinstance(body, Data)
    assert isinstance(end, End)
    assert (body.data, end.complete, end.flaws) == (b"{}", True, flaws)


def test_an_empty_reason_after_its_space_is_right() -> None:
    (head, *_) = split("s2c", b"HTTP/1.1 202 \r\nContent-Length: 0\r\n\r\n")
    assert isinstance(head, Head)
    assert (head.reason, head.flaws) == ("", ())


def test_length_and_chunking_together() -> None:
    """Case B71: chunking wins, and it is flagged."""
    data = (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
        b'24\r\n{"jsonrpc":"2.0","id":1,"result":{}}\r\n0\r\n\r\n'
    )
    parts = split_everywhere("s2c", data)
    assert bodies(parts) == [b'{"jsonrpc":"2.0","id":1,"result":{}}']
    assert heads(parts)[0].flaws == ("conflicting-framing",)


def test_order_case_and_repetition_of_headers_are_kept() -> None:
    """Case B73."""
    data = b"POST /mcp HTTP/1.1\r\nx-b: 1\r\nX-A: 2\r\nx-b: 3\r\nContent-TYPE: application/json\r\n\r\n"
    (head, _) = split("c2s", data)
    assert isinstance(head, Head)
    assert head.headers == (("x-b", "1"), ("X-A", "2"), ("x-b", "3"), ("Content-TYPE", "application/json"))
    assert (head.get("X-B"), head.all("X-b"), head.get("content-type")) == ("1", ["1", "3"], "application/json")
    assert (head.get("none"), head.all("none")) == (None, [])


@pytest.mark.parametrize("target", ["/mcp", "/mcp/", "/mcp?x=1", "/mcp%2Fa", "//mcp", "http://a:1/mcp", "*", "/\xe9"])
def test_a_target_is_what_was_sent(target: str) -> None:
    """Case B133."""
    (head, _) = split("c2s", f"POST {target} HTTP/1.1\r\n\r\n".encode("latin-1"))
    assert isinstance(head, Head)
    assert (head.method, head.target, head.flaws) == ("POST", target, ())


@pytest.mark.parametrize(
    ("head", "asked", "framing"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "HEAD", "none"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "HEAD", "none"),
        (b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", "GET", "none"),
        (b"HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n", "GET", "none"),
        (b"HTTP/1.1 103 Early Hints\r\nContent-Length: 5\r\n\r\n", "GET", "none"),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n", "GET", "tunnel"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "CONNECT", "tunnel"),
        (b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 5\r\n\r\n", "CONNECT", "length"),
        (b"HTTP/1.1 200 OK\r\n\r\n", "GET", "close"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nContent-Length: 5\r\n\r\n", "GET", "close"),
    ],
)
def test_what_delimits_a_response(head: bytes, asked: str, framing: str) -> None:
    (first, *_) = split("s2c", head, expect=[asked])
    assert isinstance(first, Head)
    assert first.framing == framing
    assert first.length == (5 if framing == "length" else None)


def test_interim_responses_answer_no_request() -> None:
    data = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n" + OK
    parts = split("s2c", data, expect=["HEAD", "GET"])
    assert [(head.status, head.interim, head.framing) for head in heads(parts)] == [
        (100, True, "none"),
        (200, False, "none"),
        (200, False, "length"),
    ]


def test_a_request_without_length_has_no_body() -> None:
    parts = split_everywhere("c2s", GET + b"POST / HTTP/1.1\r\n\r\n" + GET)
    assert [type(part) for part in parts] == [Head, End] * 3


def test_trailers() -> None:
    data = CHUNKED + b"2\r\n{}\r\n0\r\nETag: x\r\nEtag:\ty \r\n\r\n" + OK
    _, _, trailers, end, *rest = split_everywhere("s2c", data)
    assert isinstance(trailers, Trailers)
    assert isinstance(end, End)
    assert trailers.headers == (("ETag", "x"), ("Etag", "y"))
    assert (end.complete, end.flaws, end.spans) == (True, (), ())
    assert len(rest) == 3


def test_a_bad_trailer_is_flagged() -> None:
    *_, end = split_everywhere("s2c", CHUNKED + b"0\r\nno trailer\r\n\r\n")
    assert isinstance(end, End)
    assert (end.complete, end.flaws) == (True, ("bad-trailer",))


def test_times_are_those_of_the_reads() -> None:
    splitter = Http1Splitter(CHANNEL, "s2c")
    assert splitter.feed(10, b"\r\nHTTP/1.1 200 OK\r\nContent-") == []
    head, one = splitter.feed(20, b"Length: 3\r\n\r\na")
    two, end = splitter.feed(30, b"bc")
    assert isinstance(head, Head)
    assert isinstance(one, Data)
    assert isinstance(two, Data)
    assert isinstance(end, End)
    assert (head.t_first, head.t_last, one.t, two.t, end.t) == (10, 20, 20, 30, 30)


@pytest.mark.parametrize(
    ("direction", "data"),
    [
        ("s2c", b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab"),
        ("s2c", CHUNKED + b"3\r\nab"),
        ("s2c", CHUNKED + b"3\r\nabc\r"),
        ("s2c", CHUNKED + b"3\r\nabc\r\n0\r\n"),
        ("c2s", b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"),
        ("c2s", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Enc"),
    ],
)
def test_a_message_that_is_cut_says_so(direction: str, data: bytes) -> None:
    *_, end = split_everywhere(direction, data)
    assert isinstance(end, End)
    assert (end.complete, end.flaws) == (False, ("cut",))


def test_a_head_that_is_cut_tells_what_it_had() -> None:
    head, _ = split("c2s", b"POST /mcp HTTP/1.1\r\nHost: a\r\nAccept: text/ev")
    assert isinstance(head, Head)
    assert (head.target, head.headers, head.framing) == ("/mcp", (("Host", "a"),), "none")
    assert head.flaws == ("cut",)


@pytest.mark.parametrize(
    "why", [(b"POST /m", "cut"), (b"\r\n\r\n", "surplus-bytes"), (b"\x16\x03\x01\x02", "not-http")]
)
def test_a_stream_that_ends_in_no_message(why: tuple[bytes, str]) -> None:
    data, reason = why
    assert undecoded(split_everywhere("c2s", data), data) == [(reason, data)]


# -- finding the way back ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "reason", "lost"),
    [
        (b"garbage\r\n" + OK, "not-http", b"garbage\r\n"),
        (b"HTTP/1.1 2x0 OK\r\nServer: a\r\n\r\n" + OK, "not-http", b"HTTP/1.1 2x0 OK\r\nServer: a\r\n\r\n"),
        (OK + b'"}]}' + OK, "surplus-bytes", b'"}]}'),
        (OK + b"\x00\n\n\x00\r\n" + OK, "surplus-bytes", b"\x00\n\n\x00\r\n"),
        (CHUNKED + b"2\r\n{}x" + b"\r\n" + OK, "bad-chunk", b"x\r\n"),
        (CHUNKED + b"2\r\n{}\r\nzz\r\nab\r\n" + OK, "bad-chunk", b"\r\nzz\r\nab\r\n"),
        (CHUNKED + b"11111111111111111\r\n" + OK, "bad-chunk", b"11111111111111111\r\n"),
    ],
)
def test_after_what_is_no_http_it_goes_on_at_the_next_head(data: bytes, reason: str, lost: bytes) -> None:
    parts = split_everywhere("s2c", data)
    assert undecoded(parts, data) == [(reason, lost)]
    assert [head.status for head in heads(parts)][-1] == 200
    assert bodies(parts)[-1] == b"{}"
    assert ends(parts)[-1].complete


def test_requests_after_garbage() -> None:
    data = b"\x00\x01 POST\r\nPOST /mcp HTTP/9\r\n\r\n" + GET
    parts = split_everywhere("c2s", data)
    assert undecoded(parts, data) == [("not-http", data.removesuffix(GET))]
    assert [head.target for head in heads(parts)] == ["/"]


def test_a_body_longer_than_said_does_not_hide_the_next_request() -> None:
    data = b'POST /a HTTP/1.1\r\nContent-Length: 2\r\n\r\n{"id":1}POST /b HTTP/1.1\r\n\r\n'
    parts = split_everywhere("c2s", data)
    assert undecoded(parts, data) == [("surplus-bytes", b'id":1}')]
    assert [head.target for head in heads(parts)] == ["/a", "/b"]


@pytest.mark.parametrize("size", [HEAD_LIMIT - 20, HEAD_LIMIT, 4 * HEAD_LIMIT])
def test_a_head_may_have_256_kib(size: int) -> None:
    data = b"GET / HTTP/1.1\r\nA: " + b"x" * (size - 23) + b"\r\n\r\n" + GET
    whole = split("c2s", data)
    assert_partition(whole, len(data))
    assert essence(split("c2s", *(data[n : n + 999] for n in range(0, len(data), 999)))) == essence(whole)
    assert len(heads(whole)) == 2 - (size > HEAD_LIMIT)
    assert [why for why, _ in undecoded(whole, data)] == ["head-too-large"] * (size > HEAD_LIMIT)


@pytest.mark.parametrize("size", [HEAD_LIMIT - 1, HEAD_LIMIT, HEAD_LIMIT + 1])
def test_a_start_line_that_turns_out_to_be_none_at_its_end(size: int) -> None:
    data = b"GET /" + b"x" * (size - 11) + b" \x00 /\r\n" + GET
    whole = split("c2s", data)
    assert_partition(whole, len(data))
    assert [head.target for head in heads(whole)] == ["/"]
    for step in (999, HEAD_LIMIT - 3):
        assert essence(split("c2s", *(data[n : n + step] for n in range(0, len(data), step)))) == essence(whole)


def test_long_trailers_end_the_message_badly() -> None:
    data = CHUNKED + b"0\r\n" + b"a: b\r\n" * 50_000 + b"\r\n" + OK
    parts = split("s2c", data)
    assert [(end.complete, end.flaws) for end in ends(parts)] == [(False, ("bad-trailer",)), (True, ())]


def test_other_protocols_are_not_decoded() -> None:
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04" + GET
    assert undecoded(split_everywhere("c2s", preface), preface) == [("http2", preface)]
    upgraded = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n\x81\x05hello" + OK
    parts = split_everywhere("s2c", upgraded)
    assert [type(part) for part in parts[:2]] == [Head, End]
    assert undecoded(parts, upgraded) == [("upgraded", b"\x81\x05hello" + OK)]
    tunnel = b"CONNECT a:443 HTTP/1.1\r\n\r\n\x16\x03" + GET
    assert undecoded(split_everywhere("c2s", tunnel), tunnel) == [("tunnel", b"\x16\x03" + GET)]


# -- gaps --------------------------------------------------------------------------------------------------------------


def around_a_gap(before: bytes, size: int, after: bytes, direction: str = "s2c") -> list[Part]:
    splitter = Http1Splitter(CHANNEL, direction)
    parts = splitter.feed(0, before)
    splitter.gap(size)
    parts += splitter.feed(1, after)
    parts += splitter.finish(2)
    assert_partition(parts, len(before + after))
    for place in range(1, len(after)):
        splitter = Http1Splitter(CHANNEL, direction)
        again = splitter.feed(0, before)
        splitter.gap(size)
        again += splitter.feed(1, after[:place]) + splitter.feed(1, after[place:]) + splitter.finish(2)
        assert essence(again) == essence(parts)
    return parts


def statuses(parts: list[Part]) -> list[tuple[int | None, bool, tuple[str, ...]]]:
    return [(head.status, end.complete, end.flaws) for head, end in zip(heads(parts), ends(parts), strict=True)]


def test_a_gap_within_a_body_of_known_length_costs_nothing_else() -> None:
    parts = around_a_gap(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", 5, b"ij" + OK)
    assert statuses(parts) == [(200, False, ("gap",)), (200, True, ())]
    assert bodies(parts) == [b"abcij", b"{}"]


def test_a_gap_up_to_the_end_of_a_body() -> None:
    parts = around_a_gap(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n", 10, OK)
    assert statuses(parts) == [(200, False, ("gap",)), (200, True, ())]


def test_a_gap_within_a_chunk() -> None:
    parts = around_a_gap(CHUNKED + b"a\r\nabc", 7, b"\r\n2\r\nkl\r\n0\r\n\r\n" + OK)
    assert statuses(parts) == [(200, False, ("gap",)), (200, True, ())]
    assert bodies(parts) == [b"abckl", b"{}"]


@pytest.mark.parametrize("size", [0, 11])
def test_a_gap_beyond_a_body_cuts_it(size: int) -> None:
    data = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"
    parts = around_a_gap(data, size, b"x: y\r\n\r\nzHTTP/1.1 200 OK\r\n" + OK)
    assert statuses(parts) == [(200, False, ("gap",)), (200, True, ())]
    assert [why for why, _ in undecoded(parts, b"")] == ["gap"]


def test_a_chunked_body_goes_on_with_its_next_chunk() -> None:
    """An event stream does not end because a few reads of it are missing."""
    rest = b"ta: x\r\n\r\n\r\n6\r\ndata:y\r\n0\r\n\r\n"
    parts = around_a_gap(CHUNKED + b"20\r\ndata", 1000, rest + OK)
    assert statuses(parts) == [(200, False, ("gap",)), (200, True, ())]
    assert bodies(parts) == [b"datadata:y", b"{}"]
    assert undecoded(parts, CHUNKED + b"20\r\ndata" + rest) == [("gap", b"ta: x\r\n\r\n\r\n")]


def test_a_chunked_body_is_cut_by_the_next_head() -> None:
    parts = around_a_gap(CHUNKED + b"20\r\ndata", 1000, b"ta: x\r\n" + OK)
    assert statuses(parts) == [(200, False, ("gap",)), (200, True, ())]


def test_a_gap_in_a_head() -> None:
    parts = around_a_gap(b"GET /a HTTP/1.1\r\nHost: a\r\nAcc", 3, b"t: x\r\n\r\n" + GET, "c2s")
    first, second = heads(parts)
    assert (first.target, first.headers, first.flaws) == ("/a", (("Host", "a"),), ("gap",))
    assert second.target == "/"
    assert [end.complete for end in ends(parts)] == [False, True]


def test_a_gap_between_two_messages() -> None:
    parts = around_a_gap(GET, 100, GET, "c2s")
    assert [type(part) for part in parts] == [Head, End] * 2


def test_a_gap_in_a_body_that_goes_on_to_the_end() -> None:
    parts = around_a_gap(b"HTTP/1.1 200 OK\r\n\r\nabc", 100, b"xyz")
    assert statuses(parts) == [(200, False, ("gap",))]
    assert bodies(parts) == [b"abcxyz"]


def test_pending_says_what_is_not_accounted_for_yet() -> None:
    splitter = Http1Splitter(CHANNEL, "s2c")
    seen = []
    for chunk in (b"", b"HT", CHUNKED[2:], b"1\r", b"\nx", b"\r", b"\n0\r\nT", b": r\r\n\r\n", b"x\r\ny", b"\x00\n"):
        splitter.feed(0, chunk)
        seen.append(splitter.pending)
    assert seen == ["", "head", "", "framing", "", "framing", "trailers", "", "unknown", ""]


def test_undecoded_bytes_are_given_once_per_read() -> None:
    splitter = Http1Splitter(CHANNEL, "c2s")
    assert [type(part) for part in splitter.feed(0, b"\x00\n" * 1000)] == [Undecoded]
    assert [type(part) for part in splitter.feed(1, b"\x00\n" * 1000 + GET)] == [Undecoded, Head, End]
