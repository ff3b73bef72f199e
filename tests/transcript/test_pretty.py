"""JSON laid out from its own text: spelling is kept, nothing is too deep, nothing raises."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpsniff.transcript.payload import FOLD, NONE, WHOLE
from mcpsniff.transcript.pretty import embedded_json, pretty
from tests.sessions import records
from tests.transcript.rendering import text


def laid_out(source: str, width: int = 60, longest: int | None = None) -> str:
    return "\n".join("".join(piece for _, piece in line) for line in pretty(source, width, longest))


def test_number_and_string_spelling_is_kept_b105() -> None:
    source = '{ "id":1 ,"r":{"a":1.0,"b":1e2,"c":-0,"d":0.123000000000000005123,"e":"\\/\\u00e9","f":[ ]}}'
    assert laid_out(source) == (
        '{\n  "id": 1,\n  "r": {\n    "a": 1.0,\n    "b": 1e2,\n    "c": -0,\n    "d": 0.123000000000000005123,\n'
        '    "e": "\\/\\u00e9",\n    "f": []\n  }\n}'
    )


def test_large_integers_are_shown_digit_for_digit_b98() -> None:
    source = '{"a":1915883588174806058,"b":147573952589676412927,"c":9999999999999999999999999999999999}'
    shown = text(records(("s2c", f'{{"jsonrpc":"2.0","id":1,"result":{{"structuredContent":{source}}}}}')))
    for digits in re.findall(r"\d{10,}", source):
        assert digits in shown


def test_what_fits_stands_on_one_line() -> None:
    assert laid_out('{"a":[1,2,{"b":null}],"c":{}}') == '{"a": [1, 2, {"b": null}], "c": {}}'


def test_json_in_a_text_is_laid_out() -> None:
    inner = json.dumps({"list": [1.0, 2], "name": "x" * 50})
    shown = laid_out(json.dumps({"type": "text", "text": inner}))
    assert shown == (
        '{\n  "type": "text",\n  "text": (JSON in a string) {\n    "list": [1.0, 2],\n    "name": "%s"\n  }\n}'
        % ("x" * 50)
    )


@pytest.mark.parametrize("token", ['"plain"', '"{not json}"', '"42"', '""', '"{\\"a\\":NaN}"'])
def test_other_text_is_a_string(token: str) -> None:
    assert embedded_json(token) is None
    assert laid_out(f'{{"text":{token}}}') == f'{{"text": {token}}}'


def test_only_members_called_text_are_looked_into() -> None:
    assert laid_out('{"data":"{\\"a\\":1}"}') == '{"data": "{\\"a\\":1}"}'


def test_long_strings_are_cut_and_counted() -> None:
    assert laid_out(f'{{"a":"{"x" * 200}"}}', longest=40) == ('{\n  "a": "%s… 162 more characters\n}' % ("x" * 39))
    assert "\\u" not in laid_out(f'{{"a":"{"x" * 36}\\u00e9{"x" * 200}"}}', longest=40)


@pytest.mark.parametrize("source", ["[" * 100_000 + "]" * 100_000, '{"a":' * 100_000, "[" * 100_000, "]" * 1000])
def test_depth_hurts_nobody(source: str) -> None:
    assert laid_out(source).replace(" ", "").replace("\n", "") == source
    assert "…" in text(records(("s2c", source)))


def test_the_tail_of_what_is_no_json_is_there() -> None:
    assert laid_out('{"a":1} junk \x1b') == '{"a": 1} junk \\u001b'


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text() | st.just("text"), inner, max_size=4),
)


@given(JSON, st.integers(5, 100))
def test_the_layout_of_json_is_the_same_json(value: object, width: int) -> None:
    shown = laid_out(json.dumps(value), width)
    if "(JSON in a string)" not in shown:
        assert json.loads(shown) == value


@given(st.text(alphabet='[]{},:"\\ea1 .\n\x00\u202e'), st.integers(1, 50), st.none() | st.integers(1, 20))
def test_any_text_is_laid_out(source: str, width: int, longest: int | None) -> None:
    assert "\x00" not in laid_out(source, width, longest)


MANY = '{{"jsonrpc":"2.0","id":1,"result":{{"list":[{}]}}}}'.format(
    ",".join(f'{{"n":{n},"s":"{"x" * 60}"}}' for n in range(50))
)


def test_long_payloads_are_folded() -> None:
    shown = text(records(("s2c", MANY)))
    assert shown.count('"n"') < FOLD
    assert (
        f"… {50 * 4 + 4 - FOLD} more lines; --payload shows all" in shown or "more lines; --payload shows all" in shown
    )


def test_payload_shows_the_whole_message() -> None:
    shown = text(records(("s2c", MANY)), style=WHOLE)
    assert shown.count('"n": ') == 50
    assert '"jsonrpc": "2.0"' in shown
    assert "more lines" not in shown


def test_no_payload_shows_none() -> None:
    assert '"n"' not in text(records(("s2c", MANY)), style=NONE)
