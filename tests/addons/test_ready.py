"""The ready addons, each on pipes and over HTTP: what the other side gets, and what they say."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import run
from tests.relay.wires import Wire, wire

ADDONS = Path(__file__).resolve().parents[2] / "addons"
ON = pytest.mark.parametrize("name", ["stdio", "streams"])
LONGEST = 60
KEY = "sk-ant-" + "a1" * 20


@contextmanager
def with_addon(folder: Path, name: str, addon: str, *settings: str) -> Iterator[Wire]:
    words = [word for setting in settings for word in ("--set", setting)]
    with wire(name, folder, "--addon", str(ADDONS / f"{addon}.py"), *words) as between:
        yield between


def call(between: Wire, number: int, tool: str, **arguments: Any) -> None:
    params = {"name": tool, "arguments": arguments}
    between.client.send(json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}).encode())


def answer(between: Wire, number: int, **result: Any) -> None:
    between.server.send(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode())


def listed(between: Wire, *names: str) -> list[str]:
    """The tools that the client sees of those that the server has."""
    between.client.send(b'{"jsonrpc":"2.0","id":0,"method":"tools/list"}')
    between.server.take()
    answer(between, 0, tools=[{"name": name, "inputSchema": {}} for name in names])
    return [tool["name"] for tool in json.loads(between.client.take())["result"]["tools"]]


def said(between: Wire) -> Any:
    return json.loads(between.client.take())


def heard(between: Wire) -> Any:
    return json.loads(between.server.take())


@ON
def test_block_tool_hides_and_refuses(tmp_path: Path, name: str) -> None:
    with with_addon(tmp_path, name, "block_tool", "block_tool=delete_*", "block_tool=shell") as between:
        assert listed(between, "echo", "delete_all", "shell") == ["echo"]
        call(between, 1, "delete_all")
        assert said(between)["error"] == {"code": -32602, "message": "Unknown tool: delete_all"}
        call(between, 2, "echo")
        assert heard(between)["id"] == 2
        answer(between, 2)
        assert said(between)["id"] == 2


@ON
def test_rename_tools_shows_other_names_and_calls_by_the_old_ones(tmp_path: Path, name: str) -> None:
    with with_addon(tmp_path, name, "rename_tools", "rename_tool=search=find", "rename_prefix=x_") as between:
        assert listed(between, "search", "echo") == ["find", "x_echo"]
        for number, (tool, old) in enumerate({"find": "search", "x_echo": "echo"}.items(), 1):
            call(between, number, tool)
            assert heard(between)["params"]["name"] == old
            answer(between, number)
            assert said(between)["id"] == number


@ON
def test_budget_refuses_what_goes_beyond(tmp_path: Path, name: str) -> None:
    with with_addon(tmp_path, name, "budget", "budget_calls=2", "budget_bytes=100") as between:
        call(between, 1, "echo")
        heard(between)
        answer(between, 1, content=["x" * 200])
        said(between)
        call(between, 2, "echo")
        refused = said(between)["error"]["message"]
        assert re.fullmatch(r"The budget of this session is spent: \d{3} of 100 bytes", refused)


@ON
def test_inject_trace_gives_a_session_one_trace(tmp_path: Path, name: str) -> None:
    with with_addon(tmp_path, name, "inject_trace") as between:
        parents = []
        for number in (1, 2):
            call(between, number, "echo")
            request = heard(between)
            assert request["params"]["name"] == "echo"
            parents.append(request["params"]["_meta"]["traceparent"].split("-"))
            answer(between, number)
            said(between)
        assert [len(word) for word in parents[0]] == [2, 32, 16, 2]
        assert parents[0][1] == parents[1][1]
        assert parents[0][2] != parents[1][2]


@ON
def test_mask_secrets_leaves_the_rest_alone(tmp_path: Path, name: str) -> None:
    with with_addon(tmp_path, name, "mask_secrets", "mask_what=api-keys", "mask_side=server") as between:
        call(between, 1, "echo", key=KEY)
        assert KEY in between.server.take().decode()
        text = f'{{"jsonrpc": "2.0", "id":1, "result":{{ "content":["{KEY} and 1.0", 1.0] }}}}'
        between.server.send(text.encode())
        assert between.client.take().decode() == text.replace(KEY, "***")


@ON
@pytest.mark.parametrize(("command", "passes"), [("true", True), ("false", False), ("", False)])
def test_approve_asks_before_a_call(tmp_path: Path, name: str, command: str, passes: bool) -> None:
    with with_addon(tmp_path, name, "approve", f"approve_with={command}", "approve_tool=write_*") as between:
        call(between, 1, "read_file")
        assert heard(between)["id"] == 1
        answer(between, 1)
        said(between)
        call(between, 2, "write_file", path="\x1b[2J")
        if passes:
            assert heard(between)["id"] == 2
            answer(between, 2)
            assert "result" in said(between)
        else:
            assert said(between)["error"]["message"] == "The call of write_file was not approved"
        between.finish()
        assert ("nobody can be asked" in between.said) == (not command)


@ON
def test_those_that_observe_tell_what_they_saw(tmp_path: Path, name: str) -> None:
    """In the process beside the session, and of the capture afterwards."""
    fixtures = tmp_path / "fixtures"
    words = ["--addon", str(ADDONS / "slow_calls.py"), "--set", "slow_ms=0"]
    words += ["--addon", str(ADDONS / "count_methods.py")]
    words += ["--addon", str(ADDONS / "record_fixture.py"), "--set", f"fixture_dir={fixtures}"]
    with wire(name, tmp_path, *words) as between:
        for number in (1, 2):
            call(between, number, "echo", text="hi")
            heard(between)
            answer(between, number, content=[])
            said(between)
        capture = between.finish()
    shown = run("show", str(capture.path), *words)
    assert shown.status == 0, shown.err
    for told in (between.said, shown.err):
        assert len(re.findall(r"slow: #\d+ tools/call echo took", told)) == 2, told
        assert re.search(r"^mcpsniff: +2  tools/call echo$", told, re.MULTILINE), told
    files = sorted(fixtures.iterdir())
    assert [file.name for file in files] == [f"tools_call-echo-{number}.json" for number in (1, 2, 3, 4)]
    asked = {"method": "tools/call", "params": {"name": "echo", "arguments": {"text": "hi"}}}
    assert [json.loads(file.read_text()) for file in files] == [{**asked, "result": {"content": []}}] * 4
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}


def test_each_is_short_and_says_how_it_is_used() -> None:
    ready = [file for file in ADDONS.glob("*.py") if not file.name.startswith(("mcp_", "faults"))]
    assert len(ready) >= 9
    for file in ready:
        text = file.read_text(encoding="utf-8")
        assert len(text.splitlines()) < LONGEST, file.name
        assert f"--addon {file.name}" in text, file.name
