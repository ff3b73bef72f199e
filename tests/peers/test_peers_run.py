"""Real clients under `mcpsniff run`, and without, with real servers, on plain HTTP and behind TLS.

The same results either way, every request paired, nobody blamed. The TLS is a terminator of the test's own, whose CA
only mcpsniff is told of: the client trusts what mcpsniff run sets for it. ``localhost`` and ``127.0.0.1`` go through
the proxy like any other host.
"""

import contextlib
import functools
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.test_conformance import node
from tests.mitm.certificates import Authority
from tests.mitm.terminator import Terminator
from tests.peers.harness import (
    PEERS,
    SDK1,
    SDK2,
    SECONDS,
    SERVERS,
    Outcome,
    blaming,
    free_port,
    hold,
    missing,
    running,
    shown,
)
from tests.peers.sessions import SESSIONS, Plan

pytestmark = [pytest.mark.peers, pytest.mark.timeout(SECONDS)]

RUN = [sys.executable, "-m", "mcpsniff", "run"]
TALKS = [
    ("sdk1", "sdk1_server"),
    ("sdk1", "sdk2_server"),
    ("sdk2", "sdk2_server"),
    ("sdk2-auto", "sdk2_server"),
    ("ts1", "sdk1_server"),
    ("ts2", "sdk2_server"),
    ("ts2-auto", "sdk2_server"),
]


@dataclass(frozen=True)
class Held:
    """What a client said without mcpsniff, and under it on plain HTTP and over TLS; and what was captured of these."""

    direct: Outcome
    plain: Outcome
    secure: Outcome
    events: list[dict[str, Any]]


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], int]]:
    """Gives the port of a server by name: one of each name for all clients."""
    folder = tmp_path_factory.mktemp("servers")
    with contextlib.ExitStack() as stack:

        @functools.cache
        def start(server: str) -> int:
            place = SDK1 if server == "sdk1_server" else SDK2
            if not (place / "python").exists():
                missing(f"the SDK in {place.parent.name}")
            port = free_port()
            command = [str(place / "python"), str(SERVERS / f"{server}.py"), "http", str(port)]
            stack.enter_context(running(command, [port], folder / f"{server}.log"))
            return port

        yield start


@pytest.fixture(scope="module", params=TALKS, ids="-".join)
def held(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, serving: Callable[[str], int]
) -> Held:
    client, server = request.param
    if client.startswith("ts") and not (PEERS / "node_modules").exists():
        missing("the TypeScript SDK")
    folder = tmp_path_factory.mktemp(f"run-{client}-{server}")
    authority = Authority(folder)
    with pytest.MonkeyPatch.context() as patch:
        port = serving(server)
        if client.startswith("ts"):
            patch.setenv("PATH", os.pathsep.join([str(Path(node()).parent), os.environ["PATH"]]))
        steps = SESSIONS[server](folder)
        with Terminator(port, str(authority.issue())) as terminator:
            plain = Plan(server, folder / "a", "http", f"http://127.0.0.1:{port}/mcp", steps)
            secure = Plan(server, folder / "a", "http", f"{terminator.url}/mcp", steps)
            (direct,) = hold(client, [plain])
            options = ["--dir", str(folder / "captures"), "--quiet", "--upstream-ca", str(authority.file)]
            outcomes = hold(client, [plain, secure], [*RUN, *options, "--"])
    (capture,) = (folder / "captures").glob("*.mcpcap")
    return Held(direct, *outcomes, shown(capture))


def test_the_client_gets_the_same_results(held: Held) -> None:
    assert held.direct.said is not None, held.direct.failed
    assert held.plain.said is not None, held.plain.failed
    assert held.secure.said is not None, held.secure.failed
    assert held.plain.said == held.direct.said
    assert held.secure.said == held.direct.said


def test_every_request_is_paired_and_nobody_is_blamed(held: Held) -> None:
    seen = [event for event in held.events if event["type"] == "message"]
    requests = {event["n"] for event in seen if event["kind"] == "request"}
    exchanges = [event for event in held.events if event["type"] == "exchange"]
    assert len(requests) == len(exchanges) > 20
    assert {exchange["request"] for exchange in exchanges} == requests
    states = Counter(exchange["state"] for exchange in exchanges)
    assert set(states) <= {"answered", "errored", "input-required", "cancelled"}
    assert blaming(held.events) == []


def test_both_ways_are_in_the_capture_in_full(held: Held) -> None:
    """Each session of the two has the same requests."""
    seen = [event for event in held.events if event["type"] == "message" and event["kind"] == "request"]
    asked = [Counter(), Counter()]  # type: list[Counter[str]]
    talks = sorted({event["conversation"] for event in seen})
    for event in seen:
        asked[talks.index(event["conversation"]) >= len(talks) / 2][event["method"]] += 1
    assert asked[0] == asked[1]
