"""Hooks of mcpsniff in an addon of a stock mitmproxy, beside addons/mcp_capture.py."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from mcpsniff.capture.reader import open_capture
from mcpsniff.wire.frames import Span
from mcpsniff.wire.http1 import Data, Http1Splitter
from mcpsniff.wire.sse import EventSplitter
from tests.addons.stock import Mitmdump
from tests.proxy.relayed import EVENTS, Peer, Upstream, answer, chunk, get, post
from tests.proxy.wrapped import PATIENCE

LIST = b'{"jsonrpc": "2.0",  "id": 1, "method": "tools/list"}'
TOOLS = b'{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a"},{"name":"b"}],"n":1.0}}'
CALL = b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"%s"}}'
JSON = "Content-Type: application/json"
SESSION = "Mcp-Session-Id: s1"


def capture_of(stock: Mitmdump) -> list[Any]:
    (file,) = stock.folder.glob("mitmproxy-*.mcpcap")
    capture = open_capture(str(file))
    records = [(record.kind, record.channel, record.body) for record in capture.records()]
    assert not capture.damage
    return records


def left(records: list[Any]) -> list[bytes]:
    """Channel by channel, what left: the bytes that came, with rewrites in their places."""
    bodies: list[bytes] = []
    for number in sorted(channel for kind, channel, _ in records if kind == "open"):
        came = b"".join([body for kind, channel, body in records if kind == "chunk" and channel == number])
        out, at = b"", 0
        for kind, channel, body in records:
            if kind == "rewrite" and channel == number:
                out += came[at : body["start"]] + _bytes(body["data"])
                at = body["start"] + body["length"]
        bodies.append(out + came[at:])
    return bodies


def _bytes(data: Any) -> bytes:
    return data.encode() if isinstance(data, str) else bytes(data)


def rewrites(records: list[Any]) -> list[dict[str, Any]]:
    return [body for kind, _, body in records if kind == "rewrite"]


ADDON = """
import asyncio, json, time
from mcpsniff import ctx, notification, refuse

def load(loader):
    loader.add_option("hidden", str, "none", "The tool that nobody sees.")

async def mcp_edit(message):
    if message.method == "tools/call":
        name = message.params["name"]
        if name == "no":
            return refuse(message, "not today", why="because")
        if name == "slow":
            await asyncio.sleep(1.2)
        if name == "other":
            message.body["params"]["name"] = "one"
        if name == "broken":
            raise ValueError("too bad")
    if message.kind == "notification" and message.direction == "c2s":
        return None
    if message.kind == "response" and "tools" in message.body["result"]:
        tools = message.body["result"]["tools"]
        message.body["result"]["tools"] = [tool for tool in tools if tool["name"] != ctx.options.hidden]
    return message

def mcp_edit_head(head):
    if head.direction == "c2s":
        head.set("X-Traced", "yes")

def mcp_message(message):
    print(f"seen {message.direction} {message.kind} {message.method}", flush=True)
"""


def serving(heads: list[Any]) -> Any:
    def script(peer: Peer) -> None:
        while True:
            head, body = peer.next_message()
            heads.append((head, body))
            said = json.loads(body)
            if said["method"] == "tools/list":
                peer.send(answer(TOOLS, JSON, SESSION))
            else:
                peer.send(answer(json.dumps({"jsonrpc": "2.0", "id": said["id"], "result": {}}).encode(), JSON))

    return script


def test_bodies_are_edited_and_hooks_observe(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(ADDON)
    heads: list[Any] = []
    more = ["-s", str(tmp_path / "mine.py"), "--set", "hidden=b"]
    with Upstream(serving(heads)) as upstream, Mitmdump(tmp_path, upstream.url, *more) as stock:
        with stock.connect() as peer:

            def ask(body: bytes) -> tuple[int | None, bytes]:
                peer.send(post(body, JSON, "Accept: application/json, text/event-stream", SESSION))
                head, said = peer.next_message()
                return head.status, said

            assert ask(LIST) == (200, TOOLS.replace(b',{"name":"b"}', b""))
            assert ask(CALL % b"other")[0] == 200
            assert ask(CALL % b"slow")[0] == 200
            assert ask(CALL % b"broken")[0] == 200
            status, refused = ask(CALL % b"no")
            assert (status, json.loads(refused)["error"]["message"]) == (200, "not today")
            assert ask(b'{"jsonrpc":"2.0","method":"notifications/cancelled"}') == (202, b"")
        assert stock.stop() == 0
        records, log = capture_of(stock), stock.log
    assert [body for _, body in heads] == [LIST, CALL % b"one", CALL % b"slow", CALL % b"broken"]
    assert [head.get("x-traced") for head, _ in heads] == ["yes"] * 4
    sent = left(records)
    assert sent[0::2] == [LIST, CALL % b"one", CALL % b"slow", CALL % b"broken", b"", b""]
    assert sent[1] == TOOLS.replace(b',{"name":"b"}', b"")
    assert sent[9].endswith(b"\r\n\r\n" + refused)
    assert sent[11].startswith(b"HTTP/1.1 202 ")
    assert {body["by"] for body in rewrites(records)} == {"mine"}
    assert [body["why"] for body in rewrites(records) if "why" in body] == ["because", "because"]
    held = [body for kind, channel, body in records if kind == "hold" and channel == 4]
    assert [body["us"] >= 1_200_000 for body in held] == [False, True]
    assert [(body["us"] == 0, body["length"], body["by"]) for body in held[:1]] == [(True, len(CALL % b"slow"), "mine")]
    comments = [body["text"] for kind, _, body in records if kind == "comment"]
    assert "the head was changed by mine: x-traced" in comments
    assert log.count("mine failed in mcp_edit") == 1
    assert "mine.py, line 18: ValueError: too bad; messages pass as they are where it fails" in log
    for line in ("seen c2s request tools/list", "seen s2c response", "seen c2s request tools/call"):
        assert line in log
    assert "Traceback" not in log
    assert "Addon error" not in log


STREAMING = """
import asyncio
from mcpsniff import notification

