"""The forward proxy: what passes through it, what of that is in the capture, and what is told of what does not work."""

import json
import socket
import ssl
import threading
from pathlib import Path

import pytest

from mcpsniff.capture.reader import open_capture
from mcpsniff.protocol.http import Http
from mcpsniff.proxy.mitm.distrust import SILENT
from mcpsniff.proxy.mitm.standing import summary
from mcpsniff.transcript.session import Session
from tests.cli.running import run
from tests.mitm.certificates import Authority
from tests.mitm.proxied import ASK, JSON, SAID, Proxy, home, served, serving, talk, upstream_ca
from tests.proxy.relayed import EVENTS, Peer, Upstream, answer, chunk, post
from tests.proxy.wrapped import PATIENCE, wait_for

__all__ = ["home", "upstream_ca"]


def test_mcp_is_recorded_and_nothing_else(tmp_path: Path, upstream_ca: Authority) -> None:
    proxy = Proxy(tmp_path, upstream_ca.file, [])
    with served(upstream_ca) as (upstream, secure), proxy.running():
        with Peer(proxy.connect()) as plain:
            place = f"http://127.0.0.1:{upstream.port}"
            other = post(b'{"secret":"word"}', JSON, target=f"{place}/api")
            assert talk(plain, other, post(ASK, JSON, target=f"{place}/plain")) == [b"private", SAID]
        with Peer(proxy.tunnel("127.0.0.1", upstream.port)) as inside:
            assert talk(inside, post(ASK, JSON, target="/inside")) == [SAID]
        with proxy.secure(secure.port, proxy.session.ca_path) as peer:
            asked = b"GET /secretpage HTTP/1.1\r\nHost: localhost\r\n\r\n"
            assert talk(peer, asked, post(ASK, JSON, target="/secure")) == [b"private", SAID]
    assert proxy.heads == ["POST /plain HTTP/1.1", "POST /inside HTTP/1.1", "POST /secure HTTP/1.1"]
    assert "private" not in proxy.file.read_text()
    assert "secret" not in proxy.file.read_text()
    assert (proxy.seen.recorded, proxy.seen.unrecorded, proxy.seen.connections) == (3, 2, 3)
    servers = [f"http://127.0.0.1:{upstream.port}", f"https://localhost:{secure.port}"]
    assert (list(proxy.seen.hosts), list(proxy.seen.others)) == (servers, [])
    lines = run("show", str(proxy.file), "--format", "json").out.splitlines()
    origins = [line["origin"] for line in map(json.loads, lines) if line["type"] == "exchange"]
    assert list(dict.fromkeys(origins)) == servers, "the same names as in what is said at the end"
    assert proxy.told == []


def test_everything_is_recorded_when_that_is_asked_for(tmp_path: Path) -> None:
    proxy = Proxy(tmp_path, None, [], everything=True)
    with Upstream(serving()) as upstream, proxy.running(), Peer(proxy.connect()) as peer:
        talk(peer, post(b"x=y", target=f"http://127.0.0.1:{upstream.port}/api"))
    assert proxy.heads == ["POST /api HTTP/1.1"]
    assert "private" in proxy.file.read_text()


def test_hosts_that_only_leaves_out_are_not_decrypted(tmp_path: Path, upstream_ca: Authority) -> None:
    """The client sees the server's own certificate."""
    proxy = Proxy(tmp_path, upstream_ca.file, ["mcp.example.com"])
    with served(upstream_ca) as (upstream, secure), proxy.running():
        with proxy.secure(secure.port, upstream_ca.file) as peer:
            assert talk(peer, post(ASK, JSON)) == [SAID]
        with Peer(proxy.connect()) as plain:
            assert talk(plain, post(ASK, JSON, target=f"http://127.0.0.1:{upstream.port}/mcp")) == [SAID]
    assert proxy.heads == []
    places = [f"localhost:{secure.port}", f"127.0.0.1:{upstream.port}"]
    assert (proxy.seen.recorded, list(proxy.seen.others)) == (0, places)


def test_hosts_that_only_names_are(tmp_path: Path, upstream_ca: Authority) -> None:
    proxy = Proxy(tmp_path, upstream_ca.file, ["localhost"])
    with (
        served(upstream_ca) as (_, secure),
        proxy.running(),
        proxy.secure(secure.port, proxy.session.ca_path) as peer,
    ):
        assert talk(peer, post(ASK, JSON)) == [SAID]
    assert proxy.heads == ["POST /mcp HTTP/1.1"]


