#!/usr/bin/env python3
"""How fast does a replayed server answer over stdio, and how well does it keep the recorded gaps?

python bench/replay.py [--requests 4000] [--gaps 300] [--json OUT]

rate        requests a second with `--timing none`, one after another, and eight at a time; beside them a server of
            four lines in the same place, which does nothing but answer: the ratio is what means something
gaps        with `--timing original`: by how much the moments of lines that came 1 ms to 1.5 s after one another are
            off, in milliseconds and as a part of the gap; a gap is good within 10 ms or 5 %
start       seconds from the start of the process to the answer to initialize, for a capture of 10,000 messages
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

REPO = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPO))
sys.path.insert(0, str(REPO / "tests" / "torture"))

from _bench import median, pct  # noqa: E402

from mcpsniff.capture.records import Record  # noqa: E402
from mcpsniff.capture.writer import CaptureWriter  # noqa: E402

LEAST = 2_000.0
"""Requests a second, one after another; what docs/architecture.md promises."""
GOOD_MS, GOOD_PART = 10.0, 0.05

PLAIN = """
import sys, json
for line in sys.stdin:
    print(json.dumps({"jsonrpc": "2.0", "id": json.loads(line)["id"], "result": {"content": []}}), flush=True)
"""
OPEN = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
SERVER = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}


class Writing:
    """Makes a capture of a wrapped server."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._t = 0
        self._records = [
            Record(0, "open", 0, {"kind": "stdin", "dir": "c2s", "conn": 0}),
            Record(0, "open", 1, {"kind": "stdout", "dir": "s2c", "conn": 0, "of": 0}),
        ]
        self.say(0, 0, id=0, method="initialize", params=OPEN)
        self.say(1, 100, id=0, result=SERVER)

    def say(self, channel: int, gap_us: int, **members: Any) -> None:
        self._t += gap_us
        line = json.dumps({"jsonrpc": "2.0", **members}).encode() + b"\n"
        self._records.append(Record(self._t, "chunk", channel, line))

    def save(self) -> Path:
        with self._path.open("wb") as file:
            header = {"run": "bench", "started": "2026-11-29T10:00:00.000000Z", "transport": "stdio"}
            CaptureWriter(file.fileno(), str(self._path), header).append(self._records)
        return self._path


def call(number: int, tool: str) -> dict[str, Any]:
    """A tool call."""
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": tool, "arguments": {}}}


