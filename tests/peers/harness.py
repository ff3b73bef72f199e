"""Run the client scripts and read captures: what the peer tests of every transport share."""

import contextlib
import json
import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest

from tests.cli.ready import Child
from tests.cli.running import run
from tests.peers.sessions import Plan, canonical

REPO = Path(__file__).resolve().parents[2]
PEERS = REPO / "tests" / "peers"
SERVERS = REPO / "tests" / "servers"
NODE = PEERS / "node_modules" / ".bin"
SDK1 = REPO / ".env-sdk1" / "bin"
SDK2 = REPO / ".env-sdk2" / "bin"
RELAY = [sys.executable, "-m", "mcpsniff", "http"]
SECONDS = 200
PORTS = list(range(20_000, 30_000))
START_SECONDS = 100
STOP_SECONDS = 60

CLIENTS = {
    "sdk1": [SDK1 / "python", PEERS / "client_sdk1.py"],
    "sdk2": [SDK2 / "python", PEERS / "client_sdk2.py", "legacy"],
    "sdk2-auto": [SDK2 / "python", PEERS / "client_sdk2.py", "auto"],
    "ts1": ["node", PEERS / "client_ts.mjs", "1"],
    "ts2": ["node", PEERS / "client_ts.mjs", "2"],
    "ts2-auto": ["node", PEERS / "client_ts.mjs", "2-auto"],
}


@dataclass(frozen=True)
class Outcome:
    """What became of a session: its canonical JSON, or why it failed; and the former as it was told."""

    said: str | None
    failed: str
    told: Any = None


def hold(client: str, plans: list[Plan], through: Sequence[str] = ()) -> list[Outcome]:
    """Let one client hold its sessions; servers that it starts see its working folder. ``through`` is to start it."""
    done = subprocess.run(
        [*through, *map(str, CLIENTS[client])],
        cwd=REPO,
        input="".join(f"{plan.line()}\n" for plan in plans),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=SECONDS,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    assert done.returncode == 0, done.stderr
    return [
        Outcome(
            canonical(line["said"], plan.folder) if "said" in line else None,
            f"{line.get('failed')}\n{done.stderr}",
            line.get("said"),
        )
        for plan, line in zip(plans, map(json.loads, done.stdout.split("\n")[:-1]), strict=True)
    ]


def missing(what: str) -> None:
    """Skip the running test because ``what`` is not installed; where CI=true that is a failure instead."""
    text = f"{what} is missing: `make peers` installs what the peer tests need"
    if os.environ.get("CI") == "true":
        pytest.fail(text, pytrace=False)
    pytest.skip(text)


def shown(capture: Path) -> list[dict[str, Any]]:
    """What `mcpsniff show --format json` says, each line of it valid JSON."""
    done = run("show", str(capture), "--format", "json", "--payload")
    assert done.status == 0, done.err
    return [json.loads(line) for line in done.out.split("\n") if line]


TAKES_LONG: Final = frozenset({"server-slow-exit", "request-slow"})
"""Findings that say no more than that something took its time, as everything does on a machine that is busy."""


def blaming(events: list[dict[str, Any]]) -> list[str]:
    """The findings that call something an error or a warning, whatever the machine, each with its event."""
    numbered = {event["n"]: event for event in events if "n" in event}
    return [
        f"{event}\n  {numbered.get(event['at'])}"
        for event in events
        if event["type"] == "finding" and event["severity"] in ("error", "warning") and event["name"] not in TAKES_LONG
    ]


def free_port() -> int:
    """A port to listen on, below those that systems give to clients: nobody gets it before the program that is to."""
    while True:
        port = random.choice(PORTS)
        PORTS.remove(port)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port


@contextlib.contextmanager
def running(command: list[str], ports: list[int], log: Path, **env: str) -> Iterator[subprocess.Popen[bytes]]:
    """A program that listens on these ports, from when it does until the end of the block, when it is told to stop."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, cwd=REPO, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env={**os.environ, **env}
        )
    try:
        for port in ports:
            wait_for(port, process, log)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_for(port: int, process: subprocess.Popen[bytes] | Child, log: Path) -> None:
    """Wait until somebody listens on the port."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise AssertionError(f"nobody listens on {port}:\n{log.read_text(errors='replace')}")


@contextlib.contextmanager
def relaying(upstreams: dict[str, str], folder: Path) -> Iterator[dict[str, str]]:
    """`mcpsniff http` before these URLs, by name; gives the URLs to use instead. `captured` finds what it wrote."""
    ports = {name: free_port() for name in upstreams}
    command = [*RELAY, "--dir", str(folder / "captures"), "--quiet"]
    for name, url in upstreams.items():
        command += [f"{name}={url}", "--listen", f"127.0.0.1:{ports[name]}"]
    log = folder / "mcpsniff.log"
    with running(command, list(ports.values()), log) as process:
        yield {
            name: urlsplit(url)._replace(netloc=f"127.0.0.1:{ports[name]}").geturl() for name, url in upstreams.items()
        }
    assert process.returncode == 0, log.read_text(errors="replace")


def captured(folder: Path, name: str) -> Path:
    """The capture of that name which `relaying` left."""
    (capture,) = (folder / "captures").glob(f"{name}-2*.mcpcap")
    return capture
