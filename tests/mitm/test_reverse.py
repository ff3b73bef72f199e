"""`mcpsniff http https://…`: what is checked, what is changed, what is answered by us, and how it ends."""

import json
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mcpsniff.wire.http1_parts import Head
from tests.mitm.secure import secured
from tests.mitm.terminator import Terminator
from tests.proxy.relayed import EVENTS, Peer, Relay, Upstream, answer, chunk, closes, echo, get, post
from tests.proxy.wrapped import wait_for

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


def noting(heads: list[Head], bodies: list[bytes] | None = None) -> Callable[[Peer], None]:
    """A server that keeps what it is asked."""

    def script(peer: Peer) -> None:
        while True:
            head, body = peer.next_message()
            heads.append(head)
            if bodies is not None:
                bodies.append(body)
            peer.send(answer(b'{"jsonrpc":"2.0","id":1,"result":{}}', "Content-Type: application/json"))

    return script


def stream(event: bytes) -> Callable[[Peer], None]:
    """A server with one event stream for each request, that stays open."""

    def script(peer: Peer) -> None:
        peer.next_message()
        sent = event.replace(b"{port}", b"%d" % PORTS[0])
        peer.send(EVENTS + b"Transfer-Encoding: chunked\r\n\r\n" + chunk(sent))
        peer.read()

    return script


PORTS = [0]


def test_a_request_and_its_answer_pass_and_are_recorded(tmp_path: Path) -> None:
    heads: list[Head] = []
    with secured(tmp_path, noting(heads)) as it:
        target = "/mcp;v=1?q=%7e%2F&x=a+b"
        head, body = it.relay.ask(post(PING, "x-B: 1", "X-a: 2", target=target))
        assert (head.status, body) == (200, b'{"jsonrpc":"2.0","id":1,"result":{}}')
        asked, answered = it.meta()
        assert it.relay.stop() == 0
        capture = it.relay.capture()
    assert heads[0].target == target
    assert [pair for pair in heads[0].headers if pair[0].lower()[:2] == "x-"] == [("x-B", "1"), ("X-a", "2")]
    assert (asked["scheme"], asked["authority"]) == ("https", f"localhost:{it.terminator.port}")
    assert answered["server"].endswith(f":{it.terminator.port}")
    assert it.terminator.names == ["localhost"]
    assert capture.header["transport"] == "http"
    assert capture.header["upstream"] == it.terminator.url + "/mcp"
    assert capture.data(0) == PING
    assert closes(capture) == {0: {"how": "eof"}, 1: {"how": "eof"}}


def test_no_addon_fails_in_silence(tmp_path: Path) -> None:
    with secured(tmp_path, noting([]), env={"MCPSNIFF_DEBUG": "1"}) as it:
        assert it.relay.ask(post(PING))[0].status == 200
        assert it.relay.stop() == 0
        told = it.relay.err.decode()
    assert "server connect" in told  # mitmproxy's log is there
    assert "Addon error" not in told
    assert "Traceback" not in told


def test_the_host_is_kept_for_this_machine_or_written_anew(tmp_path: Path) -> None:
    heads: list[Head] = []
    with secured(tmp_path, noting(heads)) as it:
        it.relay.ask(post(PING, host="anything:1"))
    assert heads[0].get("host") == "anything:1"
    (tmp_path / "other").mkdir()
    with secured(tmp_path / "other", noting(heads), "--host-header", "upstream") as it:
        it.relay.ask(post(PING, host=f"127.0.0.1:{it.relay.port}"))
        asked, _ = it.meta()
    assert heads[1].get("host") == f"localhost:{it.terminator.port}"
    assert asked["host"] == f"localhost:{it.terminator.port}"
    assert ["Host", f"127.0.0.1:{it.relay.port}"] in asked["headers"]


