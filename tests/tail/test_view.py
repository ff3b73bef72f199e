"""What the live view shows: rows at once, the head in two parts, the foot, the labels."""

import re
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpsniff.capture.records import Record
from mcpsniff.transcript.filter import compile_filter
from mcpsniff.transcript.live.foot import Waiting, clock, foot_lines
from mcpsniff.transcript.live.gutter import Gutter, distinct
from mcpsniff.transcript.live.session import LAG_US, Facts, LiveSession
from mcpsniff.transcript.live.view import LiveJson, LiveText
from mcpsniff.transcript.payload import FOLDED
from mcpsniff.transcript.safe import cells
from mcpsniff.transcript.terminal import plain
from tests.sessions import end, records
from tests.tail.growing import parsed
from tests.transcript.golden import HEADER, SESSION
from tests.transcript.http_sessions import TROUBLE, with_other_reads
from tests.transcript.http_sessions import records as records_over_http
from tests.transcript.rendering import capture, json_bytes, text
from tests.transcript.test_laws import CHUNKS, ENDS, made

CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
CALL = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "slow"}}
ANSWER = {"jsonrpc": "2.0", "id": 7, "result": {"content": []}}


class Watching:
    """A view, and what it has printed."""

    def __init__(
        self,
        *,
        latest: int | None = None,
        gutter: bool = False,
        width: int = 100,
        only: str | None = None,
        alone: bool = False,
        label: str = "time",
        **header: object,
    ) -> None:
        self.out: list[str] = []
        source = capture([], label=label, **header)
        facts = Facts(source.header, source.path, False, [])
        self.session = LiveSession(facts, label, None if only is None else compile_filter(only, alone=alone))
        self.gutter = Gutter(plain(self.out.append), width) if gutter else None
        if self.gutter:
            self.gutter.join(label)
        self.view = LiveText(
            self.session, plain(self.out.append), lambda: width, FOLDED, latest=latest, gutter=self.gutter
        )

    def feed(self, these: Iterable[Record], *, pauses: bool = False) -> "Watching":
        for record in these:
            self.view.feed(self.session.feed(record))
            if pauses:
                self.view.rest()
        return self

    def end(self, *, lost: bool = False) -> str:
        self.view.end(self.session.finish(), lost=lost)
        return self.shown

    @property
    def shown(self) -> str:
        return "".join(self.out)


@given(st.lists(st.integers(0, 400), min_size=1, max_size=6), st.integers(20, 160), st.integers(1, 60))
@settings(max_examples=25, deadline=None)
def test_over_http_the_whole_is_what_show_shows(cuts: list[int], width: int, until: int) -> None:
    said = with_other_reads(records_over_http(TROUBLE), cuts)[:until]
    assert Watching(width=width, transport="http").feed(said).end() == text(said, width=width, transport="http")


@given(st.lists(st.integers(0, 400), min_size=1, max_size=6))
@settings(max_examples=25, deadline=None)
def test_over_http_rows_are_the_same_with_pauses(cuts: list[int]) -> None:
    said = with_other_reads(records_over_http(TROUBLE), cuts)
    live = Watching(width=140, transport="http").feed(said, pauses=True).end()
    saved = text(said, width=140, transport="http")
    rows = re.compile(r"^ *[\d.]+ +#\d+ .*$", re.MULTILINE)
    assert rows.findall(live) == rows.findall(saved)


def test_the_whole_is_what_show_shows() -> None:
    watching = Watching(**HEADER).feed(SESSION)
    assert watching.end() == text(SESSION, **HEADER)


@given(CHUNKS, ENDS, st.integers(20, 120))
@settings(max_examples=40)
def test_the_whole_of_anything_is_what_show_shows(chunks: list, ends: list, width: int) -> None:
    said = made(chunks, ends)
    assert Watching(width=width).feed(said).end() == text(said, width=width)


