"""The terminal: how wide it is, and what each role of a piece of text looks like on it.

rich is used for what it knows about terminals. Captured text never goes through its markup: every piece becomes a
`rich.text.Text`, in which nothing is interpreted.
"""

import shutil
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
    "http": "dim",
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
    "removed": "red",
    "added": "green",
    "changed": "yellow",
    "who-0": "cyan",
    "who-1": "magenta",
    "who-2": "yellow",
    "who-3": "green",
    "who-4": "blue",
    "who-5": "red",
}


NARROWEST: Final = 20
WIDEST: Final = 500
USUAL: Final = (80, 24)
"""Columns and lines of a terminal that does not say."""


def columns() -> int:
    """How many columns the terminal of standard output has, as a number that can be worked with.

    ``COLUMNS`` counts where it is a positive number, else the terminal is asked; what lies outside `NARROWEST` to
    `WIDEST` is brought there.
    """
    return min(max(shutil.get_terminal_size(USUAL).columns, NARROWEST), WIDEST)


def terminal() -> "Console":
    """Standard output as rich sees it. Its width is `columns`; its height does not matter, and is not asked for."""
    from rich.console import Console

    return Console(highlight=False, width=columns(), height=USUAL[1])


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
