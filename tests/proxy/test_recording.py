"""Recorder and storing thread: bounded, honest about losses, and never a reason for the session to suffer."""

import errno
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcpsniff.capture.writer import CaptureWriter
from mcpsniff.proxy.recorder import CHUNK, OVERHEAD, Recorder
from mcpsniff.proxy.recording import write_transcript
from mcpsniff.proxy.storing import FIRST_PAUSE, SWEEP, Storing
from tests.proxy.wrapped import REPO, STDIO, Captured, environment, wait_for

HEADER = {"run": "R", "started": "2026-11-29T10:00:00.000000Z"}


def note(recorder: Recorder, channel: int, *pieces: bytes) -> None:
    """Note pieces as a pump does."""
    for piece in pieces:
        if recorder.alert:
            room = recorder.note(channel, piece)
        else:
            recorder.append((recorder.clock(), CHUNK, channel, piece))
            room = len(piece) + OVERHEAD
        recorder.settle(room, bulk=len(piece) > 1000)


def entries(recorder: Recorder) -> list[tuple[str, int | None, Any]]:
    return [(kind, channel, body) for _, kind, channel, body in recorder.take()[0]]


class Memory:
    """A writer that keeps records, and refuses from time to time."""

    def __init__(self) -> None:
        self.records: list[Any] = []
        self.failure: Exception | None = None
        self.room: float = float("inf")

    def append(self, records: list[Any]) -> int:
        stored = int(min(len(records), self.room))
        self.failure = None if stored == len(records) else OSError(errno.ENOSPC, "No space left on device")
        self.records += records[:stored]
        return stored


def test_a_full_queue_is_admitted_in_the_next_record_of_that_channel() -> None:
    recorder = Recorder(limit=1000)
    recorder._courtesy = 0.0
    note(recorder, 0, b"a" * 300, b"b" * 300, b"c" * 300, b"d" * 300)
    note(recorder, 1, b"e" * 300)
    taken = entries(recorder)
    assert taken == [("chunk", 0, b"a" * 300), ("chunk", 0, b"b" * 300)]
    recorder.release(600, 2)
    note(recorder, 1, b"f")
    recorder.mark("close", 0, {"how": "eof"})
    assert entries(recorder) == [
        ("gap", 1, {"bytes": 300, "why": "queue"}),
        ("chunk", 1, b"f"),
        ("gap", 0, {"bytes": 600, "why": "queue"}),
        ("close", 0, {"how": "eof"}),
    ]
    note(recorder, 0, b"g")
    recorder.close()
    assert recorder.take()[1]


def test_losses_at_the_very_end_are_admitted_too() -> None:
    recorder = Recorder(limit=OVERHEAD)
    note(recorder, 2, b"kept", b"lost", b"too")
    recorder.close()
    assert entries(recorder) == [("chunk", 2, b"kept"), ("gap", 2, {"bytes": 7, "why": "queue"})]
    note(recorder, 2, b"later")
    assert entries(recorder) == []


def test_small_reads_cannot_fill_memory_within_the_bound() -> None:
    recorder = Recorder(limit=100_000)
    note(recorder, 0, *[b"x"] * 10_000)
    assert len(entries(recorder)) <= 100_000 // OVERHEAD + 1


def test_what_is_discarded_takes_no_room() -> None:
    recorder = Recorder()
    note(recorder, 0, b"before")
    recorder.discard()
    note(recorder, 0, b"after")
    recorder.mark("close", 0, {})
    assert (entries(recorder), recorder.waiting()) == ([], 0)


def test_a_sleeping_storer_is_woken_by_the_first_note() -> None:
    recorder = Recorder()
    woken = threading.Event()

    def sleep() -> None:
        recorder.sleep(deep=True)
        woken.set()

    threading.Thread(target=sleep, daemon=True).start()
    assert not woken.wait(0.05)
    assert recorder.note(0, b"x")  # before it is settled: the receiver may never take it
    assert woken.wait(60)


