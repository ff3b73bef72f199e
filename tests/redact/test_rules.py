"""What each kind of rule removes, and what it leaves."""

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcpsniff.errors import UsageError
from mcpsniff.export.redact.presets import PRESETS
from tests.redact.planted import TOKEN, answer, outline, pipes, post, redacted, rules, wire

MAIL = "redacted-email-%d@example.invalid"
HOME = "redacted-home-%d"


def params(folder: Path, given: Any, **asked: Any) -> Any:
    """What becomes of the params of a request."""
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "m", "params": given}).encode() + b"\n"
    got = redacted(folder, pipes((0, line)), **asked)
    assert outline(got.path) == outline(got.source)
    return json.loads(got.bytes_of(0))["params"]


def logged(folder: Path, text: str, **asked: Any) -> str:
    """What becomes of a line on stderr."""
    return redacted(folder, pipes((2, text.encode() + b"\n")), **asked).bytes_of(2).decode().rstrip("\n")


def test_a_key_by_any_spelling_and_all_below_it(tmp_path: Path) -> None:
    given = {"My-Key": "abc", "my_key": ["abc", 7, True, None, {"x": "abcdefgh"}], "other": "my-key"}
    assert params(tmp_path, given, keys=["mykey"], presets=["none"]) == {
        "My-Key": "redacted-my-key-1",
        "my_key": ["redacted-my-key-1", 9000000001, True, None, {"x": "redacted-my-key-2"}],
        "other": "my-key",
    }


def test_a_key_in_json_within_a_string_in_a_url_and_in_a_log(tmp_path: Path) -> None:
    given = {"text": json.dumps({"pin": "12a", "n": {"pin": 'q"r'}}), "url": "http://h/p?a=1&pin=12a#x"}
    got = params(tmp_path, given, keys=["pin"], presets=["none"])
    assert json.loads(got["text"]) == {"pin": "redacted-pin-1", "n": {"pin": "redacted-pin-2"}}
    assert got["url"] == "http://h/p?a=1&pin=redacted-pin-1#x"
    assert logged(tmp_path, "pin=12a --pin 12a PIN: 12a", keys=["pin"], presets=["none"]) == (
        "pin=redacted-pin-1 --pin redacted-pin-1 PIN: redacted-pin-1"
    )


def test_a_path_with_wildcards(tmp_path: Path) -> None:
    given = {"a": [{"k": "v1"}, {"k": "v2"}], "b": {"c": {"k": "v3"}}, "k": "v4"}
    got = params(tmp_path, given, paths=["params.a.*.k"], presets=["none"])
    assert got == {"a": [{"k": "redacted-k-1"}, {"k": "redacted-k-2"}], "b": {"c": {"k": "v3"}}, "k": "v4"}
    got = params(tmp_path, given, paths=["params.b"], presets=["none"])
    assert got["b"] == {"c": {"k": "redacted-k-1"}}
    assert params(tmp_path, given, paths=["**.k"], presets=["none"])["k"] == "redacted-k-4"
    assert params(tmp_path, given, paths=["$.params.a[1].k"], presets=["none"])["a"][1] == {"k": "redacted-k-1"}


def test_a_path_in_a_batch(tmp_path: Path) -> None:
    line = b'[{"jsonrpc":"2.0","id":1,"method":"m","params":{"k":"secret12"}}]\n'
    got = redacted(tmp_path, pipes((0, line)), paths=["params.k"], presets=["none"])
    assert json.loads(got.bytes_of(0))[0]["params"] == {"k": "redacted-k-1"}


