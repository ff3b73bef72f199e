"""The summary: what failed, what got no answer, and findings that are told apart by whom they blame."""

from mcpsniff.capture.records import Record
from mcpsniff.checks import CLIENT, INFO, NOTE, SERVER, WARNING, Finding, load
from mcpsniff.decoder import Decoder
from mcpsniff.transcript.advice import GRADED_DOWN, SPEAKS_TO, what_to_do
from mcpsniff.transcript.payload import WHOLE
from mcpsniff.transcript.rows import RowBuilder
from mcpsniff.transcript.summary import Summary
from mcpsniff.wire.frames import DEFAULT_FRAME_LIMIT
from tests.sessions import OPENS, end, records
from tests.transcript.rendering import markdown, text

CHECKS = load()


def call(number: int, name: str) -> tuple[str, object]:
    return "c2s", {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": name}}


def cancel(number: int) -> tuple[str, object]:
    return "c2s", {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}}


def result(number: int, **more: object) -> tuple[str, object]:
    return "s2c", {"jsonrpc": "2.0", "id": number, "result": more}


SAID = [
    *records(
        call(1, "good"),
        result(1),
        call(2, "bad"),
        result(2, isError=True),
        call(3, "refused"),
        ("s2c", {"jsonrpc": "2.0", "id": 3, "error": {"code": -32000, "message": "no"}}),
        call(4, "hung"),
        cancel(4),
        result(4, isError=True),
        call(5, "crashed"),
    ),
    Record(90_000, "close", 1, {"how": "exit", "status": 1}),
]


def table(shown: str) -> dict[str, list[str]]:
    lines = shown[shown.index("  method ") :].split("\n\n", maxsplit=1)[0].splitlines()
    return {line.split()[0]: line.split()[1:] for line in lines}


def test_errors_and_calls_without_an_answer_have_columns_of_their_own() -> None:
    rows = table(text(SAID))
    assert rows["method"] == ["calls", "failed", "no", "answer", "p50", "p95", "max"]
    assert rows["tools/call"][:3] == ["5", "2", "2"]
    assert rows["bad"][:2] == rows["refused"][:2] == ["1", "1"]
    assert rows["hung"] == rows["crashed"] == ["1", "1"], "never blank: one call, and no answer"
    lines = {line.split()[0]: line for line in text(SAID).splitlines() if line.startswith("    hung")}
    column = text(SAID).split("  method ")[1].split("\n")[0].index("no answer") + len("  method ") + len("no answer")
    assert lines["hung"][column - 1] == "1"


def test_requests_that_came_to_nothing_are_named() -> None:
    shown = text(SAID)
    assert "1 request without an answer\n  #24 tools/call crashed  id 5, no answer in 80.0 ms\n" in shown
    assert "1 request cancelled\n  #17 tools/call hung  id 4, cancelled after 1.0 ms\n" in shown


def test_findings_are_told_apart_by_whom_they_blame() -> None:
    odd = '{"id":%d,"jsonrpc":"1.0","method":"ping"}'
    said = records(("c2s", odd % 1), ("s2c", odd % 2), ("c2s", odd % 3), ("c2s", odd % 4))
    shown = text(said)
    closing = shown[shown.index("\nFindings") :]
    assert closing.count("MCP201") == 2
    assert "MCP201 jsonrpc-member ×3  at #2, #6 and #8, by the client" in closing or (
        "MCP201 jsonrpc-member ×3  at #2, #6, #8, by the client" in closing
    )
    assert "MCP201 jsonrpc-member  at #4, by the server" in closing
    assert "(and 2 more like it)" in closing
    page = markdown(said)
    found = page[page.index("## Findings") : page.index("## Messages")]
    assert "**error MCP201** `jsonrpc-member` ×3, by the client" in found
    assert "**error MCP201** `jsonrpc-member`, by the server" in found


def test_the_markdown_list_says_what_is_wrong_and_not_only_of_what_kind() -> None:
    page = markdown(records(call(1, "a"), ("s2c", {"jsonrpc": "2.0", "id": "1", "result": {}})))
    found = page[page.index("## Findings") : page.index("## Messages")]
    assert '`the response has id "1", and the request has that id as a number`' in found
    assert CHECKS["MCP405"].summary.split("`")[0].rstrip(".") in found


def finding(code: str, severity: str, blame: str) -> Finding:
    check = CHECKS[code]
    return Finding(code, check.name, severity, check.group, blame, "", 1, 0, 0)


