"""Newline framing: only LF ends a line, whatever the reads were, and every byte belongs to exactly one frame."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpsniff.wire.frames import Frame
from mcpsniff.wire.ndjson import LineSplitter

CHUNKS = st.lists(st.binary(max_size=12) | st.sampled_from([b"\n", b"\r\n", b"{}\n", b"\xef\xbb\xbf", b"\xe2\x80\xa8"]))


def split(*chunks: bytes, limit: int = 1 << 20) -> list[Frame]:
    splitter = LineSplitter(7, "s2c", limit=limit)
    frames = [frame for t, chunk in enumerate(chunks) for frame in splitter.feed(t, chunk)]
    return frames + splitter.finish(len(chunks))


def essence(frame: Frame) -> tuple[object, ...]:
    return frame.spans, frame.payload, frame.size, frame.flaws


@given(CHUNKS)
def test_frames_do_not_depend_on_the_reads(chunks: list[bytes]) -> None:
    whole = b"".join(chunks)

    assert [essence(f) for f in split(whole)] == [essence(f) for f in split(*chunks)]
    assert [essence(f) for f in split(whole)] == [essence(f) for f in split(*(bytes([b]) for b in whole))]


@given(CHUNKS, st.integers(1, 8))
def test_spans_partition_the_stream(chunks: list[bytes], limit: int) -> None:
    whole = b"".join(chunks)
    position = 0
    for frame in split(*chunks, limit=limit):
        (span,) = frame.spans

        assert position == span.start
        position = span.stop
        text = whole[span.start : span.stop]
        assert text.removesuffix(b"\n")[:limit] == frame.payload
        assert len(text.removesuffix(b"\n")) == frame.size
        assert ("truncated" in frame.flaws) == (frame.size > limit)
    assert position == len(whole)


@given(CHUNKS, st.binary(max_size=3))
def test_a_tail_changes_nothing_before_it(chunks: list[bytes], tail: bytes) -> None:
    ended = b"".join(chunks) + b"\n"

    assert [essence(f) for f in split(ended)] == [essence(f) for f in split(ended + tail)][: ended.count(b"\n")]


@pytest.mark.parametrize(
    ("text", "flaws"),
    [
        (b"{}\n", ()),
        (b"{}\r\n", ("cr-before-lf",)),
        (b'{"a":\r1}\n', ("bare-cr",)),
        (b"{}\r\r\n", ("bare-cr", "cr-before-lf")),
        (b"\xef\xbb\xbf{}\n", ("bom",)),
        (b"\n", ("empty-line",)),
        (b" \t\r\n", ("empty-line", "cr-before-lf")),
        (b'{"a":"\xff"}\n', ("invalid-utf8",)),
        ('{"a":"\u2028\u2029\u0085\u000b\u000c\u001c"}\n'.encode(), ()),
        (b"{}", ("unterminated",)),
        (b"{}\r", ("unterminated", "bare-cr")),
    ],
)
def test_flaws_of_a_line(text: bytes, flaws: tuple[str, ...]) -> None:
    (frame,) = split(text)

    assert set(flaws) == set(frame.flaws)


def test_times_are_those_of_its_first_and_last_byte() -> None:
    (frame,) = split(b"x\n{", b'"a"', b":1}\n")[1:]

    assert (frame.t_first, frame.t_last) == (0, 2)


def test_a_cut_copy_does_not_blame_the_peer_for_a_torn_character() -> None:
    (frame,) = split("{é}\n".encode(), limit=2)

    assert frame.flaws == ("truncated",)
    assert frame.size == 4


def test_the_line_around_a_gap_says_so() -> None:
    splitter = LineSplitter(0, "c2s")
    splitter.feed(0, b'{"a"')
    splitter.gap()
    around, after = splitter.feed(1, b":1}\n{}\n")

    assert around.flaws == ("gap",)
    assert after.flaws == ()


def test_a_line_beyond_the_limit_keeps_memory_bounded() -> None:
    splitter = LineSplitter(0, "s2c", limit=1000)
    for _ in range(5000):
        splitter.feed(0, b"a" * 1000)

    assert len(splitter._pending) <= 1000
    frame, after = splitter.feed(1, b"\n{}\n")
    assert (frame.size, len(frame.payload), frame.flaws) == (5_000_000, 1000, ("truncated",))
    assert (after.payload, after.flaws) == (b"{}", ())
