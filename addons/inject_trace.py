"""Gives requests without one a trace context (W3C Trace Context, as `_meta` of MCP carries it): one trace a session.

mcpsniff http --addon inject_trace.py URL
"""

import secrets

from mcpsniff import Message

traces: dict[int, str] = {}
"""The trace of each conversation, 16 bytes in hex."""


def mcp_edit(message: Message) -> Message:
    """Add ``traceparent`` to the params of a request."""
    if message.kind != "request" or not isinstance(message.body.get("params", {}), dict):
        return message
    meta = message.body.setdefault("params", {}).setdefault("_meta", {})
    if isinstance(meta, dict) and "traceparent" not in meta:
        trace = traces.setdefault(message.conversation, secrets.token_hex(16))
        meta["traceparent"] = f"00-{trace}-{secrets.token_hex(8)}-01"
    return message
