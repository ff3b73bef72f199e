"""`mcpsniff resend`: one recorded request again, or the command that would send it."""

import os
from typing import Any

import click

from mcpsniff.capture.labels import shown
from mcpsniff.capture.reader import Capture
from mcpsniff.cli.complete import complete_capture
from mcpsniff.cli.output import note, output
from mcpsniff.cli.show import choose
from mcpsniff.cli.target import Target, TargetCommand, target_of
from mcpsniff.errors import UsageError

FORMS = ("curl", "python")


@click.command("resend", cls=TargetCommand)
@click.argument("words", nargs=-1, metavar="[CAPTURE|LABEL] N", shell_complete=complete_capture)
@click.option("--to", "url", metavar="URL | -- COMMAND...", help="For this server (the last option).")
@click.option("--as", "form", type=click.Choice(FORMS), required=True, help="Print it as a command, secrets masked.")
@click.option("-o", "--output", "path", metavar="FILE", help="Write to this file (private, replaced as a whole).")
@click.option("--dir", "directory", metavar="DIR", help="Look for captures in this folder.")
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> int:
    """Print the command that sends one recorded request again, after a handshake as it was recorded.

    N is a number of the transcript: of the request, of its answer, or of anything that belongs to it. With --as python
    it is a program that needs nothing but Python. Both are for the server of the capture, unless --to names another.
    Secrets are variables that you set.
    """
    target = target_of(ctx, options["url"])
    what, number = _wanted(options["words"])
    _print(choose(what, options["directory"]), number, target, options)
    return 0


def _wanted(words: tuple[str, ...]) -> tuple[str | None, int]:
    """Which capture, and the number in it."""
    if not 1 <= len(words) <= 2:
        raise UsageError("say which request: [CAPTURE] N, with N its number in the transcript")
    digits = words[-1].removeprefix("#")
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 18):
        raise UsageError(f"the request is told by its number in the transcript, such as 12, not {words[-1]!r}")
    return (words[0] if len(words) == 2 else None), int(digits)


def _print(capture: Capture, number: int, target: Target | None, options: dict[str, Any]) -> None:
    """Print the request as a command."""
    from mcpsniff.replay.reading import read_script
    from mcpsniff.replay.resend_curl import curl
    from mcpsniff.replay.resend_order import order_of
    from mcpsniff.replay.resend_pick import pick
    from mcpsniff.replay.resend_python import python

    capture.keep()
    script = read_script(capture)
    picked = pick(capture, script, number)
    url, words = (None, ()) if target is None else (target.url, target.command)
    order = order_of(picked, script, os.path.basename(capture.path), url_to=url, command=words)
    text = curl(order) if options["form"] == "curl" else python(order)
    with output(options["path"]) as stream:
        stream.write(text.encode(errors="backslashreplace"))
    if options["path"] is not None:
        note(f"written to {shown(options['path'])}")
