"""What the body of an HTTP refusal says, in every form of a transcript."""

import gzip
import json
from io import BytesIO

import pytest

from mcpsniff.transcript.at import EventPage, find_event
from mcpsniff.transcript.html import write_html
from mcpsniff.transcript.payload import NONE, WHOLE
from mcpsniff.transcript.session import Session
from mcpsniff.transcript.terminal import plain
from tests.transcript.http_sessions import OPEN_ONE, call, records
from tests.transcript.rendering import capture, json_lines, markdown, of_type, text

PAGE = "<html>\n<h1>400 Bad Request</h1>\n" + "".join(f"<p>line {n} &amp; more</p>\n" for n in range(9)) + "</html>"


def refused(status: int, body: str) -> str:
    return f"{OPEN_ONE}C> POST /mcp {call(2)}\nS> {status} {body}"


def answered(data: bytes, *headers: str) -> str:
    head = "".join(f"{line}\r\n" for line in ("HTTP/1.1 400 Bad Request", *headers, f"Content-Length: {len(data)}", ""))
    return f"{OPEN_ONE}C> POST /mcp {call(2)}\nS| {head.encode() + data!r}"


def at_the_refusal(said: str) -> str:
    source = capture(records(said), transport="http")
    source.keep()
    out: list[str] = []
    last = of_type(json_lines(records(said), transport="http"), "http")[-1]["n"]
    EventPage(plain(out.append), 100).show(find_event(source, last), source.header)
    return "".join(out)


@pytest.mark.parametrize(
    ("status", "body"),
    [(403, "Invalid Origin header"), (421, "Invalid Host header"), (404, "Not Found"), (500, "oops")],
)
def test_a_short_line_stands_on_the_row(status: int, body: str) -> None:
    said = refused(status, body)
    row = next(
        line for line in text(records(said), width=140, transport="http").splitlines() if f" {status} POST" in line
    )
    assert f"refuses #11 · {body} " in row
    assert f"`{body}`" in markdown(records(said), transport="http")
    assert of_type(json_lines(records(said), transport="http"), "http")[-1]["response"]["text"] == body
    assert f"What the response says\n  {body}\n" in at_the_refusal(said)


def test_a_page_stands_below_the_row_folded() -> None:
    said = answered(PAGE.encode(), "Content-Type: text/html")
    shown = text(records(said), transport="http")
    assert "\n                        <h1>400 Bad Request</h1>\n" in shown
    assert "<p>line 3 &amp; more</p>\n                        … 6 more lines; --payload shows all\n" in shown
    assert "<p>line 8 &amp; more</p>" in text(records(said), style=WHOLE, transport="http")
    assert "<h1>" not in text(records(said), style=NONE, transport="http")
    assert "```text\n<html>\n<h1>400 Bad Request</h1>\n" in markdown(records(said), transport="http")
    assert "  <p>line 8 &amp; more</p>\n  </html>\n" in at_the_refusal(said)


def test_in_html_it_unfolds_and_stays_text() -> None:
    said = answered(PAGE.encode(), "Content-Type: text/html")
    stream = BytesIO()
    write_html(Session(capture(records(said), transport="http")), stream)
    page = stream.getvalue().decode()
    assert "<pre>&lt;html&gt;\n&lt;h1&gt;400 Bad Request&lt;/h1&gt;" in page
    assert "line 8 &amp;amp; more" in page


def test_a_coding_is_removed() -> None:
    said = answered(gzip.compress(b"no such tenant"), "Content-Encoding: gzip")
    assert "refuses #11 · no such tenant" in text(records(said), width=140, transport="http")


def test_only_the_beginning_of_a_long_one_is_kept() -> None:
    said = answered(("ä" * 5000).encode())
    response = of_type(json_lines(records(said), transport="http"), "http")[-1]["response"]
    assert response["text"] == "ä" * 1024
    assert "… mcpsniff kept the first 2,048 of 10,000 bytes; the capture carries all" in at_the_refusal(said)
    cut = of_type(json_lines(records(answered(("aä" + "ä" * 5000).encode()))), "http")[-1]["response"]
    assert cut["text"] == "a" + "ä" * 1023, "half a character is left out"


def test_what_is_no_text_is_not_shown() -> None:
    said = answered(bytes(range(256)) * 4, "Content-Type: image/png")
    assert "text" not in of_type(json_lines(records(said), transport="http"), "http")[-1]["response"]
    assert "What the response says\n  no text; --hex shows its bytes\n" in at_the_refusal(said)


def test_a_body_that_is_a_message_or_of_a_success_is_told_once() -> None:
    error = {"jsonrpc": "2.0", "id": 2, "error": {"code": -1, "message": "no"}}
    for said in (refused(400, json.dumps(error)), refused(200, "hello")):
        assert "text" not in of_type(json_lines(records(said), transport="http"), "http")[-1]["response"]


def test_a_refusal_that_mcp_foresees_says_nothing_more() -> None:
    row = next(
        line for line in text(records("C> GET /mcp\nS> 405 Method Not Allowed")).splitlines() if " 405 GET" in line
    )
    assert "Method Not" not in row


def test_a_masked_answer_of_ours_is_whole_on_its_page() -> None:
    said = f'{OPEN_ONE}C> POST /mcp {call(2)}\nM> 502 {{"error":"cannot reach it"}}'
    assert 'What the response says\n  {"error": "cannot reach it"}' in at_the_refusal(said)
