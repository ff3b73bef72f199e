"""`mcpsniff tail`, as a process on pipes, beside captures that grow and sessions that run."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from mcpsniff.capture.records import Record
from tests.capture.capture_files import encoded, save
from tests.cli.running import COMMAND, environment, run
from tests.sessions import end, line, records
from tests.tail.growing import Client, Growing, Tail, methods, now_rfc3339, parsed
from tests.transcript.golden import HEADER, SESSION

NAME = "time-20261129T100000.000Z-1.mcpcap"
CALL = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "slow"}}
ANSWER = {"jsonrpc": "2.0", "id": 7, "result": {"content": []}}


def said(t: int, direction: str, message: object) -> Record:
    return Record(t, "chunk", {"c2s": 0, "s2c": 1}[direction], line(message))


@pytest.mark.parametrize("form", ["text", "json"])
def test_of_a_session_that_is_over_it_says_what_show_says_and_ends(tmp_path: Path, form: str) -> None:
    path = str(save(tmp_path, NAME, SESSION, **HEADER))
    words = (path, "--format", form, "--payload")
    tailed, shown = run("tail", *words), run("show", *words)
    assert (tailed.status, tailed.err) == (0, "")
    assert tailed.out == shown.out
    assert "\x1b" not in tailed.out


def test_a_label_means_its_newest_capture_and_says_so(tmp_path: Path) -> None:
    save(tmp_path, NAME, SESSION)
    ran = run("tail", "time", "--dir", str(tmp_path))
    assert ran.status == 0
    assert ran.err == f"mcpsniff: following {tmp_path / NAME}, the only one called time\n"


def test_messages_are_shown_while_the_session_goes_on(tmp_path: Path) -> None:
    path = tmp_path / NAME
    with Growing(path, label="time") as capture, Tail(str(path)) as tail:
        capture.begin(said(1000, "c2s", CALL))
        tail.until(b"tools/call slow")
        capture.append(said(5000, "s2c", ANSWER))
        tail.until(b"answered #2")
        capture.append(Record(6000, "chunk", 1, b"noise\n"))
        shown = tail.until(b"MCP101").decode()
        assert shown.index("not JSON") < shown.index("MCP101")
        capture.append(*end(9000))
        assert tail.end() == 0
        assert b"the server exited with status 0" in tail.out
        assert (tail.err, b"\x1b" in tail.out) == (b"", False)


def test_a_first_line_that_is_not_written_yet_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / NAME
    with Growing(path) as capture, Tail(str(path)) as tail:
        tail.during(0.5)
        assert tail.process.poll() is None
        capture.begin(said(1000, "c2s", CALL))
        tail.until(b"tools/call slow")


def test_a_recorder_that_was_killed_ends_the_session(tmp_path: Path) -> None:
    path = tmp_path / NAME
    with Growing(path) as capture, Tail(str(path)) as tail:
        capture.begin(said(1000, "c2s", CALL))
        tail.until(b"tools/call slow")
        capture.write(b'[2000,"chunk",1,"torn')
        capture.close()
        assert tail.end() == 0
        assert b"the recording ends here without an end of the session" in tail.out
    shown = run("show", str(path)).out
    assert tail.out.decode().partition("Summary")[2] == shown.partition("Summary")[2]
    assert "torn last line" in shown


def test_killed_restarted_and_late_tails_give_what_show_gives(tmp_path: Path) -> None:
    path = tmp_path / NAME
    with Growing(path, label="time") as capture:
        capture.begin(said(1000, "c2s", CALL))
        words = (str(path), "--format", "json", "--payload")
        with Tail(*words) as whole, Tail(*words) as killed:
            killed.until(b'"method":"tools/call"')
            killed.process.send_signal(signal.SIGKILL)
            assert killed.process.wait() == -signal.SIGKILL
            capture.append(said(5000, "s2c", ANSWER), Record(6000, "chunk", 1, b"noise\n{\n"))
            with Tail(*words) as again:
                again.until(b'"type":"exchange"')
                capture.append(said(7000, "c2s", CALL | {"id": 8}), *end(9000))
                assert (whole.end(), again.end()) == (0, 0)
    late = run("tail", *words)
    shown = run("show", *words).out
    assert whole.out.decode() == again.out.decode() == late.out == shown
    assert shown.startswith(killed.out.decode())


def test_the_parts_of_a_capture_are_one(tmp_path: Path) -> None:
    path = tmp_path / NAME
    with Growing(path, run="01J0000000000000000000TEST") as first, Tail(str(path), "--format", "json") as tail:
        first.begin(said(1000, "c2s", CALL))
        tail.until(b'"method":"tools/call"')
        second = path.with_suffix("").with_name(f"{path.stem}.0002.mcpcap")
        channels = {"0": {"kind": "stdin", "dir": "c2s"}, "1": {"kind": "stdout", "dir": "s2c"}}
        with Growing(second) as next_one:
            first.close()
            tail.during(0.7)
            assert tail.process.poll() is None, "the recorder holds the next part"
            next_one.write(encoded([said(5000, "s2c", ANSWER), *end(9000)], part=2, channels=channels))
            assert tail.end() == 0
    assert [line["state"] for line in parsed(tail.out) if line["type"] == "exchange"] == ["answered"]


# -- all sessions ------------------------------------------------------------------------------------------------------


def test_sessions_join_as_they_begin_each_line_with_its_label(tmp_path: Path) -> None:
    with Tail("--dir", str(tmp_path / "later")) as tail:
        tail.until(b"waiting for a session in", where="err")
        tail.until(b"`mcpsniff stdio -- COMMAND`, `mcpsniff http URL`, `mcpsniff run -- CLIENT` or", where="err")
        with Client(tmp_path / "later", "time") as one, Client(tmp_path / "later", "git") as two:
            one.hello()
            two.hello()
            tail.until(b"time", where="out")
            one.ask(id=2, method="tools/call", params={"name": "first"})
            two.ask(id=2, method="tools/call", params={"name": "second"})
            tail.until(b"tools/call first")
            tail.until(b"tools/call second")
            assert one.end() == 0
            tail.until(b"end of this session")
            assert tail.interrupt() == 0
            two.ask(id=3, method="ping")
            assert two.process.poll() is None, "who watches does no harm"
        rows = tail.out.decode().splitlines()
    assert [row.startswith("time│") for row in rows if "tools/call first" in row] == [True, True]
    assert [row.startswith("git │") for row in rows if "tools/call second" in row] == [True, True]
    assert sum("the server exited with status 0" in row for row in rows) == 1
    assert next(row for row in rows if "exited" in row).startswith("time")
    assert b"Traceback" not in tail.err


def test_two_sessions_of_one_label_are_told_apart_in_json(tmp_path: Path) -> None:
    with Growing(tmp_path / "a.mcpcap", label="time") as one, Growing(tmp_path / "b.mcpcap", label="time") as two:
        one.begin(said(1000, "c2s", CALL))
        two.begin(said(1000, "c2s", CALL))
        with Tail("--dir", str(tmp_path), "--format", "json") as tail:
            tail.until(b'"label":"time-2"')
            tail.until(b'"label":"time"')
            one.append(*end(9000))
            tail.until(b'"how":"exit"')
            assert tail.interrupt() == 0
        labelled = parsed(tail.out)
    alone = [
        {**line, "label": "time"}
        for line in parsed(run("show", str(tmp_path / "a.mcpcap"), "--format", "json").out.encode())
    ]
    assert [line for line in labelled if line["label"] == "time"] == alone


def test_what_was_there_is_shown_from_its_latest_rows_on(tmp_path: Path) -> None:
    many = [said(n, "c2s", {"jsonrpc": "2.0", "method": f"x/{n}"}) for n in range(100)]
    with Growing(tmp_path / NAME, label="time") as capture:
        capture.begin(*many)
        with Tail("--dir", str(tmp_path)) as tail, Tail("--dir", str(tmp_path), "--from", "start") as whole:
            tail.until(b"x/99 ")
            whole.until(b"x/99 ")
            assert b"50 earlier rows not shown (--from start shows all)" in tail.out
            assert b"x/49 " not in tail.out
            assert b"x/50 " in tail.out
            assert b"x/0 " in whole.out
        with Tail("--dir", str(tmp_path), "--from", "now", "--format", "json") as now:
            for t in range(5000, 5300):  # nothing tells when it has begun to look
                capture.append(said(t, "c2s", {"jsonrpc": "2.0", "method": "x/new"}))
                now.during(0.2)
                if b"x/new" in now.out:
                    break
            now.settle()
        assert {*methods(parsed(now.out))} == {"x/new"}


def test_a_finished_capture_is_none_of_those_that_are_written(tmp_path: Path) -> None:
    save(tmp_path, NAME, SESSION)
    with Tail("--dir", str(tmp_path)) as tail:
        tail.until(b"waiting for a session", where="err")
        tail.during(0.5)
        assert tail.interrupt() == 0
        assert tail.out == b""


def test_a_foreign_file_that_is_being_written_is_said_and_passed_over(tmp_path: Path) -> None:
    with Growing(tmp_path / "x.mcpcap") as foreign, Growing(tmp_path / NAME) as capture:
        foreign.write(b"hello\n")
        with Tail("--dir", str(tmp_path)) as tail:
            tail.until(b"passed over: ", where="err")
            capture.begin(said(1000, "c2s", CALL))
            tail.until(b"tools/call slow")
            assert tail.interrupt() == 0
        assert tail.err.count(b"passed over") == 1


# -- what goes wrong ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        (["nowhere.mcpcap"], 3, "no capture in"),
        (["./nowhere.mcpcap"], 3, "no such capture: ./nowhere.mcpcap"),
        (["foreign.mcpcap"], 3, "foreign.mcpcap, line 1: not a capture, it looks like some other text"),
        (["empty.mcpcap"], 3, "empty.mcpcap, line 1: empty capture, nothing was recorded"),
        (["newer.mcpcap"], 3, "newer.mcpcap, line 1: "),
        (["folder"], 3, "no capture in"),
        (["./folder"], 3, "cannot follow ./folder: "),
        (["--alone"], 2, "--alone says how --filter is meant, and needs it"),
        (["--filter", "tol:x"], 2, "there is no field tol"),
        (["--format", "html"], 2, "'html' is not one of"),
    ],
)
def test_what_cannot_be_followed_is_said(tmp_path: Path, words: list[str], status: int, sentence: str) -> None:
    (tmp_path / "foreign.mcpcap").write_bytes(b"hello\nyou\n")
    (tmp_path / "empty.mcpcap").touch()
    (tmp_path / "newer.mcpcap").write_bytes(b'{"mcpcap":99,"run":"x","part":1,"started":"2026-11-29T10:00:00Z"}\n')
    (tmp_path / "folder").mkdir()
    ran = run("tail", *words, cwd=tmp_path)
    assert (ran.status, ran.out) == (status, "")
    assert sentence in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize("how", ["replaced", "cut", "vanished"])
def test_a_capture_that_is_lost_is_said_and_what_comes_in_its_place_is_followed(tmp_path: Path, how: str) -> None:
    path = tmp_path / NAME
    new = [*records(("c2s", CALL | {"params": {"name": "new"}})), *end(9000)]
    with Growing(path) as capture, Tail(str(path)) as tail:
        capture.begin(said(1000, "c2s", CALL))
        tail.until(b"tools/call slow")
        if how == "replaced":
            os.replace(save(tmp_path, "other", new), path)
        elif how == "cut":
            capture.cut(0)
            tail.until(b"was cut to 0 bytes while it was followed; following what is there now", where="err")
            capture.write(encoded(new))
        else:
            path.unlink()
            tail.until(b"vanished while it was followed; waiting for it to come back", where="err")
            assert tail.process.poll() is None
            save(tmp_path, NAME, new)
        assert tail.end() == 0
        assert b"tools/call new" in tail.out
        assert (how if how != "cut" else "was cut").encode() in tail.err
        assert b"was stopped" not in tail.out


def test_of_all_sessions_a_lost_one_costs_only_itself(tmp_path: Path) -> None:
    with Growing(tmp_path / "a.mcpcap", label="a") as one, Growing(tmp_path / "b.mcpcap", label="b") as two:
        one.begin(said(1000, "c2s", CALL))
        two.begin(said(1000, "c2s", CALL))
        with Tail("--dir", str(tmp_path)) as tail:
            tail.until("\na│     0.001".encode())
            tail.until("\nb│     0.001".encode())
            (tmp_path / "a.mcpcap").unlink()
            tail.until(b"a.mcpcap vanished while it was followed", where="err")
            two.append(said(5000, "s2c", ANSWER))
            tail.until(b"answered #2")
            with Growing(tmp_path / "a.mcpcap", label="a") as again:
                again.begin(said(1000, "c2s", CALL))
                tail.until("\na-2│     0.001".encode())
            assert tail.interrupt() == 0


def test_a_closed_pipe_ends_it_quietly_also_when_nothing_happens(tmp_path: Path) -> None:
    with Growing(tmp_path / NAME) as capture:
        capture.begin(said(1000, "c2s", CALL))
        child = subprocess.Popen(
            [*COMMAND, "tail", str(tmp_path / NAME)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
        )
        assert child.stdout
        assert child.stderr
        assert child.stdout.readline()
        child.stdout.close()
        assert child.wait(60) == 0
        assert child.stderr.read() == b""
        child.stderr.close()


@pytest.mark.parametrize("words", [[], [NAME]])
def test_ctrl_c_ends_it_quietly(tmp_path: Path, words: list[str]) -> None:
    with Growing(tmp_path / NAME) as capture:
        capture.begin(said(1000, "c2s", CALL))
        with Tail(*words, "--dir", str(tmp_path), cwd=tmp_path) as tail:
            tail.until(b"tools/call slow")
            assert tail.interrupt() == 0
            assert tail.err == b""


def test_a_filter_chooses_and_the_end_is_said_anyway(tmp_path: Path) -> None:
    other = CALL | {"id": 8, "params": {"name": "other"}}
    with Growing(tmp_path / NAME) as capture, Tail(str(tmp_path / NAME), "--filter", "tool:slow") as tail:
        capture.begin(said(1000, "c2s", other), said(2000, "c2s", CALL))
        tail.until(b"tools/call slow")
        capture.append(said(5000, "s2c", ANSWER), *end(9000))
        assert tail.end() == 0
    shown = tail.out.decode()
    assert "tools/call other" not in shown.replace("filter", "")
    assert "answered #4" in shown
    assert "the filter shows 2 of 3 messages" in shown
    assert "the server exited with status 0" in shown


def test_a_deadline_passes_while_nothing_is_said(tmp_path: Path) -> None:
    with Growing(tmp_path / NAME, started=now_rfc3339(ago=57.0)) as capture:
        capture.begin(said(1000, "c2s", CALL))
        with Tail(str(tmp_path / NAME), "--format", "json") as tail:
            tail.until(b'"method":"tools/call"')
            assert b"MCP410" not in tail.out
            tail.until(b"MCP410")
        assert json.loads(tail.out.splitlines()[-1])["at"] == 2
