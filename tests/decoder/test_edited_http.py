"""Edited sessions over HTTP: heads, bodies, events, answers in the place of the server's, requests of our own."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mcpsniff.capture.records import Header, Record
from mcpsniff.checks import Finding
from mcpsniff.decoder import Decoder, Event
from mcpsniff.protocol.exchange import Exchange
from mcpsniff.protocol.http import Http
from mcpsniff.protocol.message import Message
from mcpsniff.transcript.jsonl import JsonLines
from mcpsniff.transcript.rows import RowBuilder
from tests.edited import edits, left_of

OPENING = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
OPENED = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
ACCEPT = "Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n"
SESSION = "Mcp-Session-Id: s-5c1e0b7f93a2\r\nMCP-Protocol-Version: 2025-11-25\r\n"
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def request(number: object, method: str = "tools/call", **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def result(number: object, **of: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "result": of}


def body(message: object) -> bytes:
    return json.dumps(message).encode()


def post(message: object, headers: str = SESSION) -> bytes:
    data = body(message)
    head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:8000\r\n{ACCEPT}{headers}Content-Length: {len(data)}\r\n\r\n"
    return head.encode() + data


def response(message: object, status: str = "200 OK", headers: str = "") -> bytes:
    data = body(message)
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{headers}Content-Length: {len(data)}\r\n\r\n"
    return head.encode() + data


def event(message: object) -> bytes:
    return b"event: message\ndata: " + body(message) + b"\n\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


class Web:
    """The records of TCP connections."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.t = 0
        self.sizes: dict[int, int] = {}
        self.connect(0)
        self.came(0, post(request(0, "initialize", **OPENING), ""))
        self.came(1, response(result(0, **OPENED), headers="Mcp-Session-Id: s-5c1e0b7f93a2\r\n"))
        self.came(0, post({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        self.came(1, b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")

    def connect(self, number: int) -> None:
        for channel, direction in ((2 * number, "c2s"), (2 * number + 1, "s2c")):
            meta = {"server": "127.0.0.1:8000", "upstream": "http://127.0.0.1:8000"}
            fields: dict[str, Any] = {"kind": "tcp", "dir": direction, "conn": number, "meta": meta}
            self.put("open", channel, fields)
            self.sizes[channel] = 0

    def put(self, kind: str, channel: int, fields: Any) -> "Web":
        self.t += 1000
        self.records.append(Record(self.t, kind, channel, fields))
        return self

    def came(self, channel: int, data: bytes) -> int:
        """Bytes arrive; where they begin."""
        start = self.sizes[channel]
        self.sizes[channel] += len(data)
        self.put("chunk", channel, data)
        return start

    def rewrite(self, channel: int, start: int, length: int, data: bytes, **more: Any) -> None:
        self.put("rewrite", channel, {"start": start, "length": length, "data": data, "by": "addon", **more})

    def insert(self, channel: int, data: bytes, **more: Any) -> None:
        self.rewrite(channel, self.sizes[channel], 0, data, **more)

    def close(self, number: int = 0) -> "Web":
        return self.put("close", 2 * number, {"how": "eof"}).put("close", 2 * number + 1, {"how": "aborted"})

    def decode(self) -> list[Event]:
        decoder = Decoder(Header("r", 1, "2026-11-29T10:00:00.000000Z", "http"))
        return [event for record in self.records for event in decoder.feed(record)] + decoder.finish()


def exchange(events: list[Event], key: object) -> Exchange:
    (found,) = [one for one in events if isinstance(one, Exchange) and one.key == key]
    return found


def faults(events: list[Event]) -> list[tuple[str, str]]:
    """What is found and blamed on a peer, or said of edits."""
    return [
        (one.code, one.blame)
        for one in events
        if isinstance(one, Finding) and one.severity != "info" and one.code not in ("MCP507", "MCP521")
    ]


def test_a_request_whose_body_and_length_changed() -> None:
    web = Web()
    said = post(request(1, name="t", arguments={"city": "Bern"}))
    new = body(request(1, name="t", arguments={"city": "Basel"}))
    start = web.came(0, said)
    head = said.index(b"\r\n\r\n") + 4
    at = said.index(b"Content-Length")
    web.rewrite(0, start + at, head - 2 - at, b"Content-Length: %d\r\n" % len(new))
    web.rewrite(0, start + head, len(said) - head, new, us=20_000)
    web.came(1, response(result(1)))
    events = web.close().decode()
    lengths, changed = edits(events)
    assert (lengths.change, lengths.is_quiet, lengths.members) == ("head", True, ("Content-Length",))
    assert (changed.change, changed.members) == ("changed", ("params.arguments.city",))
    assert exchange(events, 1).state == "answered"
    assert exchange(events, 1).held_us == 20_000
    assert faults(events) == []
    left = left_of(web.records)
    assert left[0].endswith(said[:at] + b"Content-Length: %d\r\n\r\n" % len(new) + new)


def test_a_header_that_somebody_adds() -> None:
    web = Web()
    said = post(request(1))
    start = web.came(0, said)
    web.rewrite(0, start + said.index(b"Content-Length"), 0, b"X-Trace: 1\r\n")
    web.came(1, response(result(1)))
    (head,) = edits(web.close().decode())
    assert (head.change, head.is_quiet, head.members, head.left) == ("head", False, ("X-Trace",), ())


def test_a_head_that_is_another_one_as_a_whole() -> None:
    web = Web()
    said = post(request(1))
    start, stop = web.came(0, said), said.index(b"\r\n\r\n") + 4
    web.rewrite(0, start, stop, said[:stop].replace(b"Host: 127.0.0.1:8000", b"Host: example.com"))
    web.came(1, response(result(1)))
    (head,) = edits(web.close().decode())
    assert (head.change, head.members) == ("head", ("Host",))


def test_an_answer_in_the_servers_place_and_the_next_request_on_the_connection() -> None:
    web = Web()
    said = post(request(1))
    start = web.came(0, said)
    web.rewrite(0, start, len(said), b"", why="tool:t")
    web.insert(1, response({"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "no"}}), why="tool:t")
    web.came(0, post(request(2)))
    web.came(1, response(result(2)))
    events = web.close().decode()
    assert [edit.change for edit in edits(events)] == ["dropped", "answered"]
    first, second = exchange(events, 1), exchange(events, 2)
    assert (first.state, first.answered_by, first.status) == ("errored", "addon", 200)
    assert (second.state, second.answered_by) == ("answered", None)
    by = [one.exchange.by for one in events if isinstance(one, Http)]
    assert by == [None, None, "addon", None]
    assert faults(events) == []


def test_a_refusal_in_the_servers_place() -> None:
    web = Web()
    said = post(request(1))
    start = web.came(0, said)
    web.rewrite(0, start, len(said), b"", why="fault http=429")
    web.insert(
        1, b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n", why="fault http=429"
    )
    web.came(0, post(request(1)))
    web.came(1, response(result(1)))
    events = web.close().decode()
    found = [one for one in events if isinstance(one, Exchange) and one.key == 1]
    assert [(one.state, one.status) for one in found] == [("abandoned", 429), ("answered", 200)]
    assert faults(events) == []


def test_a_live_stream_with_a_changed_a_dropped_and_an_added_event() -> None:
    web = Web()
    web.came(0, post(request(1)))
    web.came(1, STREAM)
    log = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "a"}}
    first = chunk(event(log))
    start = web.came(1, first)
    web.rewrite(1, start, 0, chunk(event({**log, "params": {"level": "info", "data": "before"}})))
    web.rewrite(1, start, len(first), b"")
    second = chunk(event(result(1, n=1)))
    start = web.came(1, second)
    web.rewrite(1, start, len(second), chunk(event(result(1, n=2))))
    web.came(1, b"0\r\n\r\n")
    events = web.close().decode()
    added, dropped, changed = edits(events)
    assert [added.change, dropped.change, changed.change] == ["added", "dropped", "changed"]
    assert (added.message and added.message.method) == "notifications/message"
    assert changed.members == ("result.n",)
    assert changed.link is exchange(events, 1)
    assert faults(events) == []


def test_an_answer_on_a_stream_that_nobody_but_an_addon_gave() -> None:
    web = Web()
    web.came(0, post(request(1)))
    web.came(1, STREAM)
    web.insert(1, chunk(event(result(1, early=True))))
    web.came(1, chunk(event(result(1, late=True))))
    web.came(1, b"0\r\n\r\n")
    events = web.close().decode()
    assert edits(events)[0].change == "answered"
    assert exchange(events, 1).answered_by == "addon"
    assert faults(events) == []


def test_a_request_on_a_connection_of_its_own() -> None:
    web = Web()
    web.connect(1)
    web.rewrite(2, 0, 0, post(request("mcpsniff-1", "ping")))
    answer = response(result("mcpsniff-1"))
    start = web.came(3, answer)
    web.rewrite(3, start, len(answer), b"", why="the answer to a request that it had made")
    web.close(1)
    events = web.close().decode()
    made = exchange(events, "mcpsniff-1")
    assert (made.by, made.state, made.conversation) == ("addon", "answered", 1)
    (answered,) = [one for one in events if isinstance(one, Message) and one.link is made]
    assert answered.kind == "response"
    assert [one.exchange.made_by for one in events if isinstance(one, Http)][-1] == "addon"
    assert [edit.link for edit in edits(events)] == [made, made]
    assert faults(events) == []


def test_a_body_that_became_an_event_stream() -> None:
    web = Web()
    web.came(0, post(request(1)))
    said, of = response(result(1)), body(result(1))
    start = web.came(1, said) + len(said) - len(of)
    notice = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}
    web.rewrite(1, start, len(of), chunk(event(notice) + event(result(1))) + b"0\r\n\r\n")
    (edit,) = edits(events := web.close().decode())
    assert [message.kind for message in edit.left] == ["notification", "response"]
    assert exchange(events, 1).undelivered is None
    assert faults(events) == []
    text = b"event: nothing that anybody reads"
    web = Web()
    web.came(0, post(request(1)))
    start = web.came(1, said) + len(said) - len(of)
    web.rewrite(1, start, len(of), b"no event: " + text)
    assert ("MCP907", "mcpsniff") in faults(web.close().decode())


def test_a_cut_request_that_the_server_hangs_up_on() -> None:
    web = Web()
    said = post(request(1))
    start, head = web.came(0, said), said.index(b"\r\n\r\n") + 4
    web.rewrite(0, start + head, len(said) - head, b'{"jsonrpc":', why="fault cut")
    web.put("close", 1, {"how": "eof"})
    web.put("close", 0, {"how": "aborted"})
    events = web.decode()
    assert exchange(events, 1).is_kept_back
    assert faults(events) == []


def test_a_dropped_request_that_the_client_gives_up_on() -> None:
    web = Web()
    said = post(request(1))
    start = web.came(0, said)
    web.rewrite(0, start, len(said), b"", why="fault drop")
    web.t += 70_000_000
    events = web.close().decode()
    assert (exchange(events, 1).state, exchange(events, 1).is_kept_back) == ("abandoned", True)
    assert {blame for _, blame in faults(events)} <= {"mcpsniff"}


def test_bodies_recorded_as_such() -> None:
    records: list[Record] = []
    said, new = body(request(1, name="a")), body(request(1, name="b"))
    head = {"start": "POST /mcp HTTP/1.1", "headers": [["Content-Type", "application/json"]]}
    meta = {"scheme": "https", "authority": "example.com", **head}
    records.append(Record(0, "open", 0, {"kind": "http-request", "dir": "c2s", "conn": 0, "meta": meta}))
    records.append(Record(1, "chunk", 0, said))
    records.append(Record(2, "close", 0, {"how": "eof"}))
    records.append(Record(3, "rewrite", 0, {"start": 0, "length": len(said), "data": new, "by": "addon"}))
    answer = {"start": "HTTP/1.1 200 OK", "headers": [["Content-Type", "application/json"]]}
    records.append(Record(4, "open", 1, {"kind": "http-response", "dir": "s2c", "conn": 0, "of": 0, "meta": answer}))
    records.append(Record(5, "chunk", 1, body(result(1))))
    records.append(Record(6, "close", 1, {"how": "eof"}))
    decoder = Decoder(Header("r", 1, "2026-11-29T10:00:00.000000Z", "forward"))
    events = [event for record in records for event in decoder.feed(record)]
    (edit,) = edits(events)
    assert (edit.change, edit.members) == ("changed", ("params.name",))
    assert exchange(events, 1).touches


def test_a_cut_stream_ends_the_connection_and_not_the_server() -> None:
    web = Web()
    web.came(0, post(request(1)))
    web.came(1, STREAM)
    said = chunk(event(result(1)))
    web.rewrite(1, web.came(1, said), len(said), b'8\r\ndata: {"\r\n0\r\n\r\n', why="fault cut")
    web.came(0, post(request(2)))
    web.put("close", 1, {"how": "eof"})
    web.put("close", 0, {"how": "aborted"})
    events = web.decode()
    assert [one.exchange.ended_by for one in events if isinstance(one, Http)][-1] == "mcpsniff"
    assert {blame for _, blame in faults(events)} <= {"mcpsniff"}


PLACES = st.tuples(
    st.sampled_from(["rewrite", "hold"]),
    st.integers(0, 1),
    st.integers(0, 900),
    st.integers(0, 300),
    st.sampled_from(
        [
            b"",
            b"\xff\n",
            post(request(1)),
            response(result(1)),
            chunk(event(result(1))),
            event(request(9, "ping")),
            b"Content-Length: 1\r\n",
        ]
    ),
)
SAID = [post(request(1)), response(result(1)), STREAM, chunk(event(result(1))), b"0\r\n\r\n", post(request(2, "ping"))]


@given(st.lists(st.tuples(st.integers(0, 1), st.sampled_from(SAID)) | PLACES, max_size=20), st.booleans())
def test_no_edit_of_http_breaks_the_decoder(said: list[Any], has_ended: bool) -> None:
    web = Web()
    for one in said:
        if len(one) == 2:
            web.came(*one)
        else:
            kind, channel, start, length, data = one
            web.put(kind, channel, {"start": start, "length": length, "data": data, "by": "addon", "us": 5})
    events = (web.close() if has_ended else web).decode()
    assert len(edits(events)) == sum(len(one) != 2 for one in said)
    ended = [one.request for one in events if isinstance(one, Exchange)]
    assert len(ended) == len(set(ended))
    builder = RowBuilder()
    assert [*builder.feed(events), *builder.finish()]
    for line in JsonLines(payload=True).lines(events).splitlines():
        json.loads(line)
