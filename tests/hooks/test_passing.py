"""What several interceptors make of what one of them has made: directions, ids, copies, and failures inside."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from mcpsniff.hooks.actions import (
    Headed,
    HttpAnswer,
    Later,
    Paced,
    Returned,
    Text,
    answer,
    back,
    notification,
    request,
)
from mcpsniff.hooks.editor import CHANGED, SAME
from mcpsniff.protocol.message import Message
from tests.hooks.test_editor import ANSWER, CALL, Bench, passes, renamed

MASKED = CALL.replace(b'"add"', b'"sub"')


def before(*made: Callable[[], Message]) -> Callable[[Message], Returned]:
    return lambda message: [*(one() for one in made), message] if message.method == "tools/call" else message


def test_what_is_made_has_a_direction_and_a_conversation_for_those_who_have_it_next() -> None:
    seen: list[Message] = []

    def looks(message: Message) -> Returned:
        seen.append(message)
        return message

    bench = Bench(before(lambda: request("ping"), lambda: notification("x")), looks)
    bench.edit(CALL)
    assert [one.direction for one in seen] == ["c2s"] * 3
    assert {one.conversation for one in seen} == {bench.talk.number}
    assert seen[0].key == seen[0].body["id"]


def test_a_request_that_is_made_is_answered_by_another_addon_for_nobody() -> None:
    bench = Bench(
        before(lambda: request("ping")), lambda message: answer(message, {}) if message.method == "ping" else message
    )
    assert bench.leaving(CALL) == [(SAME, CALL)]


def test_one_object_may_be_sent_again_and_again() -> None:
    asks, says = request("ping"), notification("x", {"secret": 1})

    def masks(message: Message) -> Returned:
        if message.method == "x":
            message.body["params"]["secret"] = None
        return message

    bench = Bench(lambda message: [asks, asks, back(asks), says, message], masks)
    sent = [json.loads(data) for _, data in bench.leaving(CALL)]
    ids = [one["id"] for one in sent if one["method"] == "ping"]
    assert len(set(ids)) == 3
    assert sent[3]["params"] == {"secret": None}
    assert asks.body == {"jsonrpc": "2.0", "method": "ping"}
    assert says.body["params"] == {"secret": 1}
    for name, direction in zip(ids, ("s2c", "s2c", "c2s"), strict=True):
        edit = bench.edit(ANSWER.replace(b'"id":7', b'"id":"%s"' % name.encode()), direction)
        assert edit is not None
        assert not edit.leaving


@pytest.mark.parametrize("error", [ZeroDivisionError, MemoryError, SystemExit])
def test_a_failure_inside_undoes_nothing_that_others_have_done(error: type[BaseException]) -> None:
    def fails(message: Message) -> Returned:
        raise error

    bench = Bench(renamed, fails, before(lambda: notification("x")))
    assert [data for _, data in bench.leaving(CALL)][1] == MASKED
    assert Bench(lambda _: None, fails).leaving(CALL) == []
    (said,) = bench.said
    assert said.startswith("internal error: hook has failed and is passed over")


@pytest.mark.parametrize(
    ("action", "told"),
    [
        (lambda _: HttpAnswer(503), "an HTTP answer has no place on pipes"),
        (lambda message: [HttpAnswer(503), message], "an HTTP answer has no place on pipes"),
        (lambda message: Headed(message, {"x": "y"}), "there are no headers on pipes"),
        (lambda message: Text(b"1\n2", message), "a text of several lines cannot go on as one on pipes"),
        (lambda message: [Text(b"1\n2"), message], "a text of several lines cannot go on as one on pipes"),
    ],
)
def test_what_has_no_place_on_pipes_lets_pass_what_others_have_made(
    action: Callable[[Message], Returned], told: str
) -> None:
    bench = Bench(renamed, action)
    assert bench.leaving(CALL) == [(CHANGED, MASKED)]
    assert bench.leaving(b"[" + CALL + b"]") == [(CHANGED, b"[" + MASKED + b"]")]
    assert [said for said in bench.said if told in said] == bench.said
    assert len(bench.said) == 1


def test_an_element_of_a_batch_over_http_is_not_answered_by_a_status() -> None:
    bench = Bench(renamed, lambda _: HttpAnswer(503))
    bench.lanes["c2s"].transport = "http"
    assert bench.leaving(b"[" + CALL + b"]") == [(CHANGED, b"[" + MASKED + b"]")]
    assert "is for the whole of a batch" in bench.said[0]


def test_an_http_answer_is_not_given_beside_the_message() -> None:
    bench = Bench(lambda message: [HttpAnswer(503), message])
    bench.lanes["c2s"].transport = "http"
    assert bench.edit(CALL) is None
    assert "cannot be given beside the message" in bench.said[0]


def test_a_body_of_none_is_null() -> None:
    def empties(message: Message) -> Returned:
        message.body = None
        return message

    assert Bench(empties).leaving(CALL) == [(CHANGED, b"null")]
    assert Bench(empties, passes).edit(b"no json") is None


@pytest.mark.parametrize("seconds", [1e10, 1e300, 10**400, float("nan"), float("inf"), -1, True, "1"])
def test_an_addon_that_wants_what_no_clock_has_is_refused(seconds: Any) -> None:
    from mcpsniff.hooks.misfit import misfit

    assert misfit(Later(notification("x"), seconds)).startswith("Later with")
    if seconds != 1e10 and seconds is not True:
        assert misfit(Paced(notification("x"), seconds)).startswith("Paced with")
    assert misfit(Paced(notification("x"), 5e-324)).startswith("Paced with")
    assert not misfit(Later(notification("x"), 3600))
    assert not misfit(Paced(notification("x"), 0.5))
