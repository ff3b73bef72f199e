"""`mcpsniff show`, as a process."""

import fcntl
import json
import os
import re
import stat
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mcpsniff.capture.records import Record
from tests.capture.capture_files import encoded, save
from tests.cli.running import COMMAND, environment, interrupted, on_terminal, run
from tests.sessions import OPENS, records
from tests.transcript.golden import HEADER, MARKDOWN, SESSION, TEXT

NAME = "time-20261129T100000.000Z-1.mcpcap"


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    return save(tmp_path, NAME, SESSION, **HEADER)


def test_a_pipe_gets_the_plain_text(capture: Path) -> None:
    ran = run("show", str(capture))
    assert (ran.status, ran.err) == (0, "")
    head, rest = ran.out.split("  command  ")
    assert head.startswith("time\n  started       2026-11-29 10:00:00.000  UTC\n  capture       /")
    assert rest == TEXT.split("  command  ")[1]
    assert "\x1b" not in ran.out


@pytest.mark.parametrize("variable", ["COLUMNS", "LINES"])
def test_a_pipes_text_does_not_depend_on_the_terminal(capture: Path, variable: str) -> None:
    assert run("show", str(capture), env={variable: "44"}).out == run("show", str(capture)).out


def test_a_terminal_gets_colours_and_fits(capture: Path) -> None:
    for columns in (40, 80, 120):
        ran = on_terminal("show", str(capture), columns=columns)
        assert ran.status == 0
        assert "\x1b[" in ran.out
        bare = re.sub(r"\x1b\[[0-9;]*m", "", ran.out)
        assert "\x1b" not in bare
        lines = [line for line in bare.splitlines() if str(capture) not in line]
        assert max(map(len, lines)) <= columns
        assert len(lines) == len(bare.splitlines()) - 1, "the path is on one line, for copying"
        assert "tools/call" in bare
        assert "2.4 ms" in bare


@pytest.mark.parametrize("columns", [1, 20])
def test_a_very_narrow_terminal_is_served(capture: Path, columns: int) -> None:
    ran = on_terminal("show", str(capture), columns=columns)
    assert (ran.status, "Traceback" in ran.out) == (0, False)
    assert "Summary" in ran.out


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_terminal_without_colours(capture: Path, env: dict[str, str]) -> None:
    ran = on_terminal("show", str(capture), env=env)
    assert "tools/call" in ran.out
    assert "\x1b" not in ran.out


def test_markdown_and_a_file(capture: Path, tmp_path: Path) -> None:
    target = tmp_path / "report.md"
    target.write_text("old", encoding="utf-8")
    target.chmod(0o644)
    ran = run("show", str(capture), "--format", "markdown", "-o", str(target))
    assert (ran.status, ran.out, ran.err) == (0, "", "")
    made = target.read_text(encoding="utf-8").splitlines()
    assert made[6:-1] == MARKDOWN.splitlines()[6:-1]
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.md", NAME]


def test_the_capture_itself_is_never_overwritten(capture: Path) -> None:
    before = capture.read_bytes()
    ran = run("show", str(capture), "-o", str(capture))
    assert (ran.status, capture.read_bytes()) == (2, before)


def test_text_in_a_file_is_plain_also_from_a_terminal(capture: Path, tmp_path: Path) -> None:
    target = tmp_path / "t.txt"
    assert on_terminal("show", str(capture), "-o", str(target)).status == 0
    assert target.read_text(encoding="utf-8") == run("show", str(capture)).out


@pytest.mark.parametrize(
    ("target", "why"),
    [("missing/x.md", "No such file"), (".", "folder"), ("/dev/full", "No space left")],
)
def test_an_output_that_cannot_be_written(capture: Path, tmp_path: Path, target: str, why: str) -> None:
    if target == "/dev/full" and not os.path.exists(target):
        pytest.skip("there is no /dev/full here")
    ran = run("show", str(capture), "-o", str(tmp_path / target))
    assert ran.status == 3
    assert why in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
