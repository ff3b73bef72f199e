"""Headers that repeat arguments: which a tool asks for, and what their values say (2026-07-28, request metadata)."""

from collections import OrderedDict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpsniff.protocol.param_headers import (
    TOOLS_LIMIT,
    ParamHeader,
    argument,
    decoded,
    learn,
    param_headers,
    says,
)


def tool(**properties: Any) -> dict[str, Any]:
    return {"name": "t", "inputSchema": {"type": "object", "properties": properties}}


def marked(name: Any, kind: str = "string", **more: Any) -> dict[str, Any]:
    return {"type": kind, "x-mcp-header": name, **more}


def test_marked_properties_are_found_at_any_depth() -> None:
    inner = {"type": "object", "properties": {"dry": marked("Dry-Run", "boolean"), "x": {"type": "string"}}}

    assert set(param_headers(tool(region=marked("Region"), options=inner, limit=marked("Limit", "integer")))) == {
        ParamHeader("mcp-param-region", ("region",)),
        ParamHeader("mcp-param-limit", ("limit",)),
        ParamHeader("mcp-param-dry-run", ("options", "dry")),
    }


@pytest.mark.parametrize(
    "properties",
    [
        {"a": marked("")},
        {"a": marked("a b")},
        {"a": marked("a\r\nb")},
        {"a": marked("ä")},
        {"a": marked(5)},
        {"a": marked("A", "number")},
        {"a": marked("A", "object")},
        {"a": marked("A"), "b": marked("a")},
        {"a": marked("Good"), "b": marked("bad name")},
    ],
    ids=str,
)
def test_a_definition_that_breaks_the_rules_voids_the_tool(properties: dict[str, Any]) -> None:
    assert param_headers(tool(**properties)) == ()


@given(st.recursive(st.none() | st.integers() | st.text(), lambda v: st.lists(v) | st.dictionaries(st.text(), v)))
def test_any_schema_can_be_looked_at(schema: Any) -> None:
    assert param_headers({"inputSchema": schema}) == ()


def test_a_later_list_replaces_what_is_known_of_a_tool_and_tables_are_bounded() -> None:
    known: OrderedDict[str, tuple[ParamHeader, ...]] = OrderedDict()
    learn(known, [tool(a=marked("A")), {"name": "plain"}, 5, {"name": None}])
    assert known == {"t": (ParamHeader("mcp-param-a", ("a",)),)}

    learn(known, [tool(a={"type": "string"})])
    assert known == {}

    learn(known, [{**tool(a=marked("A")), "name": str(number)} for number in range(TOOLS_LIMIT + 5)])
    assert len(known) == TOOLS_LIMIT
    assert "4" not in known


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("us-west1", "us-west1"),
        (" us-west1\t", "us-west1"),
        ("=?base64?SGVsbG8sIOS4lueVjA==?=", "Hello, 世界"),
        ("=?base64?IHBhZGRlZCA=?=", " padded "),
        ("=?base64?bGluZTEKbGluZTI=?=", "line1\nline2"),
        ("=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=", "=?base64?literal?="),
        ("=?BASE64?x?=", "=?BASE64?x?="),
        ("42", 42),
        ("42.0", 42),
        ("-7", -7),
        ("true", True),
        ("false", False),
        ("", ""),
    ],
)
def test_what_a_header_says(header: str, value: Any) -> None:
    assert says(header, value)


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("us-west1", "US-WEST1"),
        ("42", "43"),
        ("42x", 42),
        ("4_2", 42),
        ("NaN", 42),
        ("1e1", 10),
        ("1", True),
        ("True", True),
        ("=?base64?%?=", "x"),
        ("=?base64?SGVsbG8?=", "Hello"),
        ("=?base64?/w==?=", "\ufffd"),
        ("", None),
        ("null", None),
    ],
)
def test_what_a_header_does_not_say(header: str, value: Any) -> None:
    assert not says(header, value)


def test_a_coded_value_that_cannot_be_read_is_none() -> None:
    assert decoded("=?base64?SGVsbG8?=") is None
    assert decoded("=?base64?SGVsbG8=?=") == "Hello"


def test_the_argument_at_a_path() -> None:
    arguments = {"a": {"b": 5}, "c": None}

    assert argument(arguments, ("a", "b")) == 5
    assert argument(arguments, ("a", "x")) is None
    assert argument(arguments, ("c", "x")) is None
    assert argument(None, ("a",)) is None
