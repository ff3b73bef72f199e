"""A capture is served to live clients: what belongs to a message follows it, with the ids of the client."""

import asyncio
import json

import pytest

from mcpsniff.protocol.reading import JsonReader
from mcpsniff.replay.serve.heard import live_messages
from mcpsniff.replay.serve.made_up import invalid_answer
from tests.replay.staging import Client, answer, call, message_of, note, on_stage, request, script_of, told

OPEN = "@open 2025-11-25\n"
INITIALIZE = request(1, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "other"})


def test_the_answer_has_the_clients_id_in_its_spelling_and_is_else_as_recorded() -> None:
    """B120."""
    script = script_of(
        OPEN
        + 'C> {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"t"}}\n'
        + 'S> {"result": {"z":1.0, "a":[1e2,"caf\\u00e9"],  "a":2} , "id" :3,"jsonrpc":"2.0"}\n'
    )

    async def act(client: Client) -> None:
        for spelt in ('"k-9"', "17", '"a\\u0062"', "12345678901234567890123", "-0"):
            client.hear('{"jsonrpc":"2.0","id":' + spelt + ',"method":"tools/call","params":{"name":"t"}}')
            await asyncio.sleep(0.1)
            wanted = '{"result": {"z":1.0, "a":[1e2,"caf\\u00e9"],  "a":2} , "id" :' + spelt + ',"jsonrpc":"2.0"}'
            assert client.raw == [wanted.encode()]
            assert client.out[0].is_answer
            client.out.clear()

    on_stage(script, act)


def test_equal_requests_get_one_answer_after_the_other_and_then_the_last_again() -> None:
    """B118."""
    script = OPEN + "".join(
        f'C> {{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{{"name":"t","arguments":{{}}}}}}\n'
        f'S> {{"jsonrpc":"2.0","id":{number},"result":{{"content":"{said}"}}}}\n'
        for number, said in ((1, "bar"), (2, "whee"))
    )
    came = told(script, [call(7), call(8), call(9)])
    assert [(one["id"], one["result"]["content"]) for one in came] == [(7, "bar"), (8, "whee"), (9, "whee")]


def test_a_request_that_was_never_recorded_is_refused_at_once_and_the_session_goes_on() -> None:
    """B123."""
    script = OPEN + f"C> {json.dumps(call(3, 'echo', text='a'))}\nS> {json.dumps(answer(3, content=[]))}\n"

    async def act(client: Client) -> None:
        (refused,) = await client.say(request(1, "server/discover"))
        assert refused["id"] == 1
        assert refused["error"]["code"] == -32601
        assert "server/discover" in refused["error"]["message"]
        assert "not in the capture" in refused["error"]["message"]
        (opened,) = await client.say({**INITIALIZE, "id": 2})
        assert (opened["id"], opened["result"]["protocolVersion"]) == (2, "2025-11-25")

        (other,) = await client.say(call("x", "echo", text="b", more=[1]))
        error = other["error"]
        assert (other["id"], error["code"]) == ("x", -32602)
        assert "#9, differs in params.arguments.text (" in error["message"]
        assert ", params.arguments.more (" in error["message"]
        assert error["data"]["asked"]["params"]["arguments"] == {"text": "b", "more": [1]}
        assert error["data"]["nearest"]["n"] == 9
        assert error["data"]["differences"][0] == {
            "path": "params.arguments.text",
            "kind": "changed",
            "recorded": "a",
            "live": "b",
        }
        (found,) = await client.say(call(4, "echo", text="a"))
        assert found == answer(4, content=[])

    stage = on_stage(script, act)
    assert stage.matcher.missed == 1, "that a legacy server knows no server/discover is no miss"
    assert stage.tally.served == 2


