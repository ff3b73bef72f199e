"""How long a page of 20,000 messages takes: to write, to load, to paint first, to filter, to scroll through.

    python bench/html.py            two sessions: as they are (1 KB a message), and of short messages (110 bytes)

Limits, beyond which the exit status is 1: 10 s to write, 3 times the payload, 2 s to the first paint, 120 MiB. Without
a Chromium the page is written and weighed only.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from decode import messages

from tests.html.chromium import Browser, find

MESSAGES = 20_000
MOST_SECONDS, MOST_RATIO, MOST_PAINT_MS, MOST_MEMORY = 10.0, 3.0, 2000.0, 120 * 2**20

FILTER = """new Promise(done => {
  const started = performance.now(), box = document.getElementById('filter'), shown = document.getElementById('shown');
  shown.textContent = '';
  box.value = %s;
  box.dispatchEvent(new Event('input'));
  const look = () => shown.textContent
    ? requestAnimationFrame(() => done(performance.now() - started - 180)) : setTimeout(look, 1);
  look();
})"""
SCROLL = """(async () => {
  const frames = [];
  scrollTo(0, document.getElementById('messages').offsetTop);
  let last = performance.now();
  for (let i = 0; i < 200; i++) {
    scrollBy(0, 100);
    await new Promise(done => requestAnimationFrame(done));
    const now = performance.now();
    frames.push(now - last);
    last = now;
  }
  frames.sort((a, b) => a - b);
  return [frames[100], frames[190]];
})()"""


def short() -> Iterator[tuple[int, bytes]]:
    """A session of short calls, the hardest for what a page may add to them."""
    yield from islice(messages(1), 3)
    for number in range(1, MESSAGES):
        call = {"name": "echo", "arguments": {"message": f"hello {number}"}}
        yield 0, _line({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": call})
        result = {"content": [{"type": "text", "text": f"Echo: hello {number}"}], "isError": False}
        yield 1, _line({"jsonrpc": "2.0", "id": number, "result": result})


def _line(message: object) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def save(path: Path, lines: list[tuple[int, bytes]]) -> int:
    """Write a capture of the lines; return the bytes of their messages."""
    header = {"mcpcap": 1, "run": "bench", "part": 1, "started": "2026-11-29T10:00:00.000000Z", "transport": "stdio"}
    with path.open("wb") as file:
        file.write(_line(header))
        file.write(_line([0, "open", 0, {"kind": "stdin", "dir": "c2s", "conn": 0}]))
        file.write(_line([0, "open", 1, {"kind": "stdout", "dir": "s2c", "conn": 0, "of": 0}]))
        for number, (channel, line) in enumerate(lines):
            file.write(_line([number * 900, "chunk", channel, line.decode()]))
    return sum(len(line) - 1 for _, line in lines)


def measure(name: str, lines: list[tuple[int, bytes]], folder: Path, browser: Browser | None) -> bool:
    """Write and open the page of one session; False if a limit was passed."""
    capture, page = folder / f"{name}.mcpcap", folder / f"{name}.html"
    payload = save(capture, lines)
    start = time.perf_counter()
    command = [sys.executable, "-m", "mcpsniff", "show", str(capture), "--format", "html", "-o", str(page)]
    subprocess.run(command, check=True)
    seconds = time.perf_counter() - start
    ratio = page.stat().st_size / payload
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    print(f"{name}: {len(lines):,} messages, {payload / 1e6:.1f} MB")
    print(f"  written in {seconds:.1f} s, {page.stat().st_size / 1e6:.1f} MB, {ratio:.2f} times the payload", end="")
    print(f", peak memory {peak / 2**20:.0f} MiB")
    fine = seconds <= MOST_SECONDS and ratio <= MOST_RATIO and peak <= MOST_MEMORY
    if browser is None:
        return fine
    browser.open(page)
    browser.open(page)  # the second time it is in the memory of the system, as a file that was just written is
    paint = browser.js("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    load = browser.js("performance.getEntriesByType('navigation')[0].loadEventEnd")
    first, again, none = (browser.js(FILTER % json.dumps(text)) for text in ("kind:error", "tool:echo -hello", ""))
    usual, slow = browser.js(SCROLL)
    print(f"  first paint {paint:.0f} ms, loaded {load:.0f} ms")
    print(f"  the first filter {first:.0f} ms, another {again:.0f} ms, no filter {none:.0f} ms", end="")
    print(f"; a frame of scrolling {usual:.0f} ms, p95 {slow:.0f} ms")
    return fine and paint <= MOST_PAINT_MS


def main() -> int:
    """Measure both sessions."""
    program = find()
    browser = Browser(program) if program else None
    if browser is None:
        print("no Chromium: first paint, filter and scrolling are not measured")
    else:
        browser.size(1280, 900)
    try:
        with tempfile.TemporaryDirectory(prefix="mcpsniff-bench-") as folder:
            sessions = {"usual": messages(10**6), "short": short()}
            fine = [
                measure(name, list(islice(lines, MESSAGES)), Path(folder), browser) for name, lines in sessions.items()
            ]
    finally:
        if browser is not None:
            browser.close()
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