async def waits(message):
    await asyncio.sleep(1)
    return None

def mcp_edit(message):
    if message.method == "drop":
        return None
    if message.method == "wait":
        return waits(message)
    if message.method == "more":
        return [notification("before"), message, notification("after")]
    if message.method == "change":
        message.body["method"] = "changed"
    return message
"""


def body_of(response: bytes) -> bytes:
    return b"".join([part.data for part in Http1Splitter(0, "s2c").feed(0, response) if isinstance(part, Data)])


def events(body: bytes) -> list[Any]:
    return [(frame.payload, frame.sse) for frame in EventSplitter(0, "s2c").feed(0, body, (Span(0, 0, len(body)),))]


def event(method: str, *more: str) -> bytes:
    return "\r\n".join([*more, f'data: {{"jsonrpc":"2.0", "method":"{method}"}}', "", ""]).encode()


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_events_are_edited_while_the_stream_goes_on(tmp_path: Path, size: int) -> None:
    came = threading.Event()
    first = event("change", "id: 1", ": why", "retry: 5") + event("drop") + event("more")
    last = event("wait") + event("same")

    def script(peer: Peer) -> None:
        peer.next_message()
        peer.send(EVENTS + b"Transfer-Encoding: chunked\r\n\r\n")
        for at in range(0, len(first), size):
            peer.send(chunk(first[at : at + size]))
        assert came.wait(PATIENCE)
        peer.send(chunk(last), chunk(b""))

    (tmp_path / "mine.py").write_text(STREAMING)
    with Upstream(script) as upstream, Mitmdump(tmp_path, upstream.url, "-s", str(tmp_path / "mine.py")) as stock:
        with stock.connect() as peer:
            peer.send(get("/mcp", SESSION))
            peer.read_until(b'"after"')
            came.set()
            body = body_of(peer.read_until(b"\r\n0\r\n\r\n"))
        assert stock.stop() == 0
        records, log = capture_of(stock), stock.log
    changed = event("changed", "id: 1", ": why", "retry: 5")
    before, after = [made.replace(b'"2.0", ', b'"2.0",') for made in (event("before"), event("after"))]
    begun = b"event: message\r\n"
    wanted = changed + begun + before + event("more") + begun + after + last
    if size > 1:  # else an event is over before its last line feed comes
        assert body == wanted
    assert events(body) == events(wanted)
    assert left(records)[1] == body
    assert b"".join([what for kind, channel, what in records if kind == "chunk" and channel == 1]) == first + last
    assert log.count("nothing can be held in an event stream") == 1
    assert "Traceback" not in log


def test_without_hooks_nothing_is_edited(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def request(flow):\n    flow.request.headers['X-Mine'] = 'yes'\n")
    heads: list[Any] = []
    with (
        Upstream(serving(heads)) as upstream,
        Mitmdump(tmp_path, upstream.url, "-s", str(tmp_path / "mine.py")) as stock,
    ):
        with stock.connect() as peer:
            peer.send(post(LIST, JSON))
            assert peer.next_message()[1] == TOOLS
        assert stock.stop() == 0
        records = capture_of(stock)
    assert heads[0][0].get("x-mine") == "yes"
    assert not rewrites(records)
