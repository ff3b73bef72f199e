"""What a shell may complete: labels and names of captures.

Labels come from captures, and a capture may come from anybody. A shell puts what it completes on the command line as
it is, where ``$(...)`` would be run: so only names of letters, digits, ``_``, ``.``, ``-`` are offered.
"""

import os
import re
from collections.abc import Iterable
from typing import Final

import click
from click.shell_completion import CompletionItem

from mcpsniff.capture.catalog import list_captures
from mcpsniff.capture.store import capture_folder
from mcpsniff.errors import McpsniffError

HARMLESS: Final = re.compile(r"\w[\w.-]*")
MOST: Final = 500
"""The newest captures, which are offered by name."""


def complete_capture(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Labels, then names of captures; file names where a path is being written."""
    if os.sep in incomplete:
        return [CompletionItem(incomplete, type="file")]
    labels, names = _known(ctx)
    offered = [CompletionItem(label, help="the newest of this label") for label in _begins(labels, incomplete)]
    offered += [CompletionItem(name, help="a capture") for name in _begins(names, incomplete) if name not in labels]
    return offered or [CompletionItem(incomplete, type="file")]


def complete_label(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Labels."""
    return [CompletionItem(label) for label in _begins(_known(ctx)[0], incomplete)]


def _known(ctx: click.Context) -> tuple[list[str], list[str]]:
    """Labels and names of the captures in the folder that the command line names."""
    try:
        entries = list_captures(capture_folder(ctx.params.get("directory")))
    except McpsniffError:
        return [], []
    labels = sorted({entry.label for entry in entries if entry.header})
    return labels, [entry.name for entry in reversed(entries) if entry.header][:MOST]


def _begins(words: Iterable[str], incomplete: str) -> list[str]:
    return [word for word in words if word.startswith(incomplete) and HARMLESS.fullmatch(word)]
