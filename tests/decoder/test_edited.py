"""Edited sessions on pipes: what an edit is of, what it does to exchanges, and that nobody is blamed for it."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mcpsniff.capture.records import Record
from mcpsniff.checks import Finding
from mcpsniff.decoder import Event
from mcpsniff.protocol.exchange import Exchange
from mcpsniff.transcript.jsonl import JsonLines
from mcpsniff.transcript.rows import RowBuilder
from mcpsniff.transcript.terminal import plain
from mcpsniff.transcript.text import TextTranscript
from tests.edited import Session, edits
from tests.sessions import OPENS, decode, end, exchanges, messages
from tests.sessions import findings as all_findings
from tests.test_decoder import SNIPPETS


def findings(events: list[Event]) -> list[Finding]:
    """Those that are of interest: there is no handshake here."""
    return [finding for finding in all_findings(events) if finding.code != "MCP301"]


def codes(events: list[Event]) -> list[tuple[str, str]]:
    return [(finding.code, finding.blame) for finding in findings(events)]


def only(events: list[Event]) -> Exchange:
    (exchange,) = exchanges(events)
    return exchange


def request(number: object, method: str = "tools/call", **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def result(number: object, **of: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "result": of}


def test_a_changed_request_names_what_changed_and_keeps_its_answer() -> None:
    said = Session().ask(1, name="t", arguments={"city": "Bern", "days": 1})
    events = said.change(request(1, name="t", arguments={"city": "Basel", "days": 1})).answer(1).end().decode()
    (edit,) = edits(events)
    asked = messages(events)[0]
    assert (edit.change, edit.direction, edit.by) == ("changed", "c2s", "addon")
    assert edit.of is asked
    assert edit.link is asked.link
    assert edit.members == ("params.arguments.city",)
    assert edit.message is not None
    assert edit.message.body["params"]["arguments"]["city"] == "Basel"
    assert only(events).state == "answered"
    assert [touch.part + " " + touch.change for touch in only(events).touches] == ["request changed"]
    assert codes(events) == []


def test_a_dropped_request_is_nobodys_unanswered_request() -> None:
    events = Session().ask(1).change(None, by="faults", why="fault drop (p=0.1)").wait(90_000_000).end().decode()
    (edit,) = edits(events)
    assert (edit.change, edit.left, edit.why) == ("dropped", (), "fault drop (p=0.1)")
    assert only(events).state == "abandoned"
    assert only(events).is_kept_back
    (finding,) = findings(events)
    assert (finding.code, finding.severity, finding.blame) == ("MCP409", "note", "mcpsniff")
    assert "its request was dropped by fault drop (p=0.1)" in finding.text


def test_an_answer_in_its_place_ends_the_exchange() -> None:
    said = Session().ask(1).change(None, by="block")
    error = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "Unknown tool"}}
    events = said.add("s2c", error, by="block").end().decode()
    exchange = only(events)
    assert [edit.change for edit in edits(events)] == ["dropped", "answered"]
    assert (exchange.state, exchange.answered_by, exchange.response) == ("errored", "block", edits(events)[1].n)
    assert exchange.latency_us is None
    assert codes(events) == []


def test_the_answer_may_be_recorded_before_the_drop() -> None:
    said = Session().ask(1).add("s2c", result(1), by="mock")
    said._latest = (0, 0, len(said.records[-2].body))
    events = said.change(None, by="mock").end().decode()
    assert only(events).answered_by == "mock"
    assert codes(events) == []


def test_both_answers_where_ours_came_first() -> None:
    events = Session().ask(1).add("s2c", result(1)).answer(1).end().decode()
    assert only(events).answered_by == "addon"
    assert codes(events) == []


def test_an_injected_request_pairs_with_its_answer_which_is_kept() -> None:
    said = Session().add("c2s", request("mcpsniff-1", "ping"), by="probe").answer("mcpsniff-1")
    events = said.change(None, by="probe", why="the answer to a request that it had made").end().decode()
    exchange = only(events)
    assert (exchange.by, exchange.request, exchange.state) == ("probe", edits(events)[0].n, "answered")
    assert messages(events)[0].link is exchange
    assert edits(events)[1].link is exchange
    assert codes(events) == []


def test_the_second_answer_to_a_duplicated_request() -> None:
    said = Session().ask(1).add("c2s", request(1), by="fault duplicate").answer(1).answer(1)
    events = said.end().decode()
    assert [one.state for one in exchanges(events)] == ["answered", "answered"]
    assert codes(events) == []


def test_an_answer_that_was_doubled_on_the_way() -> None:
    events = Session().ask(1).answer(1).add("s2c", result(1), by="fault duplicate").end().decode()
    assert only(events).response == messages(events)[1].n
    assert edits(events)[0].link is only(events)
    assert codes(events) == []


def test_an_id_that_was_changed_and_not_changed_back() -> None:
    events = Session().ask(1).change(request("1")).answer("1").change(result(1)).end().decode()
    assert only(events).state == "answered"
    assert codes(events) == []


def test_an_answer_with_another_id_leads_to_a_cancel_that_is_nobodys_fault() -> None:
    said = Session().ask(1).answer(1).change(result("1"), by="fault wrong-id").wait(60_000_000)
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    events = said.say("c2s", cancel).end().decode()
    assert only(events).state == "answered"
    assert codes(events) == []


def test_who_gave_up_on_a_dropped_request_is_told_why() -> None:
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1, "reason": "timed out"}}
    events = Session().ask(1).change(None, by="fault drop").wait(30_000_000).say("c2s", cancel).end().decode()
    (finding,) = findings(events)
    assert (finding.code, finding.blame) == ("MCP801", "mcpsniff")
    assert "its request was dropped by fault drop" in finding.text


def test_a_message_that_was_kept_back_and_sent_later() -> None:
    said = Session().ask(1).change(None, by="fault reorder").ask(2).add("c2s", request(1), by="fault reorder")
    events = said.answer(2).answer(1).end().decode()
    assert [one.state for one in exchanges(events)] == ["answered", "answered"]
    first = next(one for one in exchanges(events) if one.key == 1)
    assert not first.is_kept_back
    assert first.latency_us == 2000
    assert codes(events) == []


def test_a_held_request_is_not_slow() -> None:
    events = Session().ask(1).hold(2_000_000, by="break").answer(1).end().decode()
    (edit,) = edits(events)
    assert (edit.change, edit.held_us, edit.of) == ("held", 2_000_000, messages(events)[0])
    assert (only(events).held_us, only(events).latency_us) == (2_000_000, 2000)


def test_time_held_before_a_change_does_not_count_either() -> None:
    said = Session().ask(1).wait(500_000).change(request(1, name="x"), us=501_000).answer(1)
    assert only(said.end().decode()).latency_us == 1000


def test_a_hold_that_begins_stops_the_clock() -> None:
    said = Session().ask(1)
    said._put("hold", 0, {"start": 0, "length": len(said.records[-1].body), "us": 0, "by": "break"})
    events = said.wait(100_000_000).hold(1_000_000).answer(1).end().decode()
    assert codes(events) == []


def test_half_a_line_spoils_the_next_one_too() -> None:
    said = Session().ask(1).change(b'{"jsonrpc":"2.0","id":1,"met', by="fault half").ask(2)
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "Parse error"}}
    events = said.say("s2c", error).say("s2c", error).end().decode()
    assert [one.is_kept_back for one in exchanges(events)] == [True, True]
    assert {blame for _, blame in codes(events)} == {"mcpsniff"}
    assert [finding.text for finding in findings(events) if finding.code == "MCP409"] == [
        "request 1 (tools/call) was never answered: its request was garbled by fault half",
        "request 2 (tools/call) was never answered: its request was garbled by fault half",
    ]


def test_a_piece_that_left_before_lines_that_had_come() -> None:
    said = Session().say("c2s", b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n{"jsonrpc":"2.0","id":2,"method":"ping"}\n')
    said._latest = (0, 0, 41)
    events = said.change(b'{"jsonrpc"', by="fault half").end().decode()
    assert [one.is_kept_back for one in exchanges(events)] == [True, True]


def test_noise_and_what_is_said_to_it() -> None:
    said = Session().ask(1).add("c2s", b"\xff\xfe\n", by="fault noise")
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "Parse error"}}
    events = said.say("s2c", error).answer(1).end().decode()
    assert edits(events)[0].change == "added"
    assert codes(events) == [("MCP907", "mcpsniff")]


def test_one_element_of_a_batch_is_dropped() -> None:
    said = Session().say("c2s", [request(1, "ping"), request(2, "ping")]).change([request(2, "ping")], by="block")
    events = said.say("s2c", [result(2)]).end().decode()
    by_key = {one.key: one for one in exchanges(events)}
    assert (by_key[1].state, by_key[1].is_kept_back) == ("abandoned", True)
    assert (by_key[2].state, by_key[2].touches) == ("answered", ())


def test_a_dropped_cancel_leaves_the_late_answer_alone() -> None:
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    said = Session().ask(1).say("c2s", cancel).change(None).wait(5_000_000).answer(1)
    assert codes(said.end().decode()) == []


def test_an_injected_cancel_is_why_there_is_no_answer() -> None:
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    events = Session().ask(1).add("c2s", cancel, by="budget").wait(90_000_000).end().decode()
    assert "its cancel was added by budget" in findings(events)[-1].text
    assert codes(events)[-1] == ("MCP409", "mcpsniff")


def test_a_changed_progress_token() -> None:
    said = Session().ask(1, _meta={"progressToken": "a"}).change(request(1, _meta={"progressToken": "b"}))
    progress = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": "b", "progress": 1}}
    events = said.say("s2c", progress).answer(1).end().decode()
    assert only(events).progress == [messages(events)[1].n]
    assert codes(events) == []


def test_what_is_no_longer_remembered_still_has_an_event() -> None:
    said = Session()
    for number in range(30):
        said.ask(number, text="x" * 100_000)
    said._latest = (0, 0, len(said.records[len(said.records) - 30].body))
    events = said.change(request(0)).decode()
    (edit,) = edits(events)
    assert edit.of is None
    assert edit.left


def test_a_part_of_a_line_may_be_all_that_changed() -> None:
    said = Session().ask(1, name="Bern")
    start = said.records[-1].body.index(b"Bern")
    said._latest = (0, start, 4)
    events = said.change(b"Basel").answer(1).end().decode()
    (edit,) = edits(events)
    assert edit.members == ("params.name",)
    assert edit.message is not None
    assert edit.message.body == request(1, name="Basel")
    assert codes(events) == []


def test_what_left_is_as_the_records_say() -> None:
    said = Session().ask(1).change(request(2)).ask(3).change(None).ask(4).add("c2s", request(5))
    kept = said.records[-2].body
    assert (
        said.left()[0]
        == b"".join(
            (
                *(record.body["data"] for record in said.records if record.kind == "rewrite" and record.body["length"]),
                kept,
            )
        )
        + said.records[-1].body["data"]
    )


def test_rewrites_of_mcpsniff_itself_are_what_they_were() -> None:
    events = Session().ask(1).change(request(2), by="mcpsniff").decode()
    assert edits(events) == []
    assert only(events).touches == ()


def test_a_pipe_that_was_broken_off_is_nobodys_fault() -> None:
    said = Session().ask(1).ask(2)
    for channel, fields in (
        (1, {"how": "aborted", "error": "broken off by faults"}),
        (1, {"how": "exit", "status": 1}),
        (0, {"how": "aborted", "error": "the server ended"}),
    ):
        said._put("close", channel, fields)
    events = said.decode()
    assert [one.state for one in exchanges(events)] == ["abandoned", "abandoned"]
    assert codes(events) == []


def test_nobody_is_blamed_for_writing_on_after_we_broke_a_pipe_off() -> None:
    for channel in (0, 1):
        said = Session().ask(1)
        said._put("close", channel, {"how": "aborted", "error": "broken off by faults"}).wait(5_000_000)
        events = said.ask(2).answer(1).say("c2s", {"jsonrpc": "2.0", "method": "notifications/x"}).wait(400_000_000)
        assert codes(events.ask(3).end().decode()) == []


def test_a_server_that_was_not_told_that_its_input_has_ended_does_not_linger() -> None:
    said = Session().ask(1).change(None, by="faults", why="fault stall")
    said._put("close", 0, {"how": "eof"}).wait(3_000_000)
    said._put("close", 1, {"how": "killed", "signal": 9, "sent": ["KILL"], "by": "mcpsniff"})
    assert [code for code, _ in codes(said.decode())] == ["MCP409"]


EDITS = st.tuples(
    st.sampled_from(["rewrite", "hold"]),
    st.integers(0, 1),
    st.integers(0, 200),
    st.integers(0, 200),
    st.sampled_from(SNIPPETS) | st.binary(max_size=9),
    st.integers(0, 90_000_000),
)


@given(st.lists(st.tuples(st.integers(0, 1), st.sampled_from(SNIPPETS)) | EDITS, max_size=30))
def test_no_edit_breaks_the_decoder(said: list[Any]) -> None:
    """Any edits of any places: there is one event for each, numbers go on, and every form can be written of them."""
    records = list(OPENS)
    for t, one in enumerate(said):
        if len(one) == 2:
            records.append(Record(t * 1000, "chunk", one[0], one[1]))
        else:
            kind, channel, start, length, data, us = one
            fields = {"start": start, "length": length, "data": data, "by": "x#3\x1b[31m", "why": "\u202e", "us": us}
            records.append(Record(t * 1000, kind, channel, fields))
    events = decode([*records, *end(len(said) * 1000)])
    assert len(edits(events)) == sum(len(one) != 2 for one in said)
    numbers = [event.n for event in events if not isinstance(event, Finding)]
    assert numbers == sorted(set(numbers))
    ended = [one.request for one in exchanges(events)]
    assert len(ended) == len(set(ended))
    builder = RowBuilder()
    rows = [*builder.feed(events), *builder.finish()]
    shown: list[str] = []
    for row in rows:
        TextTranscript(plain(shown.append), 100).row(row)
    assert not {"\x1b", "\u202e"} & set("".join(shown))
    for line in JsonLines(payload=True).lines(events).splitlines():
        json.loads(line)
