"""Following a growing capture: promptness, parts, the end, and files that vanish or change."""

import os
import threading
import time
from collections.abc import Callable
from io import FileIO
from pathlib import Path

import pytest

from mcpsniff.capture.follower import INTERVAL, SETTLE, CaptureLost, Follower, follow
from mcpsniff.capture.records import CHUNK, GAP, Record
from mcpsniff.errors import CaptureError
from tests.capture.capture_files import SESSION, encoded, save, stored


class Clock:
    """Time that passes only when somebody sleeps; ``then`` runs at each sleep with the number of sleeps so far."""

    def __init__(self, then: Callable[[int], object] = lambda _n: None) -> None:
        self.now = 100.0
        self.sleeps = 0
        self.then = then

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.sleeps += 1
        self.then(self.sleeps)

    def __call__(self) -> float:
        return self.now


def test_it_ends_a_moment_after_the_process_did_and_says_when_nothing_is_new(tmp_path: Path) -> None:
    clock = Clock()
    follower = Follower(str(save(tmp_path, "a.mcpcap")), sleep=clock.sleep, clock=clock)
    got = list(follower.follow())
    assert [record for record in got if record] == SESSION
    assert got[: len(SESSION)] == SESSION
    assert set(got[len(SESSION) :]) == {None}
    assert SETTLE <= clock.now - 100 < SETTLE + 3 * INTERVAL
    assert follower.ended
    assert follower.header is not None
    assert follower.header.label == "time"


def test_without_an_exit_it_goes_on_until_told_to_stop(tmp_path: Path) -> None:
    clock = Clock()
    path = tmp_path / "a.mcpcap"
    path.write_bytes(encoded(SESSION[:4]) + b'[9,"chunk",1,"hal')
    follower = Follower(str(path), sleep=clock.sleep, clock=clock)
    got = list(follower.follow(stop=lambda: clock.sleeps >= 1000))
    assert stored(record for record in got if record) == SESSION[:4]
    assert got[-1] == Record(2210, GAP, 1, {"bytes": 0, "why": "damage"}), "the half line is worth a gap at the end"
    assert clock.now - 100 == pytest.approx(1000 * INTERVAL)


def test_half_a_line_waits_for_its_other_half(tmp_path: Path) -> None:
    path = tmp_path / "a.mcpcap"
    whole = encoded(SESSION)
    path.touch()
    follower = Follower(str(path))
    assert follower.poll() == []
    with path.open("ab", buffering=0) as file:
        for number in range(len(whole)):
            file.write(whole[number : number + 1])
            got = follower.poll()
            assert len(got) <= 1
            ended_line = whole[number : number + 1] == b"\n" and number > whole.index(b"\n")
            assert bool(got) == ended_line
    follower.close()


def test_it_goes_on_in_the_next_part_when_that_has_its_header(tmp_path: Path) -> None:
    first = save(tmp_path, "a.mcpcap", SESSION[:3])
    follower = Follower(str(first))
    assert follower.poll() == SESSION[:3]
    second = encoded(SESSION[3:], part=2)
    path = tmp_path / "a.0002.mcpcap"
    with first.open("ab") as file, path.open("xb", buffering=0) as next_file:
        assert follower.poll() == []
        next_file.write(second[:20])
        assert follower.poll() == []
        file.write(b'[2000,"chunk",0,"last of part 1"]\n')
        file.flush()
        next_file.write(second[20:])
        assert follower.poll() == [Record(2000, CHUNK, 0, b"last of part 1")]
        assert follower.poll() == SESSION[3:]
    assert follower.damage == []
    follower.close()


def test_a_pruned_part_is_left_behind_and_a_pruned_next_part_is_a_gap(tmp_path: Path) -> None:
    follower = Follower(str(save(tmp_path, "a.mcpcap", SESSION[:3])))
    follower.poll()
    save(tmp_path, "a.0003.mcpcap", SESSION[5:], part=3)
    os.unlink(tmp_path / "a.mcpcap")
    assert follower.poll() == [Record(1532, GAP, None, {"bytes": 0, "why": "damage"}), *SESSION[5:]]
    assert [damage.text for damage in follower.damage] == ["part 2 of this run is missing before this one"]
    follower.close()


def test_a_part_of_another_run_is_none(tmp_path: Path) -> None:
    clock = Clock()
    follower = Follower(str(save(tmp_path, "a.mcpcap")), sleep=clock.sleep, clock=clock)
    save(tmp_path, "a.0002.mcpcap", SESSION, part=2, run="another")
    assert [record for record in follower.follow() if record] == SESSION


