"""`mcpsniff run`: the command and its help, from the table in `mcpsniff.cli.options`."""

from typing import Any

import click

from mcpsniff.cli.options import RUN
from mcpsniff.cli.tabled import Recording, click_option
from mcpsniff.errors import UsageError


def _run(**values: Any) -> int:
    argv = list(values.pop("argv"))
    if not argv[0]:
        raise UsageError("no command given; usage: mcpsniff run [options] -- CLIENT [ARG...]")
    from mcpsniff.proxy.client import launch

    values["only"] = list(values["only"])
    return launch(argv, values)


command = Recording(
    "run",
    callback=_run,
    params=[
        *(click_option(option) for option in RUN),
        click.Argument(["argv"], nargs=-1, required=True, metavar="-- CLIENT [ARG]...", type=click.UNPROCESSED),
    ],
    help=(
        "Run an MCP client, and record what it says over HTTP, TLS too.\n\n"
        "CLIENT is the command that starts it. Its environment is set so that it uses a proxy of mcpsniff and trusts"
        " its certificates: HTTP_PROXY and its kin, NODE_USE_ENV_PROXY, NODE_EXTRA_CA_CERTS, and, with mcpsniff's"
        " authority added to what is in force, SSL_CERT_FILE, REQUESTS_CA_BUNDLE, CURL_CA_BUNDLE and the like. The"
        " server keeps its address, so OAuth works as without mcpsniff. Only what is MCP is recorded, and the OAuth"
        " that belongs to it; everything else passes.\n\n"
        "Streams, terminal, signals and exit status are the client's (128 + N after signal N; 127 if the command is not"
        " found, 126 if it cannot be run). At the end stderr tells what was seen; and if that is nothing, why that may"
        " be, and what to do instead."
    ),
    context_settings={"allow_interspersed_args": False, "ignore_unknown_options": False},
)
