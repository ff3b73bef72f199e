"""`mcpsniff addons`: where those that come with mcpsniff are, which hooks there are, what is wrong with one."""

from typing import TYPE_CHECKING, Final

import click

from mcpsniff.errors import UsageError
from mcpsniff.hooks.shipped import OF_MITMPROXY, READY, path_of, resolved

if TYPE_CHECKING:
    from mcpsniff.hooks.addon import Addon

ADDONS: Final = {**READY, **OF_MITMPROXY}


@click.command("addons")
@click.argument("name", required=False, type=click.Choice(list(ADDONS)), metavar="[NAME]")
@click.option("--hooks", is_flag=True, help="List the hooks that an addon may have.")
@click.option("--faults", is_flag=True, help="List the faults that --fault does to messages.")
@click.option("--lint", "file", metavar="FILE", help="Load this addon, and tell what is likely wrong with it.")
def command(*, name: str | None, hooks: bool, faults: bool, file: str | None) -> int:
    """Print where the addons are that come with mcpsniff: all of them, or the path of one.

    Those for --addon are found by their names alone: mcpsniff stdio --addon block_tool. Others are files of yours
    (docs/addons.md): --hooks lists what they may have, and --lint looks at one, which it also loads. It exits 1 if
    something is likely wrong, 2 if the file cannot be loaded.

    For those who use mitmproxy anyway: mitmweb -s "$(mcpsniff addons mcp_capture)" -s "$(mcpsniff addons mcp_view)".
    mitmproxy has to run in the environment that mcpsniff is installed in: pipx inject mitmproxy mcpsniff, or uv tool
    install mitmproxy --with mcpsniff.
    """
    if sum([name is not None, hooks, faults, file is not None]) > 1:
        raise UsageError("give a name, --hooks, --faults or --lint, one of them")
    if hooks:
        from mcpsniff.hooks.table import hooks_text

        click.echo(hooks_text())
    elif faults:
        from mcpsniff.proxy.faults.kinds import listed

        click.echo(listed())
    elif file is not None:
        return _lint(file)
    elif name is not None:
        click.echo(path_of(name))
    else:
        for title, table in (("For --addon:", READY), ("For mitmproxy:", OF_MITMPROXY)):
            click.echo(title)
            for one, what in table.items():
                click.echo(f"  {path_of(one)}\n      {what}")
    return 0


def _lint(file: str) -> int:
    """Tell what an addon has, and what is likely wrong with it. Raises UsageError if it cannot be loaded."""
    from mcpsniff.cli.output import note
    from mcpsniff.hooks.addon import Addon
    from mcpsniff.hooks.lint import remarks
    from mcpsniff.transcript.safe import visible

    addon = Addon(resolved(file), note)
    with open(addon.path, "rb") as opened:
        found = remarks(opened.read(), addon.path)
    for line in _described(addon):
        click.echo(visible(line))
    for remark in found:
        click.echo(visible(f"{file}, line {remark.line}: {remark.text}"))
    return 1 if found else 0


def _described(addon: "Addon") -> list[str]:
    """What an addon has: hooks and options."""
    from mcpsniff.hooks.events import EDITING, HOOKS, OBSERVING

    names = {group: [n for n in addon.hooks if HOOKS[n].group == group] for group in (EDITING, OBSERVING)}
    lines = [f"{group}: {', '.join(found)}" for group, found in names.items() if found]
    if not lines:
        lines = ["no hook that would be called (mcpsniff addons --hooks lists them)"]
    if all(names.values()):
        lines.append("editing and observing hooks run in two processes: they share no variables")
    for option in addon.options:
        choices = f", one of {', '.join(option.choices)}" if option.choices else ""
        lines.append(f"option {option.name}: {option.kind_name}{choices}; default {option.default!r}. {option.help}")
    return lines