def test_pumps_that_carry_bulk_give_way_for_a_bounded_time() -> None:
    recorder = Recorder(limit=1 << 20)
    recorder._courtesy = 0.05
    note(recorder, 0, *[b"x" * 65536] * 20)  # nobody stores: ends anyway, and owns up
    recorder.close()
    taken = entries(recorder)
    assert 8 < len(taken) < 20
    assert taken[-1][0] == "gap"


def store(recorder: Recorder, writer: Any, clock: Callable[[], float] = lambda: 0.0) -> tuple[Storing, list[str]]:
    said: list[str] = []
    return Storing(recorder, lambda: writer, said.append, clock), said


def test_everything_is_stored_in_order_with_its_time() -> None:
    recorder, writer = Recorder(), Memory()
    storing, said = store(recorder, writer)
    storing.start()
    recorder.mark("open", 0, {"kind": "stdin"})
    for n in range(100):
        note(recorder, n % 2, b"%d" % n)
    assert storing.finish(10) == 0
    assert [record[3] for record in writer.records] == [{"kind": "stdin"}, *(b"%d" % n for n in range(100))]
    times = [record[0] for record in writer.records]
    assert times == sorted(times)
    assert times[-1] < 60_000_000
    assert not said


def test_a_refusing_disk_is_said_once_and_left_alone_for_a_while() -> None:
    recorder, writer, now = Recorder(), Memory(), [0.0]
    storing, said = store(recorder, writer, lambda: now[0])
    storing._writer = writer
    recorder.mark("open", 0, {"kind": "stdin"})
    note(recorder, 0, b"one", b"two")
    writer.room = 1
    storing._store(recorder.take()[0])
    note(recorder, 0, b"three")
    note(recorder, 1, b"x")
    recorder.mark("close", 0, {"how": "eof"})
    storing._store(recorder.take()[0])
    assert [record[1] for record in writer.records] == ["open"]
    assert len(said) == 1
    assert "No space left" in said[0]
    writer.room, now[0] = float("inf"), FIRST_PAUSE
    note(recorder, 1, b"back")
    storing._store(recorder.take()[0])
    assert [(kind, channel, body) for _, kind, channel, body in writer.records[1:]] == [
        ("gap", 0, {"bytes": 11, "why": "disk"}),
        ("gap", 1, {"bytes": 1, "why": "disk"}),
        ("close", 0, {"how": "eof"}),
        ("chunk", 1, b"back"),
    ]
    assert len(said) == 1
    assert recorder.waiting() == 0


def test_a_disk_that_refuses_for_days_costs_no_memory_for_connections_that_ended() -> None:
    recorder, writer = Recorder(), Memory()
    storing, _ = store(recorder, writer)
    storing._writer = writer
    writer.room = 0
    recorder.mark("open", 0, {"kind": "tcp"})
    for number in range(1, 10_000):
        recorder.mark("open", number, {"kind": "tcp"})
        note(recorder, number, b"xy")
        recorder.mark("close", number, {"how": "eof"})
        storing._store(recorder.take()[0])
        note(recorder, 0, b"x")
    assert len(storing._backlog) < SWEEP + 10
    writer.room, storing._retry_at = float("inf"), 0.0
    storing._store(recorder.take()[0])
    told = {channel for _, kind, channel, _ in writer.records if kind == "open"}
    ended = {channel for _, kind, channel, _ in writer.records if kind == "close"}
    assert told == ended | {0}
    gaps = [body["bytes"] for _, kind, channel, body in writer.records if (kind, channel) == ("gap", 0)]
    assert sum(gaps) == 9998
    assert storing._lost == 3 * 9999 - 1


