"""Reading captures: whole, damaged, foreign, in parts, hostile."""

import gzip
import json
import os
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO, FileIO
from itertools import pairwise
from pathlib import Path

import pytest

from mcpsniff.capture import reader
from mcpsniff.capture.parser import LONGEST_LINE
from mcpsniff.capture.reader import open_capture, open_stream
from mcpsniff.capture.records import CHUNK, CLOSE, COMMENT, GAP, OPEN, REWRITE, Record
from mcpsniff.errors import CaptureError
from tests.capture.capture_files import HEADER, PING, SESSION, encoded, read, save, stored

HEAD = json.dumps({"mcpcap": 1, "part": 1, **HEADER}).encode() + b"\n"


@contextmanager
def peak_memory() -> Iterator[Callable[[], int]]:
    """Measure the most memory that Python objects took at once, in bytes."""
    peaks: list[int] = []
    tracemalloc.start()
    try:
        yield lambda: peaks[0]
        peaks.append(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()


def test_a_capture_reads_as_it_was_written(tmp_path: Path) -> None:
    capture = open_capture(str(save(tmp_path, "a.mcpcap", argv=["python", "server.py"], cwd="/x", by="mcpsniff 0")))
    assert list(capture.records()) == SESSION
    assert list(capture.records()) == SESSION, "a second reading gives the same"
    assert capture.damage == []
    assert not capture.joined_late
    assert (capture.header.label, capture.header.argv, capture.header.part) == ("time", ("python", "server.py"), 1)


def test_only_four_members_of_the_header_are_needed_and_strange_ones_are_kept() -> None:
    line = b'{"mcpcap":1,"run":"r","part":1,"started":"2026-11-29T10:00:00Z","mood":"fine","label":7,"argv":[1]}\n'
    capture = open_stream(BytesIO(line))
    assert list(capture.records()) == []
    assert (capture.header.label, capture.header.argv, capture.header.extra) == (None, (), {"mood": "fine"})
    assert [damage.text for damage in capture.damage] == [
        "the header's `label` is not text, passed over",
        "the header's `argv` is not a list of text, passed over",
    ]


def test_unknown_records_and_fields_are_skipped_without_a_word() -> None:
    records, capture = read(
        HEAD
        + b'[1,"weather",0,{"sun":true}]\n[1,"note"]\n[2,"chunk",0,"a","more"]\n[3,"close",0,{"how":"eof","mood":1}]\n'
    )
    assert records == [Record(2, CHUNK, 0, b"a"), Record(3, CLOSE, 0, {"how": "eof", "mood": 1})]
    assert capture.damage == []


def test_data_of_a_rewrite_is_bytes() -> None:
    for text, data in ((b'{"b64":"/wA="}', b"\xff\x00"), (b'"\xc3\xa9"', "é".encode()), (b'{"b64":""}', b"")):
        records, _ = read(HEAD + b'[1,"rewrite",0,{"start":0,"length":2,"data":%s,"by":"me"}]\n' % text)
        assert records == [Record(1, REWRITE, 0, {"start": 0, "length": 2, "data": data, "by": "me"})]


def test_blank_lines_and_carriage_returns_and_a_byte_order_mark_do_no_harm() -> None:
    data = b"\xef\xbb\xbf" + encoded().replace(b"\n", b"\r\n\r\n")
    records, capture = read(data)
    assert records == SESSION
    assert capture.damage == []


def test_B106_a_torn_record_costs_itself_and_the_one_it_swallowed_which_is_offered() -> None:
    torn = b'[1,"chunk",0,"a"]\n[2,"chunk",0,"b, tor[3,"chunk",1,"c"]\n[4,"chunk",0,"d"]\n'
    records, capture = read(HEAD + torn)
    assert [(r.t, r.body) for r in stored(records)] == [(1, b"a"), (4, b"d")]
    (damage,) = capture.damage
    assert (damage.line, damage.offset) == (3, len(HEAD) + 18)
    assert damage.tail == Record(3, CHUNK, 1, b"c")
    assert "unreadable line" in str(damage)
    gaps = [(r.t, r.channel) for r in records if r.kind == GAP]
    assert gaps == [(1, 0), (1, 1)], "both channels lost bytes there, and whoever decodes must know"


def test_B110_what_cannot_be_read_is_said_with_its_place() -> None:
    records, capture = read(HEAD + b'[1,"chunk",0,"a"]\nnot json\n[3,"chunk",0,"c"]\n')
    assert [r.t for r in stored(records)] == [1, 3]
    assert [str(damage) for damage in capture.damage] == [
        f"test.mcpcap, line 3 (byte {len(HEAD) + 18}): unreadable line: it is not JSON"
    ]
    assert capture.damage_count == 1
    assert Record(1, GAP, None, {"bytes": 0, "why": "damage"}) in records


FOREIGN = [
    (b"", "line 1: empty capture"),
    (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0", "line 1: not a capture, it looks like a PNG picture"),
    (b'{"log":{"version":"1.2","entries":[]}}', "line 1: not a capture, it looks like a HAR file"),
    (b'{\n  "log": {\n    "version": "1.2"\n', "line 1: not a capture, it looks like a HAR file"),
    (HEAD.replace(b'"mcpcap": 1', b'"mcpcap": 999'), "line 1: written by a newer version (999)"),
    (gzip.compress(encoded()), "line 1: not a capture, it looks like gzip-compressed data"),
    (b"#!/bin/sh\necho\n", "line 1: not a capture, it looks like a script"),
    (b"hello\n", "line 1: not a capture, it looks like some other text"),
    (b"PK\x03\x04\x14\0", "line 1: not a capture, it looks like a ZIP archive"),
    (b'[1,"chunk",0,"a"]\n', "line 1: not a capture, it looks like other JSON"),
    (PING, "line 1: not a capture, it looks like a log of JSON-RPC messages"),
    (bytes(5000), "line 1: not a capture, it looks like binary data"),
    (b"<!DOCTYPE html>\n<p>", "line 1: not a capture, it looks like a web page"),
    (b'{"mcpcap":1,"run":"r"', "line 1: unreadable header, it is not JSON"),
    (b'{"mcpcap":1,"run":"r","part":1}\n', "line 1: unreadable header, it has no `started`"),
    (b'{"mcpcap":"1"}\n', "line 1: unreadable header, `mcpcap` is not a version number"),
    (HEAD.replace(b'"part": 1', b'"part": 0'), "line 1: unreadable header, `part` is below 1"),
    (HEAD.replace(b"2026-11-29T", b"2026-13-29T"), "line 1: unreadable header, `started` is not a time in RFC 3339"),
    (b'{"mcpcap":1,"x":' + b"[" * 100_000 + b"\n", "line 1: unreadable header, it is not JSON"),
]


@pytest.mark.parametrize(("data", "text"), FOREIGN)
def test_B114_a_foreign_empty_or_newer_file_is_refused_in_one_plain_sentence(
    tmp_path: Path, data: bytes, text: str
) -> None:
    path = tmp_path / "x.mcpcap"
    path.write_bytes(data)
    with pytest.raises(CaptureError) as raised:
        open_capture(str(path))
    assert str(raised.value).startswith(f"{path}, {text}")
    assert "\n" not in str(raised.value)
    assert raised.value.exit_status == 3
    with pytest.raises(CaptureError, match="line 1"):
        open_stream(BytesIO(data))


def test_missing_unreadable_and_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match=r"^no such capture: .*gone\.mcpcap$"):
        open_capture(str(tmp_path / "gone.mcpcap"))
    with pytest.raises(CaptureError, match="is a folder, not a capture"):
        open_capture(str(tmp_path))
    with pytest.raises(CaptureError, match=r"^cannot read nul.x00x: .*embedded null"):
        open_capture("nul\0x")
    with pytest.raises(CaptureError, match=r"cannot read .*: Not a directory"):
        open_capture(str(save(tmp_path, "a.mcpcap")) + "/b")
    if os.geteuid():
        path = save(tmp_path, "b.mcpcap")
        path.chmod(0)
        with pytest.raises(CaptureError, match="Permission denied"):
            open_capture(str(path))


def test_a_path_never_reaches_the_terminal_raw(tmp_path: Path) -> None:
    with pytest.raises(CaptureError) as raised:
        open_capture(str(tmp_path / "\x1b[31m\u202e.mcpcap"))
    assert "\\x1b[31m\\u202e" in str(raised.value)


def test_parts_are_one_capture_whichever_is_named(tmp_path: Path) -> None:
    save(tmp_path, "a.mcpcap", SESSION[:3])
    save(tmp_path, "a.0002.mcpcap", SESSION[3:5], part=2)
    save(tmp_path, "a.0003.mcpcap", SESSION[5:], part=3)
    save(tmp_path, "a.00004.mcpcap", SESSION, part=4)
    save(tmp_path, "ab.0004.mcpcap", SESSION, part=4)
    for name in ("a.mcpcap", "a.0002.mcpcap", "a.0003.mcpcap"):
        capture = open_capture(str(tmp_path / name))
        assert list(capture.records()) == SESSION
        assert [Path(part.path).name for part in capture.parts] == ["a.mcpcap", "a.0002.mcpcap", "a.0003.mcpcap"]
        assert capture.damage == []


def test_late_parts_alone_are_joined_late(tmp_path: Path) -> None:
    channels = {"0": {"kind": "stdin", "dir": "c2s", "conn": 0, "offset": 42}}
    save(tmp_path, "a.0002.mcpcap", SESSION[3:5], part=2, channels=channels)
    save(tmp_path, "a.0003.mcpcap", SESSION[5:], part=3)
    for name in ("a.mcpcap", "a.0002.mcpcap"):
        capture = open_capture(str(tmp_path / name))
        assert capture.joined_late
        assert capture.header.channels is not None
        assert list(capture.records()) == SESSION[3:]


def test_a_missing_middle_part_is_a_gap_and_said(tmp_path: Path) -> None:
    save(tmp_path, "a.mcpcap", SESSION[:3])
    save(tmp_path, "a.0004.mcpcap", SESSION[5:], part=4)
    capture = open_capture(str(tmp_path / "a.mcpcap"))
    records = list(capture.records())
    assert stored(records) == SESSION[:3] + SESSION[5:]
    assert records[3] == Record(1532, GAP, None, {"bytes": 0, "why": "damage"})
    assert [damage.text for damage in capture.damage] == ["parts 2 to 3 of this run are missing before this one"]


def test_a_part_of_another_run_does_not_belong_and_an_unreadable_one_is_said(tmp_path: Path) -> None:
    save(tmp_path, "a.mcpcap")
    save(tmp_path, "a.0002.mcpcap", SESSION, part=2, run="another")
    (tmp_path / "a.0003.mcpcap").write_bytes(b"hello\n")
    os.mkfifo(tmp_path / "a.0004.mcpcap")
    capture = open_capture(str(tmp_path / "a.mcpcap"))
    assert list(capture.records()) == SESSION
    texts = [damage.text for damage in capture.damage]
    assert [text.startswith("this part is passed over") for text in texts] == [True, True]
    assert "is not a regular file" in texts[1]


def test_time_runs_on_over_parts_and_never_back(tmp_path: Path) -> None:
    save(tmp_path, "a.mcpcap", [Record(50, CHUNK, 0, b"a")])
    save(tmp_path, "a.0002.mcpcap", [Record(20, CHUNK, 0, b"b")], part=2)
    capture = open_capture(str(tmp_path / "a.mcpcap"))
    assert [record.t for record in capture.records()] == [50, 50]
    assert [damage.text for damage in capture.damage] == ["its time 20 is out of order, taken as 50"]


BAD_LINES = [
    (b'[9,"chunk",0,"x",10]', "its earlier time 10 is none, passed over", True),
    (b'[9,"chunk",0,"x",-1]', "its earlier time -1 is none, passed over", True),
    (b'[-5,"chunk",0,"x"]', "its time -5 is out of order, taken as 7", True),
    (b'[3,"chunk",0,"x"]', "its time 3 is out of order, taken as 7", True),
    (b'[99999999999999999,"chunk",0,"x"]', "its time 99999999999999999 is out of order, taken as 7", True),
    (b'[1.5,"chunk",0,"x"]', "unreadable line: its time is not an integer", False),
    (b'[true,"chunk",0,"x"]', "unreadable line: its time is not an integer", False),
    (b'["9","chunk",0,"x"]', "unreadable line: its time is not an integer", False),
    (b'[99999999999999999999999,"chunk",0,"x"]', "unreadable line: its time is not an integer", False),
    (b'[9,"chunk","0","x"]', "unreadable line: its channel is not a channel number", False),
    (b'[9,"chunk",-1,"x"]', "unreadable line: its channel is not a channel number", False),
    (b'[9,"chunk",true,"x"]', "unreadable line: its channel is not a channel number", False),
    (b'[9,"chunk",null,"x"]', "unreadable line: its channel is not a channel number", False),
    (b'[9,"chunk",0]', "unreadable line: it is not a whole record", False),
    (b'[9,"chunk",0,7]', "unreadable line: its data is neither text nor base64", False),
    (b'[9,"chunk",0,{"b64":"*"}]', "unreadable line: its data is not base64", False),
    (b'[9,"chunk",0,{"b64":"\xc3\xa9"}]', "unreadable line: its data is not base64", False),
    (b'[9,"chunk",0,"\\ud800"]', "unreadable line: it is not JSON", False),
    (b'[9,"chunk",0,"\xff"]', "unreadable line: it is not JSON", False),
    (
        b'[9,"open",0,{"kind":"stdin","dir":"up","conn":0}]',
        "unreadable line: `dir` of its open is not a direction",
        False,
    ),
    (b'[9,"open",0,{"dir":"c2s","conn":0}]', "unreadable line: its open has no `kind`", False),
    (b'[9,"close",0,"eof"]', "unreadable line: the body of its close is not an object", False),
    (b'[9,"close",0,{"how":"exit","status":"0"}]', "`status` of its close is not an integer, passed over", True),
    (b'[9,"close",0,{"how":"exit","sent":[1]}]', "`sent` of its close is not a list of text, passed over", True),
    (b'{"t":9,"chunk":1,"c":2,"d":3}', "unreadable line: it is not a record", False),
    (b'"abcd"', "unreadable line: it is not a record", False),
    (b"[9]", "unreadable line: it is not a record", False),
    (b"\x00\x00\x00\x00", "unreadable line: it is not JSON", False),
    (b"[" * 100_000 + b"]" * 100_000, "unreadable line: it is not JSON", False),
    (b"[" + b"[]," * 700_000 + b"[]]", "unreadable line: it holds too many values", False),
]


@pytest.mark.parametrize(("line", "text", "kept"), BAD_LINES)
def test_a_wrong_value_is_damage_and_costs_at_most_its_record(line: bytes, text: str, kept: bool) -> None:
    records, capture = read(HEAD + b'[7,"chunk",0,"a"]\n' + line + b'\n[20,"chunk",0,"b"]\n')
    assert [(damage.line, damage.text) for damage in capture.damage] == [(3, text)]
    good = stored(records)
    assert (good[0], good[-1]) == (Record(7, CHUNK, 0, b"a"), Record(20, CHUNK, 0, b"b"))
    assert len(good) == 2 + kept
    assert all(a.t <= b.t for a, b in pairwise(records))


def test_a_lost_record_that_carried_no_bytes_of_a_channel_leaves_no_gap() -> None:
    records, _ = read(HEAD + b'[7,"close",0,"eof"]\n')
    assert records == []


def test_a_line_beyond_the_limit_is_skipped_in_bounded_memory() -> None:
    class Hostile:
        """A stream with a line of four times the limit, never held whole by anybody."""

        def __init__(self) -> None:
            self.blocks = self.make()

        def make(self) -> Iterator[bytes]:
            yield HEAD + b'[1,"chunk",5,"'
            for _ in range(4 * LONGEST_LINE >> 20):
                yield bytes(1 << 20)
            yield b'"]\n[2,"chunk",0,"b"]\n'

        def read(self, _size: int) -> bytes:
            return next(self.blocks, b"")

    capture = open_stream(Hostile(), "h")  # type: ignore[arg-type]
    with peak_memory() as peak:
        records = list(capture.records())
    assert records == [Record(0, GAP, 5, {"bytes": 0, "why": "damage"}), Record(2, CHUNK, 0, b"b")]
    assert [damage.text for damage in capture.damage] == ["unreadable line: it is longer than 32 MiB"]
    assert LONGEST_LINE / 2 < peak() < 2 * LONGEST_LINE


def test_a_long_chunk_full_of_brackets_is_no_bloat() -> None:
    data = b"[[[[{}]]]]," * 200_000
    records, capture = read(encoded([Record(1, CHUNK, 0, data), Record(2, CHUNK, 0, b"\xff" * 2_000_000)]))
    assert [record.body for record in records] == [data, b"\xff" * 2_000_000]
    assert capture.damage == []


def test_damage_is_counted_beyond_what_is_kept() -> None:
    records, capture = read(HEAD + b"junk\n" * (reader.MOST_DAMAGE + 50))
    assert stored(records) == []
    assert (len(capture.damage), capture.damage_count) == (reader.MOST_DAMAGE, reader.MOST_DAMAGE + 50)


def test_a_large_capture_is_read_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.mcpcap"
    path.write_bytes(HEAD + b'[1000,"chunk",0,"y"]\n' * 60_000 + b'[1000,"chunk",0,"%s"]\n' % (b"x" * 60_000) * 200)
    with peak_memory() as peak:
        count = sum(1 for _ in open_capture(str(path)).records())
    assert count == 60_200
    assert path.stat().st_size > 13_000_000
    assert peak() < 4_000_000


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    near, far = os.pipe()
    os.write(far, encoded())
    os.close(far)
    capture = open_capture(f"/dev/fd/{near}")
    os.close(near)
    assert list(capture.records()) == SESSION
    with pytest.raises(CaptureError, match="can be read only once"):
        list(capture.records())


def test_a_part_that_vanishes_or_turns_foreign_is_said(tmp_path: Path) -> None:
    save(tmp_path, "a.mcpcap", SESSION[:3])
    second = save(tmp_path, "a.0002.mcpcap", SESSION[3:], part=2)
    capture = open_capture(str(tmp_path / "a.mcpcap"))
    second.unlink()
    assert stored(capture.records()) == SESSION[:3]
    assert [damage.text for damage in capture.damage] == ["this part cannot be read: No such file or directory"]
    second.write_bytes(b"hello\n")
    with pytest.raises(CaptureError, match="not a capture"):
        list(capture.records())


def test_a_disk_that_fails_costs_the_rest_of_the_part_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing(FileIO):
        def read(self, size: int = -1) -> bytes:
            if self.tell() == 0:
                return super().read(whole.index(b"\n", len(whole) // 2) + 1)
            raise OSError(5, "Input/output error")

    whole = save(tmp_path, "a.mcpcap", SESSION[:6]).read_bytes()
    save(tmp_path, "a.0002.mcpcap", SESSION[6:], part=2)
    capture = open_capture(str(tmp_path / "a.mcpcap"))
    opened = iter([Failing(tmp_path / "a.mcpcap"), FileIO(tmp_path / "a.0002.mcpcap")])
    monkeypatch.setattr(reader, "open_regular", lambda _path: next(opened))
    records = stored(capture.records())
    assert records[-len(SESSION[6:]) :] == SESSION[6:]
    assert 0 < len(records) < len(SESSION)
    assert [damage.text for damage in capture.damage] == ["the rest cannot be read: Input/output error"]


def test_a_folder_that_cannot_be_listed_still_gives_the_file_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save(tmp_path, "a.mcpcap")

    def refuse(_folder: str) -> list[str]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "listdir", refuse)
    assert list(open_capture(str(path)).records()) == SESSION


def test_a_comment_may_be_about_the_whole_capture_and_an_open_may_hold_anything_in_meta() -> None:
    meta = {"peer": ["127.0.0.1", 5], "headers": [["A", "b"]]}
    want = [
        Record(0, OPEN, 0, {"kind": "tcp", "dir": "c2s", "conn": 3, "meta": meta}),
        Record(1, COMMENT, None, {"text": "x", "by": "y"}),
    ]
    assert read(encoded(want))[0] == want
