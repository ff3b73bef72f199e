"""What was edited is the least change of the text that came."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpsniff.cli.attach_text import least_change
from mcpsniff.replay.resend.edit import TOKEN, laid_out

RAW = b' {"jsonrpc": "2.0", "id":1.0, "params" : {"a": [1, 2,3], "\\u0061": "x"}}  '


@pytest.mark.parametrize(
    ("was", "now", "text"),
    [
        ("1.0", "7", RAW.replace(b"1.0", b"7")),
        ("3\n", "3,\n4\n", RAW.replace(b"2,3", b"2,3, 4")),
        ('"a": [', '"b": {"c": 1},\n"a": [', RAW.replace(b'{"a"', b'{"b": {"c": 1}, "a"')),
        ('"jsonrpc": "2.0",', "", RAW.replace(b'"jsonrpc": "2.0", ', b"")),
        ("2,\n      3", "3", RAW.replace(b"2,3", b"3")),
    ],
)
def test_white_space_stays(was: str, now: str, text: bytes) -> None:
    offered = laid_out(RAW)
    assert was in offered
    assert least_change(RAW, offered.replace(was, now)) == text


def test_compact_text_stays_compact_and_lines_become_one() -> None:
    compact = b'{"a":[1,2],"b":{}}'
    assert least_change(compact, laid_out(compact).replace("2", "3,4")) == b'{"a":[1,3,4],"b":{}}'
    assert least_change(b'{\n "a": 1}', '{\n"a": 2}') == b'{"a":2}'
    assert least_change(b"no JSON\xff", '{"a": 2}') == b'{"a": 2}'.replace(b" ", b"")
    assert least_change(b"", "[1, 2]") == b"[1,2]"


def test_a_long_text() -> None:
    value = list(range(30_000))
    raw = json.dumps(value).encode()
    assert least_change(raw, laid_out(raw).replace(" 15000,", " true,")) == raw.replace(b" 15000,", b" true,")
    other = json.dumps([*reversed(value)])
    assert json.loads(least_change(raw, other)) == json.loads(other)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)


@given(JSON, JSON, st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", ":  ")]))
def test_all_tokens_are_those_that_were_typed(was: object, now: object, separators: tuple[str, str]) -> None:
    raw = json.dumps(was, separators=separators).encode()
    typed = json.dumps(now, indent=2)
    changed = least_change(raw, typed).decode()
    assert TOKEN.findall(changed) == TOKEN.findall(typed)
    assert "\n" not in changed
    assert least_change(raw, laid_out(raw)) == raw
