"""A few values of a JSON text are changed, and every other byte stays."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpsniff.replay import spelling
from mcpsniff.replay.serve.live_ids import twin
from mcpsniff.replay.spelling import Template, paths_of, respelt, token_of
from tests.replay.staging import message_of, note, request

ID = spelling.ID
TOKEN = spelling.TOKEN


@pytest.mark.parametrize(
    ("raw", "changed"),
    [
        (b'{"id":1}', b'{"id":"x"}'),
        (b'  { "b" : 1.0 , "id" :\t1.0, "a":[1e5]}\r', b'  { "b" : 1.0 , "id" :\t"x", "a":[1e5]}\r'),
        (b'\xef\xbb\xbf{"id":{"id":2}}', b'\xef\xbb\xbf{"id":"x"}'),
        (b'{"\\u0069d":1,"ID":2}', b'{"\\u0069d":"x","ID":2}'),
        (b'{"id":1,"a":{"id":2},"id":1}', b'{"id":"x","a":{"id":2},"id":"x"}'),
        (b'{"id":7,"id":1}', b'{"id":7,"id":"x"}'),
        (b'{"a":"\xff\\"\xc3","id":1}', b'{"a":"\xff\\"\xc3","id":"x"}'),
        (b'{"a":"}{\\"id\\":5","id":1}', b'{"a":"}{\\"id\\":5","id":"x"}'),
        (b'[{"id":1}]', b'[{"id":1}]'),
        (b'{"a":1}', b'{"a":1}'),
        (b"", b""),
        (b'{"id"', b'{"id"'),
        (b"id", b"id"),
    ],
)
def test_only_the_value_is_changed(raw: bytes, changed: bytes) -> None:
    assert respelt(raw, {ID: '"x"'}) == changed


def test_several_places_at_any_depth_are_changed_at_once_and_again() -> None:
    raw = b'{"params": {"x":[], "progressToken": 5, "_meta": {"progressToken" : 5}}, "id":3, "method":"m"}'
    template = Template(raw, (ID, spelling.OFFERED_TOKEN, TOKEN, ("params", "x", "y")))
    assert template.tokens == {ID: "3", TOKEN: "5", spelling.OFFERED_TOKEN: "5"}
    assert template.fill({}) == raw
    for one in (b"1", b'"\xc3\xa9"', b"-0"):
        token = one.decode()
        whole = b'{"params": {"x":[], "progressToken": %b, "_meta": {"progressToken" : 5}}, "id":%b, "method":"m"}'
        assert template.fill({ID: token, TOKEN: token, ("elsewhere",): "0"}) == whole % (one, one)


def test_a_token_is_given_as_it_is_spelt() -> None:
    assert token_of(b'{"id": 1.50e1 }', ID) == "1.50e1"
    assert token_of(b'{"id":"\\u0041"}', ID) == '"\\u0041"'
    assert token_of(b"{}", ID) is None


def test_which_places_of_a_message_differ_from_run_to_run() -> None:
    assert paths_of(message_of(request(1, "x"))) == (ID, spelling.OFFERED_TOKEN)
    assert paths_of(message_of(note("progress", progressToken=1))) == (TOKEN,)
    assert paths_of(message_of(note("cancelled", requestId=1))) == (spelling.CANCELLED_ID,)
    assert paths_of(message_of(note("x", _meta={"a": 1}))) == (spelling.SUBSCRIPTION,)
    assert paths_of(message_of({"jsonrpc": "2.0", "id": 1, "result": {}})) == (ID,)


@pytest.mark.parametrize(
    ("token", "other"),
    [("7", '"7"'), ('"7"', "7"), ('"-7"', "-7"), ('"07"', None), ('"x"', None), ('""', None), ('"\u0667"', None)],
)
def test_the_other_type_of_an_id(token: str, other: str | None) -> None:
    assert twin(token) == other


@given(st.binary(max_size=60))
def test_whatever_it_is_nothing_is_changed_without_a_reason(raw: bytes) -> None:
    assert Template(raw, (ID, TOKEN, spelling.OFFERED_TOKEN)).fill({}) == raw


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "a", "é"]), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from(["id", "params", "x"]), VALUES), st.integers(0, 3), st.booleans())
def test_the_meaning_changes_at_that_place_only(value: dict[str, Any], indent: int, ascii_only: bool) -> None:
    raw = json.dumps(value, indent=indent or None, ensure_ascii=ascii_only).encode()
    changed = json.loads(respelt(raw, {ID: '"new"', ("params", "id"): "5"}))
    wanted = {**value, "id": "new"} if "id" in value else value
    if isinstance(value.get("params"), dict) and "id" in value["params"]:
        wanted = {**wanted, "params": {**value["params"], "id": 5}}
    assert changed == wanted


@given(
    st.dictionaries(st.sampled_from(["id", "jsonrpc", "a"]), VALUES | st.just("2.0")),
    st.sampled_from([None, 1]),
    st.booleans(),
)
def test_an_id_at_an_end_is_found_without_reading_it_all(value: dict[str, Any], indent: int | None, last: bool) -> None:
    if last and "id" in value:
        value["id"] = value.pop("id")
    raw = json.dumps(value, indent=indent).encode()
    assert Template(raw, (ID,), is_plain=True).fill({ID: "5"}) == respelt(raw, {ID: "5"})


@pytest.mark.parametrize(
    "raw",
    [
        b'{"a":{"id":7}}',
        b'{"a":"x,\\"id\\":7}"}',
        b'{"a":"{\\"id\\":1}","id":2}',
        b'{"jsonrpc":"2.0","a":{"id":1,"b":[]},"id":"\\u0041"}',
        b'{"id":[1],"a":{"x":1,"id":5}}',
        b'{"id":{"id":7}}',
    ],
)
def test_no_other_id_is_taken_for_it(raw: bytes) -> None:
    assert Template(raw, (ID,), is_plain=True).tokens == Template(raw, (ID,)).tokens
