"""Real clients and real servers over HTTP+SSE and Streamable HTTP, with `mcpsniff http` between them and without.

As in test_peers.py: the same results either way, every request paired, nobody blamed, and the same again with the
replay. One server of each kind serves all clients; each client has an upstream, and so a capture, of its own.
"""

import asyncio
import contextlib
import itertools
import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Ran, run
from tests.peers import asking, reading
from tests.peers.harness import (
    CLIENTS,
    NODE,
    PEERS,
    SDK1,
    SDK2,
    SECONDS,
    SERVERS,
    Outcome,
    blaming,
    captured,
    free_port,
    hold,
    missing,
    relaying,
    running,
    shown,
    wait_for,
)
from tests.peers.replaying import WAYS, Again, Replay, complaints, exactly, hold_again
from tests.peers.replaying import serving as serving_replays
from tests.peers.sessions import SESSIONS, Plan, Step, plain_session

pytestmark = [pytest.mark.peers, pytest.mark.timeout(SECONDS + 40)]

# How each server is reached: `sse` is the HTTP+SSE transport of 2024-11-05, `http` Streamable HTTP, `json` the same
# with whole bodies instead of event streams.
TALKS = [
    *(("sdk1", "everything", way) for way in ("sse", "http")),
    *(("sdk1", "sdk1_server", way) for way in ("sse", "http", "json")),
    ("sdk1", "sdk2_server", "http"),
    ("sdk2", "everything", "http"),
    *(("sdk2", "sdk2_server", way) for way in ("sse", "http")),
    *(("sdk2-auto", "everything", way) for way in ("sse", "http")),
    ("sdk2-auto", "sdk1_server", "http"),
    *(("sdk2-auto", "sdk2_server", way) for way in ("sse", "http", "json")),
    *(("ts1", "everything", way) for way in ("sse", "http")),
    ("ts1", "sdk1_server", "http"),
    ("ts2", "sdk1_server", "sse"),
    ("ts2", "sdk2_server", "http"),
    ("ts2-auto", "everything", "http"),
    *(("ts2-auto", "sdk2_server", way) for way in ("http", "json")),
]
# Sessions whose client's part is sent to the servers again; none in which a client is told what others did meanwhile.
SENT = [
    ("sdk1", "everything", "sse"),
    ("sdk2-auto", "everything", "http"),
    ("sdk1", "sdk1_server", "http"),
    ("sdk2-auto", "sdk2_server", "json"),
]
every_talk = pytest.mark.parametrize(("client", "server", "way"), TALKS)


@dataclass(frozen=True)
class Talk:
    """A session that a client is to hold twice: which server, in which way, and the name of its capture."""

    client: str
    server: str
    way: str

    @property
    def name(self) -> str:
        return f"{self.client}-{self.server}-{self.way}"

    def steps(self) -> list[Step]:
        return (plain_session if self.way == "json" else SESSIONS[self.server])(Path("/"))

    def plan(self, url: str, folder: Path) -> Plan:
        transport = "sse" if self.way == "sse" else "http"
        return Plan(self.server, folder, transport, url, self.steps())

    def installed(self) -> bool:
        programs = [CLIENTS[self.client][0], server_command(self.server, self.way, 0)[0]]
        sdk = not self.client.startswith("ts") or (PEERS / "node_modules").exists()
        return sdk and all(shutil.which(program) for program in programs)


def server_command(server: str, way: str, port: int) -> list[str]:
    if server == "everything":
        return [str(NODE / "mcp-server-everything"), "sse" if way == "sse" else "streamableHttp"]
    place = SDK1 if server == "sdk1_server" else SDK2
    return [str(place / "python"), str(SERVERS / f"{server}.py"), way, str(port)]


@contextlib.contextmanager
def serving(kinds: set[tuple[str, str]], folder: Path) -> Iterator[dict[tuple[str, str], str]]:
    """All servers of these kinds, started side by side; gives the URL of each."""
    urls, started = {}, []
    with contextlib.ExitStack() as stack:
        for server, way in sorted(kinds):
            port = free_port()
            urls[server, way] = f"http://127.0.0.1:{port}/{'sse' if way == 'sse' else 'mcp'}"
            log = folder / f"{server}-{way}.log"
            program = running(server_command(server, way, port), [], log, PORT=str(port))
            started.append((port, stack.enter_context(program), log))
        for port, process, log in started:
            wait_for(port, process, log)
        yield urls


