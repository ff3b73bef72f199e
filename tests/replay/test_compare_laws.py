"""Laws of comparing: whatever the values."""

import json
from collections import Counter
from decimal import Decimal
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from mcpsniff.protocol.paths import Pattern
from mcpsniff.protocol.reading import JsonReader
from mcpsniff.replay.compare import ADDED, MISSING, Difference, compare
from mcpsniff.replay.compare_text import as_dict, brief, difference_lines
from mcpsniff.replay.normalise import VOLATILE, Rules, path_text, rules_of
from mcpsniff.transcript.safe import visible

TEXT = st.text(max_size=8) | st.sampled_from(["2024-01-01T00:00:00Z", "/tmp/a1", "12 ms", '{"a": 1}', "\ud800"])
PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | TEXT | st.just(Decimal(10) ** 5000)
NAMES = st.sampled_from(["text", "result", "tools", "name", "a.b", "_meta", "x", "required"]) | st.text(max_size=3)
VALUES = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(NAMES, inner, max_size=5), max_leaves=30
)
MADE_UP = [Pattern(one.place) for one in VOLATILE]
STRICT, STOCK = Rules(), rules_of(["stock", "number=1%"])


def again(value: Any) -> Any:
    """The same value in other objects, members in another order."""
    if isinstance(value, dict):
        return {name: again(item) for name, item in reversed(value.items())}
    return [again(item) for item in value] if isinstance(value, list) else value


@given(VALUES)
def test_a_value_does_not_differ_from_itself(value: Any) -> None:
    assert compare(value, value, STRICT) == []
    assert compare(value, again(value), STRICT) == []
    assert compare(value, again(value), STOCK) == []


class Never:
    """A value of a type that no other has."""


def places(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    steps: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path] + [place for step, below in steps for place in places(below, (*path, step))]


def replaced(value: Any, path: tuple[str | int, ...], new: Any) -> Any:
    if not path:
        return new
    step, *rest = path
    changed: Any = dict(value) if isinstance(value, dict) else list(value)
    changed[step] = replaced(value[step], tuple(rest), new)
    return changed


@given(VALUES, st.data())
def test_a_change_is_found_at_its_place_and_nowhere_else(value: Any, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(places(value)))
    new = Never()  # of a type that no value has, so that nothing beneath it is compared
    found = compare(value, replaced(value, path, new), STRICT)
    if not any(pattern.is_at(path) for pattern in MADE_UP):
        assert [one.path for one in found] == [path]


def swapped(one: Difference) -> tuple[str, str, str]:
    kind = {ADDED: MISSING, MISSING: ADDED}.get(one.kind, one.kind)
    return kind, path_text(one.live_path), path_text(one.path)


@given(VALUES, VALUES)
@example([None, [], {"": 0}], [Decimal(10) ** 5000, {"": 0}, None])
def test_what_is_added_one_way_is_missing_the_other_way(one: Any, other: Any) -> None:
    there = Counter(swapped(each) for each in compare(one, other, STRICT))
    back = Counter((each.kind, path_text(each.path), path_text(each.live_path)) for each in compare(other, one, STRICT))
    assert there == back


@given(VALUES, VALUES)
def test_whatever_differs_can_be_shown(one: Any, other: Any) -> None:
    found = compare(one, other, STOCK)
    for line in difference_lines(found, 60):
        text = "".join(piece for _, piece in line)
        assert visible(text) == text
    for each in found:
        json.loads(json.dumps(as_dict(each), allow_nan=False))
        assert set(as_dict(each)) >= {"path", "kind"}


@given(VALUES, st.integers(1, 40))
def test_a_value_in_brief_is_short_and_begins_like_its_json(value: Any, limit: int) -> None:
    text = brief(value, limit)
    assert visible(text) == text
    assert len(text) <= 12 * limit + 12  # an invisible character takes up to twelve


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_whatever_was_read_can_be_compared(one: bytes, other: bytes) -> None:
    reader = JsonReader()
    compare(reader.read(one).value, reader.read(other).value, STOCK)
