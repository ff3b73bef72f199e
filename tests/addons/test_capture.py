"""addons/mcp_capture.py in stock mitmdump, beside `mcpsniff http` for the same talk."""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from mitmproxy.io import FlowReader

from mcpsniff.capture.reader import open_capture
from mcpsniff.checks import Finding
from mcpsniff.decoder import Decoder
from mcpsniff.protocol.exchange import Exchange
from mcpsniff.protocol.http import Http
from mcpsniff.protocol.message import Message
from tests.addons.stock import ADDONS, Mitmdump
from tests.addons.talks import USUAL, Legacy, Scripted, Streamable, Talk
from tests.importers.talk import SECRET, event, flow_file, said, session
from tests.proxy.relayed import JSON, Peer, Relay, Upstream, answer, chunk, get, post
from tests.proxy.wrapped import wait_for


def compared(path: str) -> dict[str, Any]:
    """What was said and found, without what is of the connection."""
    capture = open_capture(path)
    decoder = Decoder(capture.header)
    events = [event for record in capture.records() for event in decoder.feed(record)] + decoder.finish()
    assert not capture.damage
    messages = [one for one in events if isinstance(one, Message)]
    exchanges = [one for one in events if isinstance(one, Exchange)]
    findings = [one for one in events if isinstance(one, Finding)]
    https = [one.exchange for one in events if isinstance(one, Http) and one.is_first]
    return {
        "messages": sorted((one.direction, one.kind, one.method or "", one.raw, one.flaws) for one in messages),
        "exchanges": Counter((one.direction, one.method, str(one.id), one.state) for one in exchanges),
        "findings": Counter(
            (one.code, one.severity, one.blame, re.sub(r"(message|#) ?\d+", "message N", one.text)) for one in findings
        ),
        "http": Counter((one.method, one.target, one.status, one.auth and one.auth.name) for one in https),
    }


@pytest.mark.parametrize("kind", [Streamable, Legacy, Scripted])
def test_it_sees_what_mcpsniff_http_sees(tmp_path: Path, kind: type[Talk]) -> None:
    talks: list[Talk] = []
    (tmp_path / "stock").mkdir()
    with (
        Upstream(lambda peer: talks[-1].serve(peer)) as upstream,  # noqa: PLW0108 - the latest one
        Mitmdump(tmp_path / "stock", upstream.url) as stock,
        Relay(tmp_path / "relay", f"{upstream.url}/mcp") as relay,
    ):
        for proxy in (relay, stock):
            talks.append(kind())
            talks[-1].talk(proxy.connect, f"127.0.0.1:{upstream.port}")
        assert (relay.stop(), stock.stop()) == (0, 0)
    (relayed,) = relay.folder.glob("*.mcpcap")
    (captured,) = stock.folder.glob("mitmproxy-*.mcpcap")
    assert "Traceback" not in stock.log
    assert f"recording to {captured}" in stock.log
    assert f"recorded in {captured}" in stock.log
    assert SECRET not in captured.read_text()
    wanted, got = compared(str(relayed)), compared(str(captured))
    assert len(wanted["messages"]) > (80 if kind is Scripted else 4)
    steps = {one[3] for one in wanted["http"]}
    assert (len(steps) > 5) == (kind is Scripted)
    assert len(wanted["findings"]) > 3 or kind is Legacy
    for what in wanted:
        assert got[what] == wanted[what], what


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
        words = ["--set", "mcp_all=true", "--set", "mcp_label=all"]
        with Mitmdump(tmp_path, upstream.url, *words, transcript=True) as stock:
            with stock.connect() as peer:
                peer.send(get("/api"))
                peer.next_message()
            assert stock.stop() == 0
    (path,) = stock.folder.glob("all-*.mcpcap")
    assert '{\\"answer\\":42}' in path.read_text()
    transcript = path.with_suffix(".md")
    assert f"a transcript is being written to {transcript}" in stock.log
    assert wait_for(lambda: transcript.exists() and "GET /api" in transcript.read_text())


OTHER_ADDON = """
from mitmproxy import ctx, http

def running():
    ctx.master.addons.add(Behind())

class Behind:
    def responseheaders(self, flow):
        if flow.request.path == "/behind":
            flow.response.stream = lambda data: data

def requestheaders(flow):
    if flow.request.path == "/streams":
        flow.request.stream = True

def request(flow):
    if flow.request.path == "/own":
        flow.response = http.Response.make(200, b'{"jsonrpc":"2.0","id":1,"result":{}}', {"Content-Type": "text/json"})

def responseheaders(flow):
    if flow.request.path == "/streams":
        flow.response.stream = lambda data: data.upper()
    if flow.request.path == "/wraps":
        before = flow.response.stream
        flow.response.stream = lambda data: before(data).upper()
    if flow.request.path == "/holds":
        flow.response.stream = False

def response(flow):
    if flow.request.path == "/changes":
        flow.response.content = b'{"changed":1}'
"""
OWN = b'{"jsonrpc":"2.0","id":1,"result":{}}'


