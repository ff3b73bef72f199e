"""`mcpsniff show`: what was said, as text, Markdown, HTML or JSON Lines."""

import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, BinaryIO

import click

from mcpsniff.capture.catalog import find
from mcpsniff.capture.labels import shown
from mcpsniff.capture.reader import Capture, open_capture, open_stream
from mcpsniff.capture.store import is_being_written
from mcpsniff.cli.addon_options import with_addons
from mcpsniff.cli.complete import complete_capture
from mcpsniff.cli.output import json_writer, note, output
from mcpsniff.errors import UsageError
from mcpsniff.transcript.payload import FOLDED, NONE, WHOLE, Style

if TYPE_CHECKING:
    from mcpsniff.hooks.addon import Addon
    from mcpsniff.transcript.filter import Filter
    from mcpsniff.transcript.session import Session
    from mcpsniff.transcript.text import Print


@click.command("show")
@click.argument("captures", nargs=-1, metavar="[CAPTURE|LABEL]...", shell_complete=complete_capture)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown", "html", "json"]),
    default="text",
    show_default=True,
    help="For people, for a bug report, for a browser, or for programs.",
)
@click.option("-o", "--output", "path", metavar="FILE", help="Write to this file (private, replaced as a whole).")
@click.option(
    "--payload/--no-payload",
    default=None,
    help="Show payloads whole, or not at all. Without either, text and Markdown fold long ones, HTML unfolds them on a "
    "click, and JSON has none.",
)
@click.option("--filter", "expression", metavar="EXPR", help="Show only what matches (see below).")
@click.option("--alone", is_flag=True, help="Let --filter judge each message by itself, not whole exchanges.")
@click.option("--at", metavar="N", help="Show #N whole: all facts, its exchange, the findings explained, odd bytes.")
@click.option("--hex", "hexadecimal", is_flag=True, help="With --at: all its bytes, as hexdump -C shows them.")
@with_addons
@click.option("--dir", "directory", metavar="DIR", help="Look for captures in this folder.")
def command(
    *,
    captures: tuple[str, ...],
    form: str,
    path: str | None,
    payload: bool | None,
    expression: str | None,
    alone: bool,
    at: str | None,
    hexadecimal: bool,
    addon: tuple[str, ...],
    settings: tuple[str, ...],
    directory: str | None,
) -> None:
    """Show what was said: every message, who answered whom and how fast, what was wrong.

    CAPTURE is a file (- for standard input). LABEL is the name of a server as `mcpsniff list` shows it, or a part of
    that name, and means its newest capture. Without either the newest capture of all is shown. In both cases captures
    in which nothing was recorded are passed over, if there are others. Several are shown on one time line, each line
    with its label.

    EXPR is made of terms such as tool:echo, method:tools/*, kind:error, state:open, dir:s2c, id:7, code:MCP4,
    severity:>=warning, latency:>500ms, size:>64k, t:10s..20s, n:12..40, status:4xx, conversation:3, text:"any words";
    side by side all of them must hold; there are or, not and brackets. docs/filter.md has them all.
    """
    if captures.count("-") > 1:
        raise UsageError("standard input can be read only once")
    if hexadecimal and at is None:
        raise UsageError("--hex shows the bytes of one message, and needs --at N")
    addons = _addons(addon, settings, at)
    chosen = [choose_part(one, directory, expression, alone=alone) for one in captures or (None,)]
    if path is not None and any(_is_same(path, part.path) for opened, _ in chosen for part in opened.parts):
        raise UsageError(f"{shown(path)} is the capture itself, and would be overwritten")
    if addons:
        for opened, _ in chosen:
            opened.keep()
    if at is not None:
        from mcpsniff.cli.show_more import show_at

        show_at(
            [opened for opened, _ in chosen],
            at,
            form=form,
            path=path,
            payload=payload,
            hexadecimal=hexadecimal,
            expression=expression,
        )
    elif len(chosen) > 1:
        from mcpsniff.cli.show_more import show_joined

        show_joined(chosen, form, path, payload)
    else:
        _show_one(*chosen[0], form, path, payload)
    if addons:
        from mcpsniff.cli.observed import tell_of

        tell_of(chosen, addons)


def _addons(files: Sequence[str], settings: Sequence[str], at: str | None) -> "list[Addon]":
    """Load addons, if there are any. Raises UsageError."""
    if not files and not settings:
        return []
    from mcpsniff.cli.observed import observing

    if at is not None:
        raise UsageError("--at shows one message, and addons are told of all: use one of them")
    return observing(files, settings, note)


