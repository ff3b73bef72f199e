"""Ends a session that has had enough: a limit for calls of tools, and for the bytes of what they answer.

mcpsniff stdio --addon budget.py --set budget_calls=50 --set budget_bytes=1000000 -- SERVER
"""

from collections import Counter

import mcpsniff
from mcpsniff import Loader, Message, Returned, ctx

calls: Counter[int] = Counter()
spent: Counter[int] = Counter()
"""Bytes of answers, by conversation."""


def load(loader: Loader) -> None:
    """Declare the options."""
    loader.add_option("budget_calls", int, 0, "Calls of tools in one session; 0: no limit.")
    loader.add_option("budget_bytes", int, 0, "Bytes of their answers in one session; 0: no limit.")


def mcp_edit(message: Message) -> Returned:
    """Count, and refuse what goes beyond."""
    session = message.conversation
    if message.kind == "request" and message.method == "tools/call":
        over = overdrawn(session)
        if over:
            return mcpsniff.refuse(message, f"The budget of this session is spent: {over}", why=over)
        calls[session] += 1
    elif message.link is not None and message.link.method == "tools/call" and message.kind in ("response", "error"):
        spent[session] += message.size
    return message


def overdrawn(session: int) -> str:
    """Which limit is reached; nothing if none is."""
    most_calls, most_bytes = ctx.options.budget_calls, ctx.options.budget_bytes
    if most_calls and calls[session] >= most_calls:
        return f"{calls[session]:,} of {most_calls:,} calls"
    if most_bytes and spent[session] >= most_bytes:
        return f"{spent[session]:,} of {most_bytes:,} bytes"
    return ""