@pytest.mark.parametrize("form", ["text", "markdown", "json"])
def test_a_full_disk_behind_stdout(capture: Path, form: str) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*COMMAND, "show", str(capture), "--format", form], stdout=full, stderr=subprocess.PIPE, env=environment()
        )
    assert done.returncode == 3
    assert done.stderr.decode().splitlines() == ["mcpsniff: cannot write the output: No space left on device"]


def test_json_is_strict_and_payloads_are_asked_for(capture: Path) -> None:
    bare = [json.loads(line) for line in run("show", str(capture), "--format", "json").out.splitlines()]
    full = [json.loads(line) for line in run("show", str(capture), "--format", "json", "--payload").out.splitlines()]
    assert len(bare) == len(full) == 20
    assert not any("payload" in line for line in bare)
    assert [line["payload"]["id"] for line in full if line["type"] == "message" and "id" in line] == [0, 0, 1, 1]


@pytest.mark.parametrize(("option", "shown"), [("--payload", True), ("--no-payload", False)])
def test_payload_options(capture: Path, option: str, shown: bool) -> None:
    assert ('"jsonrpc": "2.0"' in run("show", str(capture), option).out) is shown


def test_the_newest_the_label_and_what_is_said_about_it(tmp_path: Path) -> None:
    folder = tmp_path / "captures"
    folder.mkdir(0o700)
    for day, label in (("27", "a"), ("29", "b"), ("28", "a")):
        header = {"label": label, "started": f"2026-11-{day}T10:00:00.000000Z"}
        save(folder, f"{label}-202611{day}T100000.000Z-1.mcpcap", SESSION, **header)
    newest = run("show", "--dir", str(folder))
    assert newest.status == 0
    assert newest.out.startswith("b\n")
    assert "b-20261129T100000.000Z-1.mcpcap, the newest of 3" in newest.err
    labelled = run("show", "a", env={"MCPSNIFF_DIR": str(folder)})
    assert "a-20261128T100000.000Z-1.mcpcap, the newest of 2 called a\n" in labelled.err
    save(folder, "x-20261130T100000.000Z-1.mcpcap", SESSION, label="mcp-server-xyz", started="2026-11-30T10:00:00Z")
    in_part = run("show", "xyz", env={"MCPSNIFF_DIR": str(folder)})
    assert "x-20261130T100000.000Z-1.mcpcap, the only one whose label contains xyz\n" in in_part.err


def test_from_standard_input(capture: Path) -> None:
    ran = run("show", "-", "--format", "json", stdin=capture.read_bytes())
    assert (ran.status, len(ran.out.splitlines())) == (0, 20)


PNG = b"\x89PNG\r\n\x1a\n\x00\x00"
HAR = b'{"log":{"version":"1.2","entries":[]}}'
NEWER = b'{"mcpcap":999,"run":"x","part":1,"started":"2026-11-29T10:00:00Z"}\n'


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "empty capture"),
        (PNG, "not a capture"),
        (HAR, "not a capture"),
        (b"#!/bin/sh\necho hi\n", "not a capture"),
        (b"\x1f\x8b\x08\x00", "not a capture"),
        (NEWER, "newer version (999)"),
    ],
)
@pytest.mark.parametrize("form", ["text", "json"])
def test_foreign_files_b114(tmp_path: Path, data: bytes, says: str, form: str) -> None:
    path = tmp_path / "x.mcpcap"
    path.write_bytes(data)
    ran = run("show", str(path), "--format", form)
    assert (ran.status, ran.out) == (3, "")
    assert says in ran.err
    assert "line 1" in ran.err
    assert str(path) in ran.err
    assert ran.err.count("\n") == 1
    assert "Traceback" not in ran.err


