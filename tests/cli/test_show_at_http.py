"""`mcpsniff show --at N` of what passed over HTTP: both heads as they were recorded, and the bytes."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from mcpsniff.capture.records import Record
from mcpsniff.checks import Finding
from mcpsniff.transcript.at import EventPage, find_event
from mcpsniff.transcript.session import Session
from mcpsniff.transcript.terminal import plain
from tests.capture.capture_files import save
from tests.cli.running import run
from tests.transcript.http_sessions import OPEN_ONE, SESSION_ID, TROUBLE, call, hostile, records, result
from tests.transcript.rendering import capture, json_lines

STREAMED = f"""\
{OPEN_ONE}C> POST /mcp {call(1)}
S> 200 STREAM
S> EVENT id=a retry=500
S> COMMENT still here
S> EVENT id=b {result(1)}
S> END
C> POST /mcp {{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}}
    Authorization: Bearer *******
S> 202
"""


@pytest.fixture
def shown(tmp_path: Path) -> Any:
    def show(number: int, *options: str, said: str | list[Record] = STREAMED) -> str:
        path = save(tmp_path, "a.mcpcap", records(said) if isinstance(said, str) else said, transport="http")
        ran = run("show", str(path), "--at", str(number), *options)
        assert (ran.status, ran.err) == (0, "")
        return str(ran.out)

    return show


def number_of(said: str, kind: str, place: int, tmp_path: Path) -> int:
    """The number of the so-manieth event of a type."""
    path = save(tmp_path, "b.mcpcap", records(said), transport="http")
    events = [json.loads(line) for line in run("show", str(path), "--format", "json").out.splitlines()]
    return int([event["n"] for event in events if event["type"] == kind][place])


def test_a_message_shows_the_heads_of_what_carried_it(shown: Any, tmp_path: Path) -> None:
    page = shown(number_of(STREAMED, "message", -2, tmp_path))
    assert page.startswith("#16 response: tools/call echo\n")
    assert "  http        exchange 3 on connection 0, conversation 1, the response to a POST\n" in page
    assert "  event id    b\n" in page
    request, response = page.split("\nHTTP request\n")[1].split("\n\nHTTP response, 1.0 ms later\n")
    assert request.splitlines() == [
        "  POST /mcp HTTP/1.1",
        "  Host: 127.0.0.1:9000",
        "  Accept: application/json, text/event-stream",
        f"  Mcp-Session-Id: {SESSION_ID}",
        "  MCP-Protocol-Version: 2025-11-25",
        "  Content-Type: application/json",
        f"  Content-Length: {len(call(1))}",
    ]
    assert response.startswith("  HTTP/1.1 200 OK\n  Content-Type: text/event-stream\n")
    assert "\nBytes" not in page, "lines of HTTP end with CR LF as a matter of course"


def test_an_exchange_of_http_tells_its_state_and_its_bodies(shown: Any, tmp_path: Path) -> None:
    last = shown(number_of(STREAMED, "http", -2, tmp_path))
    assert last.startswith("#18 http: POST /mcp\n")
    assert "  state       complete: request and response are whole\n" in last
    assert f"  asked       {len(call(1))} bytes, 1 message\n" in last
    assert re.search(r"  answered    \d+ bytes, 1 message, 1 event, 1 priming event, 1 keep-alive\n", last)
    assert re.search(r"  bytes       channel 0, byte \d+ up to \d+; channel 1, byte \d+ up to \d+\n", last)
    assert "  exchange    of request #11: answered after 4.0 ms\n" in last
    accepted = shown(number_of(STREAMED, "http", -1, tmp_path))
    assert "  Authorization: Bearer *******\n" in accepted, "masked as it was recorded"


def test_the_bytes_of_both_heads_are_there_in_hexadecimal(shown: Any, tmp_path: Path) -> None:
    page = shown(number_of(STREAMED, "http", -1, tmp_path), "--hex")
    assert "\nBytes (all of it)\n" in page
    assert "|POST /mcp HTTP/1|" in page
    assert "|HTTP/1.1 202 Acc|" in page


def test_events_without_a_message_have_a_page(shown: Any) -> None:
    assert shown(13).startswith("#13 priming event\n")
    assert "  retry       500 ms\n" in shown(13)
    keep_alive = shown(14)
    assert keep_alive.startswith("#14 keep-alive\n")
    assert "  comment     still here\n" in keep_alive
    assert "\nHTTP response" in keep_alive


def test_every_number_over_http_has_a_page() -> None:
    source = capture(records(TROUBLE), transport="http")
    source.keep()
    numbers = [event.n for events in Session(source).events() for event in events if not isinstance(event, Finding)]
    assert len(numbers) > 60
    for number in numbers[::2]:
        out: list[str] = []
        EventPage(plain(out.append), 90).show(find_event(source, number), source.header)
        assert out[0].startswith(f"#{number} ")
        assert max(len(line) for line in out) <= 91
        assert "``" not in "".join(out)


def test_what_a_head_says_stays_text(shown: Any) -> None:
    said = hostile("\x1b]52;c;ZXZpbA==\x07\x1b[2J\x9b31mevil\x7f")
    page = shown(1, said=said)
    assert r"  Last-Event-ID: \x1b]52;c;ZXZpbA==\x07\x1b[2J" in page
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", page)


def test_as_json_the_exchange_of_http_comes_along(shown: Any, tmp_path: Path) -> None:
    number = number_of(STREAMED, "message", -2, tmp_path)
    events = [json.loads(line) for line in shown(number, "--format", "json").splitlines()]
    http = [event for event in events if event["type"] == "http"]
    assert [event["state"] for event in http] == ["streaming", "complete"]
    assert {event["number"] for event in http} == {3}


CRLF = f"""\
@http
C> GET /sse
S| b"HTTP/1.1 200 OK\\r\\nContent-Type: text/event-stream\\r\\n\\r\\n"
S| b"event: endpoint\\r\\ndata: /m?s=1\\r\\n\\r\\n"
S| b": still\\r\\r"
S| b'data: {result(1)}\\r\\n\\r\\n'
S| b'data: \\x1b{result(1)}\\r\\n\\r\\n'
"""


def test_line_ends_of_http_are_text(shown: Any, tmp_path: Path) -> None:
    frames = [number_of(CRLF, "frame", place, tmp_path) for place in range(4)]
    for number in frames[:3]:
        assert "\nBytes" not in shown(number, said=CRLF), number
    assert "\nBytes (a byte that is no text, and what is near it)\n" in shown(frames[3], said=CRLF)


def test_an_event_without_a_message_is_named_once(shown: Any, tmp_path: Path) -> None:
    number = number_of(CRLF, "frame", 0, tmp_path)
    assert shown(number, said=CRLF).startswith(f"#{number} endpoint: /m?s=1\n")


REWRITES = [
    Record(0, "open", 0, {"kind": "tcp", "dir": "c2s", "conn": 0}),
    Record(0, "open", 1, {"kind": "tcp", "dir": "s2c", "conn": 0, "of": 0}),
    Record(1, "chunk", 0, b"GET /sse HTTP/1.1\r\nHost: 127.0.0.1:9000\r\n\r\n"),
    Record(1, "rewrite", 0, {"start": 25, "length": 14, "data": b"example.com", "by": "mcpsniff"}),
    Record(2, "chunk", 1, b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"),
    Record(3, "chunk", 1, b"event: endpoint\r\ndata: http://a:80/m?s=1\r\n\r\n"),
    Record(3, "rewrite", 1, {"start": 75, "length": 19, "data": b"/m?s=1\r\n:        ", "by": "mcpsniff"}),
]


def test_a_change_on_the_way_shows_before_and_after(shown: Any) -> None:
    notes = [line for line in run_json(REWRITES) if line["type"] == "rewrite"]
    assert len(notes) == 2
    host, endpoint = (shown(note["n"], said=REWRITES) for note in notes)
    assert "\nWhat came\n  127.0.0.1:9000\n\nWhat left in its place\n  example.com\n" in host
    assert "\nWhat came\n  http://a:80/m?s=1\\r\\n" not in endpoint
    assert "\nWhat came\n  http://a:80/m?s=1\n\nWhat left in its place\n  /m?s=1\n  :" in endpoint
    assert "b'" not in endpoint
    assert "\nBytes" not in endpoint


def run_json(said: list[Record]) -> list[dict[str, Any]]:
    return json_lines(said, transport="http")


METADATA = '{"issuer":"http://127.0.0.1:9000","scopes_supported":["user"]}'
BODIES = f"""\
C> GET /.well-known/oauth-authorization-server
S> 200 {METADATA}
C> POST /token grant_type=refresh_token&refresh_token=*********&resource=http%3A%2F%2Fx%2Fmcp
    Content-Type: application/x-www-form-urlencoded
