#!/usr/bin/env python3
"""How long does it take from a message on the wire to its line in `mcpsniff tail`?

    python bench/tail.py [--messages 200] [--json OUT]

A real wrapped session, and one `mcpsniff tail` each for the text form and for JSON, on pipes. The client sends requests
at odd intervals; the time runs from the write of a request into the wrapper to the arrival of the line that shows it.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

REPO = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPO / "tests" / "torture"))

from _bench import median, pct  # noqa: E402

LIMIT = 0.1
"""Seconds; what docs/architecture.md promises for the 95th percentile."""

SERVER = """
import sys, json
for line in sys.stdin:
    print(json.dumps({"jsonrpc": "2.0", "id": json.loads(line)["id"], "result": {}}), flush=True)
"""


class Reader:
    """Notes when each mark arrives in the output of one tail."""

    def __init__(self, folder: str, form: str, env: dict[str, str]) -> None:
        words = [sys.executable, "-m", "mcpsniff", "tail", "--dir", folder, "--format", form]
        words += ["--payload"] if form == "json" else []
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env)
        self.seen: dict[int, float] = {}
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            now = time.perf_counter()
            at = line.find(b"mark/")
            if at >= 0:
                digits = line[at + 5 :].split(b'"')[0].split()[0]
                self.seen.setdefault(int(digits), now)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()
        self._thread.join()


def measure(messages: int) -> dict[str, list[float]]:
    """Return the seconds per message, by form."""
    env = {**os.environ, "PYTHONPATH": str(REPO)}
    with tempfile.TemporaryDirectory() as folder:
        readers = {form: Reader(folder, form, env) for form in ("text", "json")}
        words = [
            sys.executable,
            "-m",
            "mcpsniff",
            "stdio",
            "--quiet",
            "--no-transcript",
            "--label",
            "x",
            "--dir",
            folder,
        ]
        client = subprocess.Popen(
            [*words, "--", sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env
        )
        assert client.stdin
        assert client.stdout
        time.sleep(2)  # past the start of all of them
        sent = {}
        for number in range(messages):
            time.sleep(random.uniform(0.02, 0.3) if number % 10 else 0.8)
            request = json.dumps({"jsonrpc": "2.0", "id": number, "method": f"mark/{number}"}).encode() + b"\n"
            sent[number] = time.perf_counter()
            client.stdin.write(request)
            client.stdin.flush()
            client.stdout.readline()
        time.sleep(1)
        client.stdin.close()
        client.wait()
        for reader in readers.values():
            reader.stop()
        return {form: [reader.seen[n] - sent[n] for n in sent] for form, reader in readers.items()}


def main() -> int:
    """Measure and report; the exit status says whether the limit is kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=200)
    parser.add_argument("--json")
    options = parser.parse_args()
    times = measure(options.messages)
    kept = True
    print(f"{'':6} {'p50 ms':>8} {'p95 ms':>8} {'p99 ms':>8} {'max ms':>8}")
    for form, taken in times.items():
        figures = [median(taken), pct(taken, 0.95), pct(taken, 0.99), max(taken)]
        good = figures[1] <= LIMIT
        kept = kept and good
        print(f"{form:6} {' '.join(f'{value * 1e3:8.1f}' for value in figures)}  {'ok' if good else 'OVER'}")
    if options.json:
        Path(options.json).write_text(json.dumps(times))
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
