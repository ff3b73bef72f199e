"""Heads of HTTP in edit mode: they say what they are to say, and keep all other bytes; routing headers are true."""

from collections import OrderedDict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpsniff.hooks.actions import made
from mcpsniff.protocol.param_headers import learn, says
from mcpsniff.proxy.relay.web.heads import changed, field, set_header
from mcpsniff.proxy.relay.web.routing import encoded, made_true
from mcpsniff.wire.http1 import Head, Http1Splitter

NAME = st.sampled_from(["Host", "X-A", "x-b", "Accept", "MCP-Session-Id", "Authorization"])
VALUE = st.text("abcÄ; =/,", max_size=8).map(str.strip)
PAIRS = st.lists(st.tuples(NAME, VALUE), max_size=6)


def read(raw: bytes) -> Head:
    head = Http1Splitter(0, "c2s").feed(0, raw)[0]
    assert isinstance(head, Head)
    return head


def written(pairs: list[tuple[str, str]], ends: list[bytes], before: bytes = b"") -> bytes:
    lines = [b"GET /a?b HTTP/1.1", *[f"{name}: {value}".encode("latin-1") for name, value in pairs], b""]
    return before + b"".join([line + ends[at % len(ends)] for at, line in enumerate(lines)])


@given(old=PAIRS, new=PAIRS, ends=st.lists(st.sampled_from([b"\r\n", b"\n"]), min_size=1, max_size=3))
def test_law_a_changed_head_says_what_it_is_to_say(
    old: list[tuple[str, str]], new: list[tuple[str, str]], ends: list[bytes]
) -> None:
    raw = written(old, ends, b"\r\n" if len(old) % 2 else b"")
    head = read(raw)
    found = changed(head, raw, new, None)
    if found is None:
        assert list(head.headers) == new
        return
    start, stop, data = found
    assert list(read(raw[:start] + data + raw[stop:]).headers) == new
    kept = [pair for pair in old if pair in new]
    if kept == old == new[: len(old)]:
        assert raw[:start].lstrip(b"\r\n").count(b"\n") == 1 + len(old), "lines that stay are left alone"


def test_only_the_value_of_a_header_is_another_one_but_where_it_is_a_secret() -> None:
    raw = b"POST / HTTP/1.1\r\nHost: a\r\nauthorization:  Bearer x\r\nX: 1\r\n\r\n"
    head = read(raw)
    pairs = list(head.headers)
    set_header(pairs, "host", "b")
    assert changed(head, raw, pairs, None) == (23, 24, b"b")
    pairs = list(head.headers)
    set_header(pairs, "Authorization", "Bearer y")
    assert changed(head, raw, pairs, None) == (26, 50, b"authorization: Bearer y")


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "a\0b"])
def test_no_value_begins_another_header(value: str) -> None:
    line = field("X-A", value)
    assert line.count(b"\n") == 1
    assert b"\0" not in line


@given(st.one_of(st.text(max_size=20), st.integers(), st.booleans()))
def test_law_a_value_is_said_as_the_specification_wants_it(value: Any) -> None:
    try:
        text = encoded(value)
    except UnicodeEncodeError:
        pytest.fail("half a surrogate pair")
    assert text is not None
    assert text.isascii()
    assert text.strip() == text
    assert says(text, value)


def test_arguments_are_repeated_as_the_tool_asks_for_it() -> None:
    known: OrderedDict[str, Any] = OrderedDict()
    schema = {"properties": {"where": {"type": "string", "x-mcp-header": "Region"}, "n": {"type": "integer"}}}
    learn(known, [{"name": "run", "inputSchema": schema}])

    def call(arguments: dict[str, Any]) -> Any:
        return made("request", {"method": "tools/call", "params": {"name": "run", "arguments": arguments}})

    headers = [("Mcp-Method", "tools/call"), ("Mcp-Name", "other"), ("Mcp-Param-Region", "us"), ("X", "y")]
    made_true(headers, {"params": {"arguments": {"where": "us"}}}, call({"where": "日本"}), known)
    assert headers == [
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "run"),
        ("Mcp-Param-Region", "=?base64?5pel5pys?="),
        ("X", "y"),
    ]
    made_true(headers, {}, call({}), known)
    assert [name for name, _ in headers] == ["Mcp-Method", "Mcp-Name", "X"]
    made_true(headers, {}, call({"where": "eu"}), known)
    assert ("Mcp-Param-region", "eu") in headers
    part = [("Mcp-Name", "other"), ("mcp-param-region", "us")]
    made_true(part, {}, call({"where": "eu"}), known)
    assert part == [("Mcp-Name", "run"), ("mcp-param-region", "eu")], "none is left false, whatever is missing"
    bare = [("X", "y")]
    made_true(bare, {}, call({"where": "eu"}), known)
    assert bare == [("X", "y")], "a client of another revision has none"