@pytest.mark.parametrize(
    ("request_", "status", "why"),
    [
        (post(PING, host="evil.example"), 403, "the request's Host names evil.example"),
        (post(PING, "Origin: https://evil.example", host="127.0.0.1:{port}"), 403, "comes from a page of"),
        (post(PING, "X: a\rb", host="127.0.0.1:{port}"), 400, "another server may read this request differently"),
        (b"\x16\x03\x01\x02\x00\x01\x00", 400, "TLS, not HTTP"),
        (b"GET /\r\n\r\n", 400, "cannot be read as HTTP/1.1"),
        (b"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 5ecret\r\n\r\n", 400, "(invalid content-length header)"),
        (b"GET / HTTP/1.1\r\nHost: h\r\nBearer 5ecret\r\n\r\n", 400, "(Invalid header line, line 3 of its head)"),
        (b"GET /?key=5ecret\r\n\r\n", 400, "(Bad HTTP request line, line 1 of its head)"),
    ],
)
def test_what_must_not_pass_is_answered_by_us(tmp_path: Path, request_: bytes, status: int, why: str) -> None:
    heads: list[Head] = []
    with secured(tmp_path, noting(heads), "--host-header", "upstream") as it, it.relay.connect() as peer:
        peer.send(request_.replace(b"{port}", b"%d" % it.relay.port))
        head, body = peer.next_message()
        assert peer.read_all().endswith(body)
        assert it.relay.stop() == 0
        capture = it.relay.capture()
    assert (head.status, (head.get("server") or "").split("/")[0]) == (status, "mcpsniff")
    assert why in body.decode()
    assert "5ecret" not in body.decode()
    assert not [what for _, kind, _, what in capture.records if kind == "comment" and "5ecret" in what["text"]]
    assert heads == []
    if status == 403:
        (rewrite,) = [what for _, kind, _, what in capture.records if kind == "rewrite"]
        assert (rewrite["by"], rewrite["start"], rewrite["length"]) == ("mcpsniff", 0, 0)
        assert rewrite["data"].startswith("HTTP/1.1 403 Forbidden\r\n")
        assert capture.data(0) == PING
        assert closes(capture) == {0: {"how": "eof"}, 1: {"how": "eof"}}


@pytest.mark.parametrize(
    ("names", "days", "why", "advice"),
    [
        (["localhost"], 30, "certificate 1 of its chain (mcpsniff test CA, issued by", "--upstream-ca FILE, a file"),
        (["other.example"], 30, "(other.example, issued by mcpsniff test CA, for other.example)", "Use a name that is"),
        (["localhost"], -1, "certificate has expired", "Renew it"),
    ],
)
def test_a_refused_certificate_is_named_and_what_to_pass(
    tmp_path: Path, names: list[str], days: int, why: str, advice: str
) -> None:
    is_unknown = (names, days) == (["localhost"], 30)
    with secured(tmp_path, echo, trusts=False) as it:
        pem = it.authority.issue(names, days=days, label="refused")
        words = [] if is_unknown else ["--upstream-ca", str(it.authority.file)]
        with (
            Terminator(it.upstream.port, str(pem)) as terminator,
            Relay(tmp_path / "refused", terminator.url, *words) as relay,
        ):
            for _ in range(2):
                head, body = relay.ask(post(PING, "Accept: application/json"))
            said = json.loads(body)
            assert relay.stop() == 0
            capture = relay.capture()
    assert head.status == 502
    assert said["by"] == "mcpsniff"
    assert why in said["error"]
    assert advice in said["error"]
    assert relay.err.decode().count("is not trusted") == 1
    assert relay.err.decode().count("\n") == 1
    assert [capture.data(channel) for channel in (0, 2)] == [PING, PING]
    assert [what["by"] for _, kind, _, what in capture.records if kind == "rewrite"] == ["mcpsniff"] * 2


def test_the_servers_own_certificate_may_be_passed(tmp_path: Path) -> None:
    with secured(tmp_path, echo, trusts=False) as it:
        own = tmp_path / "own.pem"
        pem = (tmp_path / "server.pem").read_text()
        own.write_text(pem[pem.index("-----BEGIN CERT") :].partition("-----END CERTIFICATE-----")[0] + END)
        with Relay(tmp_path / "own", it.terminator.url, "--upstream-ca", str(own)) as relay:
            assert relay.ask(post(PING))[1] == PING


END = "-----END CERTIFICATE-----\n"


def test_any_certificate_is_trusted_if_that_is_asked_for(tmp_path: Path) -> None:
    with secured(tmp_path, echo, "--insecure", trusts=False) as it:
        assert it.relay.ask(post(PING))[1] == PING
        assert it.relay.err == b""


