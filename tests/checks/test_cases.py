"""Public bug cases (tests/cases/cases.json) as far as decoder and checks decide them; each test bears its number."""

import base64
import json
import tracemalloc
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from mcpsniff.capture.records import Record
from mcpsniff.decoder import Decoder, Event
from mcpsniff.protocol.exchanges import ABANDONED, CANCELLED, OPEN_LIMIT
from mcpsniff.protocol.message import BATCH, INVALID, Message
from mcpsniff.protocol.reading import is_strict
from mcpsniff.wire.frames import DEFAULT_FRAME_LIMIT, Frame
from tests.sessions import OPENS, decode, end, exchanges, facts, findings, line, messages, pairs, records

CASES = {
    case["id"]: case
    for case in json.loads((Path(__file__).parents[1] / "cases" / "cases.json").read_text(encoding="utf-8"))
}
PIPE = 65_536


def case(number: str) -> tuple[dict[str, Any], dict[str, Any]]:
    return CASES[number]["input"], CASES[number]["expect"]


def wire(given: dict[str, Any]) -> bytes:
    """The bytes of a case, whole."""
    if "text" in given:
        return str(given["text"]).encode()
    if "base64" in given:
        return base64.b64decode(given["base64"])
    if "chunks_base64" in given:
        return b"".join(map(base64.b64decode, given["chunks_base64"]))
    form = given["template"]
    middle = form["repeat"] * form["count"] + form.get("middle", "") + form.get("mirror", "") * form["count"]
    return str(form["prefix"] + middle + form["suffix"]).encode()


def reads(channel: int, data: bytes, size: int = PIPE, t: int = 1000) -> list[Record]:
    return [Record(t, "chunk", channel, data[at : at + size]) for at in range(0, len(data), size)]


def asked(*ids: object) -> list[Record]:
    """Requests of the client with these ids, so that there is something to answer."""
    return [Record(0, "chunk", 0, line({"jsonrpc": "2.0", "id": one, "method": "ping"})) for one in ids]


def play(number: str) -> list[Event]:
    """Decode a case that is a list of frames."""
    given, _ = case(number)
    return decode(records(*[(direction, text) for direction, text in given["frames"]]))


def frames(events: Iterable[Event], direction: str) -> list[Frame]:
    return [event for event in events if isinstance(event, Frame) and event.direction == direction]


def codes(events: Iterable[Event]) -> list[str]:
    """Codes of all findings but init-not-first: the cases begin in the middle of a session."""
    return [finding.code for finding in findings(events) if finding.code != "MCP301"]


def messages_of(events: Iterable[Event], direction: str) -> list[Message]:
    return [message for message in messages(events) if message.direction == direction]


def answered_ids(events: list[Event]) -> list[object]:
    return [json.loads(one.id) for one in exchanges(events) if one.response is not None]


# -- A: framing -------------------------------------------------------------------------------------------------------


def test_B01_a_frame_of_200_kb_and_the_one_after_it() -> None:
    given, expect = case("B01")
    events = decode([*OPENS, *asked(1, 2), *reads(1, wire(given))])

    assert len(frames(events, "s2c")) == expect["records"]
    assert [frame.size for frame in frames(events, "s2c")] == [len(part) for part in wire(given).split(b"\n")[:2]]
    assert answered_ids(events) == expect["pairs_by_id"]
    assert codes(events) == []


def test_B03_endless_output_is_held_in_bounded_memory_and_told_by_its_true_length() -> None:
    limit, piece, pieces = 1 << 20, PIPE, 1024
    decoder = Decoder(frame_limit=limit)
    decode([*OPENS, *asked(1)], finish=False, decoder=decoder)
    tracemalloc.start()
    for number in range(pieces):
        assert decoder.feed(Record(number, "chunk", 1, b"a" * piece)) == []
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    answer = b"\n" + line({"jsonrpc": "2.0", "id": 1, "result": {}})
    events = decode([Record(pieces, "chunk", 1, answer)], decoder=decoder)
    long, short = frames(events, "s2c")

    assert peak < 2 * limit
    assert DEFAULT_FRAME_LIMIT == 16 << 20
    assert (long.size, len(long.payload), long.flaws) == (pieces * piece, limit, ("truncated",))
    assert (short.flaws, answered_ids(events)) == ((), [1])
    assert codes(events) == ["MCP904", "MCP114"]


