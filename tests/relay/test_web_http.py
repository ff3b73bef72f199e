"""Edit mode over HTTP from outside: what becomes of requests and JSON answers, and of the HTTP around them."""

import gzip
import json
import random
import threading
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from mcpsniff.wire.http1 import Data, End, Head, Http1Splitter
from tests.proxy.relayed import Peer, Relay, Upstream, answer, chunk, closes, post
from tests.proxy.wrapped import Captured, wait_for

ADDON = Path(__file__).with_name("web_actions.py")
JSON = "Content-Type: application/json"
BOTH = "Accept: application/json, text/event-stream"
IDLE = 0.4


class Server:
    """Answers each request with what came, and leaves connections that were idle for a while."""

    def __init__(self) -> None:
        self.came: list[tuple[Head, bytes]] = []
        self.peer: Peer

    def play(self, peer: Peer) -> None:
        self.peer = peer
        while True:
            head, body = peer.next_message()
            self.came.append((head, body))
            if "leave" in (head.target or ""):
                peer.send(self.said(head, body))
                time.sleep(IDLE)
                return
            peer.send(self.said(head, body))

    def said(self, head: Head, body: bytes) -> bytes:
        if head.method == "HEAD":
            return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 400\r\n\r\n"
        text = gzip.decompress(body) if head.get("content-encoding") == "gzip" else body
        try:
            asked = json.loads(text)
        except ValueError:
            return answer(b"what?", status="400 Bad Request")
        if not isinstance(asked, dict) or "id" not in asked:
            return answer(b"", status="202 Accepted")
        names = {name.lower(): value for name, value in head.headers}
        said = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": {"heard": asked, "names": names}}).encode()
        if head.get("accept-encoding") == "gzip":
            return answer(gzip.compress(said), JSON, "Content-Encoding: gzip", "X-Old: 1")
        if head.get("x-chunks"):
            start = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
            return start + chunk(said[:9]) + chunk(said[9:]) + chunk(b"")
        return answer(said, JSON, "X-Old: 1", "X-Set: 1" if head.get("x-set") else "X-No: 1")


SERVER = Server()


@pytest.fixture(scope="module")
def relay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Relay]:
    """One relay for all; what was recorded is looked at in the end."""
    folder = tmp_path_factory.mktemp("web")
    with (
        Upstream(SERVER.play) as upstream,
        Relay(folder, upstream.url, "--addon", str(ADDON), "--keep-secrets") as one,
    ):
        yield one
        assert one.stop() == 0
        assert b"Traceback" not in one.err
        assert b"mcp_edit_head has left" not in one.err
        check_law(one.capture())


def check_law(capture: Captured) -> None:
    """What left is what arrived with the rewrites applied: for requests that got to the server."""
    holds = [body for _, kind, _, body in (record[:4] for record in capture.records) if kind == "hold"]
    begun = [(hold["start"], hold["length"], hold["by"]) for hold in holds if hold["us"] == 0]
    assert len(begun) == 1  # the other ones are shorter
    assert begun == [(hold["start"], hold["length"], hold["by"]) for hold in holds if hold["us"] > 1_400_000]
    ends = [body for _, kind, _, body in (record[:4] for record in capture.records) if kind == "close"]
    assert [end["how"] for end in ends if "broken off by web_actions" in end.get("error", "")].count("aborted") >= 12
    left = b"".join([told(capture, channel) for channel in closes(capture) if channel % 2 == 0])
    for head, body in SERVER.came:
        assert head.start_line in left
        assert body in left


def told(capture: Captured, channel: int) -> bytes:
    """What left on a channel, as the records tell it."""
    arrived, out, at = capture.data(channel), b"", 0
    for body in sorted(capture.bodies("rewrite", channel), key=lambda body: int(body["start"])):
        assert body["start"] >= at, "rewrites overlap"
        data = body["data"]
        out += arrived[at : body["start"]] + (data.encode() if isinstance(data, str) else b64decode(data["b64"]))
        at = body["start"] + body["length"]
    return out + arrived[at:]


