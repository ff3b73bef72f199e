"""`mcpsniff show A B`: several captures on one time line; and `show -`, from standard input."""

import fcntl
import json
import re
from pathlib import Path
from typing import Any

import pytest

from mcpsniff.capture.records import Record
from tests.capture.capture_files import encoded, save
from tests.captures.samples import FOLDER, NAMES
from tests.cli.running import on_terminal, run
from tests.sessions import OPENS, end, records

PING = '{"jsonrpc":"2.0","id":%d,"method":"ping"}'
PONG = '{"jsonrpc":"2.0","id":%d,"result":{}}'


def session(*times: int) -> list[Record]:
    """A ping at each of the times (ms), answered 10 ms later."""
    made = list(OPENS)
    for number, t in enumerate(times):
        made.append(Record(t * 1000, "chunk", 0, (PING % number).encode() + b"\n"))
        made.append(Record((t + 10) * 1000, "chunk", 1, (PONG % number).encode() + b"\n"))
    return [*made, *end((times[-1] + 20) * 1000)]


@pytest.fixture
def pair(tmp_path: Path) -> tuple[str, str]:
    """``late`` began 1.5 s after ``early``; each pings every two seconds."""
    late = save(tmp_path, "late.mcpcap", session(0, 2000), label="late", started="2026-11-29T10:00:01.500000Z")
    early = save(tmp_path, "early.mcpcap", session(0, 2000), label="early", started="2026-11-29T10:00:00.000000Z")
    return str(late), str(early)


def rows(text: str) -> list[tuple[str, str, str]]:
    """Label, time and number of each row of the text form."""
    return re.findall(r"^(\S+) *│ +([\d.:]+) +#(\d+) ", text, re.MULTILINE)


def test_rows_stand_by_wall_clock_with_their_labels(pair: tuple[str, str]) -> None:
    ran = run("show", *pair)
    assert (ran.status, ran.err) == (0, "")
    found = rows(ran.out)
    assert [(label, time) for label, time, _ in found] == [
        ("early", "0.000"), ("early", "0.010"), ("late", "1.500"), ("late", "1.510"), ("early", "2.000"),
        ("early", "2.010"), ("early", "2.020"), ("early", "2.021"), ("late", "3.500"), ("late", "3.510"),
        ("late", "3.520"), ("late", "3.521"),
    ]  # fmt: skip
    alone = re.findall(r"^ +[\d.:]+ +#(\d+) ", run("show", pair[0]).out, re.MULTILINE)
    assert [number for label, _, number in found if label == "late"] == alone, "numbers are those of each capture"
    assert ran.out.count("10.0 ms") == ran.out.count("answered #") + 3 * 2, "a latency is that of its own session"
    heads = ran.out.split(" │ ")[0]
    assert heads.index("2026-11-29 10:00:01.500") < heads.index("2026-11-29 10:00:00.000")
    assert ran.out.count("Summary") == 2


def test_json_has_label_and_time_line(pair: tuple[str, str]) -> None:
    lines = [json.loads(line) for line in run("show", *pair, "--format", "json", "--payload").out.splitlines()]
    times = [line["timeline_us"] for line in lines]
    assert times == sorted(times)
    for path, label, offset in ((pair[0], "late", 1_500_000), (pair[1], "early", 0)):
        mine = [line for line in lines if line["label"] == label]
        assert [line["timeline_us"] - line["t_us"] for line in mine] == [offset] * len(mine)
        bare = [{k: v for k, v in line.items() if k not in ("label", "timeline_us")} for line in mine]
        alone = run("show", path, "--format", "json", "--payload").out.splitlines()
        assert bare == [json.loads(line) for line in alone]


def test_markdown_numbers_by_letter(pair: tuple[str, str]) -> None:
    page = run("show", *pair, "--format", "markdown").out
    assert page.startswith("# 2 MCP sessions on one time line\n\n## a: `late`\n")
    assert "\n## b: `early`\n" in page
    assert re.search(r'<a id="an2" href="#an2">a#2</a> · `late` · 1\.500 · client → server', page)
    assert re.search(r"`early` · 0\.010 · .* · answered \[b#2\]\(#bn2\)", page)
    ids = re.findall(r'id="(\w+)"', page)
    assert len(ids) == len(set(ids)) == 12
    assert set(re.findall(r"\]\(#(\w+)\)", page)) <= set(ids)
    times = [float(time) for time in re.findall(r"</a> · `\w+` · ([\d.]+) ·", page)]
    assert times == sorted(times)
    assert "## Findings in a" in page
    assert "## Summary of b" in page


def test_all_samples_together() -> None:
    paths = [str(FOLDER / f"{name}.mcpcap") for name in NAMES]
    for form in ("text", "markdown", "json"):
        ran = run("show", *paths, "--format", form)
        assert (ran.status, ran.err) == (0, "")
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", ran.out), form
    shown = run("show", *paths).out
    labels = [label for label, _, _ in rows(shown)]
    assert list(dict.fromkeys(labels)) == ["天气", *NAMES[1:]]
    assert re.search(r"^torn +│ the recording ends here without an end", shown, re.MULTILINE)
    for name in NAMES[1:]:
        alone = run("show", str(FOLDER / f"{name}.mcpcap")).out
        mine = re.findall(r"^ +[\d.:]+ +#(\d+) ", alone, re.MULTILINE)
        assert [n for label, _, n in rows(shown) if label == name] == mine, name


