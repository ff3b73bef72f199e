"""An addon that does to a request, or to what answers it, what the name of its method says."""

import asyncio
from typing import Any

import mcpsniff
from mcpsniff import Message
from mcpsniff.hooks import actions

NOTE = mcpsniff.notification("notifications/made")


def mcp_edit(message: Message) -> Any:
    asked = message.method if message.kind == "request" else message.link.method if message.link else message.method
    direction, _, what = (asked or "").partition("/")
    if direction != ("ask" if message.frame.direction == "c2s" else "say"):
        return message
    return act(message, what)


def act(message: Message, what: str) -> Any:
    body = message.body
    if what == "change":
        body.get("params", body.get("result"))["more"] = "é" * 10
    elif what == "rename":
        body["params"]["name"] = "ünlike"
        body["params"]["arguments"]["region"] = "eu"
    elif what == "status":
        return actions.HttpAnswer(429, [("Retry-After", "3")], b"slow down", "too many")
    elif what == "raw":
        return actions.Raw(b"\xff\xfe", "noise")
    elif what == "cut":
        return actions.Cut(message, 12, "torn")
    elif what == "slow":
        return actions.Paced(message, 400, "slow")
    elif what == "stall":
        return actions.Stall("asleep")
    elif what == "break":
        return actions.Disconnect("broken")
    elif what == "headers":
        return actions.Headed(message, {"X-New": "1", "X-Old": None}, "headers")
    elif what == "drop":
        return None
    elif what == "besides":
        return [NOTE, message]
    elif what == "before":
        return [mcpsniff.notification("notifications/before"), message]
    elif what == "answer":
        return mcpsniff.answer(message, {"by": "hook"})
    elif what == "hold":
        return held(message)
    return message


async def held(message: Message) -> Message:
    await asyncio.sleep(1.5)
    return message


def mcp_edit_head(head: actions.HttpHead) -> None:
    if head.get("Authorization") is not None and head.target == "/secret":
        head.set("Authorization", "Bearer other-secret-2")
    if head.get("X-Set") is not None:
        head.set("X-Set", f"{head.direction} {head.message.method if head.message else None}")
