"""Laws of changing a JSON text: it says what it is to say, and what was not changed keeps its bytes.

Values are spelt at random (white space, escapes, digits, doubled names), and a second reader says where parts stand.
"""

import copy
import json
import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mcpsniff.protocol.patch import patched, text_of
from mcpsniff.protocol.reading import JsonReader
from mcpsniff.replay.spelling import respelt, token_of

NAMES = st.sampled_from(["a", "b", "name", "é", "", 'q"', "x y", "_meta"])
WHITE = st.sampled_from(["", "", " ", "\n  ", "\t", "\r\n"])
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=6),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=5)


def spell(draw: st.DrawFn, value: Any) -> str:
    """The text of a value, spelt in one of many ways."""
    white = lambda: draw(WHITE)  # noqa: E731
    if isinstance(value, dict):
        members = [
            f"{white()}{spell(draw, name)}{white()}:{white()}{spell(draw, inner)}{white()}"
            for name, inner in value.items()
        ]
        if members and draw(st.integers(0, 5)) == 0:  # the earlier one does not count
            first = next(iter(value))
            members.insert(0, f"{spell(draw, first)}:{white()}{spell(draw, draw(LEAVES))}")
        return "{" + ",".join(members) + ("" if members else white()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(f"{white()}{spell(draw, inner)}{white()}" for inner in value) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=draw(st.booleans())).replace("/", draw(st.sampled_from(["/", "\\/"])))
    if isinstance(value, float):
        return draw(st.sampled_from([repr(value), repr(value).replace("e", "E")]))
    return json.dumps(value)


@st.composite
def spelt(draw: st.DrawFn, values: st.SearchStrategy[Any] = VALUES) -> bytes:
    return (draw(WHITE) + spell(draw, draw(values)) + draw(WHITE)).encode(errors="replace")


def read(raw: bytes) -> Any:
    return JsonReader().read(raw).value


def written(value: Any) -> Any:
    """A value so that two are equal just if they are written alike; the order of members does not count."""
    if isinstance(value, dict):
        return frozenset((name, written(inner)) for name, inner in value.items())
    if isinstance(value, list):
        return tuple(written(inner) for inner in value)
    if isinstance(value, float) and math.isinf(value):
        return ("float", repr(value))
    return (type(value), value, repr(value))


@given(spelt(), VALUES)
def test_it_says_the_new_value(raw: bytes, value: Any) -> None:
    if value is None:
        return
    out = patched(raw, value)
    assert written(read(out)) == written(read(text_of(value)))
    assert patched(out, value) is out


@given(spelt())
def test_the_same_value_is_the_same_text(raw: bytes) -> None:
    assert patched(raw, read(raw)) is raw


def paths(value: Any, above: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The paths of all members."""
    if not isinstance(value, dict):
        return []
    return [path for name, inner in value.items() for path in [(*above, name), *paths(inner, (*above, name))]]


@given(spelt(OBJECTS), st.data())
def test_one_change_is_one_token(raw: bytes, data: st.DataObject) -> None:
    """A member anywhere is changed: all other bytes are as they were."""
    value = read(raw)
    known = paths(value)
    if not known:
        return
    path = data.draw(st.sampled_from(known))
    new = data.draw(LEAVES)
    found = value
    for name in path[:-1]:
        found = found[name]
    old, found[path[-1]] = found[path[-1]], new
    if written(old) == written(new):
        assert patched(raw, value) is raw
    else:
        assert patched(raw, value) == respelt(raw, {path: text_of(new).decode()})


@given(spelt(OBJECTS), st.data())
def test_members_that_come_and_go_leave_the_others_their_bytes(raw: bytes, data: st.DataObject) -> None:
    value = read(raw)
    before = copy.deepcopy(value)
    for name in data.draw(st.lists(NAMES, max_size=3)):
        if name in value and data.draw(st.booleans()):
            del value[name]
        else:
            value[name] = data.draw(VALUES)
    out = patched(raw, value)
    assert written(read(out)) == written(read(text_of(value)))
    for name in value:
        if name in before and written(read(text_of(value[name]))) == written(before[name]):
            assert token_of(out, (name,)) == token_of(raw, (name,))


@given(st.lists(spelt(), min_size=1, max_size=6), WHITE, st.data())
def test_elements_that_come_go_and_move_keep_their_bytes(
    elements: list[bytes], white: str, data: st.DataObject
) -> None:
    texts = [element.decode().strip(" \t\r\n") for element in elements]
    raw = ("[" + f"{white},".join(texts) + "]").encode()
    value = read(raw)
    kept = data.draw(st.permutations(range(len(texts))))[: data.draw(st.integers(0, len(texts)))]
    at = data.draw(st.integers(0, len(kept)))
    fresh = "a text that is nowhere else"
    new = [value[place] for place in kept]
    new.insert(at, fresh)
    out = patched(raw, new).decode()
    assert written(read(out.encode())) == written(new)
    for place in kept:
        alike = [text for text, other in zip(texts, value, strict=True) if written(other) == written(value[place])]
        assert any(text in out for text in alike)
    if kept == sorted(kept) and len(kept) == len(texts) and len(texts) > 1:
        wanted = [*texts]
        wanted.insert(at, json.dumps(fresh))
        assert out.replace(white, "") == ("[" + ",".join(wanted) + "]").replace(white, "")


@given(st.binary(max_size=40), st.sampled_from([{}, {"a": 1}, [], "x", 1]))
def test_any_bytes_can_be_given_a_body(raw: bytes, value: Any) -> None:
    assert written(read(patched(raw, value))) == written(value)


@given(st.text(alphabet='{}[]",:\\ a1\n', max_size=30), st.data())
def test_odd_texts_never_end_in_another_exception(text: str, data: st.DataObject) -> None:
    raw = ('{"id":1,"params":' + text + "}").encode()
    value = read(raw)
    if isinstance(value, dict):
        value["id"] = data.draw(LEAVES)
        assert written(read(patched(raw, value))["id"]) == written(value["id"])
