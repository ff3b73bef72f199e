"""`mcpsniff replay`: a saved capture as the server, or as the client of a server that runs now."""

from typing import Any

import click

from mcpsniff.cli.complete import complete_capture
from mcpsniff.cli.interrupts import interrupted_at_once
from mcpsniff.cli.seconds import Seconds
from mcpsniff.cli.target import TargetCommand, target_of
from mcpsniff.errors import UsageError

SERVE_ONLY = ("listen", "way", "strict", "once", "raw")
SEND_ONLY = ("update", "headers", "variables", "allow_writes", "normalise", "no_normalise")


@click.command("replay", cls=TargetCommand)
@click.argument("capture", required=False, metavar="[CAPTURE|LABEL]", shell_complete=complete_capture)
@click.option("--serve", type=click.Choice(["stdio", "http", "sse"]), help="Be the server, on this transport.")
@click.option("--to", "url", metavar="URL | -- COMMAND...", help="Be the client of this server (the last option).")
@click.option("--as-recorded", is_flag=True, help="Be the client of the server in the capture; asks before it does.")
@click.option("--yes", is_flag=True, help="With --as-recorded: do not ask.")
@click.option(
    "--timing",
    default="none",
    show_default=True,
    metavar="original|none|xN",
    help="Keep the recorded gaps, leave them out, or go N times as fast.",
)
@click.option(
    "--timeout",
    type=Seconds(),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for the other side at each step.",
)
@click.option(
    "--ignore",
    "ignored",
    multiple=True,
    metavar="PATH",
    help="A value that does not count: with --serve below params (arguments.when), with --to in a whole message"
    " (result.**.when). May be given several times.",
)
@click.option(
    "--server", metavar="TEXT", help="Of a capture with several servers: the one whose address has TEXT in it."
)
@click.option("--allow-redacted", is_flag=True, help="Replay although values of the capture were removed.")
@click.option("--report", metavar="FILE", help="Write what came of it as JSON to this file.")
@click.option(
    "--listen", metavar="[HOST:]PORT", help="With --serve http|sse: where.  [default: 127.0.0.1, a free port]"
)
@click.option(
    "--match",
    "way",
    type=click.Choice(["exact", "method", "sequence"]),
    default="exact",
    show_default=True,
    help="With --serve: what makes a request the recorded one.",
)
@click.option("--strict", is_flag=True, help="With --serve: exit 1 if something was asked that is not in the capture.")
@click.option("--once", is_flag=True, help="With --serve http|sse: end when the first client has left.")
@click.option("--raw", is_flag=True, help="With --serve: keep the recorded pieces and line ends of streams.")
@click.option("--update", metavar="FILE", help="With --to: write the new session as a capture.")
@click.option(
    "--header", "headers", multiple=True, metavar="'NAME: VALUE'", help="With --to URL: send this, too; never stored."
)
@click.option(
    "--env", "variables", multiple=True, metavar="NAME[=VALUE]", help="With --to -- COMMAND: set this; never stored."
)
@click.option("--allow-writes", is_flag=True, help="With --to: call tools that are not declared read-only, too.")
@click.option("--normalise", metavar="NAMES", help="With --to: which differences do not count.")
@click.option("--no-normalise", is_flag=True, help="With --to: every difference counts.")
@click.option("--dir", "directory", metavar="DIR", help="Look for captures in this folder.")
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> int:
    """Play a capture again: as its server (--serve), or as its client (--to).

    CAPTURE is a file. LABEL is the name of a server as `mcpsniff list` shows it, or a part of that name, and means its
    newest capture. Without either it is the newest capture of all.

    As the server it gives a client the recorded answers, with all that belonged to them, under the client's ids, on
    any transport; nothing is started. Exit status: that of the recorded server if it ended first, 1 for misses with
    --strict, else 0. As the client it sends what the recorded client said and tells how the answers differ; exit status
    1 if they do. See docs/replay.md.
    """
    target = target_of(ctx, options["url"])
    chosen = [bool(options["serve"]), target is not None, options["as_recorded"]]
    if sum(chosen) > 1:
        raise UsageError("only one of --serve, --to and --as-recorded says what the capture is to be")
    if not any(chosen):
        raise UsageError(
            "say what the capture is to be: --serve stdio|http|sse, --to URL or -- COMMAND, or --as-recorded"
        )
    wrong = _given(ctx, SEND_ONLY if options["serve"] else SERVE_ONLY)
    if wrong:
        raise UsageError(f"{wrong} is for {'--to' if options['serve'] else '--serve'}")
    if options["yes"] and not options["as_recorded"]:
        raise UsageError("--yes is for --as-recorded")
    if options["serve"]:
        with interrupted_at_once():
            from mcpsniff.cli.replay_serve import serve
        return serve(**options)
    with interrupted_at_once():
        from mcpsniff.cli.replay_send import send

    return send(target, **options)


def _given(ctx: click.Context, names: tuple[str, ...]) -> str:
    """The first of these options that was given, as it is spelt; empty if none was."""
    for parameter in ctx.command.params:
        source = ctx.get_parameter_source(parameter.name or "")
        if parameter.name in names and source is click.core.ParameterSource.COMMANDLINE:
            return parameter.opts[0]
    return ""
