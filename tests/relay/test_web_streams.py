"""Event streams in edit mode: whatever hooks do, the framing is right and the records tell what left."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpsniff.hooks.actions import Cut, Raw, Returned, Stall, copy, notification, request
from mcpsniff.hooks.editor import ADDED, Outgoing
from mcpsniff.protocol.message import Message
from mcpsniff.proxy.relay.web.stream import BrokenOffError, StalledError
from mcpsniff.wire.http1 import Data, End, Http1Splitter
from mcpsniff.wire.sse import EventSplitter
from tests.proxy.relayed import EVENTS, chunk, get, post
from tests.relay.weblane import Answering, Hook

JSON_ANSWER = b'{"jsonrpc":"2.0","id":1,"result":{}}'
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
KEEP, LONGER, SHORTER, DROP, BEFORE, AFTER, TWICE, RAW = (
    "keep", "longer", "shorter", "drop", "before", "after", "twice", "raw",
)  # fmt: skip
ASK = post(b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}', "Accept: application/json, text/event-stream")


def does(message: Message) -> Returned:
    """What the message says that is to be done to it."""
    params = message.body["params"]
    act = params.pop("do", KEEP) if "do" in params else KEEP
    if act == KEEP:
        params["do"] = act
        return message
    params["did"] = act
    if act == LONGER:
        params["more"] = "x" * 300
    elif act == SHORTER:
        params.pop("pad", None)
    elif act == DROP:
        return None
    elif act == BEFORE:
        return [notification("n/before"), message]
    elif act == AFTER:
        return [message, notification("n/after")]
    elif act == TWICE:
        return [message, copy(message)]
    elif act == RAW:
        return Raw(b": noise\n\n")
    return message


def expected(number: int, act: str) -> list[Any]:
    """What a client reads for an event that says ``act``: numbers, and methods of what hooks have added."""
    if act in (DROP, RAW):
        return []
    if act == BEFORE:
        return ["n/before", number]
    return [number, *({AFTER: ["n/after"], TWICE: [number]}.get(act, []))]


def event(number: int, act: str, end: str, form: str) -> bytes:
    said = {"jsonrpc": "2.0", "method": "n/x", "params": {"do": act, "k": number, "pad": "é" * 40}}
    text = json.dumps(said, ensure_ascii=False, separators=(", ", ": "))
    lines = {
        "plain": [f"data: {text}"],
        "bare": [f"data:{text}"],
        "full": [f"id: {number}", "event: message", ": why not", f"data: {text}", "retry: 10"],
        "lines": [f"data: {line}" for line in text.replace(", ", ", \n").split("\n")],
        "comment": [": only", "", f"data: {text}"],
    }[form]
    return (end.join(lines) + end * 2).encode()


EVENT = st.tuples(
    st.sampled_from([KEEP, KEEP, LONGER, SHORTER, DROP, BEFORE, AFTER, TWICE, RAW]),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from(["plain", "bare", "full", "lines", "comment"]),
)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    at = sorted({place % (len(data) + 1) for place in places} | {0, len(data)})
    return [data[start:stop] for start, stop in pairwise(at)]


def read(stream: bytes) -> list[Any]:
    """What a client makes of a whole response: the numbers and methods of its messages."""
    splitter, events, found = Http1Splitter(1, "s2c"), EventSplitter(1, "s2c"), []
    splitter.expect("POST")
    parts = splitter.feed(0, stream)
    ends = [part for part in parts if isinstance(part, End)]
    assert len(ends) == 1
    assert ends[0].complete
    assert ends[0].flaws == ()
    for part in parts:
        if isinstance(part, Data):
            for frame in events.feed(0, part.data, (part.span,)):
                if frame.sse is not None and frame.sse.dispatched and frame.payload:
                    params = json.loads(frame.payload).get("params", {})
                    found.append(params.get("k", json.loads(frame.payload)["method"]))
    return found


CUTS = st.lists(st.integers(0, 10_000), max_size=12)


@given(events=st.lists(EVENT, max_size=6), chunks=CUTS, reads=CUTS)
def test_law_the_client_reads_what_hooks_say_and_the_records_tell_it(
    events: list[tuple[str, str, str]], chunks: list[int], reads: list[int]
) -> None:
    body = b"".join([event(at, *each) for at, each in enumerate(events)])
    sent = EVENTS + CHUNKED + b"".join([chunk(piece) for piece in cut(body, chunks)]) + b"0\r\n\r\n"
    lane = Answering(Hook(does), ASK)
    for piece in cut(sent, reads):
        lane.feed(piece)
    assert read(lane.tape.left) == [each for at, (act, _, _) in enumerate(events) for each in expected(at, act)]
    assert lane.tape.told() == lane.tape.left
    if all(act == KEEP for act, _, _ in events):
        assert lane.tape.left == sent
        assert lane.tape.marks == []


@given(events=st.lists(EVENT, min_size=1, max_size=5), reads=CUTS, framing=st.sampled_from(["length", "close"]))
def test_law_it_is_the_same_for_streams_that_are_not_chunked(
    events: list[tuple[str, str, str]], reads: list[int], framing: str
) -> None:
    body = b"".join([event(at, *each) for at, each in enumerate(events)])
    head = b"Content-Length: %d\r\n\r\n" % len(body) if framing == "length" else b"\r\n"
    lane = Answering(Hook(does), ASK)
    for piece in cut(EVENTS + head + body, reads):
        lane.feed(piece)
    lane.finish()
    left = lane.tape.left
    if framing == "close":
        left = left.replace(b"\r\n\r\n", b"\r\nContent-Length: %d\r\n\r\n" % (len(left) - len(EVENTS + head)), 1)
    assert read(left) == [each for at, (act, _, _) in enumerate(events) for each in expected(at, act)]
    assert lane.tape.told() == lane.tape.left


@given(events=st.lists(EVENT, min_size=2, max_size=5), chunks=CUTS, reads=CUTS, when=st.integers(0, 12))
def test_law_what_others_say_stands_between_two_events(
    events: list[tuple[str, str, str]], chunks: list[int], reads: list[int], when: int
) -> None:
    body = b"".join([event(at, *each) for at, each in enumerate(events)])
    sent = EVENTS + CHUNKED + b"".join([chunk(piece) for piece in cut(body, chunks)])
    lane = Answering(Hook(does), get("/mcp"))
    was_said = False
    session = lane.carrier.errands[0].session
    for at, piece in enumerate(cut(sent, reads)):
        lane.feed(piece)
        if at == when and session.streams:
            was_said = True
            made = notification("n/other")
            assert session.push(Outgoing(ADDED, "somebody", "", json.dumps(made.body).encode(), made))
    lane.feed(b"0\r\n\r\n")
    told = [each for at, (act, _, _) in enumerate(events) for each in expected(at, act)]
    came = read(lane.tape.left)
    assert [each for each in came if each != "n/other"] == told
    assert came.count("n/other") == was_said
    assert lane.tape.told() == lane.tape.left
    assert not session.push(Outgoing(ADDED, "somebody", "", b"{}", None)), "the stream is over"


def test_a_changed_event_keeps_all_but_what_was_changed() -> None:
    lane = Answering(Hook(lambda message: message.body["params"].update(level="debug") or message), ASK)
    said = b'{"method":"n", "params" : {"level":"info","x":1.0}, "jsonrpc":"2.0"}'
    text = b"id: 7\r\nevent: message\r\n: note\r\ndata: " + said + b"\r\n\r\n"
    lane.feed(EVENTS + CHUNKED + chunk(text))
    changed = text.replace(b'"info"', b'"debug"')
    assert lane.tape.left == EVENTS + CHUNKED + chunk(changed)
    (kind, channel, body) = lane.tape.marks[0]
    assert (kind, channel, body["by"]) == ("rewrite", 1, "hook")
    assert body["start"] == len(EVENTS + CHUNKED)


def test_a_request_of_a_hook_gets_an_id_of_its_own() -> None:
    made: list[Message] = []

    def asks(message: Message) -> Returned:
        if message.method != "n/x":
            return message
        made.append(request("ping"))
        return [message, made[0]]

    lane = Answering(Hook(asks), ASK)
    lane.feed(EVENTS + CHUNKED + chunk(event(0, KEEP, "\n", "plain")))
    assert b'"id":"mcpsniff-' in lane.tape.left.replace(b" ", b"")


@pytest.mark.parametrize("at", [0, 1])
def test_a_cut_event_breaks_the_stream_off_where_it_is_cut(at: int) -> None:
    first, second = event(0, KEEP, "\n", "plain"), event(1, KEEP, "\n", "plain")
    lane = Answering(Hook(lambda message: Cut(message, 10) if message.body["params"]["k"] == at else message), ASK)
    with pytest.raises(BrokenOffError, match="hook"):
        lane.feed(EVENTS + CHUNKED + chunk(first + second))
    splitter = Http1Splitter(1, "s2c")
    splitter.expect("POST")
    parts = [*splitter.feed(0, lane.tape.left), *splitter.finish(0)]
    assert isinstance(parts[-1], End)
    assert not parts[-1].complete
    body = b"".join([part.data for part in parts if isinstance(part, Data)])
    assert body.rstrip(b"\n") == (first + second)[: len(first) * at + 10].rstrip(b"\n")


def test_a_stalled_stream_says_nothing_more() -> None:
    lane = Answering(Hook(lambda message: Stall("asleep")), ASK)
    with pytest.raises(StalledError):
        lane.feed(EVENTS + CHUNKED + chunk(event(0, KEEP, "\n", "plain")))
    assert lane.tape.left == EVENTS + CHUNKED
    assert lane.tape.marks[-1][2]["why"] == "asleep"


@pytest.mark.parametrize("is_changed", [True, False])
@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (b"application/json", JSON_ANSWER),
        (b"text/event-stream", b"data: " + JSON_ANSWER + b"\n\n"),
        (b"text/plain", b"hello"),
        (b"", JSON_ANSWER),
    ],
)
def test_trailers_leave_after_every_body(kind: bytes, body: bytes, *, is_changed: bool) -> None:
    def hook(message: Message) -> Returned:
        message.body["result"].update({"more": 1} if is_changed else {})
        return message

    way = Answering(Hook(hook), ASK)
    head = b"HTTP/1.1 200 OK\r\n" + (b"Content-Type: " + kind + b"\r\n" if kind else b"") + CHUNKED
    left = way.feed(head + chunk(body) + b"0;last\r\nX-Sum: 1\r\n\r\n")
    assert left.endswith(b"0;last\r\nX-Sum: 1\r\n\r\n")
    assert (b'"more":1' in left) is (is_changed and kind != b"text/plain")
    assert way.tape.told() == left


@pytest.mark.parametrize("framing", [CHUNKED, b"Content-Length: 99\r\n\r\n", b"\r\n"])
def test_what_nobody_says_to_be_json_and_does_not_look_so_is_not_held(framing: bytes) -> None:
    way = Answering(Hook(lambda message: message), ASK)
    start = b"HTTP/1.1 200 OK\r\n" + framing
    piece = chunk(b" \n") if framing is CHUNKED else b" \n"
    assert way.feed(start + piece) == b""
    more = b"5\r\nhello" if framing is CHUNKED else b"hello"
    assert way.feed(more) == start + piece + more
