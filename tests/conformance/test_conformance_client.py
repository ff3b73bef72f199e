"""The client scenarios of the official conformance suite, under `mcpsniff run` and without.

The servers are the suite's own, the client is one on the TypeScript SDK 2.x. mcpsniff must not change the verdict on
any check, those on OAuth included, and its captures must hold and pair every message that the client sent and received.
"""

import json
import re
import shlex
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.cli.running import run
from tests.conformance.test_conformance import SUITES, Verdicts, node
from tests.peers import reading
from tests.peers.harness import PEERS, REPO, missing
from tests.proxy.wrapped import environment

TURN = [sys.executable, "-I", "-S", str(REPO / "tests" / "conformance" / "turn.py")]
RUN = [sys.executable, "-m", "mcpsniff", "run", "--quiet", "--no-transcript"]
SECONDS = 240
CLIENT_SECONDS = 200
STAMP = re.compile(r"-\d{4}-\d\d-\d\dT[^/]*$")
CLOCK = "client-sse-retry-timing"


class Run(NamedTuple):
    """Some scenarios of a version of the suite."""

    package: str
    options: tuple[str, ...]
    number: int
    is_around_clients: bool = False
    """One mcpsniff for each client, instead of one for the suite, which starts the clients and costs much less."""


RUNS = {
    "0.1": Run("conformance-0.1", ("--suite", "all"), 26),
    "0.2-2026-07-28": Run("conformance-0.2", ("--suite", "all", "--spec-version", "2026-07-28"), 33),
    "0.2-extensions": Run("conformance-0.2", ("--suite", "extensions"), 6, is_around_clients=True),
}
pytestmark = [pytest.mark.peers, pytest.mark.timeout(3 * SECONDS)]

# What the suite does wrong on purpose: another resource (MCP545), other issuers or none (MCP546); and servers of
# 2025-03-26 for a client of 2025-11-25, without metadata (MCP540) and, by the client, without `resource` (MCP544).
FAULTS = {
    "0.1": {"MCP540 warning": 2, "MCP544 warning": 4, "MCP545 error": 1, "MCP546 error": 1},
    "0.2-2026-07-28": {"MCP545 error": 1, "MCP546 error": 5},
    "0.2-extensions": {},
}
OF_OAUTH = re.compile("MCP54[0-8]|MCP557")

# Steps of an authorization, and the checks of the suite that each of them makes succeed once.
STEPS = {"registration": "client-registration", "authorization": "authorization-request", "token": "token-request"}


@dataclass(frozen=True)
class Outcome:
    """What the suite found, directly and under mcpsniff; of the latter, the messages by the clients' own account, and
    what is shown of the captures."""

    run: Run
    direct: Verdicts
    watched: Verdicts
    said: list[tuple[str, dict[str, Any]]]
    events: list[dict[str, Any]]
    captures: list[Path]


def suite(run: Run, folder: Path, around_suite: list[str], around_client: list[str]) -> Verdicts:
    """Run a suite; what it notes (INFO) is left out, and what the clock decides."""
    program = SUITES / run.package / "dist" / "index.js"
    if not program.exists() or not (PEERS / "node_modules").exists():
        missing("the conformance suite, or the TypeScript SDK")
    results, places = folder / "results", folder / "places"
    places.mkdir(parents=True)
    client = [*TURN, str(places), *around_client, node(), str(PEERS / "client_conformance.mjs")]
    options = [*run.options, "--timeout", str(CLIENT_SECONDS * 1000), "--output-dir", str(results)]
    done = subprocess.run(
        [*around_suite, node(), str(program), "client", "--command", shlex.join(client), *options],
        cwd=folder,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=SECONDS,
        env=environment(),
    )
    assert "=== SUITE SUMMARY ===" in done.stdout, done.stderr
    return {
        STAMP.sub("", str(path.parent.relative_to(results))): Counter(
            (check["id"], check["status"])
            for check in json.loads(path.read_text("utf-8"))
            if check["status"] != "INFO" and check["id"] != CLOCK
        )
        for path in results.rglob("checks.json")
    }


