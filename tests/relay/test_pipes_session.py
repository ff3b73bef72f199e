"""`mcpsniff stdio` in edit mode, as a client sees it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.proxy.wrapped import Captured, Wrapped, environment, is_gone, read_number, wait_for
from tests.relay.test_pipes_laws import decoded, what_left

SERVER = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {"got": message}}), flush=True)
"""
ECHO = [sys.executable, "-c", SERVER]


def call(number: int, tool: str) -> bytes:
    return b'{"jsonrpc":"2.0", "id":%d, "method":"tools/call", "params":{"name":"%s"}}\n' % (number, tool.encode())


def addon(tmp_path: Path, body: str) -> list[str]:
    path = tmp_path / "addon.py"
    path.write_text("import time\nimport mcpsniff\n\n\n" + body)
    return ["--addon", str(path)]


def left(capture: Captured, channel: int) -> bytes:
    """What the records say has left."""
    return what_left(
        [(t, kind, n, decoded(body) if kind == "chunk" else body) for t, kind, n, body in capture.records], channel
    )


EDITS = """
def mcp_edit(message):
    print("seen", message.method)
    tool = message.params.get("name")
    if message.kind != "request":
        return message
    if tool == "change":
        message.body["params"]["name"] = "changed"
    elif tool == "drop":
        return None
    elif tool == "refuse":
        return mcpsniff.refuse(message, "not today", why="closed on Mondays")
    elif tool == "ask":
        return [mcpsniff.request("ping"), message]
    elif tool == "noise":
        return [mcpsniff.Raw(b"\\xffnoise\\n"), message]
    return message
"""


def test_messages_are_changed_dropped_answered_and_added(tmp_path: Path) -> None:
    with Wrapped(tmp_path, ECHO, *addon(tmp_path, EDITS)) as wrapped:
        wrapped.send(call(1, "change"))
        lines = [wrapped.read_line()]
        assert b'"name": "changed"' in lines[-1]
        wrapped.send(call(2, "drop"), call(3, "refuse"))
        lines.append(wrapped.read_line())
        assert json.loads(lines[-1]) == {
            "jsonrpc": "2.0",
            "id": 3,
            "error": {"code": -32000, "message": "not today"},
        }
        wrapped.send(call(4, "ask"))
        lines.append(wrapped.read_line())
        assert json.loads(lines[-1])["id"] == 4  # and not the answer to our ping
        wrapped.send(call(5, "same"))
        lines.append(wrapped.read_line())
        assert json.loads(lines[-1])["id"] == 5
        assert wrapped.end() == 0
    capture = wrapped.capture()
    assert capture.data(0) == b"".join(
        call(n + 1, tool) for n, tool in enumerate(("change", "drop", "refuse", "ask", "same"))
    )
    changed, ping, *others = left(capture, 0).splitlines(keepends=True)
    assert [changed, *others] == [call(1, "changed"), call(4, "ask"), call(5, "same")]
    name = json.loads(ping)["id"]
    assert json.loads(ping) == {"jsonrpc": "2.0", "id": name, "method": "ping"}
    assert name.startswith("mcpsniff-")
    assert name.encode() in capture.data(1)
    assert left(capture, 1) == b"".join(lines)
    refused = [body for body in capture.bodies("rewrite", 1) if "not today" in str(body["data"])]
    assert [(body["by"], body["why"], body["length"]) for body in refused] == [("addon", "closed on Mondays", 0)]
    assert b"seen tools/call" in wrapped.stderr  # what an addon prints is not for the client


ENDS = """
import mcpsniff

def mcp_edit(message):
    if message.params.get("name") == "end":
        return {what}
    return message
"""


def test_a_client_that_is_disconnected_and_the_server_ends_with_it(tmp_path: Path) -> None:
    with Wrapped(tmp_path, ECHO, *addon(tmp_path, ENDS.format(what="mcpsniff.Disconnect('enough')"))) as wrapped:
        wrapped.send(call(1, "x"))
        assert wrapped.read_line()
        wrapped.send(call(2, "end"))
        assert wrapped.read_line() == b""
        assert wrapped.wait() == 0
    capture = wrapped.capture()
    assert left(capture, 0) == call(1, "x")
    assert capture.bodies("close", 0) == [{"how": "aborted", "error": "broken off by addon"}]
    assert [(body["by"], body["why"]) for body in capture.bodies("rewrite", 0)] == [("addon", "enough")]


