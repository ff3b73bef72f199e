"""The command line: the commands by name, and one place where everything that goes wrong becomes one plain sentence.

A command's module is loaded when it is called, so that `mcpsniff list` does not wait for what `mcpsniff show` needs.
"""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

import click

from mcpsniff import __version__
from mcpsniff.cli.interrupts import INTERRUPTED, interrupted_at_once
from mcpsniff.errors import McpsniffError, UsageError

COMMANDS: Final = {
    "stdio": ("mcpsniff.cli.stdio", "Run an MCP server and record what it and its client say."),
    "http": ("mcpsniff.cli.http", "Stand in front of an MCP server that speaks HTTP, and record what is said."),
    "forward": ("mcpsniff.cli.forward", "Be an HTTP proxy for MCP clients, and record what is MCP, TLS too."),
    "run": ("mcpsniff.cli.run", "Run an MCP client, and record what it says over HTTP, TLS too."),
    "attach": ("mcpsniff.cli.attach", "Decide about messages that are held at break points."),
    "show": ("mcpsniff.cli.show", "Show what was said, as text, Markdown, HTML or JSON."),
    "tail": ("mcpsniff.cli.tail", "Show what is said while it is said."),
    "play": ("mcpsniff.cli.play", "Play a capture on the screen, as it went."),
    "list": ("mcpsniff.cli.list_", "List the captures."),
    "prune": ("mcpsniff.cli.prune", "Remove captures by age or number."),
    "replay": ("mcpsniff.cli.replay", "Play a capture again: as its server, or as its client."),
    "resend": ("mcpsniff.cli.resend", "Send one recorded request again, or print it for curl or Python."),
    "diff": ("mcpsniff.cli.diff", "Tell how one capture differs from another."),
    "import": ("mcpsniff.cli.import_", "Make a capture of MCP that mitmproxy or a browser has kept."),
    "redact": ("mcpsniff.cli.redact", "Make a capture that can be shared, without its secrets."),
    "addons": ("mcpsniff.cli.addons", "List addons and hooks, and look at an addon."),
    "ca": ("mcpsniff.cli.ca", "Tell where mcpsniff's certificate authority is, and how to trust it."),
    "explain": ("mcpsniff.cli.explain", "Explain a finding: what is wrong, why it matters, what to do."),
    "demo": ("mcpsniff.cli.demo", "Record two short sessions with deliberate faults and show them."),
    "completion": ("mcpsniff.cli.completion", "Make the shell complete commands, options, labels and captures."),
}
"""Name, module (its ``command`` is the click command) and the line in the overview."""

COMPLETION: Final = "_MCPSNIFF_COMPLETE"
"""What a shell sets in the environment when it asks for completions."""
_BUG: Final = 70

SETTINGS: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class LazyGroup(click.Group):
    """A group that loads a command's module when the command is called, and not for the overview."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The names, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Load a command."""
        if cmd_name not in COMMANDS:
            return None
        with interrupted_at_once():
            command: click.Command = import_module(COMMANDS[cmd_name][0]).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or say which one may have been meant."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            raise click.UsageError(f"no such command: {args[0]}{_did_you_mean(args[0], COMMANDS)}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the overview from the table."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings=SETTINGS, invoke_without_command=True)
@click.version_option(__version__, prog_name="mcpsniff", message="%(prog)s %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """See what an MCP client and its server really say to each other.

    Put `mcpsniff stdio --` in front of the server's command in your client's configuration; or, for a server on HTTP,
    give the client the address that `mcpsniff http URL` prints, or start the client with `mcpsniff run --`. Use the
    client, then read what was said with `mcpsniff show`.

    Nothing is changed on the way unless you ask for it: by rules, faults, break points or addons (--block, --fault,
    --break, --addon and others of stdio, http, forward and run). `mcpsniff attach` decides about what a break point
    holds.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def run(argv: Sequence[str]) -> int:
    """Run one command line and return its exit status. Nothing but SystemExit of a wrapped command gets out.

    0 fine, 2 usage, 3 something is unreadable or cannot be written, 130 after Ctrl-C; a closed output pipe is fine.
    """
    try:
        if instruction := os.environ.get(COMPLETION):
            from mcpsniff.cli.completion import answer

            return answer(cli, instruction)
        # Not cli.main: it has its own ways with a closed pipe and with Ctrl-C.
        with cli.make_context("mcpsniff", list(argv)) as context:
            status = cli.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as end:
        return end.exit_code
    except (click.Abort, KeyboardInterrupt):
        _drop_output()
        return INTERRUPTED
    except click.ClickException as error:
        context_of_it = error.ctx if isinstance(error, click.UsageError) else None
        named = f"mcpsniff {argv[0]}" if argv and argv[0] in COMMANDS else "mcpsniff"
        where = named if context_of_it is None else context_of_it.command_path
        _say(f"{where}: {_sentence(error.format_message())} (try {where} --help)")
        return UsageError.exit_status
    except McpsniffError as error:
        first, *more = error.lines
        for line in (f"mcpsniff: {first}", *more):
            _say(line)
        return error.exit_status
    except BrokenPipeError:
        _drop_output()
        return 0
    except OSError as error:
        _drop_output()
        _say(f"mcpsniff: cannot write the output: {error.strerror or error}")
        return McpsniffError.exit_status
    except Exception as error:
        if os.environ.get("MCPSNIFF_DEBUG"):
            raise
        _drop_output()
        _say(
            f"mcpsniff: this is a bug in mcpsniff, please report it: {type(error).__name__}: {error}"
            " (MCPSNIFF_DEBUG=1 shows where)"
        )
        return _BUG
    return status if isinstance(status, int) else 0


def _say(text: str) -> None:
    """One line on stderr; captured text and file names in it are made visible."""
    from mcpsniff.transcript.safe import visible

    try:
        sys.stderr.write(visible(text) + "\n")
        sys.stderr.flush()
    except OSError:
        pass


def _sentence(text: str) -> str:
    """Click's sentence in the tone of the others."""
    text = text.removesuffix(".")
    return text[:1].lower() + text[1:]


def _drop_output() -> None:
    """Nobody reads stdout any more: what is still buffered goes nowhere, also when the interpreter ends."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except (OSError, ValueError):
        pass


def _did_you_mean(word: str, known: Sequence[str] | dict[str, tuple[str, str]]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"; did you mean {near[0]}?" if near else ""
