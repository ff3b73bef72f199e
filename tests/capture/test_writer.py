"""The writer: what is in the file after any history of writes, refusals and full parts."""

import errno
import json
import os
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from mcpsniff.capture.ceiling import Ceiling
from mcpsniff.capture.reader import open_capture
from mcpsniff.capture.records import CHUNK, Record
from mcpsniff.capture.store import new_part_file
from mcpsniff.capture.writer import CaptureWriter, _chunk_line, _fast_chunk_line, new_run_id, rfc3339
from mcpsniff.errors import CaptureError

HEADER = {"run": "R", "started": "2026-11-29T10:00:00.000000Z", "label": "server"}
OPEN = (0, "open", 0, {"kind": "stdin", "dir": "c2s", "conn": 0})

type Write = Callable[[int, bytes], int]


def new_writer(path: Path, **options: Any) -> CaptureWriter:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
    return CaptureWriter(descriptor, str(path), HEADER, **options)


def lines(path: Path) -> list[Any]:
    """All lines of a file that is whole."""
    data = path.read_bytes()
    assert data.endswith(b"\n")
    return [json.loads(line) for line in data.splitlines()]


def refusing(at: int, keep: int = 0, failures: int = 1) -> Write:
    """`os.write`, but calls number ``at`` and on (counted from 1) store only ``keep`` bytes, and then fail."""
    calls = 0
    kept = False

    def write(descriptor: int, data: bytes) -> int:
        nonlocal calls, kept
        calls += 1
        if at <= calls < at + failures + (1 if keep else 0):
            if keep and not kept:
                kept = True
                return os.write(descriptor, data[:keep])
            raise OSError(errno.ENOSPC, "No space left on device")
        return os.write(descriptor, data)

    return write


def test_a_header_then_one_line_per_record(tmp_path: Path) -> None:
    path = tmp_path / "a.mcpcap"
    writer = new_writer(path)
    assert path.read_bytes() == b""
    assert writer.append([OPEN, (5, "chunk", 0, b'{"a":"\xc3\xa9"}\n'), (6, "chunk", 0, b"\xff\x00")]) == 3
    assert writer.append([(7, "close", 0, {"how": "eof"})]) == 1
    writer.close()
    assert lines(path) == [
        {"mcpcap": 1, "part": 1, **HEADER},
        [0, "open", 0, {"kind": "stdin", "dir": "c2s", "conn": 0}],
        [5, "chunk", 0, '{"a":"é"}\n'],
        [6, "chunk", 0, {"b64": "/wA="}],
        [7, "close", 0, {"how": "eof"}],
    ]
    assert path.read_text(encoding="utf-8").startswith('{"mcpcap":1,"run":"R","part":1,')


def test_time_never_goes_back_and_what_is_late_tells_its_own(tmp_path: Path) -> None:
    path = tmp_path / "a.mcpcap"
    late = [(7, "chunk", 1, b"b"), (8, "chunk", 1, b"\xff"), (8, "close", 1, {"how": "eof"})]
    writer = new_writer(path)
    writer.append([(9, "chunk", 0, b"a"), *late])
    writer.append([(10, "chunk", 0, b"c"), Record(9, CHUNK, 0, b"d", 4)])
    assert [line[0] for line in lines(path)[1:]] == [9, 9, 9, 9, 10, 10]
    records = list(open_capture(str(path)).records())
    assert [(record.t, record.at) for record in records] == [(9, None), (9, 7), (9, 8), (9, 8), (10, None), (10, 4)]
    again = tmp_path / "b.mcpcap"
    new_writer(again).append(records)
    assert again.read_bytes() == path.read_bytes()


def test_words_that_are_not_unicode_do_not_stop_the_recording(tmp_path: Path) -> None:
    path = tmp_path / "a.mcpcap"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    writer = CaptureWriter(descriptor, str(path), {**HEADER, "argv": ["x", os.fsdecode(b"caf\xe9")]})
    writer.append([(0, "comment", None, {"text": "\ud800", "by": "me"})])
    assert lines(path)[0]["argv"] == ["x", "caf\ufffd"]


@pytest.mark.parametrize("keep", range(0, 130, 3))
def test_b111_a_full_disk_leaves_whole_records(tmp_path: Path, keep: int) -> None:
    """Wherever the refused write was cut, the file ends with a whole record, and the next append goes on there."""
    path = tmp_path / "a.mcpcap"
    writer = new_writer(path, write=refusing(2, keep))
    assert writer.append([OPEN]) == 1
    records = [(n, "chunk", 0, b"x" * 20) for n in range(1, 5)]
    stored = writer.append(records)
    assert isinstance(writer.failure, OSError)
    assert [line[0] for line in lines(path)[1:]] == list(range(stored + 1))
    assert writer.append(records[stored:]) == len(records) - stored
    assert writer.failure is None
    assert [line[0] for line in lines(path)[1:]] == list(range(5))


