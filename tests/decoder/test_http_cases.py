"""Public bug cases about HTTP (tests/cases/cases.json), from recorded bytes to events; each bears its number."""

import base64
import gzip
import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from mcpsniff.capture.records import Record
from mcpsniff.checks import ERROR, WARNING
from mcpsniff.wire.frames import Frame
from tests.decoder.told import codes, exchanges, https, messages, outcomes, played, recut, spelt
from tests.sessions import decode

CASES = {
    case["id"]: case
    for case in json.loads((Path(__file__).parents[1] / "cases" / "cases.json").read_text(encoding="utf-8"))
}
RESULT = spelt("$result(1)").encode()
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\n"
OPENS = [
    Record(0, "open", 0, {"kind": "tcp", "dir": "c2s", "conn": 0}),
    Record(0, "open", 1, {"kind": "tcp", "dir": "s2c", "conn": 0, "of": 0}),
]


def wire(number: str) -> bytes:
    given: dict[str, Any] = CASES[number]["input"]
    if "text" in given:
        return str(given["text"]).encode()
    if "template" in given:
        form = given["template"]
        return str(form["prefix"] + form["repeat"] * form["count"] + form["suffix"]).encode()
    return base64.b64decode(given["base64"])


def post(*numbers: int) -> bytes:
    body = "[" + ",".join(spelt(f"$call({number})") for number in numbers) + "]"
    body = body[1:-1] if len(numbers) == 1 else body
    return b"POST /mcp HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (
        len(body),
        body.encode(),
    )


def records(request: bytes, response: bytes, size: int = 65_536) -> list[Record]:
    """One request and its response, which comes in pieces; then the server closes the connection."""
    pieces = [response[at : at + size] for at in range(0, len(response), size)]
    said = [Record(2 + t, "chunk", 1, piece) for t, piece in enumerate(pieces)]
    return [*OPENS, Record(1, "chunk", 0, request), *said, Record(len(said) + 3, "close", 1, {"how": "eof"})]


def streamed(stream: bytes) -> bytes:
    return HEAD % b"text/event-stream" + b"\r\n" + stream


@pytest.mark.parametrize("number", ["B39", "B42", "B51"])
@pytest.mark.parametrize("size", [1, 11, 65_536])
def test_events_pair(number: str, size: int) -> None:
    expect = CASES[number]["expect"]
    ids = expect.get("pairs_by_id", [1])
    events = decode(recut(records(post(*ids), streamed(wire(number))), size))
    frames = [event for event in events if isinstance(event, Frame) and event.framing == "sse"]

    assert [frame.payload.decode() for frame in frames] == [one["data"] for one in expect["events"]]
    assert [frame.sse.event for frame in frames if frame.sse] == [one["event"] for one in expect["events"]]
    assert [(one.key, one.response is not None) for one in exchanges(events)] == [(key, True) for key in ids]
    assert len([message for message in messages(events) if message.direction == "s2c"]) == len(ids)
    assert "MCP532" not in codes(events), "neither empty data nor an event of another protocol is a parse error"


def test_B47_the_tail_is_kept_and_its_request_stays_unanswered() -> None:
    events = decode(records(post(9), streamed(wire("B47"))))
    tail = [event for event in events if isinstance(event, Frame)][-1]

    assert outcomes(events) == ["t 9 abandoned 1→"]
    assert (tail.payload, tail.flaws) == (b'{"jsonrpc":"2.0","id":9,"resul', ("unterminated",))
    assert tail.n not in {message.frame.n for message in messages(events)}, "a reader sees no event there"


def test_B48_a_line_of_three_million_bytes() -> None:
    events = decode(records(post(4, 5), streamed(wire("B48"))))
    assert outcomes(events) == ["t 4 answered 1→1", "t 5 answered 1→1"]