def test_what_was_changed_is_placed_in_what_was_recorded() -> None:
    """Whoever changes bytes counts those that passed; offsets of a capture do not count those that were lost."""
    recorder, writer = Recorder(), Memory()
    storing, _ = store(recorder, writer)
    storing._writer = writer

    def rewritten(start: int) -> list[tuple[int | None, int]]:
        for channel in (0, 1):
            recorder.mark("rewrite", channel, {"start": start, "length": 1, "data": "x", "by": "mcpsniff"})
        storing._store(recorder.take()[0])
        return [(channel, body["start"]) for _, kind, channel, body in writer.records if kind == "rewrite"][-2:]

    assert rewritten(500) == [(0, 500), (1, 500)]
    recorder.mark("gap", 0, {"bytes": 100, "why": "queue"})
    recorder.mark("gap", 0, {"bytes": 50, "why": "secret"})
    assert rewritten(600) == [(0, 500), (1, 600)]
    writer.room = 0
    note(recorder, 1, b"lost")
    storing._store(recorder.take()[0])
    writer.room, storing._retry_at = float("inf"), 0.0
    assert rewritten(600) == [(0, 500), (1, 596)]
    recorder.mark("close", 0, {"how": "eof"})
    assert rewritten(9) == [(0, 9), (1, 5)]


def test_the_pause_grows_while_the_disk_refuses() -> None:
    recorder, writer, now, tries = Recorder(), Memory(), [0.0], []
    storing, _ = store(recorder, writer, lambda: now[0])
    storing._writer = writer
    writer.room = 0
    append = writer.append
    writer.append = lambda records: (tries.append(now[0]), append(records))[1]  # type: ignore[method-assign]
    for second in range(400):
        now[0] = float(second)
        note(recorder, 0, b"x")
        storing._store(recorder.take()[0])
    assert tries == [0, 1, 3, 7, 15, 31, 63, 123, 183, 243, 303, 363]


def test_the_end_is_one_more_try() -> None:
    recorder, writer = Recorder(), Memory()
    writer.room = 0
    storing, _ = store(recorder, writer)
    recorder.mark("open", 0, {"kind": "stdin"})
    note(recorder, 0, b"lost")
    storing.start()
    wait_for(lambda: recorder.waiting() == 0)
    writer.room = 100
    assert storing.finish(10) == 4
    assert [record[1] for record in writer.records] == ["open", "gap"]


def test_a_bug_in_the_storing_thread_stays_there() -> None:
    class Broken:
        failure = None

        def append(self, records: list[Any]) -> int:
            raise ZeroDivisionError("a bug")

    recorder = Recorder()
    storing, said = store(recorder, Broken())
    note(recorder, 0, b"x" * 1000)
    storing.start()
    assert storing.finish(10) >= 1000
    note(recorder, 0, b"more")
    assert recorder.waiting() == 0
    assert len(said) == 1
    assert "a bug" in said[0]


