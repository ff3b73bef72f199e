"""`mcpsniff show` of several captures on one time line, and of one event whole."""

from typing import TYPE_CHECKING

from mcpsniff.capture.reader import Capture
from mcpsniff.cli.output import json_writer, output
from mcpsniff.cli.show import printer_for, running_for, session_of, style_of
from mcpsniff.errors import UsageError

if TYPE_CHECKING:
    from mcpsniff.transcript.filter import Filter


def show_joined(
    chosen: "list[tuple[Capture, Filter | None]]", form: str, path: str | None, payload: bool | None
) -> None:
    """Show several captures on one time line. Raises UsageError for HTML, which shows one."""
    from mcpsniff.transcript.joined import Given, join, joined_json, write_joined_text

    if form == "html":
        raise UsageError("--format html shows one capture; text, markdown and json can show several")
    given = []
    for opened, only in chosen:
        now_us = running_for(opened)
        given.append(Given(session_of(opened, now_us, only), opened.header.started, now_us))
    joined = join(given)
    with output(path) as stream:
        if form == "json":
            write_lines = json_writer(stream)
            for line in joined_json(joined, payload=bool(payload)):
                write_lines(line)
        elif form == "markdown":
            from mcpsniff.transcript.joined_markdown import write_joined_markdown

            write_joined_markdown(joined, stream, style_of(payload))
        else:
            print_line, width = printer_for(stream, to_file=path is not None)
            write_joined_text(joined, print_line, width, style_of(payload))


def show_at(
    opened: list[Capture],
    at: str,
    *,
    form: str,
    path: str | None,
    payload: bool | None,
    hexadecimal: bool,
    expression: str | None,
) -> None:
    """Show one event whole. Raises UsageError where that cannot be done, or there is no such number."""
    from mcpsniff.transcript.at import EventPage, event_lines, find_event

    digits = at.removeprefix("#")
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 18):
        raise UsageError(f"--at needs a number of the transcript, such as 12, not {at!r}")
    if len(opened) > 1:
        raise UsageError("--at shows a message of one capture; name one")
    if expression is not None:
        raise UsageError("--at shows one message, and --filter chooses among all: use one of them")
    if form not in ("text", "json"):
        raise UsageError(f"--at shows a message as text or json, not as {form}")
    capture, number = opened[0], int(digits)
    capture.keep()
    now_us = running_for(capture)
    if form == "json":
        lines = list(event_lines(capture, number, payload=payload is not False, now_us=now_us))
        with output(path) as stream:
            json_writer(stream)(b"".join(lines))
        return
    found = find_event(capture, number, now_us=now_us)
    with output(path) as stream:
        print_line, width = printer_for(stream, to_file=path is not None)
        EventPage(print_line, width, hexadecimal=hexadecimal).show(found, capture.header)
