"""Public bug cases of event streams (tests/cases/cases.json, class C), at every cut; each bears its number."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from mcpsniff.wire.sse import EventSplitter
from tests.wire.streams import every_cut, played, split

CASES = {
    case["id"]: case
    for case in json.loads((Path(__file__).parents[1] / "cases" / "cases.json").read_text(encoding="utf-8"))
    if case["class"] == "C"
}


def wire(given: dict[str, Any]) -> bytes:
    if "text" in given:
        return str(given["text"]).encode()
    if "template" in given:
        form = given["template"]
        return str(form["prefix"] + form["repeat"] * form["count"] + form["suffix"]).encode()
    return b"".join(map(base64.b64decode, given.get("chunks_base64") or [given["base64"]]))


@pytest.mark.parametrize("number", sorted(CASES.keys() - {"B48"}))
def test_case_at_every_cut(number: str) -> None:
    given, expect = CASES[number]["input"], CASES[number]["expect"]
    as_given = [base64.b64decode(chunk) for chunk in given.get("chunks_base64", ())]
    for chunks in (as_given or [wire(given)], *every_cut(wire(given))):
        splitter = EventSplitter(0, "s2c")
        frames = played(splitter, chunks)
        events, last_event_id = [], ""
        for frame in frames:
            assert frame.sse is not None
            last_event_id = last_event_id if frame.sse.id is None else frame.sse.id
            if frame.sse.dispatched:
                data = frame.payload.decode()
                events.append({"event": frame.sse.event, "data": data, "last_event_id": last_event_id})

        assert events == expect["events"]
        assert splitter.reconnection_time == expect.get("retry_ms")
        assert ("unterminated" in frames[-1].flaws) == expect.get("incomplete_tail", False)


def test_B47_the_incomplete_tail_is_kept() -> None:
    *_, tail = split(wire(CASES["B47"]["input"]))

    assert (tail.payload, tail.flaws) == (b'{"jsonrpc":"2.0","id":9,"resul', ("unterminated",))


def test_B48_a_line_of_three_million_bytes() -> None:
    stream = wire(CASES["B48"]["input"])
    frames = split(*(stream[at : at + 65_536] for at in range(0, len(stream), 65_536)))

    assert len(frames) == CASES["B48"]["expect"]["event_count"]
    assert [json.loads(frame.payload)["id"] for frame in frames] == CASES["B48"]["expect"]["pairs_by_id"]


def test_B50_each_comment_is_a_frame_when_it_arrives() -> None:
    frames = split(wire(CASES["B50"]["input"]))

    assert [frame.sse.comments for frame in frames if frame.sse] == [("keep-alive",), ("",), ("x", "mid")]


def test_B52_names_that_nobody_reads_are_flagged() -> None:
    (frame,) = split(wire(CASES["B52"]["input"]))

    assert frame.flaws == ("sse-unknown-field",)
