"""`mcpsniff tail` on a terminal: the foot, resizing, hostile text, what is left behind."""

import re
from pathlib import Path

import pytest

from mcpsniff.capture.records import Record
from mcpsniff.transcript.safe import cells
from tests.sessions import end, line
from tests.tail.emulator import Terminal
from tests.tail.growing import Client, Growing, Tail

NAME = "time-20261129T100000.000Z-1.mcpcap"
CLOCK = rb"[ m][0-9]+\.[0-9] s(\x1b\[0m)?(\x1b\[[0-9]*A)?\r"
HOSTILE = "slow\x1b[2J\x1b]0;owned\x07\u202e\r\n\x9b31m"


def call(number: int, name: str) -> Record:
    params = {"name": name, "arguments": {"a": name}}
    return Record(
        number * 1000, "chunk", 0, line({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
    )


def answer(number: int) -> Record:
    return Record(number * 1000 + 50_000, "chunk", 1, line({"jsonrpc": "2.0", "id": number, "result": {"content": []}}))


def seen(tail: Tail, columns: int) -> Terminal:
    tail.settle()
    return Terminal(columns).feed(tail.out.decode().replace("\r\n", "\n\r"))


def clocks(terminal: Terminal) -> list[str]:
    return [one for one in terminal.lines if re.search(r"^[→←] .*#\d+ · id .* \d+\.\d s$", one)]


def test_an_open_request_is_at_the_foot_until_it_is_answered(tmp_path: Path) -> None:
    with Client(tmp_path, "time") as client, Tail("--dir", str(tmp_path), columns=100) as tail:
        client.hello()
        client.say(id=2, method="tools/call", params={"name": "slow", "once": str(tmp_path / "gate")})
        tail.until(CLOCK, match=True)
        (foot,) = clocks(seen(tail, 100))
        assert foot.startswith("→ time tools/call slow  #")
        tail.until(rb"[ m][1-9][0-9]*\.[0-9] s", match=True)
        assert len(clocks(seen(tail, 100))) == 1, "the clock runs in its place"
        (tmp_path / "gate").touch()
        client.hear()
        tail.until(b"answered #9")
        tail.during(0.3)
        assert clocks(seen(tail, 100)) == []
        assert client.end() == 0
        tail.until(b"end of this session")
        assert tail.interrupt() == 0
        left = seen(tail, 100)
        assert "tools/call slow" in left.shown
        assert left.column == 0


def test_ctrl_c_leaves_no_foot(tmp_path: Path) -> None:
    with Growing(tmp_path / NAME) as capture, Tail(str(tmp_path / NAME), columns=80) as tail:
        capture.begin(call(1, "slow"), call(2, "slower"), call(3, "slowest"))
        tail.until(CLOCK, match=True)
        assert len(clocks(seen(tail, 80))) == 3
        assert tail.interrupt() == 0
        left = seen(tail, 80)
        assert clocks(left) == []
        assert left.shown.count("→ tools/call") == 3


def test_a_new_width_lays_the_foot_anew(tmp_path: Path) -> None:
    with Growing(tmp_path / NAME) as capture, Tail(str(tmp_path / NAME), columns=100) as tail:
        capture.begin(call(1, "slow"))
        tail.until(CLOCK, match=True)
        (before,) = clocks(seen(tail, 100))
        assert len(before) == 99
        tail.resize(40)
        tail.during(0.5)
        (after,) = clocks(seen(tail, 100))
        assert len(after) == 39
        capture.append(answer(1), *end(90_000))
        assert tail.end() == 0
        assert clocks(seen(tail, 100)) == []
        rows = seen(tail, 100).shown.partition("answered #2")[2].splitlines()[1:]
        assert max(map(cells, rows)) <= 40


@pytest.mark.parametrize("columns", [20, 30, 80])
@pytest.mark.parametrize("together", [False, True])
def test_hostile_text_stays_text_in_lines_and_foot_at_any_width(tmp_path: Path, columns: int, together: bool) -> None:
    words = ["--dir", str(tmp_path)] if together else [str(tmp_path / NAME)]
    with Growing(tmp_path / NAME, label=HOSTILE) as capture, Tail(*words, columns=columns) as tail:
        tail.during(0.5)
        capture.begin(call(1, HOSTILE))
        tail.until(CLOCK, match=True)
        capture.append(answer(1), Record(60_000, "chunk", 2, HOSTILE.encode() + b"\n"), *end(90_000))
        tail.until(b"end of this" if together else b"Summary")
        assert not together or tail.interrupt() == 0
        shown = seen(tail, columns)  # the emulator refuses what it does not know
    assert "\\x1b[2J" in shown.shown.replace("\n", "")
    assert "Traceback" not in shown.shown
    assert all(cells(one) <= columns for one in shown.lines)


def test_many_open_requests_leave_room_for_the_rows(tmp_path: Path) -> None:
    with Growing(tmp_path / NAME) as capture, Tail(str(tmp_path / NAME), columns=100) as tail:
        tail.resize(100, lines=10)
        capture.begin(*(call(number, f"tool-{number}") for number in range(1, 30)))
        tail.until(b"more open requests")
        tail.during(0.3)
        terminal = seen(tail, 100)
        assert terminal.lines[-1] == "… and 22 more open requests"
        assert len(clocks(terminal)) == 7


def test_json_on_a_terminal_has_no_foot(tmp_path: Path) -> None:
    with Growing(tmp_path / NAME) as capture, Tail(str(tmp_path / NAME), "--format", "json", columns=500) as tail:
        capture.begin(call(1, "slow"))
        tail.until(b"tools/call")
        tail.during(0.4)
        assert b"\x1b" not in tail.out


def test_what_is_lost_is_said_above_the_foot(tmp_path: Path) -> None:
    with Growing(tmp_path / "a.mcpcap", label="a") as one, Growing(tmp_path / "b.mcpcap", label="b") as two:
        one.begin(call(1, "first"))
        two.begin(call(1, "second"))
        with Tail("--dir", str(tmp_path), columns=90) as tail:
            tail.until(CLOCK, match=True)
            (tmp_path / "a.mcpcap").unlink()
            tail.until(b"vanished")
            tail.during(0.4)
            terminal = seen(tail, 90)
            assert "".join(terminal.lines).count("a.mcpcap vanished while it was followed") == 1
            (foot,) = clocks(terminal)
            assert "b tools/call second" in foot
            assert terminal.lines[-1] == foot