def test_a_row_is_there_as_soon_as_its_message_is_with_its_findings() -> None:
    said = [*records(("c2s", CALL), ("s2c", "ready"), ("s2c", ANSWER))]
    watching = Watching().feed(said[:4])
    assert "tools/call slow" not in watching.shown, "the opening may tell more for the head"
    watching.view.rest()
    assert "tools/call slow" in watching.shown
    before = len(watching.out)
    watching.feed(said[4:5])
    watching.view.rest()
    after = "".join(watching.out[before:])
    assert after.index("not JSON") < after.index("error MCP101")
    watching.feed(said[5:])
    assert "answered #" in watching.shown


def test_pieces_of_one_message_wait_for_their_judgement_only_while_they_come() -> None:
    said = records(("s2c", b"{\n"), ("s2c", b'"jsonrpc": "2.0"\n'), ("s2c", b"}\n"))
    watching = Watching().feed(said[:4])
    watching.view.rest()
    assert "not JSON" in watching.shown
    assert "MCP" not in watching.shown
    watching.feed(said[4:])
    watching.view.rest()
    assert watching.shown.count("← not JSON") == 3
    assert watching.shown.count("strings as \\n") == 1, "judged once, as one message in three pieces"


def test_the_head_comes_first_and_the_rest_of_it_when_the_opening_is_over() -> None:
    watching = Watching(**HEADER).feed(SESSION[:4], pauses=True)
    assert "command       python server.py" in watching.shown
    assert "client        c" not in watching.shown, "nobody knows yet"
    watching.feed(SESSION[4:5])
    shown = watching.shown
    assert shown.index("initialize") < shown.index("client        c 1") < shown.index("revision      2025-11-25")
    assert watching.end().count("client        c 1") == 1


@pytest.mark.parametrize("until", [4, 8, 12, 1000])
def test_one_empty_line_parts_what_is_told_late_from_what_follows(until: int) -> None:
    said = records_over_http(TROUBLE)[:until]
    shown = Watching(transport="http").feed(said, pauses=True).end()
    head, _, rest = shown.partition("→ client to server")
    assert "server can" not in head
    assert re.search(r"\n\n( +\S.*\n)+  client can .*\n", rest)
    assert "\n\n\n" not in shown


def test_only_the_latest_rows_of_what_was_there_and_how_many_were_not() -> None:
    said = records(*(("c2s", {"jsonrpc": "2.0", "method": f"x/{n}"}) for n in range(60)))
    watching = Watching(latest=50).feed(said)
    assert watching.shown == "", "until the first pause nobody knows which rows are the latest"
    watching.view.rest()
    assert "… 10 earlier rows not shown (--from start shows all)" in watching.shown
    assert "x/9 " not in watching.shown
    assert "x/10 " in watching.shown
    watching.feed([Record(99_000, "chunk", 0, b'{"jsonrpc":"2.0","method":"x/new"}\n')])
    assert "x/new" in watching.shown


def test_from_now_on() -> None:
    watching = Watching(latest=0).feed(SESSION[:4])
    watching.view.rest()
    assert "… 1 earlier row not shown" in watching.shown
    assert "initialize" not in watching.shown
    assert "answered #2" in watching.feed(SESSION[4:5]).shown


def test_a_deadline_passes_while_nothing_comes() -> None:
    watching = Watching().feed(records(("c2s", CALL)), pauses=True)
    watching.view.feed(watching.session.advance(60_000_000 + LAG_US))
    assert "MCP410" not in watching.shown
    watching.view.feed(watching.session.advance(61_000_000 + LAG_US))
    watching.view.rest()
    assert "MCP410" in watching.shown


@pytest.mark.parametrize("gutter", [False, True])
def test_the_end_is_said_though_the_filter_hides_it(gutter: bool) -> None:
    said = [*records(("c2s", CALL), ("s2c", ANSWER)), *end(9000, status=3)]
    watching = Watching(only="tool:slow", gutter=gutter).feed(said)
    shown = watching.end()
    assert shown.count("the server exited with status 3") == 1
    assert "2 of 2 messages" in shown
    assert "filter" in shown
    assert "mcpsniff or the machine was stopped" not in shown


