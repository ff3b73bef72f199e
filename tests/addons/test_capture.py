"""addons/mcp_capture.py in stock mitmdump, beside `mcpsniff http` for the same talk."""

import json
import re
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mitmproxy.io import FlowReader

from mcpsniff.capture.reader import open_capture
from tests.addons.stock import Mitmdump
from tests.importers.talk import INITIALIZE, RESULT, SECRET, SESSION, decoded, event, said
from tests.proxy.relayed import EVENTS, JSON, Peer, Relay, Upstream, answer, chunk, get, post

OPENED = (f"Mcp-Session-Id: {SESSION}", "MCP-Protocol-Version: 2025-11-25")
USUAL = (
    "Content-Type: application/json",
    "Accept: application/json, text/event-stream",
    f"Authorization: Bearer {SECRET}",
)
STREAM = EVENTS + b"Transfer-Encoding: chunked\r\n\r\n"


class Streamable:
    """A server of Streamable HTTP with faults, and a client of it with others."""

    def __init__(self) -> None:
        self.listens = threading.Event()
        self.pinged = threading.Event()

    def serve(self, peer: Peer) -> None:
        while True:
            head, body = peer.next_message()
            if head.method == "GET":
                peer.send(STREAM, chunk(b"retry: 500\nid: 1\ndata:\n\n"))
                self.listens.set()
                self.pinged.wait(5)
                peer.send(chunk(event(id=7, method="ping")), chunk(b": alive\n\n"))
                peer.read()
                return
            self._answer(peer, json.loads(body) if body.endswith(b"}") else {})

    def _answer(self, peer: Peer, message: dict[str, Any]) -> None:
        method = message.get("method")
        if method == "initialize":
            peer.send(
                answer(said(id=message["id"], result=RESULT), JSON.decode().strip(), f"Mcp-Session-Id: {SESSION}")
            )
        elif method == "tools/list":
            peer.send(STREAM, chunk(event(id=message["id"], result={"tools": []})), chunk(b""))
        elif method == "tools/call":
            progress = event(method="notifications/progress", params={"progressToken": "unknown", "progress": 1})
            peer.send(STREAM, chunk(progress), chunk(b"data: not json\n\n"))
            peer.send(chunk(event(id=99, result={})), chunk(event(id=message["id"], error={"code": "x"})), chunk(b""))
        elif message:
            peer.send(answer(status="202 Accepted"))
        else:
            peer.send(answer(b"hello", "Content-Type: text/plain", status="404 Not Found"))

    def talk(self, connect: Callable[[], Peer]) -> None:
        with connect() as posts, connect() as listens:
            posts.send(post(said(id=0, method="initialize", params=INITIALIZE), *USUAL))
            posts.next_message()
            for body in (said(method="notifications/initialized"), said(id="a", method="tools/list")):
                posts.send(post(body, *USUAL, *OPENED))
                posts.next_message()
            listens.send(get("/mcp", *USUAL, *OPENED))
            assert self.listens.wait(5)
            listens.read_until(b"id: 1\n")
            self.pinged.set()
            listens.read_until(b": alive")
            for body in (
                said(id=7, result={}),
                said(id="a", method="tools/call", params={"name": "x", "_meta": {"progressToken": 1}}),
                b'{"jsonrpc":"2.0","method":"notifications/x"',
            ):
                posts.send(post(body, *USUAL, *OPENED))
                posts.next_message()


class Legacy:
    """A server of HTTP with SSE, and a client of it."""

    def __init__(self) -> None:
        self._stream: Peer | None = None

    def serve(self, peer: Peer) -> None:
        while True:
            head, body = peer.next_message()
            if head.method == "GET":
                peer.send(STREAM, chunk(b"event: endpoint\ndata: /messages?sessionId=4f0c\n\n"))
                self._stream = peer
                peer.read()
                return
            peer.send(answer(b"Accepted", status="202 Accepted"))
            message = json.loads(body)
            assert self._stream is not None
            if message.get("method") == "initialize":
                result = {**RESULT, "protocolVersion": "2024-11-05"}
                self._stream.send(chunk(event(id=message["id"], result=result)))
            elif "id" in message:
                self._stream.send(chunk(event(id=message["id"], result={"tools": [{"name": "a"}]})))

    def talk(self, connect: Callable[[], Peer]) -> None:
        with connect() as posts, connect() as stream:
            stream.send(get("/sse"))
            stream.read_until(b"sessionId")
            opening = {**INITIALIZE, "protocolVersion": "2024-11-05"}
            for body, awaited in (
                (said(id=0, method="initialize", params=opening), b'"id": 0'),
                (said(method="notifications/initialized"), b""),
                (said(id=1, method="tools/list"), b'"id": 1'),
            ):
                posts.send(post(body, *USUAL, target="/messages?sessionId=4f0c"))
                posts.next_message()
                stream.read_until(awaited)


