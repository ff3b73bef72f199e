"""`mcpsniff play` without a terminal: plain lines in their time, whatever the capture is."""

import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from mcpsniff.capture.records import Record
from tests.capture.capture_files import save
from tests.captures import samples
from tests.cli.ready import ready
from tests.cli.running import COMMAND, PATIENCE, environment, interrupted, run
from tests.replay.playing import Playing
from tests.sessions import OPENS, end, line, records
from tests.transcript import http_sessions
from tests.transcript.golden import SESSION

NAME = "time-20261129T100000.000Z-1.mcpcap"
S = 1_000_000
FAULTS = str(samples.FOLDER / "faults.mcpcap")
SLOW = [*OPENS, Record(0, "chunk", 1, b"first\n"), Record(3600 * S, "chunk", 1, b"second\n"), *end(7200 * S)]


def without_played(text: str) -> list[str]:
    return [one for one in text.splitlines() if not one.startswith("  played ")]


@pytest.mark.parametrize(
    "words",
    [[], ["--payload"], ["--no-payload"], ["--filter", "tool:*"], ["--filter", "kind:request", "--alone"]],
    ids=" ".join,
)
def test_without_waiting_it_is_what_show_shows(words: Sequence[str]) -> None:
    played, shown = run("play", FAULTS, "--speed", "max", *words), run("show", FAULTS, *words)
    assert played.status == 0
    assert "  played        no waiting" in played.out
    assert without_played(played.out) == shown.out.splitlines()
    assert played.err == shown.err


@pytest.mark.parametrize("name", samples.NAMES)
@pytest.mark.parametrize("speed", ["max", "1000000"])
def test_every_sample_plays(name: str, speed: str) -> None:
    played = run("play", str(samples.FOLDER / f"{name}.mcpcap"), "--speed", speed, "--idle-limit", "1ms")
    assert played.status == 0
    assert played.err == ""
    assert "\x1b" not in played.out
    assert "Summary" in played.out


def test_several_parts_a_missing_one_and_a_torn_end(tmp_path: Path) -> None:
    path = save(tmp_path, NAME, SESSION, run="r", part=1)
    third = save(tmp_path, NAME.replace(".mcpcap", ".0003.mcpcap"), SESSION[3:], run="r", part=3)
    third.write_bytes(third.read_bytes()[:-10])
    played, shown = run("play", str(path), "--speed", "0"), run("show", str(path))
    assert played.status == 0
    assert without_played(played.out) == shown.out.splitlines()


def test_over_http_too(tmp_path: Path) -> None:
    path = save(tmp_path, NAME, http_sessions.records(http_sessions.TROUBLE), transport="http")
    played, shown = run("play", str(path), "--speed", "max"), run("show", str(path))
    assert without_played(played.out) == shown.out.splitlines()


def test_from_standard_input() -> None:
    data = Path(FAULTS).read_bytes()
    for words in ([], ["--filter", "tool:*"]):
        played = run("play", "-", "--speed", "max", *words, stdin=data)
        assert without_played(played.out) == run("show", "-", *words, stdin=data).out.splitlines()


def test_rows_come_one_by_one_and_a_gap_is_cut(tmp_path: Path) -> None:
    """Not how long it took, but what was there when: the second row is only due after a while."""
    path = save(tmp_path, NAME, SLOW)
    with subprocess.Popen(
        [*COMMAND, "play", str(path), "--idle-limit", "0.3"], stdout=subprocess.PIPE, env=environment()
    ) as child:
        assert child.stdout is not None
        seen, first, second = b"", 0.0, 0.0
        while piece := os.read(child.stdout.fileno(), 65536):
            seen += piece
            first = first or (time.monotonic() if b"first" in seen else 0.0)
            second = second or (time.monotonic() if b"second" in seen else 0.0)
    assert second - first >= 0.2
    assert b"pauses over 300 ms cut to that (--idle-limit)" in seen
    assert b"Summary" in seen


def test_a_part_of_it() -> None:
    rows = [one for one in run("show", FAULTS, "--no-payload").out.splitlines() if one[10:17].strip().startswith("#")]
    numbers = [int(one[10:17].strip()[1:]) for one in rows]
    first, last = numbers[3], numbers[6]
    for words in (["--from", f"#{first}", "--to", f"n:{last}"], ["--from", f"n:{first}", "--to", f"#{last}"]):
        played = run("play", FAULTS, "--no-payload", "--speed", "max", *words)
        shown = [one for one in played.out.splitlines() if one[10:17].strip().startswith("#")]
        assert shown == rows[3:7]
        assert "… 3 earlier rows passed over (--from)" in played.out
        assert played.out.rstrip().endswith(f"ended at #{last} (--to); the recording goes on")
        assert "Summary" not in played.out


