"""Playing without a clock, a terminal or a file: what is due when, and what the keys do."""

import math
from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from mcpsniff.capture.reader import Capture, open_capture, open_stream
from mcpsniff.capture.records import Record
from mcpsniff.checks import Finding
from mcpsniff.decoder import Decoder
from mcpsniff.replay.play.bounds import Bound
from mcpsniff.replay.play.clock import NO_WAITING, Timeline
from mcpsniff.replay.play.foot import foot
from mcpsniff.replay.play.going import Open
from mcpsniff.replay.play.keys import FASTER, FINDING, HELP, PAUSE, QUIT, SLOWER, STEP
from mcpsniff.replay.play.loop import STANDSTILL, SteadyClock, play
from mcpsniff.replay.play.page import PlayPage
from mcpsniff.replay.play.player import BOUND, END, STOPPED, Player
from mcpsniff.replay.play.reel import Item, Reel
from mcpsniff.replay.play.total import TAIL, Until, last_moment
from mcpsniff.transcript.closing import closing_lines
from mcpsniff.transcript.filter import FilteredSession, compile_filter
from mcpsniff.transcript.live.foot import Going, OpenRequests, Waiting
from mcpsniff.transcript.session import Session
from mcpsniff.transcript.terminal import plain
from mcpsniff.transcript.text import WIDTH
from tests.capture.capture_files import encoded, save
from tests.captures import samples
from tests.cli.running import run
from tests.sessions import OPENS, line
from tests.transcript import http_sessions
from tests.transcript.rendering import capture, text

S = 1_000_000


def said(t: float, channel: int, **message: Any) -> Record:
    return Record(int(t * S), "chunk", channel, line({"jsonrpc": "2.0", **message}))


def call(t: float, number: int, name: str = "echo") -> Record:
    return said(t, 0, id=number, method="tools/call", params={"name": name})


def answer(t: float, number: int) -> Record:
    return said(t, 1, id=number, result={"content": []})


HELLO = [
    said(
        0.0,
        0,
        id=1,
        method="initialize",
        params={"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}},
    ),
    said(
        0.5,
        1,
        id=1,
        result={
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "s", "version": "1"},
        },
    ),
    said(0.6, 0, method="notifications/initialized"),
]
CLOSE = Record(30 * S, "close", 1, {"how": "exit", "status": 0})
TALK = [
    *OPENS,
    *HELLO,
    call(10, 2),
    answer(13, 2),
    Record(14 * S, "chunk", 1, b"noise\n"),
    call(20, 3),
    answer(21, 3),
    Record(22 * S, "chunk", 1, b"more noise\n"),
    CLOSE,
]


class Shown:
    """Plays records, looking only when something is due."""

    def __init__(
        self,
        records: Sequence[Record] = TALK,
        *,
        speed: float = 1.0,
        idle_us: int | None = None,
        first: Bound | None = None,
        last: Bound | None = None,
    ) -> None:
        self.now = 1000.0
        self.reel = Reel(Session(capture(records)))
        self.reel.begin()
        timeline = Timeline(speed, idle_us, now=self.now)
        self.player = Player(self.reel.items(), timeline, first, last)
        self.rows: list[tuple[float, str]] = []

    def until(self, seconds: float) -> list[tuple[float, str]]:
        """What is shown up to so many seconds after the beginning, and when."""
        stop, before = 1000.0 + seconds, len(self.rows)
        while not self.player.over:
            item = self.player.poll(self.now)
            if item is not None:
                self.rows.append((round(self.now - 1000.0, 3), named(item)))
                continue
            if self.player.is_searching:
                continue
            wait = self.player.wait(self.now)
            if self.now + wait > stop:
                self.now = stop
                break
            self.now += wait + 1e-9
        return self.rows[before:]

    def press(self, *keys: str) -> None:
        for key in keys:
            self.player.press(key, self.now)

    def foot(self, width: int = 100, height: int = 8, total_us: int | None = 30 * S) -> list[str]:
        lines = foot(self.player, self.reel, total_us, self.now, (width, height))
        return ["".join(text for _, text in line) for line in lines]


def named(item: Item) -> str:
    row = item.row
    return f"#{row.n} {row.title}".strip() if not item.late else f"#{row.n} {item.late[0].code}"


def names(rows: Sequence[tuple[float, str]]) -> list[str]:
    return [name.partition(" ")[2] for _, name in rows]


def test_each_row_comes_when_it_came() -> None:
    shown = Shown()
    rows = shown.until(100)
    assert [t for t, _ in rows] == [0, 0.5, 0.6, 10, 13, 14, 20, 21, 22, 30]
    assert names(rows)[3:6] == ["tools/call", "tools/call", "not JSON"]
    assert shown.player.over == END


