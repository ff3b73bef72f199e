"""Event streams by WHATWG HTML 9.2.6: each vector at every cut, and laws that hold for any bytes and any reads."""

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpsniff.wire.frames import Frame, ServerSentEvent, Span
from mcpsniff.wire.sse import FIELD_LIMIT, RETRY_LIMIT, EventSplitter
from tests.wire.streams import Naive, essence, every_cut, played, split

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "protocol-vectors.json").read_text())["sse"]
SMALL = [vector for vector in VECTORS if vector["name"] != "very-long-line"]

LINES = st.sampled_from(
    b"data: a|data:|data|data: \xe2\x82\xac|data: \xff|id: 1|id|id: \0|retry: 30|retry: x|event: e|event: message|"
    b"event:|: ping|:|foo: b|\xef\xbb\xbf||".split(b"|")
)
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r", b"\n\n", b"\r\n\r\n"])
STREAMS = st.lists(st.tuples(LINES, ENDS).map(b"".join) | st.binary(max_size=4), max_size=12).map(b"".join)
CHUNKS = st.lists(STREAMS | st.sampled_from([b"\r", b"\n", b"\xef", b"\xbb", b"\xbf", b"d", b""]), max_size=8)


def chunks_of(vector: dict[str, Any]) -> list[bytes]:
    return [
        base64.b64decode(chunk) if isinstance(chunk, str) else base64.b64decode(chunk["b64"]) * chunk["times"]
        for chunk in vector["chunks"]
    ]


def seen(frames: list[Frame]) -> list[tuple[str, str, str]]:
    """What a reader sees: type, data and last event id of each event that is dispatched."""
    events, last_event_id = [], ""
    for frame in frames:
        assert frame.sse is not None
        last_event_id = last_event_id if frame.sse.id is None else frame.sse.id
        if frame.sse.dispatched:
            events.append((frame.sse.event, frame.payload.decode(errors="replace"), last_event_id))
    return events


# -- vectors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("vector", SMALL, ids=lambda vector: vector["name"])
def test_vector_at_every_cut(vector: dict[str, Any]) -> None:
    expected = [(event["type"], event["data"], event["lastEventId"]) for event in vector["events"]]
    whole = b"".join(chunks_of(vector))
    for chunks in (chunks_of(vector), *every_cut(whole)):
        splitter = EventSplitter(0, "s2c")

        assert seen(played(splitter, chunks)) == expected
        assert splitter.last_event_id == vector["lastEventId"]
        assert splitter.reconnection_time == vector["reconnectionTime"]


@pytest.mark.parametrize("vector", SMALL, ids=lambda vector: vector["name"])
def test_a_tail_changes_nothing_before_it(vector: dict[str, Any]) -> None:
    whole = b"".join(chunks_of(vector))
    ended = [essence(frame) for frame in split(whole) if "unterminated" not in frame.flaws]
    for tail in (b"\n", b"\r", b"x", b"data: tail\n\n", b"\xff"):
        assert [essence(frame) for frame in split(whole + tail)][: len(ended)] == ended


def test_two_mebibytes_in_one_line() -> None:
    (vector,) = [vector for vector in VECTORS if vector not in SMALL]
    whole = b"".join(chunks_of(vector))
    (event,) = vector["events"]
    for chunks in (chunks_of(vector), [whole], [whole[at : at + 65_536] for at in range(0, len(whole), 65_536)]):
        (frame,) = split(*chunks)

        assert frame.size == len(frame.payload) == event["dataLength"]
        assert hashlib.sha256(frame.payload).hexdigest() == event["dataSha256"]


@pytest.mark.parametrize("value", ["-5", "+7", "1.5", "1e3", "  10", "1_0", "٣", "", "10 "])
def test_a_retry_that_is_not_all_ascii_digits_is_ignored(value: str) -> None:
    splitter = EventSplitter(0, "s2c")
    (frame,) = played(splitter, [f"retry: {value}\n\n".encode()])

    assert (splitter.reconnection_time, frame.flaws) == (None, ("sse-bad-retry",))


@pytest.mark.parametrize(
    ("digits", "milliseconds"),
    [
        ("0", 0),
        ("000", 0),
        ("00010", 10),
        (str(RETRY_LIMIT), RETRY_LIMIT),
        ("9" * 17, RETRY_LIMIT),
        ("0" * 6000 + "7", 7),
        ("9" * 6000, RETRY_LIMIT),
    ],
)
def test_a_retry_of_any_length(digits: str, milliseconds: int) -> None:
    (frame,) = split(f"retry: {digits}\n\n".encode())

    assert frame.sse == ServerSentEvent(retry=milliseconds, dispatched=False)


# -- laws -------------------------------------------------------------------------------------------------------------


