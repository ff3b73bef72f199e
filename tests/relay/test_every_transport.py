"""Edit mode, the same on every transport: what leaves on both sides, what is recorded, and what people read.

Each action is done to a call, or to its answer, while another call is in flight.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import run
from tests.relay.editing import HELD
from tests.relay.wires import WIRES, Wire, wire

ADDON = Path(__file__).with_name("editing.py")


@pytest.fixture(scope="module", params=WIRES)
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Session]":
    """One session for all actions; its capture is looked at when it is over."""
    with wire(request.param, tmp_path_factory.mktemp("wire"), "--addon", str(ADDON)) as between:
        opened = Session(between, request.param)
        opened.open()
        yield opened


class Session:
    """Calls, their answers, and what became of them."""

    def __init__(self, between: Wire, name: str) -> None:
        self.wire, self.name = between, name
        self.client, self.server = between.client, between.server
        self.number = self.others = 0

    def open(self) -> None:
        """The handshake of MCP."""
        about = '"protocolVersion":"2025-06-18","capabilities":{{}},"{}":{{"name":"x","version":"1"}}'
        params = f'{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{{about.format("clientInfo")}}}}}'.encode()
        self.client.send(params)
        assert self.server.take() == params
        result = f'{{"jsonrpc":"2.0","id":0,"result":{{{about.format("serverInfo")}}}}}'.encode()
        self.server.send(result)
        assert self.client.take() == result
        ready = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
        self.client.send(ready)
        assert self.server.take() == ready

    def begin(self) -> None:
        """Another call is in flight."""
        self.others += 1
        call = f'{{"jsonrpc":"2.0","id":"other-{self.others}","method":"tools/call","params":{{"name":"slow"}}}}'
        self.client.send(call.encode())
        assert self.server.take() == call.encode()

    def end(self) -> None:
        """And it is answered, untouched by all that was done meanwhile."""
        answer = f'{{"jsonrpc":"2.0","id":"other-{self.others}","result":{{"content":[]}}}}'.encode()
        self.server.send(answer)
        assert self.client.take() == answer
        assert self.client.rest() == self.server.rest() == []

    def call(self, tool: str, more: str = "") -> bytes:
        """Send a call with spaces of its own; return its text."""
        self.number += 1
        text = f'{{"jsonrpc": "2.0", "id":{self.number},  "method":"tools/call", "params":{{"name":"{tool}"{more}}} }}'
        self.client.send(text.encode())
        return text.encode()

    def answer(self, more: str = '"content": [1.0]') -> bytes:
        text = f'{{"jsonrpc":"2.0","id":{self.number} ,"result": {{ {more} }}}}'.encode()
        self.server.send(text)
        return text


@pytest.fixture
def other(session: Session) -> "Iterator[Session]":
    session.begin()
    yield session
    session.end()


def test_what_nobody_changes_passes_as_it_came(other: Session) -> None:
    assert other.call("echo") == other.server.take()
    assert other.answer() == other.client.take()


def test_a_call_and_an_answer_are_changed_with_no_other_byte_touched(other: Session) -> None:
    sent = other.call("change-call", ', "arguments":{"a":1.0, "path" : "/etc"}')
    assert other.server.take() == sent.replace(b'"/etc"', b'"/tmp"')
    assert other.answer() == other.client.take()

    other.call("change-answer")
    other.server.take()
    sent = other.answer()
    assert other.client.take() == sent.replace(b"[1.0]", b"[]")


def test_a_notification_of_either_side_is_changed(other: Session) -> None:
    other.call("echo")
    other.server.take()
    other.server.send(b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info", "data":1.0}}')
    assert json.loads(other.client.take())["params"] == {"level": "debug", "data": 1.0}
    assert other.answer() == other.client.take()
    other.client.send(b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info"}}')
    assert other.server.take() == b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"debug"}}'


def test_a_notification_of_either_side_is_dropped(other: Session) -> None:
    secret = b'{"jsonrpc":"2.0","method":"notifications/secret"}'
    other.client.send(secret)
    assert other.call("echo") == other.server.take()
    other.server.send(secret)
    assert other.answer() == other.client.take()


def test_a_call_is_answered_in_the_place_of_the_server(other: Session) -> None:
    other.call("answer")
    said = json.loads(other.client.take())
    assert said == {"jsonrpc": "2.0", "id": other.number, "error": {"code": -32000, "message": "not today"}}
    assert other.call("echo") == other.server.take(), "the server has not seen the other one"
    assert other.answer() == other.client.take()


def test_a_dropped_call_does_not_reach_the_server(other: Session) -> None:
    other.call("drop-call")
    assert other.call("echo") == other.server.take()
    assert other.answer() == other.client.take()


def test_what_is_held_holds_up_nothing_of_the_other_direction(other: Session) -> None:
    sent = other.call("delay-call")
    assert other.server.take() == sent
    assert other.answer() == other.client.take()
    other.call("delay-answer")
    other.server.take()
    sent = other.answer()
    note = b'{"jsonrpc":"2.0","method":"notifications/still-here"}'
    other.client.send(note)
    assert other.server.take() == note
    assert other.client.take() == sent


def test_notifications_go_before_and_after_a_call_and_its_answer(other: Session) -> None:
    sent = other.call("notify-server")
    came = [other.server.take() for _ in range(3)]
    assert came[1] == sent
    assert [json.loads(text).get("method") for text in came[::2]] == ["notifications/before", "notifications/after"]
    assert other.answer() == other.client.take()

    other.call("notify-client")
    other.server.take()
    sent = other.answer()
    came = [other.client.take(), other.client.take()]
    assert {b'{"jsonrpc":"2.0","method":"notifications/first"}', sent} == set(came)
    if "json" not in other.name:  # there the answer is a body, and the notification goes its own way
        assert came[1] == sent

    sent = other.call("tell-client")
    assert other.server.take() == sent
    assert other.client.take() == b'{"jsonrpc":"2.0","method":"notifications/heard"}'
    assert other.answer() == other.client.take()


@pytest.mark.parametrize("asked", ["server", "client"])
def test_the_answer_to_a_request_of_our_own_is_kept_from_the_other_side(other: Session, asked: str) -> None:
    sent = other.call(f"ask-{asked}")
    if asked == "server":
        request = json.loads(other.server.take())
        other.server.send(_pong(request))
        assert other.server.take() == sent
        assert other.answer() == other.client.take()
    else:
        assert other.server.take() == sent
        answered = other.answer()
        came = [other.client.take(), other.client.take()]
        came.remove(answered)
        request = json.loads(came[0])
        other.client.send(_pong(request))
    assert request["method"] == "ping"
    assert str(request["id"]).startswith("mcpsniff-")


def test_the_capture_tells_what_came_and_what_went(session: Session) -> None:
    """The last one: it ends the session."""
    assert "Traceback" not in session.wire.said
    capture = session.wire.finish()
    changes = [body for _, kind, _, body in (record[:4] for record in capture.records) if kind == "rewrite"]
    ours = [body for body in changes if body["by"] == "editing"]
    whys = {body.get("why") for body in ours}
    assert {"closed", "lost", "the answer to a request that it had made"} <= whys
    holds = [body for _, kind, _, body in (record[:4] for record in capture.records) if kind == "hold"]
    assert len([body for body in holds if body["us"] >= HELD * 1e6]) == 2

    shown = run("show", str(capture.path))
    assert shown.status == 0, shown.err
    for words in ("editing", "closed", "lost", "not today", "held"):
        assert words in shown.out, words
    done = run("show", str(capture.path), "--format", "json", "--payload")
    events = [json.loads(line) for line in done.out.splitlines()]
    assert _blamed(events) == []


def _blamed(events: list[dict[str, Any]]) -> list[str]:
    """What peers are blamed for: nothing but what this session does on its own."""
    return [
        f"{event['code']} {event['name']}: {event['text']}"
        for event in events
        if event["type"] == "finding" and event["blame"] in ("client", "server") and event["severity"] == "error"
    ]


def _pong(request: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": {}}).encode()