def test_twice_as_fast_with_long_pauses_cut() -> None:
    rows = Shown(speed=2.0, idle_us=2 * S).until(100)
    assert [t for t, _ in rows] == [0, 0.25, 0.3, 1.3, 2.3, 2.8, 3.8, 4.3, 4.8, 5.8]


def test_without_waiting_all_comes_at_once() -> None:
    rows = Shown(speed=NO_WAITING).until(0)
    assert len(rows) == 10


def test_a_pause_holds_it_and_a_step_shows_one_row() -> None:
    shown = Shown()
    shown.until(5)
    shown.press(PAUSE)
    assert shown.player.is_paused
    assert shown.until(50) == []
    assert shown.player.wait(shown.now) == math.inf
    shown.press(STEP)
    assert names(shown.until(50)) == ["tools/call"]
    assert shown.player.is_paused
    shown.press(STEP, STEP)
    assert len(shown.until(60)) == 2
    shown.press(PAUSE)
    assert shown.until(67)[0][0] == 66.0, "six seconds after the row that was shown latest"


def test_a_step_while_it_plays_pauses() -> None:
    shown = Shown()
    shown.until(5)
    shown.press(STEP)
    assert names(shown.until(500)) == ["tools/call"]
    assert shown.player.is_paused


def test_to_the_next_finding_and_the_one_after() -> None:
    shown = Shown()
    shown.until(1)
    shown.press(FINDING)
    rows = shown.until(1)
    assert names(rows) == ["tools/call", "tools/call", "not JSON"]
    assert shown.player.is_paused
    shown.press(FINDING)
    assert names(shown.until(1)) == ["tools/call", "tools/call", "not JSON"]
    shown.press(FINDING)
    shown.until(1)
    assert shown.player.over == END
    assert shown.player.is_seeking, "there was none"


def test_a_search_can_be_stopped() -> None:
    shown = Shown()
    shown.until(1)
    shown.press(FINDING)
    shown.player.poll(shown.now)
    shown.press(PAUSE)
    assert shown.player.is_paused
    assert shown.until(100) == []
    shown.press(PAUSE)
    assert shown.until(1000) != []


def test_keys_change_the_speed() -> None:
    shown = Shown()
    shown.until(5)
    shown.press(FASTER)
    assert shown.until(100)[0][0] == 7.5
    shown = Shown()
    shown.until(5)
    shown.press(SLOWER)
    assert shown.until(100)[0][0] == 15.0


def test_quit() -> None:
    shown = Shown()
    shown.until(5)
    shown.press(QUIT)
    assert shown.until(100) == []
    assert shown.player.over == STOPPED


@pytest.mark.parametrize(
    ("first", "last", "times", "passed_over", "over"),
    [
        (Bound(t=9 * S), None, [1, 4, 5, 11, 12, 13, 21], 3, END),
        (Bound(t=13 * S), Bound(t=21 * S), [0, 1, 7, 8], 4, BOUND),
        (Bound(n=9), None, [0, 3, 4, 10, 11, 12, 20], 3, END),
        (None, Bound(n=9), [0, 0.5, 0.6, 10], 0, BOUND),
        (Bound(t=40 * S), None, [], 10, END),
    ],
)
def test_a_part(first: Bound | None, last: Bound | None, times: list[float], passed_over: int, over: str) -> None:
    shown = Shown(first=first, last=last)
    rows = shown.until(100)
    if first == Bound(n=9) or last == Bound(n=9):
        numbers = [int(name.partition(" ")[0][1:]) for _, name in rows]
        assert all(number >= 9 for number in numbers) if first else all(number <= 9 for number in numbers)
    assert [t for t, _ in rows] == times
    assert shown.player.passed_over == passed_over
    assert shown.player.over == over


def test_a_finding_that_was_made_later_is_shown_later() -> None:
    """A request without an answer is found by a deadline, long after its row."""
    shown = Shown([*OPENS, *HELLO, call(1, 2), said(200, 0, method="notifications/cancelled", params={"requestId": 2})])
    rows = shown.until(1000)
    late = [(t, name) for t, name in rows if " MCP" in name]
    assert late, rows
    assert all(2 < t < 200 for t, _ in late)


