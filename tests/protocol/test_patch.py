"""The least change of a JSON text: what it looks like. The laws are in test_patch_laws.py."""

import enum
import json
from collections.abc import Callable
from typing import Any

import pytest

from mcpsniff.protocol.patch import patched, text_of
from mcpsniff.protocol.reading import JsonReader


def changed(raw: str | bytes, change: Callable[[Any], object]) -> str | bytes:
    """``raw`` after a hook has changed what was read from it."""
    text = raw.encode() if isinstance(raw, str) else raw
    value = JsonReader().read(text).value
    change(value)
    out = patched(text, value)
    return out.decode() if isinstance(raw, str) else out


def put(*path: Any, value: Any) -> Callable[[Any], object]:
    def change(found: Any) -> None:
        for name in path[:-1]:
            found = found[name]
        found[path[-1]] = value

    return change


def cut(*path: Any) -> Callable[[Any], object]:
    def change(found: Any) -> None:
        for name in path[:-1]:
            found = found[name]
        del found[path[-1]]

    return change


CASES = {
    "a value keeps its surroundings": ('{ "a" : 1 ,"b":[1.0, 2] }', put("a", value="x"), '{ "a" : "x" ,"b":[1.0, 2] }'),
    "an element": ('{"b":[1.0,  2 ,3]}', put("b", 1, value=7), '{"b":[1.0,  7 ,3]}'),
    "1.0 is not 1": ('{"a":1.0}', put("a", value=1), '{"a":1}'),
    "true is not 1": ('{"a":1}', put("a", value=True), '{"a":true}'),
    "0 is not false": ('{"a":false}', put("a", value=0), '{"a":0}'),
    "an exponent stays": ('{"a":1E2,"b":1}', put("b", value=2), '{"a":1E2,"b":2}'),
    "minus zero stays": ('{"a":-0,"b":1}', put("b", value=2), '{"a":-0,"b":2}'),
    "escapes stay": (r'{"a":"\u0041\/","b":1}', put("b", value=2), r'{"a":"\u0041\/","b":2}'),
    "an escaped name": (r'{"\u0061":1}', put("a", value=2), r'{"\u0061":2}'),
    "half a surrogate pair stays": (r'{"a":"\ud800","b":1}', put("b", value=2), r'{"a":"\ud800","b":2}'),
    "and can be written": ('{"b":1}', put("b", value="\ud800é"), r'{"b":"\ud800\u00e9"}'),
    "a big number stays": (
        '{"a":' + "9" * 5000 + ',"b":123456789012345678901234567890}',
        put("b", value=2),
        '{"a":' + "9" * 5000 + ',"b":2}',
    ),
    "a big number is written": ('{"b":1}', put("b", value=2**70), '{"b":1180591620717411303424}'),
    "NaN stays": (
        '{"a":NaN,"c":-Infinity,"d":1e999,"b":1}',
        put("b", value=2),
        '{"a":NaN,"c":-Infinity,"d":1e999,"b":2}',
    ),
    "a member is added behind its neighbour": ('{"a": 1, "b": 2}', put("c", value=3), '{"a": 1, "b": 2, "c": 3}'),
    "a member is added to one": ('{"a": 1}', put("c", value=3), '{"a": 1, "c": 3}'),
    "a member is added to one, closely": ('{"a":1}', put("c", value=3), '{"a":1,"c":3}'),
    "a member is added to none": ('{"p": { }}', put("p", "c", value=3), '{"p": {"c": 3}}'),
    "a member is added on a line": (
        '{\n  "a": 1,\n  "b": 2\n}',
        put("c", value=[3]),
        '{\n  "a": 1,\n  "b": 2,\n  "c": [3]\n}',
    ),
    "to one on a line": ('{\n  "a": 1\n}', put("c", value=3), '{\n  "a": 1,\n  "c": 3\n}'),
    "the first member goes": ('{ "a": 1, "b": 2 }', cut("a"), '{ "b": 2 }'),
    "the last member goes": ('{ "a": 1, "b": 2 }', cut("b"), '{ "a": 1 }'),
    "one in the middle goes": ('{"a":1 , "b":2,"c":3}', cut("b"), '{"a":1,"c":3}'),
    "the only member goes": ('{"p":{ "a": 1 }}', cut("p", "a"), '{"p":{}}'),
    "the first element goes": ('[ {"x":1.0}, {"x":2.0} ]', cut(0), '[ {"x":2.0} ]'),
    "the last element goes": ('[ {"x":1.0}, {"x":2.0} ]', cut(1), '[ {"x":1.0} ]'),
    "the only element goes": ("[ 1 ]", cut(0), "[]"),
    "an element is added": ("[1.0, 2.0]", lambda v: v.append(3), "[1.0, 2.0, 3]"),
    "an element is added in front": ("[1.0, 2.0]", lambda v: v.insert(0, 3), "[3, 1.0, 2.0]"),
    "an element is added to none": ('{"a": [ ]}', lambda v: v["a"].append(3), '{"a": [3]}'),
    "an element is added to one": ('{"a": [ 1 ]}', lambda v: v["a"].append(3), '{"a": [ 1, 3 ]}'),
    "an element moves": ("[1.0, 2E1 ,3]", lambda v: v.reverse(), "[3, 2E1 ,1.0]"),
    "equal elements": ("[1, 1.0, 1, true]", cut(0), "[1.0, 1, true]"),
    "one of several tools changes, another goes": (
        '{"tools":[{"name":"a","d":1.0}, {"name":"b","d":2.0 },\n {"name":"c" ,"d":3.0}]}',
        lambda v: (v["tools"].pop(0), v["tools"][1].update(name="c", d="x")),
        '{"tools":[{"name":"b","d":2.0 },\n {"name":"c" ,"d":"x"}]}',
    ),
    "one of several tools gets another name, another goes": (
        '{"tools":[{"name":"a","d":1.0}, {"name":"b", "d":2.0 }]}',
        lambda v: (v["tools"].pop(0), v["tools"][0].update(name="c")),
        '{"tools":[{"name":"c", "d":2.0 }]}',
    ),
    "two tools change their names": (
        '[{"name":"a","d":1.0}, {"name":"b", "d":2.0 }]',
        lambda v: (v[0].update(name="b"), v[1].update(name="a")),
        '[{"name":"b","d":1.0}, {"name":"a", "d":2.0 }]',
    ),
    "of a doubled name the last one counts": ('{"a":1,"a":2}', put("a", value=3), '{"a":1,"a":3}'),
    "and those that say the same": ('{"a":2,"b":0,"a":2}', put("a", value=3), '{"a":3,"b":0,"a":3}'),
    "it goes wherever it stands": ('{"a":1,"b":0,"a":2}', cut("a"), '{"b":0}'),
    "inside of a doubled name": (
        '{"p":{"x":1},"p":{"x":1.0,"y":2}}',
        put("p", "y", value=3),
        '{"p":{"x":1},"p":{"x":1.0,"y":3}}',
    ),
    "what is doubled elsewhere stays": ('{"p":{"x":1,"x":2},"q":1}', put("q", value=2), '{"p":{"x":1,"x":2},"q":2}'),
    "a value becomes an object": ('{"a": 1}', put("a", value={"x": [1]}), '{"a": {"x":[1]}}'),
    "an object becomes a value": ('{"a": {"x": [1]} }', put("a", value=None), '{"a": null }'),
    "an object becomes an array": ('{"a": {"x": 1}}', put("a", value=[{"x": 1}]), '{"a": [{"x":1}]}'),
    "white space around stays": (' \t{"a":1}\r', put("a", value=2), ' \t{"a":2}\r'),
    "brackets in strings": ('{"s":"]}\\"{[","a":1}', put("a", value=2), '{"s":"]}\\"{[","a":2}'),
    "a byte order mark stays": ('\ufeff{"a":1}', put("a", value=2), '\ufeff{"a":2}'),
    "order alone is no change": ('{"a":1,"b":2}', lambda v: v.update(a=v.pop("a")), '{"a":1,"b":2}'),
    "a tuple is an array": ("[1.0,2]", lambda v: v.append((1, 2)), "[1.0,2,[1,2]]"),
    "an empty name": ('{"":1,"a":{"":2.0}}', put("a", "b", value=1), '{"":1,"a":{"":2.0,"b":1}}'),
}


