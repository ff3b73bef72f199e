"""How connections and the relay itself begin and end, and that everything between passes byte for byte."""

import json
import os
import select
import signal
import socket
import threading
from pathlib import Path

import pytest

from tests.cli.running import run
from tests.proxy.relayed import EVENTS, Peer, Relay, Upstream, answer, chunk, closes, echo, get, post, rest
from tests.proxy.wrapped import wait_for

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


def test_what_is_recorded_is_what_passed_in_the_order_it_passed(tmp_path: Path) -> None:
    with Upstream(echo) as upstream, Relay(tmp_path, f"{upstream.url}/mcp?k=v", "--label", "my server") as relay:
        assert relay.addresses() == [f"http://127.0.0.1:{relay.port}/mcp?k=v"]
        with relay.connect() as client:
            address = "{}:{}".format(*client.socket.getsockname())
            for number in range(3):
                client.send(post(b'{"id":%d}' % number))
                client.next_message()
        capture = relay.recorded(lambda capture: len(closes(capture)) == 2)
    header = capture.header
    assert (header["transport"], header["label"], header["upstream"]) == (
        "http",
        "my-server",
        f"{upstream.url}/mcp?k=v",
    )
    assert "argv" not in header
    meta = {
        "client": address,
        "server": f"127.0.0.1:{upstream.port}",
        "listen": f"127.0.0.1:{relay.port}",
        "upstream": upstream.url,
    }
    assert capture.bodies("open", 0) == [{"kind": "tcp", "dir": "c2s", "conn": 0, "meta": meta}]
    assert capture.bodies("open", 1) == [{"kind": "tcp", "dir": "s2c", "conn": 0, "of": 0, "meta": meta}]
    assert [(kind, channel) for _, kind, channel, _ in capture.records] == [
        ("open", 0),
        ("open", 1),
        *[("chunk", 0), ("chunk", 1)] * 3,
        ("close", 0),
        ("close", 1),
    ]
    assert capture.data(0) == b"".join(post(b'{"id":%d}' % number) for number in range(3))
    assert closes(capture) == {0: {"how": "eof"}, 1: {"how": "eof"}}
    assert not capture.damaged


@pytest.mark.parametrize("options", [[], ["--host-header", "upstream", "--allow-host", "*"]], ids=["blind", "screened"])
def test_large_bodies_pass_both_ways_at_once(tmp_path: Path, options: list[str]) -> None:
    """Neither direction waits for the other: the server sends before it has read."""
    size = 8 << 20
    sent = os.urandom(size)

    def serve(peer: Peer) -> None:
        peer.read_until(b"\r\n\r\n")
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size, sent)
        peer.read_all()

    with Upstream(serve) as upstream, Relay(tmp_path, upstream.url, *options) as relay, relay.connect() as client:
        request = post(sent)
        threading.Thread(target=lambda: (client.send(request), client.half_close()), daemon=True).start()
        came = client.read_all()
        assert came[-size:] == sent
        assert wait_for(lambda: len(upstream.peers[0].came) >= size)
        capture = relay.recorded(lambda capture: len(closes(capture)) == 2)
    assert upstream.peers[0].came[-size:] == sent
    gaps = sum(body["bytes"] for channel in (0, 1) for body in capture.bodies("gap", channel))
    assert gaps or (capture.data(0), capture.data(1)) == (request, came)


def test_a_half_close_passes_and_the_answer_still_comes(tmp_path: Path) -> None:
    def serve(peer: Peer) -> None:
        assert peer.read_all() == b"no HTTP at all"
        peer.send(b"\x00\xff answer")

    with Upstream(serve) as upstream, Relay(tmp_path, upstream.url) as relay, relay.connect() as client:
        client.send(b"no HTTP at all")
        client.half_close()
        assert client.read_all() == b"\x00\xff answer"
        capture = relay.recorded(lambda capture: len(closes(capture)) == 2)
    assert closes(capture) == {0: {"how": "eof"}, 1: {"how": "eof"}}


def test_the_server_may_end_first_and_the_client_go_on(tmp_path: Path) -> None:
    got = threading.Event()

    def serve(peer: Peer) -> None:
        peer.send(b"early")
        peer.half_close()
        assert peer.read_all() == b"late"
        got.set()

    with Upstream(serve) as upstream, Relay(tmp_path, upstream.url) as relay, relay.connect() as client:
        assert client.read_all() == b"early"
        client.send(b"late")
        client.half_close()
        assert got.wait(60)