def test_the_foot_tells_what_is_open_at_that_moment_of_the_recording() -> None:
    shown = Shown([*TALK[:-1], call(23, 4, "first"), call(24, 5, "second"), answer(26, 4), answer(27, 5), CLOSE])
    shown.until(0.2)
    assert shown.foot()[0].startswith("→ initialize  #2 · id 1"), "although the opening is decoded for the head"
    shown.until(11.5)
    waiting, status = shown.foot()
    assert waiting.startswith("→ tools/call echo")
    assert waiting.endswith("1.5 s")
    assert status.startswith("▸ playing  11.5 / 30.0  x1  #")
    assert status.endswith("? keys")
    shown.until(13.5)
    assert len(shown.foot()) == 1
    shown.until(25)
    assert [one.split()[2] for one in shown.foot()[:-1]] == ["first", "second"]
    shown.until(26.5)
    assert [one.split()[2] for one in shown.foot()[:-1]] == ["second"]
    shown.press(PAUSE)
    assert shown.foot()[-1].startswith("‖ paused  26.5 / 30.0  x1")
    assert "space goes on" in shown.foot()[-1]


def test_the_foot_shows_how_recorded_time_runs_in_a_pause_that_is_cut() -> None:
    shown = Shown(idle_us=2 * S)
    shown.until(1.6)
    (status,) = shown.foot()
    assert "5.3 / 30.0" in status
    assert "9.4 s without a row, cut short" in status


@pytest.mark.parametrize("width", [0, 1, 10, 30, 200])
@pytest.mark.parametrize("height", [0, 1, 2, 8])
def test_the_foot_fits(width: int, height: int) -> None:
    shown = Shown()
    shown.until(11)
    for keys in ((), (HELP,), (PAUSE,), (HELP, FINDING)):
        shown.press(*keys)
        lines = shown.foot(width, height)
        assert len(lines) <= height
        assert all(len(line) <= width for line in lines)


def test_the_keys_are_explained_until_they_are_hidden() -> None:
    shown = Shown()
    shown.until(11)
    shown.press(HELP)
    assert any("next finding" in line for line in shown.foot())
    assert len(shown.foot()) == 8
    shown.press(HELP)
    assert len(shown.foot()) == 2


def test_what_ended_is_forgotten() -> None:
    many: list[Record] = [*OPENS, *HELLO]
    for number in range(2000):
        many += [call(1 + number, number + 2), answer(1.5 + number, number + 2)]
    shown = Shown(many, speed=NO_WAITING)
    for _ in range(4000):
        while not (shown.player.poll(shown.now) or shown.player.over):
            pass
        shown.reel.open.clear(shown.player.latest_t)
        assert len(shown.reel.open._requests) < 200


@pytest.mark.parametrize("name", samples.NAMES)
def test_what_was_open_is_what_a_live_view_had_at_its_foot(name: str) -> None:
    """Known at the end of each moment then, and asked for now that all is decoded."""
    source = open_capture(str(samples.FOLDER / f"{name}.mcpcap"))
    decoder, live, later = Decoder(source.header), OpenRequests(), Open()
    moments: dict[int, tuple[int, set[int]]] = {}
    shown = 0
    for record in source.records():
        events = decoder.feed(record)
        live.feed(events, events)
        later.feed(events)
        shown = max([shown, *(event.n for event in events if not isinstance(event, Finding))])
        moments[record.t] = shown, {number(one) for one in live.waiting(record.t)}
    assert any(was for _, was in moments.values()) or name == "noise"
    for t, (shown, was) in moments.items():
        assert {number(one) for one in later.at(t, shown)} == was, t


def number(one: Going) -> int:
    return one.exchange.request if isinstance(one, Waiting) else one.event.n


class Stage:
    """A stage whose clock goes on only while it waits."""

    def __init__(self, pressed: Sequence[tuple[float, str]] = (), jump: tuple[float, float] = (math.inf, 0)) -> None:
        self.time = 0.0
        self.shown: list[tuple[float, str]] = []
        self._pressed = list(pressed)
        self._jump = jump
        self.waits: list[float] = []

    def now(self) -> float:
        return self.time

    def show(self, item: Item, passed_over: int) -> None:
        self.shown.append((round(self.time, 1), f"{named(item)} {passed_over or ''}".strip()))

    def draw(self, player: Player, now: float) -> None:
        assert player.timeline.position(now) >= 0

    def keys(self, seconds: float) -> list[str]:
        self.waits.append(seconds)
        self.time += seconds or 1e-4
        if self.time >= self._jump[0]:
            self.time, self._jump = self.time + self._jump[1], (math.inf, 0)
        due = [key for t, key in self._pressed if t <= self.time]
        self._pressed = [one for one in self._pressed if one[0] > self.time]
        return due


def played(stage: Stage, first: Bound | None = None, **options: Any) -> Player:
    reel = Reel(Session(capture(TALK)))
    clock = SteadyClock(stage)
    player = Player(reel.items(), Timeline(options.get("speed", 1.0), None, now=clock.now()), first)
    play(player, stage, clock)
    return player


def test_keys_are_heard_while_it_waits() -> None:
    stage = Stage([(5.0, PAUSE), (100.0, PAUSE), (107.0, QUIT)])
    assert played(stage).over == STOPPED
    assert [t for t, _ in stage.shown] == [0, 0.5, 0.6, 105.0]
    assert max(stage.waits) <= 0.1