def test_B55_a_compressed_stream_gives_each_event_when_it_comes() -> None:
    dialogue = played(
        "@open 2025-11-25\nC> POST /mcp $call(1)\nS> 200 STREAM\n    Content-Encoding: gzip\n"
        + "".join(f"+ 500ms\nS> EVENT $note(n{number})\n" for number in range(5))
    )
    told = [message for message in messages(dialogue.events) if (message.method or "").startswith("n")][-5:]

    assert [message.t // 500_000 for message in told] == [1, 2, 3, 4, 5]
    assert {message.frame.coding for message in told} == {"gzip"}


def test_B57_a_coding_that_was_not_applied() -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    request = b"POST /mcp HTTP/1.1\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n"
    request += b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    events = decode(records(request, b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"))

    assert [(message.method, message.flaws) for message in messages(events)] == [("ping", ("coding-mismatch",))]
    assert "coding-mismatch" in https(events)[0].flaws


def test_B71_length_and_chunking_together() -> None:
    events = decode(records(post(1), wire("B71")))
    (answer,) = [message for message in messages(events) if message.direction == "s2c"]

    assert outcomes(events) == ["t 1 answered 1→1"]
    assert answer.raw.decode() == CASES["B71"]["expect"]["body"]
    assert https(events)[0].flaws == ("conflicting-framing",)


def test_B77_answers_without_content_are_normal() -> None:
    events = played(
        """
        @open 2025-11-25
        C> GET /mcp
        S> 405
            Allow: POST
        C> DELETE /mcp
        S> 404
        """
    ).events

    assert [message.kind for message in messages(events)] == ["request", "response", "notification"]
    assert codes(events, ERROR, WARNING) == []


def test_B117_wire_and_decoded_sizes_are_both_there() -> None:
    coded = gzip.compress(RESULT, mtime=0)
    response = HEAD % b"application/json" + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(coded) + coded
    events = decode(records(post(1), response))
    (http,) = https(events)
    answer = messages(events)[-1]

    assert (http.answered.wire, http.answered.size) == (len(coded), len(RESULT)) == (len(coded), answer.size)
    assert http.exchange.says("content-length") == str(len(coded))
    (span,) = answer.spans
    assert span.stop - span.start == len(coded), "the recorded bytes are the coded ones"


def test_B148_a_bomb_is_read_up_to_the_limit_only() -> None:
    packer = zlib.compressobj(wbits=31)
    coded = b"".join(packer.compress(b'{"a":"' + bytes(1 << 20)) for _ in range(64)) + packer.flush()
    response = HEAD % b"application/json" + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(coded) + coded
    events = decode(records(post(1), response))
    (http,) = https(events)

    assert http.answered.wire == len(coded)
    assert http.answered.size <= 16 << 20
    assert "decode-cap" in http.flaws
    assert codes(events, ERROR) == ["MCP301"], "what was not read is nobody's fault"


@pytest.mark.parametrize(
    ("coded", "state", "flaw"),
    [
        (gzip.compress(RESULT[:20]) + gzip.compress(RESULT[20:]), "answered", ""),
        (gzip.compress(RESULT)[:30], "abandoned", "coding-cut"),
        (gzip.compress(RESULT) + bytes(10), "answered", "coding-trailing"),
    ],
    ids=["joined", "cut", "trailed"],
)
def test_B149_compressed_bodies_that_are_joined_cut_or_trailed(coded: bytes, state: str, flaw: str) -> None:
    response = HEAD % b"application/json" + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(coded) + coded
    events = decode(records(post(1), response))

    assert [one.state for one in exchanges(events)] == [state]
    assert https(events)[0].flaws == ((flaw,) if flaw else ())


# -- limits and forms --------------------------------------------------------------------------------------------------


def test_what_is_too_large_is_read_in_part_and_blamed_on_nobody() -> None:
    text = '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"' + "x" * 5_000 + '"}]}}'
    dialogue = played(
        "@limit 300\n@open 2025-11-25 none\nC> POST /mcp $call(1)\nS> 200 " + text + "\n"
        "C> POST /mcp $call(2)\nS> 200 STREAM\nS> EVENT " + text.replace('"id":1', '"id":2') + "\nS> END\n"
    )
    told = [message.frame for message in messages(dialogue.events) if "truncated" in message.flaws]

    assert [(frame.framing, frame.size, len(frame.payload)) for frame in told] == [
        ("body", len(text), 300),
        ("sse", len(text), 300),
    ]
    assert outcomes(dialogue.events)[1:] == ["t 1 answered 3→3", "t 2 answered 4→4"]
    assert codes(dialogue.events, ERROR, WARNING) == []


def test_spans_of_a_chunked_body_name_each_chunk() -> None:
    dialogue = played("C> POST /mcp $call(1)\n    Transfer-Encoding: chunked")
    (message,) = messages(dialogue.events)
    wire = b"".join(one.body for one in dialogue.records if one.kind == "chunk")

    assert len(message.spans) == 2
    assert b"".join(wire[span.start : span.stop] for span in message.spans) == message.raw


def test_interim_responses_and_heads_are_no_answers() -> None:
    events = played(
        """
        C> POST /mcp $call(1)
            Expect: 100-continue
        S| b"HTTP/1.1 100 Continue\\r\\n\\r\\n"
        S> 200 $result(1)
        C> HEAD /mcp
        S| b"HTTP/1.1 200 OK\\r\\nContent-Length: 9\\r\\n\\r\\n"
        C> POST /mcp $call(2)
        S> 200 $result(2)
        """
    ).events

    assert outcomes(events) == ["t 1 answered 1→1", "t 2 answered 3→3"]
    assert [event.exchange.interim for event in https(events)] == [[100], [], []]


@pytest.mark.parametrize(
    ("kind", "body", "is_message"),
    [
        ("application/json", '{"jsonrpc":"2.0","method":"x"}', True),
        ("text/plain", '{"jsonrpc":"2.0","method":"x"}', True),
        ("text/plain", ' [{"jsonrpc":"2.0","method":"x"}]', True),
        ("application/json", '{"client_name":"x"}', True),
        ("application/json", "{broken", True),
        ("text/plain", '{"a":{"jsonrpc":"2.0"}}', False),
        ("text/html", "<html>", False),
        ("application/x-www-form-urlencoded", "grant_type=x", False),
        ("application/json", " ", False),
    ],
)
def test_which_bodies_are_messages(kind: str, body: str, is_message: bool) -> None:
    """What is posted as JSON to where MCP is spoken ought to be a message; elsewhere it has to look like one."""
    request = f"C> POST %s {body}\n    Content-Type: {kind}\n%s"
    here = played(request % ("/mcp", "")).events
    elsewhere = played(request % ("/register", "    Accept: */*")).events

    assert bool(messages(here)) is is_message
    assert bool(messages(elsewhere)) is ("jsonrpc" in body and is_message)
