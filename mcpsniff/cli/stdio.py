"""`mcpsniff stdio`: the help and, for completeness, the command; `mcpsniff.__main__` runs it without click.

Built from the table in `mcpsniff.cli.options`, from which the fast path parses too.
"""

from typing import Any

import click

from mcpsniff.cli.options import STDIO, Option


def _option(option: Option) -> click.Option:
    if option.metavar is None:
        return click.Option(option.spellings, is_flag=True, default=False, help=option.help)
    shown = option.default is not None
    return click.Option(
        option.spellings,
        metavar=option.metavar,
        type=option.kind,
        default=option.default,
        show_default=shown,
        help=option.help,
    )


def _run(**values: Any) -> int:
    from mcpsniff.proxy.stdio import wrap

    argv = list(values.pop("argv"))
    return wrap(argv, values)


command = click.Command(
    "stdio",
    callback=_run,
    params=[
        *(_option(option) for option in STDIO),
        click.Argument(["argv"], nargs=-1, required=True, metavar="-- COMMAND [ARG]...", type=click.UNPROCESSED),
    ],
    help=(
        "Run an MCP server and record what it and its client say.\n\n"
        "Put `mcpsniff stdio --` in front of the server's command in your client's configuration. Every byte passes"
        " unchanged; the exit status is the server's. Afterwards `mcpsniff show` tells what was said."
    ),
    context_settings={"allow_interspersed_args": False, "ignore_unknown_options": False},
)
