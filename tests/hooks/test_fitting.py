"""Messages that hooks make have what the revision of the request asks for, and nothing else."""

import json
from typing import Any

import pytest

from mcpsniff.hooks.actions import Returned, answer, refuse, request
from mcpsniff.hooks.editor import Editor, Outgoing
from mcpsniff.protocol.message import Message
from mcpsniff.protocol.reading import JsonReader
from mcpsniff.wire.ndjson import LineSplitter
from tests.hooks.test_editor import Hook, Lane

KEY = "io.modelcontextprotocol/"
ENVELOPE = {
    f"{KEY}protocolVersion": "2026-07-28",
    f"{KEY}clientInfo": {"name": "c", "version": "1"},
    f"{KEY}clientCapabilities": {"elicitation": {}},
}
OF_A_CALL = {"resultType": "complete"}
OF_A_LIST = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


def asked(method: str, meta: dict[str, Any] | None) -> dict[str, Any]:
    params = {} if meta is None else {"_meta": {**meta, "progressToken": 1}}
    return {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}


def leaving(does: Any, *bodies: dict[str, Any]) -> list[Outgoing]:
    """What leaves for the last of these requests."""
    editor = Editor([Hook(does)], print)
    for body in bodies:
        (frame,) = LineSplitter(0, "c2s").feed(0, json.dumps(body).encode() + b"\n")
        edit = editor.edit(frame, editor.talk(1), Lane(), JsonReader())
    assert edit is not None
    return edit.leaving


def result(given: dict[str, Any], method: str, meta: dict[str, Any] | None) -> Any:
    def answered(message: Message) -> Returned:
        return answer(message, given)

    (out,) = leaving(answered, asked(method, meta))
    return json.loads(out.data)["result"]


@pytest.mark.parametrize(
    ("method", "given", "added"),
    [
        ("tools/call", {"content": []}, OF_A_CALL),
        ("tools/list", {"tools": []}, OF_A_LIST),
        ("server/discover", {"ttlMs": 5}, {"resultType": "complete", "cacheScope": "private"}),
        ("resources/read", {"resultType": "input_required", "inputRequests": {}}, {}),
        ("tools/call", {"resultType": "task"}, {}),
    ],
)
def test_a_made_answer_is_complete(method: str, given: dict[str, Any], added: dict[str, Any]) -> None:
    assert result(given, method, ENVELOPE) == {**given, **added}
    older = {**ENVELOPE, f"{KEY}protocolVersion": "2025-11-25"}
    assert result(given, method, older) == result(given, method, None) == given


def test_an_error_gets_nothing() -> None:
    (out,) = leaving(lambda message: refuse(message, "no"), asked("tools/list", ENVELOPE))
    assert json.loads(out.data) == {"jsonrpc": "2.0", "id": 7, "error": {"code": -32000, "message": "no"}}


def test_a_made_request_has_the_envelope_of_the_latest_one() -> None:
    other = {**ENVELOPE, f"{KEY}clientCapabilities": {}}
    own = {"_meta": {f"{KEY}clientInfo": {"name": "x", "version": "2"}, "a": 1}}

    def params(given: dict[str, Any] | None, *metas: dict[str, Any] | None) -> Any:
        def asks(message: Message) -> Returned:
            return [request("tools/list", given), message]

        first, _ = leaving(asks, *(asked("tools/call", meta) for meta in metas))
        return json.loads(first.data).get("params")

    assert params(None, ENVELOPE) == {"_meta": ENVELOPE}
    assert params({"cursor": "x"}, ENVELOPE, other) == {"cursor": "x", "_meta": other}
    assert params(own, ENVELOPE) == {"_meta": {**ENVELOPE, **own["_meta"]}}
    assert params(None, None) is None
    assert params(None, ENVELOPE, None) is None
    complete = {"_meta": {f"{KEY}protocolVersion": "2026-07-28"}}
    assert params(complete, ENVELOPE) == complete
