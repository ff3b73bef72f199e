"""`mcpsniff http`: the help and, for completeness, the command; `mcpsniff.__main__` runs it without click.

Built from the table in `mcpsniff.cli.options`, from which the fast path parses too.
"""

from typing import Any

import click

from mcpsniff.cli.options import HTTP
from mcpsniff.cli.tabled import Recording, click_option


def _run(**values: Any) -> int:
    from mcpsniff.proxy.tcp import relay

    upstreams = list(values.pop("upstreams"))
    return relay(upstreams, values)


command = Recording(
    "http",
    callback=_run,
    params=[
        *(click_option(option) for option in HTTP),
        click.Argument(["upstreams"], nargs=-1, required=True, metavar="[NAME=]UPSTREAM...", type=click.UNPROCESSED),
    ],
    help=(
        "Stand in front of an MCP server that speaks HTTP, and record what it and its clients say.\n\n"
        "UPSTREAM is the server's URL, such as http://localhost:8000/mcp or https://example.com/mcp. Give your client"
        " the address that is printed in its place, which begins with http:// in any case. Every byte passes unchanged,"
        " on the legacy transport (HTTP with SSE) and on Streamable HTTP of every revision, and what is said is shown"
        " as it is said. With https:// bodies and headers pass unchanged; HTTP's framing is made anew. Several"
        " upstreams are told apart by NAME=.\n\n"
        "It runs until Ctrl-C or TERM. Then it writes a transcript beside the capture (unless that has more than"
        " 128 MiB), says where both are, and exits 0. That takes 9 seconds at most: a transcript that takes longer is"
        " still being written then. A second Ctrl-C waits for nothing.\n\n"
        "What it changes, it records: an absolute address in a legacy endpoint event, which would lead the client past"
        " it, and the Host of requests to another machine. If the server cannot be reached the client is"
        " told so by a 502 of mcpsniff."
    ),
)
