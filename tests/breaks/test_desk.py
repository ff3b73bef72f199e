"""What becomes of messages that are held at a break point."""

import json
from collections.abc import Callable

import pytest

from mcpsniff.errors import UsageError
from mcpsniff.hooks.editor import BACK, CHANGED, SAME
from mcpsniff.proxy.breaks.orders import OrderError
from mcpsniff.proxy.breaks.reading import breaks_from
from tests.breaks.desks import CALL, NOTE, Lane, Session, call
from tests.proxy.wrapped import wait_for

type Make = Callable[..., Session]

ANSWER = b'{"jsonrpc":"2.0","id":7,"result":{"content":[]}}'


def test_what_matches_is_held_until_it_is_passed(session: Make) -> None:
    one = session("method:tools/call dir:c2s")
    assert one.passing(NOTE).ended() is None
    message = one.held()
    assert message.is_waiting
    assert wait_for(lambda: message.lane.waits == 1)
    assert one.points.desk.decide(1, {"do": "pass"}) == "passed"
    edit = message.ended()
    assert edit is not None
    assert (edit.by, edit.why) == ("break", "passed by hand at --break method:tools/call dir:c2s")
    (out,) = edit.leaving
    assert (out.what, out.data) == (SAME, CALL)
    assert one.points.desk.held() == []


def test_an_answer_is_held_by_what_it_answers(session: Make) -> None:
    one = session("tool:add kind:response")
    assert one.passing(CALL).ended() is None
    message = one.held(ANSWER, "s2c")
    facts = one.points.desk.held()[0].facts()
    assert {key: facts[key] for key in ("dir", "kind", "method", "target", "id", "break")} == {
        "dir": "s2c",
        "kind": "response",
        "method": "tools/call",
        "target": "add",
        "id": "7",
        "break": "tool:add kind:response",
    }
    one.points.desk.pass_all()
    message.ended()


def test_dropped(session: Make) -> None:
    one = session("tool:add")
    message = one.held()
    assert one.points.desk.decide(1, {"do": "drop"}) == "dropped"
    edit = message.ended()
    assert edit is not None
    assert (edit.leaving, edit.by, edit.why) == ([], "break", "dropped by hand at --break tool:add")


@pytest.mark.parametrize(
    ("order", "payload"),
    [
        ({"result": {"content": []}}, {"result": {"content": []}}),
        ({"result": 1}, {"result": 1}),
        ({"error": "no"}, {"error": {"code": -32000, "message": "no"}}),
        ({"error": {"code": 1, "message": "x", "data": [1]}}, {"error": {"code": 1, "message": "x", "data": [1]}}),
    ],
)
def test_answered(session: Make, order: dict[str, object], payload: dict[str, object]) -> None:
    one = session("tool:add")
    message = one.held()
    assert one.points.desk.decide(1, {"do": "answer", **order}) == "answered"
    edit = message.ended()
    assert edit is not None
    (out,) = edit.leaving
    assert (out.what, out.by, out.why) == (BACK, "break", "answered by hand at --break tool:add")
    assert json.loads(out.data) == {"jsonrpc": "2.0", "id": 7, **payload}


def test_changed_text_goes_on_token_for_token(session: Make) -> None:
    one = session("tool:add")
    typed = CALL.decode().replace("1.0", '2.50e0, "a": 12345678901234567890123, "\\u0061": 1').replace(", ", ",")
    message = one.held()
    assert one.points.desk.decide(1, {"do": "change", "text": typed}) == "changed"
    edit = message.ended()
    assert edit is not None
    (out,) = edit.leaving
    assert (out.what, out.why) == (CHANGED, "changed by hand at --break tool:add")
    assert out.data == typed.encode()
    assert out.message is not None
    assert (out.message.kind, out.message.method, out.message.id) == ("request", "tools/call", "7")


def test_text_that_is_the_same_is_not_changed(session: Make) -> None:
    one = session("tool:add")
    message = one.held()
    assert one.points.desk.decide(1, {"do": "change", "text": CALL.decode()}) == "passed"
    edit = message.ended()
    assert edit is not None
    assert [out.what for out in edit.leaving] == [SAME]


def test_what_is_no_message_of_json_rpc_may_go_on(session: Make) -> None:
    """An edit that makes invalid JSON-RPC is allowed; the transcript marks it."""
    one = session("tool:add")
    message = one.held()
    one.points.desk.decide(1, {"do": "change", "text": '{"id":{}}'})
    edit = message.ended()
    assert edit is not None
    assert edit.leaving[0].data == b'{"id":{}}'


def test_what_is_not_json_goes_on_only_if_that_is_meant(session: Make) -> None:
    one = session("tool:add")
    message = one.held()
    one.points.desk.decide(1, {"do": "change", "text": '{"id": 7, ', "anyway": True})
    edit = message.ended()
    assert edit is not None
    assert [(out.what, out.data) for out in edit.leaving] == [(CHANGED, b'{"id": 7, ')]