@pytest.mark.parametrize("case", CASES)
def test_a_change(case: str) -> None:
    raw, change, wanted = CASES[case]
    assert changed(raw, change) == wanted


@pytest.mark.parametrize(
    "raw",
    [
        b'{"a":1,"a":1.0,"n":null}',
        b' { "a" : [ 1E2 , -0 , NaN ] } ',
        b'{"a":"\xff"}',
        b'\xef\xbb\xbf{"a": 1}',
        b"[]",
        b"null",
        b"7",
        b"noise",
        b'{"a":1} {"b":2}',
        b"",
        b'{"a":' + b"[" * 20_000 + b"]" * 20_000 + b"}",
        b'{"a":' + b"9" * 5000 + b"}",
        b'{"a":null}',
        b'{"a":"\\ud800"}',
    ],
)
def test_what_says_the_same_is_the_very_same(raw: bytes) -> None:
    value = JsonReader().read(raw).value
    assert patched(raw, value) is raw


def test_bytes_that_are_no_utf8_stay() -> None:
    assert changed(b'{"a":"\xff\xc3","\xfe":1,"b":1}', put("b", value=2)) == b'{"a":"\xff\xc3","\xfe":1,"b":2}'
    assert changed(b'{"\xfe":1,"b":1}', put("\ufffd", value=2)) == b'{"\xfe":2,"b":1}'


