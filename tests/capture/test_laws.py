"""Laws of the capture format, for any content: round trip, any cut, any bytes, any growth, any parts."""

import os
import tempfile
from contextlib import ExitStack, closing
from io import BytesIO
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpsniff.capture.follower import Follower
from mcpsniff.capture.parser import Damage, PartParser
from mcpsniff.capture.reader import MOST_DAMAGE, Capture, open_capture, open_stream
from mcpsniff.capture.records import CHUNK, CLOSE, COMMENT, GAP, MASK, OPEN, Record
from mcpsniff.capture.store import part_path
from mcpsniff.errors import CaptureError
from tests.capture.capture_files import SESSION, encoded, read, save, stored

counts = st.integers(0, 2**53)
texts = st.text(max_size=30)
chunks = st.one_of(st.binary(max_size=60), texts.map(str.encode))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
bodies = st.one_of(
    st.tuples(st.just(CHUNK), counts, chunks),
    st.tuples(
        st.just(OPEN),
        counts,
        st.fixed_dictionaries(
            {"kind": texts, "dir": st.sampled_from(["c2s", "s2c"]), "conn": counts},
            optional={"of": counts, "meta": st.dictionaries(texts, json_values, max_size=3)},
        ),
    ),
    st.tuples(st.just(CLOSE), counts, st.fixed_dictionaries({"how": texts}, optional={"status": st.integers(-9, 255)})),
    st.tuples(
        st.just(MASK), counts, st.fixed_dictionaries({"start": counts, "length": counts, "what": texts, "fp": texts})
    ),
    st.tuples(st.just(GAP), counts, st.fixed_dictionaries({"bytes": counts, "why": st.just("queue")})),
    st.tuples(st.just(COMMENT), st.none() | counts, st.fixed_dictionaries({"text": texts, "by": texts})),
)


@st.composite
def sessions(draw: st.DrawFn) -> list[Record]:
    """Any records, in order of time."""
    drawn = draw(st.lists(bodies, max_size=12))
    times = sorted(draw(st.lists(st.integers(0, 10**12), min_size=len(drawn), max_size=len(drawn))))
    return [Record(t, *body) for t, body in zip(times, drawn, strict=True)]


@given(sessions())
@settings(deadline=None)
def test_what_was_written_is_read(session: list[Record]) -> None:
    records, capture = read(encoded(session))
    assert records == session
    assert capture.damage == []


@given(st.lists(chunks, max_size=8), st.data())
@settings(deadline=None)
def test_reading_does_not_depend_on_blocks(data: list[bytes], draw: st.DataObject) -> None:
    whole = encoded([Record(0, CHUNK, 0, b"x"), *(Record(n, CHUNK, n % 3, block) for n, block in enumerate(data))])
    whole = draw.draw(st.sampled_from([whole, whole + b"junk\n" + whole, whole[:-3]]))
    damage: list[Damage] = []
    parser = PartParser("x", damage.append)
    records: list[Record] = []
    at = 0
    while at < len(whole):
        size = draw.draw(st.integers(1, 40))
        records += parser.feed(whole[at : at + size])
        at += size
    records += parser.finish()
    once, capture = read(whole)
    assert records == once
    assert [d._replace(path="") for d in damage] == [d._replace(path="") for d in capture.damage]


def test_a_capture_cut_at_any_byte_opens_and_loses_at_most_its_last_record() -> None:
    whole = encoded()
    head = whole.index(b"\n")
    for cut in range(len(whole) + 1):
        data = whole[:cut]
        if cut < head:
            with pytest.raises(CaptureError, match="line 1"):
                open_stream(BytesIO(data))
            continue
        records, capture = read(data)
        complete = data[head + 1 :].count(b"\n")
        got = stored(records)
        assert got == SESSION[: len(got)]
        assert complete <= len(got) <= complete + 1
        torn = got == SESSION[:complete] and cut > head and not data.endswith(b"\n")
        assert [damage.offset for damage in capture.damage] == ([data.rindex(b"\n") + 1] if torn else [])
        assert (GAP in {r.kind for r in records[len(got) :]}) <= torn


@given(st.binary(max_size=300), st.booleans())
@settings(max_examples=300, deadline=None)
def test_any_bytes_give_an_error_or_records_and_damage(junk: bytes, with_header: bool) -> None:
    survives(encoded(SESSION[:1]) + junk if with_header else junk)


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_a_mutated_capture_gives_an_error_or_records_and_damage(data: st.DataObject) -> None:
    whole = bytearray(encoded())
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(whole) - 1))
        whole[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3) | st.sampled_from(TOKENS))
    survives(bytes(whole))


TOKENS = [b"\n", b"null", b"true", b"1e999", b"-1", b"[", b"{", b'"', b"\\ud800", b"\x00", b"9" * 30, b'{"b64":"/"}']


def attempt(data: bytes) -> tuple[str, list[Record], Capture | None]:
    try:
        return "", *read(data)
    except CaptureError as error:
        return str(error), [], None


def survives(data: bytes) -> None:
    refusal, records, capture = attempt(data)
    if capture is None:
        assert "test.mcpcap" in refusal
        assert "\n" not in refusal
        return
    assert all(type(record.body) is (bytes if record.kind == CHUNK else dict) for record in records)
    assert all(type(record.t) is int and record.t >= 0 for record in records)
    assert [record.t for record in records] == sorted(record.t for record in records)
    assert len(capture.damage) == min(capture.damage_count, MOST_DAMAGE)
    assert all(data.count(b"\n", 0, damage.offset) == damage.line - 1 for damage in capture.damage)


@given(sessions(), st.lists(st.integers(0, 12), max_size=3))
@settings(max_examples=50, deadline=None)
def test_parts_chain_to_the_same_records(session: list[Record], cuts: list[int]) -> None:
    bounds = [0, *sorted(cuts), len(session)]
    with tempfile.TemporaryDirectory() as folder:
        for number, (start, stop) in enumerate(pairwise(bounds), start=1):
            records = session[start:stop] or [Record(0, COMMENT, None, {"text": "", "by": ""})]
            save(Path(folder), part_path("a.mcpcap", number), records, part=number)
        capture = open_capture(f"{folder}/a.mcpcap")
        empty = {"text": "", "by": ""}
        assert [r for r in capture.records() if r.body != empty] == [r for r in session if r.body != empty]


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_the_follower_gives_what_the_reader_gives_however_the_file_grows(data: st.DataObject) -> None:
    first, second = encoded(SESSION[:5]), encoded(SESSION[5:], part=2)
    first += data.draw(st.sampled_from([b"", b"junk\n", b'[7,"chunk",0,"torn']))
    second += data.draw(
        st.sampled_from([b"", b'[9001,"comment",null,{"text":"a","by":"b"}]\n', b'[9002,"chunk",1,"to'])
    )
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        path = f"{folder}/a.mcpcap"
        seen: list[Record] = []
        follower: Follower | None = None
        for name, content in ((path, first), (part_path(path, 2), second)):
            with open(name, "xb", buffering=0) as file:
                follower = follower or stack.enter_context(closing(Follower(path)))
                at = 0
                while at < len(content):
                    size = data.draw(st.integers(1, 400))
                    file.write(content[at : at + size])
                    at += size
                    seen += follower.poll() if data.draw(st.booleans()) else []
        assert follower is not None
        while records := follower.poll():
            seen += records
        seen += follower.finish()
        capture = open_capture(path)
        assert seen == list(capture.records())
        assert follower.damage == capture.damage
        os.unlink(path)
