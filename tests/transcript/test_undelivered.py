"""An answer that came and did not reach who asked: every form says what the asker saw, and who did it."""

import pytest

from mcpsniff.decoder import Decoder
from mcpsniff.transcript.digest import digest
from mcpsniff.transcript.summary import Summary
from tests.decoder.test_edited_http import STREAM, Web, chunk, event, exchange, post, request, response, result
from tests.edited import Session, edits
from tests.html.pages import html
from tests.sessions import exchanges
from tests.transcript.rendering import capture, json_lines, markdown, of_type, text

WHY = {"why": "fault drop (server's answer)"}
FAULT = {"by": "faults", "why": "fault drop (server's answer to tools/call id 1)"}
CANCEL = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}


def asked() -> Session:
    return Session().ask(1, name="echo").answer(1, content=[])


def summed(session: Session) -> Summary:
    decoder, summary = Decoder(), Summary()
    for record in session.records:
        summary.feed(decoder.feed(record))
    summary.feed(decoder.finish())
    return summary


@pytest.mark.parametrize(
    "left", [None, b'{"jsonrpc":"2.0","id":1,"res\n', {"jsonrpc": "2.0", "id": 99, "result": {"content": []}}]
)
def test_a_lost_answer_is_no_answer_to_who_asked(left: object) -> None:
    session = asked().change(left, **FAULT).end()
    (exchange,) = exchanges(session.decode())
    assert exchange.state == "answered"
    assert exchange.undelivered is not None
    summary = summed(session)
    calls = summary.methods["c2s", "tools/call"]
    assert (calls.count, calls.failed, calls.unanswered, calls.targets["echo"].unanswered) == (1, 0, 1, 1)
    shown = text(session.records)
    assert "the client got no answer" in shown
    assert "1 request answered in vain" in shown
    assert "by fault drop (server's answer to tools/call id 1)" in shown
    assert digest(capture(session.records)).undelivered == 1
    assert digest(capture(session.records)).unanswered == 1
    assert "1 request answered in vain" in html(session.records).decode()
    assert "1 request answered in vain" in markdown(session.records)
    (line,) = of_type(json_lines(session.records), "rewrite")
    assert line["undelivered"] == [exchange.request]


def test_what_goes_on_after_all_is_delivered() -> None:
    again = {"jsonrpc": "2.0", "id": 1, "result": {"content": []}}
    for session in (
        asked().change(None).add("s2c", again),  # reordered
        asked().change({**again, "result": {}}),
        asked().hold(2_000_000),
        Session().ask("1").answer("1").change({"jsonrpc": "2.0", "id": 1, "result": {}}),  # SDKs take it
    ):
        assert summed(session.end()).undelivered == 0
    dropped, added = edits(asked().change(None).add("s2c", again).end().decode())
    assert dropped.lost == added.found != ()


def test_an_answer_to_a_request_that_somebody_made_is_meant_to_stay_here() -> None:
    request = {"jsonrpc": "2.0", "id": "mcpsniff-1", "method": "ping"}
    session = Session().add("c2s", request).answer("mcpsniff-1").change(None).end()
    assert summed(session).undelivered == 0


@pytest.mark.parametrize("begins", [True, False])
def test_an_answer_that_was_held_until_the_client_gave_up(*, begins: bool) -> None:
    session = asked()
    place = session._latest
    if begins:
        session.hold(0, **FAULT)
    session.wait(1_000_000).say("c2s", CANCEL)
    session._latest = place
    session.hold(2_000_000, **FAULT).end()
    shown = text(session.records)
    assert "the client had given up" in shown
    assert ("gives up on #2, whose answer did not arrive" in shown) is begins
    assert ("too late" in shown) is not begins
    assert "the client gave up while the answer was held by fault drop" in " ".join(shown.split())
    assert summed(session).methods["c2s", "tools/call"].unanswered == 1


def test_one_that_is_held_to_the_end_did_not_arrive() -> None:
    session = asked().hold(0, **FAULT).end()
    assert summed(session).undelivered == 1
    assert "the answer was held by fault drop" in " ".join(text(session.records).split())


def test_over_http() -> None:
    web = Web()
    web.came(0, post(request(1)))
    whole = response(result(1))
    start = web.came(1, whole)
    web.rewrite(1, start, len(whole), b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", **WHY)
    web.came(0, post(request(2)))
    web.came(1, STREAM)
    said = chunk(event(result(2)))
    start = web.came(1, said)
    web.rewrite(1, start, len(said), b"", **WHY)
    web.came(1, b"0\r\n\r\n")
    web.put("close", 1, {"how": "aborted", "error": "broken off by faults"})
    web.put("close", 0, {"how": "aborted", "error": "broken off by faults"})
    events = web.decode()
    assert exchange(events, 0).undelivered is None
    assert exchange(events, 1).undelivered is not None
    assert exchange(events, 2).undelivered is not None
    shown = text(web.records)
    assert shown.count("the client got no answer") == 2
    assert shown.count("the connection to the client was broken off by faults") == 1
    assert "2 requests answered in vain" in shown