def test_unreadable_and_missing(tmp_path: Path) -> None:
    for what in (tmp_path / "none.mcpcap", tmp_path):
        ran = run("show", str(what))
        assert ran.status == 3
        assert ran.err.count("\n") == 1
    ran = run("show", "nothing-like-it", env={"MCPSNIFF_DIR": str(tmp_path)})
    assert ran.status == 3
    assert "nothing-like-it" in ran.err


def test_a_cut_capture_is_shown_with_a_finding(capture: Path) -> None:
    capture.write_bytes(capture.read_bytes()[:-10])
    ran = run("show", str(capture))
    assert ran.status == 0
    assert "MCP903" in ran.out


def test_a_session_that_still_runs(tmp_path: Path) -> None:
    """Whether it runs is known by the recorder's lock, and how long a call has been waiting by the clock."""
    began = (datetime.now(UTC) - timedelta(seconds=90)).isoformat()
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "hang"}}
    path = save(tmp_path, NAME, records(("c2s", call)), **HEADER | {"started": began})
    with path.open("rb") as recorder:
        fcntl.flock(recorder, fcntl.LOCK_EX)
        live = run("show", str(path)).out
        findings = run("show", str(path), "--format", "json").out
    dead = run("show", str(path)).out

    assert "the session is still running" in live
    assert re.search(r"still open after 1 min 3\d s", live), live
    assert "MCP410" in findings
    assert "the recording ends here without an end of the session" in dead
    assert "MCP410" not in dead


def test_viewing_runs_nothing_b151(tmp_path: Path) -> None:
    """Case B151: what a capture says about its server is shown and never done."""
    save(tmp_path, NAME, SESSION, argv=["touch", str(tmp_path / "pwned")], cwd=str(tmp_path))
    for form in ("text", "markdown", "json"):
        assert run("show", str(tmp_path / NAME), "--format", form, cwd=tmp_path).status == 0
    assert run("list", "--dir", str(tmp_path)).status == 0
    assert not (tmp_path / "pwned").exists()


@pytest.fixture
def long_capture(tmp_path: Path) -> Path:
    ping = '{"jsonrpc":"2.0","id":%d,"method":"ping"}'
    return save(tmp_path, "long.mcpcap", records(*(("c2s", ping % number) for number in range(20_000))))


@pytest.mark.parametrize("form", ["text", "json", "markdown"])
def test_a_closed_pipe_ends_quietly(long_capture: Path, form: str) -> None:
    child = subprocess.Popen(
        [*COMMAND, "show", str(long_capture), "--format", form],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdout.readline()
    child.stdout.close()
    assert child.stderr.read() == b""
    assert child.wait(60) == 0


@pytest.mark.parametrize("form", ["text", "json"])
def test_ctrl_c_ends_quietly(long_capture: Path, form: str) -> None:
    ran = interrupted("show", str(long_capture), "--format", form, after=b"ping")
    assert (ran.status, ran.err) == (130, "")


def test_hostile_text_on_a_terminal(tmp_path: Path) -> None:
    """Case B137, on a real terminal: the only escapes there are our own colours."""
    noise = b"\x1b[31mraw\x1b[0m\x1b[6n\n"
    escaped = rb'{"jsonrpc":"2.0","id":1,"result":{"t":"a\u001b]52;c;ZXZpbA==\u0007b\u001b[2J"}}' + b"\n"
    said = [*OPENS, Record(1, "chunk", 1, noise + escaped), Record(2, "chunk", 2, b"\x1b]0;t\x07\n")]
    path = save(tmp_path, NAME, said, label="l\x1b[2J", argv=["\x1b[2J"])
    shown = on_terminal("show", str(path), "--payload").out
    assert "\x1b" not in re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert "\x07" not in shown
    assert "\x1b[31mraw" not in shown
    assert "\\x1b[31mraw" in shown


def test_a_capture_without_a_header_line_break(tmp_path: Path) -> None:
    path = tmp_path / "only-head.mcpcap"
    path.write_bytes(encoded([]) or NEWER.replace(b"999", b"1"))
    assert run("show", str(path)).status == 0