def test_a_miss_says_what_to_do_and_which_names_there_are_and_what_was_redacted() -> None:
    recorded = [call(3, "echo", who="redacted-email-1@example.invalid"), call(4, "other", a=1), call(5, "other", a=2)]
    script = OPEN + "".join(f"C> {json.dumps(one)}\nS> {json.dumps(answer(one['id']))}\n" for one in recorded)
    asked = [call(6, "echo", who="a@b.c"), call(7, "othre", a=1), call(8, "other", a=1, **{"x y": 2})]
    redacted, renamed, more = (one["error"] for one in told(script, asked))
    assert redacted["message"].endswith(
        'differs in params.arguments.who (now "a@b.c", recorded "redacted-email-1@example.invalid",'
        " which stands for what `mcpsniff redact` has removed)"
    )
    assert redacted["data"]["hint"].startswith("--ignore params.arguments.who, or --match method, takes it for")
    assert renamed["message"] == "tools/call othre is not in the capture: tools/call was recorded only for echo, other"
    assert "hint" not in renamed["data"]
    assert more["message"].endswith("""differs in params.arguments["x y"] (now 2, not there when it was recorded)""")
    assert more["data"]["hint"].startswith("--ignore 'params.arguments[\"x y\"]', or")


def test_a_miss_is_answered_briefly_however_much_was_asked() -> None:
    script = OPEN + f"C> {json.dumps(call(3, 'echo', text='a'))}\nS> {json.dumps(answer(3))}\n"
    (refused,) = told(script, [call(1, "echo", text="x" * 1_000_000, **{f"m{n}": n for n in range(500)})])
    assert len(json.dumps(refused)) < 20_000
    assert "and 498 more" in refused["error"]["message"]


PROGRESS = (
    OPEN
    + 'C> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":"p"}}}\n'
    + 'S> {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1}}\n'
    + 'S> {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"q","progress":1}}\n'
    + 'S> {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}\n'
    + 'S> {"jsonrpc":"2.0","id":1,"result":{}}\n'
)


@pytest.mark.parametrize("token", ["p1", 0, 77, "p"])
def test_progress_has_the_token_that_the_client_offers(token: str | int) -> None:
    asked = request(5, "tools/call", name="t", _meta={"progressToken": token})
    first, second, log, last = told(PROGRESS, [asked])
    assert first["params"] == {"progressToken": token, "progress": 1}
    assert second["params"]["progressToken"] == "q", "a token that nobody had offered stays as wrong as it was"
    assert (log["method"], last) == ("notifications/message", answer(5))


@pytest.mark.parametrize("meta", [{}, {"_meta": {}}, {"_meta": 7}, {"_meta": {"progressToken": None}}])
def test_whoever_offers_no_token_gets_no_progress(meta: dict[str, object]) -> None:
    came = told(PROGRESS, [request(5, "tools/call", name="t", **meta)])
    assert [one.get("params", {}).get("progressToken") for one in came] == ["q", None, None]


SAMPLING = (
    OPEN
    + 'C> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}\n'
    + 'S> {"jsonrpc":"2.0","id":0,"method":"sampling/createMessage","params":{"maxTokens":1}}\n'
    + "+ 2s\n"
    + 'C> {"jsonrpc":"2.0","id":0,"result":{"role":"user","content":{"type":"text","text":"so"}}}\n'
    + 'S> {"jsonrpc":"2.0","id":1,"result":{}}\n'
)


def test_a_request_of_the_server_is_sent_and_its_answer_awaited_and_compared() -> None:
    async def act(client: Client) -> None:
        (asked,) = await client.say(call(9, arguments=None) | {"params": {"name": "t"}})
        assert (asked["id"], asked["method"]) == (0, "sampling/createMessage")
        await asyncio.sleep(5)
        assert client.take() == [], "the answer of the client is awaited"
        same = {"content": {"text": "so", "type": "text"}, "role": "user"}
        assert await client.say(answer(0, **same)) == [answer(9)]

        (again,) = await client.say({**call(10), "params": {"name": "t"}})
        assert again["id"] == 1, "its id was used before in this session"
        assert await client.say({"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": "no"}}) == [answer(10)]

        assert await client.say(answer(55), answer(0)) == []

    stage = on_stage(SAMPLING, act)
    assert stage.tally.answers_same == 1
    (other,) = stage.tally.answers
    assert {one.path[0] for one in other.differences} == {"result", "error"}
    assert stage.tally.stray == 2


