"""`mcpsniff diff` as a command: forms, exit status, what is refused."""

import json
import os
import stat
from pathlib import Path

import pytest

from tests.captures.samples import FOLDER
from tests.cli.running import run

WEATHER, SSE, HOSTILE = (str(FOLDER / f"{name}.mcpcap") for name in ("weather", "weather-sse", "hostile"))


def test_captures_that_say_the_same() -> None:
    ran = run("diff", WEATHER, WEATHER, "--no-normalise")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out.startswith(f"- A  {WEATHER}\n")
    assert "\nExchanges  7 in both\n" in ran.out
    assert ran.out.endswith("\nThe captures say the same.\n")


def test_captures_that_differ_as_text(tmp_path: Path) -> None:
    into = tmp_path / "told.txt"
    ran = run("diff", WEATHER, SSE)
    assert (ran.status, ran.err) == (1, "")
    assert run("diff", WEATHER, SSE, "-o", str(into)).status == 1
    assert into.read_text() == ran.out
    assert stat.S_IMODE(os.stat(into).st_mode) == 0o600
    assert '  ~ revisions[0]: "2025-11-25" → "2024-11-05"\n' in ran.out
    assert "\nDefinitions  1 only in A, 1 changed\n  ~ tool get_weather\n" in ran.out
    assert '      ~ result.content[0].text\n        - "北京：晴，气温 -2.0 °C，北风三级，空气质量良 ☀️"\n' in ran.out
    assert "  - #26 resources/list: answered\n" in ran.out


def test_captures_that_differ_as_json() -> None:
    ran = run("diff", WEATHER, SSE, "--format", "json", "--only", "exchanges,definitions")
    told = json.loads(ran.out)
    assert (ran.status, told["equal"], told["a"]["path"], told["b"]["transport"]) == (1, False, WEATHER, "http")
    assert [section["name"] for section in told["sections"]] == ["definitions", "exchanges"]
    entries = told["sections"][1]["entries"]
    assert next(entry for entry in reversed(entries) if entry["kind"] == "missing") == {
        "kind": "missing",
        "what": "exchange",
        "name": '#36 tools/call get_weather {"city": "上海"}',
        "counts": True,
        "remark": "answered",
        "a": {
            "n": 36,
            "direction": "c2s",
            "method": "tools/call",
            "target": "get_weather",
            "latency_us": 2000,
            "state": "answered",
        },
    }
    changed = next(entry for entry in entries if entry["kind"] == "changed")
    assert changed["differences"][0] == {
        "path": "result.content[0].text",
        "kind": "changed",
        "a": "北京：晴，气温 -2.0 °C，北风三级，空气质量良 ☀️",
        "b": "北京：晴，气温 -2.0 °C，北风三级",
    }


def test_a_capture_that_was_edited_says_so_by_whom_and_how_often() -> None:
    edited = str(FOLDER / "edited.mcpcap")
    said = (
        "edited on the way: 7 edits by --block tool:delete_order 3, faults 2, --set-argument search.limit 1, break 1;"
    )
    ran = run("diff", WEATHER, edited)
    first, second = ran.out.split("\n+ B  ")
    assert "edited" not in first
    assert said in " ".join(second.split())
    assert "compared is what came" in " ".join(second.split("\n\n")[0].split())
    assert said in run("diff", WEATHER, edited, "--format", "markdown").out
    told = json.loads(run("diff", WEATHER, edited, "--format", "json").out)
    assert (told["a"]["edits"], told["a"]["edited_by"]) == (0, {})
    assert (told["b"]["edits"], told["b"]["edited_by"]["faults"]) == (7, 2)


def test_captures_that_differ_as_markdown() -> None:
    ran = run("diff", SSE, WEATHER, "--format", "markdown")
    assert ran.status == 1
    assert ran.out.startswith("# Comparison of two captures\n")
    assert "\n```diff\n~ revisions[0]" in ran.out


def test_hostile_captures_reach_no_terminal() -> None:
    for form in ("text", "markdown", "json"):
        out = run("diff", HOSTILE, WEATHER, "--format", form).out
        assert "\x1b" not in out
        assert "\u202e" not in out


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ((WEATHER,), 2, "missing argument 'B'"),
        (("-", "-"), 2, "standard input can be read only once"),
        ((WEATHER, WEATHER, "--only", "tool"), 2, "--only tool: there is no such section; there are capabilities"),
        ((WEATHER, WEATHER, "--normalise", "uid"), 2, "no such normaliser: uid; did you mean uuid?"),
        ((WEATHER, WEATHER, "--normalise", "time", "--no-normalise"), 2, "say the opposite of each other"),
        ((WEATHER, WEATHER, "--ignore", "a[x"), 2, "a[x: not a path (at character 2)"),
        ((WEATHER, SSE, "-o", SSE), 2, "is one of the captures, and would be overwritten"),
        ((WEATHER, "/nowhere/x.mcpcap"), 3, "/nowhere/x.mcpcap"),
        ((WEATHER, str(FOLDER / "README.md")), 3, "README.md"),
    ],
)
def test_what_cannot_be_compared(words: tuple[str, ...], status: int, said: str) -> None:
    ran = run("diff", *words)
    assert (ran.status, ran.out) == (status, "")
    assert said in ran.err
    assert ran.err.count("\n") == 1


def test_labels_and_standard_input(tmp_path: Path) -> None:
    for name in ("weather", "modern"):
        (tmp_path / f"{name}-20260101T000000.000Z-1.mcpcap").write_bytes((FOLDER / f"{name}.mcpcap").read_bytes())
    ran = run("diff", "modern", "-", "--dir", str(tmp_path), stdin=(FOLDER / "modern.mcpcap").read_bytes())
    assert (ran.status, ran.out.splitlines()[-1]) == (0, "The captures say the same.")