def heard(places: Path) -> list[tuple[str, dict[str, Any]]]:
    """The messages that the clients sent and received, by their own account."""
    found = []
    for account in places.rglob("said.jsonl"):
        for exchange in map(json.loads, account.read_text("utf-8").splitlines()):
            if exchange["sent"]:
                found.append(("c2s", exchange["sent"]))
            if exchange["kind"].startswith("text/event-stream"):
                found += [("s2c", data) for data in reading.events(exchange["got"].encode())]
            elif exchange["kind"].startswith("application/json"):
                found.append(("s2c", exchange["got"]))
    messages = [(way, reading.parsed(text)) for way, text in found]
    return [(way, message) for way, message in messages if "jsonrpc" in message]


def shown(captures: list[Path]) -> list[dict[str, Any]]:
    """What is shown of all captures together."""
    done = run("show", *map(str, captures), "--format", "json", "--payload")
    assert done.status == 0, done.err
    return [json.loads(line) for line in done.out.split("\n") if line]


@pytest.fixture(scope="module", params=RUNS)
def outcome(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    run = RUNS[request.param]
    folder = tmp_path_factory.mktemp(f"conformance-client-{request.param}")
    direct = suite(run, folder / "direct", [], [])
    under = folder / "under"
    if run.is_around_clients:
        watched = suite(run, under, [], [*RUN, "--"])
    else:
        watched = suite(run, under, [*RUN, "--dir", str(folder), "--"], [])
    captures = sorted(folder.rglob("*.mcpcap"))
    assert len(captures) == (run.number if run.is_around_clients else 1)
    return Outcome(run, direct, watched, heard(under / "places"), shown(captures), captures)


def test_the_client_passes_every_check(outcome: Outcome) -> None:
    """So that equal verdicts say something."""
    failed = {name for name, checks in outcome.direct.items() if any(status == "FAILURE" for _, status in checks)}
    assert failed == set()
    assert len(outcome.direct) == outcome.run.number


def test_every_verdict_is_the_same_under_mcpsniff(outcome: Outcome) -> None:
    assert outcome.watched == outcome.direct


def test_the_captures_have_every_message_paired(outcome: Outcome) -> None:
    seen = [event for event in outcome.events if event["type"] == "message"]
    assert Counter(map(key, seen)) == Counter(key({"direction": way, **message}) for way, message in outcome.said)

    exchanges = [event for event in outcome.events if event["type"] == "exchange"]
    asked = [place(event, "request") for event in exchanges]
    assert len(asked) == len(set(asked))
    assert set(asked) == {place(event, "n") for event in seen if event["kind"] == "request"}
    answers = [event for event in seen if event["kind"] in ("response", "error")]
    # A server of the released suite answers a notification, too.
    assert [event for event in answers if "exchange" not in event and event.get("id") is not None] == []
    # A request that was refused for want of a token has no answer that is a message.
    unanswered = set(asked) - {place(event, "exchange") for event in answers if "exchange" in event}
    assert {event["state"] for event in exchanges if place(event, "request") in unanswered} == {"abandoned"}
    refusals = [event for event in outcome.events if event["type"] == "http" and event["status"] in (401, 403)]
    assert 0 < len(unanswered) <= len(refusals)


def test_every_step_of_an_authorization_is_seen(outcome: Outcome) -> None:
    steps = [event["oauth"] for event in outcome.events if "oauth" in event]
    counted = Counter(step["step"] for step in steps if step["succeeded"])
    passed: Counter[str] = Counter()
    for checks in outcome.watched.values():
        passed.update({check: number for (check, status), number in checks.items() if status == "SUCCESS"})
    assert {step: counted[step] for step in STEPS} == {step: passed[check] for step, check in STEPS.items()}


def test_of_the_authorizations_only_what_is_wrong_on_purpose_is_found(outcome: Outcome) -> None:
    found = [event for event in outcome.events if event["type"] == "finding" and OF_OAUTH.match(event["code"])]
    counted = Counter(f"{event['code']} {event['severity']}" for event in found)
    (expected,) = (FAULTS[name] for name, run in RUNS.items() if run is outcome.run)
    assert {name: number for name, number in counted.items() if not name.endswith(("note", "info"))} == expected


def test_no_token_is_in_a_capture(outcome: Outcome) -> None:
    assert [path for path in outcome.captures if "test-token" in path.read_text("utf-8")] == []


def key(message: dict[str, Any]) -> tuple[object, ...]:
    return message["direction"], message.get("method"), json.dumps(message.get("id"))


def place(event: dict[str, Any], number: str) -> tuple[str | None, int]:
    """Which event of which capture it is, or names."""
    return event.get("label"), event[number]
