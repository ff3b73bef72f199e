"""The SDK clients authorize themselves at a server of the SDK, through `mcpsniff http`: what is seen, and what is said.

The server is its own authorization server. It knows itself by the address that the clients use, that of mcpsniff; or by
its own, as servers do that know of no proxy: then clients refuse its metadata, and mcpsniff says why.
"""

import contextlib
import itertools
import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.test_conformance import node
from tests.mitm.certificates import Authority
from tests.mitm.terminator import Terminator
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
from tests.peers.replaying import Replay, serving

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
        said = add(client, url)
    return said, shown(captured(folder, "server"))


def add(client: Path, url: str) -> dict[str, Any]:
    """Let the client authorize itself and call a tool."""
    command = [str(client / "python"), str(PEERS / "client_oauth.py"), url]
    done = subprocess.run(command, cwd=REPO, capture_output=True, text=True, encoding="utf-8", timeout=60)
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return said


@clients
def test_all_steps_are_one_authorization_and_can_be_gone_again(client: Path, tmp_path: Path) -> None:
    """The replay has no code and no token, which were masked, and takes whatever the client makes of that."""
    said, events = session(client, tmp_path, knows_proxy=True)

    assert said == {"sum": 3}
    steps = [event["oauth"] for event in events if "oauth" in event]
    assert [step["step"] for step in steps if step["succeeded"] or step["step"] == "challenge"] == STEPS
    assert {step["authorization"] for step in steps} == {1}
    token = steps[-2]
    assert token["asked"]["code"] == token["asked"]["code_verifier"] == token["said"]["access_token"] == ["*"]
    assert blaming(events) == []

    replay = Replay(captured(tmp_path, "server"), "http", tmp_path / "replay")
    with serving([replay]):
        assert add(client, str(replay.target)) == said
    report = replay.report()
    assert (report["misses"], report["never_asked"]) == ([], [])


@clients
def test_metadata_of_the_servers_own_address_are_refused_and_explained(client: Path, tmp_path: Path) -> None:
    said, events = session(client, tmp_path, knows_proxy=False)

    assert "failed" in said
    explained = [event for event in events if event["type"] == "finding" and event["severity"] in ("error", "warning")]
    assert [(one["code"], one["blame"]) for one in explained] == [("MCP557", "mcpsniff")] * len(explained) != []
    own = next(f"{event['origin']}/mcp" for event in events if event["type"] == "http")
    assert f'give the client "{own}", and start it with: mcpsniff run -- ' in explained[0]["text"]


@contextlib.contextmanager
def guarding(folder: Path) -> Iterator[tuple[str, str, Path]]:
    """A server that has its authorization server elsewhere, plain and behind TLS; gives its URLs, and the CA."""
    authority, ports = Authority(folder), [free_port() for _ in range(4)]
    pem = str(authority.issue())
    with contextlib.ExitStack() as stack:
        guarded, issuing = (stack.enter_context(Terminator(port, pem)) for port in ports[2:])
        plain = f"http://localhost:{ports[0]}/mcp", f"http://127.0.0.1:{ports[1]}"
        secure = f"{guarded.url}/mcp", f"https://127.0.0.1:{issuing.port}"
        for (port, issuer_port), (url, issuer) in zip(itertools.batched(ports, 2), (plain, secure), strict=True):
            command = [sys.executable, str(SERVERS / "guarded_server.py"), str(port), url, str(issuer_port), issuer]
            stack.enter_context(running(command, [port, issuer_port], folder / f"server-{port}.log"))
        yield plain[0], secure[0], authority.file


def test_every_refusal_under_run_is_one_authorization_at_two_servers(tmp_path: Path) -> None:
    """A new client, one that needs more scope, one whose token has expired; the SDK 1.x for TypeScript cannot ask for
    more scope while it has a refresh token."""
    if not (SDK1 / "python").exists() or not (PEERS / "node_modules").exists():
        missing("an SDK")
    python, typescript = str(PEERS / "client_oauth.py"), [node(), str(PEERS / "client_oauth.mjs")]
    all_three = ["add", "secret", "add"]
    capture = tmp_path / "run.mcpcap"
    with guarding(tmp_path) as (plain, secure, authority):
        clients = [
            [str(SDK1 / "python"), python, plain, *all_three],
            [str(SDK2 / "python"), python, secure, *all_three],
            [*typescript, "1", plain, "add", "add"],
            [*typescript, "1", secure, "add", "add"],
            [*typescript, "2", secure, *all_three],
        ]
        run = [sys.executable, "-m", "mcpsniff", "run", "-o", str(capture), "--upstream-ca", str(authority), "--quiet"]
        command = [*run, "--", "sh", "-c", "\n".join(map(shlex.join, clients))]
        done = subprocess.run(command, cwd=REPO, capture_output=True, text=True, encoding="utf-8", timeout=150)

    assert [json.loads(line) for line in done.stdout.splitlines()] == [{"sum": 3}] * len(clients), done.stderr
    events = shown(capture)
    assert blaming(events) == []
    steps = [event["oauth"] for event in events if "oauth" in event]
    each = [list(group) for _, group in itertools.groupby(steps, key=lambda step: step["authorization"])]
    assert [group[0]["authorization"] for group in each] == list(range(1, 3 + 3 + 2 + 2 + 3 + 1))
    assert {(group[0]["step"], group[-1]["step"]) for group in each} == {
        ("challenge", "authorized"),
        ("refused", "authorized"),
    }
    assert sum(group[0]["step"] == "challenge" for group in each) == len(clients)
    assert all(set(STEPS) <= {step["step"] for step in group} for group in each if group[0]["step"] == "challenge")
    assert all({"token", "refresh"} & {step["step"] for step in group if step["succeeded"]} for group in each)
    assert "EX-" not in capture.read_text("utf-8")