def test_B04_a_frame_that_the_observer_cut_is_not_called_broken() -> None:
    given, _ = case("B04")
    events = decode([*OPENS, *asked(5), *reads(1, wire(given), 1 << 20), *end(2000)])
    (frame,) = frames(events, "s2c")

    assert frame.flaws == ("truncated",)
    assert frame.size == len(wire(given)) - 1
    assert answered_ids(events) == [5]
    assert codes(events) == ["MCP904", "MCP114"]
    assert {one.blame for one in findings(events) if one.code == "MCP904"} == {"mcpsniff"}


def test_B05_a_line_separator_in_a_string_ends_nothing() -> None:
    given, expect = case("B05")
    events = decode([*OPENS, *asked(3), *reads(1, wire(given))])

    assert len(frames(events, "s2c")) == expect["records"]
    assert messages_of(events, "s2c")[0].result["content"][0]["text"] == "left\u2028right"
    assert codes(events) == []


def test_B07_a_character_cut_by_a_read_boundary_is_whole() -> None:
    given, expect = case("B07")
    cut = [Record(10, "chunk", 1, base64.b64decode(part)) for part in given["chunks_base64"]]
    events = decode([*OPENS, *asked(1), *cut])

    assert len(frames(events, "s2c")) == expect["records"]
    assert messages_of(events, "s2c")[0].result["t"] == expect["json_value"]
    assert codes(events) == []


def test_B08_bytes_that_are_not_utf8_are_flagged_and_kept() -> None:
    given, expect = case("B08")
    events = decode([*OPENS, *reads(0, wire(given))])
    first, second = frames(events, "c2s")

    assert expect["records"] == 2
    assert (first.payload, first.flaws) == (b"\xff\xfe", ("invalid-utf8",))
    assert [(message.kind, message.method) for message in messages(events)] == [(INVALID, None), ("request", "ping")]
    assert second.flaws == ()
    assert sorted(codes(events)) == ["MCP101", "MCP108"]


def test_B10_a_byte_order_mark_is_flagged_and_the_request_behind_it_pairs() -> None:
    given, _ = case("B10")
    answer = Record(2000, "chunk", 1, line({"jsonrpc": "2.0", "id": 1, "result": {}}))
    events = decode([*OPENS, *reads(0, wire(given)), answer])
    (frame,) = frames(events, "c2s")

    assert frame.flaws == ("bom",)
    assert frame.payload == wire(given)[:-1]
    assert pairs(events) == [(0, 1)]
    assert codes(events) == ["MCP109"]


def test_B11_crlf_is_white_space() -> None:
    given, expect = case("B11")
    events = decode([*OPENS, *asked(1, 2), *reads(1, wire(given))])

    assert [frame.payload[-1:] for frame in frames(events, "s2c")] == [b"\r"] * expect["records"]
    assert answered_ids(events) == [1, 2]
    assert codes(events) == ["MCP107"]


def test_B13_banner_lines_are_noise_and_the_response_still_pairs() -> None:
    given, expect = case("B13")
    events = decode([*OPENS, *asked(0), *reads(1, wire(given))])

    assert [message.kind for message in messages_of(events, "s2c")] == [INVALID, INVALID, "response"]
    assert len(frames(events, "s2c")) == expect["records"]
    assert answered_ids(events) == [0]
    assert codes(events) == ["MCP101"] * expect["flag_count"]


@pytest.mark.parametrize("size", [None, 1], ids=["as given", "byte by byte"])
def test_B15_reads_are_not_messages(size: int | None) -> None:
    given, expect = case("B15")
    parts = [base64.b64decode(part) for part in given["chunks_base64"]]
    cut = reads(1, b"".join(parts), size) if size else [Record(1000, "chunk", 1, part) for part in parts]
    events = decode([*OPENS, *asked(*expect["ids"]), *cut])

    assert len(frames(events, "s2c")) == expect["records"]
    assert answered_ids(events) == expect["ids"]
    assert codes(events) == []


