"""The SDK clients authorize themselves at a server of the SDK, through `mcpsniff http`: what is seen, and what is said.

The server is its own authorization server. It knows itself by the address that the clients use, that of mcpsniff; or by
its own, as servers do that know of no proxy: then clients refuse its metadata, and mcpsniff says why.
"""

import contextlib
import json
import subprocess
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
    assert [step["step"] for step in steps if step["succeeded"] or step["step"] == "challenge"] == [
        "challenge",
        "resource-metadata",
        "server-metadata",
        "registration",
        "authorization",
        "token",
        "authorized",
    ]
    assert {step["authorization"] for step in steps} == {1}
    assert blaming(events) == []


@clients
def test_no_secret_is_in_what_is_shown(client: Path, tmp_path: Path) -> None:
    _, events = session(client, tmp_path, knows_proxy=True)

    token = next(event["oauth"] for event in events if event.get("oauth", {}).get("step") == "token")
    assert token["asked"]["code"] == token["asked"]["code_verifier"] == token["said"]["access_token"] == ["*"]
    assert token["asked"]["grant_type"] == ["authorization_code"]


@clients
def test_metadata_of_the_servers_own_address_are_refused_and_explained(client: Path, tmp_path: Path) -> None:
    said, events = session(client, tmp_path, knows_proxy=False)

    assert "failed" in said
    explained = [event for event in events if event["type"] == "finding" and event["severity"] in ("error", "warning")]
    assert [(one["code"], one["blame"]) for one in explained] == [("MCP557", "mcpsniff")] * len(explained) != []
    assert "mcpsniff run" in explained[0]["text"]