def test_a_client_that_resets_after_it_said_its_last_word_is_noticed_at_once(tmp_path: Path) -> None:
    """A closed client answers what still comes with a reset; the server must hear of it without another event."""
    gone, closed = threading.Event(), threading.Event()

    def serve(peer: Peer) -> None:
        peer.read_all()
        peer.send(EVENTS + b"\r\n")
        assert closed.wait(60)
        peer.send(b"data: x\n\n")
        hung_up = select.poll()
        hung_up.register(peer.socket, 0)
        assert hung_up.poll(20_000)
        gone.set()

    with Upstream(serve) as upstream, Relay(tmp_path, upstream.url) as relay:
        client = relay.connect()
        client.send(get())
        client.half_close()
        client.read_until(b"\r\n\r\n")
        client.socket.close()
        closed.set()
        assert gone.wait(60)
        capture = relay.recorded(lambda capture: len(closes(capture)) == 2)
    assert closes(capture) == {0: {"how": "eof"}, 1: {"how": "aborted", "error": "the client closed its end"}}


def test_a_server_that_refuses_the_body_is_heard(tmp_path: Path) -> None:
    """It answers, ends, and does not read on; whoever still sends must be able to read the answer."""
    reply = answer(b"too large", status="413 Content Too Large")

    def serve(peer: Peer) -> None:
        peer.read_until(b"\r\n\r\n")
        peer.send(reply)
        peer.half_close()
        rest()
        peer.reset()

    with Upstream(serve) as upstream, Relay(tmp_path, upstream.url) as relay, relay.connect() as client:
        client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n")
        head, body = client.next_message()
        assert (head.status, body) == (413, b"too large")


def test_a_server_that_dies_resets_the_client(tmp_path: Path) -> None:
    dead = threading.Event()

    def serve(peer: Peer) -> None:
        peer.read()
        peer.reset()
        dead.set()

    with Upstream(serve) as upstream, Relay(tmp_path, upstream.url) as relay, relay.connect() as client:
        client.send(post(PING))
        assert dead.wait(60)
        assert client.sees_reset()


def test_a_connection_without_a_byte_leaves_its_beginning_and_end(tmp_path: Path) -> None:
    with Upstream(echo) as upstream, Relay(tmp_path, upstream.url) as relay:
        before = relay.footprint_at_rest()
        for _ in range(50):
            relay.connect().socket.close()
        capture = relay.recorded(lambda capture: len(closes(capture)) == 100)
        assert wait_for(lambda: relay.footprint() == before)
    assert {kind for _, kind, _, _ in capture.records} == {"open", "close"}
    assert set(map(str, closes(capture).values())) == {"{'how': 'eof'}"}


def test_localhost_is_whatever_answers_there(tmp_path: Path) -> None:
    try:
        upstream = Upstream(echo, socket.AF_INET6)
    except OSError:
        pytest.skip("no IPv6 here")
    with upstream, Relay(tmp_path, f"http://localhost:{upstream.port}/mcp") as relay:
        for _ in range(2):
            assert relay.ask(post(PING))[1] == PING
        capture = relay.recorded(lambda capture: len(closes(capture)) == 4)
    assert capture.bodies("open", 0)[0]["meta"]["server"] == f"[::1]:{upstream.port}"


@pytest.mark.parametrize(
    "request_",
    [
        post(PING),
        post(b"x" * (4 << 20)),
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(PING) + b"0\r\n\r\n",
        b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 9999\r\n\r\n",
        get(),
    ],
    ids=["small", "large", "chunked", "waits for a word", "GET"],
)
def test_a_server_that_is_down_is_told_about_after_the_request(tmp_path: Path, request_: bytes) -> None:
    with Upstream(echo) as upstream:
        url, port = upstream.url, upstream.port
    with Relay(tmp_path, f"http://localhost:{port}") as relay:
        with relay.connect() as client:
            client.send(request_)
            head, body = client.next_message()
            assert (head.status, client.read_all()[-len(body) :]) == (502, body)
        assert f"127.0.0.1:{port}: Connection refused".encode() in body
        assert f"[::1]:{port}: ".encode() in body
        capture = relay.recorded(lambda capture: len(closes(capture)) == 2)
        assert capture.data(0) == request_
        with Upstream(echo) as upstream:  # another one
            assert url != upstream.url
        assert relay.ask(post(PING))[0].status == 502  # and it is asked anew each time


def test_a_server_that_comes_up_later_is_found(tmp_path: Path) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
    with Relay(tmp_path, f"http://127.0.0.1:{port}") as relay:
        assert relay.ask(post(PING))[0].status == 502
        with socket.socket() as server:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.bind(("127.0.0.1", port))
            server.listen()
            with relay.connect() as client:
                client.send(post(PING))
                connection, _ = server.accept()
                with Peer(connection, "c2s") as peer:
                    assert peer.next_message()[1] == PING
                    peer.send(answer(b"ok"))
                    assert client.next_message()[1] == b"ok"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_with_a_capture_that_is_complete(tmp_path: Path, number: int) -> None:
    with Upstream(echo) as upstream, Relay(tmp_path, upstream.url) as relay, relay.connect() as client:
        client.send(post(PING))
        client.next_message()
        assert relay.stop(number) == 0
        assert client.read() == b""
        capture = relay.capture()
    assert closes(capture) == {channel: {"how": "aborted", "error": "mcpsniff was stopped"} for channel in (0, 1)}
    assert (capture.data(0), capture.data(1)) == (post(PING), client.came)
    assert not capture.damaged
    assert (relay.err, relay.out.count(b"\n")) == (b"", 1)


