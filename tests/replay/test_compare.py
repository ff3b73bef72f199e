"""Two values compared: what differs, of what kind, and where."""

from typing import Any

import pytest

from mcpsniff.replay.compare import compare
from mcpsniff.replay.compare_text import difference_lines
from mcpsniff.replay.normalise import Rules, path_text, rules_of

STRICT = Rules()


def told(recorded: Any, live: Any, rules: Rules = STRICT) -> list[tuple[str, str]]:
    return [(path_text(one.path), one.kind) for one in compare(recorded, live, rules)]


@pytest.mark.parametrize(
    ("recorded", "live", "expected"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, []),
        ({"a": 1}, {"a": 2}, [("a", "changed")]),
        ({"a": 1}, {"a": 1.0}, [("a", "type")]),
        ({"a": 1}, {"a": "1"}, [("a", "type")]),
        ({"a": 1}, {"a": True}, [("a", "type")]),
        ({"a": 0}, {"a": False}, [("a", "type")]),
        ({"a": None}, {}, [("a", "missing")]),
        ({}, {"a": None}, [("a", "added")]),
        ({"a": {"b": [1, {"c": "x"}]}}, {"a": {"b": [1, {"c": "y"}]}}, [("a.b[1].c", "changed")]),
        ([1, 2, 3], [1, 3], [("[1]", "missing")]),
        ([1, 3], [1, 2, 3], [("[1]", "added")]),
        ([1, 2, 3], [3, 2, 1], [("$", "order")]),
        (2**65, 2**65 + 1, [("$", "changed")]),
        (float("nan"), float("nan"), []),
        (float("nan"), None, [("$", "type")]),
        ({"a.b": 1}, {"a.b": 2}, [('["a.b"]', "changed")]),
    ],
)
def test_a_difference_has_a_place_and_a_kind(recorded: Any, live: Any, expected: list[tuple[str, str]]) -> None:
    assert told(recorded, live) == expected


def test_a_text_that_is_json_is_compared_as_json() -> None:
    one = {"content": [{"type": "text", "text": '{"a": 1, "b": [1, 2]}'}]}
    other = {"content": [{"type": "text", "text": '{"b":[1,3],"a":1}'}]}
    assert told(one, other) == [("content[0].text.b[1]", "changed")]


def test_the_stock_rules_take_what_is_made_up_for_equal() -> None:
    one = {"result": {"content": [{"type": "text", "text": "at 2024-01-01T00:00:00Z on localhost:8080, took 12 ms"}]}}
    other = {"result": {"content": [{"type": "text", "text": "at 2026-05-01T10:00:00Z on localhost:9, took 13.5 ms"}]}}
    assert told(one, other) == [("result.content[0].text", "changed")]
    assert told(one, other, rules_of()) == []


def test_nesting_does_not_hurt() -> None:
    one: Any = 1
    other: Any = 2
    for _ in range(20_000):
        one, other = [one], [other]
    found = compare(one, other, STRICT)
    assert [(len(difference.path), difference.kind) for difference in found] == [(20_000, "changed")]


def test_an_element_that_only_one_list_has_is_shown_with_its_name() -> None:
    tool = {"description": "d" * 200, "name": "convert_time"}
    shown = ["".join(text for _, text in line) for line in difference_lines(compare([1, tool], [1]), 100)]
    assert shown == [shown[0]]
    assert shown[0].startswith('- [1] ("convert_time"): {"description": "ddd')