# -- F: pairing -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", ["B81", "B83", "B88", "B89"])
def test_pairs(number: str) -> None:
    """B81 number and string; B83 falsy ids; B88 an id again after its answer; B89 the same ids on both sides."""
    events = play(number)
    _, expect = case(number)

    assert pairs(events) == sorted(map(tuple, expect["pairs"]))
    if "kinds" in expect:
        assert [message.kind for message in messages(events)] == expect["kinds"]
    assert codes(events) == []


def test_B88_reuse_is_judged_by_the_revision() -> None:
    given, _ = case("B88")

    def judged(revision: str) -> list[str]:
        hello = {"protocolVersion": revision, "capabilities": {}}
        opening = [
            ("c2s", {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}),
            ("s2c", {"jsonrpc": "2.0", "id": 0, "result": hello}),
            ("c2s", {"jsonrpc": "2.0", "method": "notifications/initialized"}),
        ]
        return codes(decode(records(*opening, *given["frames"])))

    assert [judged(revision) for revision in ("2024-11-05", "2025-11-25", "1.0")] == [["MCP402"], ["MCP402"], []]


def test_B84_a_null_id_is_flagged_as_that_and_as_nothing_else() -> None:
    events = play("B84")
    _, expect = case("B84")
    found = findings(events)
    requests = messages(events)[:2]

    assert pairs(events) == [tuple(pair) for pair in expect["pairs"]]
    assert [message.kind for message in requests] == ["request", "request"]
    assert [message.flaws for message in requests] == [("id-null",), ("id-null",)]
    assert [message.exchange for message in requests] == [None, None]
    assert [one.code for one in found if one.message in {message.n for message in requests}] == ["MCP202", "MCP202"]
    assert len(exchanges(events)) == 1


def test_B90_every_element_of_a_batch_is_analysed() -> None:
    given, expect = case("B90")
    events = play("B90")

    assert sorted(answered_ids(events)) == expect["pairs_by_id"]  # type: ignore[type-var]
    assert len([message for message in messages(events) if message.batch is not None]) == expect["messages"]
    assert [message.raw.decode() for message in messages(events) if message.kind == BATCH] == [
        text for _, text in given["frames"]
    ]
    assert "MCP213" not in codes(events)


def test_B91_odd_batches() -> None:
    events = play("B91")
    empty, odd, *elements, answer = messages(events)

    assert (empty.kind, empty.flaws) == (BATCH, ("batch-empty",))
    assert (odd.kind, odd.flaws) == (BATCH, ("batch-bad-element",))
    assert [(element.kind, element.flaws) for element in elements] == [(INVALID, ("not-an-object",))] * 4
    assert (pairs(events), facts(answer)) == ([], ["unknown-id"])
    assert codes(events) == ["MCP216", "MCP102", "MCP102", "MCP102", "MCP102", "MCP403"]


def test_B92_an_answer_after_the_cancel() -> None:
    given, _ = case("B92")
    events = decode([*records(*given["frames"]), *end(900_000)])
    (exchange,) = exchanges(events)
    request, _, answer = messages(events)

    assert (exchange.state, exchange.response, exchange.late) == (CANCELLED, None, answer.n)
    assert answer.exchange == request.n
    assert codes(events) == ["MCP430"]
    assert [finding.severity for finding in findings(events) if finding.code == "MCP430"] == ["info"]


