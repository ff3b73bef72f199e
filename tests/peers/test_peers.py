"""Real clients and real servers, with the wrapper between them and without.

A healthy session must give the client the same results either way, and its capture must decode into paired requests
without a finding that blames anybody. `make peers` installs what this needs.
"""

import base64
import json
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.peers.harness import CLIENTS, NODE, SDK1, SDK2, SECONDS, SERVERS, Outcome, blaming, hold, missing, shown
from tests.peers.sessions import SESSIONS, Plan

pytestmark = [pytest.mark.peers, pytest.mark.timeout(SECONDS + 40)]


def server_command(server: str, folder: Path) -> list[str]:
    """The command that starts a server; its first word, or the script it runs, must exist."""
    if server in ("time", "git"):
        return [str(SDK2 / f"mcp-server-{server}")]
    if server in ("sdk1_server", "sdk2_server"):
        place = SDK1 if server == "sdk1_server" else SDK2
        return [str(place / "python"), str(SERVERS / f"{server}.py")]
    extra = [str(folder)] if server == "filesystem" else []
    return [str(NODE / f"mcp-server-{server}"), *extra]


@dataclass(frozen=True)
class Talk:
    """One session that a client is to hold: with which server, where it may work, and whether through the wrapper."""

    server: str
    wrapped: bool
    place: Path

    @property
    def captures(self) -> Path:
        return self.place / "captures"

    def plan(self) -> Plan:
        folder = self.place / "work"
        wrapper = [sys.executable, "-m", "mcpsniff", "stdio", "--dir", str(self.captures), "--"] if self.wrapped else []
        command = [*wrapper, *server_command(self.server, folder)]
        return Plan(self.server, folder, "stdio", command, SESSIONS[self.server](folder))


Held = dict[tuple[str, bool], tuple[Talk, Outcome]]


def hold_talks(client: str, talks: list[Talk]) -> Held:
    outcomes = hold(client, [talk.plan() for talk in talks])
    return {(talk.server, talk.wrapped): (talk, outcome) for talk, outcome in zip(talks, outcomes, strict=True)}


@pytest.fixture(scope="session")
def held(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[Held]]]:
    """All sessions that the selected tests ask for, by client. The clients run side by side: most of it is waiting."""
    asked: dict[str, list[Talk]] = {}
    for client, server in sorted(
        {
            (item.callspec.params["client"], item.callspec.params["server"])
            for item in request.session.items
            if isinstance(item, pytest.Function) and item.path == Path(__file__)
        }
    ):
        if installed(client, server):
            place = tmp_path_factory.mktemp(f"{client}-{server}")
            asked.setdefault(client, []).extend(Talk(server, way, place / str(way)) for way in (False, True))
    with ThreadPoolExecutor(max_workers=len(CLIENTS)) as pool:
        yield {client: pool.submit(hold_talks, client, talks) for client, talks in asked.items()}


def installed(client: str, server: str) -> bool:
    return Path(CLIENTS[client][0]).exists() and Path(server_command(server, Path("/"))[0]).exists()


@dataclass(frozen=True)
class Pair:
    """What one client said of one server without the wrapper and with it, and the capture of the latter."""

    direct: str
    wrapped: str
    captures: Path


@pytest.fixture
def pair(held: dict[str, Future[Held]], client: str, server: str) -> Pair:
    if not installed(client, server):
        missing(f"the server {server!r} or the client {client!r}")
    outcomes = held[client].result(SECONDS)
    (_, direct), (talk, wrapped) = outcomes[server, False], outcomes[server, True]
    assert direct.said is not None, f"without the wrapper: {direct.failed}"
    assert wrapped.said is not None, f"with the wrapper: {wrapped.failed}"
    return Pair(direct.said, wrapped.said, talk.captures)


# Every server with both major versions of the SDK, and with the older handshake of SDK 2 where it could matter.
PAIRS = [
    *((client, server) for server in SESSIONS for client in ("sdk1", "sdk2-auto")),
    *(("sdk2", server) for server in ("time", "everything", "sdk2_server")),
]
every_pair = pytest.mark.parametrize(("client", "server"), PAIRS)


@every_pair
def test_the_client_gets_the_same_results(pair: Pair, server: str) -> None:
    assert pair.wrapped == pair.direct
    steps = json.loads(pair.wrapped)["steps"]
    assert len(steps) == len(SESSIONS[server](Path("/")))
    assert sum("error" in step for step in steps) == (server == "everything")


@every_pair
def test_the_capture_pairs_every_request_and_blames_nobody(pair: Pair, client: str, server: str) -> None:
    (capture,) = pair.captures.glob("*.mcpcap")
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

    assert blaming(events) == []


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


def messages(capture: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Read the messages out of a capture by the shortest way: not a line of this uses our decoder."""
    kinds: dict[int, str] = {}
    data: dict[int, bytes] = {}
    with capture.open(encoding="utf-8", newline="\n") as lines:
        next(lines)
        for line in lines:
            _, kind, channel, body = json.loads(line)[:4]
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
