"""Rows: what stands on them, what hangs on them, and when they are given."""

from collections.abc import Sequence

import pytest

from mcpsniff.capture.records import Record
from mcpsniff.decoder import Decoder
from mcpsniff.transcript.lanes import Lanes
from mcpsniff.transcript.rows import Row, RowBuilder
from tests.sessions import end, records


def rows(said: Sequence[Record]) -> list[Row]:
    decoder, builder = Decoder(), RowBuilder()
    made = [row for record in said for row in builder.feed(decoder.feed(record))]
    made += builder.feed(decoder.finish())
    return made + list(builder.finish())


def call(number: object, method: str = "tools/call", **params: object) -> tuple[str, object]:
    return "c2s", {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def answer(number: object, **result: object) -> tuple[str, object]:
    return "s2c", {"jsonrpc": "2.0", "id": number, "result": result}


def test_requests_and_answers_name_each_other() -> None:
    first, second, two, one = rows(records(call(1, name="a"), call(2, name="b"), answer(2), answer(1)))
    assert (first.target, second.target, two.target, one.target) == ("a", "b", "b", "a")
    assert (two.words, one.words) == ((f"answered #{second.n}",), (f"answered #{first.n}",))
    assert (two.latency_us, one.latency_us) == (1000, 3000)
    assert [row.lanes.rstrip() for row in (first, second, two, one)] == ["┬", "│┬", "│┴", "┴"]


def test_answers_that_went_wrong() -> None:
    said = records(
        call(1),
        ("s2c", {"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no such method"}}),
        call(2, name="t"),
        answer(2, isError=True),
        call(3),
        answer("3"),
        answer(99),
        answer(2),
    )
    shown = rows(said)
    assert (shown[1].words, shown[1].remark) == (("errored #2", "error -32601"), "no such method")
    assert shown[3].words == (f"answered #{shown[2].n}", "tool error")
    assert [row.words[-1] for row in shown[5:8]] == ["id of another type", "nobody asked", "answered once more"]


def test_cancel_and_late_answer() -> None:
    said = records(
        call(1),
        ("c2s", {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1, "reason": "bored"}}),
        answer(1),
    )
    request, cancel, late = rows(said)
    assert (cancel.words, cancel.target, cancel.remark) == ((f"cancelled #{request.n}",), "1", "bored")
    assert late.words == (f"answers #{request.n}", "after the cancel")
    assert late.latency_us is None
    assert (cancel.lanes.rstrip(), late.lanes.strip()) == ("┴", "")


def test_progress_is_tied_to_its_request() -> None:
    def progress(token: str, **more: object) -> tuple[str, object]:
        params = {"progressToken": token, "progress": 1, **more}
        return "s2c", {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}

    request, step, stray, *_ = rows(
        records(call(1, _meta={"progressToken": "t"}), progress("t", total=3, message="one"), progress("u"))
    )
    assert (step.target, step.words, step.remark) == ("t", ("1 of 3", f"of #{request.n}"), "one")
    assert (step.lanes.rstrip(), stray.lanes.rstrip()) == ("├", "│")
    assert stray.words == ("1", "of no known request")


@pytest.mark.parametrize(("ends", "state"), [(end(9000), "abandoned"), ([], "open")])
def test_requests_without_an_answer_have_a_row(ends: list[Record], state: str) -> None:
    request, *_, last = [row for row in rows([*records(call(1)), *ends]) if row.kind in ("request", "unanswered")]
    assert last.words == (f"{state} #{request.n}",)
    assert last.lanes.rstrip() == "╵"


def test_findings_hang_on_their_rows_also_when_they_come_late() -> None:
    """Broken lines are judged when the lines after them have been seen."""
    said = records(("s2c", '{"jsonrpc":"2.0",'), ("s2c", '"method":'), ("s2c", '"notifications/x"}'), call(1))
    first, second, third, *_ = rows(said)
    assert [len(row.findings) for row in (first, second, third)].count(0) == 2
    broken = rows(records(("s2c", '{"jsonrpc":"2.0",'), call(1), answer(1)))
    assert [finding.code for finding in broken[0].findings] == ["MCP101"]
    assert broken[0].kind == "invalid"


def test_findings_on_a_frame_hang_on_its_message() -> None:
    odd = rows(records(("s2c", b'\xef\xbb\xbf{"jsonrpc":"2.0","method":"notifications/x"}\n')))
    assert "MCP109" in [finding.code for finding in odd[0].findings]
    blank = rows(records(("s2c", "")))
    assert (blank[0].kind, [finding.code for finding in blank[0].findings]) == ("blank", ["MCP103"])


def test_a_slow_request_is_reported_when_its_row_is_long_gone() -> None:
    said = [*records(call(1), call(2), answer(2)), Record(70_000_000, "chunk", 2, b"still here\n")]
    report = next(row for row in rows(said) if row.findings and row.findings[0].code == "MCP410")
    assert report.n == 2


def test_ends() -> None:
    shown = rows([*records(), *end(5, status=3)])
    assert [(row.title, row.loud) for row in shown] == [
        ("the client closed the server's stdin", False),
        ("the server exited with status 3", True),
    ]
    killed = Record(5, "close", 1, {"how": "killed", "signal": 9, "sent": ["TERM", "KILL"], "by": "mcpsniff"})
    [row] = rows([*records(), killed])
    assert (row.title, row.remark, row.loud) == (
        "the server was killed by signal 9 (KILL)",
        "it had been sent TERM and then KILL, the last by mcpsniff",
        False,
    )


def test_rows_come_while_the_session_goes_on() -> None:
    decoder, builder = Decoder(), RowBuilder()
    given = 0
    for number, record in enumerate(records(*(pair for n in range(50) for pair in (call(n), answer(n))))):
        given += len(list(builder.feed(decoder.feed(record))))
        assert number - given <= 4


def test_lanes_run_out_and_come_back() -> None:
    lanes = Lanes(2)
    assert [lanes.begin(n) for n in (1, 2, 3)] == ["┬ ", "│┬", "││"]
    assert (lanes.end(3), lanes.end(1), lanes.begin(4), lanes.touch(2), lanes.touch(None)) == (
        "││",
        "┴│",
        "┬│",
        "│├",
        "││",
    )