def test_a_value_is_literal(tmp_path: Path) -> None:
    given = {"x": "a.b*(c", "y": "aXbbb(c", "z": "pre a.b*(c post"}
    got = params(tmp_path, given, values=["a.b*(c"], presets=["none"])
    assert got == {"x": "redacted-value-1", "y": "aXbbb(c", "z": "pre redacted-value-1 post"}


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"values": [""]}, "--value is empty, which would be everywhere"),
        ({"patterns": [""]}, "--pattern is empty"),
        ({"keys": [""]}, "--key is empty"),
        ({"values": ["abc"]}, "needs at least 4 bytes"),
        ({"values": ["initialize"]}, "a word of the protocol"),
        ({"values": ["example.invalid"]}, "of what stands for values"),
        ({"patterns": ["(a"]}, "no regular expression"),
        ({"paths": ["a..b"]}, "--path is names"),
        ({"presets": ["keys"]}, "no such preset: keys; there are api-keys, "),
        ({"presets": ["none", "email"]}, "cannot be with others"),
    ],
)
def test_a_rule_that_cannot_be_applied_is_refused(asked: dict[str, list[str]], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        rules(**asked)


def test_a_pattern_and_the_group_called_secret(tmp_path: Path) -> None:
    given = {"x": "order 4711-99", "y": "n=4711-99 \\ ü 12-34"}
    assert params(tmp_path, given, patterns=[r"\d{4}-\d\d"], presets=["none"]) == {
        "x": "order redacted-pattern-1",
        "y": "n=redacted-pattern-1 \\ ü 12-34",
    }
    assert (
        params(tmp_path, given, patterns=[r"ü (?P<secret>\d\d)"], presets=["none"])["y"]
        == "n=4711-99 \\ ü 9000000001-34"
    )


def test_a_pattern_that_runs_for_ever_is_cut_and_its_text_removed(tmp_path: Path) -> None:
    given = {"x": "word " * 13_000, "y": "a b@x c"}
    got = redacted(
        tmp_path,
        pipes((0, json.dumps({"jsonrpc": "2.0", "id": 1, "method": "m", "params": given}).encode() + b"\n")),
        patterns=[r"(\w+\s?)+@x"],
        presets=["none"],
    )
    assert got.report.cut == 1
    assert json.loads(got.bytes_of(0))["params"] == {"x": "redacted-field-1", "y": "redacted-pattern-1 c"}


@pytest.mark.parametrize(
    ("text", "becomes"),
    [
        (f"key {TOKEN}.", "key redacted-api-key-1."),
        ("sk-abcdefghijklmnop1234 AKIAABCDEFGHIJKLMNOP", "redacted-api-key-1 redacted-api-key-2"),
        ("Authorization: Bearer abc123def456", "Authorization: Bearer redacted-token-1"),
        ("Bearer authentication is needed", "Bearer authentication is needed"),
        ("eyJhbGciOiJI.eyJzdWIiOiIx.c2ln-natu", "redacted-token-1"),
        ("get https://bob:pw1@h.test/x", "get https://redacted-user-and-password-1@h.test/x"),
        ("a@b.co; pkg@1.2.3 x@y.example.org", f"{MAIL % 1}; pkg@1.2.3 {MAIL % 2}"),
        ("see `/home/bob` (/home/eve) [/home/al]|", f"see `/home/{HOME % 1}` (/home/{HOME % 2}) [/home/{HOME % 3}]|"),
        ("/home/bob/x /Users/eve C:\\Users\\al\\y /home/bob",
         f"/home/{HOME % 1}/x /Users/{HOME % 2} C:\\Users\\{HOME % 3}\\y /home/{HOME % 1}"),
        ("password=hunter2zz token: invalid", "password=redacted-password-1 token: invalid"),
        ("from 10.1.2.3 and 127.0.0.1", "from 10.1.2.3 and 127.0.0.1"),
    ],
)  # fmt: skip
def test_the_presets_that_are_on(text: str, becomes: str, tmp_path: Path) -> None:
    assert logged(tmp_path, text) == becomes
    assert logged(tmp_path, text, presets=["none"]) == text


def test_the_preset_of_addresses(tmp_path: Path) -> None:
    assert logged(tmp_path, "from 10.1.2.3:80, [fe80::1:2] and 127.0.0.1", presets=["addresses"]) == (
        "from 198.18.0.1:80, [2001:db8::2] and 127.0.0.1"
    )


def test_telling_names_in_a_message_but_not_in_a_schema(tmp_path: Path) -> None:
    given = {
        "api_key": "k-1234567",
        "progressToken": "p-123456789",
        "maxTokens": 5,
        "code": "print(12345678)",
        "schema": {"properties": {"token": {"type": "string", "default": "abcdefgh1"}}, "required": ["token"]},
    }
    assert params(tmp_path, given) == {**given, "api_key": "redacted-api-key-1"}


def test_heads(tmp_path: Path) -> None:
    lines = [
        "Authorization: Bearer tok-123456",
        "Cookie: sid=c00kie-1; theme=dark-blue-9",
        "X-Api-Key: k-998877",
        "Mcp-Session-Id: sess-1234567",
    ]
    said = answer(b"{}", "Set-Cookie: sid=c00kie-1; Path=/", "Location: /cb?code=xyz-12345")
    got = redacted(tmp_path, wire((0, post(b"{}", *lines)), (1, said)))
    head = got.bytes_of(0).decode()
    assert "Bearer redacted-token-1\r\n" in head
    assert "Cookie: sid=redacted-cookie-1; theme=redacted-cookie-2\r\n" in head
    assert "X-Api-Key: redacted-x-api-key-1\r\n" in head
    assert "Mcp-Session-Id: sess-1234567\r\n" in head
    assert (
        "Set-Cookie: sid=redacted-cookie-1; Path=/\r\nLocation: /cb?code=redacted-code-1\r\n"
        in got.bytes_of(1).decode()
    )


def test_the_password_of_basic_authentication_is_found_in_the_log_too(tmp_path: Path) -> None:
    word = b64encode(b"admin:hunter2-horse").decode()
    talk = [
        (0, post(b"{}", f"Authorization: Basic {word}")),
        (1, answer(b'{"login":"admin:hunter2-horse","p":"hunter2-horse"}')),
    ]
    got = redacted(tmp_path, wire(*talk))
    assert b"hunter2" not in got.bytes_of(1)


def test_a_session_id_is_the_same_on_both_sides(tmp_path: Path) -> None:
    name = "sess-1234567"
    talk = [
        (0, post(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}')),
        (1, answer(b'{"jsonrpc":"2.0","id":1,"result":{}}', f"Mcp-Session-Id: {name}")),
        (0, post(b'{"jsonrpc":"2.0","id":2,"method":"ping"}', f"Mcp-Session-Id: {name}")),
        (1, answer(b'{"jsonrpc":"2.0","id":2,"result":{}}')),
    ]
    got = redacted(tmp_path, wire(*talk), keys=["Mcp-Session-Id"])
    assert b": redacted-mcp-session-id-1\r\n" in got.bytes_of(0)
    assert b": redacted-mcp-session-id-1\r\n" in got.bytes_of(1)
    assert outline(got.path) == outline(got.source)


def test_no_form_runs_over_a_text_without_bound() -> None:
    """B146, without a clock: from each place a form looks at so many bytes and no more."""
    for form in (form for forms in PRESETS.values() for form in forms):
        assert not list(unbounded(re._parser.parse(form.pattern.pattern))), form  # type: ignore[attr-defined]
    assert list(unbounded(re._parser.parse(rb"(a|b+)c")))  # type: ignore[attr-defined]


def unbounded(parsed: Any) -> Iterator[Any]:
    """The repetitions without an upper bound in a parsed expression."""
    if isinstance(parsed, tuple) and len(parsed) == 3 and parsed[1] is re._constants.MAXREPEAT:  # type: ignore[attr-defined]
        yield parsed
    if isinstance(parsed, str | int | bytes | None):
        return
    for one in parsed:
        if one is not parsed:
            yield from unbounded(one)
