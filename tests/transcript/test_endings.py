"""Every shape of an end is said in plain words, and who sent which signal is said truthfully."""

from typing import Any

import pytest

from mcpsniff.capture.records import Record
from mcpsniff.proxy import session
from mcpsniff.transcript.endings import _ABORTED
from tests.sessions import OPENS
from tests.transcript.rendering import markdown, text


@pytest.mark.parametrize(
    ("channel", "body", "says"),
    [
        (0, {"how": "eof"}, "the client closed the server's stdin"),
        (1, {"how": "eof"}, "the server closed its stdout"),
        (2, {"how": "eof"}, None),
        (0, {"how": "aborted", "error": "the server closed its end"}, "the server closed its stdin and reads no more"),
        (
            0,
            {"how": "aborted", "error": "the client closed its end"},
            "mcpsniff closed the server's stdin, because the client stopped reading",
        ),
        (
            0,
            {"how": "aborted", "error": "the server ended"},
            "the server had ended before the client closed its stdin",
        ),
        (1, {"how": "aborted", "error": "the client closed its end"}, "the client stopped reading the server's stdout"),
        (2, {"how": "aborted", "error": "the client closed its end"}, "the client stopped reading the server's stderr"),
        (
            2,
            {"how": "aborted", "error": "held open by another process"},
            "another process still holds the server's stderr open",
        ),
        (
            2,
            {"how": "aborted", "error": "not read by the client"},
            "the client did not read the rest of the server's stderr",
        ),
        (0, {"how": "reset"}, "reading from the client failed"),
        (1, {"how": "reset"}, "reading the server's stdout failed"),
        (2, {"how": "reset"}, "reading the server's stderr failed"),
        (1, {"how": "exit", "status": 3}, "the server exited with status 3"),
        (1, {"how": "killed", "signal": 9}, "the server was killed by signal 9 (KILL)"),
        (1, {"how": "killed", "signal": 99}, "the server was killed by signal 99"),
        (
            1,
            {"how": "exit", "status": 0, "sent": ["INT"], "by": "client"},
            "the server exited with status 0: it had been sent INT by the client",
        ),
        (
            1,
            {"how": "killed", "signal": 9, "sent": ["INT", "INT", "KILL"], "by": "mcpsniff"},
            "the server was killed by signal 9 (KILL): it had been sent INT, INT and then KILL, the last by mcpsniff",
        ),
        (
            1,
            {"how": "killed", "signal": 15, "sent": ["TERM"]},
            "the server was killed by signal 15 (TERM): it had been sent TERM",
        ),
        (1, {"how": "error", "error": "no such command: x"}, "the server could not be started: no such command: x"),
        (0, {"how": "odd", "error": "why"}, "the server's stdin was cut off: odd, why"),
    ],
)
def test_ends_in_plain_words(channel: int, body: dict[str, Any], says: str | None) -> None:
    said = [*OPENS, Record(5, "close", channel, body)]
    shown = [line.split("■ ")[1] for line in text(said, width=200).splitlines() if "■" in line]
    assert shown == ([] if says is None else [says])
    if says is not None:
        assert says.split(":")[0] in markdown(said).replace("\\", "")


def test_the_reasons_are_those_that_are_recorded() -> None:
    recorded = {session.CLIENT_CLOSED, session.SERVER_CLOSED, session.SERVER_ENDED, session.HELD_OPEN, session.NOT_READ}
    assert {error for _, error in _ABORTED} == recorded