def test_other_addons_go_on_working_and_what_they_take_away_is_admitted(tmp_path: Path) -> None:
    other = tmp_path / "other.py"
    other.write_text(OTHER_ADDON)
    said_so, sent = said(id=1, result={}), event(id=1, result={})

    def serve(peer: Peer) -> None:
        while True:
            head, _ = peer.next_message()
            is_json = head.target in ("/streams", "/changes")
            kind = JSON.decode() if is_json else "Content-Type: text/event-stream"
            peer.send(answer(said_so if is_json else sent, kind.strip()))

    asked = said(id=1, method="tools/list")
    flows = tmp_path / "saved.flows"
    places = ("/own", "/streams", "/wraps", "/holds", "/changes", "/behind")
    with Upstream(serve) as upstream, Mitmdump(tmp_path, upstream.url, "-s", str(other), "-w", str(flows)) as stock:
        got = []
        for place in places:
            with stock.connect() as peer:
                peer.send(post(asked, *USUAL, target=place))
                got.append(peer.next_message()[1])
        assert stock.stop() == 0
    assert got == [OWN, said_so.upper(), sent.upper(), sent, b'{"changed":1}', sent]
    assert "rror" not in stock.log
    with flows.open("rb") as file:
        assert len(list(FlowReader(file).stream())) == len(places)
    (path,) = stock.folder.glob("*.mcpcap")
    records = list(open_capture(str(path)).records())
    answers = {one.channel for one in records if one.kind == "open" and one.body["dir"] == "s2c"}
    bodies = [one.body for one in records if one.kind == "chunk" and one.channel in answers]
    assert bodies == [OWN, said_so, sent, sent, said_so]
    assert [one.body for one in records if one.kind == "chunk" and one.channel not in answers] == [asked] * len(places)
    gaps = [one.body for one in records if one.kind == "gap"]
    assert gaps == [{"bytes": 0, "why": "another addon let it stream"}]
    assert sum(one.kind == "close" for one in records) == 2 * len(places)


def test_a_request_that_streams_past_unseen_is_not_said_to_be_no_mcp(tmp_path: Path) -> None:
    asked = said(id=1, method="tools/list", params={"long": "x" * 4000})
    head = b"\r\n".join([b"POST /x HTTP/1.1", b"Host: a", b"Content-Type: application/json"])

    def serve(peer: Peer) -> None:
        assert peer.next_message()[1] == asked
        peer.send(answer(said(id=1, result={}), JSON.decode().strip()))

    with Upstream(serve) as upstream, Mitmdump(tmp_path, upstream.url, "--set", "stream_large_bodies=1k") as stock:
        with stock.connect() as peer:
            peer.send(head + b"\r\nTransfer-Encoding: chunked\r\n\r\n", chunk(asked), chunk(b""))
            peer.next_message()
        assert stock.stop() == 0
    (path,) = stock.folder.glob("*.mcpcap")
    assert f"recorded in {path}" in stock.log
    records = list(open_capture(str(path)).records())
    assert next(one.body["meta"]["start"] for one in records if one.kind == "open") == "POST /x HTTP/1.1"
    assert {"bytes": 0, "why": "another addon let it stream"} in [one.body for one in records if one.kind == "gap"]


def test_what_was_loaded_is_no_traffic_and_may_be_imported(tmp_path: Path) -> None:
    flows = tmp_path / "loaded.flows"
    flows.write_bytes(flow_file(session()))
    with Mitmdump(tmp_path, "http://127.0.0.1:9", "-n", "-r", str(flows)) as stock:
        assert stock.process.wait(60) == 0
    assert f"mcpsniff: 5 exchanges were loaded, and did not pass: mcpsniff import {flows} makes a capture" in stock.log
    assert "mcpsniff: no capture is left" in stock.log
    assert "no MCP" not in stock.log


def test_quiet_it_says_on_stderr_where_the_capture_is_and_what_flows_lack(tmp_path: Path) -> None:
    with Mitmdump(tmp_path, "http://127.0.0.1:9", "-q", "-w", str(tmp_path / "flows")) as stock:
        (path,) = stock.folder.glob("*.mcpcap")
        assert path.read_bytes().endswith(b"\n"), "whoever looks finds a capture"
        assert stock.stop() == 0
    assert stock.log.splitlines() == [
        "mcpsniff: event streams pass as they come, so -w lacks their bodies; store_streamed_bodies=true keeps them",
        f"mcpsniff: recording to {path}",
        "mcpsniff: no MCP came through, and no capture is left",
    ]
    assert not path.exists()


WITHOUT = """
import sys
sys.modules["mcpsniff"] = None
from mitmproxy.tools.main import mitmdump
mitmdump(sys.argv[1:])
"""


def test_without_mcpsniff_both_addons_say_what_to_install(tmp_path: Path) -> None:
    words = [word for name in ("mcp_capture", "mcp_view") for word in ("-s", str(ADDONS / f"{name}.py"))]
    port = ["--listen-host", "127.0.0.1", "-p", "0", "--set", f"confdir={tmp_path}"]
    done = subprocess.run([sys.executable, "-c", WITHOUT, *port, *words], capture_output=True, text=True, timeout=60)
    said_so = done.stdout + done.stderr
    assert done.returncode == 1, said_so
    assert "Traceback" not in said_so
    for name in ("mcp_capture", "mcp_view"):
        assert f"{name}.py needs mcpsniff in the Python that runs mitmproxy ({sys.executable}): `pip install" in said_so
    assert said_so.count("`pipx inject mitmproxy mcpsniff`, or `uv tool install mitmproxy --with mcpsniff`") == 2
