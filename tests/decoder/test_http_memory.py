"""The memory of a decoder does not grow with HTTP that has ended, and its tables are bounded."""

import gc
from collections import Counter
from collections.abc import Callable, Iterable

import pytest

from mcpsniff.capture.records import Record
from mcpsniff.checks import Runner
from mcpsniff.decoder import Decoder
from mcpsniff.protocol import conversations
from tests.decoder.told import exchanges, spelt

WELCOME, CALL, RESULT, STEP = (spelt(text).encode() for text in ("$welcome", "$call(%d)", "$result(%d)", "$modern(%d)"))
ENVELOPE = b'{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}'


def message(start: bytes, body: bytes, *headers: bytes) -> bytes:
    lines = [start, b"Content-Type: application/json", *headers, b"Content-Length: %d" % len(body), b"", body]
    return b"\r\n".join(lines)


def post(body: bytes, *headers: bytes, target: bytes = b"/mcp") -> bytes:
    return message(b"POST %b HTTP/1.1" % target, body, *headers)


def answer(body: bytes, *headers: bytes, status: bytes = b"200 OK") -> bytes:
    return message(b"HTTP/1.1 " + status, body, *headers)


def stream(*events: bytes) -> bytes:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"".join(b"%x\r\n%b\r\n" % (len(event), event) for event in events) + b"0\r\n\r\n"


class Traffic:
    """Feeds a decoder, on connections that are opened and closed."""

    def __init__(self, runner: Runner | None = None) -> None:
        self.decoder = Decoder(runner=runner)
        self.t = 0
        self.states: Counter[str] = Counter()

    def feed(self, kind: str, channel: int, body: object) -> None:
        self.t += 10
        events = self.decoder.feed(Record(self.t, kind, channel, body))
        self.states.update(one.state for one in exchanges(events))

    def open(self, connection: int) -> None:
        for side, channel in (("c2s", 2 * connection), ("s2c", 2 * connection + 1)):
            self.feed("open", channel, {"kind": "tcp", "dir": side, "conn": connection})

    def close(self, connection: int) -> None:
        self.feed("close", 2 * connection, {"how": "eof"})
        self.feed("close", 2 * connection + 1, {"how": "eof"})

    def say(self, connection: int, request: bytes, response: bytes) -> None:
        self.feed("chunk", 2 * connection, request)
        self.feed("chunk", 2 * connection + 1, response)


def on_one_connection(traffic: Traffic, numbers: Iterable[int]) -> None:
    for number in numbers:
        traffic.say(0, post(CALL % number), answer(RESULT % number))


def on_many_connections(traffic: Traffic, numbers: Iterable[int]) -> None:
    for number in numbers:
        traffic.open(number)
        traffic.say(number, post(CALL % number), answer(RESULT % number))
        traffic.close(number)


def on_streams_with_ids(traffic: Traffic, numbers: Iterable[int]) -> None:
    for number in numbers:
        event = b"id: e%d\ndata: %b\n\n" % (number, RESULT % number)
        traffic.say(0, post(CALL % number, b"Mcp-Session-Id: s"), stream(b"id: p%d\ndata: \n\n" % number, event))


def in_many_sessions(traffic: Traffic, numbers: Iterable[int]) -> None:
    for number in numbers:
        session = b"Mcp-Session-Id: s%d" % number
        traffic.say(0, post(spelt("$initialize").encode()), answer(WELCOME, session))
        traffic.say(0, post(CALL % 1, session), answer(RESULT % 1))
        traffic.say(0, message(b"DELETE /mcp HTTP/1.1", b"", session), answer(b""))


def in_sessions_that_nobody_ends(traffic: Traffic, numbers: Iterable[int]) -> None:
    for number in numbers:
        traffic.say(0, post(spelt("$initialize").encode()), answer(WELCOME, b"Mcp-Session-Id: s%d" % number))


def in_sessions_that_are_unknown(traffic: Traffic, numbers: Iterable[int]) -> None:
    for number in numbers:
        refusal = answer(b"", status=b"404 Not Found")
        traffic.say(0, post(CALL % 1, b"Mcp-Session-Id: s%d" % number), refusal)


