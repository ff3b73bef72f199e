"""The official conformance suite against a server, directly, through `mcpsniff http`, and against the replay of that.

The relay must not change the verdict on any check, and its capture must hold and pair every message of the run, those
that the suite sends to provoke an error included. Served again, the capture must earn the same verdicts as the server.
`make peers` installs two versions of the suite, and Node.js for it.
"""

import json
import platform
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.peers import reading
from tests.peers.harness import REPO, SDK2, SERVERS, captured, free_port, missing, relaying, running, shown
from tests.peers.replaying import Replay, serving

SUITES = REPO / "tests" / "conformance" / "node_modules"
OWN_NODE = SUITES / ".bin" / "node"
NODE_MAJOR = 22
SECONDS = 240
RESULT = re.compile(r"server-(.+)-\d{4}-\d\d-\d\dT.*")

# What each run covers: the released suite; all scenarios of the coming one, each on the newest revision with sessions
# that it applies to; those of 2026-07-28 again, in that revision.
RUNS = {
    "0.1": ("conformance-0.1", ["--suite", "all"]),
    "0.2": ("conformance-0.2", ["--suite", "all"]),
    "0.2-2026-07-28": ("conformance-0.2", ["--suite", "all", "--spec-version", "2026-07-28"]),
}
pytestmark = [pytest.mark.peers, pytest.mark.timeout(4 * SECONDS)]

Verdicts = dict[str, Counter[tuple[str, str]]]


@dataclass(frozen=True)
class Outcome:
    """What the suite found, by scenario: how often each check came to each status, directly and through the relay."""

    run: str
    direct: Verdicts
    relayed: Verdicts
    capture: Path


def node() -> str:
    """A Node.js that is new enough for the suite."""
    if OWN_NODE.exists():
        return str(OWN_NODE)
    found = shutil.which("node")
    if found is not None:
        version = subprocess.run([found, "--version"], capture_output=True, text=True).stdout
        if int(version.removeprefix("v").partition(".")[0] or 0) >= NODE_MAJOR:
            return found
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        pytest.skip(f"the conformance suite needs Node.js {NODE_MAJOR} or newer on PATH")
    missing("the Node.js of the conformance suite")
    raise AssertionError


def verdicts(run: str, url: str, folder: Path) -> Verdicts:
    """Run a suite against a URL; notes (INFO) are left out, for how many there are depends on how reads fall."""
    package, options = RUNS[run]
    suite = SUITES / package / "dist" / "index.js"
    if not suite.exists():
        missing("the conformance suite")
    command = [node(), str(suite), "server", "--url", url, "--output-dir", str(folder), *options]
    done = subprocess.run(command, cwd=folder.parent, capture_output=True, text=True, timeout=SECONDS)
    assert "=== SUMMARY ===" in done.stdout, done.stderr
    return {
        RESULT.fullmatch(path.parent.name)[1]: Counter(
            (check["id"], check["status"]) for check in json.loads(path.read_text("utf-8")) if check["status"] != "INFO"
        )
        for path in folder.glob("*/checks.json")
    }


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server that implements what the scenarios ask for."""
    if not (SDK2 / "python").exists():
        missing("the MCP Python SDK 2.x")
    port = free_port()
    log = tmp_path_factory.mktemp("conformance") / "server.log"
    with running([str(SDK2 / "python"), str(SERVERS / "conformance_server.py"), str(port)], [port], log):
        yield f"http://127.0.0.1:{port}/mcp"


@pytest.fixture(scope="module", params=RUNS)
def outcome(request: pytest.FixtureRequest, server: str, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    run = request.param
    folder = tmp_path_factory.mktemp(f"conformance-{run}")
    direct = verdicts(run, server, folder / "direct")
    with relaying({"suite": server}, folder) as relay:
        relayed = verdicts(run, relay["suite"], folder / "relayed")
    return Outcome(run, direct, relayed, captured(folder, "suite"))


def test_the_server_passes_all_but_the_tasks_extension(outcome: Outcome) -> None:
    """So that equal verdicts say something."""
    failed = {name for name, checks in outcome.direct.items() if any(status == "FAILURE" for _, status in checks)}
    assert {name for name in failed if not name.startswith("tasks-")} == set()
    assert len(outcome.direct) - len(failed) > 30


def test_every_verdict_is_the_same_through_the_relay(outcome: Outcome) -> None:
    assert outcome.relayed == outcome.direct


def test_the_capture_has_every_message_of_the_run_paired(outcome: Outcome) -> None:
    events = shown(outcome.capture)
    seen = [event for event in events if event["type"] == "message"]
    said = list(reading.messages(outcome.capture))
    assert Counter(map(key, seen)) == Counter(key({"direction": way, **message}) for way, message in said)

    exchanges = {event["request"]: event for event in events if event["type"] == "exchange"}
    assert len(exchanges) == sum(event["type"] == "exchange" for event in events)
    assert exchanges.keys() == {event["n"] for event in seen if event["kind"] == "request"}
    answers = [event for event in seen if event["kind"] in ("response", "error")]
    # An error without an id answers no message: it is what a GET gets that comes after the end of its session.
    assert [event for event in answers if "exchange" not in event and event["id"] is not None] == []
    # The suite leaves some streams before their answer has come, and a server may refuse a request in plain text.
    unanswered = exchanges.keys() - {event["exchange"] for event in answers if "exchange" in event}
    assert {exchanges[number]["state"] for number in unanswered} <= {"cancelled", "abandoned"}
    assert len(unanswered) < len(exchanges) / 10


def test_every_verdict_is_the_same_when_the_capture_is_served(outcome: Outcome, tmp_path: Path) -> None:
    """No scenario is left out: what the suite makes up anew in each run (ids, states that were tampered with) has a
    place in the sequence, and so the answer to what it made up there when it was recorded."""
    replay = Replay(outcome.capture, "http", tmp_path / "replay", ("--match", "sequence"))
    with serving([replay]):
        replayed = verdicts(outcome.run, str(replay.target), tmp_path / "replayed")
    assert replayed.keys() == outcome.direct.keys()
    other = {name: (found, outcome.direct[name]) for name, found in replayed.items() if found != outcome.direct[name]}
    assert other == {}, replay.log
    report = replay.report()
    assert report["misses"] == []
    # A request that names another host is refused by the replay itself, without a look into the capture.
    assert [asked["method"] for asked in report["never_asked"]] in (["initialize"], ["server/discover"])


def key(message: dict[str, object]) -> tuple[object, ...]:
    return message["direction"], message.get("method"), json.dumps(message.get("id"))
