"""`mcpsniff diff`: how one capture differs from another."""

import json
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, BinaryIO, Final

import click

from mcpsniff.capture.catalog import find
from mcpsniff.capture.labels import shown
from mcpsniff.capture.reader import Capture, open_capture, open_stream
from mcpsniff.cli.complete import complete_capture
from mcpsniff.cli.output import note, output
from mcpsniff.cli.show import printer_for
from mcpsniff.errors import UsageError
from mcpsniff.replay.diff.facts import read_facts
from mcpsniff.replay.diff.sections import SECTIONS, diff
from mcpsniff.replay.normalise import rules_of

if TYPE_CHECKING:
    from mcpsniff.replay.diff.report import Report

DIFFERENT: Final = 1
"""The exit status where the captures differ."""


@click.command("diff")
@click.argument("a", metavar="A", shell_complete=complete_capture)
@click.argument("b", metavar="B", shell_complete=complete_capture)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown", "json"]),
    default="text",
    show_default=True,
    help="For people, for a bug report, or for programs.",
)
@click.option("-o", "--output", "path", metavar="FILE", help="Write to this file (private, replaced as a whole).")
@click.option(
    "--only",
    "sections",
    multiple=True,
    metavar="SECTION",
    help=f"Compare only this: {', '.join(SECTIONS)}. May be repeated, or several with commas between.",
)
@click.option(
    "--normalise",
    "names",
    multiple=True,
    metavar="NAME[,NAME]",
    help="Take only this for equal: uuid, time, port, path, order, number=0.01, number=1%. The first five, or stock "
    "for short, are the default.",
)
@click.option("--no-normalise", "strict", is_flag=True, help="Take nothing for equal that is not.")
@click.option(
    "--ignore",
    "paths",
    multiple=True,
    metavar="PATH",
    help="Do not look at this: params.arguments.when, result.content[*].text, result._meta, serverInfo.version.",
)
@click.option("--dir", "directory", metavar="DIR", help="Look for captures in this folder.")
def command(
    *,
    a: str,
    b: str,
    form: str,
    path: str | None,
    sections: tuple[str, ...],
    names: tuple[str, ...],
    strict: bool,
    paths: tuple[str, ...],
    directory: str | None,
) -> int:
    """Tell how capture B differs from capture A.

    A and B are files (one may be -, for standard input), or labels as `mcpsniff list` shows them, which mean the newest
    capture of that name. They need not be of the same transport. Compared are what client and server are and can do,
    the definitions of tools, resources and prompts, the requests and their answers, latencies and findings.

    UUIDs, times, ports, folders and the order of sets are taken for equal unless --normalise or --no-normalise says
    otherwise; ids, tokens, cursors and sessions always are.

    Exit status: 0 if they say the same, 1 if they differ; latencies alone are no difference.
    """
    if a == b == "-":
        raise UsageError("standard input can be read only once")
    if strict and names:
        raise UsageError("--normalise and --no-normalise say the opposite of each other")
    rules = rules_of(() if strict else names or None, paths)
    only = _sections(sections)
    opened = [_open(name, what, directory) for name, what in (("A", a), ("B", b))]
    if path is not None and any(_is_same(path, part.path) for one in opened for part in one.parts):
        raise UsageError(f"{shown(path)} is one of the captures, and would be overwritten")
    report = diff(read_facts(opened[0]), read_facts(opened[1]), rules, only)
    with output(path) as stream:
        _write(report, form, stream, to_file=path is not None)
    return DIFFERENT if report.differences else 0


def _sections(asked: Sequence[str]) -> list[str]:
    names = [name.strip() for one in asked for name in one.split(",")]
    for name in names:
        if name not in SECTIONS:
            raise UsageError(f"--only {name}: there is no such section; there are {', '.join(SECTIONS)}")
    return names


def _open(name: str, what: str, directory: str | None) -> Capture:
    """Open a capture; where there was a choice, say which one was taken."""
    if what == "-":
        return open_stream(sys.stdin.buffer)
    found = find(what, directory, warn=note, even_without_content=False)
    if found.said:
        note(f"{name} is {shown(found.path)}, {found.said}")
    return open_capture(found.path)


def _is_same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except (OSError, ValueError):
        return False


def _write(report: "Report", form: str, stream: BinaryIO, *, to_file: bool) -> None:
    if form == "json":
        from mcpsniff.replay.diff.json import diff_dict

        stream.write(json.dumps(diff_dict(report), indent=1).encode() + b"\n")
    elif form == "markdown":
        from mcpsniff.replay.diff.text import diff_markdown

        stream.writelines(text.encode(errors="backslashreplace") + b"\n" for text in diff_markdown(report))
    else:
        from mcpsniff.replay.diff.text import diff_lines

        print_line, width = printer_for(stream, to_file=to_file)
        for line in diff_lines(report, width):
            print_line(line)
