"""`mcpsniff stdio`: the help and, for completeness, the command; `mcpsniff.__main__` runs it without click.

Built from the table in `mcpsniff.cli.options`, from which the fast path parses too.
"""

from typing import Any

import click

from mcpsniff.cli.options import STDIO
from mcpsniff.cli.tabled import Recording, click_option


def _run(**values: Any) -> int:
    from mcpsniff.proxy.stdio import wrap

    argv = list(values.pop("argv"))
    return wrap(argv, values)


command = Recording(
    "stdio",
    callback=_run,
    params=[
        *(click_option(option) for option in STDIO),
        click.Argument(["argv"], nargs=-1, required=True, metavar="-- COMMAND [ARG]...", type=click.UNPROCESSED),
    ],
    help=(
        "Run an MCP server and record what it and its client say.\n\n"
        "Put `mcpsniff stdio --` in front of the server's command in your client's configuration. Every byte passes"
        " unchanged; the exit status is the server's. Afterwards `mcpsniff show` tells what was said."
    ),
    context_settings={"allow_interspersed_args": False, "ignore_unknown_options": False},
)
