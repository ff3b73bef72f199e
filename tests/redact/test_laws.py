"""Laws: what happened is the same in a redacted capture, and the second pass finds whatever is left."""

import tempfile
from base64 import encodebytes
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpsniff.capture.reader import open_capture
from mcpsniff.export.redact.matcher import Matcher
from mcpsniff.export.redact.needles import forms_of, needles_of
from mcpsniff.export.redact.remains import Remains
from tests.capture.capture_files import save
from tests.captures.samples import FOLDER, NAMES
from tests.dialogue import play
from tests.redact.planted import (
    ENCODINGS,
    REQUEST,
    RESULT,
    SECRET,
    answer,
    coded,
    cut,
    outline,
    pipes,
    post,
    redacted,
    wire,
)
from tests.transcript.http_sessions import SESSION_ID, TROUBLE
from tests.transcript.http_sessions import records as http_records

TEXTS = st.lists(
    st.one_of(
        st.sampled_from([SECRET, "bob@example.com", "token=abc123def456", "/home/bob/x", "\\n", "%41", "&amp;", "é"]),
        st.sampled_from(list(ENCODINGS)).map(lambda name: ENCODINGS[name](SECRET).decode()),
        st.text("ab1=:& ,.-_+/%", max_size=8),
    ),
    max_size=4,
).map(lambda words: " ".join(words).replace('"', "").replace("\\", "\\\\"))


def same(records: list[object]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        got = redacted(Path(folder), records, values=[SECRET])  # type: ignore[arg-type]
        assert outline(got.path) == outline(got.source)


@settings(max_examples=25, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=4), st.integers(1, 200), TEXTS)
def test_on_pipes_however_they_are_read(texts: list[str], size: int, log: str) -> None:
    asked = b"".join((REQUEST % (n, text)).encode() + b"\n" for n, text in enumerate(texts))
    said = b"".join((RESULT % (n, text)).encode() + b"\n" for n, text in enumerate(texts))
    same(pipes(*((c, one) for c, data in ((0, asked), (2, log.encode()), (1, said)) for one in cut(data, size))))


@settings(max_examples=25, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=3), st.integers(1, 300), st.integers(1, 80), st.sampled_from(range(4)))
def test_over_http_however_it_is_cut(texts: list[str], size: int, chunk: int, way: int) -> None:
    talk = []
    for n, text in enumerate(texts):
        said = (RESULT % (n, text)).encode()
        event = b"data: " + said + b"\n\n"
        sizes = [chunk] * 200
        talk.append((0, post((REQUEST % (n, text)).encode(), "X-Thing: " + text.replace("\\", ""))))
        talk.append((1, [
            answer(said),
            answer(said, chunks=sizes),
            answer(event, kind="text/event-stream", chunks=sizes),
            answer(coded(event, "gzip"), "Content-Encoding: gzip", kind="text/event-stream", chunks=sizes),
        ][way]))  # fmt: skip
    same(wire(*((channel, one) for channel, data in talk for one in cut(data, size))))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.binary(max_size=300), max_size=4), st.booleans())
def test_any_bytes(said: list[bytes], is_wire: bool) -> None:
    mixed = [(n % 2, data + b" bob@example.com " * (n % 3)) for n, data in enumerate(said)]
    with tempfile.TemporaryDirectory() as folder:
        got = redacted(Path(folder), wire(*mixed) if is_wire else pipes(*mixed))
        assert b"bob@example" not in b"".join(got.bytes_of(n) for n in range(3))


@pytest.mark.parametrize("name", NAMES)
def test_the_samples(name: str, tmp_path: Path) -> None:
    source = FOLDER / f"{name}.mcpcap"
    capture = open_capture(str(source))
    records = list(capture.records())
    header = {"transport": capture.header.transport, "cwd": "/home/demo"}
    stored = [one for one in records if not (one.kind == "gap" and one.body["why"] == "damage")]
    got = redacted(tmp_path, stored, header)
    assert outline(got.path) == outline(got.source)


VALUE = "s3cr3t Vål&ue/42<x>"