@given(CHUNKS)
def test_the_naive_reader_sees_the_same_events(chunks: list[bytes]) -> None:
    splitter = EventSplitter(0, "s2c")
    naive = Naive().read(b"".join(chunks))
    frames = played(splitter, chunks)

    assert seen(frames) == naive.events
    assert splitter.last_event_id == naive.last_event_id
    assert splitter.reconnection_time == naive.reconnection_time
    assert any("unterminated" in frame.flaws for frame in frames) == naive.unfinished


@given(CHUNKS, st.sampled_from([1, 2, 5, 1 << 20]))
def test_frames_do_not_depend_on_the_reads(chunks: list[bytes], limit: int) -> None:
    whole = b"".join(chunks)
    expected = [essence(frame) for frame in split(whole, limit=limit)]

    assert [essence(frame) for frame in split(*chunks, limit=limit)] == expected
    assert [essence(frame) for frame in split(*(bytes([b]) for b in whole), limit=limit)] == expected


@given(CHUNKS)
def test_spans_partition_the_stream_but_for_the_lf_after_the_cr_that_ended_a_frame(chunks: list[bytes]) -> None:
    whole = b"".join(chunks)
    position = 0
    for frame in split(*chunks):
        (span,) = frame.spans
        if position != span.start:
            assert (whole[position - 1 : span.start], span.start - position) == (b"\r\n", 1)
        assert span.start < span.stop
        position = span.stop
    assert whole[position:] in (b"", b"\n")
    assert position == len(whole) or whole[position - 1 : position] == b"\r"


@given(CHUNKS, st.integers(1, 6))
def test_a_limit_cuts_the_copy_and_nothing_else(chunks: list[bytes], limit: int) -> None:
    for whole, cut in zip(split(*chunks), split(*chunks, limit=limit), strict=True):
        assert (cut.spans, cut.size, cut.payload) == (whole.spans, whole.size, whole.payload[:limit])
        assert cut.size == len(cut.payload) or "truncated" in cut.flaws
        assert cut.sse is not None
        assert whole.sse is not None
        assert cut.sse.dispatched == whole.sse.dispatched


@given(st.lists(st.binary(max_size=20) | st.none(), max_size=8))
def test_any_bytes_and_gaps_are_taken(chunks: list[bytes | None]) -> None:
    splitter = EventSplitter(0, "s2c")
    frames = []
    for t, chunk in enumerate(chunks):
        if chunk is None:
            splitter.gap()
        else:
            frames += splitter.feed(t, chunk, (Span(0, 0, len(chunk)),))
    frames += splitter.finish(len(chunks))

    assert all(frame.t_first <= frame.t_last for frame in frames)
    assert splitter.finish(len(chunks)) == []


# -- what readers drop ------------------------------------------------------------------------------------------------


def test_a_comment_is_a_frame_of_its_own_with_its_time() -> None:
    keepalive, event = split(b": ping - 12:00\r\n\r\n", b"data: a\n: mid\n:\ndata: b\n\n")

    assert keepalive.sse == ServerSentEvent(comments=("ping - 12:00",), dispatched=False)
    assert (keepalive.t_first, keepalive.t_last, keepalive.payload) == (0, 0, b"")
    assert event.sse == ServerSentEvent(comments=("mid", ""))
    assert event.payload == b"a\nb"


def test_a_block_without_data_says_what_it_holds() -> None:
    only_id, only_type, priming = split(b"id: 7\nretry: 10\n\nevent: ping\n\nid: e\nretry: 3000\ndata: \n\n")

    assert only_id.sse == ServerSentEvent(id="7", retry=10, dispatched=False)
    assert only_type.sse == ServerSentEvent(event="ping", dispatched=False)
    assert priming.sse == ServerSentEvent(id="e", retry=3000)
    assert [frame.flaws for frame in (only_id, only_type, priming)] == [()] * 3


def test_each_blank_line_more_is_a_frame() -> None:
    frames = split(b"data: a\n\n\n\r\ndata: b\n\n")

    assert [frame.spans[0][1:] for frame in frames] == [(0, 9), (9, 10), (10, 11), (12, 21)]
    assert [frame.sse.dispatched for frame in frames if frame.sse] == [True, False, False, True]


