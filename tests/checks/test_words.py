"""What findings say: short, readable, and harmless to a terminal whatever was captured."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpsniff.checks.words import duration, listed, plain, quoted, signal_name, size, value
from tests.sessions import decode, end, findings, records
from tests.test_decoder import STREAMS

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
