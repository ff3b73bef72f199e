"""What each fault makes of a message."""

import json
from typing import Any

import pytest

from mcpsniff.hooks.actions import Cut, Disconnect, HttpAnswer, Paced, Stall
from mcpsniff.hooks.editor import ADDED, BACK, CHANGED, SAME, Edit
from mcpsniff.proxy.faults.kinds import KINDS
from tests.faults.stage import Faulty, call, notification, request, result, text

CALL = call(7, "echo", text="hi")
ANSWER = result(7, content=[{"type": "text", "text": "hi"}])
BY_CLIENT = "(client's request tools/call id 7)"
BY_SERVER = "(server's answer to tools/call id 7)"


def struck(fault: str, *, at: str = "answer", transport: str = "stdio", framing: str = "") -> Edit:
    """What becomes of a call, or of its answer."""
    faulty = Faulty(fault, transport=transport, framing=framing)
    edit = faulty.client(CALL)
    if at == "answer":
        assert edit is None
        edit = faulty.server(ANSWER)
    assert edit is not None
    assert edit.by == "faults"
    return edit


def test_every_fault_is_tested_here() -> None:
    assert set(KINDS) == {
        "latency", "drop", "duplicate", "reorder", "wrong-id", "error", "cut", "half-line", "noise", "invalid-utf8",
        "status", "stall", "slow", "disconnect",
    }  # fmt: skip


def test_latency_holds_the_answer_and_leaves_it_as_it_is() -> None:
    edit = struck("latency=1us")
    assert edit.why == f"fault latency=1us {BY_SERVER}"
    assert [(out.what, out.data) for out in edit.leaving] == [(SAME, text(ANSWER))]


def test_a_lost_message() -> None:
    assert struck("drop", at="call") == Edit("faults", f"fault drop {BY_CLIENT}", [])


def test_a_message_that_comes_twice() -> None:
    edit = struck("duplicate", at="call")
    assert edit.why == f"fault duplicate {BY_CLIENT}"
    assert [(out.what, out.data) for out in edit.leaving] == [(SAME, text(CALL)), (ADDED, text(CALL))]


def test_a_message_that_is_overtaken() -> None:
    faulty = Faulty("reorder=1m")
    numbers = [3, 4, 5, 6]
    left = [faulty.left("c2s", call(number, "echo")) for number in numbers]
    assert [[message["id"] for message in each] for each in left] == [[], [4, 3], [], [6, 5]]
    assert faulty.whys[0] == faulty.whys[1] == "fault reorder=1m (client's request tools/call id 3)"


@pytest.mark.parametrize(("how", "token"), [("type", '"7"'), ("other", "987654321"), ("null", "null"), ("none", None)])
def test_a_wrong_id(how: str, token: str | None) -> None:
    (out,) = struck(f"wrong-id={how}").leaving
    assert out.what == CHANGED
    said = text(ANSWER).replace(b'"id":7,', b"" if token is None else f'"id":{token},'.encode())
    assert out.data == said


@pytest.mark.parametrize(("old", "new"), [("7", 7), ("x7", 987_654_321), (1.5, "1.5"), (7, "7")])
def test_an_id_of_another_type(old: Any, new: Any) -> None:
    faulty = Faulty("wrong-id")
    faulty.client({**CALL, "id": old})
    assert faulty.left("s2c", {**ANSWER, "id": old}) == [{**ANSWER, "id": new}]


def test_a_request_is_answered_with_an_error() -> None:
    edit = struck('error="-32000:no, not now"', at="call")
    (out,) = edit.leaving
    assert out.what == BACK
    assert json.loads(out.data) == {"jsonrpc": "2.0", "id": 7, "error": {"code": -32000, "message": "no, not now"}}
    assert edit.why == f"fault error=-32000%3Ano%2C%20not%20now {BY_CLIENT}".replace("%3A", ":")


def test_an_answer_becomes_an_error() -> None:
    (out,) = struck("error,if=kind:response").leaving
    assert out.what == CHANGED
    assert json.loads(out.data) == {"jsonrpc": "2.0", "id": 7, "error": {"code": -32603, "message": "Internal error"}}


