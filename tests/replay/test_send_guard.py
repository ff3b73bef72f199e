"""Which tools are called: what the live server declares now counts, and a capture may say what it likes."""

import json
from typing import Any

import pytest

from mcpsniff.protocol.message import Message
from mcpsniff.replay.send.guard import Tools
from mcpsniff.replay.send.link import said
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


CALL = '"method":"tools/call","params":{"name":"t","arguments":{}}'
UNCLEAN = {
    name: text.replace("@", CALL)
    for name, text in {
        "no id": '{"jsonrpc":"2.0",@}',
        "escaped": '{"jsonrpc":"2.0","id":1,"method":"tools\\/\\u0063all","params":{"name":"t","arguments":{}}}',
        "in a batch": '[{"jsonrpc":"2.0","id":1,@}]',
        "in a batch in a batch": '[[{"jsonrpc":"2.0","id":1,@}]]',
        "something behind it": '{"jsonrpc":"2.0","id":1,@}xx',
        "two on a line": '{"jsonrpc":"2.0","id":1,"method":"ping"}{"jsonrpc":"2.0","id":2,@}',
        "method twice": '{"jsonrpc":"2.0","id":1,@,"method":"ping"}',
        "method in two cases": '{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call","params":{"name":"t"}}',
        "name twice": '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","name":"ok"}}',
        "in another case": '{"jsonrpc":"2.0","id":1,"method":"Tools/Call","params":{"name":"t"}}',
        "an answer": '{"jsonrpc":"2.0","id":1,"result":{},"Method":"tools/call","params":{"name":"t"}}',
        "between line ends": '{"jsonrpc":"2.0","id":1,"method":"ping","params":\r{"jsonrpc":"2.0","id":2,@}\r}',
        "an id that is none": '{"jsonrpc":"2.0","id":[1],@}',
        "a byte that is no text": '{"jsonrpc":"2.0","id":1,"x":"\udcff",@}',
    }.items()
}
HARMLESS = [
    '{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"doc://tools/call"}}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ok","arguments":{"text":"call tools"}}}',
    '{"jsonrpc":"2.0","id":1,"result":{"text":"calls of tools"}}',
    '{"jsonrpc":"2.0","id":1,"method":"ping"}xx',
    '[[{"jsonrpc":"2.0","id":1,"method":"ping"}]]',
]


def tools_with(declared: dict[str, Any]) -> Tools:
    tools = Tools([], allow_writes=False)
    listed = [{"name": name, "annotations": hints} for name, hints in declared.items()]
    (answer,) = said(json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"tools": listed}}).encode())
    tools.learn(answer)
    return tools


@pytest.mark.parametrize("how", UNCLEAN)
def test_no_text_that_some_server_may_take_for_a_call_is_sent(how: str) -> None:
    data = UNCLEAN[how].encode(errors="surrogateescape")
    assert tools_with({"t": {}, "ok": READ_ONLY}).why_not_text(data, said(data))
    for harmless in HARMLESS:
        data = harmless.encode()
        assert tools_with({"t": {}, "ok": READ_ONLY}).why_not_text(data, said(data)) is None, harmless


@pytest.mark.parametrize("how", ["no id", "in a batch", "in a batch in a batch", "something behind it", "method twice"])
def test_a_call_that_is_no_clean_request_is_told_in_a_row_of_its_own(how: str) -> None:
    talk = f'@open 2025-03-26\nC> {UNCLEAN[how]}\nC> {{"jsonrpc":"2.0","id":7,"method":"ping"}}'
    outcome, live_server = send(talk, server({}), allow_writes=False, timeout=1)
    assert not any(b"call" in data for data in live_server.raw)
    assert live_server.methods[-1] == "ping"
    rows = [one for one in outcome.outcomes if one.state == LEFT_OUT]
    assert len(rows) == 1, outcome
    assert rows[0].title


def test_what_belonged_to_a_call_that_is_left_out_is_not_missed() -> None:
    talk = """
@open 2025-11-25
C> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{}}}
S> a line that is no message
S> {"jsonrpc":"2.0","method":"notifications/message","params":{"data":"x"}}
S> {"jsonrpc":"2.0","id":1,"result":{"content":[]}}
"""
    outcome, _ = send(talk, server({}), allow_writes=False)
    assert outcome.outcomes[-1].state == LEFT_OUT
    assert outcome.said == []
