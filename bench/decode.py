"""How fast decoding is, and how little memory a large capture takes.

    python bench/decode.py              decoding with all checks against json.loads of the same messages, same run
    python bench/decode.py --big        `show --format json` of a 1 GB capture: throughput and peak memory

The session is made up: tools/list results of 20 KB, calls with results from 100 bytes to 50 KB, progress,
notifications. "strict" is json.loads as a careful peer would call it: duplicate names and NaN refused.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mcpsniff.capture.records import Record
from mcpsniff.decoder import Decoder
from mcpsniff.transcript.jsonl import JsonLines

READ = 64 * 1024
REPEATS = 5


def messages(rounds: int) -> Iterator[tuple[int, bytes]]:
    """The lines of a session as (channel, line): an opening, then ``rounds`` of about 20 messages."""
    info = {"name": "bench", "version": "1.0"}
    opening = {"protocolVersion": "2025-11-25", "capabilities": {"roots": {}}, "clientInfo": info}
    yield 0, _line({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": opening})
    answer = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "logging": {}}, "serverInfo": info}
    yield 1, _line({"jsonrpc": "2.0", "id": 0, "result": answer})
    yield 0, _line({"jsonrpc": "2.0", "method": "notifications/initialized"})
    schema = {"type": "object", "properties": {"path": {"type": "string", "description": "a path " * 20}}}
    tools = [{"name": f"tool_{i}", "description": "What it does. " * 20, "inputSchema": schema} for i in range(35)]
    sizes = (100, 300, 700, 1_500, 4_000, 50_000)
    number = 0
    for turn in range(rounds):
        number += 1
        if turn % 10 == 0:
            yield 0, _line({"jsonrpc": "2.0", "id": number, "method": "tools/list"})
            yield 1, _line({"jsonrpc": "2.0", "id": number, "result": {"tools": tools}})
        for size in sizes if turn % 10 == 0 else sizes[:-1]:
            number += 1
            token = f"t{number}"
            arguments = {"path": f"/home/user/project/file_{number}.py", "limit": 100, "deep": {"a": [1, 2.5, None]}}
            call = {"name": f"tool_{number % 35}", "arguments": arguments, "_meta": {"progressToken": token}}
            yield 0, _line({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": call})
            step = {"progressToken": token, "progress": 1, "total": 2, "message": "half way"}
            yield 1, _line({"jsonrpc": "2.0", "method": "notifications/progress", "params": step})
            text = ("line of text, 'quoted' and plain\n" * (size // 33 + 1))[:size]
            result = {"content": [{"type": "text", "text": text}], "isError": False}
            yield 1, _line({"jsonrpc": "2.0", "id": number, "result": result})
        log = {"level": "info", "logger": "bench", "data": {"turn": turn, "state": "going on"}}
        yield 1, _line({"jsonrpc": "2.0", "method": "notifications/message", "params": log})


def _line(message: object) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def records(lines: list[tuple[int, bytes]]) -> list[Record]:
    """The records that a recorder would make of the lines: one per line, as short messages arrive."""
    openings = [
        Record(0, "open", 0, {"kind": "stdin", "dir": "c2s", "conn": 0}),
        Record(0, "open", 1, {"kind": "stdout", "dir": "s2c", "conn": 0, "of": 0}),
    ]
    chunks = [
        Record(t * 100, "chunk", channel, line[start : start + READ])
        for t, (channel, line) in enumerate(lines, 1)
        for start in range(0, len(line), READ)
    ]
    return [*openings, *chunks]


def strict(line: bytes) -> object:
    """Parse as a careful peer does."""
    return json.loads(line, object_pairs_hook=_no_duplicates, parse_constant=_refused)


def _no_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a name stands twice")
    return members


def _refused(word: str) -> object:
    raise ValueError(f"{word} is not JSON")


def best(work: Callable[[], object]) -> float:
    """Seconds of the quickest of some runs."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def decode(session: list[Record], lines: JsonLines | None = None) -> int:
    """Decode with all checks; with ``lines`` also write the JSON. Returns how many events there were."""
    decoder = Decoder()
    count = 0
    for record in session:
        events = decoder.feed(record)
        count += len(events)
        if lines is not None:
            lines.lines(events)
    return count + len(decoder.finish())


def compare() -> int:
    """Print the ratios; 1 if decoding takes more than ten times the strict parser."""
    lines = list(messages(400))
    session = records(lines)
    size = sum(len(line) for _, line in lines)
    print(f"{len(lines):,} messages, {size / 1e6:.1f} MB, {decode(session):,} events; best of {REPEATS}")
    plain = best(lambda: [json.loads(line) for _, line in lines])
    careful = best(lambda: [strict(line) for _, line in lines])
    decoded = best(lambda: decode(session))
    written = best(lambda: decode(session, JsonLines()))
    for name, seconds in (
        ("json.loads", plain),
        ("json.loads, strict", careful),
        ("decoded, all checks", decoded),
        ("decoded, and JSON Lines", written),
    ):
        rate = f"{size / seconds / 1e6:7.1f} MB/s  {seconds / len(lines) * 1e6:6.1f} µs a message"
        print(f"  {name:<24} {rate}  {seconds / careful:5.2f} x strict")
    return 0 if decoded <= 10 * careful else 1


def big(gigabytes: float) -> int:
    """Write a large capture, run `show --format json` on it; 1 if it takes 120 MiB or more."""
    with tempfile.TemporaryDirectory(prefix="mcpsniff-bench-") as folder:
        path = os.path.join(folder, "big.mcpcap")
        size = _write_big(path, int(gigabytes * 1e9))
        start = time.perf_counter()
        command = [sys.executable, "-m", "mcpsniff", "show", path, "--format", "json"]
        child = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert child.stdout is not None
        written = 0
        while block := child.stdout.read(1 << 20):
            written += len(block)
        status = child.wait()
        seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    print(f"capture of {size / 1e9:.2f} GB: exit {status}, {written / 1e6:,.0f} MB of JSON Lines")
    print(f"  {seconds:.1f} s, {size / seconds / 1e6:.1f} MB/s, peak memory {peak / 2**20:.0f} MiB")
    return 0 if status == 0 and peak < 120 * 2**20 else 1


def _write_big(path: str, wanted: int) -> int:
    header = {"mcpcap": 1, "run": "bench", "part": 1, "started": "2026-11-29T10:00:00.000000Z", "transport": "stdio"}
    with open(path, "wb") as file:
        file.write(_line(header))
        file.write(_line([0, "open", 0, {"kind": "stdin", "dir": "c2s", "conn": 0}]))
        file.write(_line([0, "open", 1, {"kind": "stdout", "dir": "s2c", "conn": 0, "of": 0}]))
        for number, (channel, line) in enumerate(messages(10**9)):
            pieces = [line[start : start + READ].decode() for start in range(0, len(line), READ)]
            file.writelines(_line([number * 100, "chunk", channel, piece]) for piece in pieces)
            if number % 1000 == 0 and file.tell() > wanted:
                break
    return os.path.getsize(path)


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Benchmark of the decoder.")
    parser.add_argument("--big", nargs="?", type=float, const=1.0, metavar="GB", help="show a capture of so many GB")
    options = parser.parse_args()
    return compare() if options.big is None else big(options.big)


if __name__ == "__main__":
    sys.exit(main())
