"""A recorded client against a live server: in which order it speaks, what it waits for, what it hands back."""

import json
from typing import Any

import pytest

from mcpsniff.protocol.message import Message
from mcpsniff.replay.send.hide import Hider
from mcpsniff.replay.send.outcome import DIFFERS, LEFT_OUT, NO_ANSWER, SAME, UNCOMPARED, UNSENT
from tests.replay.sending import Server, as_recorded, of, send, states
from tests.replay.staging import script_of

TWO_AT_ONCE = """
@open 2025-11-25
C> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{}}}
C> {"jsonrpc":"2.0", "id":"two","method":"tools/call","params":{"arguments":{},"name":"b"}}
S> {"jsonrpc":"2.0","id":"two","result":{"content":[]}}
S> {"jsonrpc":"2.0","id":1,"result":{"content":[]}}
C> {"jsonrpc":"2.0","id":2,"method":"ping"}
S> {"jsonrpc":"2.0","id":2,"result":{}}
"""


def test_what_was_said_is_said_again_byte_for_byte() -> None:
    script = script_of(TWO_AT_ONCE)
    outcome, server = send(script)
    assert server.raw == [m.raw for m in script.talks[0].messages if m.direction == "c2s"]
    assert states(outcome) == [SAME] * 4
    assert not outcome.differs
    at = server.methods.index("notifications/initialized")
    assert server.listened_after == [at, at + 1]  # before it, since servers speak at once, and after it if need be


def test_nothing_is_said_before_what_was_seen_has_come_and_what_overlapped_does_again() -> None:
    def react(server: Server, message: Message) -> None:
        if message.method is not None and message.id is not None:
            server.answer(message, {"content": []}, after={"tools/call": 2.0}.get(message.method, 0.5))

    _, server = send(TWO_AT_ONCE, react)
    # initialize, initialized, both calls, ping
    assert server.times == [0.0, 0.5, 0.5, 0.5, 2.5]


LISTS = """
@open 2025-11-25
C> {"jsonrpc":"2.0","id":1,"method":"tools/list"}
S> {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}
+ 3s
S> {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
C> {"jsonrpc":"2.0","id":2,"method":"tools/list"}
S> {"jsonrpc":"2.0","id":2,"result":{"tools":[]}}
"""


@pytest.mark.parametrize(("comes", "sent_at"), [(1.0, 1.0), (None, 6.0)])
def test_a_list_change_is_waited_for_but_not_for_ever(comes: float | None, sent_at: float) -> None:
    def react(server: Server, message: Message) -> None:
        as_recorded(script_of(LISTS))(server, message)
        if message.id == "1" and comes is not None:
            server.say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}, after=comes)

    outcome, server = send(LISTS, react)
    assert server.times[-1] == pytest.approx(sent_at, abs=0.01)
    assert outcome.said == (
        [] if comes else ["notifications/tools/list_changed: 1 of 1 did not come: #14 without params"]
    )


ASKS = """
@open 2025-11-25
C> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"greet","arguments":{}}}
S> {"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{}}}
C> {"jsonrpc":"2.0","id":0,"result":{"action":"accept","content":{"name":"Ada"}}}
S> {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"Ada"}]}}
"""


