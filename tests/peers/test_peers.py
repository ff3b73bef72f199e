"""Real clients and real servers, with the wrapper between them and without.

A healthy session must give the client the same results either way, and its capture must decode into paired requests
without a finding that blames anybody. `make peers` installs what this needs.
"""

import base64
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.peers.sessions import SESSIONS

REPO = Path(__file__).resolve().parents[2]
NODE = REPO / "tests" / "peers" / "node_modules" / ".bin"
SDK1 = REPO / ".env-sdk1" / "bin"
SDK2 = REPO / ".env-sdk2" / "bin"
SECONDS = 90

CLIENTS = {
    "sdk1": [SDK1 / "python", REPO / "tests" / "peers" / "client_sdk1.py"],
    "sdk2": [SDK2 / "python", REPO / "tests" / "peers" / "client_sdk2.py", "legacy"],
    "sdk2-auto": [SDK2 / "python", REPO / "tests" / "peers" / "client_sdk2.py", "auto"],
}

pytestmark = pytest.mark.peers


def server_command(server: str, folder: Path) -> list[str]:
    """The command that starts a server; its first word, or the script it runs, must exist."""
    if server in ("time", "git"):
        return [str(SDK2 / f"mcp-server-{server}")]
    if server == "sdk2_server":
        return [str(SDK2 / "python"), str(REPO / "tests" / "servers" / "sdk2_server.py")]
    extra = [str(folder)] if server == "filesystem" else []
    return [str(NODE / f"mcp-server-{server}"), *extra]


@dataclass(frozen=True)
class Run:
    """One session: what the client's script said, and where the capture is if there was a wrapper."""

    status: int
    stdout: str
    stderr: str
    captures: Path


def hold(client: str, server: str, place: Path, *, wrapped: bool) -> Run:
    folder, captures = place / "work", place / "captures"
    wrapper = [sys.executable, "-m", "mcpsniff", "stdio", "--dir", str(captures), "--"] if wrapped else []
    command = [*CLIENTS[client], server, folder, "--", *wrapper, *server_command(server, folder)]
    done = subprocess.run(
        list(map(str, command)),
        cwd=REPO,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=SECONDS,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    return Run(done.returncode, done.stdout, done.stderr, captures)


def missing(what: str) -> None:
    """Skip the running test because ``what`` is not installed; where CI=true that is a failure instead."""
    text = f"{what} is missing: `make peers` installs what the peer tests need"
    if os.environ.get("CI") == "true":
        pytest.fail(text, pytrace=False)
    pytest.skip(text)


@pytest.fixture(scope="session")
def runs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[tuple[str, str, bool], Future[Run]]]:
    """Every session that the selected tests ask for, held by a few workers at a time: most of a session is waiting."""
    pairs = {
        (item.callspec.params["client"], item.callspec.params["server"])
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.get_closest_marker("peers")
    }
    with ThreadPoolExecutor(max_workers=4) as pool:
        yield {
            (client, server, wrapped): pool.submit(
                hold, client, server, tmp_path_factory.mktemp(f"{server}-{client}"), wrapped=wrapped
            )
            for client, server in sorted(pairs)
            if (REPO / server_command(server, REPO)[0]).exists() and CLIENTS[client][0].exists()
            for wrapped in (False, True)
        }
        pool.shutdown(cancel_futures=True)


@pytest.fixture
def pair(runs: dict[tuple[str, str, bool], Future[Run]], client: str, server: str) -> tuple[Run, Run]:
    """The session without the wrapper, and with it."""
    if (client, server, False) not in runs:
        missing(f"the server {server!r} or the client {client!r}")
    direct, wrapped = (runs[client, server, wrapped].result(SECONDS) for wrapped in (False, True))
    assert direct.status == 0, f"without the wrapper: {direct.stderr}"
    return direct, wrapped


# Every server with both major versions of the SDK, and with the older handshake of SDK 2 where it could matter.
PAIRS = [
    *((client, server) for server in SESSIONS for client in ("sdk1", "sdk2-auto")),
    *(("sdk2", server) for server in ("time", "everything", "sdk2_server")),
]
every_pair = pytest.mark.parametrize(("client", "server"), PAIRS)


@every_pair
def test_the_client_gets_the_same_results(pair: tuple[Run, Run], server: str) -> None:
    direct, wrapped = pair
    assert wrapped.status == 0, wrapped.stderr
    assert wrapped.stdout == direct.stdout
    steps = json.loads(direct.stdout)["steps"]
    assert len(steps) == len(SESSIONS[server](Path("/")))
    assert sum("error" in step for step in steps) == (server == "everything")


@every_pair
def test_the_capture_pairs_every_request_and_blames_nobody(pair: tuple[Run, Run], client: str, server: str) -> None:
    wrapped = pair[1]
    (capture,) = wrapped.captures.glob("*.mcpcap")
    events = shown(capture)

    said = list(messages(capture))
    seen = [event for event in events if event["type"] == "message"]
    assert Counter(event["direction"] for event in seen) == Counter(direction for direction, _ in said)
    assert Counter(
        (event["direction"], event.get("method"), event.get("id")) for event in seen if event["kind"] != "invalid"
    ) == Counter((direction, message.get("method"), message.get("id")) for direction, message in said)

    requests = {event["n"] for event in seen if event["kind"] == "request"}
    exchanges = [event for event in events if event["type"] == "exchange"]
    assert {exchange["request"] for exchange in exchanges} == requests
    assert len(exchanges) == len(requests)
    states = Counter(exchange["state"] for exchange in exchanges)
    assert states.pop("answered") > 0
    assert states == unusual_states(client, server)

    findings = [event for event in events if event["type"] == "finding" and event["severity"] in ("error", "warning")]
    numbered = {event["n"]: event for event in events if "n" in event}
    assert findings == [], "\n".join(f"{finding}\n  {numbered.get(finding['at'])}" for finding in findings)


def unusual_states(client: str, server: str) -> Counter[str]:
    """How many exchanges of a session end otherwise than with a plain answer."""
    states: Counter[str] = Counter()
    if server == "everything":
        states += Counter(cancelled=1, errored=1)  # a call is cancelled, a resource does not exist
    if client == "sdk2-auto":
        if server == "sdk2_server":
            states += Counter({"input-required": 2, "cancelled": 1})  # two questions; the subscription stream is closed
        if server not in ("sdk2_server", "time", "git"):
            states += Counter(errored=1)  # server/discover is not known to a server on an older revision
    return states


def shown(capture: Path) -> list[dict[str, Any]]:
    """What `mcpsniff show --format json` says, each line of it valid JSON."""
    command = [sys.executable, "-m", "mcpsniff", "show", str(capture), "--format", "json", "--payload"]
    done = subprocess.run(command, cwd=REPO, capture_output=True, text=True, encoding="utf-8", timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.split("\n") if line]


def messages(capture: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Read the messages out of a capture by the shortest way: not a line of this uses our decoder."""
    kinds: dict[int, str] = {}
    data: dict[int, bytes] = {}
    with capture.open(encoding="utf-8", newline="\n") as lines:
        next(lines)
        for line in lines:
            _, kind, channel, body = json.loads(line)
            if kind == "open":
                kinds[channel], data[channel] = body["kind"], b""
            elif kind == "chunk":
                data[channel] += body.encode() if isinstance(body, str) else base64.b64decode(body["b64"])
    for channel, kind in kinds.items():
        direction = {"stdin": "c2s", "stdout": "s2c"}.get(kind)
        if direction is not None:
            for line in data[channel].split(b"\n"):
                if line:
                    yield direction, json.loads(line)