@pytest.mark.parametrize("keep", [1, 30, 75])
def test_b106_a_record_that_stays_cut_swallows_nothing(
    tmp_path: Path, keep: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a file cannot be shortened, the next record begins on a line of its own."""

    def refuse(descriptor: int, size: int) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "ftruncate", refuse)
    path = tmp_path / "a.mcpcap"
    writer = new_writer(path, write=refusing(2, keep))
    writer.append([OPEN])
    records = [(n, "chunk", 0, b"x" * 20) for n in range(1, 5)]
    stored = writer.append(records)
    assert writer.append(records[stored:]) == len(records) - stored
    whole, damaged = [], 0
    for line in path.read_bytes().splitlines():
        try:
            whole.append(json.loads(line))
        except ValueError:
            damaged += 1
    assert [line[0] for line in whole[1:]] == list(range(5))
    assert damaged == 1


def test_b106_a_comment_of_another_process_is_not_cut_away(tmp_path: Path) -> None:
    path = tmp_path / "a.mcpcap"
    calls = 0

    def write(descriptor: int, data: bytes) -> int:
        nonlocal calls
        calls += 1
        if calls == 2:
            written = os.write(descriptor, data[:10])
            with path.open("ab") as other:
                other.write(b'\n[1,"comment",null,{"text":"hello","by":"me"}]\n')
            return written
        if calls == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        return os.write(descriptor, data)

    writer = new_writer(path, write=write)
    writer.append([OPEN])
    assert writer.append([(1, "chunk", 0, b"lost")]) == 0
    assert writer.append([(2, "chunk", 0, b"kept")]) == 1
    text = path.read_bytes()
    assert b'[1,"comment",null,{"text":"hello","by":"me"}]\n' in text
    assert b'\n[2,"chunk",0,"kept"]\n' in text


@pytest.mark.parametrize(
    ("tail", "t"), [(b"", 40), (b"[99", 40), (b'[50,"chunk",0,"to', 50), (b'[50,"chunk",0,"a"]', 50)]
)
def test_b106_reopening_starts_on_a_new_line(tmp_path: Path, tail: bytes, t: int) -> None:
    path = tmp_path / "a.mcpcap"
    path.write_bytes(b'{"mcpcap":1,"run":"R","part":1,"started":"x"}\n[40,"chunk",0,"a"]\n' + tail)
    before = path.read_bytes()
    writer = CaptureWriter.reopen(str(path))
    assert writer.append([(3, "comment", None, {"text": "t", "by": "b"})]) == 1
    writer.close()
    added = path.read_bytes()[len(before) :]
    assert added == (b"\n" if tail else b"") + b'[%d,"comment",null,{"text":"t","by":"b"},3]\n' % t


def test_reopening_an_empty_file_a_link_or_nothing_is_refused(tmp_path: Path) -> None:
    empty, link = tmp_path / "empty", tmp_path / "link"
    empty.write_bytes(b"")
    link.symlink_to(empty)
    for path in (empty, link, tmp_path / "missing"):
        with pytest.raises(CaptureError, match=path.name):
            CaptureWriter.reopen(str(path))


def test_parts_hold_whole_records_and_go_on_counting(tmp_path: Path) -> None:
    path = tmp_path / "a.mcpcap"
    limit = 400
    writer = new_writer(path, part_limit=limit)
    records: list[Any] = [OPEN, (0, "open", 1, {"kind": "stdout", "dir": "s2c", "conn": 0, "of": 0})]
    records += [(n, "chunk", n % 2, b"%04d" % n * 5) for n in range(60)]
    records += [(60, "close", 0, {"how": "eof"})] + [(n, "chunk", 1, b"%04d" % n * 5) for n in range(61, 90)]
    for start in range(0, len(records), 7):
        assert writer.append(records[start : start + 7]) == len(records[start : start + 7])
    paths = [path, *sorted(tmp_path.glob("a.0*.mcpcap"))]
    assert len(paths) > 5
    assert all(part.stat().st_size <= limit for part in paths)
    assert all(part.stat().st_mode & 0o777 == 0o600 for part in paths)
    offsets = {0: 0, 1: 0}
    opened = {channel: body for _, _, channel, body in records[:2]}
    seen = []
    for number, part in enumerate(paths, 1):
        header, *entries = lines(part)
        assert (header["run"], header["part"], header["started"]) == ("R", number, HEADER["started"])
        if number > 1:
            assert header["channels"] == {
                str(channel): {**body, "offset": offsets[channel]} for channel, body in opened.items()
            }
        for _, kind, channel, body in entries:
            if kind == "chunk":
                offsets[channel] += len(body)
            elif kind == "close":
                del opened[channel]
        seen += entries
    assert [(t, kind, channel) for t, kind, channel, _ in seen] == [record[:3] for record in records]


def test_a_record_longer_than_a_part_gets_one_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "a.mcpcap"
    writer = new_writer(path, part_limit=200)
    assert writer.append([OPEN, (1, "chunk", 0, b"x" * 1000), (2, "chunk", 0, b"y")]) == 3
    first, second, third = path, tmp_path / "a.0002.mcpcap", tmp_path / "a.0003.mcpcap"
    assert [len(lines(part)) for part in (first, second, third)] == [2, 2, 2]


def test_a_part_that_cannot_be_created_is_tried_again(tmp_path: Path) -> None:
    path = tmp_path / "a.mcpcap"
    refusals = [CaptureError("cannot create the capture part")]

    def open_part(first: str, number: int) -> tuple[int, str]:
        if refusals:
            raise refusals.pop()
        return new_part_file(first, number)

    writer = new_writer(path, part_limit=250, open_part=open_part)
    records = [OPEN, *((n, "chunk", 0, b"x" * 60) for n in range(1, 4))]
    stored = writer.append(records)
    assert 0 < stored < 4
    assert writer.failure
    assert writer.append(records[stored:]) == len(records) - stored
    assert writer.failure is None
    times = [line[0] for part in sorted(tmp_path.iterdir()) for line in lines(part)[1:]]
    assert sorted(times) == [0, 1, 2, 3]


def test_a_part_ends_by_its_age_too(tmp_path: Path) -> None:
    writer = new_writer(tmp_path / "a.mcpcap", part_age=100)
    times = [0, 50, 100, 101, 150, 201, 202, 900, 901]
    for t in times:
        assert writer.append([(t, "chunk", 0, b"x")]) == 1
    assert writer.append([(t, "chunk", 0, b"x") for t in (990, 1001, 1002, 2000)]) == 4
    paths = [tmp_path / "a.mcpcap", *sorted(tmp_path.glob("a.0*.mcpcap"))]
    found = [[line[0] for line in lines(part)[1:]] for part in paths]
    assert found == [[0, 50, 100], [101, 150, 201], [202], [900, 901, 990], [1001, 1002], [2000]]


def test_b112_under_a_ceiling_the_oldest_parts_go_and_what_is_open_is_told_anew(tmp_path: Path) -> None:
    path = tmp_path / "a.mcpcap"
    limit = 50_000
    told: list[str] = []
    writer = new_writer(path, ceiling=Ceiling(str(path), limit, lambda: told.append("reached")))
    writer.append([OPEN])
    most = 0
    for n in range(1, 1000):
        channel = 2 * n
        records = [
            (n, "open", channel, {"kind": "tcp", "dir": "c2s", "conn": n}),
            (n, "chunk", channel, b"%04d" % n * 100),
            (n, "close", channel, {"how": "eof"}),
            (n, "chunk", 0, b"ab"),
        ]
        assert writer.append(records) == 4
        most = max(most, sum(part.stat().st_size for part in tmp_path.iterdir()))
    assert 0.7 * limit < most <= limit
    assert told == ["reached"]
    assert not path.exists()
    parts = [lines(part) for part in sorted(tmp_path.iterdir())]
    numbers = [header["part"] for header, *_ in parts]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    for (header, *entries), (following, *_) in pairwise(parts):
        passed = sum(len(body) for _, kind, channel, body in entries if (kind, channel) == ("chunk", 0))
        assert following["channels"]["0"]["offset"] == header["channels"]["0"]["offset"] + passed
        assert len(following["channels"]) <= 2


def test_a_part_that_somebody_removed_is_no_trouble_for_the_ceiling(tmp_path: Path) -> None:
    path = tmp_path / "a.mcpcap"
    told: list[str] = []
    writer = new_writer(path, ceiling=Ceiling(str(path), 8000, lambda: told.append("reached")))
    for n in range(200):
        assert writer.append([(n, "chunk", 0, b"x" * 100)]) == 1
        path.unlink(missing_ok=True)
    assert told == ["reached"]


def test_run_identifiers_are_ulids_that_sort_by_time() -> None:
    ids = [new_run_id(ms) for ms in (0, 1, 1_700_000_000_000, 1_800_000_000_000)]
    assert ids == sorted(ids)
    assert all(re.fullmatch(r"[0-9A-HJKMNP-TV-Z]{26}", run) for run in ids)
    assert len({new_run_id(5) for _ in range(100)}) == 100
    assert new_run_id(1_469_918_176_385).startswith("01ARYZ6S41")  # the specification's example


def test_the_start_is_told_in_utc_to_the_microsecond() -> None:
    assert rfc3339(1_795_946_400_000_001_999) == "2026-11-29T10:00:00.000001Z"


@pytest.mark.parametrize(
    "text", ["plain", '"\\/\b\f\n\r\t', "".join(map(chr, range(0x100))), "é€😀\u2028\ufeff\x7f", ""]
)
def test_both_ways_to_write_a_chunk_are_the_same_to_the_byte(text: str) -> None:
    assert _chunk_line(12, 3, text) == _fast_chunk_line()(12, 3, text)
    assert json.loads(_chunk_line(12, 3, text)) == [12, "chunk", 3, text]


def test_a_large_capture_changes_over_in_the_middle(tmp_path: Path) -> None:
    path = tmp_path / "a.mcpcap"
    writer = new_writer(path)
    data = ['{"a":"é"}\n' * 4000] * 20
    records = [(n, "chunk", 0, piece.encode()) for n, piece in enumerate(data)]
    assert writer.append(records[:2]) == 2
    assert writer._chunk_line is _chunk_line
    assert writer.append(records[2:]) == 18
    assert [line[3] for line in lines(path)[1:]] == data
    assert writer._chunk_line is not _chunk_line
