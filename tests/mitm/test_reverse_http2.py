"""An upstream that speaks HTTP/2 for clients that speak HTTP/1.1: responses have an end that a client can miss."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from mcpsniff.wire.http1_parts import Head
from tests.mitm.certificates import Authority
from tests.mitm.http2 import Http2Server, Stream
from tests.proxy.relayed import Relay, closes, get, post
from tests.proxy.wrapped import wait_for

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
PONG = b'{"jsonrpc":"2.0","id":1,"result":{}}'


@contextmanager
def relayed(folder: Path, script: Callable[[Stream], object]) -> Iterator[tuple[Http2Server, Relay]]:
    authority = Authority(folder)
    with (
        Http2Server(str(authority.issue()), script) as server,
        Relay(folder, f"{server.url}/mcp", "--upstream-ca", str(authority.file)) as relay,
    ):
        yield server, relay


def test_requests_of_one_connection_are_streams_of_one(tmp_path: Path) -> None:
    asked: list[Stream] = []

    def script(stream: Stream) -> None:
        asked.append(stream)
        stream.head((":status", "200"), ("content-type", "application/json"), ("mcp-session-id", "s1"))
        stream.data(PONG, end=True)

    with relayed(tmp_path, script) as (server, relay):
        with relay.connect() as peer:
            heads: list[Head] = []
            for _ in range(3):
                peer.send(post(PING, "Mcp-Session-Id: s1", target="/mcp?a=%2f", host="h:1"))
                head, body = peer.next_message()
                heads.append(head)
                assert body == PONG
        assert relay.stop() == 0
        capture = relay.capture()
    assert server.connections == 1
    assert [stream.body for stream in asked] == [PING] * 3
    said = dict(asked[0].headers)
    assert (said[b":path"], said[b":authority"], said[b":scheme"]) == (b"/mcp?a=%2f", b"h:1", b"https")
    assert said[b"mcp-session-id"] == b"s1"
    assert heads[0].get("mcp-session-id") == "s1"
    opened = [what["meta"] for _, kind, _, what in capture.records if kind == "open"]
    assert opened[0]["start"] == "POST /mcp?a=%2f HTTP/1.1"
    assert opened[1]["start"] == "HTTP/2.0 200"
    assert ["Transfer-Encoding", "chunked"] not in opened[1]["headers"]
    assert capture.data(1) == PONG
    assert {what["how"] for what in closes(capture).values()} == {"eof"}


def test_answers_without_a_body_have_none(tmp_path: Path) -> None:
    def script(stream: Stream) -> None:
        status = {b"POST": "202", b"DELETE": "204"}.get(dict(stream.headers)[b":method"], "405")
        stream.head((":status", status), end=True)

    with relayed(tmp_path, script) as (_, relay), relay.connect() as peer:
        for request, status in (
            (post(PING), 202),
            (b"DELETE /mcp HTTP/1.1\r\nHost: h\r\n\r\n", 204),
            (get("/mcp"), 405),
        ):
            peer.send(request)
            head, body = peer.next_message()
            assert (head.status, body) == (status, b"")


def test_a_stream_passes_as_it_comes_and_seems_cut_if_it_was(tmp_path: Path) -> None:
    streams: list[Stream] = []

    def script(stream: Stream) -> None:
        streams.append(stream)
        stream.head((":status", "200"), ("content-type", "text/event-stream"))
        stream.data(b"data: 1\n\n")

    with relayed(tmp_path, script) as (_, relay):
        with relay.connect() as peer:
            peer.send(get("/mcp"))
            peer.read_until(b"data: 1\n\n")
            streams[0].reset()
            assert not peer.read_all().endswith(b"0\r\n\r\n")
        assert relay.stop() == 0
        capture = relay.capture()
    assert closes(capture)[1] == {"how": "reset", "error": "the server closed its end"}


def test_a_client_that_leaves_gives_its_stream_up(tmp_path: Path) -> None:
    def script(stream: Stream) -> None:
        stream.head((":status", "200"), ("content-type", "text/event-stream"))
        stream.data(b"data: 1\n\n")

    with relayed(tmp_path, script) as (server, relay):
        with relay.connect() as peer:
            peer.send(get("/mcp"))
            peer.read_until(b"data: 1\n\n")
        assert wait_for(lambda: server.resets)


def test_a_stream_goes_on_when_the_server_says_that_it_will_go(tmp_path: Path) -> None:
    """GOAWAY without an error (RFC 9113 section 6.8). The next request has a new connection."""
    streams: list[Stream] = []

    def script(stream: Stream) -> None:
        if dict(stream.headers)[b":method"] == b"POST":
            stream.head((":status", "103"), ("link", "</x>"))
            stream.head((":status", "200"), ("content-type", "application/json"))
            stream.data(PONG)
            stream.head(("x-sum", "1"), end=True)
            return
        streams.append(stream)
        stream.head((":status", "200"), ("content-type", "text/event-stream"))
        stream.data(b"data: 1\n\n")
        stream.go_away()
        stream.data(b"data: 2\n\n")

    with relayed(tmp_path, script) as (server, relay):
        with relay.connect() as peer:
            peer.send(get("/mcp"))
            peer.read_until(b"data: 2\n\n")
            assert relay.ask(post(PING))[1] == PONG
            streams[0].data(b"data: 3\n\n", end=True)
            assert peer.read_until(b"data: 3\n\n\r\n0\r\n\r\n")
        assert server.connections == 2
        assert relay.stop() == 0
        capture = relay.capture()
    assert [what["how"] for what in closes(capture).values()] == ["eof"] * 4
    assert [what["text"] for _, kind, _, what in capture.records if kind == "comment"] == [
        "before this response came 103, not recorded and not passed on",
        "after this body came trailers, not recorded and not passed on: x-sum",
    ]


def test_a_server_that_goes_in_the_middle_breaks_the_stream_off(tmp_path: Path) -> None:
    def script(stream: Stream) -> None:
        stream.head((":status", "200"), ("content-type", "text/event-stream"))
        stream.data(b"data: 1\n\n")
        stream.go_away(2)

    with relayed(tmp_path, script) as (_, relay):
        with relay.connect() as peer:
            peer.send(get("/mcp"))
            assert not peer.read_all().endswith(b"0\r\n\r\n")
            assert b"data: 1" in peer.came
        assert relay.stop() == 0
        capture = relay.capture()
    assert closes(capture)[1] == {"how": "reset", "error": "the server closed its end"}
