"""Edited sessions in every form: a row for each edit beside its message, with who, what and why."""

import re

from mcpsniff.decoder import Decoder
from mcpsniff.protocol.edits import Edit
from mcpsniff.transcript.at import EventPage, event_lines, find_event
from mcpsniff.transcript.filter import compile_filter
from mcpsniff.transcript.live.foot import OpenRequests, Waiting
from mcpsniff.transcript.rows import EDIT, Row, RowBuilder
from mcpsniff.transcript.terminal import plain
from tests.decoder.test_edited_http import Web, post, request, response, result
from tests.edited import Session
from tests.filter.sample_edited import SAMPLE
from tests.filter.selecting import select
from tests.html.pages import html
from tests.transcript.rendering import capture, json_lines, markdown, of_type, strict, text


def rows(records: list[object]) -> list[Row]:
    decoder, builder = Decoder(), RowBuilder()
    made = [row for record in records for row in builder.feed(decoder.feed(record))]
    made += builder.feed(decoder.finish())
    return made + list(builder.finish())


def edited(records: list[object]) -> list[Row]:
    return [row for row in rows(records) if row.kind == EDIT]


def said(row: Row) -> tuple[object, ...]:
    return row.title, row.target, row.words, row.remark


def test_each_edit_has_a_row_after_its_message() -> None:
    assert [said(row) for row in edited(SAMPLE)] == [
        ("tools/call", "weather", ("changed #9",), "by rule 1 · params.arguments.city · no Bern"),
        ("tools/call", "remove", ("dropped #15",), "by block · tool:remove"),
        ("tools/call", "remove", ("errored #15",), "by block · tool:remove"),
        ("tools/call", "sleep", ("held #20", "for 2.0 s"), "by break"),
        ("tools/call", "lost", ("dropped #26",), "by fault drop (p=0.1)"),
        ("ping", None, ("added",), "by probe.py"),
        ("ping", None, ("dropped #30",), "by probe.py · the answer to a request that it had made"),
        ("notifications/message", None, ("dropped #34",), "by mask_secrets"),
    ]


def test_what_it_led_to_says_so() -> None:
    shown = {row.n: row for row in rows(SAMPLE)}
    assert shown[12].words == ("answered #9", "request changed by rule 1 (no Bern)")
    assert shown[23].words == ("answered #20", "request held by break")
    assert shown[23].latency_us == 2000
    (lost,) = [row for row in shown.values() if row.kind == "unanswered"]
    assert lost.words == ("abandoned #26", "request dropped by fault drop (p=0.1)")
    assert not lost.loud


def test_text_tells_all_of_it_also_where_there_is_little_room() -> None:
    shown = text(SAMPLE)
    assert re.search(r"#10 +├ +⇢ tools/call weather", shown)
    assert "changed #9 · by rule 1 · params.arguments.city · no Bern" in shown
    assert '{"name": "weather", "arguments": {"city": "Basel"}}' in shown
    assert "on the way: 8 edits (1 changed, 4 dropped, 1 added, 1 answered, 1 held, 2.0 s in all)" in shown
    assert "without an answer" not in shown
    narrow = text(SAMPLE, width=40)
    assert all(len(line) <= 40 for line in narrow.splitlines())
    assert "params.arguments.city" in narrow


def test_markdown_and_html_tie_it_to_its_message() -> None:
    page = markdown(SAMPLE)
    assert "edited · **`tools/call`** `weather` · changed [#9](#n9) · `by rule 1 · params.arguments.city" in page
    made = html(SAMPLE).decode()
    assert re.search(r"<li id=n10 class=edit><a href=#n9>changed #9</a>", made)
    assert "by mask_secrets" in made
    assert "<p>On the way: 8 edits (1 changed, 4 dropped," in made


def test_json_lines() -> None:
    lines = json_lines(SAMPLE)
    changed, dropped, answered, *_ = of_type(lines, "rewrite")
    assert (changed["edit"], changed["of"], changed["members"]) == ("changed", 9, ["params.arguments.city"])
    assert changed["left"] == [{"kind": "request", "id": 1, "method": "tools/call", "flaws": []}]
    assert (dropped["edit"], dropped["left"], dropped["exchange"]) == ("dropped", [], 15)
    assert (answered["edit"], answered["of"], answered["exchange"]) == ("answered", None, 15)
    (held,) = of_type(lines, "hold")
    assert (held["edit"], held["us"], held["of"]) == ("held", 2_000_000, 20)
    ended = {line["request"]: line for line in of_type(lines, "exchange")}
    assert (ended[15]["answered_by"], ended[15]["latency_us"], ended[15]["response"]) == ("block", None, 17)
    assert (ended[20]["held_us"], ended[20]["latency_us"]) == (2_000_000, 2000)
    assert ended[28]["by"] == "probe.py"
    assert "edits" not in ended[2]