class Server:
    """A server on pipes."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=REPO
        )
        self.send({"jsonrpc": "2.0", "id": "i", "method": "initialize", "params": OPEN})
        self.line()

    def send(self, *messages: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"".join(json.dumps(one).encode() + b"\n" for one in messages))
        self.process.stdin.flush()

    def line(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        found: dict[str, Any] = json.loads(self.process.stdout.readline())
        return found

    def stop(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(20)


def replay(capture: Path, *options: str) -> list[str]:
    """The command that serves a capture."""
    return [sys.executable, "-m", "mcpsniff", "replay", str(capture), "--serve", "stdio", *options]


def rate(server: Server, requests: int, at_once: int) -> float:
    """Requests a second, so many of them open at a time."""
    start = time.perf_counter()
    for first in range(0, requests, at_once):
        server.send(*(call(first + offset, f"tool{offset % 8}") for offset in range(at_once)))
        for _ in range(at_once):
            server.line()
    return requests / (time.perf_counter() - start)


def measure_rates(folder: Path, requests: int) -> dict[str, float]:
    """Requests a second of the replay and of the plain server, taking turns."""
    writing = Writing(folder / "rate.mcpcap")
    for number in range(5_000):
        tool = f"tool{number % 8}"
        writing.say(0, 1000, **{key: value for key, value in call(number, tool).items() if key != "jsonrpc"})
        writing.say(1, 1000, id=number, result={"content": []})
    capture = writing.save()
    start = time.perf_counter()
    replayed = Server(replay(capture))
    found = {"start": time.perf_counter() - start}
    plain = Server([sys.executable, "-c", PLAIN])
    for name, at_once in (("one", 1), ("eight", 8)):
        turns = [(rate(replayed, requests // 5, at_once), rate(plain, requests // 5, at_once)) for _ in range(5)]
        found[name], found[f"{name}, plain"] = median([one for one, _ in turns]), median([one for _, one in turns])
    replayed.stop()
    plain.stop()
    return found


def measure_gaps(folder: Path, number: int) -> dict[str, float]:
    """By how much gaps are off, between all lines of ten scenes that are played at the same time."""
    rng = random.Random(7)
    gaps = [[rng.choice((1, 2, 5, 20, 50, 100, 300, 1500)) * 1000 for _ in range(number // 10)] for _ in range(10)]
    moments = []
    for scene in range(10):
        said = []
        at = 0
        for gap in gaps[scene]:
            at += gap
            said.append((at, scene))
        moments += said
    writing = Writing(folder / "gaps.mcpcap")
    for scene in range(10):
        params = {"name": f"tool{scene}", "_meta": {"progressToken": scene}}
        writing.say(0, 0, id=scene, method="tools/call", params=params)
    now = 0
    for at, scene in sorted(moments):
        params = {"progressToken": scene, "progress": at}
        writing.say(1, at - now, method="notifications/progress", params=params)
        now = at
    server = Server(replay(writing.save(), "--timing", "original"))
    asked = [call(scene, f"tool{scene}") for scene in range(10)]
    for one in asked:
        one["params"] = {"name": one["params"]["name"], "_meta": {"progressToken": one["id"]}}
    server.send(*asked)
    began = time.perf_counter()
    before = dict.fromkeys(range(10), (began, 0))
    errors: list[tuple[float, float]] = []
    while len(errors) < len(moments):
        params = server.line().get("params")
        came = time.perf_counter()
        if params is None:  # the capture has no answers
            continue
        last, at = before[params["progressToken"]]
        gap = (params["progress"] - at) / 1e6
        errors.append((abs(came - last - gap) * 1000, gap))
        before[params["progressToken"]] = (came, params["progress"])
    server.process.kill()
    good = sum(ms <= GOOD_MS or ms <= GOOD_PART * gap * 1000 for ms, gap in errors)
    late = max(last - began - at / 1e6 for last, at in before.values())
    return {
        "gaps": len(errors),
        "good": good / len(errors),
        "median ms": median([ms for ms, _ in errors]),
        "p99 ms": pct([ms for ms, _ in errors], 99),
        "p99 part of gaps over 100 ms": pct([ms / gap / 1000 for ms, gap in errors if gap >= 0.1], 99),
        "drift ms": late * 1000,
    }


def main() -> int:
    """Print what was measured; 1 if it is less than what is promised."""
    parser = argparse.ArgumentParser(description="Benchmark of the replay as a server.")
    parser.add_argument("--requests", type=int, default=4_000)
    parser.add_argument("--gaps", type=int, default=300)
    parser.add_argument("--json", metavar="OUT")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mcpsniff-bench-") as folder:
        rates = measure_rates(Path(folder), options.requests)
        gaps = measure_gaps(Path(folder), options.gaps)
    for name, words in (("one", "one after another"), ("eight", "eight at a time")):
        one, other = rates[name], rates[f"{name}, plain"]
        print(f"{words:<20} {one:8,.0f} requests/s   {one / other:5.2f} x the plain server ({other:,.0f}/s)")
    print(f"{'start':<20} {rates['start']:8.2f} s for a capture of 10,000 messages")
    print(f"{'gaps kept':<20} {gaps['good']:8.1%} of {gaps['gaps']:.0f}: within {GOOD_MS:.0f} ms or {GOOD_PART:.0%}")
    for name in ("median ms", "p99 ms", "drift ms"):
        print(f"{name:<20} {gaps[name]:8.2f}")
    print(f"{'p99, gaps > 100 ms':<20} {gaps['p99 part of gaps over 100 ms']:8.2%}")
    if options.json:
        Path(options.json).write_text(json.dumps({"rates": rates, "gaps": gaps}, indent=2), encoding="utf-8")
    return 0 if rates["one"] >= LEAST and gaps["good"] >= 0.99 else 1


if __name__ == "__main__":
    sys.exit(main())