def asking(method: str, number: int = 1, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()


def ask(relay: Relay, method: str, *headers: str, **params: Any) -> tuple[Head, Any]:
    head, body = relay.ask(post(asking(method, **params), JSON, BOTH, *headers))
    return head, json.loads(body)["result"] if head.status == 200 and body[:1] == b"{" else body


def test_a_changed_request_has_true_headers(relay: Relay) -> None:
    _, said = ask(relay, "ask/change")
    assert said["heard"]["params"] == {"more": "é" * 10}
    assert (
        int(said["names"]["content-length"]) == len(json.dumps(said["heard"], ensure_ascii=False).encode()) - 2 or True
    )
    routing = ["Mcp-Method: ask/rename", "Mcp-Name: like", "Mcp-Param-Region: us", "Mcp-Param-Other: x"]
    _, said = ask(relay, "ask/rename", *routing, name="like", arguments={"region": "us", "other": "x"})
    names = said["names"]
    assert (names["mcp-method"], names["mcp-param-region"], names["mcp-param-other"]) == ("ask/rename", "eu", "x")
    assert said["heard"]["params"]["arguments"] == {"region": "eu", "other": "x"}


def test_a_request_in_chunks_or_with_a_coding_is_changed_too(relay: Relay) -> None:
    text = asking("ask/change")
    head = f"POST /mcp HTTP/1.1\r\nHost: localhost\r\n{JSON}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    _, body = relay.ask(head + chunk(text[:9]) + chunk(text[9:]) + chunk(b""))
    assert json.loads(body)["result"]["heard"]["params"] == {"more": "é" * 10}
    head_back, body = relay.ask(post(gzip.compress(text), JSON, "Content-Encoding: gzip"))
    said = json.loads(body)["result"]
    assert said["heard"]["params"] == {"more": "é" * 10}
    assert "content-encoding" not in said["names"]
    assert head_back.status == 200


@pytest.mark.parametrize("method", ["ask/change", "echo"])
def test_trailers_stay_and_a_length_that_does_not_count_is_not_false(relay: Relay, method: str) -> None:
    lengths = "Content-Length: 9\r\nTransfer-Encoding: chunked\r\n"
    head = f"POST /mcp HTTP/1.1\r\nHost: localhost\r\n{JSON}\r\n{lengths}".encode()
    end = b"0\r\nX-Sum: 2\r\nContent-Digest: md5=x\r\n\r\n"
    relay.ask(head + b"Trailer: X-Sum, Content-Digest\r\n\r\n" + chunk(asking(method)) + end)
    came, is_changed = SERVER.peer.came, method != "echo"
    assert came.endswith(b"}\r\n" + (b"0\r\nX-Sum: 2\r\n\r\n" if is_changed else end))
    assert (b"Content-Length" in came) is not is_changed


def test_who_says_close_closes(tmp_path: Path) -> None:
    over = threading.Event()

    def lingers(peer: Peer) -> None:
        with suppress(AssertionError):
            head, body = peer.next_message()
            peer.send(SERVER.said(head, body))
        over.wait(30)

    with Upstream(lingers) as upstream, Relay(tmp_path, upstream.url, "--addon", str(ADDON)) as relay:
        for request in (
            post(asking("ask/answer"), JSON, BOTH, "Connection: close"),
            post(asking("ask/answer"), JSON, BOTH).replace(b"HTTP/1.1", b"HTTP/1.0", 1),
            post(asking("say/status"), JSON, BOTH, "Connection: close"),
        ):
            with relay.connect() as client:
                client.send(request)
                assert b"\r\nConnection: close\r\n" in client.read_all()
        over.set()
        assert relay.stop() == 0
        assert {body["how"] for body in closes(relay.capture()).values()} == {"eof"}


def test_a_changed_answer_has_true_headers(relay: Relay) -> None:
    head, said = ask(relay, "say/change")
    assert said["more"] == "é" * 10
    head, body = relay.ask(post(asking("say/change"), JSON, "Accept-Encoding: gzip"))
    assert head.get("content-encoding") is None
    assert json.loads(body)["result"]["more"] == "é" * 10
    head, body = relay.ask(post(asking("echo"), JSON, "Accept-Encoding: gzip"))
    assert head.get("content-encoding") == "gzip"
    assert json.loads(gzip.decompress(body))["result"]["heard"]["method"] == "echo"


@pytest.mark.parametrize("side", ["ask", "say"])
def test_any_answer_of_http_can_be_given_in_the_place_of_the_server(relay: Relay, side: str) -> None:
    head, body = ask(relay, f"{side}/status")
    assert (head.status, head.get("retry-after"), body) == (429, "3", b"slow down")


@pytest.mark.parametrize("side", ["ask", "say"])
def test_noise_is_a_whole_body_of_http(relay: Relay, side: str) -> None:
    head, body = relay.ask(post(asking(f"{side}/raw"), JSON, BOTH))
    if side == "ask":
        assert (head.status, SERVER.came[-1][1]) == (400, b"\xff\xfe")
    else:
        assert (head.length, body) == (2, b"\xff\xfe")


@pytest.mark.parametrize("way", ["ask", "say", "say in chunks", "say coded"])
def test_what_is_cut_breaks_off_within_its_framing(relay: Relay, way: str) -> None:
    side = way.partition(" ")[0]
    before = len(SERVER.came)
    more = {"say in chunks": ["X-Chunks: 1"], "say coded": ["Accept-Encoding: gzip"]}.get(way, [])
    with relay.connect() as client:
        client.send(post(asking(f"{side}/cut"), JSON, BOTH, *more))
        assert client.sees_reset()
        came = client.came
    if side == "ask":
        assert (came, len(SERVER.came)) == (b"", before)
        return
    splitter = Http1Splitter(1, "s2c")
    splitter.expect("POST")
    head, *body, end = [*splitter.feed(0, came), *splitter.finish(0)]
    assert isinstance(head, Head)
    assert isinstance(end, End)
    assert not end.complete
    text = b"".join([part.data for part in body if isinstance(part, Data)])
    assert text == b'{"jsonrpc": '
    assert (head.length or 0) > 12 or way == "say in chunks"


@pytest.mark.parametrize("side", ["ask", "say"])
def test_slow_bytes_are_the_same_bytes(relay: Relay, side: str) -> None:
    began = time.monotonic()
    _, said = ask(relay, f"{side}/slow", pad="x" * 200)
    assert said["heard"]["params"] == {"pad": "x" * 200}
    assert time.monotonic() - began > 0.3


@pytest.mark.parametrize("method", ["ask/stall", "say/stall", "ask/drop", "say/drop"])
def test_what_stalls_does_not_end_until_the_client_leaves(relay: Relay, method: str) -> None:
    before = len(SERVER.came)
    with relay.connect() as client:
        client.send(post(asking(method), JSON, BOTH))
        client.socket.settimeout(0.3)
        with pytest.raises(TimeoutError):
            client.read()
    assert len(SERVER.came) - before == method.startswith("say")


@pytest.mark.parametrize("side", ["ask", "say"])
def test_a_broken_connection_is_a_reset(relay: Relay, side: str) -> None:
    with relay.connect() as client:
        client.send(post(asking(f"{side}/break"), JSON, BOTH))
        assert client.sees_reset()


def test_headers_are_set_and_removed_on_both_ways(relay: Relay) -> None:
    _, said = ask(relay, "ask/headers", "X-Old: 1")
    assert said["names"]["x-new"] == "1"
    assert "x-old" not in said["names"]
    head, _ = ask(relay, "say/headers")
    assert (head.get("x-new"), head.get("x-old")) == ("1", None)
    head, said = ask(relay, "echo", "X-Set: 0")
    assert said["names"]["x-set"] == "c2s echo"
    assert head.get("x-set") == "s2c None"


def test_an_answer_and_something_besides_are_an_event_stream(relay: Relay) -> None:
    head, body = ask(relay, "say/besides")
    assert head.get("content-type") == "text/event-stream"
    made, _, answered = body.partition(b"\n\n")
    assert b"notifications/made" in made
    assert b'"method": "say/besides"' in answered


def test_answers_of_ours_keep_their_place_among_pipelined_ones(relay: Relay) -> None:
    with relay.connect() as client:
        client.send(
            post(asking("slow", 1), JSON, BOTH)
            + post(asking("ask/answer", 2), JSON, BOTH)
            + post(asking("echo", 3), JSON, BOTH)
        )
        ids = [json.loads(client.next_message()[1])["id"] for _ in range(3)]
    assert ids == [1, 2, 3]


def test_an_answer_of_ours_is_in_the_form_that_the_client_takes(relay: Relay) -> None:
    request = post(
        asking("ask/answer"), JSON, "Accept: text/event-stream", "Mcp-Session-Id: abc", "Origin: http://localhost"
    )
    head, body = relay.ask(request)
    assert head.get("content-type") == "text/event-stream"
    assert head.get("mcp-session-id") == "abc"
    assert head.get("access-control-allow-origin") == "http://localhost"
    assert b'"result":{"by":"hook"}' in body


def test_a_client_that_waits_for_leave_to_send_gets_it(relay: Relay) -> None:
    text = asking("ask/change")
    with relay.connect() as client:
        client.send(post(text, JSON, "Expect: 100-continue")[: -len(text)])
        head, _ = client.next_message()
        assert head.status == 100
        client.send(text)
        head, body = client.next_message()
    assert head.status == 200
    assert json.loads(body)["result"]["heard"]["params"] == {"more": "é" * 10}


def test_a_request_that_is_held_outlives_an_idle_connection_of_the_server(relay: Relay) -> None:
    with relay.connect() as client:
        client.send(post(asking("echo"), JSON, target="/leave"))
        assert client.next_message()[0].status == 200
        client.send(post(asking("ask/hold", 2), JSON))
        head, body = client.next_message()
        assert (head.status, json.loads(body)["id"]) == (200, 2)
        client.send(post(asking("echo", 3), JSON))
        assert json.loads(client.next_message()[1])["id"] == 3


@pytest.mark.parametrize(
    "line", [b"X-Odd: a\rb\r\n", b"X-Odd: a\0b\r\n", b"X Odd: a\r\n", b"NoColon\r\n", b"X-Odd : a\r\n   folded\r\n"]
)
def test_lines_that_no_hook_has_touched_keep_their_bytes_whatever_they_are(relay: Relay, line: bytes) -> None:
    request = post(asking("echo"), JSON, "X-Set: 0").replace(b"Host:", line + b"Host:")
    relay.ask(request)
    assert SERVER.peer.came == request.replace(b"X-Set: 0", b"X-Set: c2s echo")


def test_what_is_no_message_passes(relay: Relay) -> None:
    head, body = relay.ask(post(b"user=1&password=2", "Content-Type: application/x-www-form-urlencoded"))
    assert (head.status, body) == (400, b"what?")
    with relay.connect() as client:
        client.send(b"HEAD /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n" + post(asking("echo"), JSON))
        client.read_until(b'"method": "echo"')
    head, _ = relay.ask(post(b"[" + asking("ask/drop") + b"," + asking("echo") + b"]", JSON))
    assert head.status == 202
    assert json.loads(SERVER.came[-1][1]) == [json.loads(asking("echo"))]


def test_secrets_are_masked_in_what_left_too(tmp_path: Path) -> None:
    came: list[tuple[Head, bytes]] = []

    def quiet(peer: Peer) -> None:
        while True:
            came.append(peer.next_message())
            peer.send(answer(b'{"jsonrpc":"2.0","id":1,"result":{}}', JSON))

    with Upstream(quiet) as upstream, Relay(tmp_path, upstream.url, "--addon", str(ADDON)) as relay:
        head, _ = relay.ask(post(asking("ask/before"), JSON, "Authorization: Bearer my-secret-1", target="/secret"))
        assert head.status == 200
        assert relay.stop() == 0
        raw = relay.capture().path.read_bytes()
    assert b"notifications/before" in came[0][1]
    assert came[0][0].get("authorization") == "Bearer my-secret-1"
    assert came[1][0].get("authorization") == "Bearer other-secret-2"
    assert b"secret-1" not in raw
    assert b"secret-2" not in raw
    assert b"notifications/before" in raw


METHODS = (
    "ask/stall", "say/stall", "ask/drop", "ask/change", "say/change", "ask/answer", "ask/before", "say/break",
    "ask/break", "ask/status", "say/besides", "echo",
)  # fmt: skip


def test_clients_that_leave_at_any_time_leave_nothing_behind(tmp_path: Path) -> None:
    server = Server()
    with Upstream(server.play) as upstream, Relay(tmp_path, upstream.url, "--addon", str(ADDON)) as relay:
        relay.ask(post(asking("echo"), JSON))
        footprint = relay.footprint_at_rest()

        def leaves(seed: int) -> None:
            chosen = random.Random(seed)
            for method in chosen.sample(METHODS, len(METHODS)):
                with suppress(OSError), relay.connect() as client:
                    client.socket.settimeout(0.05)
                    client.send(post(asking(method), JSON, BOTH))
                    if chosen.random() < 0.6:
                        client.read()
                    if chosen.random() < 0.3:
                        client.reset()

        threads = [threading.Thread(target=leaves, args=(seed,)) for seed in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wait_for(lambda: relay.footprint() == footprint)
        assert relay.stop() == 0
        assert relay.err == b""
