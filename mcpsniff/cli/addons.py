"""`mcpsniff addons`: where the scripts for mitmproxy are."""

import os
from typing import Final

import click

import mcpsniff
from mcpsniff.errors import McpsniffError

ADDONS: Final = {
    "mcp_capture": "Writes captures in mitmdump, mitmproxy and mitmweb.",
    "mcp_view": "Shows MCP as annotated messages in the pages of mitmproxy and mitmweb.",
}


@click.command("addons")
@click.argument("name", required=False, type=click.Choice(list(ADDONS)), metavar="[mcp_capture|mcp_view]")
def command(*, name: str | None) -> None:
    """Print where the addons for mitmproxy are: all of them, or the path of one.

    For those who use mitmproxy anyway: mitmweb -s "$(mcpsniff addons mcp_capture)" -s "$(mcpsniff addons mcp_view)".
    mitmproxy has to run in the environment that mcpsniff is installed in: pipx inject mitmproxy mcpsniff, or uv tool
    install mitmproxy --with mcpsniff.
    """
    folder = _folder()
    if name is not None:
        click.echo(os.path.join(folder, f"{name}.py"))
        return
    for one, what in ADDONS.items():
        click.echo(f"{os.path.join(folder, one)}.py\n    {what}")


def _folder() -> str:
    """Return the folder of the addons: in the package, or beside it in a checkout."""
    package = os.path.dirname(os.path.abspath(mcpsniff.__file__))
    for folder in (os.path.join(package, "addons"), os.path.join(os.path.dirname(package), "addons")):
        if os.path.isfile(os.path.join(folder, "mcp_capture.py")):
            return folder
    raise McpsniffError("the addons are not installed with this copy of mcpsniff")