def test_what_is_no_http_passes_untouched_whoever_speaks_first(tmp_path: Path) -> None:
    def script(peer: Peer) -> None:
        peer.send(b"220 hello\r\n")
        peer.read_until(b"\x00\x01end")
        peer.send(b"\xff\xfebye")

    proxy = Proxy(tmp_path, None, [])
    with Upstream(script) as upstream, proxy.running(), Peer(proxy.tunnel("127.0.0.1", upstream.port)) as peer:
        assert peer.read_until(b"\r\n") == b"220 hello\r\n"
        peer.send(b"EHLO x\r\n\x00\x01", b"end")
        assert peer.read_all() == b"220 hello\r\n\xff\xfebye"
    assert [kind for _, kind, _, _ in proxy.records] == ["comment"]  # that nothing is recorded


def test_an_event_passes_when_it_comes(tmp_path: Path) -> None:
    event = b"event: endpoint\ndata: /messages?sid=1\n\n"

    def script(peer: Peer) -> None:
        peer.next_message()
        peer.send(EVENTS + b"Transfer-Encoding: chunked\r\n\r\n", chunk(b": hi\n\n"))
        peer.send(chunk(event))
        peer.read()  # until the client leaves

    proxy = Proxy(tmp_path, None, [])
    with Upstream(script) as upstream, proxy.running(), Peer(proxy.connect()) as peer:
        peer.send(f"GET http://127.0.0.1:{upstream.port}/sse HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        peer.read_until(event)
    data = [body for _, kind, channel, body in proxy.records if kind == "chunk" and channel == 1]
    assert "".join(data) == f": hi\n\n{event.decode()}"  # what came before the verdict, too


def test_what_was_held_keeps_its_time_while_others_are_recorded(tmp_path: Path) -> None:
    asked, others = threading.Event(), threading.Event()

    def script(peer: Peer) -> None:
        head, _ = peer.next_message()
        if head.method == "POST":
            peer.send(answer(SAID, JSON))
            return
        asked.set()
        assert others.wait(PATIENCE)
        peer.send(EVENTS + b"Content-Length: 39\r\n\r\nevent: endpoint\ndata: /messages?sid=1\n\n")

    proxy = Proxy(tmp_path, None, [])
    with Upstream(script) as upstream, proxy.running(), Peer(proxy.connect()) as stream, Peer(proxy.connect()) as peer:
        place = f"http://127.0.0.1:{upstream.port}"
        stream.send(f"GET {place}/sse HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert asked.wait(PATIENCE)
        assert talk(peer, post(ASK, JSON, target=f"{place}/mcp")) == [SAID]
        others.set()
        stream.next_message()
    assert proxy.heads == ["POST /mcp HTTP/1.1", "GET /sse HTTP/1.1"], "in the order in which they became certain"
    events = [event for some in Session(open_capture(str(proxy.file)), "x").events() for event in some]
    by_method = {event.exchange.method: event.exchange for event in events if isinstance(event, Http)}
    request, stream_of = by_method["POST"], by_method["GET"]
    assert request.t_end is not None
    assert stream_of.t_response is not None
    assert stream_of.t_request < request.t_request < request.t_end < stream_of.t_response


def test_a_client_that_does_not_trust_us_is_told_of(tmp_path: Path, upstream_ca: Authority) -> None:
    proxy = Proxy(tmp_path, upstream_ca.file, [])
    with served(upstream_ca) as (_, secure), proxy.running():
        for _ in range(2):
            with pytest.raises(ssl.SSLCertVerificationError):
                proxy.secure(secure.port, upstream_ca.file)
        assert wait_for(lambda: bool(proxy.told))
    assert list(proxy.seen.refusals) == [(f"localhost:{secure.port}", "unknown ca")]
    assert len(proxy.told) == 1
    assert proxy.session.ca_path in proxy.told[0]
    assert "mcpsniff ca" in proxy.told[0]
    assert "MCP558" in run("show", str(proxy.file)).out
    comments = [body["text"] for _, kind, _, body in proxy.records if kind == "comment"]
    assert f"a client refused mcpsniff's certificate for localhost:{secure.port} (unknown ca)" in comments
    assert summary(proxy.seen) == f"nothing is recorded: what a client had to say to localhost:{secure.port} is unknown"


def test_so_is_one_that_looks_at_the_certificate_after_the_handshake(tmp_path: Path, upstream_ca: Authority) -> None:
    """As Node does: it closes the connection, and sends no alert."""
    proxy = Proxy(tmp_path, upstream_ca.file, [])
    with served(upstream_ca) as (_, secure), proxy.running():
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.wrap_socket(proxy.tunnel("localhost", secure.port), server_hostname="localhost").close()
        assert wait_for(lambda: bool(proxy.told))
    place = f"localhost:{secure.port}"
    assert (list(proxy.seen.refusals), list(proxy.seen.suspects)) == ([], [(place, SILENT)])
    assert proxy.told == [
        f"a client {SILENT} for {place}; if it always does, it may not trust mcpsniff's certificates (mcpsniff ca)"
    ]
    shown = " ".join(run("show", str(proxy.file)).out.split())
    assert f"the client probably does not trust mcpsniff's authority: it {SILENT} for {place}" in shown


def test_a_host_that_some_client_has_spoken_to_is_not_suspected(tmp_path: Path, upstream_ca: Authority) -> None:
    proxy = Proxy(tmp_path, upstream_ca.file, [])
    with served(upstream_ca) as (_, secure), proxy.running():
        with proxy.secure(secure.port, proxy.session.ca_path) as peer:
            talk(peer, post(ASK, JSON))
        proxy.secure(secure.port, proxy.session.ca_path).socket.close()
    assert (list(proxy.seen.refusals), list(proxy.seen.suspects)) == ([], [])


def test_whoever_speaks_to_it_later_takes_a_suspicion_back(tmp_path: Path, upstream_ca: Authority) -> None:
    proxy = Proxy(tmp_path, upstream_ca.file, [])
    with served(upstream_ca) as (_, secure), proxy.running():
        proxy.secure(secure.port, proxy.session.ca_path).socket.close()
        assert wait_for(lambda: bool(proxy.told))
        with proxy.secure(secure.port, proxy.session.ca_path) as peer:
            talk(peer, post(ASK, JSON))
    assert list(proxy.seen.suspects) == []
    assert "MCP558" not in run("show", str(proxy.file)).out


def test_a_server_that_is_not_trusted_is_told_of_with_what_to_pass(tmp_path: Path) -> None:
    proxy = Proxy(tmp_path, None, [])
    with (
        served(Authority(tmp_path, "stranger")) as (_, secure),
        proxy.running(),
        proxy.secure(secure.port, proxy.session.ca_path) as peer,
    ):
        peer.send(post(ASK, JSON))
        head, _ = peer.next_message()
    assert (head.status, (head.get("server") or "").partition("/")[0]) == (502, "mcpsniff")
    assert proxy.heads == ["POST /mcp HTTP/1.1"]
    assert [body["by"] for _, kind, _, body in proxy.records if kind == "rewrite"] == ["mcpsniff"]
    assert len(proxy.told) == 1
    assert "is not trusted" in proxy.told[0]
    assert "--upstream-ca" in proxy.told[0]


def test_a_server_that_is_not_there_is_told_of(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    proxy = Proxy(tmp_path, None, [])
    with proxy.running(), Peer(proxy.connect()) as peer:
        peer.send(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert b" 502 " in peer.read_until(b"\r\n\r\n")
    assert len(proxy.told) == 1
    assert f"127.0.0.1:{port}" in proxy.told[0]


def test_oauth_of_a_server_is_recorded_and_its_secrets_are_not(tmp_path: Path) -> None:
    as_pages: dict[str, bytes] = {}
    with Upstream(serving(as_pages)) as authorization:
        issuer = f"http://127.0.0.1:{authorization.port}"
        metadata = {"issuer": issuer, "token_endpoint": f"{issuer}/t"}
        as_pages["/.well-known/oauth-authorization-server"] = answer(json.dumps(metadata).encode(), JSON)
        as_pages["/t"] = answer(b'{"access_token":"tok3n"}', JSON)
        pages: dict[str, bytes] = {}
        with Upstream(serving(pages)) as upstream:
            place = f"http://127.0.0.1:{upstream.port}"
            known = f"{place}/.well-known/oauth-protected-resource"
            pages["/mcp"] = answer(b"", f'WWW-Authenticate: Bearer resource_metadata="{known}"', status="401 No")
            pages["/.well-known/oauth-protected-resource"] = answer(
                json.dumps({"resource": f"{place}/mcp", "authorization_servers": [issuer]}).encode(), JSON
            )
            proxy = Proxy(tmp_path, None, [])
            form = "Content-Type: application/x-www-form-urlencoded"
            with proxy.running(), Peer(proxy.connect()) as peer:
                read = "GET {} HTTP/1.1\r\nHost: x\r\n\r\n"
                talk(peer, read.format(known).encode(), post(ASK, JSON, target=f"{place}/mcp"))
                talk(peer, post(b"user=u&pass=p", form, target=f"{issuer}/login"))
                talk(peer, read.format(known).encode())
                talk(peer, read.format(f"{issuer}/.well-known/oauth-authorization-server").encode())
                talk(peer, post(b"grant_type=authorization_code&code=c0de", form, target=f"{issuer}/t"))
    assert [head.split(" ")[1] for head in proxy.heads] == [
        "/mcp",
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-authorization-server",
        "/t",
    ]
    written = proxy.file.read_text()
    assert [secret for secret in ("tok3n", "c0de", "user=u") if secret in written] == []


def test_a_server_that_is_gone_is_answered_for_and_the_request_recorded(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    proxy = Proxy(tmp_path, None, [])
    with proxy.running(), Peer(proxy.connect()) as peer:
        accept = "Accept: application/json, text/event-stream"
        peer.send(post(ASK, JSON, accept, target=f"http://127.0.0.1:{port}/mcp"))
        head, body = peer.next_message()
    assert head.status == 502
    error = json.loads(body)["error"]  # the same as of mcpsniff http
    assert (error["code"], error["data"]["by"]) == (-32000, "mcpsniff")
    assert f"cannot reach the upstream http://127.0.0.1:{port} (127.0.0.1:{port}: " in error["message"]
    assert "MCP556" in run("show", str(proxy.file)).out
    assert proxy.heads == ["POST /mcp HTTP/1.1"]
    chunks = [body for _, kind, _, body in proxy.records if kind == "chunk"]
    assert chunks == [ASK.decode()]


@pytest.mark.parametrize("in_a_tunnel", [False, True])
def test_a_server_that_hangs_up_hangs_up(tmp_path: Path, in_a_tunnel: bool) -> None:
    def script(peer: Peer) -> None:
        peer.next_message()
        peer.reset()

    proxy = Proxy(tmp_path, None, [])
    with Upstream(script) as upstream, proxy.running():
        place = "" if in_a_tunnel else f"http://127.0.0.1:{upstream.port}"
        connection = proxy.tunnel("127.0.0.1", upstream.port) if in_a_tunnel else proxy.connect()
        with Peer(connection) as peer:
            peer.send(post(ASK, JSON, target=f"{place}/mcp"))
            assert peer.read_all() == b""
    assert [body["how"] for _, kind, channel, body in proxy.records if kind == "close" and channel == 1] == ["reset"]


def test_a_client_may_go_on_with_other_servers(tmp_path: Path) -> None:
    """On one connection, when one of them has ended its own."""

    def once(peer: Peer) -> None:
        peer.next_message()
        peer.send(answer(SAID, JSON))

    proxy = Proxy(tmp_path, None, [])
    with Upstream(once) as first, Upstream(once) as second, proxy.running(), Peer(proxy.connect()) as peer:
        for upstream in (first, second, first):
            assert talk(peer, post(ASK, JSON, target=f"http://127.0.0.1:{upstream.port}/mcp")) == [SAID]
    assert len(proxy.heads) == 3


def test_a_request_that_takes_the_proxy_for_a_server_is_told_so(tmp_path: Path) -> None:
    proxy = Proxy(tmp_path, None, [])
    with proxy.running(), Peer(proxy.connect()) as peer:
        peer.send(post(ASK, JSON, host=f"localhost.:{proxy.port}"))
        head, body = peer.next_message()
    assert head.status == 403
    assert b"this is a proxy" in body
    assert proxy.seen.connections == 1  # it was not passed on to where Host says
    assert proxy.heads == ["POST /mcp HTTP/1.1"]  # one who gives it as a server's address can see that