def test_a_server_that_is_down_is_told_about_with_what_was_tried(tmp_path: Path) -> None:
    with secured(tmp_path, echo) as it:
        it.terminator.close()
        head, body = it.relay.ask(post(PING))
        assert it.relay.stop() == 0
        capture = it.relay.capture()
    assert head.status == 502
    assert f"cannot reach the upstream {it.terminator.url} (" in body.decode()
    assert f"127.0.0.1:{it.terminator.port}: Connection refused" in body.decode()
    (rewrite,) = [what for _, kind, _, what in capture.records if kind == "rewrite"]
    assert rewrite["data"].endswith(body.decode())
    assert capture.data(0) == PING


def test_a_server_without_tls_is_told_about(tmp_path: Path) -> None:
    plain = Upstream(lambda peer: peer.send(answer(b"plain")))
    with plain as upstream, Relay(tmp_path, f"https://127.0.0.1:{upstream.port}") as relay:
        head, body = relay.ask(post(PING))
    assert head.status == 502
    assert f"TLS with the upstream https://127.0.0.1:{upstream.port} failed" in body.decode()


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        (b"https://localhost:{port}/messages?session_id=1", b"/messages?session_id=1"),
        (b"HTTPS://127.0.0.1:{port}?a", b"/?a"),
        (b"//[::1]:{port}/m", b"/m"),
        (b"http://localhost:{port}/m", None),
        (b"https://localhost/m", None),
        (b"https://example.com:{port}/m", None),
        (b"/messages", None),
    ],
)
def test_an_absolute_endpoint_leads_through_us(tmp_path: Path, url: bytes, wanted: bytes | None) -> None:
    event = b"event: endpoint\ndata: " + url + b"\n\nevent: message\ndata: {}\n\n"
    with secured(tmp_path, stream(event), path="/sse") as it, it.relay.connect() as peer:
        PORTS[0] = it.terminator.port
        sent = event.replace(b"{port}", b"%d" % PORTS[0])
        peer.send(get("/sse"))
        got = peer.read_until(b"data: {}\n\n")
        assert it.relay.stop() == 0
        capture = it.relay.capture()
    body = got[got.index(b"event:") :].removesuffix(b"\r\n")
    assert len(body) == len(sent)
    assert (body == sent) == (wanted is None)
    rewrites = [what for _, kind, _, what in capture.records if kind == "rewrite"]
    assert len(rewrites) == (wanted is not None)
    if wanted is not None:
        assert body.startswith(b"event: endpoint\ndata: " + wanted + b"\n:")
        start, length, data = (rewrites[0][key] for key in ("start", "length", "data"))
        assert sent[:start] + data.encode() + sent[start + length :] == body
    recorded = capture.data(1)
    assert recorded == sent


def test_an_endpoint_in_pieces_is_held_only_until_its_event_is_whole(tmp_path: Path) -> None:
    go_on = threading.Event()

    def script(peer: Peer) -> None:
        peer.next_message()
        peer.send(EVENTS + b"Transfer-Encoding: chunked\r\n\r\n", chunk(b"event: endpoint\ndata: https://local"))
        go_on.wait(60)
        peer.send(chunk(b"host:%d/m\n" % PORTS[0]), chunk(b"\n"), chunk(b"data: 1\n\n"))
        peer.read()

    with secured(tmp_path, script, path="/sse") as it, it.relay.connect() as peer:
        PORTS[0] = it.terminator.port
        peer.send(get("/sse"))
        assert b"https" not in peer.read_until(b"data: ")
        go_on.set()
        assert b"https" not in peer.read_until(b"data: 1\n\n")
        assert b"/m\n:" in peer.came


