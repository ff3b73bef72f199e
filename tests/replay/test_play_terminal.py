"""`mcpsniff play` on a terminal: keys, the foot, job control, and a terminal that is as before on every way out."""

import os
import re
import signal
import termios
from pathlib import Path

import pytest

from mcpsniff.capture.records import Record
from mcpsniff.transcript.safe import cells
from tests.capture.capture_files import save
from tests.cli.running import on_terminal, run
from tests.replay.playing import Job, Playing
from tests.sessions import OPENS, end, line
from tests.tail.emulator import Terminal
from tests.tail.growing import Growing, now_rfc3339

S = 1_000_000
NAME = "time-20261129T100000.000Z-1.mcpcap"
HOSTILE = "slow\x1b[2J\x1b]0;owned\x07\u202e\r\n\x9b31m"
PLAYING, PAUSED = b"\xe2\x96\xb8 playing", b"\xe2\x80\x96 paused"


def call(t: int, number: int, name: str) -> Record:
    params = {"name": name, "arguments": {"a": name}}
    message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
    return Record(t * S, "chunk", 0, line(message))


def answer(t: int, number: int) -> Record:
    return Record(t * S, "chunk", 1, line({"jsonrpc": "2.0", "id": number, "result": {"content": []}}))


def talk(name: str = "slow") -> list[Record]:
    """Rows at 0, 1000 (an answer), 1001 (noise), 2000 (an answer), 3000 s; calls 1 s after the answers."""
    return [
        *OPENS,
        call(0, 1, f"{name}-1"),
        answer(1000, 1),
        Record(1001 * S, "chunk", 1, b"noise\n"),
        call(1002, 2, f"{name}-2"),
        answer(2000, 2),
        *end(3000 * S),
    ]


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(save(tmp_path, NAME, talk()))


def foot(playing: Playing) -> list[str]:
    """The lines of the foot: below the last row, down to the state."""
    return [one for one in playing.shown.lines[playing.shown.row :] if one]


def test_keys(path: str) -> None:
    with Playing(path, "--idle-limit", "none", "--no-payload") as playing:
        playing.until(PLAYING)
        playing.during(0.3)
        assert playing.has_keys
        waiting, state = foot(playing)
        assert re.fullmatch(r"→ tools/call slow-1  #\d+ · id 1 +\d\.\d s", waiting)
        assert re.match(r"▸ playing  0\.\d / 50:00\.0  x1  #\d+ +\? keys", state)
        playing.press(b" ")
        playing.until(PAUSED)
        playing.press(b"\x1b[C")
        playing.until(b"has had no answer")
        assert "answered #" not in playing.shown.shown
        playing.press(b".")
        playing.until(b"answered #")
        playing.press(b"+")
        playing.until(b"x2")
        playing.press(b"--")
        playing.until(b"x0.5")
        playing.press(b"?")
        playing.until(b"show one row, and pause")
        playing.press(b"?n")
        playing.until(b"noise")
        playing.during(0.3)
        assert len(foot(playing)) == 1
        assert "slow-2" not in playing.shown.shown, "it paused at the finding"
        playing.press(b".")
        playing.until(b"slow-2")
        playing.press(b"xyz\x1b[A q")
        assert playing.end() == 0
        assert playing.is_as_before
        left = playing.shown
    assert left.lines[-2].startswith("mcpsniff: ended at #")
    assert "goes on there" in left.lines[-2]
    assert "paused" not in left.shown
    assert "Summary" not in left.shown


def test_a_recording_plays_to_its_end_and_leaves_what_show_shows(path: str) -> None:
    with Playing(path, "--idle-limit", "0.05") as playing:
        assert playing.end() == 0
        assert playing.is_as_before
        left = playing.shown.lines
    assert [one for one in left if not one.startswith("  played ")][:-1] == run("show", path).out.splitlines()


def test_no_further_finding(path: str) -> None:
    with Playing(path, "--from", "1500s") as playing:
        playing.until(PLAYING)
        playing.press(b"n")
        assert playing.end() == 0
        assert "no further finding" in playing.shown.shown
        assert "earlier rows passed over (--from)" in playing.shown.shown


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGINT])
def test_signals_leave_the_terminal_as_it_was(path: str, number: int) -> None:
    with Playing(path, "--idle-limit", "none") as playing:
        playing.until(PLAYING)
        assert playing.has_keys
        playing.process.send_signal(number)
        assert playing.end() == (130 if number == signal.SIGINT else -number)
        assert playing.is_as_before
        assert PLAYING.decode() not in playing.shown.shown
        assert "Traceback" not in playing.shown.shown