@dataclass(frozen=True)
class Held:
    """What became of all sessions, directly and through the relay, and what `show` says of their captures.

    ``sent`` is what came of it when some of the captures were sent to the servers again.
    """

    outcomes: dict[Talk, tuple[Outcome, Outcome]]
    events: dict[Talk, Future[list[dict[str, Any]]]]
    folder: Path
    sent: dict[Talk, Future[Ran]]


def hold_talks(client: str, talks: list[Talk], urls: list[dict[Talk, str]], folder: Path) -> Iterator[Outcome]:
    return iter(hold(client, [talk.plan(each[talk], folder / talk.name) for talk in talks for each in urls]))


def send(capture: Path, url: str) -> Ran:
    return run("replay", str(capture), "--allow-writes", "--to", url)


@pytest.fixture(scope="session")
def held(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Held:
    """All sessions that the selected tests ask for. The clients run side by side: most of it is waiting."""
    names = ("client", "server", "way")
    asked = sorted(
        {
            tuple(item.callspec.params[name] for name in names)
            for item in request.session.items
            if isinstance(item, pytest.Function) and item.path == Path(__file__)
        }
    )
    talks = [talk for talk in itertools.starmap(Talk, asked) if talk.installed()]
    folder = tmp_path_factory.mktemp("http")
    if not talks:
        return Held({}, {}, folder, {})
    with serving({(talk.server, talk.way) for talk in talks}, folder) as servers:
        direct = {talk: servers[talk.server, talk.way] for talk in talks}
        with relaying({talk.name: direct[talk] for talk in talks}, folder) as relays, ThreadPoolExecutor() as pool:
            relayed = {talk: relays[talk.name] for talk in talks}
            by_client = itertools.groupby(talks, lambda talk: talk.client)
            holding = [
                (mine, pool.submit(hold_talks, client, mine, [direct, relayed], folder))
                for client, mine in ((client, list(group)) for client, group in by_client)
            ]
            outcomes = {
                talk: (next(said), next(said))
                for mine, done in holding
                for said in [done.result(SECONDS)]
                for talk in mine
            }
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            sending = [talk for talk in talks if (talk.client, talk.server, talk.way) in SENT]
            sent = {talk: pool.submit(send, captured(folder, talk.name), direct[talk]) for talk in sending}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        events = {talk: pool.submit(shown, captured(folder, talk.name)) for talk in talks}
    return Held(outcomes, events, folder, sent)


@dataclass(frozen=True)
class Pair:
    """What one client said of one server without the relay and through it, and what was captured of the latter."""

    direct: str
    relayed: str
    capture: Path
    events: list[dict[str, Any]]


@pytest.fixture
def pair(held: Held, client: str, server: str, way: str) -> Pair:
    talk = Talk(client, server, way)
    if not talk.installed():
        missing(f"the server {server!r} or the client {client!r}")
    direct, relayed = held.outcomes[talk]
    assert direct.said is not None, f"without the relay: {direct.failed}"
    assert relayed.said is not None, f"through the relay: {relayed.failed}"
    return Pair(direct.said, relayed.said, captured(held.folder, talk.name), held.events[talk].result())


@every_talk
def test_the_client_gets_the_same_results(pair: Pair, client: str, server: str, way: str) -> None:
    assert pair.relayed == pair.direct
    steps = json.loads(pair.relayed)["steps"]
    assert len(steps) == len(Talk(client, server, way).steps())
    assert sum("error" in step for step in steps) == (server == "everything")


@every_talk
def test_the_capture_pairs_every_request_and_blames_nobody(pair: Pair, client: str, server: str, way: str) -> None:
    events = pair.events
    seen = [event for event in events if event["type"] == "message"]
    assert Counter((event["direction"], event.get("method"), event.get("id")) for event in seen) == Counter(
        (direction, message.get("method"), message.get("id")) for direction, message in reading.messages(pair.capture)
    )

    requests = {event["n"] for event in seen if event["kind"] == "request"}
    exchanges = [event for event in events if event["type"] == "exchange"]
    assert {exchange["request"] for exchange in exchanges} == requests
    assert len(exchanges) == len(requests)
    states = Counter(exchange["state"] for exchange in exchanges)
    assert states.pop("answered") > 0
    assert states == unusual_states(client, server, way)
    assert blaming(events) == []


def unusual_states(client: str, server: str, way: str) -> Counter[str]:
    """How many exchanges of a session end otherwise than with a plain answer."""
    states: Counter[str] = Counter()
    if server == "everything":
        states += Counter(cancelled=1, errored=1)  # a call is cancelled, a resource does not exist
    if client.endswith("-auto"):
        if server == "sdk2_server" and way != "json":
            states += Counter({"input-required": 2, "cancelled": 1})  # two questions; the subscription stream is closed
        elif server != "sdk2_server":
            states += Counter(errored=1)  # server/discover is not known to a server on an older revision
    return states


@pytest.mark.parametrize(("client", "server", "way"), [("sdk1", "sdk1_server", "http")])
def test_the_session_has_a_resumed_stream(pair: Pair, client: str, server: str, way: str) -> None:
    """What the other tests say of resumed streams, they say of streams that were."""
    asked = [dict(each.request.headers) for each in reading.answered(pair.capture) if each.request.method == b"GET"]
    assert any(b"last-event-id" in headers for headers in asked)


# Sessions that are held again with their replays, on each transport that their clients and revisions know.
AGAIN = [
    *(
        (client, "everything", way, served)
        for client in ("sdk1", "sdk2-auto")
        for way in ("sse", "http")
        for served in WAYS
    ),
    *(("sdk2-auto", "sdk2_server", "http", served) for served in ("stdio", "http")),
    ("sdk2-auto", "sdk2_server", "json", "http"),
    ("sdk1", "sdk1_server", "http", "http"),
    ("sdk1", "sdk1_server", "json", "http"),
    ("ts1", "everything", "http", "http"),
    ("ts2-auto", "sdk2_server", "http", "http"),
]


@pytest.fixture(scope="session")
def replayed(
    held: Held, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple[Talk, str], Again]:
    """What the clients say of the replays that the selected tests ask for."""
    names = ("client", "server", "way", "served")
    asked = [
        (Talk(*(item.callspec.params[name] for name in names[:3])), item.callspec.params["served"])
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.path == Path(__file__) and "again" in item.fixturenames
    ]
    folder = tmp_path_factory.mktemp("replays")
    sessions: dict[str, list[tuple[Plan, Outcome, Replay]]] = {}
    for talk, served in asked:
        if talk in held.outcomes:
            replay = Replay(captured(held.folder, talk.name), served, folder / f"{talk.name}-{served}")
            plan = talk.plan("", held.folder / talk.name)
            sessions.setdefault(talk.client, []).append((plan, held.outcomes[talk][1], replay))
    with ThreadPoolExecutor() as pool:
        done = {client: pool.submit(hold_again, client, each) for client, each in sessions.items()}
        found = {client: iter(future.result(SECONDS)) for client, future in done.items()}
    return {(talk, served): next(found[talk.client]) for talk, served in asked if talk in held.outcomes}


@pytest.fixture
def again(replayed: dict[tuple[Talk, str], Again], client: str, server: str, way: str, served: str) -> Again:
    talk = Talk(client, server, way)
    if not talk.installed():
        missing(f"the server {server!r} or the client {client!r}")
    return replayed[talk, served]


@pytest.mark.parametrize(("client", "server", "way", "served"), AGAIN)
def test_the_client_gets_the_same_results_from_the_replay(again: Again) -> None:
    assert again.replayed.said is not None, f"{again.replayed.failed}\n{again.replay.log}"
    assert again.recorded.said is not None
    assert exactly(again.replayed.told) == exactly(again.recorded.told)
    assert complaints(again.replay.report()) == []


@pytest.mark.parametrize("served", WAYS)
@pytest.mark.parametrize(("client", "server", "way"), [("sdk1", "everything", way) for way in ("sse", "http")])
def test_an_unlike_client_gets_the_same_answers_from_the_replay(pair: Pair, served: str, tmp_path: Path) -> None:
    """It asks in another order, under other kinds of ids, two at a time."""
    replay = Replay(pair.capture, served, tmp_path)
    recorded = asking.Recorded(reading.messages(pair.capture))
    with serving_replays([replay]):
        found = asyncio.run(asking.differences(recorded, served, replay.target))
    assert found == [], replay.log
    assert complaints(replay.report()) == []


@pytest.mark.parametrize(("client", "server", "way"), SENT)
def test_the_real_server_has_not_changed(held: Held, client: str, server: str, way: str) -> None:
    """As far as the stock normalisers tell."""
    talk = Talk(client, server, way)
    if not talk.installed():
        missing(f"the server {server!r} or the client {client!r}")
    done = held.sent[talk].result()
    assert done.status == 0, f"{done.out}\n{done.err}"
    assert " 0 same" not in done.out.splitlines()[-1]
