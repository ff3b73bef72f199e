"""Colours: what each role of a piece of text looks like on a terminal.

rich is used for what it knows about terminals. Captured text never goes through its markup: every piece becomes a
`rich.text.Text`, in which nothing is interpreted.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from mcpsniff.transcript.pretty import Line

if TYPE_CHECKING:
    from rich.console import Console

STYLES: Final = {
    "title": "bold",
    "label": "dim",
    "heading": "bold",
    "time": "dim",
    "number": "dim",
    "lane": "blue",
    "client": "bold cyan",
    "server": "bold green",
    "method": "bold",
    "target": "yellow",
    "words": "dim",
    "remark": "dim",
    "id": "dim",
    "size": "dim",
    "latency": "green",
    "waited": "red",
    "bad": "red",
    "loud": "bold red",
    "noise": "yellow",
    "milestone": "dim",
    "stderr": "dim magenta",
    "stderr-text": "magenta",
    "error": "bold red",
    "warning": "bold yellow",
    "note": "bold blue",
    "info": "dim",
    "fix": "italic",
    "punctuation": "dim",
    "name": "cyan",
    "string": "",
    "scalar": "",
    "folded": "dim italic",
    "plain": "",
}


def printer(console: "Console") -> Callable[[Line], None]:
    """A function that prints lines on ``console`` in colour, each exactly as long as it is."""
    from rich.text import Text

    def print_line(line: Line) -> None:
        console.print(
            Text.assemble(*((text, STYLES.get(role, "")) for role, text in line)),
            soft_wrap=True,
            highlight=False,
            markup=False,
            emoji=False,
        )

    return print_line


def plain(write: Callable[[str], object]) -> Callable[[Line], None]:
    """A function that writes lines without any colour."""

    def print_line(line: Line) -> None:
        write("".join(text for _, text in line).rstrip() + "\n")

    return print_line
