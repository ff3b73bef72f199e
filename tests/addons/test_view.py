"""addons/mcp_view.py: MCP in mitmproxy's own pages."""

import gzip
import importlib.util
import re
from collections.abc import Iterator

import pytest
from mitmproxy import contentviews, http
from mitmproxy.test import taddons

from tests.addons.stock import ADDONS
from tests.importers.talk import SESSION, event, flow, page, said, session


@pytest.fixture(scope="module", autouse=True)
def addon() -> Iterator[None]:
    spec = importlib.util.spec_from_file_location("mcp_view", ADDONS / "mcp_view.py")
    assert spec is not None
    assert spec.loader is not None
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    with taddons.context():
        yield


def shown(message: http.Message, made: http.HTTPFlow) -> tuple[str | None, str]:
    result = contentviews.prettify_message(message, made)
    return result.view_name, result.text


def streaming(body: bytes) -> http.HTTPFlow:
    return flow(0, said(id=1, method="tools/call", params={"name": "x"}), body, kind="text/event-stream")


def test_an_answer_names_the_request_that_it_answers_without_numbers_that_match_nothing() -> None:
    first = session()[0]
    assert first.response is not None
    view, text = shown(first.request, first)
    assert view == "MCP"
    assert re.match(r"# → initialize  id 0 · \d+ B\n\{\n", text)
    answer = f"# ← initialize  answered · HTTP 200 · session {SESSION} · id 0"
    assert answer in shown(first.response, first)[1]


def test_an_event_stream_is_messages_with_their_event_ids_and_what_is_between_them() -> None:
    body = b"id: 4\ndata:\n\n: alive\n\nid: 5\n" + event(id=1, result={"content": []})
    made = streaming(body)
    assert made.response is not None
    view, text = shown(made.response, made)
    assert view == "MCP"
    prime, alive, message = text.split("---\n")
    assert prime.endswith("← event id 4\n")
    assert alive.endswith("← comment alive\n")
    assert message.startswith("# ← tools/call x  answered · POST stream · event 5 · id 1")
    assert message.endswith('{"jsonrpc": "2.0", "id": 1, "result": {"content": []}}')


def test_what_is_wrong_stands_on_the_message() -> None:
    made = streaming(event(id=1, error={"code": "x"}))
    assert made.response is not None
    head, finding, *_ = shown(made.response, made)[1].splitlines()
    assert head.startswith("# ← ")
    assert finding.startswith("# ✗ error MCP209 error-shape, by the server: the error for id 1")


def test_nothing_is_said_that_would_need_what_came_before() -> None:
    for made in session():
        for message in (made.request, made.response):
            if message is not None and message.content:
                assert " MCP" not in shown(message, made)[1]


def test_a_compressed_body_is_shown_and_hostile_text_is_not_obeyed() -> None:
    text = said(id=1, result={"x": "\u202e\x1b[31m\u2066"}).replace(b"\\u202e", "\u202e".encode())
    made = flow(0, said(id=1, method="tools/call"), gzip.compress(text))
    assert made.response is not None
    made.response.headers["Content-Encoding"] = "gzip"
    view, seen = shown(made.response, made)
    assert view == "MCP"
    assert r"\u202e\u001b[31m\u2066" in seen
    assert "\u202e" not in seen


def test_a_stream_cannot_end_a_comment_and_pass_for_what_we_say() -> None:
    made = streaming(b"event: x\rid: 9\rdata: a\rdata: # by mcpsniff\r\r" + event(id=1, result={}))
    assert made.response is not None
    for line in shown(made.response, made)[1].splitlines():
        assert line.startswith(("# ← ", "# ▲ warning MCP531", "#   Fix: ", "---", "{"))


def test_what_is_said_of_others_in_the_body_reads_without_their_numbers() -> None:
    body = b"".join(
        [
            event(method="notifications/progress", params={"progressToken": 9, "progress": 1}),
            event(method="notifications/cancelled", params={"requestId": 3}),
            event(id=1, result={}),
            event(id=1, result={}),
        ]
    )
    params = {"name": "x", "_meta": {"progressToken": 9}}
    made = flow(0, said(id=1, method="tools/call", params=params), body, kind="text/event-stream")
    assert made.response is not None
    for line in shown(made.response, made)[1].splitlines():
        assert "#" not in line[1:], line
        assert not re.search(r"  · | · ·| (of|for)( ·|$)", line), line


def test_a_body_that_was_streamed_away_leaves_its_answer_readable() -> None:
    made = streaming(event(id=1, result={}))
    made.request.data.content = None
    assert made.response is not None
    view, text = shown(made.response, made)
    assert view == "MCP"
    assert " MCP" not in text


def test_other_bodies_are_left_to_other_views() -> None:
    other = page()
    assert other.response is not None
    assert shown(other.response, other)[0] != "MCP"
    made = flow(0, b"{}", b'{"a":1}')
    assert made.response is not None
    assert shown(made.response, made)[0] == "JSON"
    assert "no MCP in it" in contentviews.prettify_message(made.response, made, "mcp").text


def test_a_long_message_is_shown_by_its_beginning() -> None:
    made = flow(0, said(id=1, method="x"), said(id=1, result={"x": ["y" * 50] * 20_000}))
    assert made.response is not None
    lines = shown(made.response, made)[1].splitlines()
    assert len(lines) < 20
    assert lines[-1].startswith("# …")