def test_ctrl_z_gives_the_terminal_back_and_fg_goes_on(path: str) -> None:
    with Job(path, "--idle-limit", "none") as job:
        job.until(PLAYING)
        assert job.has_keys
        job.press(b"\x1a")
        assert job.told() == "stopped"
        job.during(0.1)
        assert job.is_as_before
        assert foot(job) == []
        before = job.out
        job.go_on()
        while job.out == before or not job.has_keys:
            job.during(0.05)
        job.until(PLAYING)
        job.signal(signal.SIGSTOP)
        assert job.told() == "stopped"
        termios.tcsetattr(job.terminal, termios.TCSANOW, job.before)  # as a shell does
        job.go_on()
        while not job.has_keys:
            job.during(0.05)
        job.press(b" ")
        job.until(PAUSED)
        job.press(b"\x1a")
        assert job.told() == "stopped"
        job.signal(signal.SIGTERM)
        job.go_on()
        assert job.told() == f"-{signal.SIGTERM.value}"
        assert job.is_as_before


def test_ctrl_c_on_the_terminal(path: str) -> None:
    with Job(path) as job:
        job.until(PLAYING)
        job.press(b"\x03")
        assert job.told() == "130"
        assert job.is_as_before


def test_a_capture_on_standard_input_leaves_the_keys_to_the_terminal(path: str, tmp_path: Path) -> None:
    with Job("-", "--idle-limit", "none", given=Path(path)) as job:
        job.until(PLAYING)
        job.press(b"n")
        job.until(b"noise")
        job.until(PAUSED)
        job.during(0.2)
        assert " / " not in foot(job)[-1], "its end is not known yet"
        job.press(b"q")
        assert job.told() == "0"
        assert job.is_as_before


@pytest.mark.parametrize("columns", [20, 33, 80])
def test_hostile_text_stays_text_at_any_width(tmp_path: Path, columns: int) -> None:
    path = save(tmp_path, NAME, talk(HOSTILE), label=HOSTILE)
    with Playing(str(path), "--idle-limit", "none", columns=columns) as playing:
        playing.until(PLAYING)
        playing.press(b".?n")
        playing.until(PAUSED)
        playing.during(0.2)
        shown = Terminal(columns).feed(playing.out.decode().replace("\r\n", "\n\r"))  # it refuses what it does not know
        assert all(cells(one) <= columns for one in shown.lines)
        assert "\\x1b[2J" in shown.shown.replace("\n", "")
        playing.press(b"q")
        assert playing.end() == 0


def test_a_new_width(path: str) -> None:
    with Playing(path, "--idle-limit", "none", columns=100) as playing:
        playing.until(PLAYING)
        playing.resize(40)
        playing.during(0.3)
        assert max(len(one) for one in foot(playing)) < 40
        playing.resize(100, lines=2)
        playing.during(0.3)
        assert foot(playing) == []
        playing.press(b"q")
        assert playing.end() == 0


def test_a_terminal_that_can_do_nothing_gets_plain_lines(path: str) -> None:
    played = on_terminal("play", path, "--speed", "max", env={"TERM": "dumb"})
    assert played.status == 0
    assert "\x1b" not in played.out
    assert "Summary" in played.out


def test_no_colour_where_none_is_wanted(path: str) -> None:
    with Playing(path, "--idle-limit", "none", NO_COLOR="1") as playing:
        playing.until(PLAYING)
        playing.press(b"q")
        assert playing.end() == 0
        assert not re.search(rb"\x1b\[[0-9;]*m", playing.out)


def test_a_session_that_still_runs_is_played_to_its_present_end(tmp_path: Path) -> None:
    with Growing(tmp_path / NAME, started=now_rfc3339(ago=60)) as capture:
        capture.begin(call(0, 1, "slow"), answer(1, 1), call(2, 2, "open"))
        with Playing(str(tmp_path / NAME), "--idle-limit", "none") as playing:
            playing.until(b" / 2.0")
            playing.press(b" ")
            playing.until(PAUSED)
            capture.append(call(3, 3, "later"))
            playing.press(b"." * 20)
            assert playing.end() == 0
            shown = playing.shown.shown
    assert "tools/call open" in shown
    assert "later" not in shown
    assert "the session is still running" in shown
    assert "what had been recorded when playing began" in shown


def test_a_terminal_that_goes_away_ends_it(path: str) -> None:
    with Playing(path, "--idle-limit", "none") as playing:
        playing.until(PLAYING)
        os.close(playing.terminal)
        os.close(playing._master)
        playing._opened.clear()
        playing._ours.clear()
        assert playing.process.wait(20) is not None
