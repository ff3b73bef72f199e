"""`mcpsniff demo`: two real sessions, one on pipes and one on HTTP, and what is shown of them."""

import json
import shlex
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from mcpsniff.cli.demo import typed_command
from mcpsniff.demo.client import DemoError
from mcpsniff.demo.sse_client import hold_session
from tests.cli.running import COMMAND, environment, on_terminal, run

FAULTS = ("MCP101", "MCP404", "MCP405", "MCP421", "MCP603")


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What a demo prints, and the folder with its captures."""
    folder = tmp_path_factory.mktemp("demo") / "captures"
    ran = run("demo", "--dir", str(folder))
    assert (ran.status, ran.err) == (0, "")
    return ran.out, folder


def capture_of(folder: Path, label: str) -> Path:
    """The capture of this label, which has a transcript beside it."""
    [capture] = folder.glob(f"{label}-2*.mcpcap")
    transcript = capture.with_suffix(".md").read_text(encoding="utf-8")
    assert transcript.startswith(f"# MCP session with `{label}`")
    return capture


def events_of(capture: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run("show", str(capture), "--format", "json").out.splitlines()]


def test_both_sessions_are_shown(shown: tuple[str, Path]) -> None:
    out, folder = shown
    first, second = out.split("Two others talked over HTTP with SSE, through `mcpsniff http`.")
    assert first.startswith("A client and a server talked through `mcpsniff stdio`.")
    assert " ms\n" in first
    assert "the server exited with status 0" in first
    assert "\x1b" not in out
    for label, text in (("demo", first), ("demo-sse", second)):
        capture = capture_of(folder, label)
        assert text.count(capture.name) >= 1
        assert f"  {capture}\n  {capture.with_suffix('.md')}\n" in second
    assert len(list(folder.iterdir())) == 4
    assert "Try next:" in second
    assert len(out.splitlines()) < 330


def test_the_session_on_pipes(shown: tuple[str, Path]) -> None:
    out, folder = shown
    for code in FAULTS:
        assert f"✗ error {code} " in out
    events = events_of(capture_of(folder, "demo"))
    errors = [event for event in events if event["type"] == "finding" and event["severity"] == "error"]
    assert {error["code"]: error["blame"] for error in errors} == dict.fromkeys(FAULTS, "server")
    states = [event["state"] for event in events if event["type"] == "exchange"]
    assert sorted(states) == ["answered"] * 7 + ["cancelled"]


def test_the_session_on_http(shown: tuple[str, Path]) -> None:
    _, folder = shown
    events = events_of(capture_of(folder, "demo-sse"))
    findings = [event for event in events if event["type"] == "finding"]
    assert [(one["code"], one["severity"], one["blame"]) for one in findings] == [
        ("MCP532", "error", "server"),
        ("MCP531", "warning", "server"),
    ]
    probe, *others = [event["state"] for event in events if event["type"] == "exchange"]
    assert (probe, others) == ("abandoned", ["answered"] * 4)
    told = [(event["method"], event["status"]) for event in events if event["type"] == "http" and event["status"]]
    assert told[:2] == [("POST", 405), ("GET", 200)]
    assert set(told[2:]) == {("POST", 202), ("GET", 200)}


def test_the_client_is_kept_from_going_past_the_relay(shown: tuple[str, Path]) -> None:
    """The address of the endpoint is absolute, and the client would refuse it if it still were."""
    out, folder = shown
    assert "mcpsniff made the endpoint relative" in out
    records = [json.loads(line) for line in capture_of(folder, "demo-sse").read_text(encoding="utf-8").splitlines()[1:]]
    [rewrite] = [record[3] for record in records if record[1] == "rewrite"]
    assert rewrite["data"].startswith("/messages?sessionId=")


def test_without_a_relay_the_client_holds_its_session_too() -> None:
    server = subprocess.Popen(
        [sys.executable, "-m", "mcpsniff.demo.sse_server"], stdout=subprocess.PIPE, env=environment()
    )
    try:
        assert server.stdout is not None
        url = server.stdout.readline().decode().strip()
        threads = threading.active_count()
        hold_session(url)
        assert threading.active_count() == threads
        with pytest.raises(DemoError, match="does not refuse"):
            hold_session(url.replace("/sse", "/mcp"))
    finally:
        server.terminate()
        server.wait()
        server.stdout.close()


def test_what_the_demo_suggests_works_as_typed(tmp_path: Path) -> None:
    """Also when mcpsniff is not on PATH, and the folder's name needs quotes."""
    folder = tmp_path / "my captures"
    script = tmp_path / "bin" / "mcpsniff"
    script.parent.mkdir()
    program = "import sys\nfrom mcpsniff.__main__ import main\nsys.exit(main())\n"
    script.write_text(f"#!{sys.executable}\n{program}", encoding="utf-8")
    script.chmod(0o755)
    for command in ([str(script)], COMMAND):
        shown = subprocess.run(
            [*command, "demo", "--dir", str(folder)],
            capture_output=True,
            text=True,
            env=environment(PATH="/usr/bin:/bin"),
        ).stdout
        typed = [line.strip() for line in shown.split("Try next:")[1].splitlines() if " show demo " in line]
        assert len(typed) == 3
        for line in typed:
            assert shlex.split(line)[: len(command)] == command
            done = subprocess.run(
                line, shell=True, capture_output=True, env=environment(PATH="/usr/bin:/bin"), cwd=tmp_path
            )
            assert done.returncode == 0, done.stderr


def test_where_the_name_finds_it_the_name_is_suggested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "mcpsniff"
    script.write_text("#!/bin/sh\n", encoding="utf-8")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert typed_command(str(script)) == ["mcpsniff"]
    monkeypatch.setenv("PATH", "/nowhere")
    assert typed_command(str(script)) == [str(script)]
    assert typed_command("/x/mcpsniff/__main__.py") == [sys.executable, "-m", "mcpsniff"]


def test_demo_on_a_terminal(tmp_path: Path) -> None:
    ran = on_terminal("demo", "--dir", str(tmp_path / "captures"), columns=80)
    assert ran.status == 0
    assert "\x1b[" in ran.out
    assert "Try next:" in ran.out


def test_demo_in_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    ran = run("demo", "--dir", str(tmp_path / "file"))
    assert ran.status == 3
    assert ran.err.count("\n") == 1
    assert "Traceback" not in ran.err