def test_a_client_that_does_not_answer_is_given_up_after_a_while() -> None:
    async def act(client: Client) -> None:
        await client.say({**call(9), "params": {"name": "t"}})
        await asyncio.sleep(2.99)
        assert client.take() == []
        await asyncio.sleep(0.02)
        assert client.take() == [answer(9)]

    stage = on_stage(SAMPLING, act, timeout=3.0)
    assert [one.live for one in stage.tally.answers] == [None]


def test_two_clients_may_be_asked_under_the_same_id() -> None:
    script = script_of(SAMPLING)

    async def act(client: Client) -> None:
        other = Client(client.stage)
        ask = {**call(9), "params": {"name": "t"}}
        assert [one["id"] for one in await client.say(ask)] == [0]
        assert [one["id"] for one in await other.say(ask)] == [0]
        assert await client.say(answer(0)) == [answer(9)]
        assert other.take() == []

    on_stage(script, act)


CANCELLED = (
    OPEN
    + 'C> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":1}}}\n'
    + 'S> {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}\n'
    + "+ 1s\n"
    + 'S> {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":2}}\n'
    + "+ 1s\n"
    + 'C> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}\n'
    + 'S> {"jsonrpc":"2.0","id":1,"result":{"late":true}}\n'
)
ASK = request("a", "tools/call", name="t", _meta={"progressToken": 1})


def test_a_recorded_cancel_is_awaited() -> None:
    async def act(client: Client) -> None:
        assert [one["method"] for one in await client.say(ASK)] == ["notifications/progress"] * 2
        await asyncio.sleep(10)
        assert client.take() == []
        assert await client.say(note("cancelled", requestId="a")) == [answer("a", late=True)]

    stage = on_stage(CANCELLED, act)
    assert stage.tally.uncancelled == []


def test_a_cancel_that_comes_earlier_than_recorded_leaves_out_what_came_before_it() -> None:
    async def act(client: Client) -> None:
        assert len(await client.say(ASK)) == 0
        await asyncio.sleep(0.01)
        assert len(client.take()) == 1
        client.hear(note("cancelled", requestId="a"))
        await asyncio.sleep(5)
        assert client.take() == [answer("a", late=True)]

    on_stage(CANCELLED, act, timing="original")


def test_a_client_that_does_not_cancel_gets_what_came_after_it_in_the_end() -> None:
    async def act(client: Client) -> None:
        await client.say(ASK)
        await asyncio.sleep(4)
        assert client.take() == [answer("a", late=True)]

    stage = on_stage(CANCELLED, act, timeout=3.0)
    assert [message.method for message in stage.tally.uncancelled] == ["tools/call"]


def test_a_cancel_that_was_not_recorded_stops_what_it_names() -> None:
    async def act(client: Client) -> None:
        client.hear({**call(5), "params": {"name": "t", "_meta": {"progressToken": 1}}})
        await asyncio.sleep(0.001)
        await client.say(note("cancelled", requestId=5), note("cancelled", requestId=6))
        await asyncio.sleep(60)
        assert client.take() == []

    stage = on_stage(PROGRESS, act, timing="original")
    assert stage.tally.stopped == 1
    assert stage.tally.unheard == 1


def test_a_cancel_of_the_server_names_the_live_id() -> None:
    script = (
        OPEN
        + 'C> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}\n'
        + 'S> {"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"message":"?"}}\n'
        + 'S> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"e"}}\n'
        + 'S> {"jsonrpc":"2.0","id":1,"result":{}}\n'
    )
    ask = {**call(9), "params": {"name": "t"}}
    first, second, _, again, cancel, _ = told(script, [ask, ask])
    assert (first["id"], second["params"]["requestId"]) == ("e", "e")
    assert (again["id"], cancel["params"]["requestId"]) == ("e-2", "e-2")