def test_from_behind_the_end() -> None:
    played = run("play", FAULTS, "--from", "100h", "--speed", "max")
    assert played.status == 0
    assert "nothing from 100:00:00.000 on: the recording ends at " in played.out
    assert "(--from; '#12' is the event with that number)" in run("play", FAULTS, "--speed", "max", "--from", "12").out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--speed", "fast"], "--speed needs a number such as 2 or 0.5, or max, not 'fast'"),
        (["--speed", "\x1b[31m"], "--speed needs a number such as 2 or 0.5, or max, not '\\x1b[31m'"),
        (["--idle-limit", "x"], "--idle-limit needs seconds or a duration such as 500ms, or none, not 'x'"),
        (["--from", "soon"], "--from needs a moment such as 10s or 1:02.345, or a number such as '#12': soon"),
        (["--to", "#x"], "--to needs a moment"),
        (["--from", "20s", "--to", "10s"], "--to 10.000 lies before --from 20.000"),
        (["--alone"], "--alone says how --filter is meant, and needs it"),
        (["--filter", "tol:x"], "there is no field tol"),
    ],
)
def test_usage(words: Sequence[str], said: str) -> None:
    done = run("play", FAULTS, *words)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("mcpsniff: ")
    assert said in done.err


def test_what_is_no_capture(tmp_path: Path) -> None:
    (tmp_path / "x.mcpcap").write_bytes(b"hello\n")
    for path in ("none.mcpcap", "x.mcpcap"):
        done = run("play", str(tmp_path / path))
        assert done.status == 3
        assert done.err.count("\n") == 1
    assert run("play", "-", stdin=b"").status == 3


def test_ctrl_c_is_quiet(tmp_path: Path) -> None:
    done = interrupted("play", str(save(tmp_path, NAME, SLOW)), "--idle-limit", "none", after=b"first")
    assert (done.status, done.err) == (130, "")


def test_a_closed_pipe_ends_it_also_while_it_waits(tmp_path: Path) -> None:
    path = save(tmp_path, NAME, SLOW)
    with subprocess.Popen(
        [*COMMAND, "play", str(path), "--idle-limit", "none"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        while b"first" not in os.read(child.stdout.fileno(), 65536):
            pass
        child.stdout.close()
        assert child.wait(PATIENCE) == 0
        assert child.stderr.read() == b""


def test_no_escape_codes_where_only_the_output_is_a_terminal() -> None:
    playing = Playing(FAULTS, "--speed", "max")
    with playing:
        playing.process.kill()
        playing.end()
        playing.out = b""
        with open(os.devnull, "rb") as nothing:
            streams = [nothing.fileno(), playing.terminal, playing.terminal]
            playing.process = ready().start(["play", FAULTS, "--speed", "max"], streams, environment(), None)
        assert playing.end() == 0
        assert b"\x1b" not in playing.out
        assert b"Summary" in playing.out


def test_nothing_that_a_capture_names_is_run_or_connected_to(tmp_path: Path) -> None:
    """B151: a capture that names a command and a target."""
    header = {"argv": ["touch", str(tmp_path / "pwned")], "cwd": str(tmp_path), "target": "http://127.0.0.1:1/"}
    path = save(
        tmp_path, NAME, [*records(("c2s", {"jsonrpc": "2.0", "id": 1, "method": "ping"})), *end(5000)], **header
    )
    traced = tmp_path / "trace.py"
    traced.write_text(
        "import sys\n"
        "sys.addaudithook(lambda event, args: sys.exit(f'it does {event}') if event in"
        " ('socket.connect', 'subprocess.Popen', 'os.exec', 'os.fork', 'os.posix_spawn', 'os.system') else None)\n"
        "from mcpsniff.__main__ import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    words = [COMMAND[0], str(traced), "play", str(path), "--speed", "max"]
    done = subprocess.run(words, capture_output=True, env=environment(), timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"touch" in done.stdout
    assert not (tmp_path / "pwned").exists()


def test_a_long_message_and_hostile_text(tmp_path: Path) -> None:
    hostile = "\x1b[2J\x1b]0;owned\x07\u202e\x9b31m"
    said = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": hostile, "x": "a" * 5_000_000}}
    path = save(tmp_path, NAME, [*OPENS, Record(0, "chunk", 0, line(said)), *end(S)], label=hostile)
    played = run("play", str(path), "--speed", "max")
    assert played.status == 0
    assert not {"\x1b", "\x07", "\u202e", "\x9b"} & set(played.out)