def compared(path: str) -> tuple[list[Any], Any, Any]:
    """What was said and found, without what is of the connection."""
    messages, exchanges, findings = decoded(path)
    return (
        sorted((one.direction, one.kind, one.method or "", one.raw, one.flaws) for one in messages),
        Counter((one.direction, one.method, str(one.id), one.state) for one in exchanges),
        Counter(
            (one.code, one.severity, one.blame, re.sub(r"(message|#) ?\d+", "message N", one.text)) for one in findings
        ),
    )


@pytest.mark.parametrize("kind", [Streamable, Legacy])
def test_it_sees_what_mcpsniff_http_sees(tmp_path: Path, kind: type[Streamable | Legacy]) -> None:
    talk = kind()
    with Upstream(talk.serve) as upstream, Relay(tmp_path / "relay", f"{upstream.url}/mcp") as relay:
        talk.talk(relay.connect)
        assert relay.stop() == 0
    (relayed,) = relay.folder.glob("*.mcpcap")
    talk = kind()
    (tmp_path / "stock").mkdir()
    with Upstream(talk.serve) as upstream, Mitmdump(tmp_path / "stock", upstream.url) as stock:
        talk.talk(stock.connect)
        assert stock.stop() == 0
    (captured,) = stock.folder.glob("mitmproxy-*.mcpcap")
    assert "Traceback" not in stock.log
    assert f"recording to {captured}" in stock.log
    assert SECRET not in captured.read_text()
    wanted, got = compared(str(relayed)), compared(str(captured))
    assert len(wanted[0]) > 4
    assert got == wanted


def test_what_is_no_mcp_stays_out_and_an_empty_capture_is_removed(tmp_path: Path) -> None:
    def serve(peer: Peer) -> None:
        while True:
            peer.next_message()
            peer.send(answer(b'{"answer":42}', JSON.decode().strip()))

    with Upstream(serve) as upstream:
        with Mitmdump(tmp_path, upstream.url) as stock:
            with stock.connect() as peer:
                peer.send(get("/api"))
                assert peer.next_message()[1] == b'{"answer":42}'
            assert stock.stop() == 0
        assert list(stock.folder.glob("*.mcpcap")) == []
        with Mitmdump(tmp_path, upstream.url, "--set", "mcp_all=true", "--set", "mcp_label=all") as stock:
            with stock.connect() as peer:
                peer.send(get("/api"))
                peer.next_message()
            assert stock.stop() == 0
    (path,) = stock.folder.glob("all-*.mcpcap")
    assert '{\\"answer\\":42}' in path.read_text()


OTHER_ADDON = """
from mitmproxy import http

def request(flow):
    if flow.request.path == "/own":
        flow.response = http.Response.make(200, b'{"jsonrpc":"2.0","id":1,"result":{}}', {"Content-Type": "text/json"})

def responseheaders(flow):
    if flow.request.path == "/streams":
        flow.response.stream = lambda data: data.upper()

def response(flow):
    if flow.request.path == "/changes":
        flow.response.content = b'{"changed":1}'
"""


def test_other_addons_go_on_working_and_what_they_take_away_is_admitted(tmp_path: Path) -> None:
    other = tmp_path / "other.py"
    other.write_text(OTHER_ADDON)
    said_so = said(id=1, result={})

    def serve(peer: Peer) -> None:
        while True:
            peer.next_message()
            peer.send(answer(said_so, JSON.decode().strip()))

    asked = said(id=1, method="tools/list")
    flows = tmp_path / "saved.flows"
    with Upstream(serve) as upstream, Mitmdump(tmp_path, upstream.url, "-s", str(other), "-w", str(flows)) as stock:
        got = []
        for place in ("/own", "/streams", "/changes"):
            with stock.connect() as peer:
                peer.send(post(asked, *USUAL, target=place))
                got.append(peer.next_message()[1])
        assert stock.stop() == 0
    assert got == [b'{"jsonrpc":"2.0","id":1,"result":{}}', said_so.upper(), b'{"changed":1}']
    assert "rror" not in stock.log
    with flows.open("rb") as file:
        assert len(list(FlowReader(file).stream())) == 3
    (path,) = stock.folder.glob("*.mcpcap")
    records = list(open_capture(str(path)).records())
    answers = {one.channel for one in records if one.kind == "open" and one.body["dir"] == "s2c"}
    bodies = [one.body for one in records if one.kind == "chunk" and one.channel in answers]
    assert bodies == [b'{"jsonrpc":"2.0","id":1,"result":{}}', said_so]
    gaps = [one.body for one in records if one.kind == "gap"]
    assert gaps == [{"bytes": 0, "why": "another addon let it stream"}]
    assert sum(one.kind == "close" for one in records) == 6
