"""What is shown of traffic with a server behind TLS is what is shown of the same traffic in plain HTTP."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.cli.running import run
from tests.mitm.secure import secured
from tests.proxy.relayed import EVENTS, Peer, Relay, Upstream, answer, chunk, closes, get, post
from tests.proxy.wrapped import wait_for

TYPE = "Content-Type: application/json"
BEGIN = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
BEGUN = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
SESSION = (
    "Accept: application/json, text/event-stream",
    "Mcp-Session-Id: 0123456789",
    "MCP-Protocol-Version: 2025-11-25",
)
LOG = b'event: message\ndata: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}\n\n'


def message(number: int | None, method: str, params: dict[str, Any] | None = None) -> bytes:
    fields = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    return json.dumps({name: value for name, value in fields.items() if value is not None}).encode()


def script(peer: Peer) -> None:
    """Streamable HTTP; a call of `die` is not answered."""
    while True:
        head, body = peer.next_message()
        if head.method == "GET":
            peer.send(EVENTS + b"Transfer-Encoding: chunked\r\n\r\n" + chunk(LOG))
            peer.read()
            return
        request = json.loads(body)
        if request["method"] == "die":
            return
        if "id" not in request:
            peer.send(answer(b"", status="202 Accepted"))
            continue
        result = BEGUN if request["method"] == "initialize" else {}
        said = json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}).encode()
        peer.send(answer(said, TYPE, "Mcp-Session-Id: 0123456789"))


def talk(relay: Relay, end_server: Callable[[], object], closed: tuple[int, int, int]) -> Path:
    """Hold a session in which some things go wrong, and return its capture.

    ``closed`` is how many channels have ended after each of these things: nothing follows before that is recorded.
    """

    def recorded(count: int) -> None:
        relay.recorded(lambda capture: len(closes(capture)) >= count)

    with relay.connect() as peer:
        for request in (
            message(0, "initialize", BEGIN),
            message(None, "notifications/initialized"),
            message(1, "ping"),
        ):
            peer.send(post(request, TYPE, *(SESSION if b'initialize"' not in request else SESSION[:1])))
            peer.next_message()
        with relay.connect() as stream:
            stream.send(get("/mcp", *SESSION[1:]))
            stream.read_until(LOG)
        recorded(closed[0])
        peer.send(post(message(2, "die"), TYPE, *SESSION))
        assert peer.read_all() is not None
    recorded(closed[1])
    end_server()
    relay.ask(post(message(3, "ping"), TYPE, *SESSION))
    recorded(closed[2])
    assert relay.stop() == 0
    (path,) = relay.folder.glob("*.mcpcap")
    return path


def shown(path: Path) -> list[dict[str, Any]]:
    """The rows of a capture without what is of one engine alone: places, times, ends of channels, and heads."""
    done = run("show", str(path), "--format", "json")
    assert done.status == 0, done.err
    rows = [json.loads(line) for line in done.out.splitlines()]
    kept = []
    for row in rows:
        if row["type"] == "message":
            kept.append({name: row.get(name) for name in ("type", "kind", "method", "id", "dir", "bytes")})
        elif row["type"] == "exchange":
            kept.append({name: row.get(name) for name in ("type", "method", "state")})
        elif row["type"] == "http":
            kept.append({name: row.get(name) for name in ("type", "method", "target", "status", "state", "by")})
        elif row["type"] == "finding":
            kept.append({name: row.get(name) for name in ("type", "code", "blame")})
    return kept


def test_the_same_is_shown_of_both(tmp_path: Path) -> None:
    for name in ("plain", "tls"):
        (tmp_path / name).mkdir()
    with Upstream(script) as upstream, Relay(tmp_path / "plain", f"{upstream.url}/mcp") as relay:
        plain = shown(talk(relay, upstream.close, (2, 4, 6)))
    with secured(tmp_path / "tls", script) as it:
        secure = shown(talk(it.relay, it.terminator.close, (8, 10, 12)))
    assert plain == secure
    assert {row["code"] for row in secure if row["type"] == "finding"} >= {"MCP550", "MCP556"}
    assert {row["state"] for row in secure if row["type"] == "exchange"} >= {"answered", "abandoned"}


def test_a_refused_certificate_is_a_finding(tmp_path: Path) -> None:
    with secured(tmp_path, script, trusts=False, quiet=False) as it:
        it.relay.ask(post(message(0, "initialize", BEGIN), TYPE, SESSION[0]))
        assert wait_for(lambda: b"MCP556" in it.relay.out)
        it.relay.stop()
    said = " ".join(it.relay.out.decode().split())
    assert "certificate 1 in the chain of https://localhost" in said
    assert "Fix: Pass --upstream-ca FILE" in said
