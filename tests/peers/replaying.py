"""Serve captures with `mcpsniff replay --serve`, so that the program which was recorded can be run against them."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.cli.ready import Child, ready
from tests.cli.running import environment
from tests.peers.harness import STOP_SECONDS, Outcome, free_port, hold, wait_for
from tests.peers.sessions import Plan

WAYS = ("stdio", "http", "sse")
REPLAY = [sys.executable, "-m", "mcpsniff", "replay"]


@dataclass
class Replay:
    """One capture that is to be served: on which transport, and with which other options."""

    capture: Path
    way: str
    place: Path
    """A folder for what it leaves."""
    options: tuple[str, ...] = ()
    port: int = 0
    child: Child | None = None

    @property
    def words(self) -> list[str]:
        """The command line, without the program."""
        listen = [] if self.way == "stdio" else ["--listen", f"127.0.0.1:{self.port}"]
        report = ["--report", str(self.place / "report.json")]
        return ["replay", str(self.capture), "--serve", self.way, *listen, *report, *self.options]

    @property
    def target(self) -> str | list[str]:
        """Where a client finds it: a command or a URL."""
        if self.way == "stdio":
            return [*REPLAY, *self.words[1:]]
        return f"http://127.0.0.1:{self.port}/{'sse' if self.way == 'sse' else 'mcp'}"

    @property
    def log(self) -> str:
        """What a server for HTTP has said."""
        path = self.place / "replay.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def report(self) -> dict[str, Any]:
        """What it reported at its end."""
        report: dict[str, Any] = json.loads((self.place / "report.json").read_text("utf-8"))
        return report


@contextlib.contextmanager
def serving(replays: list[Replay]) -> Iterator[None]:
    """Let those for HTTP listen until the end of the block; a client starts those on stdio by itself."""
    for replay in replays:
        replay.place.mkdir(parents=True, exist_ok=True)
    listening = [replay for replay in replays if replay.way != "stdio"]
    try:
        for replay in listening:
            start(replay)
        for replay in listening:
            assert replay.child is not None
            wait_for(replay.port, replay.child, replay.place / "replay.log")
        yield
    finally:
        for replay in listening:
            if replay.child is not None:
                replay.child.send_signal(signal.SIGTERM)
        for replay in listening:
            if replay.child is not None:
                stop(replay.child)


def start(replay: Replay) -> None:
    replay.port = free_port()
    with (replay.place / "replay.log").open("wb") as log, open(os.devnull, "rb") as nothing:
        streams = [nothing.fileno(), log.fileno(), log.fileno()]
        replay.child = ready().start(replay.words, streams, environment(), None)


def stop(child: Child) -> None:
    try:
        child.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


@dataclass(frozen=True)
class Again:
    """What a client said in the session that was recorded, and in the same one with the replay of it."""

    recorded: Outcome
    replayed: Outcome
    replay: Replay


def hold_again(client: str, sessions: list[tuple[Plan, Outcome, Replay]]) -> list[Again]:
    """Let a client hold sessions again, each with the replay of what was recorded of it."""
    with serving([replay for _, _, replay in sessions]):
        plans = [replace(plan, transport=replay.way, target=replay.target) for plan, _, replay in sessions]
        outcomes = hold(client, plans)
    return [Again(before, now, replay) for (_, before, replay), now in zip(sessions, outcomes, strict=True)]


def exactly(told: dict[str, Any]) -> dict[str, Any]:
    """A session for comparison, times and hashes included: of it only the order of log messages says nothing."""
    return {**told, "logs": sorted(json.dumps(log, sort_keys=True) for log in told["logs"])}


def complaints(report: dict[str, Any]) -> list[str]:
    """What a report has besides requests that were served, all of them, and answers that are the recorded ones."""
    answers = {name: report["answers"][name] for name in ("other", "differences", "stray")}
    names = ("missed", "misses", "never_asked", "not_cancelled", "cancelled_only_now", "made_up", "lacks")
    told = {**answers, **{name: report[name] for name in (*names, "notifications_not_recorded")}}
    return [f"{name}: {value}" for name, value in told.items() if value]
