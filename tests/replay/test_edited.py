"""Captures of edited sessions as scripts: what the client sent, and what it got."""

from tests.decoder.test_edited_http import STREAM, Web, chunk, event, post, response
from tests.decoder.test_edited_http import request as asked
from tests.decoder.test_edited_http import result as answered
from tests.replay.staging import script_of
from tests.replay.test_script import OPEN, scenes
from tests.transcript.rendering import capture

CALL = 'C> {"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s"}}\n'
ANSWER = '{"jsonrpc":"2.0","id":%d,"result":{"said":"%s"}}'


def answers(dialogue: str) -> list[object]:
    (talk,) = script_of(dialogue).talks
    found = [scene.answer for scene in talk.scenes if scene.method == "tools/call"]
    return [None if one is None else one.body.get("result", one.body.get("error")) for one in found]


def test_the_client_got_what_left() -> None:
    changed = f"{OPEN}{CALL % (1, 'a')}S> {ANSWER % (1, 'x')}\nA> CHANGE addon {ANSWER % (1, 'y')}\n"
    assert answers(changed) == [{"said": "y"}]
    assert scenes(changed) == {"tools/call 1": ["< response 1"]}


def test_a_call_that_was_changed_is_played_as_the_client_said_it() -> None:
    call = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"b"}}'
    (talk,) = script_of(f"{OPEN}{CALL % (1, 'a')}A> CHANGE addon {call}\nS> {ANSWER % (1, 'x')}\n").talks
    (scene,) = [scene for scene in talk.scenes if scene.method == "tools/call"]
    assert scene.cue is not None
    assert scene.cue.params == {"name": "a"}


def test_an_answer_in_the_servers_place_is_the_answer() -> None:
    refusal = '{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Unknown tool: a"}}'
    said = f"{OPEN}{CALL % (1, 'a')}A> DROP block\nA> S block {refusal}\n{CALL % (2, 'b')}S> {ANSWER % (2, 'x')}\n"
    assert answers(said) == [{"code": -32602, "message": "Unknown tool: a"}, {"said": "x"}]


def test_what_was_dropped_or_kept_is_not_said() -> None:
    log = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}'
    ping = '{"jsonrpc":"2.0","id":"mcpsniff-1","method":"ping"}'
    said = (
        f"{OPEN}{CALL % (1, 'a')}S> {log}\nA> DROP addon\nA> C addon {ping}\n"
        f'S> {{"jsonrpc":"2.0","id":"mcpsniff-1","result":{{}}}}\nA> DROP addon\nS> {ANSWER % (1, "x")}\n'
    )
    assert scenes(said) == {"tools/call 1": ["< response 1"]}


def test_over_http() -> None:
    from mcpsniff.replay.reading import read_script

    web = Web()
    web.came(0, post(asked(1)))
    web.came(1, STREAM)
    first = chunk(event(answered(1, n=1)))
    web.rewrite(1, web.came(1, first), len(first), chunk(event(answered(1, n=2))))
    web.came(1, b"0\r\n\r\n")
    said = post(asked(2))
    web.rewrite(0, web.came(0, said), len(said), b"")
    web.insert(1, response(answered(2, n=3)))
    web.connect(1)
    web.rewrite(2, 0, 0, post(asked("mcpsniff-1", "ping")))
    kept = response(answered("mcpsniff-1"))
    web.rewrite(3, web.came(3, kept), len(kept), b"")
    web.close(1)
    script = read_script(capture(web.close().records, transport="http"))
    (talk,) = script.talks
    calls = [scene for scene in talk.scenes if scene.is_request]
    assert [scene.method for scene in calls] == ["initialize", "tools/call", "tools/call"]
    assert [scene.answer and scene.answer.result.get("n") for scene in calls] == [None, 2, 3]
    assert script.lacks == []


def test_events_that_were_added_and_changed_after_the_whole_stream_had_come() -> None:
    from mcpsniff.replay.reading import read_script

    def log(data: str) -> dict[str, object]:
        return {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": data}}

    web = Web()
    web.came(0, post(asked(1)))
    first, second = chunk(event(log("b"))), chunk(event(answered(1, n=1)))
    start = web.came(1, STREAM + first + second + b"0\r\n\r\n") + len(STREAM)
    web.rewrite(1, start, 0, chunk(event(log("a"))))
    web.rewrite(1, start + len(first), 0, chunk(event(log("c"))))
    web.rewrite(1, start + len(first), len(second), chunk(event(answered(1, n=2))))
    script = read_script(capture(web.close().records, transport="http"))
    (talk,) = script.talks
    (call,) = [scene for scene in talk.scenes if scene.method == "tools/call"]
    said = [line.message.body for line in call.lines if line.message is not None]
    assert [one.get("params", one.get("result")) for one in said] == [
        {"level": "info", "data": "a"},
        {"level": "info", "data": "b"},
        {"level": "info", "data": "c"},
        {"n": 2},
    ]