S> 400 {{"error":"invalid_grant"}}
C> GET /long
S> 200 {"<p>long</p>" * 1_000}
    Content-Type: text/html
"""


def test_a_body_that_carries_no_message_is_shown(shown: Any, tmp_path: Path) -> None:
    page = shown(number_of(BODIES, "http", 0, tmp_path), said=BODIES)
    assert page.endswith(
        '\nWhat the response says\n  {"issuer": "http://127.0.0.1:9000", "scopes_supported": ["user"]}\n'
    )
    token = shown(number_of(BODIES, "http", 1, tmp_path), "--hex", said=BODIES)
    assert (
        "\nWhat the request says\n  grant_type=refresh_token\n  refresh_token=*********\n"
        "  resource=http%3A%2F%2Fx%2Fmcp\n"
    ) in token
    assert '\nWhat the response says\n  {"error": "invalid_grant"}\n' in token
    assert token.count("invalid_grant") == 1
    assert "\nBytes of the request's body\n  00000000  67 72 61 6e 74 5f 74 79  70 65" in token
    assert "\nBytes of the response's body\n  00000000  7b 22 65 72 72 6f 72 22  " in token
    long = shown(number_of(BODIES, "http", 2, tmp_path), "--hex", said=BODIES)
    assert long.count("mcpsniff kept the first 2,048 of 11,000 bytes; the capture carries all") == 2


def test_as_json_such_a_body_comes_with_payloads_only(tmp_path: Path) -> None:
    path = save(tmp_path, "a.mcpcap", records(BODIES), transport="http")

    def told(*options: str) -> list[dict[str, Any]]:
        lines = run("show", str(path), "--format", "json", *options).out.splitlines()
        return [event for event in map(json.loads, lines) if event["type"] == "http"]

    metadata, token, long = told("--payload")
    assert metadata["response"]["payload"] == json.loads(METADATA)
    assert "payload" not in metadata["request"]
    assert token["request"]["payload_text"].startswith("grant_type=refresh_token&refresh_token=***")
    assert (len(long["response"]["payload_text"]), long["response"]["payload_cut"]) == (2_048, True)
    assert not any("payload" in name for event in told() for name in (*event["request"], *event["response"]))