def _show_one(
    opened: Capture,
    only: "Filter | None",
    form: str,
    path: str | None,
    payload: bool | None,
) -> None:
    """Show one capture."""
    now_us = running_for(opened)
    with output(path) as stream:
        if form == "json":
            write_json(opened, stream, payload=bool(payload), now_us=now_us, only=only)
        elif form == "markdown":
            _write_markdown(opened, stream, style_of(payload), now_us=now_us, only=only)
        elif form == "html":
            _write_html(opened, stream, style_of(payload), now_us=now_us, only=only)
        else:
            write_text(opened, stream, style_of(payload), to_file=path is not None, now_us=now_us, only=only)


def running_for(capture: Capture) -> int | None:
    """How long ago the session of a capture that is still being written began, in microseconds; None if it is over."""
    if not is_being_written(capture.parts[-1].path):
        return None
    began = datetime.fromisoformat(capture.header.started)
    return max(0, int((datetime.now(UTC) - began) / timedelta(microseconds=1)))


def _is_same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except (OSError, ValueError):
        return False


def choose(what: str | None, directory: str | None) -> Capture:
    """Open the capture that is meant; where there was a choice, say on stderr which one was taken."""
    if what == "-":
        return open_stream(sys.stdin.buffer)
    found = find(what, directory, warn=note, even_without_content=False)
    opened = open_capture(found.path)
    if found.said:
        note(f"showing {shown(found.path)}, {found.said}")
    return opened


def choose_part(
    what: str | None, directory: str | None, expression: str | None, *, alone: bool = False
) -> tuple[Capture, "Filter | None"]:
    """Open the capture that is meant, and prepare the filter if there is one. Raises FilterError, CaptureError."""
    if expression is None:
        if alone:
            raise UsageError("--alone says how --filter is meant, and needs it")
        return choose(what, directory), None
    from mcpsniff.transcript.filter import compile_filter

    compile_filter(expression)
    opened = choose(what, directory)
    opened.keep()
    return opened, compile_filter(expression, alone=alone, started=opened.header.started)


def session_of(capture: Capture, now_us: int | None = None, only: "Filter | None" = None) -> "Session":
    """The session of a capture, or the part of it that is asked for."""
    from mcpsniff.transcript.session import Session

    if only is None:
        return Session(capture, now_us=now_us)
    from mcpsniff.transcript.filter import FilteredSession

    session = FilteredSession(capture, only, now_us=now_us)
    if session.is_empty:
        note(shown(session.nothing()))
    return session


def write_json(
    capture: Capture, stream: BinaryIO, *, payload: bool, now_us: int | None = None, only: "Filter | None" = None
) -> None:
    """Write the JSON Lines of a capture; ``now_us`` is as in `mcpsniff.transcript.session.write`."""
    from mcpsniff.transcript.jsonl import JsonLines

    lines, write_lines = JsonLines(payload=payload), json_writer(stream)
    for events in session_of(capture, now_us, only).events():
        write_lines(lines.lines(events))


def write_text(
    capture: Capture,
    stream: BinaryIO,
    style: Style,
    *,
    to_file: bool = False,
    now_us: int | None = None,
    only: "Filter | None" = None,
) -> None:
    """Write the text form: in colours where ``stream`` is standard output and that is a terminal, else plain.

    ``now_us`` is as in `mcpsniff.transcript.session.write`.
    """
    from mcpsniff.transcript.closing import closing_lines
    from mcpsniff.transcript.session import write
    from mcpsniff.transcript.text import TextTranscript

    print_line, width = printer_for(stream, to_file=to_file)
    session = session_of(capture, now_us, only)
    page = TextTranscript(print_line, width, style)
    summary = write(session, page, now_us=now_us, running=now_us is not None)
    for line in closing_lines(summary, page.width):
        print_line(line)


def _write_markdown(
    capture: Capture, stream: BinaryIO, style: Style, *, now_us: int | None = None, only: "Filter | None" = None
) -> None:
    from mcpsniff.transcript.markdown import write_markdown

    write_markdown(session_of(capture, now_us, only), stream, style, now_us=now_us, running=now_us is not None)


def _write_html(
    capture: Capture, stream: BinaryIO, style: Style, *, now_us: int | None = None, only: "Filter | None" = None
) -> None:
    from mcpsniff.transcript.html import write_html

    write_html(session_of(capture, now_us, only), stream, style, now_us=now_us, running=now_us is not None)


def printer_for(stream: BinaryIO, *, to_file: bool) -> "tuple[Print, int]":
    """How to print lines there, and how wide."""
    from mcpsniff.transcript.terminal import plain, printer, terminal
    from mcpsniff.transcript.text import WIDTH

    def write(text: str) -> None:
        stream.write(text.encode(errors="backslashreplace"))

    if to_file or not sys.stdout.isatty():
        return plain(write), WIDTH
    console = terminal()
    if os.environ.get("NO_COLOR") or not console.color_system:
        return plain(write), console.width
    return printer(console), console.width


def style_of(payload: bool | None) -> Style:
    """How much of the payloads --payload and --no-payload ask for."""
    return FOLDED if payload is None else WHOLE if payload else NONE
