#!/usr/bin/env python3
"""What edit mode costs, in one run side by side with no wrapper and with the plain one (that is for `bench/stdio.py`).

Usage: python bench/edit.py [--trips 3000] [--posts 3000] [--tries 3] [--json OUT]

    round trip   requests of 200 bytes over stdio, one after another; all candidates take turns in short blocks, so that
                 noise of the machine hits all alike. `edit` has one addon whose hook returns each message as it is,
                 `change` one that changes an argument of each request, which is then written and recorded.

    http         the same of POSTs on a connection that is kept, and of events in a stream (`bench/http.py`)

The exit status says whether the limit is kept. On a busy machine a try that is over it is repeated.
"""

import argparse
import importlib.util
import json
import os
import shlex
import sys
import tempfile
from pathlib import Path

REPO = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPO / "tests" / "torture"))

from _bench import median, pct  # noqa: E402
from stdio_cost import Candidate  # noqa: E402

ADDED = 150.0
"""Microseconds that edit mode may add to a round trip without a wrapper (docs/architecture.md)."""
BLOCK = 100
ADDONS = {
    "edit": "def mcp_edit(message):\n    return message\n",
    "change": "def mcp_edit(message):\n    if message.method == 'ping':\n        message.body['params']['pad'] = 'q'\n"
    "    if message.method == 'tools/call':\n        message.body['params']['arguments']['pad'] = 'q'\n"
    "    return message\n",
}


def candidates(folder: Path) -> list[Candidate]:
    """Return what is measured."""
    script = Path(sys.executable).with_name("mcpsniff")
    program = [str(script)] if script.exists() else [sys.executable, "-m", "mcpsniff"]

    def wrapped(*options: str) -> str:
        return shlex.join([*program, "stdio", "--quiet", "--no-transcript", *options, "--dir"]) + " {capture} --"

    runners = [Candidate("nothing", "", []), Candidate("plain", wrapped(), [])]
    for name, text in ADDONS.items():
        addon = folder / f"{name}.py"
        addon.write_text(text)
        runners.append(Candidate(name, wrapped("--addon", str(addon)), []))
    return runners


def measured(runners: list[Candidate], trips: int) -> dict[str, dict[str, float]]:
    """Return median and p99 of the round trips in microseconds; the first ones of each block do not count."""
    for one in runners:
        one.start()
    taken: dict[str, list[float]] = {one.name: [] for one in runners}
    for start in range(0, trips, BLOCK):
        for one in runners:
            taken[one.name] += [one.trip(start + k) * 1e6 for k in range(BLOCK)][2:]
    for one in runners:
        one.stop()
    return {name: {"p50": median(times), "p99": pct(times, 0.99)} for name, times in taken.items()}


def report(results: dict[str, dict[str, float]]) -> bool:
    """Print one line per candidate and the verdict; return whether the limit is kept."""
    nothing, plain = results["nothing"], results["plain"]
    print(f"{'':10} {'p50 us':>8} {'added':>8} {'x plain':>8} {'p99 us':>8} {'added':>8}")
    for name, row in results.items():
        row["added"], row["added p99"] = row["p50"] - nothing["p50"], row["p99"] - nothing["p99"]
        print(
            f"{name:10} {row['p50']:8.1f} {row['added']:8.1f} {row['p50'] / plain['p50']:8.2f}"
            f" {row['p99']:8.1f} {row['added p99']:8.1f}"
        )
    added = results["edit"]["added"]
    print(f"{'ok  ' if added <= ADDED else 'OVER'} edit mode adds {added:.0f} us to a round trip (limit {ADDED:.0f})")
    return added <= ADDED


def over_http(folder: Path, posts: int) -> dict[str, dict[str, float]]:
    """Measure the same over HTTP, and print one line per way; microseconds."""
    spec = importlib.util.spec_from_file_location("bench_http", REPO / "bench" / "http.py")
    assert spec is not None
    assert spec.loader is not None
    bench = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bench)
    results: dict[str, dict[str, float]] = {}
    with bench.serving("tests/torture/http_fake_server.py", "--rate", "50") as server:
        ways = [bench.Way("direct", server), bench.Way("plain", server)]
        ways += [bench.Way(name, server, "--addon", str(folder / f"{name}.py")) for name in ADDONS]
        try:
            kept, events = bench.measure_posts(ways, posts), bench.measure_events(ways, 300)
        finally:
            for way in ways:
                way.stop()
            captures = [path.read_bytes() for path in Path(ways[-1].folder).glob("*.mcpcap")]
            for way in ways:
                way.remove()
    if sum(capture.count(b'"rewrite"') for capture in captures) < posts:
        raise SystemExit("the hook that was to change each call over HTTP has not")
    print(f"{'http':10} {'post us':>8} {'added':>8} {'x plain':>8} {'p99 us':>8} {'event us':>8}")
    for name, blocks in kept.items():
        row = {
            "post": median([seconds for block in blocks for seconds in block]) * 1e6,
            "p99": median([pct(block, 0.99) for block in blocks]) * 1e6,
            "event": median(events[name]) * 1e6,
        }
        results[name] = row
        added = row["post"] - results["direct"]["post"]
        ratio = row["post"] / results.get("plain", row)["post"]
        print(f"{name:10} {row['post']:8.0f} {added:8.0f} {ratio:8.2f} {row['p99']:8.0f} {row['event']:8.0f}")
    return results


def main() -> int:
    """Measure, up to so many times until the limit is kept, and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trips", type=int, default=3000)
    parser.add_argument("--posts", type=int, default=3000, help="over HTTP; 0: none")
    parser.add_argument("--tries", type=int, default=3)
    parser.add_argument("--json")
    options = parser.parse_args()
    if not hasattr(sys.modules.get("mcpsniff"), "__file__"):
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(REPO), os.environ.get("PYTHONPATH")]))
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.tries):
            results = measured(candidates(Path(folder)), options.trips)
            if report(results):
                break
        web = over_http(Path(folder), options.posts) if options.posts else {}
    if options.json:
        Path(options.json).write_text(json.dumps({**results, "http": web}, indent=1))
    return 0 if results["edit"]["added"] <= ADDED else 1


if __name__ == "__main__":
    sys.exit(main())