@pytest.mark.parametrize(
    ("order", "why"),
    [
        ({"do": "change", "text": '{"id":'}, "not JSON"),
        ({"do": "change", "text": "{}\n{}"}, "one line"),
        ({"do": "change", "text": "{} {}"}, "not JSON"),
        ({"do": "change"}, "no text"),
        ({"do": "change", "text": '"\ud800"'}, "not Unicode"),
        ({"do": "dance"}, "no order"),
        ({}, "no order"),
    ],
)
def test_orders_that_cannot_be_carried_out_leave_the_message_held(
    session: Make, order: dict[str, object], why: str
) -> None:
    one = session("tool:add")
    message = one.held()
    with pytest.raises(OrderError, match=why):
        one.points.desk.decide(1, order)
    assert message.is_waiting
    one.points.desk.pass_all()
    message.ended()


def test_only_a_request_is_answered_and_only_what_is_held_decided(session: Make) -> None:
    one = session("kind:notification")
    message = one.held(NOTE)
    with pytest.raises(OrderError, match="only a request can be answered, and this is a notification"):
        one.points.desk.decide(1, {"do": "answer", "result": {}})
    one.points.desk.decide(1, {"do": "pass"})
    for number in (1, 2):
        with pytest.raises(OrderError, match="is not held"):
            one.points.desk.decide(number, {"do": "pass"})
    message.ended()


def test_a_message_passes_by_itself_when_it_was_held_for_so_long(session: Make) -> None:
    one = session("tool:add", timeout=0.01)
    edit = one.passing().ended()
    assert edit is not None
    assert edit.why == "passed by --break-timeout at --break tool:add"
    assert edit.leaving[0].data == CALL


def test_a_message_whose_connection_is_gone_is_given_up(session: Make) -> None:
    one = session("tool:add")
    lane = Lane()
    message = one.held(lane=lane)
    lane.is_gone = True
    edit = message.ended()
    assert edit is not None
    assert edit.passes
    assert "its connection is gone" in edit.why


def test_the_end_lets_everything_go_and_nothing_is_held_after_it(session: Make) -> None:
    one = session("tool:add", "tool:other")
    held = [one.held(call(number)) for number in range(20)]
    told = one.end()
    for message in held:
        edit = message.ended()
        assert edit is not None
        assert edit.passes
    assert one.passing().ended() is None
    assert told == ["--break tool:other held nothing"]


def test_hundreds_are_held_and_decided_in_any_order(session: Make) -> None:
    one = session("tool:add")
    held = {number: one.passing(call(number)) for number in range(300)}
    assert wait_for(lambda: len(one.points.desk.held()) == 300)
    by_id = {json.loads(each.message.raw)["id"]: each.number for each in one.points.desk.held()}
    for number in range(299, -1, -1):
        one.points.desk.decide(by_id[number], {"do": "drop" if number % 2 else "pass"})
    for number, message in held.items():
        edit = message.ended()
        assert edit is not None
        assert edit.passes == (number % 2 == 0)


def test_how_to_attach_is_told_once(session: Make) -> None:
    one = session("method:tools/call")
    hostile = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "\x1b[2J" + 90 * "x"}})
    messages = [one.held(hostile.encode()), one.held()]
    assert len(one.said) == 1
    assert one.said[0].startswith("tools/call \\x1b[2Jxxx")
    assert "… is held at a break point: mcpsniff attach " in one.said[0]
    assert one.said[0].isprintable()
    one.end()
    for message in messages:
        message.ended()


def test_elements_of_a_batch_are_held_one_after_another(session: Make) -> None:
    one = session("tool:add")
    message = one.held(b"[" + call(1) + b", " + NOTE + b"]")
    one.points.desk.decide(1, {"do": "drop"})
    edit = message.ended()
    assert edit is not None
    assert json.loads(edit.leaving[0].data) == [json.loads(NOTE)]


def test_a_message_that_cannot_be_held_passes(session: Make) -> None:
    one = session("tool:add")

    class Poor(Lane):
        def holding(self) -> object:
            raise RuntimeError("can't start new thread")

    assert one.passing(lane=Poor()).ended() is None
    assert "a message passes that was to be held at a break point: RuntimeError(" in one.said[-1]
    assert one.points.desk.held() == []


def test_a_wrong_expression_names_its_option() -> None:
    with pytest.raises(UsageError) as raised:
        breaks_from(["tool:a foo:b"], None, "stdio", print)
    assert raised.value.lines[0].startswith("--break: filter, column 8: there is no field foo")
    assert raised.value.lines[2] == "         ^"
