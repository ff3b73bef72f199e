"""What an edit hook may do in a stock mitmproxy besides changing a message."""

import gzip
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.addons.stock import Mitmdump
from tests.mitm.test_edit_stock import capture_of, left, rewrites
from tests.proxy.relayed import Peer, Upstream, answer, post
from tests.proxy.wrapped import wait_for

JSON = "Content-Type: application/json"
BOTH = "Accept: application/json, text/event-stream"
ADDON = """
import time
from mcpsniff import Cut, Disconnect, Headed, HttpAnswer, Stall, Text, back, copy, notification, refuse

def mcp_edit(message):
    if message.direction == "s2c":
        what = message.link.target if message.link else None
        if what == "drop-answer":
            return None
        if what == "change-answer":
            message.body["result"]["n"] = 2
        if what == "answer-401":
            return HttpAnswer(401, [("WWW-Authenticate", "Bearer")], b"no")
        return message
    if message.method != "tools/call":
        return message
    what = message.params["name"]
    if what == "http":
        return HttpAnswer(429, [("Retry-After", "7")], b"slow down", why="too fast")
    if what == "break":
        return Disconnect()
    if what == "text":
        return Text(b"no JSON", message)
    if what == "headed":
        return Headed(message, {"Mcp-Name": "other", "X-Gone": None})
    if what == "cut":
        return Cut(message, 5)
    if what == "beside":
        return [notification("x"), message]
    if what == "drop":
        return None
    if what == "refuse":
        return refuse(message, "no")
    if what == "block":
        time.sleep(60)
    if what == "rename":
        message.body["params"]["name"] = "r\\u00e9"
        message.body["params"]["arguments"]["region"] = "eu"
    return message
"""