def test_the_page_of_an_edit_and_of_its_request() -> None:
    def page(number: int) -> str:
        out: list[str] = []
        source = capture(SAMPLE)
        source.keep()
        EventPage(plain(out.append), 100).show(find_event(source, number), source.header)
        return "".join(out)

    shown = page(10)
    assert shown.startswith("#10 edit: tools/call weather\n")
    assert "  edit        changed  something else left in the place of a message\n" in shown
    came, left = shown.split("What came\n")[1].split("What left in its place\n")
    assert '"Bern"' in came
    assert '"Basel"' in left
    assert "The whole exchange" in shown
    request_page = page(15)
    assert "answered by block  not by the peer that was asked" in request_page
    assert "edited      #16, its request was dropped by block: tool:remove" in request_page
    assert "What came, and left later" in page(21)
    assert "#28" in page(30)


def test_the_lines_of_an_edit_bring_its_exchange() -> None:
    source = capture(SAMPLE)
    source.keep()
    lines = [strict(line) for line in event_lines(source, 10, payload=False)]
    assert {line["n"] for line in lines if "n" in line} >= {9, 10, 12}


def test_a_short_hold_without_a_reason_has_no_row_but_counts() -> None:
    session = Session().ask(1).hold(9_999).answer(1).ask(2).hold(9_999, why="slow on purpose").answer(2)
    records = session.ask(3).hold(10_000).answer(3).end().records
    assert [said(row)[2:] for row in edited(records)] == [
        (("held #8", "for 10.0 ms"), "by addon · slow on purpose"),
        (("held #14", "for 10.0 ms"), "by addon"),
    ]
    answers = [row for row in rows(records) if row.kind == "response"]
    assert [row.words for row in answers] == [
        ("answered #2",),
        ("answered #8", "request held by addon (slow on purpose)"),
        ("answered #14", "request held by addon"),
    ]
    assert [row.latency_us for row in answers] == [2000, 2000, 2000]
    assert "on the way: 2 edits (2 held, 20.0 ms in all)" in text(records)
    lines = json_lines(records)
    assert [line["us"] for line in of_type(lines, "hold")] == [9_999, 9_999, 10_000]
    assert [len(line["edits"]) for line in of_type(lines, "exchange")] == [1, 1, 1]


def test_what_is_held_counts_once_also_if_its_beginning_was_told() -> None:
    session = Session().ask(1).hold(0, by="break").hold(2_000_000, by="break").answer(1)
    session.ask(2).hold(0, by="break").change(None, by="break").ask(3).hold(0, by="break")
    shown = text(session.end().records)
    assert "on the way: 3 edits (1 dropped, 2 held, 2.0 s in all) by break 3" in shown
    assert shown.count("  held #") == 4


def test_hostile_names_and_reasons_are_harmless() -> None:
    by, why = "\x1b[31m#3\u202e<b>", "`x` [y](z)\n"
    made = Session().ask(1).change(None, by=by, why=why).ask(2).change(b"\x1b]0;x\x07\n", by=by, why=why).end()
    for shown in (text(made.records), markdown(made.records), html(made.records).decode()):
        assert not {"\x1b", "\u202e", "\x07"} & set(shown)
    page = html(made.records).decode()
    assert "&lt;b&gt;" in page
    assert not re.search(r"by [^<]*<b>", page)
    assert "href=#n3>" not in page.split("dropped by")[1].split("</li>")[0]


def test_nobody_waits_for_what_was_dropped() -> None:
    waiting = OpenRequests()
    decoder = Decoder()
    for record in Session().ask(1).change(None).ask(2).records:
        events = decoder.feed(record)
        waiting.feed(events, events)
    assert [going.exchange.id for going in waiting.waiting(1_000_000) if isinstance(going, Waiting)] == ["2"]


def test_headers_that_are_changed_every_time_are_told_once() -> None:
    web = Web()
    for number in (1, 2, 3):
        asked = post(request(number))
        start = web.came(0, asked)
        web.rewrite(0, start + asked.index(b"Content-Length"), 0, b"X-Trace: 1\r\n", why="--set-header")
        web.came(1, response(result(number)))
    shown = text(web.close().records, transport="http")
    assert shown.count("X-Trace") == 1
    assert "others like it are counted" in " ".join(shown.split())