def test_wrong_ids_stay_wrong_in_their_way() -> None:
    script = (
        OPEN
        + 'C> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}\n'
        + 'S> {"jsonrpc":"2.0","id":"1","result":{"twin":1}}\n'
        + 'S> {"jsonrpc":"2.0","id":4711,"result":{"unknown":1}}\n'
        + 'C> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"float"}}\n'
        + 'S> {"jsonrpc":"2.0","id":2.0,"result":{"float":1}}\n'
        + 'S> {"jsonrpc":"2.0","id":2,"result":{"twice":1}}\n'
        + 'C> {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"none"}}\n'
        + 'S> {"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"x"}}\n'
        + "C> EOF\nS> EXIT 0\n"
    )

    async def act(client: Client) -> None:
        twin, unknown = await client.say({**call(70), "params": {"name": "t"}})
        assert (twin["id"], unknown["id"]) == ("70", 4711)
        (twin, _) = await client.say({**call("71"), "params": {"name": "t"}})
        assert (twin["id"], type(twin["id"])) == (71, int)
        client.hear({**call(80), "params": {"name": "float"}})
        await asyncio.sleep(0.1)
        assert [b'"id":80.0,' in client.raw[0], b'"id":80,' in client.raw[1]] == [True, True]
        client.take()
        (none,) = await client.say({**call(90), "params": {"name": "none"}})
        assert none["id"] is None

    on_stage(script, act)


@pytest.mark.parametrize("answered", ['"result":{},"error":null', '"result":null,"error":{"code":1}', '"x":1'])
def test_an_answer_that_is_none_ends_the_request_under_the_clients_id(answered: str) -> None:
    script = OPEN + f"C> {json.dumps(call(1))}\n" + 'S> {"jsonrpc":"2.0","id":1,' + answered + "}\nC> EOF\nS> EXIT 0\n"

    async def act(client: Client) -> None:
        client.hear(call("x"))
        await asyncio.sleep(1)
        assert client.raw == [('{"jsonrpc":"2.0","id":"x",' + answered + "}").encode()]
        assert client.out[0].is_answer

    on_stage(script, act)


def test_an_answer_of_the_client_that_is_none_is_taken_for_one() -> None:
    nothing = '{"jsonrpc":"2.0","id":7,"result":{},"error":null}'
    script = OPEN + f"C> {json.dumps(call(1))}\n" + 'S> {"jsonrpc":"2.0","id":7,"method":"roots/list"}\n'
    script += f"C> {nothing}\nS> {json.dumps(answer(1))}\n"

    async def act(client: Client) -> None:
        assert [one.get("method") for one in await client.say(call(5))] == ["roots/list"]
        assert await client.say(nothing) == [answer(5)]

    assert on_stage(script, act).tally.answers_same == 1


PIECEMEAL = (
    OPEN
    + f"C> {json.dumps(call(1))}\n+ 99ms\n"
    + """S| b'{"jsonrpc":"2.0",'\n+ 299ms\nS| b'"id":1,"result":{}}'\n+ 99ms\nS| b'\\n'\n"""
)


@pytest.mark.parametrize(("timing", "factor"), [("original", 1.0), ("x2", 0.5), ("none", 0.0)], ids=str)
def test_pieces_are_due_at_their_own_moments_if_a_shell_sends_them_apart(timing: str, factor: float) -> None:
    script = script_of(PIECEMEAL, with_bytes=True)

    async def act(client: Client) -> None:
        client.stage.in_pieces = frozenset({"line"})
        client.hear(call(5))
        await asyncio.sleep(9)
        (out,) = client.out
        assert out.line is not None
        assert out.line.frame is not None
        moments = [client.stage.moment(out, piece.t) for piece in script.pieces(out.line.frame.spans)]
        wanted = [factor * one for one in (0.1, 0.4, 0.5)] if factor else [None] * 3
        assert moments == (pytest.approx(wanted, abs=0.002) if factor else wanted)
        assert client.times == pytest.approx([factor * 0.1], abs=0.002)

    on_stage(script, act, timing=timing)


def test_a_line_is_due_when_it_was_whole_where_its_pieces_are_not_sent_apart() -> None:
    """A stdio capture over HTTP: what is sent apart there are the pieces of events and bodies."""

    async def act(client: Client) -> None:
        client.stage.in_pieces = frozenset({"sse", "body"})
        client.hear(call(5))
        await asyncio.sleep(9)
        assert client.times == pytest.approx([0.5], abs=0.002)
        assert client.out[0].due is None

    on_stage(script_of(PIECEMEAL, with_bytes=True), act, timing="original")


