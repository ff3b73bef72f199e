"""Clients that speak, or begin to speak, something else than HTTP/1.1."""

from pathlib import Path

import pytest

from mcpsniff.proxy.farewell import STALLED
from tests.cli.running import run
from tests.proxy.relayed import Peer, Relay, Upstream, answer, closes, echo, get, post

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
UPGRADE = "Upgrade: h2c"


@pytest.mark.parametrize("has_server_agreed", [True, False])
def test_requests_are_screened_until_the_server_agrees_to_another_protocol(
    tmp_path: Path, has_server_agreed: bool
) -> None:
    def script(peer: Peer) -> None:
        peer.next_message()
        if has_server_agreed:
            peer.send(b"HTTP/1.1 101 Switching Protocols\r\n" + UPGRADE.encode() + b"\r\n\r\n")
            while data := peer.read():
                peer.send(data)
        else:
            peer.send(answer(b"no"))
            echo(peer)

    with Upstream(script) as upstream, Relay(tmp_path, upstream.url, "--host-header", "upstream") as relay:
        own = f"127.0.0.1:{relay.port}"
        with relay.connect() as client:
            client.send(get("/", UPGRADE, "Connection: Upgrade", host=own))
            client.read_until(b"\r\n\r\n" if has_server_agreed else b"no")
            began = len(client.came)
            client.send(post(PING, host=own))
            client.read_until(PING)
            client.send(post(b"evil", host="evil.example"))
            client.read_until(b"evil")
            came = client.came[began:]
        seen = upstream.peers[0].came
        if has_server_agreed:
            assert came == post(PING, host=own) + post(b"evil", host="evil.example")
        else:
            assert came.startswith(answer(PING))
            assert b" 403 " in came
            assert own.encode() not in seen
            assert b"evil" not in seen


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "is TLS"),
        (b"\x00\x01", "cannot be read as HTTP/1.1"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "cannot be read as HTTP/1.1"),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n', "cannot be read as HTTP/1.1"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "cannot be read as HTTP/1.1"),
    ],
)
@pytest.mark.parametrize("screens", [False, True])
def test_what_is_no_http_is_answered_at_once_and_that_is_in_the_capture(
    tmp_path: Path, said: bytes, told: str, screens: bool
) -> None:
    with Upstream(echo) as upstream:
        url = upstream.url
    with Relay(tmp_path, url, *(["--host-header", "upstream"] if screens else [])) as relay:
        with relay.connect() as client:
            client.socket.settimeout(STALLED / 2)
            client.send(said)
            came = client.read_all()
        capture = relay.recorded(lambda capture: len(closes(capture)) == 2)
    assert b" 502 " in came
    assert url.encode() in came
    assert told in came.decode()
    (rewrite,) = capture.bodies("rewrite", 1)
    assert rewrite["data"].encode() == came
    assert capture.data(0) == said


def test_a_server_that_expects_tls_is_named_once_and_passes_as_it_is(tmp_path: Path) -> None:
    said = [
        b"\x15\x03\x03\x00\x02\x02\x0a",
        b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n",
    ]
    turns = iter(said)

    def script(peer: Peer) -> None:
        peer.next_message()
        peer.send(next(turns))

    with Upstream(script) as upstream, Relay(tmp_path, f"{upstream.url}/mcp") as relay:
        for expected, request in zip(said, (get(), post(PING)), strict=True):
            with relay.connect() as client:
                client.send(request)
                assert client.read_all() == expected
        assert relay.stop() == 0
        text = f"the upstream {upstream.url} expects TLS: give {upstream.url.replace('http:', 'https:')}/mcp"
        assert relay.err.decode().count(text) == 1
        shown = run("show", str(relay.capture().path)).out
    assert shown.count("error MCP559") == 2
    assert "MCP550" not in shown
    assert "MCP552" not in shown


def test_a_server_that_quotes_another_which_expects_tls_is_not_taken_for_it(tmp_path: Path) -> None:
    quoted = b'{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"The plain HTTP request was sent to HTTPS port"}}'

    def script(peer: Peer) -> None:
        peer.next_message()
        peer.send(answer(quoted, "Content-Type: application/json", status="400 Bad Request"))

    with Upstream(script) as upstream, Relay(tmp_path, f"{upstream.url}/mcp") as relay:
        assert relay.ask(post(PING))[1] == quoted
        assert relay.stop() == 0
        assert relay.err == b""
        assert "MCP559" not in run("show", str(relay.capture().path)).out
