"""`mcpsniff completion SHELL`: the script that makes a shell complete commands, options, labels and captures."""

import sys
from typing import Final

import click
from click.shell_completion import get_completion_class, shell_complete

from mcpsniff.cli.main import COMPLETION
from mcpsniff.cli.output import note

HOW: Final = {
    "bash": ("~/.bashrc", 'eval "$(mcpsniff completion bash)"'),
    "zsh": ("~/.zshrc, below compinit", 'eval "$(mcpsniff completion zsh)"'),
    "fish": ("~/.config/fish/completions/mcpsniff.fish", "mcpsniff completion fish | source"),
}
"""For each shell the file, and the line that belongs there."""


@click.command("completion")
@click.argument("shell", type=click.Choice(list(HOW)))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print a script that makes the shell complete commands, options, labels and names of captures.

    How to install it is said on stderr.
    """
    kind = get_completion_class(shell)
    assert kind is not None
    file, line = HOW[shell]
    click.echo(kind(ctx.find_root().command, {}, "mcpsniff", COMPLETION).source())
    if sys.stdout.isatty():
        click.echo()
    note(f"put this line into {file}: {line}")


def answer(cli: click.Command, instruction: str) -> int:
    """Answer a shell that asks for completions through COMPLETION; return the exit status."""
    return shell_complete(cli, {}, "mcpsniff", COMPLETION, instruction)