def test_a_ping_that_was_not_recorded_is_answered_and_no_miss() -> None:
    async def act(client: Client) -> None:
        client.hear({"jsonrpc": "2.0", "id": "p", "method": "ping"})
        await asyncio.sleep(1)
        assert json.loads(client.out[0].data) == {"jsonrpc": "2.0", "id": "p", "result": {}}
        assert client.stage.matcher.misses == []

    on_stage(script_of(PIECEMEAL), act)


@pytest.mark.parametrize("token", ["NaN", "-Infinity"])
def test_a_request_with_an_id_that_is_no_json_is_no_request(token: str) -> None:
    line = b'{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"x"}}' % token.encode()
    (message,) = live_messages(line, JsonReader())
    assert (message.kind, message.id) == ("invalid", None)
    assert json.loads(invalid_answer(message))["error"]["code"] == -32700
    (kept,) = live_messages(b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"x":NaN}}', JsonReader())
    assert (kept.kind, kept.id) == ("request", "1")


def test_silence_stays_silence_and_what_the_capture_lacks_is_said() -> None:
    silent = OPEN + f"C> {json.dumps(call(1))}\nC> EOF\nS> EXIT 0\n"
    assert told(silent, [call(5)]) == []

    cut = OPEN + f"C> {json.dumps(call(1))}\nS> {json.dumps(note('message', level='info', data=1))}\n"
    log, error = told(cut, [call(5)])
    assert log["method"] == "notifications/message"
    assert (error["id"], error["error"]["code"]) == (5, -32603)
    assert "the answer to tools/call (#9 there) is not in the capture" in error["error"]["message"]

    lost = OPEN + f"C> {json.dumps(call(1))}\nG> S 90 queue\nC> EOF\nS> EXIT 0\n"
    assert [one["error"]["code"] for one in told(lost, [call(5)])] == [-32603]


def test_a_capture_without_a_handshake_is_served_all_the_same() -> None:
    script = f"@late\nC> {json.dumps(call(1))}\nS> {json.dumps(answer(1, content=[]))}\n"
    opened, found = told(script, [INITIALIZE, note("initialized"), call(5)])
    assert opened["result"]["capabilities"] == {"tools": {}}
    assert opened["result"]["protocolVersion"] == "2025-06-18"
    assert opened["result"]["serverInfo"]["name"] == "mcpsniff-replay"
    assert found == answer(5, content=[])


def test_what_is_no_message_is_answered_as_it_was_or_as_json_rpc_wants_it() -> None:
    script = (
        OPEN
        + "C> {nonsense\n"
        + 'S> {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"recorded"}}\n'
        + 'C> {"jsonrpc":"2.0","id":4}\n'
        + 'S> {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"recorded, too"}}\n'
    )

    async def act(client: Client) -> None:
        said = await client.say('{"jsonrpc":"2.0","id":4}', "{other nonsense")
        assert [one["error"]["message"] for one in said] == ["recorded, too", "recorded"]
        assert [one["error"]["message"] for one in await client.say("{nonsense")] == ["recorded"]
        said = await client.say("more nonsense", '{"jsonrpc":"2.0","id":9}', "17")
        assert [(one["id"], one["error"]["code"]) for one in said] == [(None, -32700), (9, -32600), (None, -32600)]

    on_stage(script, act)


def test_requests_without_a_usable_id_are_played_as_they_were() -> None:
    script = (
        OPEN
        + 'C> {"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"t"}}\n'
        + 'S> {"jsonrpc":"2.0","id":null,"result":{"x":1}}\n'
    )
    for spelt in ("null", "true", "1.5", "{}"):
        (came,) = told(script, ['{"jsonrpc":"2.0","id":' + spelt + ',"method":"tools/call","params":{"name":"t"}}'])
        assert came == {"jsonrpc": "2.0", "id": None, "result": {"x": 1}}