@pytest.mark.parametrize(("part", "keep"), [("", len(text(ANSWER)) // 2), ("=10", 10), ("=0", 0), ("=1k", None)])
def test_a_message_ends_in_its_middle(part: str, keep: int | None) -> None:
    (out,) = struck(f"cut{part}").leaving
    assert isinstance(out.action, Cut)
    assert out.action.keep == (len(text(ANSWER)) - 1 if keep is None else keep)


def test_half_a_line() -> None:
    (out,) = struck("half-line=25%").leaving
    assert (out.what, out.action) == (CHANGED, None)
    assert out.data == text(ANSWER)[: len(text(ANSWER)) // 4]


@pytest.mark.parametrize("framing", ["line", "sse"])
def test_noise_is_a_line_or_an_event_of_its_own(framing: str) -> None:
    edit = struck("noise=WARNING: x", framing=framing)
    assert [(out.what, out.action, out.data) for out in edit.leaving] == [
        (ADDED, None, b"WARNING: x"),
        (SAME, None, text(ANSWER)),
    ]


def test_noise_stands_at_the_beginning_of_a_body() -> None:
    (out,) = struck("noise", transport="http").leaving
    assert (out.what, out.data) == (CHANGED, b"this is no JSON-RPC\n" + text(ANSWER))


def test_no_utf_8() -> None:
    (out,) = struck("invalid-utf8").leaving
    assert out.data.replace(b"\xff\xfe", b"") == text(ANSWER)
    with pytest.raises(UnicodeDecodeError):
        out.data.decode()
    assert json.loads(out.data.decode(errors="replace"))["result"]["content"][0]["text"].startswith("hi")


@pytest.mark.parametrize(
    ("value", "header"),
    [
        ("401", ("WWW-Authenticate", 'Bearer error="invalid_token"')),
        ("401:Basic", ("WWW-Authenticate", "Basic")),
        ("403:Bearer", ("WWW-Authenticate", "Bearer")),
        ("404", None),
        ("429:30", ("Retry-After", "30")),
        ("503", ("Retry-After", "1")),
        ("500", None),
        ("599", None),
    ],
)
def test_http_refuses(value: str, header: tuple[str, str] | None) -> None:
    (out,) = struck(f"status={value}", at="call", transport="http").leaving
    answer = out.action
    assert isinstance(answer, HttpAnswer)
    assert answer.status == int(value[:3])
    assert list(answer.headers)[1:] == ([] if header is None else [header])
    assert json.loads(answer.body)["error"]["message"]


def test_http_refuses_what_a_client_sends_only() -> None:
    faulty = Faulty("status,if=kind:request", transport="http")
    assert faulty.server(request(1, "ping")) is None
    assert faulty.client(request(1, "ping")) is not None


def test_broken_connections() -> None:
    (stalled,), (broken,), (paced,) = (struck(fault).leaving for fault in ("stall", "disconnect", "slow=1k"))
    assert isinstance(stalled.action, Stall)
    assert isinstance(broken.action, Disconnect)
    assert isinstance(paced.action, Paced)
    assert (paced.action.bytes_per_second, paced.data) == (1024, text(ANSWER))
    (hardly,) = struck("slow=1g").leaving
    assert isinstance(hardly.action, Paced)
    assert len(text(ANSWER)) / hardly.action.bytes_per_second > 0.001


def test_a_fault_that_cannot_be_done_to_a_message_is_none() -> None:
    faulty = Faulty("error,if=kind:notification", "wrong-id,if=kind:notification")
    assert faulty.client(notification("notifications/cancelled")) is None
    assert faulty.server(b"no JSON") is None
    assert faulty.server(b'"a string"') is None
    assert faulty.editor.end() == [
        "the fault error,if=kind:notification struck no message: none matches",
        "the fault wrong-id,if=kind:notification struck no message: none matches",
    ]


def test_latency_comes_besides_another_fault() -> None:
    faulty = Faulty("drop", "latency=1us,if=kind:request", "duplicate")
    assert faulty.client(CALL) == Edit("faults", f"fault drop + latency=1us {BY_CLIENT}", [])


def test_a_batch() -> None:
    faulty = Faulty("drop,if=id:2")
    assert faulty.left("c2s", [call(1, "a"), call(2, "b"), call(3, "c")]) == [[call(1, "a"), call(3, "c")]]
