"""captures/make.py: the samples are current, the same everywhere, and hold what their page says."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mcpsniff.transcript.jsonl import JsonLines
from mcpsniff.transcript.session import Session
from tests.captures.samples import FOLDER, NAMES, REPO, SCRIPT, make
from tests.dialogue import check_dialogue


def events(name: str) -> list[dict[str, Any]]:
    lines = JsonLines(payload=True)
    session = Session(make.opened(name, (FOLDER / f"{name}.mcpcap").read_bytes()))
    return [json.loads(line) for batch in session.events() for line in lines.lines(batch).splitlines()]


def codes(name: str) -> Counter[str]:
    return Counter(event["code"] for event in events(name) if event["type"] == "finding")


def states(name: str) -> Counter[str]:
    return Counter(event["state"] for event in events(name) if event["type"] == "exchange")


def copied(tmp_path: Path) -> Path:
    """The script with its dialogues in another repository of the same make."""
    shutil.copytree(FOLDER, tmp_path / "captures", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("tests", "mcpsniff"):
        (tmp_path / name).symlink_to(REPO / name)
    return tmp_path / "captures"


def run(script: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, script, *words], capture_output=True, text=True, cwd="/", env={**os.environ, **env}
    )


def test_the_samples_are_current() -> None:
    done = run(SCRIPT, "--check")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_another_machine_builds_the_same(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    built = [
        path for path in folder.iterdir() if path.suffix == ".mcpcap" or (path.stem in NAMES and path.suffix == ".md")
    ]
    assert len(built) == 2 * len(NAMES)
    for path in built:
        path.unlink()
    done = run(folder / "make.py", LC_ALL="C", TZ="Asia/Shanghai", PYTHONHASHSEED="7", COLUMNS="40", HOME="/nowhere")
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.split()) == sorted(word for path in built for word in (f"{path.name}:", "written"))
    for path in built:
        assert path.read_bytes() == (FOLDER / path.name).read_bytes(), path.name


def test_what_is_stale_is_shown_and_left_alone(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    page, capture = folder / "weather.md", folder / "torn.mcpcap"
    page.write_text(page.read_text(encoding="utf-8").replace("北京", "东京"), encoding="utf-8")
    capture.unlink()
    before = page.read_bytes()
    done = run(folder / "make.py", "--check", PYTHONIOENCODING="utf-8")
    assert done.returncode == 1
    assert "--- weather.md" in done.stdout
    assert "+++ torn.mcpcap (built)" in done.stdout
    assert re.search(r"^\+.*北京", done.stdout, re.MULTILINE)
    assert (page.read_bytes(), capture.exists()) == (before, False)


def test_a_dialogue_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    with (folder / "torn.dialogue").open("a", encoding="utf-8") as file:
        file.write("nonsense\n")
    done = run(folder / "make.py")
    assert done.returncode == 2
    assert done.stderr.startswith("captures/make.py: line ")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_the_findings_are_those_in_the_margin(name: str) -> None:
    check_dialogue(make.dialogue(name))


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_is_small_and_of_no_machine(name: str) -> None:
    assert (FOLDER / f"{name}.mcpcap").stat().st_size < 80_000
    page = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    assert f"- **capture:** `{name}.mcpcap`" in page
    assert str(REPO) not in page
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u202e]", page)
    assert f"[{name}]({name}.md)" in (FOLDER / "README.md").read_text(encoding="utf-8")


def test_weather_is_healthy() -> None:
    assert not codes("weather")
    assert states("weather") == {"answered": 7}
    calls = [event for event in events("weather") if event.get("method") == "tools/call" and event["type"] == "message"]
    assert [call["payload"]["params"]["arguments"]["city"] for call in calls] == ["北京", "上海", "亚特兰蒂斯"]
    [first, *_] = [event for event in events("weather") if event["type"] == "exchange" and event["progress"]]
    assert (first["method"], len(first["progress"])) == ("tools/call", 3)


def test_noise_is_all_the_servers() -> None:
    assert codes("noise") == {"MCP101": 8, "MCP103": 1, "MCP208": 1}
    assert {event["blame"] for event in events("noise") if event["type"] == "finding"} == {"server"}
    assert states("noise") == {"answered": 2, "errored": 1}


def test_hostile_has_every_flaw_of_framing() -> None:
    flaws = {flaw for event in events("hostile") if event["type"] == "frame" for flaw in event["flaws"]}
    assert flaws >= {"bom", "bare-cr", "cr-before-lf", "invalid-utf8", "unterminated"}
    assert set(codes("hostile")) >= {"MCP101", "MCP104", "MCP105", "MCP106", "MCP107", "MCP108", "MCP109"}
    assert max(event["size"] for event in events("hostile") if event["type"] == "frame") > 65_536
    raw = b"".join(
        record.body
        for record in make.opened("hostile", (FOLDER / "hostile.mcpcap").read_bytes()).records()
        if record.kind == "chunk"
    )
    assert all(bytes([byte]) in raw for byte in (0x00, 0x07, 0x0D, 0x1B, 0xE9))


def test_torn_ends_within_its_last_record() -> None:
    data = (FOLDER / "torn.mcpcap").read_bytes()
    assert not data.endswith(b"\n")
    assert b"1,200 photos" in data.splitlines()[-1]
    assert codes("torn") == {"MCP903": 1}
    assert states("torn") == {"answered": 2, "open": 1}


def test_modern_asks_back_and_listens() -> None:
    assert not codes("modern")
    assert states("modern") == {"answered": 3, "input-required": 1, "errored": 1, "cancelled": 1}
    page = (FOLDER / "modern.md").read_text(encoding="utf-8")
    assert "- **server can:** `tools (listChanged), resources (subscribe)`" in page
    assert "- **server:** `rail 7.2.1 (Rail bookings)`" in page


def test_faults_has_those_of_ordering() -> None:
    assert set(codes("faults")) >= {
        "MCP119", "MCP213", "MCP401", "MCP403", "MCP404", "MCP405", "MCP409", "MCP421", "MCP422", "MCP430",
    }  # fmt: skip
    assert states("faults") == {"answered": 4, "cancelled": 1, "abandoned": 3}


def test_an_excerpt_has_the_rows_that_are_asked_for() -> None:
    lines = make.excerpt("faults", 9, 14).splitlines()
    assert lines[0].split()[:2] == ["0.004", "#9"]
    assert [line.split()[1] for line in lines if re.match(r" +\d", line)] == ["#9", "#11", "#14"]
    assert any("error MCP404 response-twice" in line for line in lines)
    assert max(map(len, lines)) <= 96


def test_edited_has_both_what_came_and_what_left() -> None:
    assert not codes("edited")
    assert states("edited") == {"answered": 4, "errored": 2}
    edits = [event for event in events("edited") if event["type"] in ("rewrite", "hold")]
    said = ["changed", "changed", "dropped", "answered", "held", "held", "dropped", "answered"]
    assert [edit["edit"] for edit in edits] == said
    pay = next(event for event in events("edited") if event["type"] == "exchange" and event["id"] == 4)
    assert (pay["held_us"], pay["latency_us"]) == (3_400_000, 153_000)
    page = (FOLDER / "edited.md").read_text(encoding="utf-8")
    assert "- **edited by:** `--block tool:delete_order, --set-argument search.limit, break, faults`" in page
    assert make.excerpt("edited", 23, 25).count("delete_order") > 3


def https(name: str) -> list[dict[str, Any]]:
    return [event for event in events(name) if event["type"] == "http"]


def test_weather_over_sse_is_healthy_and_probes_first() -> None:
    assert not codes("weather-sse")
    assert states("weather-sse") == {"abandoned": 1, "answered": 4}
    first, opened, *posts, ended = https("weather-sse")
    assert (first["method"], first["target"], first["status"]) == ("POST", "/sse", 405)
    assert (opened["method"], opened["target"], opened["state"]) == ("GET", "/sse", "streaming")
    assert {(post["method"], post["status"]) for post in posts} == {("POST", 202)}
    assert len(posts) == 5
    assert (ended["state"], ended["ended_by"]) == ("aborted", "client")
    page = (FOLDER / "weather-sse.md").read_text(encoding="utf-8")
    assert "- **transport:** `http` · HTTP+SSE" in page
    assert "tried Streamable HTTP" in page
    assert "6 events · 2 keep-alives" in page


def test_notes_resumes_its_stream() -> None:
    assert not codes("notes")
    assert states("notes") == {"answered": 4}
    assert {event["stream"] for event in https("notes") if event["stream"]} == {"get", "post", "resumed"}
    assert https("notes")[-2]["method"] == "DELETE"
    page = (FOLDER / "notes.md").read_text(encoding="utf-8")
    assert "resumes [#19](#n19) · after event `call-2`" in page


def test_rail_is_cancelled_by_hanging_up() -> None:
    assert not codes("rail-http")
    assert states("rail-http") == {"answered": 3, "input-required": 1, "errored": 1, "cancelled": 1}
    assert "cancels [#14](#n14)" in (FOLDER / "rail-http.md").read_text(encoding="utf-8")