@pytest.mark.parametrize("nth", range(1, 12))
def test_fault_loop_the_nth_write_fails(tmp_path: Path, nth: int) -> None:
    """Whichever write the disk refuses, every byte is in the capture or in a gap, and marks are never missing."""
    calls, path = 0, tmp_path / "a.mcpcap"

    def write(descriptor: int, data: bytes) -> int:
        nonlocal calls
        calls += 1
        if calls == nth:
            return os.write(descriptor, data[: len(data) // 2])
        if calls == nth + 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return os.write(descriptor, data)

    recorder, now = Recorder(), [0.0]
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND)
    writer = CaptureWriter(descriptor, str(path), HEADER, write=write)
    storing, _ = store(recorder, writer, lambda: now[0])
    storing._writer = writer
    sent = {0: b"", 1: b""}
    for n in range(10):
        recorder.mark("comment", None, {"text": str(n), "by": "test"})
        for channel in sent:
            data = b"%d-%d;" % (channel, n) * 10
            sent[channel] += data
            note(recorder, channel, data)
        storing._store(recorder.take()[0])
        now[0] += 0.6
    recorder.close()
    storing._retry_at = 0.0
    storing._append([])
    capture = Captured(path)
    assert capture.damaged == 0
    assert [json.loads(body["text"]) for _, kind, _, body in capture.records if kind == "comment"] == list(range(10))
    for channel, data in sent.items():
        lost = sum(body["bytes"] for body in capture.bodies("gap", channel))
        assert len(capture.data(channel)) + lost == len(data)


@pytest.mark.parametrize("nth", range(1, 5))
def test_fault_loop_neither_bytes_nor_exit_status_change(tmp_path: Path, nth: int) -> None:
    """The same in a whole wrapped session: the Nth write to the capture and all after it fail."""
    driver = f"""
import os, sys
from mcpsniff.capture import writer
from mcpsniff.proxy import storing
from mcpsniff.cli.options import STDIO, parse
from mcpsniff.proxy.stdio import wrap
calls = 0
def failing(descriptor, data):
    global calls
    calls += 1
    if calls >= {nth}:
        raise OSError(28, "No space left on device")
    return os.write(descriptor, data)
storing.SLICE = 1
writer.CaptureWriter.__init__.__kwdefaults__["write"] = failing
options, command = parse(STDIO, sys.argv[1:])
wrap(command, options)
"""
    sent = b"".join(b'{"jsonrpc":"2.0","id":%d,"method":"ping"}\n' % n for n in range(5000))
    words = [sys.executable, "-c", driver, "--no-transcript", "--dir", str(tmp_path), "--", "sh", "-c", "cat; exit 7"]
    done = subprocess.run(words, input=sent, capture_output=True, env=environment(), timeout=60)
    assert (done.stdout, done.returncode) == (sent, 7)
    said = done.stderr.decode().splitlines()
    assert len([line for line in said if "recording suspended" in line]) == 1
    assert [line for line in said if "are not in the capture" in line]
    assert "Traceback" not in done.stderr.decode()
    (path,) = tmp_path.glob("*.mcpcap")
    if path.stat().st_size:
        assert Captured(path).damaged == 0


def test_the_transcript_is_written_by_a_process_that_holds_nothing_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    witness = tmp_path / "python"
    witness.write_text(f"""#!/bin/sh
{{ echo "$@"; ps -o pgid= -p $$; for n in 0 1 2; do readlink /proc/self/fd/$n; done; }} > {tmp_path}/new
mv {tmp_path}/new {tmp_path}/seen
""")
    witness.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(witness))
    write_transcript(str(tmp_path / "server-1.mcpcap"))
    seen = tmp_path / "seen"
    assert wait_for(seen.exists)
    words, group, *streams = seen.read_text().splitlines()
    assert words == f"-P -m mcpsniff show {tmp_path}/server-1.mcpcap --format markdown -o {tmp_path}/server-1.md"
    assert int(group) != os.getpgrp()
    if sys.platform == "linux":
        assert streams[0] == os.devnull
        assert streams[2] == os.devnull


def test_a_session_that_ends_has_a_transcript_started(tmp_path: Path) -> None:
    words = [*STDIO, "--dir", str(tmp_path), "--", "true"]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, env=environment(), timeout=60)
    assert done.returncode == 0
    if (REPO / "mcpsniff/cli/show.py").exists():
        assert wait_for(lambda: list(tmp_path.glob("*.md")))


def test_the_first_line_is_there_before_anything_was_said(tmp_path: Path) -> None:
    """So that whoever looks finds a session in which nothing was said yet, and no empty file."""
    path = tmp_path / "x.mcpcap"
    recorder = Recorder()
    storing = Storing(
        recorder, lambda: CaptureWriter(os.open(path, os.O_CREAT | os.O_WRONLY), str(path), dict(HEADER)), print
    )
    storing.start()
    assert wait_for(lambda: path.exists() and path.read_bytes().endswith(b"\n"))
    assert (json.loads(path.read_bytes())["run"], storing.finish(5)) == ("R", 0)
    assert path.read_bytes().count(b"\n") == 1


def test_a_disk_that_has_no_room_for_the_first_line_is_told_of_at_once() -> None:
    class Full(Memory):
        def append(self, records: list[Any]) -> int:
            super().append(records)
            self.failure = OSError(errno.ENOSPC, "No space left on device")
            return 0

    said: list[str] = []
    recorder = Recorder()
    storing = Storing(recorder, Full, said.append)
    storing.start()
    assert wait_for(lambda: said)
    note(recorder, 0, b"lost")
    assert storing.finish(5) == 4
    assert said == ["recording suspended: No space left on device; the session goes on"]