def test_a_head_that_changed_goes_with_its_call_and_says_what_was_removed() -> None:
    web = Web()
    for number in (1, 2):
        asked = post(request(number, name=f"t{number}"))
        start = web.came(0, asked)
        end = asked.index(b"Mcp-Session-Id")
        place = asked.index(b"Accept:")
        web.rewrite(0, start + place, end - place, b"X-Trace: 1\r\n", why="--set-header")
        came = web.came(1, response(result(number)))
        web.rewrite(1, came, len(b"HTTP/1.1 200 OK"), b"HTTP/1.1 202 Accepted", why="by hand")
    asking, answering = [row for row in edited(web.close().records) if row.title.startswith("head of")]
    assert asking.remark == "by addon · X-Trace, Accept, Content-Type · --set-header"
    assert answering.remark == "by addon · status 200 → 202 · by hand"
    lines = json_lines(web.records)
    called = {line["request"] for line in of_type(lines, "exchange")}
    heads = [line for line in of_type(lines, "rewrite") if line["edit"] == "head"]
    assert len(heads) == 4
    assert {line["exchange"] for line in heads} < called
    chosen = [event for event in select(web.records, "tool:t2") if isinstance(event, Edit)]
    assert [edit.members[0] for edit in chosen] == ["X-Trace", "status 200 → 202"]
    assert "4 heads changed" in text(web.records, transport="http")


def test_over_http_an_answer_in_the_servers_place_has_one_row() -> None:
    web = Web()
    asked = post(request(1))
    web.rewrite(0, web.came(0, asked), len(asked), b"", why="tool:t")
    web.insert(1, response({"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "no"}}))
    shown = text(web.close().records, transport="http")
    assert len(re.findall(r"errored #\d+", shown)) == 1
    assert "POST /mcp  for #13" not in shown


def test_over_http_a_refusal_in_the_servers_place_names_who_refused() -> None:
    web = Web()
    asked = post(request(1))
    web.rewrite(0, web.came(0, asked), len(asked), b"", why="fault http=401")
    web.insert(1, b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n", why="fault http=401")
    shown = text(web.close().records, transport="http")
    assert "⇠ HTTP 401  added · by fault http=401" in shown
    assert "said by addon, not by the server" in shown


def test_several_who_did_something_are_counted_each_by_name() -> None:
    records = Session().ask(1).hold(10_000, by="rule 1 + faults", why="late; fault x").answer(1).end().records
    page, decoder = text(records), Decoder()
    assert "by rule 1 + faults · late; fault x" in page
    assert "by faults 1, rule 1 1" in page
    assert "edited by rule 1, faults" in re.sub(r" +", " ", page)
    for expression, is_shown in (('by:"rule 1"', True), ("by:faults", True), ("by:*late*", False), ("by:rule", False)):
        chosen = compile_filter(expression, alone=True)
        holds = [event for record in records for event in decoder.feed(record) if isinstance(event, Edit)]
        assert [bool(chosen.verdict(chosen.mask(edit))) for edit in holds] == [is_shown]
        decoder = Decoder()


def test_a_fault_hides_nobody_who_did_something_besides() -> None:
    why = "fault latency=1s (client's request tools/call id 1); no Bern"
    records = Session().ask(1).hold(10_000, by="faults + rule 1", why=why).answer(1).end().records
    (row,) = edited(records)
    assert row.remark == f"by faults + rule 1 · {why}"
    assert f"request held by faults + rule 1 ({why[:20]}" in re.sub(r"\s+", " ", text(records))


def test_what_was_taken_out_to_leave_later_says_so() -> None:
    made = Session().ask(1, name="t").change(None, why="later").add("c2s", request(1, name="t")).answer(1)
    made.change(None, why="later").add("s2c", result(1))
    made.ask(2, name="t").answer(2).change(None, why="fault reorder=200ms (…)").add("s2c", result(2)).end()
    assert [row.words for row in edited(made.records)] == [
        ("dropped #2",),
        ("sent later for #2",),
        ("dropped #6", "the client got no answer"),
        ("sent later for #2",),
        ("dropped #13",),
        ("sent later for #11",),
    ]


def test_what_left_besides_the_message_is_counted() -> None:
    notice = b'{"jsonrpc":"2.0","method":"notifications/message"}\n'
    made = Session().ask(1, name="t").answer(1).change(notice + b'{"jsonrpc":"2.0","id":1,"result":{}}\n').end()
    assert [row.words for row in edited(made.records)] == [("changed #4", "1 message more left with it")]


def test_reasons_and_names_are_whole_beside_what_they_led_to() -> None:
    by, why = "--set-argument get_weather.units", "set params.arguments.units"
    made = Session().ask(1, name="t").change(request(1, name="t", arguments={}), by=by, why=why).answer(1).end()
    (answer,) = [row for row in rows(made.records) if row.kind == "response"]
    assert answer.words[1] == f"request changed by {by} ({why})"


def test_an_envelope_that_was_shown_is_not_shown_again() -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    made = Session().ask(1, _meta=meta, name="t").change(request(1, _meta=meta, name="u")).answer(1).end()
    shown = text(made.records)
    assert shown.count("clientInfo") == 1
    assert "_meta as #2" in shown
