"""Laws of the HTTP/1.1 splitter: the reads do not matter, every byte has its part, nothing raises, time is linear."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mcpsniff.wire import http1_lost, http1_splitter
from mcpsniff.wire.http1 import HTTP_FLAWS, UNDECODED, Data, End, Head, Http1Connection, Http1Splitter, Part, Undecoded
from mcpsniff.wire.http1_head import parse_start_line
from mcpsniff.wire.http1_stream import Stream
from tests.wire.http1_tools import CHANNEL, assert_partition, essence, split

WORDS = st.sampled_from(
    [
        *(b"POST /mcp HTTP/1.1\r\n", b"get  /a b HTTP/1.0\n", b"HEAD / HTTP/1.1\r\n", b"CONNECT a:1 HTTP/1.1\r\n\r\n"),
        *(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200\r\n", b"HTTP/1.0 100 x\r\n\r\n"),
        *(b"HTTP/1.1 101 Up\r\n\r\n", b"HTTP/1.1 204 \n\n", b"Content-Length: 3\r\n", b"content-length : 4, 4\n"),
        *(b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: gzip\r\n", b"A: b\r\n", b" folded\r\n", b": x\r\n"),
        *(
            b"\r\n",
            b"\n",
            b"\r",
            b"3\r\nabc\r\n",
            b"3;x=y\r\nabc",
            b"0\r\n\r\n",
            b"0\r\nT: r\r\n\r\n",
            b"zz\r\n",
            b"ab",
        ),
        *(b"\x00\x16\x03", b"\xff" * 20, b"HTTP/1.1", b"x" * 9000),
    ]
)
STREAM = st.lists(WORDS | st.binary(max_size=6), max_size=14).map(b"".join)
DIRECTION = st.sampled_from(["c2s", "s2c"])


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:stop] for start, stop in pairwise(edges)]


@given(DIRECTION, STREAM, st.lists(st.integers(0), max_size=6), st.lists(st.sampled_from(["GET", "HEAD", "CONNECT"])))
@settings(max_examples=400)
def test_parts_do_not_depend_on_the_reads(direction: str, data: bytes, places: list[int], asked: list[str]) -> None:
    whole = split(direction, data, expect=asked)

    assert_partition(whole, len(data))
    assert essence(split(direction, *cut(data, places), expect=asked)) == essence(whole)
    if len(data) < 500:
        assert essence(split(direction, *(bytes([byte]) for byte in data), expect=asked)) == essence(whole)


@given(DIRECTION, STREAM)
def test_each_message_has_one_head_and_one_end(direction: str, data: bytes) -> None:
    is_open = False
    for part in split(direction, data):
        if isinstance(part, Undecoded):
            assert not is_open
            assert part.why in UNDECODED
            continue
        assert is_open != isinstance(part, Head)
        is_open = not isinstance(part, End)
        flaws = part.flaws if isinstance(part, Head | End) else ()
        assert set(flaws) <= HTTP_FLAWS.keys()
        assert len(set(flaws)) == len(flaws)
    assert not is_open


@given(st.lists(st.tuples(st.integers(0, 1), STREAM | st.integers(0, 40)), max_size=12), st.integers(0, 100))
@settings(max_examples=300)
def test_gaps_anywhere_lose_nothing_else(steps: list[tuple[int, bytes | int]], offset: int) -> None:
    """Both directions of a connection, with bytes missing at any place."""
    channels = (CHANNEL, CHANNEL + 1)
    connection = Http1Connection(*channels, request_offset=offset, response_offset=offset)
    parts: dict[int, list[Part]] = {channel: [] for channel in channels}
    sizes = dict.fromkeys(channels, 0)
    for t, (which, step) in enumerate(steps):
        channel = channels[which]
        if isinstance(step, int):
            connection.gap(channel, step)
        else:
            parts[channel] += connection.feed(t, channel, step)
            sizes[channel] += len(step)
    for channel in channels:
        parts[channel] += connection.finish(99, channel)
        position = offset
        for part in parts[channel]:
            spans = [part.lead, part.span] if isinstance(part, Data) else part.spans
            for span in filter(None, spans):
                assert (span.channel, span.start) == (channel, position)
                position = span.stop
        assert position == offset + sizes[channel]


CONTROLS = st.sampled_from([bytes([byte]) for byte in (0, 1, 8, 9, 11, 12, 13, 27, 31, 32, 127, 128, 255)])
LINES = st.sampled_from(
    [
        *(b"GET ", b"POST /mcp ", b"HTTP/1.1", b" HTTP/1.1", b"HTTP/1.1 200 ", b"HTTP/1.1 101 ", b"HTTP/1.0 401 O"),
        *(b"\r\n", b"\n", b"\r\n\r\n", b"K\r\n", b"/", b" ", b"A: b\r\n", b"Transfer-Encoding: chunked\r\n\r\n"),
        *(b"Content-Length: 2\r\n\r\n", b"{}", b"5\r\n", b"0\r\n\r\n", b"ffffffff;", b"zz\r\n", b"CONNECT ", b"PRI "),
    ]
)
ODD = st.lists(LINES | CONTROLS, max_size=12).map(b"".join)
STEPS_PER_BYTE = 6


@contextmanager
def counted_steps() -> Iterator[list[int]]:
    """Fail, rather than to hang, where the steps go round without taking bytes; the list says how many may be done."""
    left = [0]

    def step(number: int, stream: Stream, data: bytes, position: int) -> int:
        left[0] -= 1
        assert left[0] >= 0, "goes round"
        return steps[number](stream, data, position)

    with pytest.MonkeyPatch.context() as patch:
        steps = http1_splitter._STEPS
        patch.setattr(http1_splitter, "_STEPS", [partial(step, number) for number in range(len(steps))])
        yield left


@given(DIRECTION, st.lists(ODD | st.integers(0, 40), max_size=8), st.booleans())
@example("s2c", [b"HTTP/1.1 200 O\x01K\r\nContent-Length: 2\r\n\r\n{}"], False)
@example("s2c", [b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\njunk HTTP/1.1 200 \x01\r\n\r\n"], True)
@settings(max_examples=600)
def test_reading_always_gets_on(direction: str, steps: list[bytes | int], bytewise: bool) -> None:
    """Whatever stands in the lines, and wherever bytes are missing: each step takes bytes or leads to one that does."""
    splitter = Http1Splitter(CHANNEL, direction)
    parts: list[Part] = []
    size = 0
    with counted_steps() as left:
        for t, step in enumerate(steps):
            if isinstance(step, int):
                splitter.gap(step)
                continue
            size += len(step)
            left[0] = STEPS_PER_BYTE * (len(step) + 1)
            for piece in [step[i : i + 1] for i in range(len(step))] if bytewise else [step]:
                parts += splitter.feed(t, piece)
    assert_partition(parts + splitter.finish(99), size)


@given(DIRECTION, ODD)
@example("s2c", b"HTTP/1.1 200 O\x7fK\r\n")
@example("c2s", b"GET /\x7f HTTP/1.1\r\n")
def test_what_a_head_is_found_by_can_be_read_as_one(direction: str, data: bytes) -> None:
    request = direction == "c2s"
    for pattern in (http1_lost._ANYWHERE, http1_lost._AT_LINE):
        for found in pattern[request].finditer(data):
            assert parse_start_line(found[0], request=request)


def test_an_offset_moves_the_spans_only() -> None:
    data = b"junk\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    splitter = Http1Splitter(CHANNEL, "s2c", offset=1000)
    assert_partition(splitter.feed(0, data), len(data), start=1000)


SLOW = {
    "one_byte_chunks": ("s2c", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n", 50_000),
    "large_body": ("s2c", b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 1000, 20_000),
    "long_head": ("c2s", b"GET / HTTP/1.1\r\n", b"a: b\r\n", 170_000),
    "long_header": ("c2s", b"GET / HTTP/1.1\r\na: ", b"b", 1_000_000),
    "long_target": ("c2s", b"GET ", b"/ \t", 80_000),
    "long_reason": ("s2c", b"HTTP/1.1 200 ", b" \t\r", 80_000),
    "folds": ("c2s", b"GET / HTTP/1.1\r\na: b\r\n", b" x\r\n", 60_000),
    "lengths": ("c2s", b"GET / HTTP/1.1\r\nContent-Length: ", b"1,", 120_000),
    "pipelined": ("c2s", b"", b"GET / HTTP/1.1\r\n\r\n", 20_000),
    "blank_lines": ("c2s", b"", b"\r\n", 500_000),
    "garbage_lines": ("c2s", b"\x00", b"\n", 500_000),
    "nearly_heads": ("c2s", b"\x00", b"AAA xxxxxxxxxxxx HTTP/1.\n", 40_000),
    "garbage": ("s2c", b"\x00", b"HTTP/1.1 2", 100_000),
    "trailers": ("s2c", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"a: b\r\n", 170_000),
    "long_size_line": ("s2c", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", b"x", 500_000),
}


@pytest.mark.parametrize("name", SLOW)
@pytest.mark.parametrize("read", [17, 1 << 16, 1 << 30])
def test_time_is_linear_in_the_bytes(name: str, read: int) -> None:
    """Anything quadratic would take hours here, and meet the time-out."""
    direction, head, piece, times = SLOW[name]
    if read == 17:
        times //= 8
    data = head + piece * times
    splitter = Http1Splitter(CHANNEL, direction)
    position = kept = 0
    for start in range(0, len(data), read):
        for part in splitter.feed(start, data[start : start + read]):
            spans = [part.lead, part.span] if isinstance(part, Data) else part.spans
            position += sum(span.stop - span.start for span in spans if span)
        if start % (read * 100) == 0:
            kept = max(kept, len(splitter._stream.pending) + sum(map(len, splitter._stream.trailers)))
    position += sum(span.stop - span.start for part in splitter.finish(0) for span in getattr(part, "spans", ()))
    assert position == len(data)
    assert kept <= 256 * 1024