def test_a_recording_that_was_cut_off_and_one_that_was_lost() -> None:
    said = records(("c2s", CALL))
    assert "mcpsniff or the machine was stopped" in Watching().feed(said).end()
    assert "mcpsniff or the machine was stopped" not in Watching().feed(said).end(lost=True)


def test_several_sessions_are_told_apart_line_by_line() -> None:
    watching = Watching(gutter=True).feed(SESSION)
    shown = watching.end()
    assert all(line.startswith("time│ ") for line in shown.splitlines())
    assert "time│    20." not in shown
    assert "the server exited with status 0" in shown
    assert shown.splitlines()[-1].startswith("time│ end of this session: 7 messages in ")


def test_where_labels_have_no_room_they_stand_above() -> None:
    lines = Watching(gutter=True, width=40).feed(SESSION).end().splitlines()
    assert lines[0] == "time"
    assert lines.count("time") == 1 + (lines[1].startswith("time") and lines[1] == "time")
    assert max(cells(line) for line in lines if "mcpcap" not in line) <= 40


@given(st.lists(st.text(max_size=30), min_size=1, max_size=6), st.integers(1, 200), st.text(max_size=50))
def test_the_gutter_keeps_to_its_width(labels: list[str], width: int, said: str) -> None:
    out: list[str] = []
    gutter = Gutter(plain(out.append), width)
    given_labels = [gutter.join(label) for label in labels]
    assert len(set(given_labels)) == len(labels)
    for label in given_labels:
        gutter.print(label, [("plain", "x" * gutter.room)])
    assert all(cells(line.rstrip("\n")) <= width for line in out)
    assert not any(CONTROL.search(line.removesuffix("\n")) for line in out)


def test_labels_are_as_short_as_they_can_be() -> None:
    assert [distinct("a", []), distinct("a", ["a"]), distinct("a", ["a", "a-2"])] == ["a", "a-2", "a-3"]
    assert distinct("b", ["a"]) == "b"
    assert distinct("a", ["a-2", "a"]) == "a-3"


# -- the foot ----------------------------------------------------------------------------------------------------------


def foot(watching: Watching, now_us: int, width: int = 60, height: int = 8) -> list[str]:
    watching.view.rest()
    waiting: list[Waiting] = list(watching.view.waiting(now_us))
    return ["".join(text for _, text in line) for line in foot_lines(waiting, width, height)]


def test_an_open_request_has_a_clock_until_it_is_answered() -> None:
    said = records(("c2s", CALL), ("s2c", ANSWER))
    watching = Watching().feed(said[:4])
    (line,) = foot(watching, 2_345_000)
    assert line == "→ tools/call slow  #2 · id 7" + " " * 27 + "2.3 s"[-5:]
    assert foot(watching, 62_001_000)[0].endswith(" 1:02")
    watching.feed(said[4:])
    assert foot(watching, 3_000_000) == []


def test_nothing_waits_before_its_row_is_shown() -> None:
    assert list(Watching().feed(records(("c2s", CALL))).view.waiting(9_000)) == []


def test_what_the_server_asks_waits_too_and_the_oldest_come_first() -> None:
    ask = {"jsonrpc": "2.0", "id": "s", "method": "sampling/createMessage"}
    many = [("c2s", CALL | {"id": n}) for n in range(20)]
    watching = Watching().feed(records(("s2c", ask), *many))
    lines = foot(watching, 5_000_000, height=4)
    assert len(lines) == 4
    assert lines[0].startswith('← sampling/createMessage  #2 · id "s"')
    assert lines[3] == "… and 18 more open requests"
    assert foot(watching, 5_000_000, height=1) == ["21 open requests"]
    assert foot(watching, 5_000_000, height=0) == []


def test_a_cancelled_or_abandoned_request_waits_no_more() -> None:
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
    assert foot(Watching().feed(records(("c2s", CALL), ("c2s", cancel))), 1_000_000) == []
    assert foot(Watching().feed([*records(("c2s", CALL)), *end(9000)]), 1_000_000) == []


