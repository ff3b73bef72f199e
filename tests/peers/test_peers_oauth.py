"""The SDK clients authorize themselves at a server of the SDK, through `mcpsniff http`: what is seen, and what is said.

The server is its own authorization server. It knows itself by the address that the clients use, that of mcpsniff; or by
its own, as servers do that know of no proxy: then clients refuse its metadata, and mcpsniff says why.
"""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.peers.harness import (
    PEERS,
    REPO,
    SDK1,
    SDK2,
    SECONDS,
    SERVERS,
    blaming,
    captured,
    free_port,
    missing,
    relaying,
    running,
    shown,
)

pytestmark = [pytest.mark.peers, pytest.mark.timeout(SECONDS)]

STEPS = ["challenge", "resource-metadata", "server-metadata", "registration", "authorization", "token", "authorized"]

clients = pytest.mark.parametrize("client", [SDK1, SDK2], ids=["sdk1", "sdk2"])


@contextlib.contextmanager
def authorizing(folder: Path, *, knows_proxy: bool) -> Iterator[str]:
    """A server that asks for tokens, and mcpsniff before it; gives the URL of the latter."""
    port = free_port()
    own = f"http://127.0.0.1:{port}/mcp"
    with relaying({"server": own}, folder) as urls:
        known_as = urls["server"] if knows_proxy else own
        command = [str(SDK1 / "python"), str(SERVERS / "oauth_server.py"), str(port), known_as]
        with running(command, [port], folder / "server.log"):
            yield urls["server"]


def session(client: Path, folder: Path, *, knows_proxy: bool) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What the client says of its session, and what is shown of it."""
    if not (client / "python").exists() or not (SDK1 / "python").exists():
        missing(f"the SDK in {client.parent.name}")
    with authorizing(folder, knows_proxy=knows_proxy) as url:
        command = [str(client / "python"), str(PEERS / "client_oauth.py"), url]
        done = subprocess.run(command, cwd=REPO, capture_output=True, text=True, encoding="utf-8", timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), shown(captured(folder, "server"))


@clients
def test_all_steps_are_one_authorization(client: Path, tmp_path: Path) -> None:
    said, events = session(client, tmp_path, knows_proxy=True)

    assert said == {"sum": 3}
    steps = [event["oauth"] for event in events if "oauth" in event]
    assert [step["step"] for step in steps if step["succeeded"] or step["step"] == "challenge"] == STEPS
    assert {step["authorization"] for step in steps} == {1}
    token = steps[-2]
    assert token["asked"]["code"] == token["asked"]["code_verifier"] == token["said"]["access_token"] == ["*"]
    assert blaming(events) == []


@clients
def test_metadata_of_the_servers_own_address_are_refused_and_explained(client: Path, tmp_path: Path) -> None:
    said, events = session(client, tmp_path, knows_proxy=False)

    assert "failed" in said
    explained = [event for event in events if event["type"] == "finding" and event["severity"] in ("error", "warning")]
    assert [(one["code"], one["blame"]) for one in explained] == [("MCP557", "mcpsniff")] * len(explained) != []
    assert "mcpsniff run" in explained[0]["text"]


@clients
def test_under_run_the_client_uses_the_servers_own_address_and_all_is_seen(client: Path, tmp_path: Path) -> None:
    if not (client / "python").exists() or not (SDK1 / "python").exists():
        missing(f"the SDK in {client.parent.name}")
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    server = [str(SDK1 / "python"), str(SERVERS / "oauth_server.py"), str(port), url]
    run = [sys.executable, "-m", "mcpsniff", "run", "-o", str(tmp_path / "run.mcpcap"), "--quiet", "--"]
    command = [*run, str(client / "python"), str(PEERS / "client_oauth.py"), url]
    with running(server, [port], tmp_path / "server.log"):
        done = subprocess.run(command, cwd=REPO, capture_output=True, text=True, encoding="utf-8", timeout=90)

    assert (done.returncode, done.stdout) == (0, '{"sum": 3}\n'), done.stderr
    events = shown(tmp_path / "run.mcpcap")
    assert [event["oauth"]["step"] for event in events if "oauth" in event] == STEPS
    assert blaming(events) == []