def test_null_is_not_nan() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        changed('{"a":null}', put("a", value=float("nan")))
    with pytest.raises(ValueError, match="not JSON compliant"):
        text_of({"a": [None, float("inf")]})
    assert changed('{"a":NaN,"b":null}', put("a", value=None)) == '{"a":null,"b":null}'


def test_what_was_too_deep_to_be_read_stays() -> None:
    deep = "[" * 20_000 + "]" * 20_000
    raw = '{"id": 1, "params": ' + deep + "}"
    assert changed(raw, put("id", value=2)) == raw.replace("1", "2", 1)
    assert changed(raw, put("params", value={})) == '{"id": 1, "params": {}}'
    assert changed(raw, cut("params")) == '{"id": 1}'
    assert changed(raw, put("more", value=2)) == raw[:-1] + ', "more": 2}'
    for elsewhere in (lambda v: v.update(other=v["params"]), lambda v: v.update(other=[2**70, v["params"]])):
        with pytest.raises(ValueError, match="nested too deeply to be read"):
            changed(raw, elsewhere)


def test_as_deep_as_it_was_read_it_can_be_changed() -> None:
    inner = "[1.0," * 150 + '{"x": 1}' + "]" * 150
    value = JsonReader().read(inner.encode()).value
    found = value
    for _ in range(150):
        found = found[1]
    found["x"] = 2
    assert patched(inner.encode(), value).decode() == inner.replace('"x": 1', '"x": 2')


def test_deeper_than_that_it_is_written_anew() -> None:
    raw = b"[1.0," * 230 + b'{"x": 1}' + b"]" * 230
    value = JsonReader().read(raw).value
    found = value
    for _ in range(230):
        found = found[1]
    found["x"] = 2
    assert json.loads(patched(raw, value)) == value


def test_what_json_has_not_is_refused() -> None:
    loop: dict[str, Any] = {}
    loop["loop"] = loop
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    for value in (loop, {"a": {1}}, {"a": object()}, {"a": {1: 2}}, deep, {"a": float("inf")}):
        with pytest.raises((TypeError, ValueError)):
            patched(b'{"a":{"b":1}}', value)


def test_none_says_nothing() -> None:
    """What is no JSON-RPC has no body, and passes."""
    assert patched(b"noise", None) == b"noise"
    assert patched(b"7", None) == b"7"


def test_a_body_for_noise_takes_its_place() -> None:
    assert patched(b"noise", {"a": 1}) == b'{"a":1}'


class Colour(enum.StrEnum):
    RED = "red"


def test_relatives_of_strings_and_objects_are_written_as_what_they_say() -> None:
    class Name(str):
        __slots__ = ()

    class Table(dict[str, Any]):
        pass

    assert text_of({"a": Name("x"), "b": Table(c=1), "d": Colour.RED}) == b'{"a":"x","b":{"c":1},"d":"red"}'
    assert changed('{"a": "red"}', put("a", value=Colour.RED)) == '{"a": "red"}'
    assert changed('{"a": "red"}', put("a", value=Name("blue"))) == '{"a": "blue"}'
