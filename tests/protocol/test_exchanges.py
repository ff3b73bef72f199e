"""Pairing: who answers whom, what came late, twice or from nowhere, and what never came."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpsniff.capture.records import Record
from mcpsniff.protocol.exchanges import Exchanges
from tests.sessions import decode, end, exchanges, facts, messages, pairs, records


def request(number: object, method: str = "tools/call", **params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def result(number: object, **members: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": number, "result": members}


def cancelled(number: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}}


def progress(token: object, value: float = 1) -> dict[str, object]:
    params = {"progressToken": token, "progress": value}
    return {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}


def test_an_exchange_knows_its_request_answer_progress_and_latency() -> None:
    said = records(
        ("c2s", request(0, name="echo", _meta={"progressToken": "p"})),
        ("s2c", progress("p", 1)),
        ("s2c", progress("p", 2)),
        ("s2c", result(0)),
    )
    events = decode(said)
    (exchange,) = exchanges(events)
    asked, first, second, answer = messages(events)

    assert (exchange.request, exchange.response, exchange.progress) == (asked.n, answer.n, [first.n, second.n])
    assert (exchange.state, exchange.latency_us, exchange.id, exchange.target) == ("answered", 3000, "0", "echo")
    assert {message.exchange for message in (asked, first, second, answer)} == {asked.n}
    assert exchange.n == answer.n + 1


@pytest.mark.parametrize(
    ("asked", "answered", "paired"),
    [
        ("1", "1", True),
        ("1", "1.0", True),
        ("1.0", "1", True),
        ("1e0", "10e-1", True),
        ("1.5", "1.50", True),
        ("0", "-0", True),
        ('"1"', '"1"', True),
        ('"a"', r'"\u0061"', True),
        ("36893488147419103232", "36893488147419103232", True),
        ("36893488147419103232", "36893488147419103233", False),
        ("9007199254740993", "9007199254740992", False),
        ("1", '"1"', False),
        ('"1"', "1", False),
        ("1", "true", False),
        ("0", "false", False),
        ("0", '""', False),
        ("1e999999999999999999999", "1e999999999999999999999", True),
        ("7" * 5000, "7" * 5000, True),
        ("1e1000001", "1e1000001", True),
        ("1e1000001", "1e1000002", False),
        ("1e9999999", "10e9999998", True),
        ("-1e-9999999", "-1e-9999999", True),
        ("1.00000000000000000000000000000001", "1.00000000000000000000000000000002", False),
        ("1.50000000000000000000000000000000000", "1.5", True),
    ],
)
def test_ids_pair_by_type_and_exact_value(asked: str, answered: str, *, paired: bool) -> None:
    said = records(
        ("c2s", f'{{"jsonrpc":"2.0","id":{asked},"method":"ping"}}'),
        ("s2c", f'{{"jsonrpc":"2.0","id":{answered},"result":{{}}}}'),
    )
    events = decode(said)

    assert pairs(events) == ([(0, 1)] if paired else [])
    assert [message.id for message in messages(events)] == [asked, answered]
    assert [one.state for one in exchanges(events)] == ["answered" if paired else "open"]


def test_two_open_requests_with_one_id_pair_in_order_of_sending() -> None:
    said = records(("c2s", request(4)), ("c2s", request(4)), ("s2c", result(4)), ("s2c", result(4)))
    events = decode(said)

    assert pairs(events) == [(0, 2), (1, 3)]
    assert all(one.ambiguous for one in exchanges(events))
    assert facts(messages(events)[1]) == ["id-open"]


def test_an_answer_after_the_cancel_names_its_exchange_and_is_not_its_response() -> None:
    said = records(("c2s", request(8)), ("c2s", cancelled(8)), ("s2c", result(8)), ("s2c", result(8)))
    events = decode(said)
    (exchange,) = exchanges(events)
    asked, cancel, late, again = messages(events)

    assert (exchange.state, exchange.response, exchange.cancel) == ("cancelled", None, cancel.n)
    assert (late.exchange, again.exchange) == (asked.n, asked.n)
    assert (facts(late), facts(again)) == (["answer-after-cancel"], ["answered-twice"])


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ([("s2c", result(77))], ["unknown-id"]),
        ([("c2s", request(1)), ("s2c", result(1)), ("s2c", result(1))], ["answered-twice"]),
        ([("c2s", request(1)), ("s2c", result("1"))], ["id-type-differs"]),
        ([("c2s", request("1")), ("s2c", result(1))], ["id-type-differs"]),
        ([("s2c", request(5, "roots/list")), ("s2c", result(5))], ["wrong-side"]),
        ([("c2s", request(1)), ("s2c", result(1)), ("c2s", request(1))], ["id-reused"]),
        ([("c2s", request(1)), ("c2s", cancelled(1)), ("c2s", request(1))], ["id-reused"]),
        ([("s2c", progress("zz"))], ["progress-unknown-token"]),
        ([("c2s", cancelled(9))], ["cancel-unknown"]),
        ([("c2s", request(1)), ("s2c", result(1)), ("c2s", cancelled(1))], ["cancel-after-end"]),
        (
            [("c2s", request(1, _meta={"progressToken": 1})), ("s2c", result(1)), ("s2c", progress(1))],
            ["progress-after-end"],
        ),
        (
            [
                ("c2s", {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}),
                ("s2c", {"jsonrpc": "2.0", "id": None, "error": {"code": -32601, "message": "x"}}),
            ],
            ["notification-answered"],
        ),
        (
            [
                ("c2s", b"{nonsense}\n"),
                ("s2c", {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "x"}}),
            ],
            ["uncorrelated"],
        ),
        ([("s2c", {"jsonrpc": "2.0", "id": "server-error", "error": {"code": 1, "message": "x"}})], ["uncorrelated"]),
    ],
    ids=lambda value: value[0] if isinstance(value[0], str) else None,
)
def test_what_history_says_of_the_last_message(said: list[tuple[str, object]], expected: list[str]) -> None:
    assert facts(messages(decode(records(*said)))[-1]) == expected


def test_an_error_without_id_is_not_taken_for_an_answer_to_a_notification_when_it_may_answer_a_request() -> None:
    notice = {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}
    refusal = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "x"}}
    unusable: list[object] = [{"jsonrpc": "2.0", "id": None, "method": "ping"}, b"{nonsense}\n", request(1)]
    for asked in unusable:
        said = [("c2s", asked), ("c2s", notice), ("s2c", refusal)]
        assert facts(messages(decode(records(*said)))[-1]) == ["uncorrelated"], asked
    twice = [("c2s", unusable[0]), ("c2s", notice), ("s2c", refusal), ("s2c", refusal)]
    assert facts(messages(decode(records(*twice)))[-1]) == ["notification-answered"]


def test_the_late_answer_to_a_cancelled_request_is_not_a_second_one_to_its_successor() -> None:
    said = [("c2s", request(1)), ("c2s", cancelled(1)), ("c2s", request(1, "ping")), ("s2c", result(1))]
    events = decode(records(*said, ("s2c", result(1)), ("s2c", result(1))))
    first, _, second, answer, late, again = messages(events)

    assert (answer.exchange, late.exchange, again.exchange) == (second.n, first.n, second.n)
    assert [facts(one) for one in (answer, late, again)] == [["ambiguous"], ["answer-after-cancel"], ["answered-twice"]]
    assert all(one.ambiguous for one in exchanges(events) if one.request == second.n)


def test_a_token_that_two_requests_share_lives_as_long_as_one_of_them() -> None:
    share = {"_meta": {"progressToken": "t"}}
    said = [("c2s", request(1, **share)), ("c2s", request(2, **share)), ("s2c", result(2)), ("s2c", progress("t"))]
    last = messages(decode(records(*said)))[-1]

    assert (facts(last), last.exchange) == ([], 2)
    ended = messages(decode(records(*said, ("s2c", result(1)), ("s2c", progress("t")))))[-1]
    assert facts(ended) == ["progress-after-end"]


@pytest.mark.parametrize(
    "terminal",
    [
        [("c2s", request(2, "tasks/get", taskId="t1")), ("s2c", result(2, taskId="t1", status="completed"))],
        [("c2s", request(2, "tasks/result", taskId="t1")), ("s2c", result(2, content=[]))],
        [
            (
                "s2c",
                {
                    "jsonrpc": "2.0",
                    "method": "notifications/tasks/status",
                    "params": {"taskId": "t1", "status": "failed"},
                },
            )
        ],
    ],
)
def test_progress_of_a_task_ends_with_the_task(terminal: list[tuple[str, object]]) -> None:
    begun = [("c2s", request(1, _meta={"progressToken": "t"})), ("s2c", result(1, task={"taskId": "t1"}))]

    assert facts(messages(decode(records(*begun, progress_said("t"))))[-1]) == []
    assert facts(messages(decode(records(*begun, *terminal, progress_said("t"))))[-1]) == ["progress-after-end"]


def progress_said(token: object) -> tuple[str, object]:
    return "s2c", progress(token)


def test_a_result_with_a_task_means_one_only_where_the_revision_has_tasks() -> None:
    opening = [
        ("c2s", request(0, "initialize", protocolVersion="2025-06-18")),
        ("s2c", result(0, protocolVersion="2025-06-18")),
        ("c2s", request(1, _meta={"progressToken": "t"})),
        ("s2c", result(1, task={"taskId": "t1"}, resultType="input_required")),
    ]
    events = decode(records(*opening, progress_said("t")))

    assert facts(messages(events)[-1]) == ["progress-after-end"]
    assert [one.state for one in exchanges(events)] == ["answered", "answered"]


def test_progress_of_a_task_goes_on_after_the_answer() -> None:
    said = records(
        ("c2s", request(1, _meta={"progressToken": "t"})),
        ("s2c", result(1, task={"taskId": "t1", "status": "working"})),
        ("s2c", progress("t")),
    )

    assert facts(messages(decode(said))[-1]) == []


def test_requests_are_abandoned_when_the_stream_that_answers_them_ends() -> None:
    said = records(("c2s", request(1)), ("s2c", request(1, "roots/list")))
    events = decode([*said, Record(5000, "close", 1, {"how": "eof"})])

    assert [(one.direction, one.state) for one in exchanges(events)] == [("c2s", "abandoned"), ("s2c", "open")]
    events = decode([*said, Record(5000, "close", 0, {"how": "eof"}), *end(6000)[1:]])
    assert [(one.direction, one.state) for one in exchanges(events)] == [("s2c", "abandoned"), ("c2s", "abandoned")]


def test_an_input_required_result_is_a_state_of_its_own() -> None:
    events = decode(records(("c2s", request(1)), ("s2c", result(1, resultType="input_required", requestState="s"))))

    assert [one.state for one in exchanges(events)] == ["input-required"]


def test_a_capture_that_joined_late_blames_nobody_for_what_it_did_not_see() -> None:
    table = Exchanges(joined_late=True)
    for message in messages(decode(records(("s2c", result(77)), ("s2c", progress("zz")), ("c2s", cancelled(9))))):
        message.facts = ()
        table.observe(message)

        assert message.facts == ()


def test_the_table_of_open_requests_is_bounded() -> None:
    table = Exchanges(open_limit=3)
    ended = []
    for message in messages(decode(records(*(("c2s", request(number)) for number in range(5))))):
        message.facts, message.link = (), None
        ended += table.observe(message)

    assert [(one.id, one.state) for one in ended] == [("0", "abandoned"), ("1", "abandoned")]
    assert table.open_requests("c2s") == 3


IDS = st.sampled_from([0, 1, "1", "a", 1.0])
STEPS = st.lists(
    st.tuples(st.sampled_from(["c2s", "s2c"]), st.builds(request, IDS))
    | st.tuples(st.sampled_from(["c2s", "s2c"]), st.builds(result, IDS))
    | st.tuples(st.sampled_from(["c2s", "s2c"]), st.builds(cancelled, IDS))
    | st.tuples(st.sampled_from(["c2s", "s2c"]), st.builds(progress, IDS)),
    max_size=30,
)


@given(STEPS, st.booleans())
def test_every_request_becomes_exactly_one_exchange_in_exactly_one_state(
    said: list[tuple[str, object]], closes: bool
) -> None:
    events = decode([*records(*said), *(end(100_000) if closes else [])])
    asked = [message.n for message in messages(events) if message.kind == "request"]
    ended = exchanges(events)

    assert sorted(one.request for one in ended) == asked
    for one in ended:
        assert (one.response is not None) == (one.state in {"answered", "errored", "input-required"})
        assert (one.cancel is not None) == (one.state == "cancelled")
        assert one.state != ("open" if closes else "abandoned")
    answers = [one.response for one in ended if one.response is not None]
    assert len(answers) == len(set(answers))


@pytest.mark.parametrize(
    ("asked", "named"),
    [("1.5", "1.50"), ("1", "1.0"), ("36893488147419103232", "36893488147419103232"), ("1e22", "1E+22")],
)
def test_a_cancel_names_its_request_by_value(asked: str, named: str) -> None:
    said = records(
        ("c2s", f'{{"jsonrpc":"2.0","id":{asked},"method":"ping"}}'),
        ("c2s", f'{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{named}}}}}'),
    )

    assert [one.state for one in exchanges(decode(said))] == ["cancelled"]
