"""An addon that does to a call, or to its answer, what the name of its tool says."""

import time

import mcpsniff
from mcpsniff import Message

HELD = 0.3


def mcp_edit(message: Message) -> mcpsniff.Returned:
    tool = message.link.target if message.link is not None else None
    if message.kind == "request" and message.method == "tools/call":
        return of_call(message, tool)
    if message.kind in ("response", "error"):
        return of_answer(message, tool)
    if message.method == "notifications/secret":
        return None
    if message.method == "notifications/message":
        message.body["params"]["level"] = "debug"
    return message


def of_call(message: Message, tool: str | None) -> mcpsniff.Returned:
    if tool == "change-call":
        message.body["params"]["arguments"]["path"] = "/tmp"
    elif tool == "answer":
        return mcpsniff.refuse(message, "not today", why="closed")
    elif tool == "drop-call":
        return mcpsniff.Drop("lost")
    elif tool == "delay-call":
        time.sleep(HELD)
    elif tool == "notify-server":
        return [mcpsniff.notification("notifications/before"), message, mcpsniff.notification("notifications/after")]
    elif tool == "ask-server":
        return [mcpsniff.request("ping"), message]
    elif tool == "tell-client":
        return [mcpsniff.back(mcpsniff.notification("notifications/heard")), message]
    return message


def of_answer(message: Message, tool: str | None) -> mcpsniff.Returned:
    if tool == "change-answer":
        message.body["result"]["content"] = []
    elif tool == "delay-answer":
        time.sleep(HELD)
    elif tool == "notify-client":
        return [mcpsniff.notification("notifications/first"), message]
    elif tool == "ask-client":
        return [mcpsniff.request("ping"), message]
    return message
