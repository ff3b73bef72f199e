"""`mcpsniff resend`: one recorded request again, or the command that would send it."""

from typing import Any

import click

from mcpsniff.cli.complete import complete_capture
from mcpsniff.cli.seconds import Seconds
from mcpsniff.cli.target import TargetCommand, target_of
from mcpsniff.errors import UsageError

FORMS = ("curl", "python")
SEND_ONLY = ("headers", "variables", "allow_writes", "timeout", "ignored", "payload", "allow_redacted")


@click.command("resend", cls=TargetCommand)
@click.argument("words", nargs=-1, metavar="[CAPTURE|LABEL] N", shell_complete=complete_capture)
@click.option("--to", "url", metavar="URL | -- COMMAND...", help="Send it to this server (the last option).")
@click.option(
    "--edit",
    is_flag=True,
    help="Change it first, in $VISUAL or $EDITOR; else, on a terminal, in sensible-editor, vim, nano or vi.",
)
@click.option("--as", "form", type=click.Choice(FORMS), help="Do not send it: print it as a command, secrets masked.")
@click.option("-o", "--output", "path", metavar="FILE", help="With --as: write to this file (private).")
@click.option(
    "--header", "headers", multiple=True, metavar="'NAME: VALUE'", help="With --to URL: send this, too; never stored."
)
@click.option(
    "--env", "variables", multiple=True, metavar="NAME[=VALUE]", help="With --to -- COMMAND: set this; never stored."
)
@click.option("--allow-writes", is_flag=True, help="Call the tool also if it is not declared read-only.")
@click.option(
    "--timeout",
    type=Seconds(),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for the server at each step.",
)
@click.option(
    "--ignore", "ignored", multiple=True, metavar="PATH", help="A value that does not count, e.g. result.when."
)
@click.option("--payload/--no-payload", default=None, help="Show the answer whole, or not at all; else it is folded.")
@click.option("--allow-redacted", is_flag=True, help="Send it although values were removed from it.")
@click.option("--dir", "directory", metavar="DIR", help="Look for captures in this folder.")
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> int:
    """Send one recorded request again, after a handshake as it was recorded.

    N is a number of the transcript: of the request, of its answer, or of anything that belongs to it. The answer is
    shown, and how it differs from the recorded one; exit status 1 if it does. What --edit has
    changed is not compared: then the exit status is 1 if no result came, or one with isError true. What the server asks
    meanwhile is answered as it was recorded.

    --as curl prints a command, --as python a program that needs nothing but Python, which do the same. They are for the
    server of the capture unless --to names another. Secrets are variables that you set.
    """
    target = target_of(ctx, options["url"])
    what, number = _wanted(options["words"])
    if options["form"] is not None:
        _check(ctx, SEND_ONLY, "for sending, and --as only prints")
        from mcpsniff.cli.resend_print import print_order

        print_order(what, number, target, options)
        return 0
    _check(ctx, ("path",), "for --as; an answer goes to standard output")
    if target is None:
        raise UsageError("say where to send it, --to URL or --to -- COMMAND; or --as curl|python prints it")
    from mcpsniff.cli.resend_send import send

    return send(what, number, target, **options)


def _check(ctx: click.Context, names: tuple[str, ...], why: str) -> None:
    """Raise UsageError if one of these options was given."""
    for parameter in ctx.command.params:
        source = ctx.get_parameter_source(parameter.name or "")
        if parameter.name in names and source is click.core.ParameterSource.COMMANDLINE:
            raise UsageError(f"{parameter.opts[0]} is {why}")


def _wanted(words: tuple[str, ...]) -> tuple[str | None, int]:
    """Which capture, and the number in it."""
    if not 1 <= len(words) <= 2:
        raise UsageError("say which request: [CAPTURE] N, with N its number in the transcript")
    digits = words[-1].removeprefix("#")
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 18):
        raise UsageError(f"the request is told by its number in the transcript, such as 12, not {words[-1]!r}")
    return (words[0] if len(words) == 2 else None), int(digits)