def test_stderr_in_markdown_names_its_session(tmp_path: Path) -> None:
    one = save(tmp_path, "one.mcpcap", records(("err", "a"), ("err", "b"), step=2_000_000), label="one")
    two = save(tmp_path, "two.mcpcap", records(("err", "c"), step=3_000_000), label="two")
    page = run("show", str(one), str(two), "--format", "markdown").out
    blocks = re.findall(r"\*\*stderr\*\* of the server `(\w+)`:\n\n```text\n(.*?)\n```", page, re.DOTALL)
    assert [(label, [line.split()[-1] for line in text.splitlines()]) for label, text in blocks] == [
        ("one", ["a"]),
        ("two", ["c"]),
        ("one", ["b"]),
    ]


def test_the_same_label_twice(pair: tuple[str, str]) -> None:
    lines = [json.loads(line) for line in run("show", pair[0], pair[0], "--format", "json").out.splitlines()]
    assert {line["label"] for line in lines} == {"late", "late-2"}


def test_by_label_and_from_standard_input(pair: tuple[str, str], tmp_path: Path) -> None:
    ran = run("show", "-", "early", "--dir", str(tmp_path), stdin=Path(pair[0]).read_bytes())
    assert ran.status == 0
    assert {label for label, _, _ in rows(ran.out)} == {"early", "late"}
    assert ran.err.count("\n") == 1
    assert "called early" in ran.err


def test_with_a_filter(pair: tuple[str, str]) -> None:
    found = rows(run("show", *pair, "--filter", "id:1").out)
    assert [(label, time) for label, time, _ in found] == [
        ("early", "2.000"), ("early", "2.010"), ("late", "3.500"), ("late", "3.510"),
    ]  # fmt: skip


def test_one_that_still_runs(pair: tuple[str, str]) -> None:
    path = Path(pair[0])
    path.write_bytes(encoded(session(0)[:-2], label="late"))
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        out = run("show", *pair).out
    assert "late │ the session is still running" in out
    assert "early│ the session" not in out


@pytest.mark.parametrize("columns", [20, 60, 80, 120])
def test_on_a_terminal(pair: tuple[str, str], columns: int) -> None:
    ran = on_terminal("show", *pair, columns=columns)
    assert ran.status == 0
    bare = re.sub(r"\x1b\[[0-9;]*m", "", ran.out)
    lines = [line for line in bare.splitlines() if ".mcpcap" not in line]
    assert max(map(len, lines)) <= columns
    assert ("│" in bare) or columns < 75


def test_hostile_labels(tmp_path: Path) -> None:
    one = save(tmp_path, "one.mcpcap", session(0), label="\x1b]0;owned\x07`<b>\n# x\u202e")
    two = save(tmp_path, "two.mcpcap", session(0), label="")
    for form in ("text", "markdown"):
        out = run("show", str(one), str(two), "--format", form).out
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", out)
        assert not re.search(r"^# x", out, re.MULTILINE)
    assert "``\\x1b]0;owned\\x07`<b>\\n# x\\u202e``" in out
    lines = [json.loads(line) for line in run("show", str(one), str(two), "--format", "json").out.splitlines()]
    assert {line["label"] for line in lines} == {"\x1b]0;owned\x07`<b>\n# x\u202e", "session"}


def test_what_cannot_be_joined(pair: tuple[str, str], tmp_path: Path) -> None:
    html = run("show", *pair, "--format", "html")
    assert (html.status, html.out) == (2, "")
    assert "--format html shows one capture" in html.err
    many = run("show", *[pair[0]] * 27)
    assert (many.status, many.out) == (2, "")
    assert "at most 26 captures" in many.err
    missing = run("show", pair[0], str(tmp_path / "nobody.mcpcap"))
    assert (missing.status, missing.out) == (3, "")
    before = Path(pair[1]).read_bytes()
    assert run("show", *pair, "-o", pair[1]).status == 2
    assert Path(pair[1]).read_bytes() == before


@pytest.mark.parametrize("form", ["text", "markdown", "html", "json"])
def test_standard_input_gives_the_same_as_the_file(form: str) -> None:
    data = (FOLDER / "weather.mcpcap").read_bytes()
    for more in ([], ["--payload"], ["--filter", "tool:get_weather"]):
        piped = run("show", "-", "--format", form, *more, stdin=data)
        file = run("show", str(FOLDER / "weather.mcpcap"), "--format", form, *more)
        assert (piped.status, piped.err) == (0, "")
        assert piped.out == file.out.replace(str(FOLDER / "weather.mcpcap"), "standard input")


@pytest.mark.parametrize(
    ("data", "says"), [(b"", "empty"), (b"nonsense\n", "not a capture"), (b"\x1b[31m\n", "not a capture")]
)
def test_standard_input_that_is_no_capture(data: bytes, says: str) -> None:
    ran = run("show", "-", stdin=data)
    assert (ran.status, ran.out) == (3, "")
    assert "standard input" in ran.err
    assert says in ran.err
    assert "\x1b" not in ran.err


def test_the_torn_sample_through_a_pipe() -> None:
    ran: Any = run("show", "-", stdin=(FOLDER / "torn.mcpcap").read_bytes())
    assert "MCP903" in ran.out
    assert "line 13 of standard input" in ran.out
