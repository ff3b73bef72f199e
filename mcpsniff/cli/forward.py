"""`mcpsniff forward`: the command and its help, from the table in `mcpsniff.cli.options`."""

from typing import Any

import click

from mcpsniff.cli.options import FORWARD
from mcpsniff.cli.tabled import Recording, click_option
from mcpsniff.errors import UsageError


def _run(**values: Any) -> int:
    words = values.pop("words")
    if words:
        way = "; a server's address goes to mcpsniff http URL, a client's command to mcpsniff run -- CLIENT"
        raise UsageError(f"mcpsniff forward takes options only, not {words[0]}{way}")
    from mcpsniff.proxy.mitm.standing import stand

    values["only"] = list(values["only"])
    return stand(values)


command = Recording(
    "forward",
    callback=_run,
    params=[
        *(click_option(option) for option in FORWARD),
        click.Argument(["words"], nargs=-1, metavar="", type=click.UNPROCESSED),
    ],
    help=(
        "Be an HTTP proxy for MCP clients, look into TLS, and record what is MCP.\n\n"
        "Give your client the address that is printed as its proxy, and let it trust mcpsniff's certificates (mcpsniff"
        " ca tells how). Servers keep their own addresses, so OAuth works as without mcpsniff. mcpsniff run does both"
        " for a client that it starts.\n\n"
        "Recorded is what is MCP by what it says: JSON-RPC, event streams that carry it, requests with headers of MCP,"
        " and the OAuth that belongs to a server of MCP. Everything else passes and is never written down; what is not"
        " HTTP, and what --only leaves out, passes untouched.\n\n"
        "It runs until Ctrl-C or TERM. Then it writes a transcript beside the capture, says where both are, and exits"
        " 0. A second Ctrl-C waits for nothing."
    ),
)
