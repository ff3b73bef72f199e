"""docs/recipes.md: the commands, rules and faults in it are understood, and the addons do what is said of them."""

import re
import shlex
import threading
from pathlib import Path
from typing import Any

import pytest

from mcpsniff.cli.options import HTTP, STDIO, parse
from mcpsniff.hooks.lint import remarks
from mcpsniff.proxy.interception import prepare
from tests.cli.running import run
from tests.hooks.loaded import Loaded, written
from tests.rules.staging import call

REPO = Path(__file__).resolve().parents[2]
PAGE = (REPO / "docs" / "recipes.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"`(mcpsniff (?:stdio|http) [^`]*…)`", PAGE)
ADDONS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
RULES = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "huge.json").write_text('{"content": []}')
    (tmp_path / "old.toml").write_text(RULES[0])
    less = re.search(r"less.toml …`, with `(when = [^`]*)`, `(remove = [^`]*)`", PAGE)
    assert less is not None
    (tmp_path / "less.toml").write_text(f"[[rule]]\n{less[1]}\n{less[2]}\n")
    monkeypatch.setenv("MCPSNIFF_DIR", str(tmp_path))
    _, way, *words = shlex.split(command.replace("…", "" if "http" in command else "-- server"))
    table = HTTP if way == "http" else STDIO
    words = [str(tmp_path / "none.mcpcap") if word == "CAPTURE" else word for word in words]
    options, rest = parse(table, words, anywhere=way == "http")
    assert rest == ([] if way == "http" else ["server"])
    if "--fault-from" not in command:
        said: list[str] = []
        assert prepare(options, way, said.append) is not None
        assert said == []


def loaded(tmp_path: Path, number: int) -> Loaded:
    assert remarks(ADDONS[number].encode(), "mine.py") == []
    return Loaded(written(tmp_path / "mine.py", ADDONS[number]))


def tools(stage: Loaded, number: int, **described: str) -> list[str]:
    stage.client({"jsonrpc": "2.0", "id": number, "method": "tools/list"})
    stage.at_server()
    listed = [{"name": name, "description": text} for name, text in described.items()]
    stage.server(said(number, tools=listed))
    return [tool["name"] for tool in stage.at_client()["result"]["tools"]]


def said(number: int, **result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "result": result}


def test_a_tool_that_changes_is_hidden(tmp_path: Path) -> None:
    stage = loaded(tmp_path, 0)
    assert tools(stage, 1, a="adds", b="bakes") == ["a", "b"]
    assert tools(stage, 2, a="sends your files away", b="bakes") == ["b"]
    assert stage.said == ["warning: the tool a is described otherwise than before"]


def test_calls_wait_for_one_another(tmp_path: Path) -> None:
    stage = loaded(tmp_path, 1)
    stage.client(call(1, "a"))
    assert stage.at_server() == call(1, "a")
    second = threading.Thread(target=stage.client, args=(call(2, "b"),))
    second.start()
    second.join(0.2)
    assert second.is_alive()
    stage.server(said(1))
    second.join(60)
    assert stage.at_server() == call(2, "b")


def test_long_texts_are_cut(tmp_path: Path) -> None:
    stage = loaded(tmp_path, 2)
    stage.client(call(1, "a"))
    stage.server(said(1, content=[{"type": "text", "text": "x" * 12_000}]))
    assert stage.at_client()["result"]["content"][0]["text"] == "x" * 10_000 + "\n[cut]"
    assert stage.whys == ["mine: cut 2,000 characters"]


def test_calls_become_a_table(tmp_path: Path) -> None:
    addon = written(tmp_path / "mine.py", ADDONS[3])
    capture = next(REPO.glob("captures/faults*.mcpcap"))
    done = run("show", "--addon", str(addon), "-o", str(tmp_path / "out"), str(capture))
    assert done.status == 0, done.err
    rows = [line.split(",") for line in (done.out + done.err).splitlines() if line.count(",") == 3]
    assert ["tools/call", "compile", "answered"] in [row[:3] for row in rows]
