"""Which tools are called: what the live server declares now counts, and a capture may say what it likes."""

import json
from typing import Any

import pytest

from mcpsniff.protocol.message import Message
from mcpsniff.replay.send.outcome import LEFT_OUT, SAME
from tests.replay.sending import Server, of, send

READ_ONLY = {"readOnlyHint": True}


def dialogue(recorded: dict[str, Any] | None, *, lists_first: bool) -> str:
    tools = [{"name": "t", "inputSchema": {}, "annotations": recorded or {}}]
    asked = {"jsonrpc": "2.0", "id": 9, "method": "tools/list"}
    answered = {"jsonrpc": "2.0", "id": 9, "result": {"tools": tools}}
    listing = f"C> {json.dumps(asked)}\nS> {json.dumps(answered)}"
    call = """
C> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{}}}
S> {"jsonrpc":"2.0","id":1,"result":{"content":[]}}
"""
    return "@open 2025-11-25\n" + (f"{listing}{call}" if lists_first else f"{call.strip()}\n{listing}")


def server(live: dict[str, Any] | None) -> Any:
    """A server whose tool has these annotations; None: it does not list its tools."""

    def react(server: Server, message: Message) -> None:
        if message.id is None:
            return
        if message.method == "tools/list" and live is None:
            error = {"code": -32601, "message": "no"}
            server.say({"jsonrpc": "2.0", "id": json.loads(message.id), "error": error})
        elif message.method == "tools/list" and not message.params.get("cursor"):
            server.answer(message, {"tools": [], "nextCursor": "two"})
        elif message.method == "tools/list":
            server.answer(message, {"tools": [{"name": "t", "inputSchema": {}, "annotations": live}]})
        else:
            server.answer(message, {"content": []})

    return react


@pytest.mark.parametrize(
    ("live", "recorded", "is_called"),
    [
        (READ_ONLY, {}, True),
        ({}, READ_ONLY, False),
        ({"destructiveHint": True}, READ_ONLY, False),
        ({"destructiveHint": True, "readOnlyHint": True}, READ_ONLY, False),
        ({"readOnlyHint": "yes"}, READ_ONLY, False),
        (None, READ_ONLY, True),
        (None, {}, False),
    ],
)
@pytest.mark.parametrize("lists_first", [True, False])
def test_a_tool_is_called_if_it_is_declared_read_only_now(
    live: dict[str, Any] | None, recorded: dict[str, Any], is_called: bool, lists_first: bool
) -> None:
    outcome, live_server = send(dialogue(recorded, lists_first=lists_first), server(live), allow_writes=False)
    assert ("tools/call" in live_server.methods) == is_called
    call = of(outcome, "tools/call")
    assert call.state == (SAME if is_called else LEFT_OUT)
    assert bool(call.why) != is_called


def test_writes_that_are_allowed_are_made_and_nothing_is_asked_before() -> None:
    outcome, live_server = send(dialogue(None, lists_first=False), server({"destructiveHint": True}))
    assert live_server.methods[2] == "tools/call"
    assert of(outcome, "tools/call").state == SAME


def test_a_server_that_does_not_list_its_tools_is_asked_once() -> None:
    talk = "@open 2025-11-25\n" + "".join(
        f'C> {{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{{"name":"t","arguments":{{}}}}}}\n'
        f'S> {{"jsonrpc":"2.0","id":{number},"result":{{"content":[]}}}}\n'
        for number in range(1, 4)
    )

    def react(server: Server, message: Message) -> None:
        if message.method == "initialize":
            server.answer(message)

    _, live_server = send(talk, react, allow_writes=False, timeout=5)
    assert live_server.methods == ["initialize", "notifications/initialized", "tools/list"]


def test_a_tool_that_nobody_lists_is_not_called() -> None:
    talk = """
@open 2025-11-25
C> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{}}}
S> {"jsonrpc":"2.0","id":1,"result":{"content":[]}}
"""
    outcome, live_server = send(talk, server(None), allow_writes=False)
    assert "tools/call" not in live_server.methods
    assert of(outcome, "tools/call").state == LEFT_OUT