def test_advice_reaches_only_whom_it_speaks_to() -> None:
    assert set(SPEAKS_TO) | GRADED_DOWN <= set(CHECKS)
    for code, side in SPEAKS_TO.items():
        other = CLIENT if side == SERVER else SERVER
        assert what_to_do(finding(code, CHECKS[code].severity, side))
        assert not what_to_do(finding(code, CHECKS[code].severity, other))
    assert what_to_do(finding("MCP409", WARNING, SERVER)).startswith("Answer every request")
    assert not what_to_do(finding("MCP409", NOTE, CLIENT)), "the client left; nobody failed to answer"
    assert not what_to_do(finding("MCP409", INFO, CLIENT))
    assert what_to_do(finding("MCP405", CHECKS["MCP405"].severity, CLIENT))
    assert not what_to_do(Finding("XYZ1", "of-an-addon", NOTE, "x", CLIENT, "", 1, 0, 0))


def test_a_client_is_not_told_to_write_to_stderr() -> None:
    assert "Fix: Send everything" in text(records(("s2c", "noise")))
    assert "Fix:" not in text(records(("c2s", "noise")))


ITEMS = [{"n": n, "s": "x" * 60} for n in range(50)]
MANY = result(1, list=ITEMS)


def test_markdown_does_not_speak_of_options() -> None:
    page = markdown(records(MANY, ("err", "x" * 5000)))
    assert "more lines\n" in page
    assert "--payload" not in page
    assert "more lines; --payload shows all" in text(records(MANY))


def test_of_a_frame_that_is_too_long_it_is_said_where_the_rest_is() -> None:
    size = DEFAULT_FRAME_LIMIT + 1_000_000
    said = [*OPENS, Record(1, "chunk", 1, b'{"x":"' + b"y" * (size - 8) + b'"}\n'), *end(5)]
    hint = "… mcpsniff kept the first 16 MiB of 17.0 MiB; the wire and the capture carry all"
    assert hint in text(said, width=150)
    assert "… --payload shows more of it\n" in text(said)
    assert "in all" not in text(said), "what is shown is not all"
    assert hint in markdown(said)
    assert "--payload" not in markdown(said)
    assert hint in text(said, style=WHOLE, width=150)


OPEN = records(call(1, "slow"), ("err", "thinking"))


def test_an_open_request_has_waited_until_what_is_known() -> None:
    shown = text(OPEN)
    assert "open #2 · id 1" in shown
    assert "1.0 ms\n" in shown, "until the last line of stderr"
    assert "still open after 1.0 ms" in shown
    assert "the recording ends here without an end of the session: mcpsniff or the machine was stopped" in shown
    alone = text(records(call(1, "slow")))
    assert "id 1, open\n" in alone
    assert "0 µs\n" not in alone
    live = text(OPEN, now_us=5_000_000, running=True)
    assert "still open after 5.0 s" in live
    assert "5.0 s\n" in live
    assert "the session is still running" in live
    assert "the recording ends here" not in live


def test_deadlines_pass_while_a_session_runs() -> None:
    assert "MCP410" in text(OPEN, now_us=70_000_000, running=True)
    assert "MCP410" not in text(OPEN)


def test_markdown_of_a_running_session() -> None:
    page = markdown(OPEN, now_us=5_000_000, running=True)
    assert "waited 5.0 s" in page
    assert "**the session is still running**" in page
    assert "**the recording ends here without an end of the session: " in markdown(OPEN)


def test_a_session_that_ended_says_nothing_of_the_kind() -> None:
    for ends in (end(9000), [Record(9000, "close", 1, {"how": "error", "error": "x", "status": 127})]):
        assert "recording ends here" not in text([*OPEN, *ends])
    assert "recording ends here" not in text(OPEN, transport="http")


def test_a_finding_about_a_frame_leads_to_the_row_of_its_message() -> None:
    said = records(("s2c", b"{}" + b" " * 100 + b"\n"), ("s2c", b"\n"), ("s2c", b"\n"))
    summary, builder = Summary(), RowBuilder()
    decoder = Decoder(frame_limit=50)
    for one in said:
        events = decoder.feed(one)
        summary.feed(events)
        for row in builder.feed(events):
            summary.place(row)
    for row in builder.finish():
        summary.place(row)
    places = {fault.first.code: fault.places for fault in summary.worst_first()}

    assert places["MCP904"] == [2]
    assert places["MCP103"] == [3, 4]
