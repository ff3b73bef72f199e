#!/usr/bin/env python3
"""What does the stdio wrapper cost, beside nothing, `cat` and `tee` in the same place?

    python bench/stdio.py [--trips 2000] [--mb 200] [--rounds 7] [--json OUT]

All candidates run at the same time and take turns in short blocks, so that the noise of the machine hits all alike;
only the ratios of one run mean anything. Linux (it reads /proc). The server is tests/torture/stdio_fake_server.py.

    round trip   200-byte requests, one after another: added to "nothing", as a multiple of what tee adds
    stream       megabytes per second of 1 KB lines, everything captured; gaps in that capture are counted
    start        milliseconds more than "nothing" from the start to the answer to initialize
    exit         milliseconds from the server's exit to the wrapper's, the capture flushed
    memory       peak MiB of all the wrapper's processes: after the stream, and while a client stalls in one
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

REPO = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPO / "tests" / "torture"))

from _bench import Piped, expand, median, pct  # noqa: E402
from stdio_cost import Candidate  # noqa: E402

LIMITS = {
    "round trip": ("x tee", 1.3),
    "p99": ("x tee", 2.0),
    "stream": ("x tee", 1.0),
    "start": ("ms", 50.0),
    "exit": ("ms", 50.0),
    "memory": ("MiB", 30.0),
    "memory, stalled": ("MiB", 50.0),
    "gaps": ("", 0.0),
}
"""What docs/architecture.md promises; at most, but for the stream: at least."""

LEAVING = "import os,sys,time; sys.stdin.readline(); open(sys.argv[1],'w').write(repr(time.monotonic())); os._exit(0)"


def candidates() -> list[Candidate]:
    """Return what is measured; the last one is the wrapper."""
    script = Path(sys.executable).with_name("mcpsniff")
    program = [str(script)] if script.exists() else [sys.executable, "-m", "mcpsniff"]
    wrapper = shlex.join([*program, "stdio", "--quiet", "--no-transcript", "--dir"]) + " {capture} --"
    return [
        Candidate("nothing", "", []),
        Candidate("cat", 'sh -c \'cat | "$0" "$@" | cat\' {server}', []),
        Candidate("tee", 'sh -c \'tee {capture}/in | "$0" "$@" | tee {capture}/out\' {server}', []),
        Candidate("mcpsniff", wrapper, []),
    ]


def measure_starts(runners: list[Candidate], rounds: int) -> dict[str, float]:
    """Return the median seconds from the start to the first answer."""
    taken: dict[str, list[float]] = {one.name: [] for one in runners}
    for _ in range(rounds):
        for one in runners:
            taken[one.name].append(one.start())
            one.stop()
    return {name: median(times) for name, times in taken.items()}


def measure_exits(runners: list[Candidate], rounds: int, folder: Path) -> dict[str, float]:
    """Return the median seconds from the server's last instruction to the end of the outermost process."""
    taken: dict[str, list[float]] = {one.name: [] for one in runners}
    for _ in range(rounds):
        for one in runners:
            note = folder / "left"
            capture = folder / "exit"
            capture.mkdir(exist_ok=True)
            process = Piped(expand(one.template, [sys.executable, "-c", LEAVING, str(note)], capture=capture))
            time.sleep(0.3)  # past the start
            process.pump(b"leave\n")
            process.close_in()
            process.wait(20)
            now = time.monotonic()
            taken[one.name].append(now - float(note.read_text()))
            process.p.stdout.close()
    return {name: median(times) for name, times in taken.items()}


def measure_trips(runners: list[Candidate], trips: int, block: int = 100) -> dict[str, list[float]]:
    """Return all round trips in seconds; the first ones of each block wake the processes up and do not count."""
    taken: dict[str, list[float]] = {one.name: [] for one in runners}
    for start in range(0, trips, block):
        for one in runners:
            taken[one.name] += [one.trip(start + k) for k in range(block)][2:]
    return taken


def measure_stall(one: Candidate, megabytes: float) -> float:
    """Return the peak memory while a client has asked for much and reads nothing, in MiB."""
    one.start()
    request = {"jsonrpc": "2.0", "id": "f", "method": "x/flood", "params": {"mb": megabytes, "line": 1024}}
    one.c.pump(json.dumps(request).encode() + b"\n")
    time.sleep(2)
    peak = one.rss()
    one.stop()
    return peak


def gaps(one: Candidate) -> int:
    """Count the bytes that a finished wrapper's capture owns up to have missed."""
    one.c.close_in()
    one.c.wait(20)
    missed = 0
    for path in Path(one.dir, "capture").glob("*.mcpcap"):
        with path.open("rb") as file:
            missed += sum(json.loads(line)[3]["bytes"] for line in file if b',"gap",' in line[:40])
    return missed


def report(results: dict[str, dict[str, float]]) -> bool:
    """Print one line per candidate and the verdict on the last; return whether every limit is kept."""
    names = list(results)
    print(f"{'':10} {'trip us':>8} {'added':>7} {'x tee':>6} {'p99 us':>8}", end=" ")
    print(f"{'MB/s':>7} {'x tee':>6} {'start ms':>9} {'exit ms':>8} {'MiB':>6}")
    base, tee = results["nothing"], results["tee"]
    for name, row in results.items():
        added = row["trip"] - base["trip"]
        row["x tee"] = added / (tee["trip"] - base["trip"])
        print(
            f"{name:10} {row['trip'] * 1e6:8.1f} {added * 1e6:7.1f} {row['x tee']:6.2f} {row['p99'] * 1e6:8.1f} "
            f"{row['rate']:7.1f} {row['rate'] / tee['rate']:6.2f} {(row['start'] - base['start']) * 1e3:+9.1f} "
            f"{row['exit'] * 1e3:8.1f} {row['rss']:6.1f}"
        )
    ours = results[names[-1]]
    found = {
        "round trip": ours["x tee"],
        "p99": ours["p99"] / tee["p99"],
        "stream": ours["rate"] / tee["rate"],
        "start": (ours["start"] - base["start"]) * 1e3,
        "exit": ours["exit"] * 1e3,
        "memory": ours["rss"],
        "memory, stalled": ours["stalled"],
        "gaps": ours["gaps"],
    }
    kept = True
    for what, value in found.items():
        unit, limit = LIMITS[what]
        good = value >= limit if what == "stream" else value <= limit
        kept = kept and good
        print(f"{'ok  ' if good else 'OVER'} {what:16} {value:8.2f} {unit:6} (limit {limit:g})")
    return kept


def main() -> int:
    """Measure and report; the exit status says whether the limits are kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trips", type=int, default=2000)
    parser.add_argument("--mb", type=float, default=200)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json")
    options = parser.parse_args()
    runners = candidates()
    folder = Path(os.environ.get("TMPDIR", "/tmp")) / f"bench-stdio-{os.getpid()}"
    folder.mkdir()
    starts = measure_starts(runners, options.rounds)
    exits = measure_exits(runners, options.rounds, folder)
    subprocess.run(["rm", "-r", str(folder)], check=True)
    for one in runners:
        one.start()
    trips = measure_trips(runners, options.trips)
    results: dict[str, dict[str, float]] = {}
    for one in runners:
        rate, _ = one.flood(options.mb, 120)
        row = {"rate": rate, "rss": one.rss(), "gaps": float(gaps(one))}
        times = trips[one.name]
        row |= {"trip": median(times), "p99": pct(times, 0.99), "start": starts[one.name], "exit": exits[one.name]}
        results[one.name] = row
        one.stop()
    results["mcpsniff"]["stalled"] = measure_stall(runners[-1], 60)
    kept = report(results)
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1))
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