@pytest.mark.parametrize(
    ("stream", "flaws"),
    [
        (b"\xef\xbb\xbfdata: {}\n\n", ("sse-bom",)),
        (b"data: \xef\xbb\xbf{}\n\n", ("bom",)),
        (b"data: \xff\n\n", ("invalid-utf8",)),
        (b"data: \xe2\x82\ndata: \xac\n\n", ("invalid-utf8",)),
        (b"event: \xff\ndata: x\n\n", ("invalid-utf8",)),
        (b": \xff\n\n", ("invalid-utf8",)),
        (b"Data: x\n data: x\ndata : x\n\n", ("sse-unknown-field",)),
        (b"id: a\0b\n\n", ("sse-nul-in-id",)),
        ("data: a\u2028b\u0085c\x0bd\x1ce\n\n".encode(), ()),
        (b"data: {}\r\r", ()),
        (b"data: x", ("unterminated",)),
        (b"data: x\r", ("unterminated",)),
        (b"data: \xe2\x82", ("unterminated",)),
        (b"dat", ("unterminated",)),
        (b"retry: 5", ("unterminated",)),
    ],
)
def test_flaws_of_an_event(stream: bytes, flaws: tuple[str, ...]) -> None:
    (frame,) = split(stream)

    assert frame.flaws == flaws


def test_an_unfinished_block_shows_its_data_and_commits_nothing() -> None:
    splitter = EventSplitter(0, "s2c")
    (frame,) = played(splitter, [b'id: 2\nevent: e\ndata: {"a"\ndata: :1', b"0"])

    assert frame.payload == b'{"a"\n:10'
    assert frame.sse == ServerSentEvent(event="e", dispatched=False)
    assert (splitter.last_event_id, frame.t_first, frame.t_last) == ("", 0, 2)


def test_half_a_line_at_the_end_is_not_taken_for_a_whole_one() -> None:
    splitter = EventSplitter(0, "s2c")
    (frame,) = played(splitter, [b"retry: 50\nretry: 5"])

    assert (splitter.reconnection_time, frame.sse) == (50, ServerSentEvent(retry=50, dispatched=False))


# -- bytes, times, gaps -----------------------------------------------------------------------------------------------


def test_a_cr_at_the_end_of_a_read_ends_the_event_at_once() -> None:
    splitter = EventSplitter(7, "s2c")
    (event,) = splitter.feed(0, b"data: a\r\n\r", (Span(7, 0, 10),))
    nothing = splitter.feed(5, b"\n", (Span(7, 10, 11),))
    (after,) = splitter.feed(9, b"data: b\r\r", (Span(7, 11, 20),))

    assert (event.payload, event.spans) == (b"a", (Span(7, 0, 10),))
    assert nothing == []
    assert (after.spans, after.t_first) == ((Span(7, 11, 20),), 9)
    assert splitter.finish(10) == []


def test_times_are_those_of_its_first_and_last_byte() -> None:
    _, frame, _ = split(b"data: x\n\nid", b": 1\n", b"data: y\n", b"\n:", b"\n\n")

    assert (frame.t_first, frame.t_last) == (0, 3)


def test_an_event_over_several_chunks_of_a_body_has_several_spans() -> None:
    splitter = EventSplitter(7, "s2c")
    runs = (Span(7, 100, 104), Span(7, 110, 113), Span(7, 120, 140))
    first = splitter.feed(0, b"data: a\n\ndata: longer text!", runs)
    second = splitter.feed(1, b"\n\ndata: c\n\n", (Span(7, 140, 141), Span(7, 150, 160)))

    assert [frame.spans for frame in first] == [(Span(7, 100, 104), Span(7, 110, 113), Span(7, 120, 122))]
    assert [frame.spans for frame in second] == [
        (Span(7, 122, 141), Span(7, 150, 151)),
        (Span(7, 151, 160),),
    ]


@given(CHUNKS, st.data())
def test_spans_over_runs_are_the_bytes_of_the_frame(chunks: list[bytes], data: st.DataObject) -> None:
    """Each byte of the stream is recorded somewhere of its own; a frame's spans lead to exactly its bytes."""
    splitter, frames, recorded, at, t = EventSplitter(7, "s2c"), [], {}, 0, 0
    for t, chunk in enumerate(chunks):
        spans, position = [], 0
        while position < len(chunk):
            at += data.draw(st.integers(0, 2))
            size = data.draw(st.integers(1, len(chunk) - position))
            spans.append(Span(7, at, at + size))
            recorded |= {at + k: chunk[position + k] for k in range(size)}
            at, position = at + size, position + size
        frames += splitter.feed(t, chunk, tuple(spans))
    frames += splitter.finish(t)
    whole = b"".join(chunks)
    exact = [whole[frame.spans[0].start : frame.spans[0].stop] for frame in split(whole)]

    assert [
        bytes(recorded[k] for span in frame.spans for k in range(span.start, span.stop)) for frame in frames
    ] == exact


