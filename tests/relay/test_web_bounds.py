"""Edit mode over HTTP where somebody does not read, does not answer, or says too much: bounded and told."""

import gzip
import json
import threading
import zlib
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from mcpsniff.hooks.actions import Later, notification
from mcpsniff.hooks.editor import ADDED, Outgoing
from mcpsniff.proxy.address import parse_upstreams
from mcpsniff.proxy.dial import Dialler
from mcpsniff.proxy.relay.web import held, inject, pushes
from mcpsniff.proxy.relay.web.stream import BrokenOffError
from tests.proxy.relayed import EVENTS, Peer, Relay, Upstream, answer, chunk, get, post
from tests.proxy.wrapped import PATIENCE, wait_for
from tests.relay.test_web_streams import ASK, CHUNKED, KEEP, event
from tests.relay.weblane import Answering, Hook

JSON = "Content-Type: application/json"
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
SAID = b'{"jsonrpc":"2.0","id":1,"result":{}}'
GZIP = b"Content-Encoding: gzip\r\n"


def same(message: Any) -> Any:
    return message


def pushed(number: int) -> Outgoing:
    made = notification("n/pushed", {"k": number})
    return Outgoing(ADDED, "somebody", "", json.dumps(made.body).encode(), made)


def test_whoever_has_something_for_a_stream_does_not_wait_for_its_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pushes, "ROOM", 200)
    lane = Answering(Hook(same), get("/mcp"))
    lane.feed(EVENTS + CHUNKED)
    session = lane.carrier.errands[0].session
    reads, write = threading.Event(), lane.tape.sendall

    def blocks(data: bytes) -> None:
        assert reads.wait(PATIENCE)
        write(data)

    monkeypatch.setattr(lane.tape, "sendall", blocks)
    taken: list[bool] = []
    other = threading.Thread(target=lambda: taken.extend(session.push(pushed(number)) for number in range(10)))
    other.start()
    other.join(PATIENCE)
    assert not other.is_alive()
    assert taken[:2] == [True, True]
    assert not taken[-1]
    (told,) = lane.said
    assert "does not read its stream" in told
    reads.set()
    kept = sum(taken)
    assert wait_for(lambda: lane.tape.left.count(b"n/pushed") == kept)
    lane.feed(b"0\r\n\r\n")
    assert [number for number in range(10) if b'"k": %d' % number in lane.tape.left] == list(range(kept))
    assert lane.tape.told() == lane.tape.left
    assert not session.push(pushed(10))


def test_a_coded_stream_goes_on_however_far_it_expands() -> None:
    lane = Answering(Hook(same), ASK)
    lane.feed(EVENTS + GZIP + CHUNKED)
    coder, pad = zlib.compressobj(wbits=31), b": " + b"x" * (4 << 20) + b"\n\n"
    for number in range(20):
        text = pad + event(number, KEEP, "\n", "plain")
        lane.feed(chunk(coder.compress(text) + coder.flush(zlib.Z_SYNC_FLUSH)))
        assert b'"k":%d' % number in lane.tape.left.replace(b" ", b"")[-300:]
        lane.tape.left = b""
        lane.tape.marks.clear()


def test_a_stream_whose_coding_is_damaged_is_broken_off_and_does_not_seem_to_end() -> None:
    lane = Answering(Hook(same), ASK)
    coder = zlib.compressobj(wbits=31)
    text = coder.compress(event(0, KEEP, "\n", "plain")) + coder.flush(zlib.Z_SYNC_FLUSH)
    lane.feed(EVENTS + GZIP + CHUNKED + chunk(text))
    with pytest.raises(BrokenOffError, match="mcpsniff"):
        lane.feed(chunk(b"\xff" * 100))
    assert b'"k": 0' in lane.tape.left
    assert not lane.tape.left.endswith(b"0\r\n\r\n")
    (told,) = lane.said
    assert "broken off" in told


def test_what_is_kept_for_later_leaves_before_a_stream_breaks_off() -> None:
    lane = Answering(Hook(lambda message: Later(message, 0.2)), ASK)
    assert b"data" not in lane.feed(EVENTS + CHUNKED + chunk(event(0, KEEP, "\n", "plain")))
    lane.finish()
    assert b'"k": 0' in lane.tape.left
    assert lane.tape.told() == lane.tape.left


def test_what_is_kept_for_later_and_finds_no_stream_any_more_is_told() -> None:
    lane = Answering(Hook(lambda message: Later(message, 0.05)), ASK)
    lane.feed(EVENTS + CHUNKED + chunk(event(0, KEEP, "\n", "plain")))
    stream = lane.responses._stream
    assert stream is not None
    stream.close()
    assert wait_for(lambda: lane.said)
    assert "got lost" in lane.said[0]


