"""Observing addons: with `show` and `tail`, and beside what records."""

import json
import sys
from pathlib import Path

import pytest

from tests.cli.running import run
from tests.proxy.relayed import Relay, Upstream, echo, post
from tests.proxy.wrapped import wait_for

CAPTURES = Path(__file__).resolve().parents[2] / "captures"
WEATHER = str(CAPTURES / "weather.mcpcap")
COUNTS = """
from collections import Counter
from mcpsniff import ctx
counts = Counter()
def load(loader):
    loader.add_option("count_prefix", str, "", "")
def mcp_request(message):
    print(f"{ctx.options.count_prefix}{message.method}")
def mcp_exchange(exchange):
    counts[exchange.method] += 1
def done():
    print("done", sum(counts.values()))
"""
SERVER = """
import sys
for line in sys.stdin:
    print(line.replace("method", "result"), end="", flush=True)
"""


@pytest.fixture
def counts(tmp_path: Path) -> str:
    path = tmp_path / "counts.py"
    path.write_text(COUNTS)
    return str(path)


def test_show_tells_addons_of_what_it_shows(counts: str, tmp_path: Path) -> None:
    plain = run("show", WEATHER)
    with_addon = run("show", WEATHER, "--addon", counts, "--set", "count_prefix=asked ")
    assert (with_addon.status, with_addon.err) == (0, "")
    assert with_addon.out.startswith(plain.out)
    told = with_addon.out[len(plain.out) :].splitlines()
    assert told[0] == "asked initialize"
    assert told[-1] == "done 7"
    assert len(told) == 8
    out = str(tmp_path / "out")
    filtered = run("show", "-", "--filter", "method:tools/call", "--addon", counts, "-o", out, stdin=_bytes(WEATHER))
    assert filtered.out.splitlines() == [*["tools/call"] * 3, "done 3"]
    several = run("show", WEATHER, str(CAPTURES / "modern.mcpcap"), "--addon", counts, "-o", out)
    assert several.out.splitlines()[-1] == "done 13"


def test_tail_tells_addons_between_the_lines(counts: str) -> None:
    done = run("tail", WEATHER, "--addon", counts)
    assert (done.status, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines.count("tools/call") == 3
    assert lines[-1] == "done 7"
    assert lines.index("initialize") < lines.index("tools/call")
    assert any("→" in line for line in lines[lines.index("initialize") : lines.index("tools/call")])


@pytest.mark.parametrize("command", ["show", "tail"])
def test_what_is_wrong_with_an_addon_is_told(command: str, counts: str, tmp_path: Path) -> None:
    path = tmp_path / "addon.py"
    path.write_text("def mcp_edit(message):\n    return message\ndef mcp_request(message):\n    1 / 0\n")
    done = run(command, WEATHER, "--addon", str(path))
    assert done.status == 0
    assert [line.removeprefix("mcpsniff: ") for line in done.err.splitlines()] == [
        f"{path}: mcp_edit is not called here, for all this has passed",
        f"the addon addon failed in mcp_request: {path}, line 4: ZeroDivisionError: division by zero",
        "the addon addon failed 7 times in all",
    ]
    path.write_text("raise ValueError('not\x1b[2J')\n")
    for words, text in [
        (["--addon", str(path)], f"cannot load the addon {path}, line 1: ValueError: not\\x1b[2J"),
        (["--addon", counts, "--set", "count_prefx=1"], "did you mean count_prefix?"),
        (["--set", "count_prefix=1"], "there is no --addon"),
    ]:
        done = run(command, WEATHER, *words)
        assert (done.status, done.out) == (2, "")
        assert text in done.err
        assert done.err.count("\n") == 1


def test_show_at_takes_no_addon(counts: str) -> None:
    done = run("show", WEATHER, "--at", "3", "--addon", counts)
    assert done.status == 2
    assert "--at shows one message, and addons are told of all" in done.err


def test_beside_a_wrapped_server(counts: str, tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    said = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n{"jsonrpc":"2.0","id":2,"method":"pong"}\n'
    server = ["--", sys.executable, str(tmp_path / "server.py")]
    words = ["stdio", "--dir", str(tmp_path / "captures"), "--no-transcript"]
    done = run(*words, "--addon", counts, *server, stdin=said)
    assert done.status == 0
    assert done.out.encode() == said.replace(b"method", b"result")
    told = [line for line in done.err.splitlines() if not line.startswith("mcpsniff: ")]
    assert told == ["ping", "pong", "done 2"]
    refused = run(*words, "--addon", str(tmp_path / "server.txt"), "--", "touch", str(tmp_path / "spawned"))
    assert refused.status == 2
    assert "server.txt: No such file or directory" in refused.err
    assert not (tmp_path / "spawned").exists()


@pytest.mark.parametrize("quiet", [True, False])
def test_beside_a_relay(counts: str, tmp_path: Path, quiet: bool) -> None:
    body = b'{"jsonrpc":"2.0","id":7,"method":"ping"}'
    with Upstream(echo) as upstream, Relay(tmp_path, upstream.url, "--addon", counts, quiet=quiet) as relay:
        assert relay.ask(post(body))[1] == body
        heard = "err" if quiet else "out"
        assert wait_for(lambda: b"ping\n" in getattr(relay, heard))
        addresses = relay.addresses()
        assert relay.stop() == 0
        lines = getattr(relay, heard).decode().splitlines()
        assert "ping" in lines
        assert "done 1" in lines or "done 2" in lines  # an echo is a request of the server, too
        assert not quiet or relay.out.decode().split() == addresses


CLIENT = """
import os, sys, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": os.environ["HTTP_PROXY"]}))
headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
asked = urllib.request.Request(sys.argv[1], b'{"jsonrpc":"2.0","id":7,"method":"ping"}', headers)
sys.stdout.write(opener.open(asked).read().decode())
"""
CHANGES = """
print("loaded")
def mcp_edit(message):
    print("held", message.method)
    message.body["seen"] = True
    return message
"""


def test_beside_a_client(counts: str, tmp_path: Path) -> None:
    (tmp_path / "client.py").write_text(CLIENT)
    (tmp_path / "changes.py").write_text(CHANGES)
    words = ["run", "--addon", counts, "--addon", str(tmp_path / "changes.py"), "--dir", str(tmp_path / "captures")]
    with Upstream(echo) as upstream:
        client = ["--", sys.executable, str(tmp_path / "client.py"), f"{upstream.url}/mcp"]
        done = run(*words, "--no-transcript", *client)
    assert done.status == 0, done
    assert json.loads(done.out) == {"jsonrpc": "2.0", "id": 7, "method": "ping", "seen": True}
    told = [line for line in done.err.splitlines() if not line.startswith("mcpsniff: ")]
    assert told[:2] == ["loaded", "held ping"]
    assert "ping" in told
    assert told[-1].startswith("done ")


def _bytes(path: str) -> bytes:
    data = Path(path).read_bytes()
    assert json.loads(data.partition(b"\n")[0])["mcpcap"] == 1
    return data
