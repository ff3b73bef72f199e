"""Hides tools from the client, and refuses their calls as those of tools that do not exist.

mcpsniff stdio --addon block_tool.py --set block_tool=delete_* --set block_tool=shell -- SERVER
"""

from collections.abc import Sequence
from fnmatch import fnmatchcase

import mcpsniff
from mcpsniff import Loader, Message, Returned, ctx

UNKNOWN = -32602
"""What the MCP specification has servers say of a tool that they do not have (server/tools, error handling)."""


def load(loader: Loader) -> None:
    """Declare the options."""
    loader.add_option("block_tool", Sequence[str], [], "Names of tools; * stands for anything. May be set repeatedly.")


def mcp_edit(message: Message) -> Returned:
    """Change lists, refuse calls."""
    if message.method == "tools/call" and message.kind == "request":
        name = message.params.get("name")
        if is_blocked(name):
            return mcpsniff.refuse(message, f"Unknown tool: {name}", code=UNKNOWN, why=f"{name} is blocked")
    elif (
        message.link is not None
        and message.link.method == "tools/list"
        and isinstance(message.result.get("tools"), list)
    ):
        tools = message.body["result"]["tools"]
        tools[:] = [tool for tool in tools if not (isinstance(tool, dict) and is_blocked(tool.get("name")))]
    return message


def is_blocked(name: object) -> bool:
    """True if a tool of this name is not to be seen."""
    return isinstance(name, str) and any(fnmatchcase(name, pattern) for pattern in ctx.options.block_tool)