def test_a_decoded_stream_names_the_coded_bytes_behind_each_event() -> None:
    splitter = EventSplitter(7, "s2c", coding="gzip")
    two = splitter.feed(0, b"data: a\n\ndata: b\n\ndata: c", (Span(7, 10, 20),))
    none = splitter.feed(1, b"", (Span(7, 20, 25),))
    third = splitter.feed(2, b"\n\n", (Span(7, 30, 35),))
    fourth = splitter.feed(3, b":\n\n", (Span(7, 35, 40),))
    splitter.feed(4, b"data", (Span(7, 40, 45),))
    splitter.feed(5, b"", (Span(7, 45, 50),))

    assert [frame.spans for frame in two] == [(Span(7, 10, 20),)] * 2
    assert none == []
    assert [frame.spans for frame in third] == [(Span(7, 10, 25), Span(7, 30, 35))]
    assert [frame.spans for frame in fourth] == [(Span(7, 35, 40),)]
    assert [frame.spans for frame in splitter.finish(6)] == [(Span(7, 40, 50),)]
    assert {frame.coding for frame in (*two, *third, *fourth)} == {"gzip"}


def test_the_event_around_a_gap_says_so_and_blames_nobody_for_half_lines() -> None:
    splitter = EventSplitter(7, "s2c")
    (before,) = splitter.feed(0, b'data: {}\n\ndata: {"a"', (Span(7, 0, 20),))
    splitter.gap()
    around, after = splitter.feed(1, b"ry: x\n\nretry: x\n\n", (Span(7, 30, 47),))
    splitter.gap()
    (between,) = splitter.feed(2, b"ta: 1\n\n", (Span(7, 50, 57),))

    assert (before.flaws, around.flaws, after.flaws) == ((), ("gap",), ("sse-bad-retry",))
    assert around.spans == (Span(7, 10, 20), Span(7, 30, 37))
    assert (between.flaws, between.payload) == (("gap",), b"")


def test_a_stream_joined_late_has_no_byte_order_mark_to_drop() -> None:
    splitter = EventSplitter(7, "s2c")
    splitter.gap()
    first, second = played(splitter, [b"\xef\xbb\xbfdata: a\n\ndata: b\n\n"])

    assert (first.payload, first.flaws, second.payload) == (b"", ("gap",), b"b")


# -- size -------------------------------------------------------------------------------------------------------------


def test_an_endless_event_keeps_memory_bounded_and_tells_its_true_size() -> None:
    splitter = EventSplitter(0, "s2c", limit=1000)
    splitter.feed(0, b"event: e\ndata: ", (Span(0, 0, 15),))
    for k in range(20_000):
        splitter.feed(0, b"a" * 100, (Span(0, 100 * k, 100 * k + 50),))
        assert len(splitter._line) <= FIELD_LIMIT + 10
    frame, after = splitter.feed(1, b"\nid: 1\n\ndata: {}\n\n", (Span(0, 1, 1),))

    assert (frame.size, frame.payload, frame.flaws) == (2_000_000, b"a" * 1000, ("truncated",))
    assert (frame.sse, len(frame.spans) <= 4096) == (ServerSentEvent(event="e", id="1"), True)
    assert (after.payload, after.flaws) == (b"{}", ())


@pytest.mark.parametrize("line", [b"data: a\n", b"data\n", b": a\n", b":\n", b"foo\n", b"event: e\n"])
def test_an_event_of_endless_lines_keeps_memory_bounded(line: bytes) -> None:
    splitter = EventSplitter(0, "s2c", limit=1000)
    for _ in range(80):
        splitter.feed(0, line * 1000, (Span(0, 0, 1),))
    block = splitter._block

    assert len(block.payload or b"") <= 1000
    assert len(block.comments) <= FIELD_LIMIT
    (frame,) = splitter.feed(1, b"\n", (Span(0, 1, 2),))
    assert ("truncated" in frame.flaws) == (line[:4] == b"data" or line[:1] == b":")


def test_long_names_are_cut_and_the_data_are_not() -> None:
    (frame,) = split(b"event: %b\nid: %b\n: %b\ndata: x\n\n" % ((b"e" * 100_000,) * 3))
    assert frame.sse is not None

    assert (frame.payload, frame.flaws) == (b"x", ("truncated",))
    assert {len(text) for text in (frame.sse.event, frame.sse.id or "", *frame.sse.comments)} == {FIELD_LIMIT}


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_many_small_events_in_one_piece(end: bytes) -> None:
    stream = (b"data: {}" + end * 2) * 100_000
    frames = split(stream)

    assert len(frames) == 100_000
    assert {frame.payload for frame in frames} == {b"{}"}


def test_a_long_line_byte_by_byte() -> None:
    stream = b"data: %b\n\n" % (b"x" * (1 << 18))
    (frame,) = split(*(stream[at : at + 1] for at in range(len(stream))))

    assert (frame.size, frame.flaws) == (1 << 18, ())