def test_of_a_filtered_session_only_what_it_shows_waits() -> None:
    other = CALL | {"id": 8, "params": {"name": "other"}}
    watching = Watching(only="tool:slow").feed(records(("c2s", CALL), ("c2s", other)))
    (line,) = foot(watching, 1_000_000)
    assert "tools/call slow" in line


def test_an_end_that_the_filter_hides_ends_the_waiting_too() -> None:
    said = records(("c2s", CALL), ("s2c", ANSWER))
    watching = Watching(only="kind:request", alone=True).feed(said[:4])
    assert len(foot(watching, 9000)) == 1
    assert foot(watching.feed(said[4:]), 9000) == []
    assert "answered" not in watching.shown


@given(st.text(max_size=60), st.text(max_size=60), st.integers(1, 120), st.integers(0, 10**12), st.booleans())
def test_the_foot_keeps_to_its_width_whatever_is_called(
    method: str, target: str, width: int, waited: int, gutter: bool
) -> None:
    call = {"jsonrpc": "2.0", "id": target, "method": "tools/call", "params": {"name": target}}
    watching = Watching(gutter=gutter, label=method or "x").feed(
        records(("c2s", call), ("c2s", call | {"method": method}))
    )
    lines = foot(watching, waited, width)
    assert len(lines) == 2
    assert all(cells(line) <= width and not CONTROL.search(line) for line in lines)


@pytest.mark.parametrize(
    ("us", "said"),
    [(0, "0.0 s"), (999_999, "0.9 s"), (59_999_999, "59.9 s"), (60_000_000, "1:00"), (3_723_000_000, "1:02:03")],
)
def test_the_clock(us: int, said: str) -> None:
    assert clock(us) == said


# -- JSON --------------------------------------------------------------------------------------------------------------


def lines_of(these: Iterable[Record], **options: object) -> bytes:
    source = capture([])
    session = LiveSession(Facts(source.header, source.path, False, []), "")
    out: list[bytes] = []
    view = LiveJson(out.append, payload=True, **options)  # type: ignore[arg-type]
    for record in these:
        view.feed(session.feed(record))
    view.rest()
    view.end(session.finish(), lost=False)
    return b"".join(out)


def test_json_is_that_of_show_and_each_line_has_its_label_where_there_are_several() -> None:
    assert lines_of(SESSION) == json_bytes(SESSION, payload=True)
    labelled = parsed(lines_of(SESSION, label='a "b" \x1b'))
    assert {line.pop("label") for line in labelled} == {'a "b" \x1b'}
    assert labelled == parsed(lines_of(SESSION))


def test_json_from_now_on() -> None:
    source = capture([])
    session = LiveSession(Facts(source.header, source.path, False, []), "")
    out: list[bytes] = []
    view = LiveJson(out.append, payload=False, from_now=True)
    for record in SESSION[:-2]:
        view.feed(session.feed(record))
    view.rest()
    assert out == []
    view.feed(session.feed(SESSION[-1]))
    assert [line["type"] for line in parsed(b"".join(out))] == ["close"]


def test_open_streams_are_below_the_open_requests() -> None:
    said = records_over_http(
        "C> GET /sse?key=x\nS> 200 STREAM\nS> EVENT event=endpoint /m?s=1\n"
        'C2> POST /m?s=1 {"jsonrpc":"2.0","id":1,"method":"ping"}\nS2> 202'
    )
    watching = Watching(transport="http").feed(said)
    watching.view.rest()
    assert foot(watching, 65_002_000) == [
        "→ ping  #4 · id 1                                       1:04",
        "│ stream #1 /sse?key=x  1 event · conn 0                1:05",
    ]
    assert foot(watching, 5_000_000, height=1) == ["1 open request, 1 open stream"]
    more = records_over_http("C> EOF")
    ended = [record._replace(t=70_000_000 + record.t) for record in more if record.kind == "close"]
    assert foot(watching.feed(ended), 80_000_000) == []