def test_an_answer_that_is_due_is_waited_for(tmp_path: Path) -> None:
    asked, stopped = threading.Event(), threading.Event()

    def serve(peer: Peer) -> None:
        peer.next_message()
        asked.set()
        assert stopped.wait(60)
        rest()
        rest()
        peer.send(answer(b"after all"))

    with Upstream(serve) as upstream, Relay(tmp_path, upstream.url) as relay, relay.connect() as client:
        client.send(post(PING))
        assert asked.wait(60)
        relay.process.send_signal(signal.SIGTERM)
        assert wait_for(lambda: refuses(relay.port))
        stopped.set()
        assert client.next_message()[1] == b"after all"
        assert relay.process.wait(60) == 0


def refuses(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return True
    return False


def test_a_second_signal_does_not_wait(tmp_path: Path) -> None:
    def never(peer: Peer) -> None:
        peer.next_message()
        peer.read_all()

    with Upstream(never) as upstream, Relay(tmp_path, upstream.url) as relay, relay.connect() as client:
        client.send(post(PING))
        relay.recorded(lambda capture: capture.data(0))
        relay.process.send_signal(signal.SIGINT)
        assert wait_for(lambda: refuses(relay.port))
        assert relay.stop(signal.SIGINT) in {0, 128 + signal.SIGINT}
        assert client.read() == b""


def test_several_upstreams_have_a_port_and_a_capture_each(tmp_path: Path) -> None:
    def says(word: bytes):
        def serve(peer: Peer) -> None:
            peer.next_message()
            peer.send(answer(word))

        return serve

    with (
        Upstream(says(b"one")) as one,
        Upstream(says(b"two")) as two,
        Relay(tmp_path, f"first={one.url}/a", two.url) as relay,
    ):
        ports = [int(address.split(":")[2].split("/")[0]) for address in relay.addresses()]
        for port, word in zip(ports, (b"one", b"two"), strict=True):
            with relay.connect(port) as client:
                client.send(post(PING))
                assert client.next_message()[1] == word
        assert relay.stop() == 0
    assert relay.capture("first-").data(1).endswith(b"one")
    assert relay.capture(f"127.0.0.1-{two.port}-").data(1).endswith(b"two")


def test_b112_a_capture_stays_under_its_limit_and_everything_is_relayed(tmp_path: Path) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"result":"' + b"z" * 250_000 + b'"}'

    def serve(peer: Peer) -> None:
        while True:
            peer.next_message()
            peer.send(answer(body))

    with Upstream(serve) as upstream, Relay(tmp_path, upstream.url, "--max-size", "5M") as relay:
        most = passed = 0
        with relay.connect() as client:
            while passed < 50 << 20:
                client.send(post(PING))
                assert client.next_message()[1] == body
                client.came = b""
                passed += len(body)
                most = max(most, relay.size())
        assert relay.stop() == 0
        most = max(most, relay.size())
    assert most <= 6 << 20
    (said,) = relay.err.decode().splitlines()
    assert f"the capture has reached its limit of {5 << 20:,} bytes (--max-size)" in said


@pytest.mark.parametrize(
    "limits", [["--rotate-size", "64k"], ["--max-size", "1M"]], ids=["all parts", "the last parts"]
)
def test_b112_requests_pair_across_parts(tmp_path: Path, limits: list[str]) -> None:
    def serve(peer: Peer) -> None:
        while True:
            request = json.loads(peer.next_message()[1])
            reply = {"jsonrpc": "2.0", "id": request["id"], "result": {"pad": "z" * 20_000}}
            peer.send(answer(json.dumps(reply).encode(), "Content-Type: application/json"))

    request = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"x"}}'
    with Upstream(serve) as upstream, Relay(tmp_path, upstream.url, *limits) as relay, relay.connect() as client:
        for number in range(100):
            client.send(post(request % number, "Content-Type: application/json"))
            client.next_message()
        assert relay.stop() == 0
    first = min(relay.folder.iterdir())
    assert len(list(relay.folder.iterdir())) >= 6
    shown = run("show", str(first), "--format", "json")
    exchanges = [row for row in map(json.loads, shown.out.splitlines()) if row["type"] == "exchange"]
    answered = [row for row in exchanges if row["state"] == "answered"]
    assert len(answered) == 100 if limits[0] == "--rotate-size" else 20 < len(answered) < 60
    assert len(exchanges) - len(answered) <= (0 if limits[0] == "--rotate-size" else 1)