def test_a_stalled_server_is_ended_like_any_other(tmp_path: Path) -> None:
    options = addon(tmp_path, ENDS.format(what="mcpsniff.Stall('asleep')"))
    with Wrapped(tmp_path, ECHO, "--grace", "0.2", *options) as wrapped:
        wrapped.send(call(1, "end"), call(2, "never"))
        assert wrapped.end() == 128 + signal.SIGTERM
        assert wrapped.read_all() == b""
    capture = wrapped.capture()
    assert left(capture, 0) == b""
    assert capture.data(0) == call(1, "end") + call(2, "never")
    assert {body["why"] for body in capture.bodies("rewrite", 0)} == {"asleep"}


HOLDS = """
async def mcp_edit(message):
    import asyncio
    if message.kind == "request":
        open({mark!r}, "w").close()
        await asyncio.sleep(3600)
    return message
"""


@pytest.mark.parametrize("way", ["signal", "client gone", "server gone"])
def test_a_held_message_keeps_nobody_alive(tmp_path: Path, way: str) -> None:
    held, pid = tmp_path / "held", tmp_path / "pid"
    server = f"import os,sys; open({str(pid)!r},'w').write(str(os.getpid())+chr(10)); sys.stdin.read()"
    with Wrapped(tmp_path, [sys.executable, "-c", server], *addon(tmp_path, HOLDS.format(mark=str(held)))) as wrapped:
        number = read_number(pid)
        wrapped.send(call(1, "x"))
        assert wait_for(held.exists)
        if way == "signal":
            wrapped.signal(signal.SIGTERM)
        elif way == "server gone":
            os.kill(number, signal.SIGTERM)
        else:
            wrapped.stdout.close()
            wrapped.stdin.close()
        assert wrapped.wait() == (0 if way == "client gone" else 128 + signal.SIGTERM)
        assert is_gone(number)
    capture = wrapped.capture()
    assert capture.data(0) == call(1, "x")
    assert capture.bodies("close", 1)[-1]["how"] in {"exit", "killed"}


def test_a_hook_that_never_returns_is_not_waited_for_when_the_client_wants_the_end(tmp_path: Path) -> None:
    body = """
def mcp_edit(message):
    while message.kind == "response":
        time.sleep(1)
    return message
"""
    with Wrapped(tmp_path, ECHO, "--grace", "0.2", *addon(tmp_path, body)) as wrapped:
        wrapped.send(call(1, "x"))
        wrapped.recorded(lambda capture: capture.data(1))
        wrapped.signal(signal.SIGTERM)
        assert wrapped.wait() == 128 + signal.SIGTERM


def test_the_exit_of_the_server_lets_go_what_is_held_at_a_break_point_and_cuts_no_latency_short(tmp_path: Path) -> None:
    server = 'import sys; sys.stdin.readline(); print(\'{"jsonrpc":"2.0","id":1,"result":{}}\')'
    body = """
import asyncio

async def mcp_edit(message):
    await asyncio.sleep(0.2 if message.kind == "response" else 0)
    return message
"""
    options = ["--break", "kind:response", *addon(tmp_path, body)]
    with Wrapped(tmp_path, [sys.executable, "-c", server], *options) as wrapped:
        wrapped.send(call(1, "x"))
        assert json.loads(wrapped.read_line()) == {"jsonrpc": "2.0", "id": 1, "result": {}}
        assert wrapped.wait() == 0
    (hold,) = wrapped.capture().bodies("hold", 1)
    assert hold["us"] >= 200_000


OBSERVES = """
def mcp_request(message):
    print("heard", message.method)
"""


def test_an_addon_that_only_observes_holds_nothing(tmp_path: Path) -> None:
    with Wrapped(tmp_path, ["cat"], *addon(tmp_path, OBSERVES)) as wrapped:
        wrapped.send(b"part of ")
        assert wrapped.stdout.read(8) == b"part of "  # no line is waited for
        wrapped.send(b"a line\n", call(1, "x"))
        assert wrapped.read_line() + wrapped.read_line() == b"a line\n" + call(1, "x")
        assert wrapped.end() == 0
    assert b"heard tools/call" in wrapped.stderr


