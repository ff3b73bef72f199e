"""The addons that come with mcpsniff: in the package, or beside it in a checkout."""

import os
from typing import Final

import mcpsniff
from mcpsniff.errors import McpsniffError

READY: Final = {
    "approve": "Asks before each call of a tool, and refuses it without a yes.",
    "block_tool": "Hides tools from the client, and refuses their calls.",
    "budget": "Limits the calls of tools in a session, and the bytes of what they answer.",
    "count_methods": "Counts what was asked, and prints a table at the end.",
    "inject_trace": "Gives requests without one a trace context.",
    "mask_secrets": "Puts stars in the place of secrets in what server and client say.",
    "record_fixture": "Writes answered requests as JSON files, for tests.",
    "rename_tools": "Shows tools to the client under other names.",
    "slow_calls": "Says which requests took long.",
}
"""For ``--addon``."""
OF_MITMPROXY: Final = {
    "mcp_capture": "Writes captures in mitmdump, mitmproxy and mitmweb, and calls the hooks of other addons.",
    "mcp_view": "Shows MCP as annotated messages in the pages of mitmproxy and mitmweb.",
    "faults": "Does faults to messages, beside mcp_capture; mcpsniff itself has --fault.",
}
"""For ``-s`` of mitmproxy."""


def path_of(name: str) -> str:
    """The file of the addon of that name. Raises McpsniffError if it is not installed."""
    package = os.path.dirname(os.path.abspath(mcpsniff.__file__))
    for folder in (os.path.join(package, "addons"), os.path.join(os.path.dirname(package), "addons")):
        path = os.path.join(folder, f"{name}.py")
        if os.path.isfile(path):
            return path
    raise McpsniffError("the addons are not installed with this copy of mcpsniff")


def resolved(file: str) -> str:
    """``file``, or the one that comes with mcpsniff if there is no such file and the name is that of a ready addon."""
    name = file.removesuffix(".py")
    return path_of(name) if name in READY and not os.path.exists(file) else file