def test_what_the_server_said_unasked_comes_before_and_what_it_said_at_the_end_after_all() -> None:
    script = (
        "S> hello\n"
        "E> up\n"
        + OPEN
        + f"C> {json.dumps(call(1))}\nS> {json.dumps(answer(1))}\n"
        + "C> EOF\nS> bye\nE> down\nS> EXIT 0\n"
    )

    async def act(client: Client) -> None:
        prologue = client.session.prologue(client)
        assert prologue is not None
        await prologue.wait()
        assert client.raw == [b"hello", b"up"]
        client.out.clear()
        await client.say(INITIALIZE, call(2))
        await client.session.done()
        farewell = client.session.farewell(client)
        assert farewell is not None
        await farewell.wait()
        assert client.raw == [b"bye", b"down"]
        assert client.ended == [], "that it ended after its client had left is no news"

    on_stage(script, act)


def test_the_end_of_the_process_is_told_where_it_came_before_the_clients() -> None:
    script = OPEN + f"C> {json.dumps(call(1))}\nE> out of memory\nS> KILLED 9\n"

    async def act(client: Client) -> None:
        client.hear(call(5))
        await asyncio.sleep(0.1)
        assert client.raw == [b"out of memory"]
        (line,) = client.ended
        assert line.close is not None
        assert line.close.signal == 9

    on_stage(script, act)


TIMED = (
    OPEN
    + f"C> {json.dumps(call(1))}\n"
    + "+ 300ms\n"
    + f"S> {json.dumps(note('message', level='info', data=1))}\n"
    + "+ 1.2s\n"
    + 'S> {"jsonrpc":"2.0","id":7,"method":"roots/list"}\n'
    + "+ 5s\n"
    + f"C> {json.dumps(answer(7, roots=[]))}\n"
    + "+ 500ms\n"
    + f"S> {json.dumps(answer(1))}\n"
)


@pytest.mark.parametrize(("timing", "factor"), [("original", 1.0), ("x2", 0.5), ("x0.25", 4.0), ("none", 0.0)], ids=str)
def test_gaps_are_counted_from_what_the_client_said_last(timing: str, factor: float) -> None:
    async def act(client: Client) -> None:
        await asyncio.sleep(3)
        client.hear(call(5))
        await asyncio.sleep(20)
        client.hear(answer(7, roots=[]))
        await asyncio.sleep(20)
        # Each line of a dialogue comes a millisecond after the one before it.
        wanted = [3 + 0.301 * factor, 3 + 1.502 * factor, 23 + 0.501 * factor]
        assert client.times == pytest.approx(wanted, abs=0.002)

    on_stage(TIMED, act, timing=timing)


def test_scenes_overlap_as_their_cues_do() -> None:
    script = (
        OPEN
        + f"C> {json.dumps(call(1, 'slow'))}\n"
        + f"C> {json.dumps(call(2, 'fast'))}\n"
        + f"S> {json.dumps(answer(2, fast=1))}\n"
        + "+ 1s\n"
        + f"S> {json.dumps(answer(1, slow=1))}\n"
    )

    async def act(client: Client) -> None:
        client.hear(call(11, "slow"))
        await asyncio.sleep(0.5)
        client.hear(call(12, "fast"))
        await asyncio.sleep(2)
        assert client.said == [answer(12, fast=1), answer(11, slow=1)]
        assert client.times == pytest.approx([0.501, 1.003], abs=0.002)

    on_stage(script, act, timing="original")


SUBSCRIBED = (
    "@modern\n"
    'C> {"jsonrpc":"2.0","id":"w","method":"subscriptions/listen","params":{"notifications":{},"_meta":$ENVELOPE}}\n'
    'S> {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":'
    '{"notifications":{},"_meta":{"io.modelcontextprotocol/subscriptionId":"w"}}}\n'
    'C> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","_meta":$ENVELOPE}}\n'
    'S> {"jsonrpc":"2.0","id":2,"result":{"resultType":"complete"}}\n'
    "+ 2s\n"
    'S> {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":'
    '{"_meta":{"io.modelcontextprotocol/subscriptionId":"w"}}}\n'
)