def test_a_client_that_has_ended_its_side_and_reads_on_gets_what_was_delayed(tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text('[[rule]]\nwhen = "kind:response"\ndelay = "700ms"\n')

    def play(peer: Peer) -> None:
        peer.next_message()
        peer.send(answer(SAID, JSON))
        peer.read_all()

    with Upstream(play) as upstream, Relay(tmp_path, upstream.url, "--rules", str(rules)) as relay:
        with relay.connect() as client:
            client.send(post(PING, JSON))
            client.half_close()
            assert client.next_message()[1] == SAID
        assert relay.stop() == 0
        (hold,) = relay.capture().bodies("hold", 1)
    assert hold["us"] >= 650_000


def test_a_page_from_elsewhere_gets_nothing_of_ours_before_a_server_on_this_machine(tmp_path: Path) -> None:
    came: list[bytes] = []

    def play(peer: Peer) -> None:
        while True:
            came.append(peer.next_message()[1])
            peer.send(answer(SAID, JSON))

    call = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"secret"}}'
    rule = 'tool:secret={"content":[]}'
    with (
        Upstream(play) as upstream,
        Relay(tmp_path, upstream.url, "--respond", rule, "--allow-host", "app.example") as relay,
    ):
        for body in (call, PING):
            for host, origin in (("127.0.0.1", "http://evil.example"), ("evil.example", "http://evil.example")):
                head, said = relay.ask(post(body, JSON, f"Origin: {origin}", host=host))
                assert head.status == 403
                assert b"--allow-host" in said
                assert head.get("access-control-allow-origin") is None
        assert came == []
        for origin in ("http://localhost:6274", "http://app.example"):
            head, said = relay.ask(post(call, JSON, f"Origin: {origin}", host="localhost:1"))
            assert (head.status, head.get("access-control-allow-origin")) == (200, origin)
            assert b'"content":[]' in said
        with relay.connect() as client:
            client.send(post(PING, JSON), post(PING, JSON, host="evil.example"))
            assert client.next_message()[0].status == 200
            assert client.next_message()[0].status == 403
        assert came == [PING]
        assert relay.stop() == 0


def test_what_no_hook_can_read_passes_and_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held, "LIMIT", 1000)
    large = b'{"jsonrpc":"2.0","id":1,"result":{"x":"%s"}}' % (b"x" * 2000)
    answers = {
        answer(large, JSON): "a message of more than 64 MiB",
        answer(gzip.compress(large), JSON, "Content-Encoding: gzip"): "a message of more than 64 MiB",
        answer(SAID, JSON, "Content-Encoding: \x1bodd"): "a body with a content coding that cannot be read here",
        answer(gzip.compress(SAID)[:-9], JSON, "Content-Encoding: gzip"): "a body whose content coding is damaged",
        EVENTS + b"Content-Encoding: odd\r\n" + CHUNKED + chunk(b"data: 1\n\n") + b"0\r\n\r\n": "an event stream with",
    }
    for said, told in answers.items():
        lane = Answering(Hook(same), ASK)
        lane.feed(said)
        assert lane.tape.left == said
        (sentence,) = lane.said
        assert sentence.startswith(told)
        assert "\x1b" not in sentence
        assert [body["text"] for kind, _, body in lane.tape.marks if kind == "comment"] == [sentence]
        assert lane.tape.told() == lane.tape.left
    lane = Answering(Hook(same), ASK)
    lane.feed(answer(b"\x89PNG" * 1000, "Content-Type: image/png"))
    assert lane.said == []


def test_a_request_that_no_hook_can_read_passes_and_is_told(tmp_path: Path) -> None:
    def play(peer: Peer) -> None:
        while True:
            peer.next_message()
            peer.send(answer(SAID, JSON))

    with Upstream(play) as upstream, Relay(tmp_path, upstream.url, "--block", "tool:bad") as relay:
        relay.ask(post(PING, JSON, "Content-Encoding: odd"))
        with relay.connect() as client:
            client.send(f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: {1 << 27}\r\n\r\n{{".encode())
            relay.recorded(lambda capture: capture.bodies("comment", 0) and capture.bodies("comment", 2))
        assert relay.stop() == 0
    assert b"cannot be read here (odd) passed unedited" in relay.err
    assert b"a message of more than 64 MiB passed unedited" in relay.err


@pytest.mark.parametrize("end", ["time", "client", "session"])
def test_a_message_of_a_hook_that_is_never_answered_is_given_up(monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    monkeypatch.setattr(inject, "LOOK", 0.02)
    monkeypatch.setattr(inject, "LONGEST" if end == "time" else "PATIENCE", 0.1)
    asked = threading.Event()

    def play(peer: Peer) -> None:
        peer.next_message()
        asked.set()
        peer.read_all()

    lane = Answering(Hook(same), ASK, post(b"", "Mcp-Session-Id: a").replace(b"POST", b"DELETE"))
    session = lane.carrier.errands[-1].session
    session.latest = lane.carrier.errands[0].head
    with Upstream(play) as upstream:
        listener = lane.carrier.listener
        listener.dialler = Dialler(parse_upstreams([upstream.url])[0])
        listener.numbers, listener.host = count(1), None
        inject.inject(lane.hub, session, pushed(1), waits=False)
        assert asked.wait(PATIENCE)
        assert end == "time" or not any(kind == "close" for kind, _, _ in lane.tape.marks)
        if end == "client":
            lane.hub.forget(0)
        elif end == "session":
            lane.feed(answer(SAID, JSON) + answer(status="204 No Content"))
        assert wait_for(lambda: sum(kind == "close" for kind, _, _ in lane.tape.marks) == 2)
    assert lane.tape.marks[-1][2] == {"how": "aborted", "error": inject.GIVEN_UP}
    assert lane.said == (["somebody: the server has not answered a message of its own"] if end == "time" else [])
