"""The notation for dialogues over HTTP: what it puts on the wire, and what it refuses."""

import zlib

import pytest

from tests.dialogue import DialogueError, play

PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}'


def wire(text: str) -> list[tuple[str, int | None, object]]:
    """The records of a dialogue, heads and bodies as text."""
    records = play("@http\n" + text, checks=[]).records
    return [(one.kind, one.channel, one.body.decode() if one.kind == "chunk" else one.body) for one in records]


def test_a_request_and_its_response() -> None:
    said = wire(f'C> POST /mcp {PING}\nS> 200 {{"jsonrpc":"2.0","id":1,"result":{{}}}}')

    assert [kind for kind, _, _ in said] == ["open", "open", "chunk", "chunk"]
    assert said[0][2]["kind"] == "tcp"  # type: ignore[index]
    assert said[1][2]["of"] == 0  # type: ignore[index]
    assert said[2][1:] == (
        0,
        (
            "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:9000\r\nAccept: application/json, text/event-stream\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(PING)}\r\n\r\n{PING}"
        ),
    )
    assert said[3][1:] == (
        1,
        (
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 36\r\n\r\n"
            '{"jsonrpc":"2.0","id":1,"result":{}}'
        ),
    )


def test_headers_are_replaced_added_and_left_out() -> None:
    said = wire("@session s-1\n@version 2025-11-25\nC> GET /mcp\n    accept: */*\n    -Host\n    X-A: 1\n    X-A: 2")

    assert said[-1][2] == (
        "GET /mcp HTTP/1.1\r\nMcp-Session-Id: s-1\r\nMCP-Protocol-Version: 2025-11-25\r\n"
        "accept: */*\r\nX-A: 1\r\nX-A: 2\r\n\r\n"
    )


def test_a_stream_of_events_on_another_connection() -> None:
    said = wire(
        "C2> GET /mcp\nS2> 200 STREAM\nS2> EVENT id=1 retry=30 event=x a⏎b\nS2> EVENT\nS2> COMMENT ping\nS2> END"
    )

    assert {channel for _, channel, _ in said} == {0, 1}
    assert [body for kind, channel, body in said if (kind, channel) == ("chunk", 1)] == [
        (
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n"
            "Transfer-Encoding: chunked\r\n\r\n"
        ),
        "2a\r\nid: 1\nretry: 30\nevent: x\ndata: a\ndata: b\n\n\r\n",
        "8\r\ndata: \n\n\r\n",
        "8\r\n: ping\n\n\r\n",
        "0\r\n\r\n",
    ]


def test_codings_are_carried_out() -> None:
    records = play("@http\nC> GET /\nS> 200 hello\n    Content-Encoding: gzip", checks=[]).records
    head, _, body = records[-1].body.partition(b"\r\n\r\n")

    assert b"Content-Length: %d" % len(body) in head
    assert zlib.decompress(body, wbits=31) == b"hello"


def test_a_connection_that_was_closed_is_opened_anew() -> None:
    said = wire("C> GET /\nC> EOF\nC> GET /")

    assert [(kind, channel) for kind, channel, _ in said] == [
        ("open", 0),
        ("open", 1),
        ("chunk", 0),
        ("close", 0),
        ("close", 1),
        ("open", 2),
        ("open", 3),
        ("chunk", 2),
    ]
    assert said[3][2] == {"how": "eof"}
    assert said[4][2] == {"how": "aborted", "error": "the client closed its end"}


def test_an_answer_of_mcpsniff_is_a_rewrite_where_the_response_would_stand() -> None:
    said = wire("C> GET /\nS> 204\nC> GET /\nM> 502 no")
    kind, channel, body = said[-1]

    assert (kind, channel) == ("rewrite", 1)
    assert isinstance(body, dict)
    assert (body["start"], body["length"], body["by"]) == (len("HTTP/1.1 204 \r\n\r\n"), 0, "mcpsniff")
    assert body["data"].startswith(b"HTTP/1.1 502 Bad Gateway\r\n")


@pytest.mark.parametrize(
    ("dialogue", "complaint"),
    [
        ("    C> GET /", "line 2 is none of a dialogue"),
        ("hello", "line 2 is none of a dialogue"),
        ("S> SOMETHING", "line 2 is none of a dialogue"),
        ("@modest", "line 2 is none of a dialogue"),
        ("C| open()", "line 2: not a bytes literal"),
    ],
)
def test_what_cannot_be_read_is_named(dialogue: str, complaint: str) -> None:
    with pytest.raises(DialogueError, match=complaint):
        wire(dialogue)