class Server:
    """Answers what it is asked, and keeps it."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def play(self, peer: Peer) -> None:
        while True:
            head, body = peer.next_message()
            self.asked.append((head, body))
            text = gzip.decompress(body) if head.get("content-encoding") else body
            number = json.loads(text)["id"] if text.startswith(b"{") else 0
            said = json.dumps({"jsonrpc": "2.0", "id": number, "result": {"n": 1}}).encode()
            if head.get("accept-encoding") == "gzip":
                peer.send(answer(gzip.compress(said), JSON, "Content-Encoding: gzip"))
            else:
                peer.send(answer(said, JSON))


class Session:
    """mitmdump between a client and a server, for all tests of this file."""

    def __init__(self, stock: Mitmdump, server: Server) -> None:
        self.stock, self.server = stock, server
        self.number = 0

    def call(self, name: str, *headers: str) -> tuple[Any, bytes]:
        """Call a tool; return head and body of the response."""
        with self.stock.connect() as peer:
            peer.send(post(self.text(name), JSON, *(headers or (BOTH,))))
            return peer.next_message()

    def text(self, name: str) -> bytes:
        self.number += 1
        params = {"name": name, "arguments": {"region": "us"}}
        return json.dumps({"jsonrpc": "2.0", "id": self.number, "method": "tools/call", "params": params}).encode()


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("stock")
    (folder / "mine.py").write_text(ADDON)
    server = Server()
    with Upstream(server.play) as upstream, Mitmdump(folder, upstream.url, "-s", str(folder / "mine.py")) as stock:
        yield Session(stock, server)
        assert stock.stop() == 0
        assert "Traceback" not in stock.log
        assert "internal error" not in stock.log


def test_a_status_of_http_is_given_in_the_server_s_place(session: Session) -> None:
    asked = len(session.server.asked)
    head, body = session.call("http")
    assert (head.status, head.get("retry-after"), body) == (429, "7", b"slow down")
    assert len(session.server.asked) == asked


def test_a_status_takes_the_place_of_an_answer(session: Session) -> None:
    head, body = session.call("answer-401")
    assert (head.status, head.get("www-authenticate"), body) == (401, "Bearer", b"no")


def test_a_connection_is_broken_off(session: Session) -> None:
    with session.stock.connect() as peer:
        peer.send(post(session.text("break"), JSON, BOTH))
        assert peer.read_all() == b""


def test_any_text_may_go_on(session: Session) -> None:
    session.call("text")
    head, body = session.server.asked[-1]
    assert (body, head.get("content-length")) == (b"no JSON", "7")


def test_headers_are_set_and_removed_and_repeat_what_the_message_says(session: Session) -> None:
    session.call("headed", "Mcp-Method: tools/call", "Mcp-Name: headed", "X-Gone: 1")
    head, _ = session.server.asked[-1]
    assert (head.get("mcp-name"), head.get("x-gone")) == ("other", None)
    session.call("rename", "Mcp-Name: rename", "Mcp-Param-Region: us")
    head, body = session.server.asked[-1]
    assert (head.get("mcp-name"), head.get("mcp-param-region")) == ("=?base64?csOp?=", "eu")
    assert json.loads(body)["params"]["name"] == "r\u00e9"


def test_what_has_no_place_is_told_and_the_message_passes(session: Session) -> None:
    for name in ("cut", "beside"):
        head, _ = session.call(name)
        assert head.status == 200
        assert json.loads(session.server.asked[-1][1])["params"]["name"] == name
    assert session.stock.log.count("that cannot be done with a body, which passes as it was (Cut)") == 1
    assert session.stock.log.count("no message can be added to a body") == 1


def test_a_dropped_request_is_never_answered(session: Session) -> None:
    asked = len(session.server.asked)
    with session.stock.connect() as peer:
        peer.send(post(session.text("drop"), JSON, BOTH))
        peer.socket.settimeout(0.5)
        with pytest.raises(TimeoutError):
            peer.read()
    assert session.call("ok")[0].status == 200
    assert len(session.server.asked) == asked + 1


def test_a_dropped_answer_never_comes(session: Session) -> None:
    asked = len(session.server.asked)
    with session.stock.connect() as peer:
        peer.send(post(session.text("drop-answer"), JSON, BOTH))
        peer.socket.settimeout(0.5)
        with pytest.raises(TimeoutError):
            peer.read()
    assert session.call("ok")[0].status == 200
    assert len(session.server.asked) == asked + 2


def test_a_client_that_takes_streams_only_gets_one(session: Session) -> None:
    head, body = session.call("refuse", "Accept: text/event-stream", "Mcp-Session-Id: s1")
    assert (head.status, head.get("content-type"), head.get("mcp-session-id")) == (200, "text/event-stream", "s1")
    assert body.startswith(b'event: message\ndata: {"jsonrpc":"2.0","id":')


def test_codings_stay(session: Session) -> None:
    with session.stock.connect() as peer:
        coded = gzip.compress(session.text("rename"))
        peer.send(post(coded, JSON, BOTH, "Content-Encoding: gzip", "Accept-Encoding: gzip"))
        peer.next_message()
    head, body = session.server.asked[-1]
    assert head.get("content-encoding") == "gzip"
    assert json.loads(gzip.decompress(body))["params"]["name"] == "r\u00e9"
    head, body = session.call("change-answer", BOTH, "Accept-Encoding: gzip")
    assert head.get("content-encoding") == "gzip"
    assert json.loads(gzip.decompress(body))["result"]["n"] == 2


def test_a_hook_that_blocks_holds_nobody_else_and_not_the_end(session: Session) -> None:
    with session.stock.connect() as peer:
        peer.send(post(session.text("block"), JSON, BOTH))
        time.sleep(0.2)
        assert session.call("ok")[0].status == 200
    # the fixture ends mitmdump while the hook still blocks


def test_what_streams_is_told_to_pass_unedited(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(ADDON)
    server = Server()
    more = ["-s", str(tmp_path / "mine.py"), "--set", "stream_large_bodies=60"]
    with Upstream(server.play) as upstream, Mitmdump(tmp_path, upstream.url, *more) as stock:
        session = Session(stock, server)
        assert session.call("rename")[0].status == 200
        assert stock.stop() == 0
    assert json.loads(server.asked[0][1])["params"]["name"] == "rename"
    assert stock.log.count("passes unedited") == 1


def test_a_file_that_changes_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("def mcp_edit(message):\n    return message\n")
    server = Server()
    with Upstream(server.play) as upstream, Mitmdump(tmp_path, upstream.url, "-s", str(file)) as stock:
        session = Session(stock, server)
        session.call("one")
        file.write_text("def mcp_edit(message):\n    message.body['x'] = 1\n    return message\n")
        os.utime(file, (time.time() + 5, time.time() + 5))  # which is what mitmproxy looks at
        assert wait_for(lambda: stock.log.count("Loading script") == 3)
        session.call("two")
        assert stock.stop() == 0
        records = capture_of(stock)
    assert ["x" in json.loads(body) for _, body in server.asked] == [False, True]
    assert len(rewrites(records)) == 2  # the request and its answer
    assert left(records)[2] == server.asked[1][1]
