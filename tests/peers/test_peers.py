"""Real clients and real servers, with the wrapper between them and without; and the clients with the replay.

A healthy session must give the client the same results either way, and its capture must decode into paired requests
without a finding that blames anybody. Served again on any transport, the capture must give the client the same results,
and an unlike client the same answers; played to the real server, it must find that nothing has changed. `make peers`
installs what this needs.
"""

import asyncio
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

from tests.cli.running import Ran, run
from tests.peers import asking
from tests.peers.harness import CLIENTS, NODE, SDK1, SDK2, SECONDS, SERVERS, Outcome, blaming, hold, missing, shown
from tests.peers.replaying import WAYS, Again, Replay, complaints, exactly, hold_again, serving
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

    @property
    def capture(self) -> Path:
        (capture,) = self.captures.glob("*.mcpcap")
        return capture

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
    capture: Path


@pytest.fixture
def pair(held: dict[str, Future[Held]], client: str, server: str) -> Pair:
    if not installed(client, server):
        missing(f"the server {server!r} or the client {client!r}")
    outcomes = held[client].result(SECONDS)
    (_, direct), (talk, wrapped) = outcomes[server, False], outcomes[server, True]
    assert direct.said is not None, f"without the wrapper: {direct.failed}"
    assert wrapped.said is not None, f"with the wrapper: {wrapped.failed}"
    return Pair(direct.said, wrapped.said, talk.capture)


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
    events = shown(pair.capture)

    said = list(messages(pair.capture))
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


# Sessions that are held again with their replays. Servers of 2026-07-28 know no HTTP+SSE.
AGAIN = [
    *((client, "everything", way) for client in ("sdk1", "sdk2-auto") for way in WAYS),
    *(("sdk2-auto", "sdk2_server", way) for way in ("stdio", "http")),
    ("sdk1", "filesystem", "stdio"),
]


# Sessions whose client's part is sent to the server again.
SENT = [("sdk1", "everything"), ("sdk2-auto", "sdk2_server")]


@pytest.fixture(scope="session")
def sent(
    held: dict[str, Future[Held]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[tuple[str, str], Future[Ran]]]:
    """What comes of it; it is begun early, for most of it is waiting."""
    folder = tmp_path_factory.mktemp("sent")

    def send(client: str, server: str) -> Ran:
        talk, _ = held[client].result(SECONDS)[server, True]
        command = server_command(server, folder)
        return run("replay", str(talk.capture), "--allow-writes", "--to", "--", *command, cwd=folder)

    with ThreadPoolExecutor(max_workers=len(SENT)) as pool:
        yield {(client, server): pool.submit(send, client, server) for client, server in SENT if client in held}


@pytest.fixture(scope="session")
def replayed(
    held: dict[str, Future[Held]],
    sent: dict[tuple[str, str], Future[Ran]],
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[tuple[str, str, str], Again]:
    """What the clients say of the replays that the selected tests ask for."""
    asked: dict[str, list[tuple[str, str]]] = {}
    for item in request.session.items:
        if isinstance(item, pytest.Function) and item.path == Path(__file__) and "again" in item.fixturenames:
            client, server, way = (item.callspec.params[name] for name in ("client", "server", "way"))
            if client in held and (server, way) not in asked.setdefault(client, []):
                asked[client].append((server, way))
    folder = tmp_path_factory.mktemp("replays")

    def hold_all(client: str) -> list[Again]:
        outcomes = held[client].result(SECONDS)
        sessions = []
        for server, way in asked[client]:
            talk, outcome = outcomes[server, True]
            replay = Replay(talk.capture, way, folder / f"{client}-{server}-{way}")
            sessions.append((talk.plan(), outcome, replay))
        return hold_again(client, sessions)

    with ThreadPoolExecutor(max_workers=len(CLIENTS)) as pool:
        done = {client: pool.submit(hold_all, client) for client in asked}
        return {
            (client, *which): again
            for client, future in done.items()
            for which, again in zip(asked[client], future.result(SECONDS), strict=True)
        }


@pytest.fixture
def again(replayed: dict[tuple[str, str, str], Again], client: str, server: str, way: str) -> Again:
    if not installed(client, server):
        missing(f"the server {server!r} or the client {client!r}")
    return replayed[client, server, way]


@pytest.mark.parametrize(("client", "server", "way"), AGAIN)
def test_the_client_gets_the_same_results_from_the_replay(again: Again, server: str) -> None:
    assert again.replayed.said is not None, f"{again.replayed.failed}\n{again.replay.log}"
    assert again.recorded.said is not None
    assert exactly(again.replayed.told) == exactly(again.recorded.told)
    assert complaints(again.replay.report()) == []


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("client", "server"), [("sdk1", "everything")])
def test_an_unlike_client_gets_the_same_answers_from_the_replay(pair: Pair, way: str, tmp_path: Path) -> None:
    """It asks in another order, under other kinds of ids, two at a time."""
    replay = Replay(pair.capture, way, tmp_path)
    with serving([replay]):
        found = asyncio.run(asking.differences(asking.Recorded(messages(pair.capture)), way, replay.target))
    assert found == [], replay.log
    assert complaints(replay.report()) == []


@pytest.mark.parametrize(("client", "server"), SENT)
def test_the_real_server_has_not_changed(sent: dict[tuple[str, str], Future[Ran]], client: str, server: str) -> None:
    """As far as the stock normalisers tell."""
    if not installed(client, server):
        missing(f"the server {server!r} or the client {client!r}")
    done = sent[client, server].result(SECONDS)
    assert done.status == 0, f"{done.out}\n{done.err}"
    assert " 0 same" not in done.out.splitlines()[-1]


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