def test_a_next_part_that_is_no_capture_is_passed_over_and_said_once(tmp_path: Path) -> None:
    clock = Clock()
    follower = Follower(str(save(tmp_path, "a.mcpcap")), sleep=clock.sleep, clock=clock)
    (tmp_path / "a.0002.mcpcap").write_bytes(b"hello\n")
    assert [record for record in follower.follow() if record] == SESSION
    (damage,) = follower.damage
    assert damage.text == "this part is passed over: not a capture, it looks like some other text"


def test_time_never_runs_back_into_a_part(tmp_path: Path) -> None:
    path = save(tmp_path, "a.mcpcap", SESSION[:3])
    with path.open("ab") as file:
        file.write(b'[7000,"chunk",0,"no line end"]')
    save(tmp_path, "a.0002.mcpcap", [Record(6000, CHUNK, 0, b"x")], part=2)
    follower = Follower(str(path))
    records = [*follower.poll(), *follower.poll()]
    assert [record.t for record in records[3:]] == [7000, 7000]
    follower.close()


def test_a_disk_that_fails_is_said(tmp_path: Path) -> None:
    class Failing(FileIO):
        def read(self, size: int = -1) -> bytes:
            raise OSError(5, "Input/output error")

    path = save(tmp_path, "a.mcpcap")
    follower = Follower(str(path))
    follower.close()
    follower._file, follower.ended = Failing(path), False
    with pytest.raises(CaptureLost, match="any more: Input/output error"):
        list(follower.follow())


def test_joining_at_a_later_part_is_known(tmp_path: Path) -> None:
    clock = Clock()
    path = save(tmp_path, "a.0002.mcpcap", SESSION, part=2)
    follower = Follower(str(path), sleep=clock.sleep, clock=clock)
    assert [record for record in follower.follow() if record] == SESSION
    assert follower.joined_late


def lose_by_removal(path: Path) -> None:
    path.unlink()


def lose_by_replacement(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(encoded(SESSION))
    other.rename(path)


def lose_by_cutting(path: Path) -> None:
    os.truncate(path, 100)


@pytest.mark.parametrize(
    ("lose", "text"),
    [
        (lose_by_removal, "vanished"),
        (lose_by_replacement, "was replaced by another file"),
        (lose_by_cutting, "was cut to 100 bytes"),
    ],
)
def test_a_lost_file_is_said_after_what_was_read(tmp_path: Path, lose: Callable[[Path], None], text: str) -> None:
    path = save(tmp_path, "a.mcpcap", SESSION[:4])
    clock = Clock(lambda sleeps: lose(path) if sleeps == 3 else None)
    got = []
    with pytest.raises(CaptureLost, match=text) as raised:
        got.extend(Follower(str(path), sleep=clock.sleep, clock=clock).follow())
    assert raised.value.exit_status == 3
    assert clock.sleeps == 3


def test_what_cannot_be_followed_is_a_capture_error(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="cannot follow"):
        Follower(str(tmp_path / "gone.mcpcap"))
    with pytest.raises(CaptureError, match="cannot follow"):
        Follower(str(tmp_path))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CaptureError, match="is not a regular file"):
        Follower(str(tmp_path / "pipe"))
    (tmp_path / "text").write_bytes(b"hello")
    with pytest.raises(CaptureError, match="line 1: not a capture"):
        next(follow(str(tmp_path / "text")))


def test_a_record_is_seen_soon_after_it_was_written(tmp_path: Path) -> None:
    """The promise is 50 ms; here the interval is checked with real time, generously, because machines are busy."""
    path = save(tmp_path, "a.mcpcap", SESSION[:2])
    seen: list[Record] = []
    done = threading.Event()

    def watch() -> None:
        for record in follow(str(path), stop=done.is_set):
            seen.extend([record] if record else [])

    thread = threading.Thread(target=watch)
    thread.start()
    with path.open("ab", buffering=0) as file:
        file.write(b'[5000,"chunk",0,"now"]\n')
        deadline = time.monotonic() + 10
        while len(seen) < 3 and time.monotonic() < deadline:
            time.sleep(0.005)
    done.set()
    thread.join(10)
    assert not thread.is_alive()
    assert seen[-1] == Record(5000, CHUNK, 0, b"now")
    assert INTERVAL <= 0.02