def test_hang_ups_pass_at_once(tmp_path: Path) -> None:
    gone = threading.Event()

    def script(peer: Peer) -> None:
        head, _ = peer.next_message()
        peer.send(EVENTS + b"Transfer-Encoding: chunked\r\n\r\n" + chunk(b"data: 1\n\n"))
        if head.target == "/stays":
            peer.read()
            gone.set()

    with secured(tmp_path, script) as it:
        with it.relay.connect() as peer:
            peer.send(get("/stays"))
            peer.read_until(b"data: 1\n\n")
        assert gone.wait(60)
        with it.relay.connect() as peer:
            peer.send(get("/leaves"))
            peer.read_until(b"data: 1\n\n")
            began = time.monotonic()
            assert not peer.read_all().endswith(b"0\r\n\r\n")
            assert time.monotonic() - began < 10
        it.meta(4)
        capture = it.relay.capture()
    assert closes(capture)[1] == {"how": "aborted", "error": "the client closed its end"}
    assert closes(capture)[3] == {"how": "reset", "error": "the server closed its end"}


def test_a_server_that_says_nothing_and_hangs_up_is_passed_on_as_that(tmp_path: Path) -> None:
    with secured(tmp_path, lambda peer: peer.next_message()) as it, it.relay.connect() as peer:
        peer.send(post(PING))
        assert peer.read_all() == b""
        it.meta(2)
        capture = it.relay.capture()
    assert closes(capture) == {0: {"how": "eof"}, 1: {"how": "reset", "error": "the server closed its end"}}
    assert [kind for _, kind, _, _ in capture.records if kind == "rewrite"] == []


def test_an_idle_connection_that_the_server_ends_ends_for_the_client(tmp_path: Path) -> None:
    def script(peer: Peer) -> None:
        peer.next_message()
        peer.send(answer(b"ok"))

    with secured(tmp_path, script) as it, it.relay.connect() as peer:
        peer.send(post(PING))
        assert peer.next_message()[1] == b"ok"
        assert peer.read() == b""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_a_capture_that_is_complete(tmp_path: Path, number: int) -> None:
    with secured(tmp_path, stream(b"data: 1\n\n"), quiet=False, transcript=True) as it, it.relay.connect() as peer:
        peer.send(get("/mcp"))
        peer.read_until(b"data: 1\n\n")
        began = time.monotonic()
        assert it.relay.stop(number) == 0
        assert time.monotonic() - began < 9
        assert not peer.read_all().endswith(b"0\r\n\r\n")
        capture = it.relay.capture()
        (transcript,) = it.relay.folder.glob("*.md")
    assert closes(capture)[1] == {"how": "aborted", "error": "mcpsniff was stopped"}
    assert "GET /mcp" in transcript.read_text()
    assert b"GET" in it.relay.out
    assert "Traceback" not in it.relay.err.decode()


def test_an_answer_that_is_due_is_waited_for(tmp_path: Path) -> None:
    asked = threading.Event()

    def script(peer: Peer) -> None:
        peer.next_message()
        asked.set()
        time.sleep(0.5)
        peer.send(answer(b"late"))
        peer.read()

    with secured(tmp_path, script) as it, it.relay.connect() as peer:
        peer.send(post(PING))
        assert asked.wait(60)
        it.relay.process.send_signal(signal.SIGTERM)
        assert peer.next_message()[1] == b"late"
        assert it.relay.process.wait(60) == 0


def test_plain_and_secure_upstreams_in_one_command(tmp_path: Path) -> None:
    with Upstream(echo) as plain, secured(tmp_path, echo, f"other={plain.url}/x", "--quiet") as it:
        first, second = it.relay.addresses()
        assert first.endswith("/mcp")
        assert second.endswith("/x")
        for address in (first, second):
            with it.relay.connect(int(address.split(":")[2].split("/")[0])) as peer:
                peer.send(post(PING))
                assert peer.next_message()[1] == PING
        assert it.relay.stop() == 0
        kinds = {
            label: {what["kind"] for _, kind, _, what in it.relay.capture(label).records if kind == "open"}
            for label in ("other", "localhost")
        }
    assert kinds == {"other": {"tcp"}, "localhost": {"http-request", "http-response"}}


def test_a_port_in_use_is_told_with_who_has_it(tmp_path: Path) -> None:
    with secured(tmp_path, echo) as it:
        other = Relay(tmp_path / "two", it.terminator.url, "--insecure", "--listen", f"127.0.0.1:{it.relay.port}")
        assert other.process.wait(60) == 2
        assert wait_for(lambda: other.err.endswith(b"\n"))
    assert f"cannot listen at 127.0.0.1:{it.relay.port}: the port is in use" in other.err.decode()
