"""Two captures compared: what is told of each section, and of ugly captures."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from mcpsniff.capture.records import Record
from mcpsniff.decoder import Decoder
from mcpsniff.protocol.message import Message
from mcpsniff.replay.compare import compare_messages
from mcpsniff.replay.diff.facts import Facts, read_facts
from mcpsniff.replay.diff.json import diff_dict
from mcpsniff.replay.diff.report import Report
from mcpsniff.replay.diff.sections import SECTIONS, diff
from mcpsniff.replay.diff.text import diff_lines, diff_markdown
from mcpsniff.replay.normalise import NORMALISERS, rules_of
from mcpsniff.transcript.safe import visible
from tests.captures.samples import FOLDER, NAMES
from tests.sessions import end, records
from tests.transcript.rendering import capture

INFO = {"name": "c", "version": "1"}
TOOL = {"name": "echo", "inputSchema": {"type": "object", "required": ["a", "b"]}}


def ask(number: Any, method: str, **params: Any) -> tuple[str, Any]:
    return "c2s", {"jsonrpc": "2.0", "id": number, "method": method, **({"params": params} if params else {})}


def answer(number: Any, **result: Any) -> tuple[str, Any]:
    return "s2c", {"jsonrpc": "2.0", "id": number, "result": result}


def text(said: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": said}]


def opening(version: str = "1", **capabilities: Any) -> list[tuple[str, Any]]:
    return [
        ask(0, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=INFO),
        answer(
            0,
            protocolVersion="2025-11-25",
            capabilities=capabilities or {"tools": {}},
            serverInfo={"name": "s", "version": version},
        ),
        ("c2s", {"jsonrpc": "2.0", "method": "notifications/initialized"}),
    ]


def session(*said: tuple[str, Any], start: Sequence[tuple[str, Any]] | None = None, **header: Any) -> Facts:
    made = records(*(opening() if start is None else start), *said)
    return facts([*made, *end(1_000_000)], **header)


def facts(made: Sequence[Record], **header: Any) -> Facts:
    return read_facts(capture(made, **header))


def told(report: Report) -> list[str]:
    """All entries, as one short line each, and their differences."""
    return [
        " ".join(filter(None, (entry.kind, entry.what, entry.name, entry.remark)))
        + "".join(f" | {one.kind} {one.path}" for one in entry.differences)
        for section in report.sections
        for entry in section.entries
    ]


def compared(a: Facts, b: Facts, *only: str, **rules: Any) -> list[str]:
    return told(diff(a, b, rules_of(**rules), only))


CALL = ask(1, "tools/call", name="echo", arguments={"x": 1})


@pytest.mark.parametrize("name", NAMES)
def test_a_capture_says_the_same_as_itself(name: str) -> None:
    from mcpsniff.capture.reader import open_capture

    a, b = (read_facts(open_capture(str(FOLDER / f"{name}.mcpcap"))) for _ in "ab")
    report = diff(a, b, rules_of(()))
    assert (told(report), report.differences) == ([], 0)
    assert {section.name for section in report.sections} == set(SECTIONS)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("other", ["weather", "hostile"])
def test_whatever_is_compared_can_be_shown(name: str, other: str) -> None:
    from mcpsniff.capture.reader import open_capture

    a, b = (read_facts(open_capture(str(FOLDER / f"{one}.mcpcap"))) for one in (name, other))
    report = diff(a, b, rules_of())
    assert (report.differences == 0) == (name == other)
    lines = ["".join(piece for _, piece in line) for line in diff_lines(report, 80)] + list(diff_markdown(report))
    assert [line for line in lines if visible(line) != line] == []
    assert diff_dict(report)["equal"] == (name == other)


def test_infos_capabilities_and_revisions() -> None:
    a = session(start=opening("1", tools={"listChanged": True}))
    b = session(start=opening("2", tools={}, logging={}))
    assert compared(a, b, "capabilities") == [
        "changed capability serverInfo | changed ('serverInfo', 'version')",
        "missing capability serverCapabilities | missing ('serverCapabilities', 'tools', 'listChanged')",
        "added capability serverCapabilities | added ('serverCapabilities', 'logging')",
    ]
    assert compared(a, b, "capabilities", ignore=["serverInfo.version", "serverCapabilities"]) == []


def test_definitions_by_name_from_the_last_complete_list() -> None:
    old = [answer(1, tools=[{**TOOL, "title": "before it changed"}]), ask(2, "tools/list")]
    pages = [answer(2, tools=[TOOL], nextCursor="p2"), ask(3, "tools/list", cursor="p2")]
    a = session(ask(1, "tools/list"), *old, *pages, answer(3, tools=[{"name": "gone"}]))
    new = {"name": "echo", "inputSchema": {"type": "object", "required": ["b", "c"]}}
    b = session(ask(1, "tools/list"), answer(1, tools=[{"name": "fresh"}, new]))
    at = ("result", "tools", 0, "inputSchema", "required")
    assert compared(a, b, "definitions") == [
        f"changed tool echo | missing {(*at, 0)} | added {(*at, 1)}",
        "missing tool gone",
        "added tool fresh",
    ]


def test_a_list_in_another_order_is_told_only_without_the_normaliser() -> None:
    one, other = (
        session(ask(1, "tools/list"), answer(1, tools=tools))
        for tools in ([TOOL, {"name": "b"}], [{"name": "b"}, TOOL])
    )
    assert compared(one, other) == []
    assert compared(one, other, "definitions", names=["uuid"]) == ["changed tools tools listed in another order"]


def test_a_list_that_only_one_has() -> None:
    a = session(ask(1, "prompts/list"), answer(1, prompts=[{"name": "p"}]))
    assert compared(a, session(), "definitions") == ["missing prompts prompts/list 1 listed, and never in B"]
    assert compared(session(), a, "definitions") == ["added prompts prompts/list 1 listed, and never in A"]


def test_an_earlier_list_is_compared_as_an_answer() -> None:
    def twice(first: str) -> Facts:
        lists = [answer(1, tools=[{"name": first}]), ask(2, "tools/list"), answer(2, tools=[TOOL])]
        return session(ask(1, "tools/list"), *lists)

    assert compared(twice("x"), twice("y")) == [
        "changed exchange #9 and #9 tools/list | missing ('result', 'tools', 0) | added ('result', 'tools', 0)"
    ]


def test_a_changed_answer_has_its_places() -> None:
    a = session(CALL, answer(1, content=text("21 C"), isError=False))
    b = session(CALL, answer(1, content=text("24 C"), isError=True))
    assert compared(a, b) == [
        (
            'changed exchange #9 and #9 tools/call echo {"x": 1}'
            " | changed ('result', 'content', 0, 'text') | changed ('result', 'isError')"
        )
    ]


def test_ids_tokens_and_member_order_do_not_matter() -> None:
    b_call = ask("k-9", "tools/call", _meta={"progressToken": "p"}, arguments={"x": 1}, name="echo")
    a, b = session(CALL, answer(1, content=[])), session(b_call, answer("k-9", content=[]))
    assert compared(a, b) == []


def test_equal_requests_are_taken_by_position() -> None:
    def polls(*said: str) -> Facts:
        calls = [(ask(n, "tools/call", name="t"), answer(n, content=text(one))) for n, one in enumerate(said, 1)]
        return session(*(each for pair in calls for each in pair))

    assert compared(polls("bar", "whee"), polls("bar", "whee")) == []
    assert [one.split(" |")[0] for one in compared(polls("bar", "whee", "x"), polls("bar", "woe"))] == [
        "changed exchange #14 and #14 tools/call t",
        "missing exchange #19 tools/call t answered",
    ]


def test_requests_that_are_the_same_by_the_rules_belong_together() -> None:
    def at(moment: str, said: str) -> Facts:
        return session(ask(1, "tools/call", name="t", arguments={"at": moment}), answer(1, content=text(said)))

    a, b = at("2024-01-01T00:00:00Z", "x"), at("2026-01-01T00:00:00Z", "x")
    assert compared(a, b) == []
    assert [one.split()[0] for one in compared(a, b, names=[])] == ["missing", "added"]
    assert compared(a, b, names=[], ignore=["params.arguments.at"]) == []


def test_what_came_of_a_request() -> None:
    error = ("s2c", {"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "no"}})
    fine = session(CALL, answer(1, content=[]))
    assert compared(fine, session(CALL), "exchanges") == [
        'changed exchange #9 and #9 tools/call echo {"x": 1} answered → no answer'
    ]
    assert compared(session(CALL), session(CALL), "exchanges") == []
    assert compared(fine, session(CALL, error), "exchanges") == [
        (
            'changed exchange #9 and #9 tools/call echo {"x": 1} answered → errored'
            " | missing ('result',) | added ('error',)"
        )
    ]


def test_requests_of_the_server_are_compared_too() -> None:
    def sampling(said: str) -> Facts:
        back = ("c2s", {"jsonrpc": "2.0", "id": 7, "result": {"content": said}})
        return session(("s2c", {"jsonrpc": "2.0", "id": 7, "method": "sampling/createMessage", "params": {}}), back)

    assert compared(sampling("a"), sampling("b")) == [
        "changed exchange #9 and #9 ← sampling/createMessage | changed ('result', 'content')"
    ]


def test_an_answer_that_a_gap_may_hold_is_not_missing() -> None:
    said = records(*opening(), CALL)
    gap = Record(9_000, "gap", 1, {"bytes": 100, "why": "queue"})
    report = diff(session(CALL, answer(1, content=[])), facts([*said, gap, *end(1_000_000)]), rules_of(), ["exchanges"])
    assert told(report) == []
    assert report.notes == ["B: it has 1 gap"]


def test_latency_is_told_and_is_no_difference() -> None:
    def paced(step: int, number: int) -> Facts:
        calls = [each for n in range(1, number + 1) for each in (ask(n, "ping"), answer(n))]
        return facts([*records(*opening(), *calls, step=step), *end(100_000_000)])

    report = diff(paced(1_000, 20), paced(10_000, 20), rules_of())
    assert told(report) == [
        (
            "changed latency ping median 1.0 ms → 10.0 ms (10.0 times slower), "
            "p95 1.0 ms → 10.0 ms (10.0 times slower), "
            "20 and 20 answers"
        )
    ]
    assert report.differences == 0
    assert told(diff(paced(1_000, 20), paced(1_900, 20), rules_of())) == []
    assert told(diff(paced(1_000, 4), paced(10_000, 4), rules_of())) == []
    assert "p95" not in told(diff(paced(10_000, 19), paced(1_000, 19), rules_of()))[0]


def test_findings_new_gone_and_more() -> None:
    noise = ("s2c", b"hello\n")
    none, once, twice = session(), session(noise), session(noise, CALL, answer(1, content=[]), noise)
    assert [one[:35] for one in compared(none, once)] == ["added finding MCP101 stdio-not-json"]
    assert [one[:37] for one in compared(once, none)] == ["missing finding MCP101 stdio-not-json"]
    assert compared(once, twice, "findings")[0].startswith("changed finding MCP101 stdio-not-json 1 → 2 times, error")


def test_made_up_names_are_followed_through_the_answers() -> None:
    def job(*names: str) -> Facts:
        calls = [(ask(n, "tools/call", name="job"), answer(n, content=text(one))) for n, one in enumerate(names, 1)]
        return session(*(each for pair in calls for each in pair))

    one, two, three = (f"{digit * 8}-0000-4000-8000-000000000000" for digit in "123")
    assert diff(job(one, one), job(two, two), rules_of()).notes == []
    report = diff(job(one, one), job(two, three), rules_of())
    assert report.differences == 0
    assert report.notes == [f"{one} was {two} before, and is {three} at result.content[0].text"]


def over_http(port: int, said: str, *, others: Sequence[str] = ()) -> Facts:
    """A capture of a proxy: the same call to one server, or to several."""
    made: list[Record] = []
    for number, host in enumerate([f"127.0.0.1:{port}", *others]):
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "t"}}
        result = {"jsonrpc": "2.0", "id": 1, "result": {"content": text(said if not number else host)}}
        made += _post(2 * number, host, body, result)
    return facts(made, transport="forward")


def _post(channel: int, host: str, request: Any, response: Any) -> list[Record]:
    t = 1_000 * (channel + 1)
    about = {"authority": host, "scheme": "http"}
    headers = [["Host", host], ["Content-Type", "application/json"], ["MCP-Protocol-Version", "2025-06-18"]]
    asked = {"start": "POST /mcp HTTP/1.1", "headers": headers, **about}
    answered = {"start": "HTTP/1.1 200 OK", "headers": [["Content-Type", "application/json"]], **about}
    kinds = {"kind": "http-request", "dir": "c2s"}, {"kind": "http-response", "dir": "s2c", "of": channel}
    return [
        Record(t, "open", channel, {**kinds[0], "conn": channel, "meta": asked}),
        Record(t, "chunk", channel, json.dumps(request).encode()),
        Record(t, "close", channel, {"how": "eof"}),
        Record(t + 100, "open", channel + 1, {**kinds[1], "conn": channel, "meta": answered}),
        Record(t + 100, "chunk", channel + 1, json.dumps(response).encode()),
        Record(t + 100, "close", channel + 1, {"how": "eof"}),
    ]


def test_servers_belong_together_by_origin_and_one_to_one() -> None:
    assert compared(over_http(8000, "x"), over_http(9000, "x"), names=[]) == []
    a = over_http(8000, "x", others=["a.test", "gone.test"])
    b = over_http(9000, "y", others=["a.test", "new.test"])
    assert list(a.servers) == ["http://127.0.0.1:8000", "http://a.test", "http://gone.test"]
    report = diff(a, b, rules_of(), ["capabilities", "exchanges"])
    assert [
        (entry.kind, entry.what, entry.where or entry.name) for section in report.sections for entry in section.entries
    ] == [
        ("missing", "server", "http://gone.test"),
        ("added", "server", "http://new.test"),
        ("changed", "exchange", "http://127.0.0.1:8000"),
        ("missing", "exchange", "http://gone.test"),
        ("added", "exchange", "http://new.test"),
    ]


def test_what_is_nested_too_deep_to_be_read_is_the_same_or_told() -> None:
    def deep(inner: bytes, number: int) -> Facts:
        nested = b"[" * 20_000 + inner + b"]" * 20_000
        said = b'{"jsonrpc":"2.0","id":%d,"result":{"structuredContent":%s}}\n' % (number, nested)
        return session(ask(number, "tools/call", name="t"), ("s2c", said))

    assert compared(deep(b"1", 1), deep(b"1", 2), "exchanges") == []
    assert compared(deep(b"1", 1), deep(b"2", 2), "exchanges") == [
        "changed exchange #9 and #9 tools/call t | unread ('result',)"
    ]


def test_answers_of_many_elements_and_of_long_texts() -> None:
    rows = [{"row": n, "at": "2024-01-01T00:00:00Z"} for n in range(20_000)]
    fewer = [{"row": n, "at": "2026-01-01T00:00:00Z"} for n in range(20_000) if n != 7_000]
    long = "word " * 400_000
    a = session(CALL, answer(1, content=text(long + "a"), structuredContent={"rows": rows}))
    b = session(CALL, answer(1, content=text(long + "b"), structuredContent={"rows": fewer}))
    assert compared(a, b, "exchanges") == [
        (
            'changed exchange #9 and #9 tools/call echo {"x": 1}'
            " | changed ('result', 'content', 0, 'text')"
            " | missing ('result', 'structuredContent', 'rows', 7000)"
        )
    ]


def test_a_message_of_which_a_part_was_kept_is_the_same_only_with_the_same_size() -> None:
    messages = []
    for rest in ("x" * 500, "y" * 500, "y" * 501):
        line = b'{"jsonrpc":"2.0","id":1,"result":{"t":"%s%s"}}\n' % (b"z" * 500, rest.encode())
        decoder = Decoder(frame_limit=100)
        events = [event for record in records(ask(1, "ping"), ("s2c", line)) for event in decoder.feed(record)]
        messages += [event for event in events if isinstance(event, Message) and event.direction == "s2c"]
    assert compare_messages(messages[0], messages[1], rules_of()) == []
    assert [one.kind for one in compare_messages(messages[0], messages[2], rules_of())] == ["unread"]


def test_the_manual_has_every_section_and_every_normaliser() -> None:
    manual = (FOLDER.parent / "docs" / "replay.md").read_text(encoding="utf-8")
    rows = {line.split("`")[1].partition("=")[0] for line in manual.splitlines() if line.startswith("| `")}
    assert rows >= {*SECTIONS, *NORMALISERS}