def asking(*questions: dict[str, Any]) -> Any:
    """A server that answers as recorded once its questions have been answered."""
    script = script_of(ASKS)

    def react(server: Server, message: Message) -> None:
        if message.method == "tools/call":
            for question in questions:
                server.say(question)
        if message.method is None and sum(m in ("response", "error") for m in server.methods) == len(questions):
            server.say({"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "Ada"}]}})
        elif message.method == "initialize":
            as_recorded(script)(server, message)

    return react


def question(number: Any, method: str = "elicitation/create", **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def test_the_server_is_answered_as_it_was_under_its_own_id() -> None:
    outcome, server = send(ASKS, asking(question("q-9", requestedSchema={}, message="Who?")))
    assert server.raw[-1] == b'{"jsonrpc":"2.0","id":"q-9","result":{"action":"accept","content":{"name":"Ada"}}}'
    assert states(outcome) == [SAME, SAME]


def test_another_question_of_the_same_kind_is_answered_and_told() -> None:
    outcome, server = send(ASKS, asking(question(7, requestedSchema={}, message="Who are you?")))
    assert json.loads(server.raw[-1])["result"]["action"] == "accept"
    (told,) = of(outcome, "tools/call").said
    assert told.startswith("the server asks something else with elicitation/create: #")
    assert outcome.differs


def test_a_question_that_was_not_recorded_gets_an_error_and_a_ping_an_answer() -> None:
    asked = [question(1, "roots/list"), question(2, "ping"), question(3, message="Who?", requestedSchema={})]
    outcome, server = send(ASKS, asking(*asked))
    said = {one["id"]: one for one in server.asked if "method" not in one}
    assert said[1]["error"]["code"] == -32601
    assert said[2]["result"] == {}
    text = "the server asked roots/list, which it did not when recorded, and was answered with an error: "
    assert any(one.startswith(text) for one in outcome.said)
    assert states(outcome) == [SAME, SAME]


def test_progress_on_a_question_names_the_token_of_the_live_server() -> None:
    dialogue = ASKS.replace('"message":"Who?"', '"message":"Who?","_meta":{"progressToken":5}').replace(
        'C> {"jsonrpc":"2.0","id":0,"result"',
        'C> {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":5,"progress":1}}\n'
        'C> {"jsonrpc":"2.0","id":0,"result"',
    )
    meta = {"progressToken": "p-7"}
    outcome, server = send(dialogue, asking(question("q", message="Who?", requestedSchema={}, _meta=meta)))
    told = [one["params"]["progressToken"] for one in server.asked if one.get("method") == "notifications/progress"]
    assert told == ["p-7"]
    assert not outcome.differs


def test_a_question_that_does_not_come_holds_nobody_up_and_is_told() -> None:
    outcome, server = send(ASKS)
    (told,) = of(outcome, "tools/call").said
    assert told.startswith("the server asked elicitation/create when recorded, and does not now: #")
    assert server.times[-1] < 1


PAGES = """
@open 2025-11-25
C> {"jsonrpc":"2.0","id":1,"method":"tools/list"}
S> {"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","inputSchema":{}}],"nextCursor":"old"}}
C> {"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"cursor":"old"}}
S> {"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"b","inputSchema":{}}]}}
C> {"jsonrpc":"2.0","id":3,"method":"resources/list","params":{"cursor":"old"}}
S> {"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"no such page"}}
"""


def paging(cursor: str | None) -> Any:
    script = script_of(PAGES)

    def react(server: Server, message: Message) -> None:
        if message.id == "1":
            tools = [{"name": "a", "inputSchema": {}}]
            server.answer(message, {"tools": tools, **({"nextCursor": cursor} if cursor else {})})
        else:
            as_recorded(script)(server, message)

    return react


def test_a_cursor_of_the_live_server_stands_where_the_recorded_one_did() -> None:
    outcome, server = send(PAGES, paging('new "one"'))
    assert server.raw[-2] == b'{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"cursor":"new \\"one\\""}}'
    assert server.asked[-1]["params"] == {"cursor": "old"}  # of another list: it came from nowhere
    assert states(outcome) == [SAME] * 4


def test_a_page_that_there_is_not_any_more_is_not_asked_for() -> None:
    outcome, server = send(PAGES, paging(None))
    assert states(outcome) == [SAME, DIFFERS, UNSENT, SAME]
    assert "there is none now" in outcome.outcomes[2].why
    assert len(server.sent) == 4


TASKS = """
@open 2025-11-25
C> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{},"task":{}}}
S> {"jsonrpc":"2.0","id":1,"result":{"task":{"taskId":"T-1","status":"working","ttl":null,"createdAt":"x","lastUpdatedAt":"x"}}}
C> {"jsonrpc":"2.0","id":2,"method":"tasks/result","params":{"taskId":"T-1"}}
S> {"jsonrpc":"2.0","id":2,"result":{"content":[],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"T-1"}}}}
"""  # noqa: E501


def test_a_task_is_named_as_the_live_server_names_it() -> None:
    script = script_of(TASKS)

    def react(server: Server, message: Message) -> None:
        if message.id == "1":
            task = {"taskId": "live-7", "status": "working", "ttl": None, "createdAt": "x", "lastUpdatedAt": "x"}
            server.answer(message, {"task": task})
        elif message.id == "2":
            meta = {"io.modelcontextprotocol/related-task": {"taskId": "live-7"}}
            server.answer(message, {"content": [], "_meta": meta})
        else:
            as_recorded(script)(server, message)

    outcome, server = send(script, react)
    assert server.asked[-1]["params"] == {"taskId": "live-7"}
    assert states(outcome) == [SAME] * 3


ROUNDS = """
@modern
C> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{},"_meta":$ENVELOPE}}
S> {"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"k1":{"method":"roots/list"}},"requestState":"s1"}}
C> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","arguments":{},"inputResponses":{"k1":{"roots":[]}},"requestState":"s1","_meta":$ENVELOPE}}
S> {"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","content":[]}}
"""  # noqa: E501


def test_the_state_and_the_names_of_input_are_handed_back_as_the_live_server_gave_them() -> None:
    script = script_of(ROUNDS)

    def react(server: Server, message: Message) -> None:
        if message.id == "1":
            asked = {"other": {"method": "roots/list"}}
            server.answer(message, {"resultType": "input_required", "inputRequests": asked, "requestState": "live"})
        else:
            as_recorded(script)(server, message)

    _, server = send(script, react)
    assert server.asked[-1]["params"]["requestState"] == "live"
    assert server.asked[-1]["params"]["inputResponses"] == {"other": {"roots": []}}


def test_an_answer_that_does_not_come_is_told_in_time_and_the_rest_goes_on() -> None:
    def react(server: Server, message: Message) -> None:
        if message.id != "1":
            as_recorded(script_of(TWO_AT_ONCE))(server, message)

    outcome, server = send(TWO_AT_ONCE, react, timeout=4)
    assert states(outcome) == [SAME, NO_ANSWER, SAME, SAME]
    assert of(outcome, "tools/call").why == "no answer within 4 s"
    assert server.times[-1] == 4.0


def test_progress_is_a_sign_of_life() -> None:
    dialogue = """
@open 2025-11-25
C> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{},"_meta":{"progressToken":"p"}}}
S> {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1}}
S> {"jsonrpc":"2.0","id":1,"result":{"content":[]}}
"""

    def react(server: Server, message: Message) -> None:
        if message.id == "1":
            told = {"jsonrpc": "2.0", "method": "notifications/progress"}
            server.say({**told, "params": {"progressToken": "p", "progress": 1}}, after=3)
            server.answer(message, {"content": []}, after=6)
        else:
            as_recorded(script_of(dialogue))(server, message)

    outcome, _ = send(dialogue, react, timeout=4)
    assert states(outcome) == [SAME, SAME]


def test_a_server_that_ends_midway_is_told_once_and_nothing_more_is_sent() -> None:
    def react(server: Server, message: Message) -> None:
        if message.id == "1":
            server.end("ended with SIGSEGV")
        else:
            as_recorded(script_of(TWO_AT_ONCE))(server, message)

    outcome, server = send(TWO_AT_ONCE, react)
    assert states(outcome) == [SAME, NO_ANSWER, UNSENT, UNSENT]
    assert outcome.said == ["the server ended with SIGSEGV before everything had been sent"]
    assert len(server.sent) == 3


CRASHED = TWO_AT_ONCE.strip().rsplit("\n", 1)[0] + "\nS> EXIT 1\n"


def test_a_server_that_ends_as_it_did_is_no_difference() -> None:
    def react(server: Server, message: Message) -> None:
        if message.method == "ping":
            server.end()
        else:
            as_recorded(script_of(CRASHED))(server, message)

    outcome, _ = send(CRASHED, react)
    assert not outcome.differs
    assert outcome.notes == ["the server ended with status 1, as recorded"]
    outcome, _ = send(CRASHED)
    assert outcome.said == ["the server ended by itself when recorded, and does not now"]


CANCELS = """
@open 2025-11-25
C> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","arguments":{}}}
+ 400ms
C> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}
C> {"jsonrpc":"2.0","id":2,"method":"ping"}
S> {"jsonrpc":"2.0","id":2,"result":{}}
"""


def test_a_cancel_keeps_its_distance_from_what_it_cancels() -> None:
    outcome, server = send(CANCELS)
    assert [round(t, 1) for t in server.times] == [0.0, 0.0, 0.0, 0.4, 0.4]
    assert states(outcome) == [SAME, SAME, SAME]
    assert outcome.outcomes[1].notes == ["cancelled, as recorded"]


def test_recorded_gaps_are_kept_where_they_are_asked_for() -> None:
    def react(server: Server, message: Message) -> None:
        if message.id is not None and message.method:
            server.answer(message, {"content": []}, after=0.2)

    dialogue = TWO_AT_ONCE.replace('C> {"jsonrpc":"2.0","id":2', '+ 5s\nC> {"jsonrpc":"2.0","id":2')
    for timing, gap in (("original", 5.0), ("x10", 0.5)):
        _, server = send(dialogue, react, timing=timing)
        assert server.times[-1] - server.times[-2] == pytest.approx(gap + 0.2, abs=0.01)


def test_differences_are_found_where_they_are_and_what_is_ignored_is_not() -> None:
    def react(server: Server, message: Message) -> None:
        if message.id == "1":
            server.answer(message, {"content": [], "isError": True})
        else:
            as_recorded(script_of(TWO_AT_ONCE))(server, message)

    outcome, _ = send(TWO_AT_ONCE, react)
    (difference,) = outcome.outcomes[1].differences
    assert (difference.path, difference.kind, difference.live) == (("result", "isError"), "added", True)
    assert states(outcome) == [SAME, DIFFERS, SAME, SAME]
    outcome, _ = send(TWO_AT_ONCE, react, ignore=("result.isError",))
    assert not outcome.differs


def test_what_was_never_answered_is_the_same_only_if_it_is_not_answered_now() -> None:
    dialogue = '@open 2025-11-25\nC> {"jsonrpc":"2.0","id":1,"method":"tools/list"}\nC> EOF\nS> EXIT 0'
    outcome, _ = send(dialogue)
    assert (states(outcome)[1], outcome.outcomes[1].notes) == (SAME, ["no answer, as recorded"])

    def react(server: Server, message: Message) -> None:
        if message.id is not None:
            server.answer(message, {"tools": []} if message.id == "1" else None)

    outcome, _ = send(dialogue, react)
    assert outcome.outcomes[1].said == ["it was not answered when recorded, and is answered now"]


def test_an_answer_that_the_capture_lacks_is_not_compared() -> None:
    outcome, _ = send('@open 2025-11-25\nC> {"jsonrpc":"2.0","id":1,"method":"tools/list"}')
    assert states(outcome) == [SAME, UNCOMPARED]


def test_a_conversation_that_was_joined_late_begins_with_a_handshake_of_our_own() -> None:
    dialogue = (
        '@late\nC> {"jsonrpc":"2.0","id":5,"method":"tools/list"}\nS> {"jsonrpc":"2.0","id":5,"result":{"tools":[]}}'
    )

    def react(server: Server, message: Message) -> None:
        if message.id is not None:
            server.answer(message, {"tools": []})

    outcome, server = send(dialogue, react)
    assert server.methods == ["initialize", "notifications/initialized", "tools/list"]
    assert states(outcome) == [SAME]
    assert "handshake" in outcome.notes[0]


def test_a_batch_goes_as_one_text() -> None:
    dialogue = """
@open 2025-03-26
C> [{"jsonrpc":"2.0","id":1,"method":"ping"}, {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"w","arguments":{}}}]
S> [{"jsonrpc":"2.0","id":2,"result":{"content":[]}},{"jsonrpc":"2.0","id":1,"result":{}}]
"""  # noqa: E501
    outcome, server = send(dialogue)
    assert server.raw[-1].startswith(b'[{"jsonrpc":"2.0","id":1,"method":"ping"}, {')
    assert states(outcome) == [SAME] * 3
    outcome, server = send(dialogue, allow_writes=False)
    assert json.loads(server.raw[-1]) == [{"jsonrpc": "2.0", "id": 1, "method": "ping"}]
    assert states(outcome) == [SAME, SAME, LEFT_OUT]


def test_two_clients_of_a_server_without_sessions_do_not_share_an_id_on_pipes() -> None:
    dialogue = """
@http
C> POST /mcp {"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":$ENVELOPE}}
C2> POST /mcp {"jsonrpc":"2.0","id":1,"method":"prompts/list","params":{"_meta":$ENVELOPE}}
S> 200 {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","tools":[]}}
S2> 200 {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","prompts":[]}}
"""

    def react(server: Server, message: Message) -> None:
        name = (message.method or "").partition("/")[0]
        server.answer(message, {"resultType": "complete", name: []}, after=1)

    outcome, server = send(dialogue, react)
    assert [one["id"] for one in server.asked] == [1, "mcpsniff-again-1"]
    assert states(outcome) == [SAME, SAME]


def test_hanging_up_cancels_over_http_and_words_do_on_pipes() -> None:
    dialogue = """
@http
C> POST /mcp {"jsonrpc":"2.0","id":"L","method":"subscriptions/listen","params":{"notifications":{},"_meta":$ENVELOPE}}
S> 200 STREAM
+ 100ms
C> EOF
"""
    silent = lambda _server, _message: None  # noqa: E731
    outcome, server = send(dialogue, silent, transport="http")
    assert [sent.data for sent in server.dropped] == server.raw[:1]
    outcome, server = send(dialogue, silent, transport="stdio")
    assert server.asked[-1] == {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "L"}}
    assert not outcome.differs


@pytest.mark.parametrize("was_recorded", [True, False])
def test_changes_of_lists_while_a_session_opens_over_http_count_for_nothing(was_recorded: bool) -> None:
    """Which comes first, the server's notification or the client's stream, is chance."""
    change = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    lines = [
        "@http\n@open 2025-11-25\nC2> GET /mcp\nS2> 200 STREAM",
        *([f"S2> EVENT {json.dumps(change)}"] if was_recorded else []),
        'C> POST /mcp {"jsonrpc":"2.0","id":77,"method":"ping"}\nS> 200 {"jsonrpc":"2.0","id":77,"result":{}}',
    ]
    script = script_of("\n".join(lines) + "\n")
    opening = script.talks[0].opening
    assert opening is not None
    assert opening.answer is not None
    agreed = opening.answer.body

    def react(server: Server, message: Message) -> None:
        if message.method == "initialize":
            server.say(agreed)
            if not was_recorded:
                server.say(change)
        elif message.method == "ping":
            server.say({"jsonrpc": "2.0", "id": 77, "result": {}})

    outcome, _ = send(script, react, transport="http")
    assert states(outcome) == [SAME, SAME]
    assert not outcome.differs
    assert [note for note in outcome.notes if "tools/list_changed" in note] != []


def test_what_http_refused_is_the_same_if_it_is_refused_alike() -> None:
    dialogue = """
@http
C> POST /mcp {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
S> 401 Unauthorized
"""  # noqa: E501

    def refusing(status: int) -> Any:
        return lambda server, _message: server.refuse(server.sent[-1], status)

    outcome, _ = send(dialogue, refusing(401), transport="http")
    assert states(outcome) == [SAME]
    outcome, _ = send(dialogue, refusing(403), transport="http")
    assert outcome.outcomes[0].said == ["HTTP refused it with 403, and with 401 when recorded"]
    outcome, _ = send(dialogue, lambda server, message: server.answer(message), transport="stdio")
    assert states(outcome) == [UNCOMPARED]


TOLD = """
@open 2025-11-25
C> {"jsonrpc":"2.0","id":1,"method":"ping"}
S> {"jsonrpc":"2.0","method":"notifications/message","params":{"data":"one"}}
S> {"jsonrpc":"2.0","method":"notifications/message","params":{"data":"two"}}
S> {"jsonrpc":"2.0","id":1,"result":{}}
"""


def test_what_came_unasked_is_told_with_what_it_says_and_where() -> None:
    def react(server: Server, message: Message) -> None:
        if message.method != "ping":
            as_recorded(script_of(TOLD))(server, message)
            return
        for number in range(6):
            server.say(question(f"q{number}", "sampling/createMessage", maxTokens=5))
        server.say({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "two"}})
        server.say({"jsonrpc": "2.0", "method": "notifications/x", "params": {"y": "z" * 200}})
        server.answer(message)

    outcome, _ = send(TOLD, react)
    asked, missing, new = outcome.said
    assert 'with an error: {"maxTokens": 5} near #9 (6 times)' in asked
    assert missing == 'notifications/message: 1 of 2 did not come: #11 {"data": "one"}'
    assert new.startswith('notifications/x: 1 came that was not recorded: {"y": "zzz')
    assert new.endswith("… near #9")
    told = [one.as_dict(Hider([], bytes)) for one in outcome.unasked]
    assert told[0] == {
        "kind": "new",
        "method": "sampling/createMessage",
        "near": 9,
        "live": {"maxTokens": 5},
        "count": 6,
    }
    assert told[1]["n"] == 11
    assert told[2]["live"] == {"y": "z" * 200}


def test_less_is_waited_for_a_server_that_gives_no_sign_of_life() -> None:
    talk = "@open 2025-11-25\n" + "".join(
        f'C> {{"jsonrpc":"2.0","id":{number},"method":"ping"}}\nS> {{"jsonrpc":"2.0","id":{number},"result":{{}}}}\n'
        for number in range(1, 9)
    )

    def react(server: Server, message: Message) -> None:
        if message.id == "6":
            server.say({"jsonrpc": "2.0", "method": "notifications/message", "params": {}})
        elif message.method != "ping":
            as_recorded(script_of(talk))(server, message)

    outcome, server = send(talk, react)
    assert [later - before for before, later in zip(server.times[2:], server.times[3:], strict=False)] == pytest.approx(
        [30, 30, 30, 1, 1, 30, 30], abs=0.1
    )
    assert [one.why for one in outcome.outcomes[3:5]] == ["no answer within 30 s", "no answer within 1 s"]
    assert any("no sign of life" in note for note in outcome.notes)


def test_what_was_said_after_the_session_had_been_ended_is_said_after_that() -> None:
    pings = [f'C> POST /mcp {{"jsonrpc":"2.0","id":{number},"method":"ping"}}' for number in (1, 2)]
    script = script_of(
        "\n".join(
            [
                "@http",
                "@open 2025-11-25 S-1",
                pings[0],
                'S> 200 {"jsonrpc":"2.0","id":1,"result":{}}',
                "C> DELETE /mcp",
                "S> 204",
                pings[1],
                "S> 404 gone",
            ]
        )
    )
    _, server = send(script, transport="http")
    assert server.left_after == 3
    assert len(server.sent) == 4


def test_a_path_at_which_nothing_is_is_told() -> None:
    def react(server: Server, message: Message) -> None:
        server.refuse(server.sent[-1], 404)

    outcome, _ = send(LISTS, react, transport="http")
    assert any("the URL's path is probably not that of the server" in note for note in outcome.notes)


def test_an_id_of_another_type_is_told_once_and_nobody_waits() -> None:
    def react(server: Server, message: Message) -> None:
        if message.method == "ping":
            server.say({"jsonrpc": "2.0", "id": str(message.id), "result": {}})
        else:
            as_recorded(script_of(TOLD))(server, message)

    dialogue = '@open 2025-11-25\nC> {"jsonrpc":"2.0","id":1,"method":"ping"}\nS> {"jsonrpc":"2.0","id":1,"result":{}}'
    outcome, _ = send(dialogue, react)
    assert of(outcome, "ping").said == [
        'the answer has the id "1", which is of another type than 1, that of the request'
    ]
    assert outcome.said == []


def listed(number: int, names: str, cursor: str | None, following: str | None) -> str:
    asked = {
        "jsonrpc": "2.0",
        "id": number,
        "method": "tools/list",
        **({"params": {"cursor": cursor}} if cursor else {}),
    }
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
    result = {"tools": tools, **({"nextCursor": following} if following else {})}
    return f"C> {json.dumps(asked)}\nS> {json.dumps({'jsonrpc': '2.0', 'id': number, 'result': result})}\n"


@pytest.mark.parametrize(
    ("pages", "found"),
    [
        (("abc", "d"), [SAME, SAME, SAME]),
        (("abcd", None), [SAME, SAME, UNCOMPARED]),
        (("abx", "d"), [SAME, DIFFERS, DIFFERS]),
    ],
)
def test_what_has_moved_to_another_page_is_no_difference(pages: tuple[str, str | None], found: list[str]) -> None:
    recorded = "@open 2025-11-25\n" + listed(1, "ab", None, "two") + listed(2, "cd", "two", None)
    first, second = pages
    live = listed(1, first, None, "zwei" if second else None) + (listed(2, second, "zwei", None) if second else "")
    outcome, _ = send(recorded, as_recorded(script_of("@open 2025-11-25\n" + live)))
    assert states(outcome) == found
