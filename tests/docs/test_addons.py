"""docs/addons.md: the examples are addons, do what they say, and nothing is likely wrong with them."""

import re
from pathlib import Path

import pytest

import mcpsniff
from mcpsniff.errors import UsageError
from mcpsniff.hooks.lint import remarks
from mcpsniff.hooks.loading import load
from tests.hooks.loaded import Loaded, written
from tests.rules.staging import call

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "addons.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_first_example_does_what_it_says(tmp_path: Path) -> None:
    stage = Loaded(written(tmp_path / "mine.py", EXAMPLES[0]))
    assert stage.loaded.observers
    stage.client(call(1, "delete_file"))
    assert stage.at_client()["error"]["message"] == "not today"
    stage.client(call(2, "search", limit=9, what="x"))
    assert stage.at_server() == call(2, "search", limit=5, what="x")
    stage.client(call(3, "echo"))
    assert stage.at_server() == call(3, "echo")
    assert stage.said == []


@pytest.mark.parametrize("text", EXAMPLES)
def test_nothing_is_wrong_with_an_example(tmp_path: Path, text: str) -> None:
    assert remarks(text.encode(), "mine.py") == []
    said: list[str] = []
    load([str(written(tmp_path / "mine.py", text))], [], said.append)
    assert said == []


def test_the_example_of_options_has_them(tmp_path: Path) -> None:
    path = written(tmp_path / "mine.py", EXAMPLES[1] + "def mcp_edit(message):\n    return message\n")
    load([str(path)], ["slow_ms=200"], print)
    assert mcpsniff.ctx.options.slow_ms == 200
    with pytest.raises(UsageError, match=r"the addon refuses its options: .*, line \d+: ValueError: slow_ms is neg"):
        load([str(path)], ["slow_ms=-1"], print)


def test_every_name_on_the_page_is_there() -> None:
    for name in re.findall(r"`mcpsniff\.(\w+)", PAGE):
        assert hasattr(mcpsniff, name), name
    row = next(line for line in PAGE.splitlines() if line.startswith("| `Text`"))
    for name in re.findall(r"`([A-Z]\w+)`", row):
        assert hasattr(mcpsniff, name), name