@pytest.mark.parametrize("number", range(len(list(forms_of(VALUE.encode())))))
def test_the_second_pass_finds_each_form(number: int, tmp_path: Path) -> None:
    name, form = list(forms_of(VALUE.encode()))[number]
    padded = b"before " + form + b" after"
    for records in (pipes((2, padded)), pipes(*((2, one) for one in cut(padded, 5)))):
        path = save(tmp_path, "x.mcpcap", records)
        remains = Remains(frozenset([VALUE.encode()]))
        remains.look(open_capture(str(path)))
        assert remains.found, name
        assert not any(VALUE[:6] in place for place in remains.found)


@pytest.mark.parametrize("name", ENCODINGS)
def test_the_second_pass_finds_each_encoding(name: str, tmp_path: Path) -> None:
    body = coded(ENCODINGS[name](SECRET), "gzip")
    records = wire((0, post(b"{}")), (1, answer(body, "Content-Encoding: gzip")))
    remains = Remains(frozenset([SECRET.encode()]))
    remains.look(open_capture(str(save(tmp_path, "x.mcpcap", records, transport="http"))))
    assert remains.found


def test_there_are_at_least_a_dozen_encodings() -> None:
    assert len(set(needles_of([VALUE.encode()]).values())) >= 12


def test_a_clean_capture_has_no_remains(tmp_path: Path) -> None:
    remains = Remains(frozenset([SECRET.encode(), b"12345678"]))
    remains.look(open_capture(str(save(tmp_path, "x.mcpcap", pipes((2, b"112345678 nothing s3cr3t"))))))
    assert remains.found == []


DIALOGUES = sorted((Path(__file__).parents[1] / "transcript" / "golden_http").glob("*.dialogue"))


@pytest.mark.parametrize("path", DIALOGUES, ids=lambda path: path.stem)
def test_the_dialogues_over_http(path: Path, tmp_path: Path) -> None:
    got = redacted(tmp_path, play(path.read_text()).records, {"cwd": "/home/bob"}, presets=["all"])
    assert outline(got.path) == outline(got.source)


def test_everything_that_may_go_wrong_over_http(tmp_path: Path) -> None:
    got = redacted(tmp_path, http_records(TROUBLE), keys=["Mcp-Session-Id", "data"], presets=["all"])
    assert outline(got.path) == outline(got.source)
    assert SESSION_ID.encode() not in got.raw


@pytest.mark.parametrize("ahead", range(3))
def test_the_second_pass_finds_base64_in_lines(ahead: int, tmp_path: Path) -> None:
    said = encodebytes(b"x" * (ahead + 45) + VALUE.encode() + b"y" * 90)
    remains = Remains(frozenset([VALUE.encode()]))
    remains.look(open_capture(str(save(tmp_path, "x.mcpcap", pipes((2, said[:40]), (2, said[40:]))))))
    assert [place for place in remains.found if "in lines" in place]


def test_of_many_values_all_are_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The forms of so many at a time, and of those that begin alike each."""
    monkeypatch.setattr("mcpsniff.export.redact.remains.BATCH", 2)
    values = [b"s3cr3t-one", b"s3cr3t-one-more", b"s3cr3t-other", *(b"hunter2-%d" % n for n in range(5))]
    for value in values:
        path = save(tmp_path, "x.mcpcap", pipes((2, b"x" + value[::-1])))
        remains = Remains(frozenset(values))
        remains.look(open_capture(str(path)))
        assert "channel 2, byte 1 (backwards)" in remains.found


@settings(max_examples=100, deadline=None)
@given(st.lists(st.binary(min_size=4, max_size=80).map(lambda raw: bytes(b"ab1"[one % 3] for one in raw))), st.data())
def test_the_longest_value_is_found_at_each_place(values: list[bytes], data: st.DataObject) -> None:
    pieces = st.sampled_from([b"a", b"b1", b"1", *values])
    text = b"".join(data.draw(st.lists(pieces, max_size=12)))
    expected, at = [], 0
    while at < len(text):
        fits = [one for one in values if text.startswith(one, at) and not _in_number(text, at, one)]
        if longest := max(fits, key=len, default=b""):
            expected.append((at, at + len(longest), longest))
        at += len(longest) or 1
    assert list(Matcher(values).find(text)) == expected


def _in_number(text: bytes, at: int, value: bytes) -> bool:
    return value.isdigit() and (text[at - 1 : at].isdigit() or text[at + len(value) :][:1].isdigit())
