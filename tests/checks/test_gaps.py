"""MCP902: what is missing, in words that mean something to people, and a remedy that fits the reason."""

from typing import Any

import pytest

from mcpsniff.capture.records import Header, Record
from mcpsniff.checks import Finding
from mcpsniff.decoder import Decoder
from mcpsniff.protocol.exchange import Exchange
from mcpsniff.transcript.advice import what_to_do
from mcpsniff.transcript.summary import Summary

CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
OPENED: dict[str, list[tuple[dict[str, Any], bytes]]] = {
    "pipes": [({"kind": "stdin", "dir": "c2s", "conn": 0}, CALL + b"\n"), ({"kind": "stdout", "dir": "s2c"}, b"")],
    "tcp": [
        (
            {"kind": "tcp", "dir": "c2s", "conn": 3},
            b"POST /mcp HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(CALL), CALL),
        ),
        ({"kind": "tcp", "dir": "s2c", "conn": 3}, b""),
    ],
    "http": [
        (
            {
                "kind": "http-request",
                "dir": "c2s",
                "conn": 0,
                "meta": {
                    "start": "POST /mcp?key=1 HTTP/1.1",
                    "headers": [["content-type", "application/json"]],
                    "scheme": "https",
                    "authority": "mcp.example",
                },
            },
            CALL,
        ),
        (
            {
                "kind": "http-response",
                "dir": "s2c",
                "conn": 0,
                "of": 0,
                "meta": {"start": "HTTP/1.1 200 OK", "headers": [["content-type", "application/json"]]},
            },
            b"",
        ),
    ],
}


def decoded(kind: str, why: str, size: int = 12, channel: int = 1) -> tuple[Finding, Summary]:
    """The finding for a gap in ``channel`` of a session with one request, and what the session comes to."""
    decoder = Decoder(Header("", 1, "", "stdio" if kind == "pipes" else "http"))
    records = []
    for number, (fields, data) in enumerate(OPENED[kind]):
        records.append(Record(number, "open", number, fields))
        if data:
            records.append(Record(number, "chunk", number, data))
        if kind == "http" and number == 0 and channel == 1:
            records.append(Record(number, "close", number, {"how": "eof"}))
    records += [Record(5, "gap", channel, {"bytes": size, "why": why}), Record(6, "close", 1, {"how": "eof"})]
    events = [event for record in records for event in decoder.feed(record)] + decoder.finish()
    summary = Summary()
    summary.feed(events)
    assert [one.method for one in events if isinstance(one, Exchange)] == ["tools/list"]
    (found,) = [one for one in events if isinstance(one, Finding) and one.code == "MCP902"]
    return found, summary


@pytest.mark.parametrize(
    ("kind", "channel", "where"),
    [
        ("pipes", 0, "the server's stdin"),
        ("pipes", 1, "the server's stdout"),
        ("tcp", 0, "what the client sent on connection 3"),
        ("tcp", 1, "what the server sent on connection 3"),
        ("http", 1, "the response body of POST /mcp for #2 tools/list"),
    ],
)
def test_the_place_is_named_as_people_know_it(kind: str, channel: int, where: str) -> None:
    found, _ = decoded(kind, "queue", channel=channel)
    assert found.text == f"not in the capture: 12 bytes of {where}; the queue to the disk was full"


@pytest.mark.parametrize(
    ("why", "reason", "fix"),
    [
        ("queue", "the queue to the disk was full", "Record to a faster disk"),
        ("disk", "the disk did not take it", "Make room on the disk"),
        ("limit", "the capture had reached its limit", "Raise the limit"),
        ("secret", "it holds secrets", "Nothing needs to be done"),
        ("internal", "a bug of mcpsniff", "Report it to the mcpsniff project"),
        ("source", "the imported file does not have it", "--set store_streamed_bodies=true"),
        ("another addon let it stream", "another addon let it stream", "stream_large_bodies"),
        ("moths\x1b", "moths\\x1b", "Ask what wrote the capture"),
    ],
)
def test_the_remedy_fits_the_reason(why: str, reason: str, fix: str) -> None:
    found, _ = decoded("http", why)
    assert f"; {reason}" in found.text
    assert fix in what_to_do(found)
    assert ("faster" in what_to_do(found)) == (why == "queue")


@pytest.mark.parametrize("kind", list(OPENED))
def test_a_request_whose_answer_may_be_missing_is_not_counted_as_unanswered(kind: str) -> None:
    _, summary = decoded(kind, "source")
    assert (summary.unseen, summary.waiting, [one.method for one in summary.unseen_first]) == (1, 0, ["tools/list"])
    assert summary.unanswered == []
    assert [calls.unanswered for calls in summary.methods.values()] == [0]
