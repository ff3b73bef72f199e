"""What users of SDK clients read where mcpsniff answers in a server's place."""

import json
import socket
import sys
from pathlib import Path

import pytest

from tests.cli.running import run
from tests.peers.harness import CLIENTS, SDK2, SERVERS, hold, missing
from tests.peers.sessions import Plan
from tests.proxy.relayed import Relay

SHOWS = ("sdk2", "sdk2-auto", "ts1", "ts2")
"""Those that show what is in the body of a refusal; SDK 1.x of Python shows the status alone."""


@pytest.fixture(scope="module")
def nobody() -> int:
    """A port at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


@pytest.mark.parametrize("client", SHOWS)
def test_the_user_is_told_that_the_server_is_not_reached(tmp_path: Path, nobody: int, client: str) -> None:
    with Relay(tmp_path, f"http://127.0.0.1:{nobody}/mcp") as relay:
        plan = Plan("nobody", tmp_path, "http", f"http://127.0.0.1:{relay.port}/mcp", [])
        (outcome,) = hold(client, [plan])
    assert outcome.said is None
    assert f"mcpsniff: cannot reach the upstream http://127.0.0.1:{nobody}" in outcome.failed


ASKING = """
import mcpsniff

def mcp_edit(message):
    if message.kind == "request" and message.method == "tools/call":
        return [mcpsniff.request("resources/list"), message]
    return message
"""
ANSWERS = [
    """method:tools/list={"tools":[{"name":"made_up","inputSchema":{"type":"object"}}]}""",
    """tool:made_up={"content":[{"type":"text","text":"out of the air"}]}""",
    """method:prompts/list={"prompts":[]}""",
    """method:resources/read={"contents":[{"uri":"made://up","text":"not there"}]}""",
]


def test_the_newest_sdk_takes_answers_and_a_server_requests_that_are_made_for_it(tmp_path: Path) -> None:
    """2026-07-28 asks more of a result and of a request than users write."""
    if not Path(CLIENTS["sdk2-auto"][0]).exists():
        missing("the SDK 2.x")
    addon = tmp_path / "asking.py"
    addon.write_text(ASKING)
    words = ["-m", "mcpsniff", "stdio", "--dir", str(tmp_path), "--quiet", "--no-transcript", "--addon", str(addon)]
    words += [word for one in ANSWERS for word in ("--respond", one)]
    target = [sys.executable, *words, "--", str(SDK2 / "python"), str(SERVERS / "sdk2_server.py")]
    steps = [
        ("list_tools", {}),
        ("call", {"name": "made_up", "arguments": {}}),
        ("call", {"name": "echo", "arguments": {"message": "hi"}}),
        ("list_prompts", {}),
        ("read", {"uri": "made://up"}),
    ]
    (outcome,) = hold("sdk2-auto", [Plan("made", tmp_path, "stdio", target, steps)])
    assert outcome.said is not None, outcome.failed
    for said in ("made_up", "out of the air", "Echo: hi", "not there"):
        assert said in outcome.said
    (capture,) = tmp_path.glob("*.mcpcap")
    done = run("show", str(capture), "--format", "json")
    events = [json.loads(line) for line in done.out.splitlines()]
    asked = [one for one in events if one["type"] == "exchange" and one["method"] == "resources/list"]
    assert [one["state"] for one in asked] == ["answered"], done.out
    assert [one for one in events if one["type"] == "finding" and one["severity"] in ("warning", "error")] == []
