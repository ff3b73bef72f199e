"""Laws of decoding HTTP: nothing raises, reads do not matter, live is offline, every request ends in one state."""

from collections import Counter
from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpsniff.capture.records import Header, Record
from mcpsniff.checks import Check, Finding, Runner, load
from mcpsniff.decoder import Decoder, Event
from mcpsniff.protocol.exchange import STATES
from mcpsniff.protocol.http import HTTP_STATES, Http
from mcpsniff.protocol.message import Message
from mcpsniff.transcript.jsonl import JsonLines
from tests.decoder.told import exchanges, https, joined, lines, messages, played, recut, spelt

HEADER = Header("run", 1, "2026-11-29T10:00:00.000000Z", transport="http")

REQUESTS = [
    b"POST /mcp HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nAccept: text/event-stream\r\n",
    b"POST /messages?sessionId=1 HTTP/1.1\r\nContent-Type: application/json\r\n",
    b"GET /sse HTTP/1.1\r\nAccept: text/event-stream\r\n",
    b"GET /mcp HTTP/1.1\r\nMcp-Session-Id: s\r\nLast-Event-ID: e1\r\n",
    b"DELETE /mcp HTTP/1.1\r\nMcp-Session-Id: s\r\n",
    b"HEAD / HTTP/1.1\r\n",
    b"CONNECT x:1 HTTP/1.1\r\n",
    b"Mcp-Session-Id: s\r\n",
    b"MCP-Protocol-Version: 2026-07-28\r\n",
    b"MCP-Protocol-Version: 2025-06-18\r\n",
]
RESPONSES = [
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: s\r\n",
    b"HTTP/1.1 404 Not Found\r\n",
    b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
    b"Content-Encoding: gzip\r\n",
    b"\x15\x03\x01\x00\x02\x02\n",
    b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n",
]
BODIES = [
    b"\r\n",
    b"0\r\n\r\n",
    b"Transfer-Encoding: chunked\r\n",
    *(
        b"%x\r\n%b\r\n" % (len(text), text)
        for text in (
            spelt("$initialize").encode(),
            spelt("$welcome").encode(),
            spelt("$call(1)").encode(),
            b"event: endpoint\ndata: /messages?sessionId=1\n\n",
            b"event: endpoint\ndata: http://[x\n\n",
            b"id: e1\nretry: 10\ndata: \n\n",
            spelt("id: e1\ndata: $result(1)\n\n").encode(),
            spelt("data: $result(1)\n\n").encode(),
            b'data: {"jsonrpc":"2.0","id":"s","method":"roots/list"}\n\n',
            b'{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"m"}}',
            b'[{"jsonrpc":"2.0","id":2,"method":"ping"},{"jsonrpc":"2.0","id":"s","result":{}},1]',
            b": ping\n\n",
            b"\x1f\x8b\x08\x00",
        )
    ),
    *(b"Content-Length: %d\r\n\r\n%b" % (len(text), text) for text in (spelt("$call(2)").encode(), b"{}", b"\xff{")),
]
WIRE = st.lists(st.sampled_from([*REQUESTS, *RESPONSES, *BODIES]) | st.binary(max_size=6), max_size=8).map(b"".join)
CLOSES = [
    {"how": "eof"},
    {"how": "reset"},
    {"how": "aborted", "error": "the client closed its end"},
    {"how": "aborted", "error": "mcpsniff was stopped"},
    {"how": None},
]
META = {"upstream": "http://127.0.0.1:8000"}


def tcp(connection: int) -> list[Record]:
    about = {"kind": "tcp", "conn": connection, "meta": META}
    number = 2 * connection
    return [
        Record(0, "open", number, {"dir": "c2s", **about}),
        Record(0, "open", number + 1, {"dir": "s2c", "of": number, **about}),
    ]


@st.composite
def traffic(draw: st.DrawFn) -> list[Record]:
    """Records on two connections and two recorded bodies, in any order, some of it lost, some of it never announced."""
    made = [*tcp(0), *tcp(1)]
    request = {"start": "POST /mcp HTTP/2.0", "headers": [["content-type", "application/json"]], "authority": "h"}
    response = {"start": "HTTP/2.0 200 OK", "headers": [["content-type", "text/event-stream"]]}
    made.append(Record(0, "open", 6, {"kind": "http-request", "dir": "c2s", "conn": 3, "meta": request}))
    made.append(Record(0, "open", 7, {"kind": "http-response", "dir": "s2c", "conn": 3, "of": 6, "meta": response}))
    t = 0
    for _ in range(draw(st.integers(0, 12))):
        t += draw(st.integers(0, 70_000_000))
        channel = draw(st.sampled_from([0, 0, 0, 1, 1, 1, 2, 3, 6, 7, 9]))
        kind = draw(st.sampled_from(["chunk", "chunk", "chunk", "chunk", "close", "gap", "rewrite"]))
        if kind == "chunk":
            made.append(Record(t, kind, channel, draw(WIRE)))
        elif kind == "close":
            made.append(Record(t, kind, channel, draw(st.sampled_from(CLOSES))))
        elif kind == "gap":
            made.append(Record(t, kind, channel, {"bytes": draw(st.integers(0, 50)), "why": "queue"}))
        else:
            body = {"start": 0, "length": 0, "data": b"HTTP/1.1 502 x\r\n\r\n" + draw(WIRE), "by": "mcpsniff"}
            made.append(Record(t, kind, channel, body))
    return made


