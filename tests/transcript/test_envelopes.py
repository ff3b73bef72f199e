"""The envelope in ``_meta`` that requests of 2026-07-28 repeat is shown once for each client."""

import json
from typing import Any

import pytest

from mcpsniff.capture.records import Record
from mcpsniff.transcript.envelopes import KNOWN, without_envelope
from mcpsniff.transcript.payload import NONE, WHOLE
from mcpsniff.transcript.talks import peer
from tests.sessions import records
from tests.transcript.rendering import markdown, text

KEY = "io.modelcontextprotocol/"


def envelope(client: str = "desk", **more: Any) -> dict[str, Any]:
    info = {"name": client, "version": "1"}
    return {f"{KEY}protocolVersion": "2026-07-28", f"{KEY}clientInfo": info, f"{KEY}clientCapabilities": {}, **more}


def calls(*metas: dict[str, Any]) -> list[Record]:
    asked = [
        {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": f"t{number}", "_meta": meta}}
        for number, meta in enumerate(metas)
    ]
    return records(*(("c2s", one) for one in asked))


def test_the_same_one_again_is_a_line() -> None:
    said = calls(envelope(), envelope(), envelope(progressToken=7))
    shown = text(said)
    assert shown.count(f'"{KEY}protocolVersion"') == 1
    assert '{"name": "t1"}\n                        _meta as #2\n' in shown
    assert '{"name": "t2", "_meta": {"progressToken": 7}}\n                        _meta as #2\n' in shown
    document = markdown(said)
    assert document.count(f'"{KEY}protocolVersion"') == 1
    assert document.count(" · `_meta` as [#2](#n2)\n") == 2
    assert text(said, style=WHOLE).count(f'"{KEY}protocolVersion"') == markdown(said, style=WHOLE).count(KEY) // 3 == 3
    for style in (WHOLE, NONE):
        assert "as #2" not in text(said, style=style)
        assert "as [#2]" not in markdown(said, style=style)


def test_a_changed_one_is_shown_and_is_the_one_from_then_on() -> None:
    other = envelope(**{f"{KEY}logLevel": "debug"})
    shown = text(calls(envelope(), other, other, envelope()))
    assert shown.count(f'"{KEY}protocolVersion"') == 3
    assert shown.count("_meta as #4\n") == 1
    assert "_meta as #2" not in shown


def test_each_client_has_its_own() -> None:
    shown = text(calls(envelope("a"), envelope("b"), envelope("a"), envelope("b")))
    assert ("_meta as #2\n" in shown, "_meta as #4\n" in shown) == (True, True)


def test_what_is_of_one_message_alone_stays() -> None:
    said = calls(*[{f"{KEY}subscriptionId": "w"}] * 2, *[{"progressToken": 1}] * 2)
    assert text(said).count("subscriptionId") == 2
    assert "_meta as" not in text(said)


def test_no_more_clients_are_remembered_than_there_is_room_for() -> None:
    shown = text(calls(*(envelope(f"c{number % (KNOWN + 1)}") for number in range(2 * KNOWN + 2))))
    assert "_meta as" not in shown


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (json.dumps({"_meta": envelope()}), "{}"),
        ('{"a": 1.0, "_meta": {"x": -0, "io.modelcontextprotocol/y": 1}}', '{"a":1.0,"_meta":{"x":-0}}'),
        (
            '{"_meta": {"io.modelcontextprotocol/subscriptionId": 1}}',
            '{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}',
        ),
    ],
)
def test_what_is_left_keeps_its_spelling(before: str, after: str) -> None:
    assert without_envelope(before) == after


@pytest.mark.parametrize(
    ("info", "name"),
    [
        ({"name": "shop2", "version": ""}, "shop2"),
        ({"name": "", "version": "2"}, "2"),
        ({"name": " ", "version": ""}, ""),
    ],
)
def test_an_empty_name_or_version_leaves_no_gap(info: dict[str, str], name: str) -> None:
    assert peer(info) == name