def in_requests_of_their_own(traffic: Traffic, numbers: Iterable[int]) -> None:
    for number in numbers:
        body = b'{"jsonrpc":"2.0","id":%d,"method":"tools/list","params":{"_meta":%b}}' % (number, ENVELOPE)
        traffic.say(0, post(body, b"MCP-Protocol-Version: 2026-07-28"), answer(RESULT % number))


def at_many_places(traffic: Traffic, numbers: Iterable[int]) -> None:
    for number in numbers:
        traffic.say(0, post(CALL % number, target=b"/mcp/%d" % number), answer(RESULT % number))


def without_answers(traffic: Traffic, numbers: Iterable[int]) -> None:
    for number in numbers:
        traffic.say(0, post(CALL % number), answer(b"", status=b"503 Busy"))


def that_are_none_of_ours(traffic: Traffic, numbers: Iterable[int]) -> None:
    for number in numbers:
        request = b"GET /assets/%d HTTP/1.1\r\n\r\n" % number
        traffic.say(0, request, b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc")


def of_legacy_streams(traffic: Traffic, numbers: Iterable[int]) -> None:
    for number in numbers:
        target = b"/messages?sessionId=%d" % number
        traffic.open(number)
        endpoint = b"event: endpoint\ndata: %b\n\n" % target
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
        traffic.say(number, b"GET /sse HTTP/1.1\r\n\r\n", head + endpoint)
        traffic.say(0, post(CALL % 1, target=target), answer(b"", status=b"202 Accepted"))
        traffic.feed("chunk", 2 * number + 1, b"data: %b\n\n" % (RESULT % 1))
        traffic.close(number)


def in_recorded_bodies_that_are_not_answered(traffic: Traffic, numbers: Iterable[int]) -> None:
    about = {"start": "POST /mcp HTTP/2.0", "headers": [["content-type", "application/json"]], "authority": "h"}
    for number in numbers:
        channel = 1_000 + number
        traffic.feed("open", channel, {"kind": "http-request", "dir": "c2s", "conn": number, "meta": about})
        traffic.feed("chunk", channel, CALL % number)
        traffic.feed("close", channel, {"how": "eof"})


KINDS = [
    in_recorded_bodies_that_are_not_answered,
    on_one_connection,
    on_many_connections,
    on_streams_with_ids,
    in_many_sessions,
    in_sessions_that_nobody_ends,
    in_sessions_that_are_unknown,
    in_requests_of_their_own,
    at_many_places,
    without_answers,
    that_are_none_of_ours,
    of_legacy_streams,
]


def objects() -> Counter[str]:
    """How many objects of each kind there are."""
    gc.collect()
    return Counter(type(one).__name__ for one in gc.get_objects())


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fiftieth of each table, so that a fiftieth of the traffic fills it; the proportions are the same."""
    for name in ("LIVE_LIMIT", "PLACES_LIMIT", "ENDED_LIMIT", "CONNECTIONS_LIMIT", "LINGER_LIMIT"):
        monkeypatch.setattr(conversations, name, getattr(conversations, name) // 50)
    monkeypatch.setattr("mcpsniff.decoder.web.BODIES_LIMIT", 200)
    monkeypatch.setattr("mcpsniff.decoder.window.FEW", 10)
    monkeypatch.setattr("mcpsniff.protocol.finished.SharedWindow.__init__.__defaults__", (200,))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.usefixtures("small")
def test_nothing_is_kept_of_exchanges(kind: Callable[[Traffic, Iterable[int]], None]) -> None:
    """1,000 more exchanges against tables of a fiftieth, as 50,000 against whole ones."""
    traffic = Traffic()
    traffic.open(0)
    kind(traffic, range(1, 400))
    before = objects()
    kind(traffic, range(400, 1_400))
    grown = objects() - before

    assert sum(grown.values()) < 200, grown.most_common(8)
    assert kind is that_are_none_of_ours or sum(traffic.states.values()) >= 1_000
    assert len(traffic.decoder.finish()) <= 400


@pytest.mark.timeout(600)
def test_fifty_thousand_exchanges_in_one_session() -> None:
    """With the tables as they are, which 12,000 exchanges have filled."""
    traffic = Traffic(Runner([]))
    traffic.open(0)
    on_one_connection(traffic, range(12_000))
    before = objects()
    on_one_connection(traffic, range(12_000, 50_000))
    grown = objects() - before

    assert sum(grown.values()) < 200, grown.most_common(8)
    assert traffic.states == {"answered": 50_000}
