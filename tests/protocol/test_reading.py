"""Reading JSON without losing what a fast parser hides."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpsniff.protocol.outline import outline
from mcpsniff.protocol.reading import MAX_DEPTH, JsonReader, Unread, is_strict

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("text", "flaws"),
    [
        (b'{"a":1}', ()),
        (b'{ "a" : [1.0, 1e2, -0, 0.10] }', ()),
        (b'{"a":1,"a":2}', ("duplicate-key",)),
        (b'{"a":[{"b":1,"b":1}]}', ("duplicate-key",)),
        (rb'{"a":1,"\u0061":2}', ("duplicate-key",)),
        (b'{"a":9007199254740991}', ()),
        (b'{"a":-9007199254740992}', ("unsafe-integer",)),
        (b'{"a":18446744073709551616}', ("unsafe-integer",)),
        (b'{"a":' + b"7" * 5000 + b"}", ("unsafe-integer",)),
        (b'{"a":1e400}', ("number-overflow",)),
        (b'{"a":NaN,"b":-Infinity}', ("nan-or-infinity",)),
        (rb'{"a":"\ud800"}', ("lone-surrogate",)),
        (rb'{"a":"\udc00\ud800"}', ("lone-surrogate",)),
        (rb'{"a":"\\ud800"}', ()),
        (rb'{"a":"\ud83d\ude00"}', ()),
        (rb'{"\uDEAD":NaN}', ("lone-surrogate", "nan-or-infinity")),
        (b'{"a":' + b"[" * (MAX_DEPTH - 1) + b"]" * (MAX_DEPTH - 1) + b"}", ()),
        (b'{"a":' + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH + b"}", ("too-deep",)),
        (b'{"a": ' + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH + b"}", ("too-deep",)),
        (b'{"a":' + b"[" * 1500 + b"]" * 1500 + b"}", ("too-deep",)),
        (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", ("too-deep",)),
        (b'{"a":' + b"[" * 100_000, ("too-deep", "not-json")),
        (b"[" + b"[]," * 300 + b"[]]", ()),
        (b"{}{}", ("not-json", "trailing-data")),
        (b"{'a':1}", ("not-json",)),
        (b"", ("not-json",)),
    ],
    ids=lambda value: value[:30].decode() if isinstance(value, bytes) else None,
)
def test_flaws_of_a_text(text: bytes, flaws: tuple[str, ...]) -> None:
    assert set(flaws) == set(JsonReader().read(text).flaws)


def test_what_stands_outside_the_deep_part_is_still_read() -> None:
    text = b'{"id":7,"params":{"x":' + b"[" * 100_000 + b"]" * 100_000 + b'},"method":"m"}'
    reading = JsonReader().read(text)

    assert reading.flaws == ("too-deep",)
    assert (reading.value["id"], reading.value["method"]) == (7, "m")


def test_which_tool_is_called_is_read_however_deep_its_arguments_are() -> None:
    deep = b"[" * 20_000 + b"]" * 20_000
    reading = JsonReader().read(b'{"params":{"name":"a\\u0062", "arguments":' + deep + b',"n":1.0,"odd":,"x":{}}}')

    assert dict(reading.value["params"]) == {"name": "ab", "n": 1.0}
    assert isinstance(reading.value["params"], Unread)


def test_what_the_observer_kept_of_a_cut_text_is_read() -> None:
    reading = JsonReader().read(b'{"id":5,"result":{"blob":"abababab', ("truncated",))

    assert reading.flaws == ()
    assert dict(reading.value) == {"id": 5, "result": {}}
    assert isinstance(reading.value["result"], Unread)


@given(JSON)
def test_any_value_is_read_as_the_standard_library_reads_it(value: object) -> None:
    for text in (
        json.dumps(value),
        json.dumps(value, ensure_ascii=False, separators=(",", ":")),
        json.dumps(value, indent=1),
    ):
        if "\\ud" in text or any("\ud800" <= char <= "\udfff" for char in text):
            continue
        reading = JsonReader().read(text.encode())

        assert json.loads(text) == reading.value
        assert not set(reading.flaws) - {"unsafe-integer"}


@given(st.binary(max_size=60) | st.text(alphabet='{}[]:,"\\ud8019.eE+-nulltrfas \n', max_size=40).map(str.encode))
def test_no_bytes_raise_and_spliceable_means_json(text: bytes) -> None:
    reading = JsonReader().read(text)
    flaws = reading.flaws + (() if _is_utf8(text) else ("invalid-utf8",))
    if is_strict(flaws) and not text.startswith(b"\xef\xbb\xbf"):
        json.loads(text)


@given(JSON)
def test_outline_finds_every_top_level_member_and_element(value: object) -> None:
    text = json.dumps(value, indent=1)
    places = outline(text)

    assert places.complete
    if isinstance(value, dict):
        assert value == {json.loads(name): json.loads(text[start:stop]) for name, start, stop in places.members}
    if isinstance(value, list):
        assert value == [json.loads(text[start:stop]) for start, stop in places.elements]


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ('{"id":1,"id":2,"params":{"name":"a","arguments":{},"name":"b"}}', ["$.id", "$.params.name"]),
        ('{"a":[{},{"b c":1,"b c":2}]}', ['$.a[1]["b c"]']),
        ('[{"a":1},{"a":1}]', []),
    ],
)
def test_outline_names_the_paths_of_duplicates(text: str, paths: list[str]) -> None:
    assert paths == outline(text).duplicates


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