def decoded(records: Iterable[Record], header: Header | None = HEADER) -> Iterator[Event]:
    decoder = Decoder(header)
    for record in records:
        yield from decoder.feed(record)
    yield from decoder.finish()


@given(traffic(), st.booleans())
def test_nothing_raises_and_everything_ends_once(records: list[Record], announced: bool) -> None:
    if not announced:
        records = [record for record in records if record.kind != "open"]
    events = list(decoded(records))
    numbers = [event.n for event in events if not isinstance(event, Finding)]

    assert numbers == list(range(1, len(numbers) + 1))
    requests = [one.n for one in messages(events) if one.kind == "request" and one.link is not None]
    asked = [one.link.request for one in messages(events) if one.kind == "request" and one.link is not None]
    assert sorted(one.request for one in exchanges(events)) == sorted({*requests} & {*asked})
    assert {one.state for one in exchanges(events)} <= set(STATES)
    assert {one.state for one in https(events)} <= set(HTTP_STATES)
    told = Counter((one.exchange.number, one.state) for one in https(events, last=False))
    assert set(told.values()) <= {1}, "each state of an HTTP exchange is told once"
    for finding in [event for event in events if isinstance(event, Finding)]:
        assert finding.code != "MCP901", finding.text
        assert 0 < finding.at <= len(numbers)


@given(
    st.lists(
        st.builds(
            Record,
            st.integers(0, 10**9),
            st.sampled_from(["open", "open", "close", "gap", "mask", "rewrite", "chunk"]),
            st.none() | st.integers(-1, 3),
            st.fixed_dictionaries(
                {},
                optional={
                    "kind": st.sampled_from(["tcp", "http-request", "http-response", "stdin", None, 5]),
                    "dir": st.sampled_from(["c2s", "s2c", None, 5]),
                    "conn": st.none() | st.integers(-1, 1) | st.text(max_size=1) | st.just([1]),
                    "of": st.none() | st.integers(-1, 3) | st.just([1]),
                    "how": st.sampled_from(["eof", "reset", "aborted", "exit", None, 5]),
                    "start": st.integers(0, 5) | st.text(max_size=9),
                    "length": st.integers(0, 1),
                    "bytes": st.none() | st.integers(-1, 5),
                    "data": st.sampled_from([b"HTTP/1.1 502 x\r\n\r\n", b"", None, "text"]),
                    "meta": st.none()
                    | st.fixed_dictionaries(
                        {},
                        optional={
                            "start": st.sampled_from(["POST /mcp HTTP/2", "HTTP/2 200", "", 5]),
                            "headers": st.lists(st.sampled_from([["a", "b"], ["content-type"], 5]), max_size=2),
                            "authority": st.sampled_from(["h", 5]),
                            "upstream": st.sampled_from(["h", None]),
                        },
                    ),
                },
            ),
        ),
        max_size=10,
    )
)
def test_no_record_raises(made: list[Record]) -> None:
    said = b"POST /mcp HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\n\r\n"
    list(decoded([one._replace(body=said) if one.kind == "chunk" else one for one in made]))


@given(traffic(), st.integers(1, 40))
def test_decoding_does_not_depend_on_the_reads(records: list[Record], size: int) -> None:
    """Whatever is cut or joined, all but times and what a compressor held back is the same."""
    plain = [one for one in records if one.kind != "chunk" or b"gzip" not in one.body]
    whole = lines(plain, header=HEADER)

    assert lines(recut(plain, size), header=HEADER) == whole
    at_once = [one._replace(t=0) for one in plain]  # what was read earlier may pass no deadline
    assert lines(joined(at_once), header=HEADER) == lines(at_once, header=HEADER)


@given(traffic())
def test_live_is_offline(records: list[Record]) -> None:
    """With the time told in between, the same comes out: deadlines have their own moments."""
    offline, writer = lines(records, header=HEADER), JsonLines(payload=True)
    decoder, said, before = Decoder(HEADER), b"", 0
    for record in records:
        for t in range(before, record.t, 20_000_000):
            said += writer.lines(decoder.advance(t))
        said += writer.lines(decoder.feed(record))
        before = record.t
    said += writer.lines(decoder.finish())

    assert said.splitlines() == offline


def _silent(_item: object, _conversation: object) -> None:
    return None


def _loud(_item: object, _conversation: object) -> str:
    return "here"


@pytest.mark.parametrize("on", [Http, Message])
@given(traffic())
def test_adding_a_check_changes_nothing_else(on: type, records: list[Record]) -> None:
    def told(extra: list[Check]) -> list[tuple[object, ...]]:
        decoder = Decoder(HEADER, runner=Runner([*load().values(), *extra]))
        events = [event for record in records for event in decoder.feed(record)] + decoder.finish()
        return [
            (event.code, event.at) if isinstance(event, Finding) else (type(event).__name__, event.n)
            for event in events
            if not (isinstance(event, Finding) and event.code == "MCP000")
        ]

    def check(function: object) -> Check:
        return Check("MCP000", "extra", on, "note", "recorder", function)  # type: ignore[arg-type]

    assert told([]) == told([check(_silent)]) == told([check(_loud)])


def test_what_is_played_is_what_the_laws_are_about() -> None:
    """The pieces above make real exchanges."""
    events = played("@open 2025-11-25\nC> POST /mcp $call(1)\nS> 200 $result(1)").events
    assert [one.state for one in exchanges(events)] == ["answered", "answered"]
