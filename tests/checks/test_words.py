"""What findings say: short, readable, and harmless to a terminal whatever was captured."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpsniff.capture.records import Record
from mcpsniff.checks.words import duration, listed, plain, quoted, signal_name, size, value
from mcpsniff.decoder import Decoder
from tests.decoder.test_http_laws import HEADER, traffic
from tests.dialogue import play
from tests.sessions import decode, end, findings, records
from tests.test_decoder import STREAMS

PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
HOSTILE = "\x1b[2J\x07\u202etxt\r\n\x9b\ud800"


@given(st.text() | st.binary(), st.integers(2, 100))
def test_captured_text_cannot_act_and_is_short(text: str | bytes, width: int) -> None:
    shown = quoted(text, width)
    assert shown.isprintable()
    assert len(shown) <= width + 2


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (quoted("short"), '"short"'),
        (quoted(b"caf\xe9"), r'"caf\xe9"'),
        (quoted("café \u202e"), r'"café \u202e"'),
        (plain("a" * 100, 10), "aaaaaaaaa…"),
        (plain("a" * 10, 10), "aaaaaaaaaa"),
        (value(None), "null"),
        (value(True), "true"),
        (value(1.5), "1.5"),
        (value(10**50), "a very large number"),
        (value("x"), '"x"'),
        (value([1]), "an array"),
        (value({}), "an object"),
        (duration(300), "0 ms"),
        (duration(250_000), "250 ms"),
        (duration(3_000_000), "3.0 s"),
        (duration(600_000_000), "10 min"),
        (size(9_999), "9999 bytes"),
        (size(200 * 1024), "200 KiB"),
        (size(16 * 1024 * 1024), "16.0 MiB"),
        (listed(["a"]), "a"),
        (listed(["a", "b", "c"]), "a, b and c"),
        (listed([str(number) for number in range(9)]), "0, 1, 2, 3, 4 and 4 more"),
        (signal_name(9), "SIGKILL"),
        (signal_name(200), "signal 200"),
        (signal_name(None), "a signal"),
    ],
)
def test_words(shown: str, expected: str) -> None:
    assert shown == expected


@given(STREAMS)
def test_no_finding_carries_control_characters(streams: tuple[bytes, bytes, bytes]) -> None:
    said = [(side, data) for side, data in zip(("c2s", "s2c", "err"), streams, strict=True) if data]
    for finding in findings(decode([*records(*said), *end(10_000)])):
        assert finding.text.isprintable(), finding


@given(traffic())
def test_no_finding_over_http_carries_control_characters(said: list[Record]) -> None:
    for finding in findings(decode(said, decoder=Decoder(HEADER))):
        assert finding.text.isprintable(), finding
        assert len(finding.text) < 400


def test_what_a_peer_puts_into_heads_and_events_is_escaped_wherever_it_appears() -> None:
    name = HOSTILE.encode("utf-8", "replace").translate(None, b"\r\n[") + b"x" * 1000
    usual = b"Mcp-Session-Id: s-5c1e0b7f93a2\r\n"
    said = [
        b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://%b\r\nmcp-name: 1\r\nmcp-name: 2\r\n" % name,
        b"MCP-Protocol-Version: %b\r\nContent-Type: %b\r\nAccept: %b\r\n%b" % (name, name, name, usual),
        b"Content-Length: 40\r\n\r\n%b" % PING.encode(),
        b"GET /mcp HTTP/1.1\r\nHost: h\r\nLast-Event-ID: %b\r\n%b\r\n" % (name, usual),
        b"GET /sse HTTP/1.1\r\nHost: %b\r\nAccept: text/event-stream\r\n\r\n" % name,
    ]
    answered = [
        b"HTTP/1.1 200 OK\r\nContent-Type: a/%b\r\nMcp-Session-Id: %b\r\nContent-Length: 0\r\n\r\n" % (name, name),
        b"HTTP/1.1 302 Found\r\nLocation: http://%b/\r\nContent-Length: 0\r\n\r\n" % name,
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=%b\r\nContent-Encoding: %b\r\n" % (name, name),
        b"Connection: close\r\n\r\nevent: endpoint\ndata: https://%b\n\n" % name,
        b"event: %b\ndata: x\n\ndata: %b\n\nevent: endpoint\ndata: /%b\n\n" % (name, name, name),
    ]
    before = play("@http\n@open 2025-11-25").records
    about = {"kind": "tcp", "conn": 5, "meta": {"upstream": "http://127.0.0.1:8000"}}
    opened = [Record(9_000, "open", 10, {"dir": "c2s", **about}), Record(9_000, "open", 11, {"dir": "s2c", **about})]
    requests = [Record(10_000, "chunk", 10, data) for data in said]
    responses = [Record(11_000, "chunk", 11, data) for data in answered]
    found = findings(decode([*before, *opened, *requests, *responses]))

    wanted = {501, 502, 503, 509, 513, 518, 519, 529, 531, 532, 534, 535, 536, 537, 538, 539}
    assert {f"MCP{number}" for number in wanted} <= {finding.code for finding in found}
    for finding in found:
        assert finding.text.isprintable(), finding
        assert len(finding.text) < 300, finding


def test_names_that_a_peer_chose_are_escaped_wherever_they_appear() -> None:
    name = HOSTILE.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    tool = {"name": name, "inputSchema": {"type": name}}
    said = [
        ("s2c", name.encode().replace(b"\n", b"") + b"\n"),
        ("c2s", {"jsonrpc": name, "id": name, "method": name, name: 1}),
        ("c2s", {"jsonrpc": "2.0", "id": name, "method": name, "params": {"name": name}}),
        ("s2c", {"jsonrpc": "2.0", "id": name + "?", "result": {"tools": [tool]}}),
        ("s2c", {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": name}}),
        ("s2c", json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": 1, "message": name}})),
        ("c2s", '{"jsonrpc":"2.0","method":"x","params":{"\\u001b":1,"\\u001b":2}}'),
    ]
    found = findings(decode([*records(*said), *end(10_000)]))

    assert {"MCP101", "MCP110", "MCP201", "MCP210", "MCP401", "MCP403", "MCP409", "MCP421", "MCP603"} <= {
        finding.code for finding in found
    }
    for finding in found:
        assert finding.text.isprintable(), finding
