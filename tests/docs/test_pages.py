"""README.md and docs/*.md: their links lead somewhere, and their command lines are ones that mcpsniff takes."""

import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import click
import pytest

from mcpsniff.cli.main import COMMANDS, cli

REPO = Path(__file__).resolve().parents[2]
PAGES = [REPO / "README.md", *sorted((REPO / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
SHELLS = ("sh", "console")


def anchors(page: Path) -> set[str]:
    """Return what the headings of a page are called in links, as GitHub does it."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def lines(page: Path) -> Iterator[list[str]]:
    """Yield the command lines of mcpsniff in the shell blocks of a page, as words."""
    for language, text in FENCE.findall(page.read_text(encoding="utf-8")):
        for line in text.splitlines() if language in SHELLS else ():
            words = shlex.split(line.removeprefix("$ "), comments=True)
            if words[:1] == ["mcpsniff"]:
                yield words[1 : words.index("|")] if "|" in words else words[1:]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for link in LINK.findall(text):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_the_command_lines_are_taken() -> None:
    """Words and options exist, and go together; nothing is run."""
    found = [words for page in PAGES for words in lines(page)]
    assert {words[0] for words in found} >= {"http", "forward", "run", "show", "tail", "import"}
    for name, *rest in found:
        command: click.Command = import_module(COMMANDS[name][0]).command
        try:
            command.make_context(name, rest, parent=click.Context(cli))
        except click.ClickException as error:
            pytest.fail(f"mcpsniff {shlex.join([name, *rest])}: {error.format_message()}")


def test_every_command_has_its_help_in_the_readme() -> None:
    text = PAGES[0].read_text(encoding="utf-8")
    assert [name for name in COMMANDS if f"<!-- generated: help:{name} -->" not in text] == []
