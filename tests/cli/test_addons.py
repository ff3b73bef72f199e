"""`mcpsniff addons`: where the shipped ones are, which hooks there are, and what is likely wrong with an addon."""

from pathlib import Path

import pytest

from mcpsniff.hooks.events import HOOKS
from tests.cli.running import run

GOOD = """
from collections.abc import Sequence
def load(loader):
    loader.add_option("good_names", Sequence[str], ["a"], "Names.")
    loader.add_option("good_side", str, "both", "Whose.", ["client", "both"])
def mcp_edit(message):
    return message
"""


def test_hooks_are_listed() -> None:
    done = run("addons", "--hooks")
    assert done.status == 0
    for name in HOOKS:
        assert f"  {name}(" in done.out


def test_what_an_addon_has_is_told(tmp_path: Path) -> None:
    path = tmp_path / "good.py"
    path.write_text(GOOD)
    done = run("addons", "--lint", str(path))
    assert (done.status, done.err) == (0, "")
    assert done.out.splitlines() == [
        "editing: mcp_edit",
        "option good_names: list of text; default ['a']. Names.",
        "option good_side: text, one of client, both; default 'both'. Whose.",
    ]


def test_what_is_likely_wrong_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "slips.py"
    path.write_text(
        "def mcp_edit(message):\n    pass\ndef mcp_exhange(x):\n    pass\ndef mcp_close(close):\n    pass\n"
    )
    done = run("addons", "--lint", "slips.py", cwd=tmp_path)
    assert done.status == 1
    assert done.out.splitlines() == [
        "editing: mcp_edit",
        "observing: mcp_close",
        "editing and observing hooks run in two processes: they share no variables",
        "slips.py, line 1: mcp_edit may end without a return, which drops the message; return message lets it pass",
        "slips.py, line 3: there is no hook mcp_exhange; did you mean mcp_exchange?",
    ]
    path.write_text("x = 1\n")
    assert "no hook that would be called" in run("addons", "--lint", str(path)).out


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--lint", "nowhere.py"], "nowhere.py: No such file or directory"),
        (["--lint", "broken.py"], "broken.py, line 2: SyntaxError: "),
        (["--hooks", "--lint", "broken.py"], "one of them"),
        (["--hooks", "mcp_view"], "one of them"),
    ],
)
def test_what_cannot_be_done_is_told(tmp_path: Path, words: list[str], text: str) -> None:
    (tmp_path / "broken.py").write_text("x = 1\ndef f(:\n")
    done = run("addons", *words, cwd=tmp_path)
    assert (done.status, done.out) == (2, "")
    assert text in done.err
    assert done.err.count("\n") == 1


def test_the_shipped_ones_have_nothing_wrong() -> None:
    folder = Path(__file__).resolve().parents[2] / "addons"
    for path in sorted(folder.glob("*.py")):
        if path.stem not in ("mcp_capture", "mcp_view"):  # of mitmproxy
            done = run("addons", "--lint", str(path))
            assert (done.status, done.err) == (0, ""), done