def test_a_subscription_has_the_live_id_and_waits_for_what_led_to_its_news() -> None:
    key = "io.modelcontextprotocol/subscriptionId"
    listen = request(31, "subscriptions/listen", notifications={})

    async def act(client: Client) -> None:
        client.hear(listen)
        await asyncio.sleep(0.1)
        (acknowledged,) = client.take()
        assert acknowledged["params"]["_meta"][key] == 31
        await asyncio.sleep(10)
        assert client.take() == []
        client.hear({**call(5), "params": {"name": "t"}})
        await asyncio.sleep(1)
        assert client.take() == [answer(5, resultType="complete")]
        await asyncio.sleep(1.1)
        (changed,) = client.take()
        assert (changed["method"], changed["params"]["_meta"][key]) == ("notifications/tools/list_changed", 31)
        await asyncio.sleep(60)
        assert client.take() == [], "that a subscription is open at the end is nothing that is lacking"

    on_stage(SUBSCRIBED, act, timing="original")


def test_news_of_what_a_client_did_not_do_are_not_told_when_it_leaves() -> None:
    async def act(client: Client) -> None:
        client.hear(request(31, "subscriptions/listen", notifications={}))
        await asyncio.sleep(1)
        await client.session.done()
        assert [one["method"] for one in client.take()] == ["notifications/subscriptions/acknowledged"]

    cancelled = SUBSCRIBED + 'C> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"w"}}\n'
    for script in (SUBSCRIBED, cancelled):
        assert on_stage(script, act, timing="original").tally.uncancelled == []


def test_what_awaits_a_client_that_says_nothing_more_goes_on_without_it() -> None:
    async def act(client: Client) -> None:
        await client.say({**call(9), "params": {"name": "t"}})
        await client.session.done()
        assert client.take() == [answer(9)]

    on_stage(SAMPLING, act)


def test_nothing_is_played_for_a_client_that_has_gone() -> None:
    async def act(client: Client) -> None:
        performance = client.hear(call(5))
        assert performance is not None
        client.session.left()
        await performance.wait()
        assert client.out == []

        other = Client(client.stage)
        other.is_gone = True
        performance = other.hear(call(5))
        assert performance is not None
        await performance.wait()
        assert performance.is_over

    on_stage(TIMED, act)


def test_a_fault_of_ours_in_a_performance_is_not_lost() -> None:
    class Broken(Client):
        async def send(self, out: object) -> None:
            raise ZeroDivisionError

    told: list[int] = []

    async def act(client: Client) -> None:
        client.stage.on_bug = lambda: told.append(1)
        broken = Broken(client.stage)
        performance = broken.hear(call(5))
        assert performance is not None
        await performance.wait()

    with pytest.raises(ZeroDivisionError):
        on_stage(TIMED, act)
    assert told == [1]


REFUSED = (
    "@http\n"
    'C> POST /mcp {"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}\n'
    "S> 401 no\n"
    "@open 2025-11-25\n"
    'C> POST /mcp {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a"}}\n'
    "S> 403 no\n"
    'C> POST /mcp {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"b"}}\n'
    'S> 400 {"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"not so"}}\n'
)


def test_without_http_what_http_refused_is_passed_over_or_becomes_an_error() -> None:
    asked = [INITIALIZE, *({**call(name), "params": {"name": name}} for name in "ab")]
    opened, a, b = told(REFUSED, asked)
    assert "result" in opened
    assert a["error"] == {"code": -32600, "message": "HTTP refused the recorded tools/call with status 403"}
    assert b["error"] == {"code": -32001, "message": "not so"}


def test_a_stage_for_a_shell_that_speaks_http_leaves_that_to_the_shell() -> None:
    asked = [INITIALIZE, {**call("a"), "params": {"name": "a"}}]
    assert told(REFUSED, asked, over_http=True) == []


def test_a_shell_may_find_the_scene_itself() -> None:
    script = script_of(TIMED)
    scene = next(scene for scene in script.talks[0].scenes if scene.method == "tools/call")

    async def act(client: Client) -> None:
        client.session.heard(message_of(request(1, "anything")), client, scene=scene)
        await asyncio.sleep(0.1)
        assert [one.get("method") for one in client.take()] == ["notifications/message", "roots/list"]

    on_stage(script, act)
