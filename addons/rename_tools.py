"""Shows tools to the client under other names; the server keeps its own.

mcpsniff stdio --addon rename_tools.py --set rename_tool=search=find --set rename_prefix=docs_ -- SERVER
"""

from collections.abc import Sequence

from mcpsniff import Loader, Message, ctx


def load(loader: Loader) -> None:
    """Declare the options."""
    loader.add_option("rename_tool", Sequence[str], [], "OLD=NEW. May be set repeatedly.")
    loader.add_option("rename_prefix", str, "", "What all other names are to begin with.")


def mcp_edit(message: Message) -> Message:
    """Change the names in lists for the client, and in calls for the server."""
    link = message.link
    if message.kind == "request" and message.method == "tools/call":
        name = message.params.get("name")
        if isinstance(name, str) and old_name(name) != name:
            message.body["params"]["name"] = old_name(name)
    elif link is not None and link.method == "tools/list" and isinstance(message.result.get("tools"), list):
        for tool in message.body["result"]["tools"]:
            if isinstance(tool, dict) and isinstance(tool.get("name"), str):
                tool["name"] = new_name(tool["name"])
    return message


def new_name(old: str) -> str:
    """The name that the client knows."""
    return renamed().get(old, f"{ctx.options.rename_prefix}{old}")


def old_name(new: str) -> str:
    """The name that the server knows."""
    back = {name: old for old, name in renamed().items()}
    return back.get(new, new.removeprefix(ctx.options.rename_prefix))


def renamed() -> dict[str, str]:
    """The names that were set, by the server's."""
    pairs = (word.partition("=") for word in ctx.options.rename_tool)
    return {old: new for old, _, new in pairs}