def test_what_a_slow_hook_holds_is_told_and_the_other_direction_goes_on(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    body = f"""
import os

def mcp_edit(message):
    if message.params.get("name") == "hold":
        while not os.path.exists({str(mark)!r}):
            time.sleep(0.002)
    return message
"""
    server = "import sys,time\nwhile True: sys.stdout.write('{}\\n'); sys.stdout.flush(); time.sleep(0.01)"
    with Wrapped(tmp_path, [sys.executable, "-c", server], *addon(tmp_path, body)) as wrapped:
        wrapped.send(call(1, "hold"))
        assert [wrapped.read_line() for _ in range(10)] == [b"{}\n"] * 10
        mark.touch()
        wrapped.recorded(lambda capture: capture.bodies("hold", 0))
        wrapped.signal(signal.SIGTERM)
        assert wrapped.wait() == 128 + signal.SIGTERM
    (hold,) = wrapped.capture().bodies("hold", 0)
    assert (hold["start"], hold["length"], hold["by"]) == (0, len(call(1, "hold")), "addon")
    assert hold["us"] > 1000


@pytest.mark.parametrize(
    ("body", "named"), [("def mcp_edit(:\n", "line 5"), ("import nothing_of_the_kind\n", "line 5"), (None, "addon.py")]
)
def test_a_bad_addon_starts_nothing(tmp_path: Path, body: str | None, named: str) -> None:
    options = ["--addon", str(tmp_path / "addon.py")] if body is None else addon(tmp_path, body)
    mark = tmp_path / "mark"
    words = [
        sys.executable,
        "-m",
        "mcpsniff",
        "stdio",
        "--dir",
        str(tmp_path / "captures"),
        *options,
        "--",
        "touch",
        str(mark),
    ]
    done = subprocess.run(words, capture_output=True, text=True, env=environment(), stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert named in done.stderr
    assert not mark.exists()
    assert not (tmp_path / "captures").exists()


def test_a_server_whose_messages_are_to_be_edited_is_not_started_without_us(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    driver = """
import os, sys
from mcpsniff.cli.options import STDIO, parse
from mcpsniff.proxy import stdio
def no_means(): raise OSError(24, "Too many open files")
stdio.Pipes = no_means
sys.exit(stdio.wrap(*reversed(parse(STDIO, sys.argv[1:]))))
"""
    same = Path(__file__).with_name("same.py")
    words = [sys.executable, "-c", driver, "--dir", str(tmp_path / "c"), "--addon", str(same), "--", "touch", str(mark)]
    done = subprocess.run(words, capture_output=True, text=True, env=environment(), stdin=subprocess.DEVNULL)
    assert done.returncode == 126
    assert "not started" in done.stderr
    assert not mark.exists()


def test_without_its_options_nothing_of_edit_mode_is_loaded(tmp_path: Path) -> None:
    driver = """
import os, sys
from mcpsniff.proxy import session
real = session.Session._finish
def finish(self):
    status = real(self)
    os.write(2, (" ".join(sys.modules) + "\\n").encode())
    return status
session.Session._finish = finish
from mcpsniff.__main__ import main
main(["stdio", "--quiet", "--no-transcript", *sys.argv[1:]])
"""
    loaded = {}
    for name, options in (("plain", []), ("edit", ["--addon", str(Path(__file__).with_name("same.py"))])):
        words = [sys.executable, "-c", driver, "--dir", str(tmp_path), *options, "--", "cat"]
        done = subprocess.run(words, capture_output=True, text=True, env=environment(), input="{}\n")
        assert (done.returncode, done.stdout) == (0, "{}\n")
        loaded[name] = {name for name in done.stderr.splitlines()[-1].split() if name.startswith("mcpsniff.")}
    rooms = ("mcpsniff.hooks", "mcpsniff.protocol", "mcpsniff.wire", "mcpsniff.proxy.r", "mcpsniff.proxy.observer")
    edit_mode = {name for name in loaded["edit"] if name.startswith(rooms)} - {
        "mcpsniff.proxy.recorder",
        "mcpsniff.proxy.recording",
    }
    assert {"mcpsniff.hooks.editor", "mcpsniff.proxy.relay.pipes"} <= edit_mode
    assert not edit_mode & loaded["plain"]