def test_B94_requests_that_are_never_answered_do_not_pile_up() -> None:
    """A tenth of the case's 200,000 requests against a tenth of the table's size; the proportions are the same."""
    count, limit = CASES["B94"]["expect"]["unanswered"] // 10, OPEN_LIMIT // 10
    decoder = Decoder(open_limit=limit)
    ended: Counter[str] = Counter()
    reported = 0

    def feed(record: Record) -> None:
        nonlocal reported
        events = decoder.feed(record)
        ended.update(one.state for one in exchanges(events))
        reported += codes(events).count("MCP409")

    for record in [*OPENS, *asked("opening")]:
        feed(record)
    for number in range(count):
        said = b'{"jsonrpc":"2.0","id":%d,"method":"ping"}\n' % number
        if number % 2:
            said += b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}\n' % number
        feed(Record(number, "chunk", 0, said))
        assert number % 1000 or number + 1 - sum(ended.values()) <= limit
    feed(Record(count, "chunk", 0, b'{"jsonrpc":"2.0","id":"last","method":"ping"}\n'))
    feed(Record(count, "chunk", 1, b'{"jsonrpc":"2.0","id":"last","result":{}}\n'))
    assert (ended["answered"], ended[CANCELLED], ended[ABANDONED], reported) == (1, count // 2, 2, 0)
    for record in end(count + 1):
        feed(record)

    # "opening" makes one more than the table holds; what we give up ourselves is nobody's fault and no finding.
    assert (ended[CANCELLED], ended[ABANDONED]) == (count // 2, count // 2 + 1)
    assert reported == count // 2 - 1


def test_B95_malformed_answers_end_the_wait() -> None:
    events = decode([*records(*case("B95")[0]["frames"]), *end(900_000)])

    assert pairs(events) == [tuple(pair) for pair in case("B95")[1]["pairs"]]
    assert codes(events) == ["MCP208", "MCP207"]


def test_B97_a_message_without_an_id_is_a_notification() -> None:
    events = decode([*records(*case("B97")[0]["frames"]), *end(900_000)])
    first, answer, last = messages(events)

    assert (first.kind, answer.kind, last.kind) == ("notification", "error", "notification")
    assert exchanges(events) == []
    assert codes(events) == ["MCP408"]
    assert answer.fact("notification-answered") == ("notification-answered", first.n, None, "")


# -- G: JSON fidelity -------------------------------------------------------------------------------------------------


def test_B98_integers_keep_every_digit() -> None:
    given, expect = case("B98")
    events = decode([*OPENS, *asked(1), *reads(1, wire(given))])
    (message,) = messages_of(events, "s2c")
    values = message.result["structuredContent"].values()

    assert message.raw == wire(given)[:-1]
    assert [str(value) for value in values] == expect["view_contains"]
    assert codes(events) == ["MCP112"]


@pytest.mark.parametrize("answer", [1, 2])
def test_B100_names_that_repeat_are_told_with_their_paths_and_either_id_pairs(answer: int) -> None:
    given, expect = case("B100")
    reply = Record(2000, "chunk", 1, line({"jsonrpc": "2.0", "id": answer, "result": {}}))
    events = decode([*OPENS, *reads(0, wire(given)), reply])
    request, _ = messages(events)
    told = [finding for finding in findings(events) if finding.code == "MCP110"]

    assert request.raw == wire(given)[:-1]
    assert (request.id, request.params["name"]) == ("2", "other")
    assert all(path in told[0].text for path in expect["paths"])
    assert "the last value was used" in told[0].text
    assert pairs(events) == [(0, 1)]
    assert len(told) == (2 if answer == 1 else 1)


def test_B102_nan_is_not_json() -> None:
    given, _ = case("B102")
    events = decode([*OPENS, *asked(1), *reads(1, wire(given))])
    (message,) = messages_of(events, "s2c")

    assert message.flaws == ("nan-or-infinity",)
    assert not is_strict(message.flaws)
    assert answered_ids(events) == [1]
    assert codes(events) == ["MCP111"]


def test_B104_deep_nesting_leaves_the_id_and_the_next_frames() -> None:
    given, _ = case("B104")
    after = line({"jsonrpc": "2.0", "id": 2, "method": "ping"})
    replies = b"".join(line({"jsonrpc": "2.0", "id": number, "result": {}}) for number in (1, 2))
    events = decode([*OPENS, *reads(0, wire(given) + after), Record(2000, "chunk", 1, replies)])

    assert messages(events)[0].flaws == ("too-deep",)
    assert (messages(events)[0].id, messages(events)[0].method) == ("1", "tools/call")
    assert answered_ids(events) == [1, 2]
    assert codes(events) == ["MCP115"]


def test_B105_spelling_and_white_space_stay() -> None:
    given, expect = case("B105")
    events = decode([*OPENS, *asked(1), *reads(1, wire(given))])
    (message,) = messages_of(events, "s2c")

    assert message.raw == wire(given)[:-1]
    assert all(spelling in message.raw.decode() for spelling in expect["view_contains"])
    assert answered_ids(events) == [1]
    assert codes(events) == []
