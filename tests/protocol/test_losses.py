"""What the capture lacks is blamed on nobody: gaps, damage and messages kept in part (principle 10)."""

import pytest

from mcpsniff.capture.records import Record
from mcpsniff.checks import MCPSNIFF
from mcpsniff.decoder import Decoder
from tests.sessions import OPENS, decode, end, findings, line

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}},
}
RESULT = {
    "jsonrpc": "2.0",
    "id": 0,
    "result": {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}},
}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
OPENING = [("c2s", INITIALIZE), ("s2c", RESULT), ("c2s", INITIALIZED)]
ROOTS_CHANGED = {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}
REFUSED = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "x"}}


def call(number: int, method: str = "tools/list") -> tuple[str, object]:
    return "c2s", {"jsonrpc": "2.0", "id": number, "method": method}


def result(number: int) -> tuple[str, object]:
    return "s2c", {"jsonrpc": "2.0", "id": number, "result": {"tools": []}}


def progress(token: object) -> tuple[str, object]:
    params = {"progressToken": token, "progress": 1}
    return "s2c", {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}


LOST_FROM_CLIENT = ("gap", 0)
LOST_FROM_SERVER = ("gap", 1)
LOST_ANYWHERE = ("gap", None)


def blamed(said: list[tuple[str, object]], *, ends: bool = False, killed: bool = False) -> list[str]:
    made, t = list(OPENS), 0
    for word, what in said:
        t += 1000
        if word == "gap":
            assert what is None or isinstance(what, int)
            made.append(Record(t, "gap", what, {"bytes": 9, "why": "queue"}))
        elif word == "wait":
            assert isinstance(what, int)
            t += what * 1_000_000
        else:
            made.append(Record(t, "chunk", 0 if word == "c2s" else 1, line(what)))
    if ends:
        made += end(t + 120_000_000)
    if killed:
        made.append(Record(t + 1000, "close", 1, {"how": "exit", "status": 1}))
    return [one.name for one in findings(decode(made)) if one.blame != MCPSNIFF]


@pytest.mark.parametrize(
    "said",
    [
        [*OPENING, LOST_FROM_CLIENT, result(3)],
        [*OPENING, LOST_ANYWHERE, result(3)],
        [*OPENING, LOST_FROM_CLIENT, progress("tok")],
        [*OPENING, LOST_FROM_CLIENT, ("c2s", ROOTS_CHANGED), ("s2c", REFUSED)],
        [*OPENING, ("c2s", ROOTS_CHANGED), LOST_FROM_CLIENT, ("s2c", REFUSED)],
        [*OPENING, call(1), result(1), LOST_FROM_CLIENT, result(1)],
        [LOST_FROM_CLIENT, call(1, "ping"), call(2)],
        [*OPENING[:2], LOST_FROM_CLIENT, call(1, "ping"), call(2)],
        [*OPENING, ("s2c", {"jsonrpc": "2.0", "id": 1, "method": "roots/list"}), LOST_FROM_SERVER],
    ],
)
def test_nobody_is_blamed_for_what_was_lost(said: list[tuple[str, object]]) -> None:
    assert [name for name in blamed(said) if name != "response-uncorrelated"] == []


@pytest.mark.parametrize("lost", [LOST_FROM_SERVER, LOST_FROM_CLIENT, LOST_ANYWHERE])
def test_a_request_whose_answer_or_cancel_may_be_lost_is_not_unanswered(lost: tuple[str, object]) -> None:
    said = [*OPENING, call(3), lost]

    assert blamed(said, ends=True) == []
    assert blamed(said, killed=True) == []
    assert blamed([*OPENING, lost, call(3)], killed=True) == ["server-died", "request-unanswered"]


def test_a_damaged_request_is_a_loss_too() -> None:
    """A request that was kept only in part, and has no id in that part, may be what the answer is about."""
    decoder = Decoder(frame_limit=40)
    long = b'{"jsonrpc":"2.0","method":"tools/call","params":{"x":"' + b"y" * 90 + b'"},"id":7}\n'
    made = [*OPENS, Record(1, "chunk", 0, long), Record(2, "chunk", 1, line(result(7)[1]))]

    assert [one.name for one in findings(decode(made, decoder=decoder)) if one.blame != MCPSNIFF] == []