def test_a_process_that_was_stopped_goes_on_where_it_was() -> None:
    stage = Stage(jump=(5.0, 3600.0))
    assert played(stage).over == END
    assert stage.shown[3][0] == pytest.approx(3610 - STANDSTILL, abs=0.3)


def test_the_first_row_tells_how_many_were_passed_over() -> None:
    stage = Stage()
    played(stage, Bound(n=9))
    assert stage.shown[0][1] == "#9 tools/call 3"
    assert stage.shown[1][1].endswith("tools/call")


def rendered(source: Capture, expression: str = "", width: int = WIDTH) -> str:
    out: list[str] = []
    print_line = plain(out.append)
    session = Session(source)
    if expression:
        source.keep()
        session = FilteredSession(source, compile_filter(expression, started=source.header.started))
    reel = Reel(session)
    reel.begin()
    page = PlayPage(print_line, width)
    page.head(session.label, session.head())
    latest = 0
    for item in reel.items():
        if item is not None:
            assert item.t >= latest
            latest = item.t
            page.item(item)
    if reel.ending:
        page.end(reel.ending)
    for one in closing_lines(reel.summary, width):
        print_line(one)
    return "".join(out)


def test_a_finding_whose_row_was_passed_over_names_it() -> None:
    records = [*OPENS, *HELLO, call(1, 2), said(200, 0, method="notifications/cancelled", params={"requestId": 2})]
    reel = Reel(Session(capture(records)))
    player = Player(reel.items(), Timeline(NO_WAITING, None, now=0.0), Bound(t=30 * S))
    out: list[str] = []
    page = PlayPage(plain(out.append))
    while not player.over:
        if (item := player.poll(0.0)) is not None:
            page.item(item)
            page = PlayPage(plain(out.append), 80, before=page)
    assert out[0].startswith(" 1:01.000")
    assert "about #" in out[0]
    assert "request-slow" in out[1]
    assert sum("about #" in one for one in out) == 1


@pytest.mark.parametrize("name", samples.NAMES)
def test_all_of_it_is_what_show_shows(name: str) -> None:
    path = str(samples.FOLDER / f"{name}.mcpcap")
    assert rendered(open_capture(path)) == run("show", path).out


@pytest.mark.parametrize("expression", ["method:tools/*", "severity:>=warning", "kind:stderr", "tool:none-such"])
def test_with_a_filter_too(expression: str) -> None:
    path = str(samples.FOLDER / "faults.mcpcap")
    assert rendered(open_capture(path), expression) == run("show", path, "--filter", expression).out


HTTP = {name: value for name, value in vars(http_sessions).items() if isinstance(value, str) and "C> " in value}


@pytest.mark.parametrize("dialogue", HTTP.values(), ids=[*HTTP])
def test_over_http_it_is_what_show_shows(dialogue: str) -> None:
    records = http_sessions.records(dialogue)
    source = open_stream(BytesIO(encoded(records, transport="http")), "test.mcpcap")
    assert rendered(source) == text(records, transport="http")


TIMES: list[tuple[str, Callable[[bytes], bytes], int | None]] = [
    ("whole", lambda data: data, 30_000_000),
    ("torn", lambda data: data + b'[31000000,"chunk",1,"{', 31_000_000),
    ("torn in the number", lambda data: data + b"[310", 30_000_000),
    ("the header only", lambda data: data.partition(b"\n")[0] + b"\n", None),
    ("damage at the end", lambda data: data + b"\x00\xff no record\n", 30_000_000),
    ("long", lambda data: data + b'[99,"comment",null,{"text":"' + b"x" * TAIL + b'"}]\n', None),
]


@pytest.mark.parametrize(("change", "t"), [(change, t) for _, change, t in TIMES], ids=[name for name, *_ in TIMES])
def test_the_end_is_read_from_the_end(tmp_path: Path, change: Callable[[bytes], bytes], t: int | None) -> None:
    path = save(tmp_path, "a.mcpcap", TALK)
    path.write_bytes(change(path.read_bytes()))
    assert last_moment(str(path)) == t


def test_what_is_recorded_later_is_left_out(tmp_path: Path) -> None:
    path = save(tmp_path, "a.mcpcap", TALK)
    opened = open_capture(str(path))
    assert [one.t for one in Until(opened, 13 * S).records()] == [one.t for one in TALK if one.t <= 13 * S]


def test_no_end_is_told_of_what_is_no_file(tmp_path: Path) -> None:
    assert last_moment(str(tmp_path / "none")) is None
    assert last_moment(str(tmp_path)) is None
    assert last_moment("/dev/null") is None
