#!/usr/bin/env python3
"""What does `mcpsniff http` cost, quiet and with its live view, beside no relay at all?

    python bench/http.py [--posts 6000] [--streams 200] [--exchanges 100000] [--json OUT]

All ways to the server (tests/torture/http_fake_server.py; for what runs long bench/http_server.py) are open at the same
time and take turns in short blocks, so that the noise of the machine hits all alike; only the ratios of one run mean
anything. Linux (it reads /proc). The live view writes to a terminal, as it does for a user, and the client parses what
it gets, as clients do.

    post, p99    POSTs of 200 bytes, one after another on a connection that is kept: their median, and the 99th
                 percentile within a block (the median of those of all blocks, so that a burst elsewhere counts once)
    new          the same with a connection for each
    event        milliseconds from the server's write of an event to its arrival
    20 MB        one response of that size
    idle         peak MiB of the relay with so many idle event streams
    flat         MiB more that the relay, and the live view, take after all the exchanges than after a fifth of them;
                 100 exchanges are a session, and each session a connection of its own
    show         `show --format json` of the capture of these, beside json.loads of its lines, by processor time;
                 peak MiB
"""

import argparse
import contextlib
import json
import os
import pty
import selectors
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

REPO = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPO / "tests" / "torture"))

from _bench import descendants, free_port, median, pct  # noqa: E402

LIMITS = {
    "post": ("ms more", 0.25),
    "p99 with the view": ("x quiet", 1.5),
    "event": ("ms more", 0.1),
    "20 MB": ("x direct", 2.0),
    "idle streams": ("MiB", 60.0),
    "flat, relay": ("MiB more", 4.0),
    "flat, view": ("MiB more", 8.0),
    "show": ("MiB", 120.0),
}
"""What docs/architecture.md promises; at most."""

PATIENCE = 30.0
"""Seconds for anything that has to happen."""
BLOCK = 200
"""POSTs in a row before another way has its turn."""
SESSION = 100
"""Exchanges of one session in the long run."""
PAD = "p" * 100
GET = b"GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n"
PARSE = "import json,sys\nfor path in sys.argv[1:]:\n    for line in open(path, 'rb'): json.loads(line)"


class Client:
    """One connection that is kept, with one HTTP exchange at a time."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._session = ""

    def post(self, method: str, params: dict[str, object], number: int | None) -> float:
        """Send a request, or a notification without ``number``; return the seconds until its answer has been read."""
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        if number is not None:
            message["id"] = number
        body = json.dumps(message, separators=(",", ":")).encode()
        return self._ask("POST", f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n", body)

    def call(self, number: int) -> float:
        """Call a tool: a POST of about 200 bytes."""
        return self.post("tools/call", {"name": "echo", "arguments": {"pad": PAD}}, number)

    def begin(self) -> None:
        """Begin a session, in two exchanges."""
        info = {"name": "bench", "version": "1"}
        self.post("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}, 0)
        self.post("notifications/initialized", {}, None)

    def end(self) -> None:
        """End the session, and the connection."""
        self._ask("DELETE", "", b"")
        self._socket.close()

    def _ask(self, method: str, headers: str, body: bytes) -> float:
        accept = "Accept: application/json, text/event-stream\r\n"
        head = f"{method} /mcp HTTP/1.1\r\nHost: localhost\r\n{accept}{self._session}{headers}\r\n"
        request = head.encode() + body
        start = time.perf_counter()
        self._socket.sendall(request)
        data = bytearray(self._received())
        while (stop := data.find(b"\r\n\r\n")) < 0:
            data += self._received()
        size = 0
        for line in data[:stop].decode("latin-1").split("\r\n")[1:]:
            name, _, value = line.partition(": ")
            if name == "Content-Length":
                size = int(value)
            elif name == "Mcp-Session-Id":
                self._session = f"{line}\r\n"
        while len(data) < stop + 4 + size:
            data += self._received()
        if method == "POST" and size:
            json.loads(data[stop + 4 :])
        return time.perf_counter() - start

    def _received(self) -> bytes:
        data = self._socket.recv(1 << 18)
        if not data:
            raise EOFError("the connection ended too early")
        return data


class Way:
    """A way to the server: direct, or through a relay."""

    def __init__(self, name: str, server: int, *options: str, view: bool = False) -> None:
        self.name = name
        self.port = server
        self.folder = tempfile.mkdtemp(prefix="bench-http-")
        self._relay: subprocess.Popen[bytes] | None = None
        self._screen: subprocess.Popen[bytes] | None = None
        if name == "direct":
            return
        self.port = free_port()
        words = [sys.executable, "-m", "mcpsniff", "http", f"http://127.0.0.1:{server}/mcp", "--no-transcript"]
        words += ["--listen", f"127.0.0.1:{self.port}", "--dir", self.folder, *options]
        environment = {**os.environ, "PYTHONPATH": str(REPO), "TERM": "xterm-256color"}
        output: int = subprocess.DEVNULL
        if view:
            screen, output = pty.openpty()
            self._screen = subprocess.Popen(["cat"], stdin=screen, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            os.close(screen)
        else:
            words.append("--quiet")
        self._relay = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.DEVNULL, env=environment
        )
        if view:
            os.close(output)
        _wait_for(self._answers)

    @property
    def relay(self) -> int:
        """The process on the wire."""
        assert self._relay is not None
        return self._relay.pid

    @property
    def view(self) -> int | None:
        """The process that follows the capture, if there is one."""
        found = descendants(self.relay) if self._relay is not None else []
        return found[0] if found else None

    def rest(self) -> None:
        """Wait until the live view has shown what there is."""
        if (view := self.view) is None:
            return
        used = -1.0
        while not self._has_read_all(view) or _cpu(view) != used:
            used = _cpu(view)
            time.sleep(0.2)

    def stop(self) -> list[str]:
        """End it; return the parts of its capture."""
        for process in (self._relay, self._screen):
            if process is not None:
                process.terminate()
                process.wait(PATIENCE)
        return sorted(str(path) for path in Path(self.folder).glob("*.mcpcap"))

    def remove(self) -> None:
        """Remove what it recorded."""
        subprocess.run(["rm", "-r", self.folder], check=True)

    def _has_read_all(self, view: int) -> bool:
        """Say whether the view is at the end of the capture's latest part."""
        latest = max(Path(self.folder).glob("*.mcpcap"), key=lambda path: (len(path.name), path.name))
        for entry in Path(f"/proc/{view}/fd").iterdir():
            with contextlib.suppress(OSError):
                if entry.readlink() == latest:
                    position = Path(f"/proc/{view}/fdinfo/{entry.name}").read_text().split()[1]
                    return int(position) == latest.stat().st_size
        return False

    def _answers(self) -> bool:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            return True
        return False


def _wait_for(condition: object) -> None:
    assert callable(condition)
    until = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > until:
            raise TimeoutError("it did not start")
        time.sleep(0.05)


def _cpu(pid: int) -> float:
    """Seconds that a process has computed."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(pid: int | None, what: str = "VmRSS") -> float:
    """Return the resident memory of a process in MiB, or its peak (``VmHWM``); 0 without one."""
    if pid is None:
        return 0.0
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(what)) / 1024


def measure_posts(ways: list[Way], posts: int) -> dict[str, list[list[float]]]:
    """Return the seconds of all POSTs, by block; the first ones of each wake the processes up and do not count."""
    clients = [Client(way.port) for way in ways]
    taken: dict[str, list[list[float]]] = {way.name: [] for way in ways}
    for first in range(0, posts, BLOCK):
        for way, client in zip(ways, clients, strict=True):
            taken[way.name].append([client.call(first + number) for number in range(BLOCK)][5:])
            way.rest()
    return taken


def measure_new(ways: list[Way], rounds: int = 20, block: int = 10) -> dict[str, list[float]]:
    """Return the seconds of POSTs with the making of their connection."""
    taken: dict[str, list[float]] = {way.name: [] for way in ways}
    for _ in range(rounds):
        for way in ways:
            for number in range(block):
                start = time.perf_counter()
                client = Client(way.port)
                client.call(number)
                taken[way.name].append(time.perf_counter() - start)
                client.end()
            way.rest()
    return taken


def measure_events(ways: list[Way], events: int) -> dict[str, list[float]]:
    """Return the seconds from the server's write of an event to its arrival here, on one stream for each way."""
    taken: dict[str, list[float]] = {way.name: [] for way in ways}
    rest = dict.fromkeys(taken, b"")
    with contextlib.ExitStack() as stack, selectors.DefaultSelector() as selector:
        for way in ways:
            stream = stack.enter_context(socket.create_connection(("127.0.0.1", way.port), timeout=PATIENCE))
            stream.sendall(GET)
            selector.register(stream, selectors.EVENT_READ, way.name)
        while min(map(len, taken.values())) < events:
            for key, _ in selector.select(PATIENCE):
                data = rest[key.data] + key.fileobj.recv(1 << 16)
                now = time.monotonic()
                *whole, rest[key.data] = data.split(b"\n\n")
                sent = [event.partition(b'"t":')[2] for event in whole]
                taken[key.data] += [now - float(text.split(b"}")[0]) for text in sent if text]
    return {name: delays[5:] for name, delays in taken.items()}


def measure_big(ways: list[Way], rounds: int = 9) -> dict[str, list[float]]:
    """Return the seconds of responses of 20 MB."""
    taken: dict[str, list[float]] = {way.name: [] for way in ways}
    for number in range(rounds):
        for way in ways:
            client = Client(way.port)
            taken[way.name].append(client.post("x/big", {"size": 20_000_000}, number))
            client.end()
            way.rest()
    return taken


def measure_idle(server: int, streams: int) -> tuple[float, float]:
    """Return the peak MiB of a quiet relay, and MiB of a live view, with so many streams on which nothing is said."""
    peaks = []
    for view in (False, True):
        way = Way("view" if view else "quiet", server, view=view)
        with contextlib.ExitStack() as stack:
            for _ in range(streams):
                stream = stack.enter_context(socket.create_connection(("127.0.0.1", way.port), timeout=PATIENCE))
                stream.sendall(GET)
                data = b""
                while b": open\n\n" not in data:
                    data += stream.recv(4096)
            way.rest()
            time.sleep(1)
            peaks.append(memory(way.view) if view else memory(way.relay, "VmHWM"))
        way.stop()
        way.remove()
    return peaks[0], peaks[1]


def measure_long(way: Way, exchanges: int) -> Iterator[tuple[float, float]]:
    """Hold sessions one after another; yield the memory of relay and view after each tenth of them."""
    step = max(1, exchanges // SESSION // 10)
    for session in range(exchanges // SESSION):
        client = Client(way.port)
        client.begin()
        for number in range(SESSION - 3):
            client.call(number + 1)
        client.end()
        if (session + 1) % step == 0:
            way.rest()
            yield memory(way.relay), memory(way.view)


def measure_show(parts: list[str]) -> tuple[float, float, float]:
    """Return the seconds that json.loads of all lines takes, those of `show --format json`, and its peak MiB."""
    parsed, _ = _computed([sys.executable, "-c", PARSE, *parts])
    shown, peak = _computed([sys.executable, "-m", "mcpsniff", "show", parts[0], "--format", "json"])
    return parsed, shown, peak


def _computed(words: list[str]) -> tuple[float, float]:
    """Run a program; return the seconds that it has computed, and its peak MiB."""
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": str(REPO)})
    peak = 0.0
    while not (ended := os.wait4(child.pid, os.WNOHANG))[0]:  # its own account of memory begins with ours
        with contextlib.suppress(OSError, StopIteration):
            peak = memory(child.pid, "VmHWM")
        time.sleep(0.02)
    _, status, usage = ended
    if status:
        raise RuntimeError(f"{words[2]} ended with {os.waitstatus_to_exitcode(status)}")
    return usage.ru_utime + usage.ru_stime, peak


def compare(server: int, posts: int) -> dict[str, dict[str, float]]:
    """Measure what a user of a way feels, and print one line for each."""
    ways = [Way("direct", server), Way("quiet", server), Way("view", server, view=True)]
    results: dict[str, dict[str, float]] = {}
    try:
        kept, new, big = measure_posts(ways, posts), measure_new(ways), measure_big(ways)
        for name, delays in measure_events(ways, 500).items():
            results[name] = {
                "post": median([seconds for block in kept[name] for seconds in block]),
                "p99": median([pct(block, 0.99) for block in kept[name]]),
                "new": median(new[name]),
                "event": median(delays),
                "event p99": pct(delays, 0.99),
                "big": median(big[name]),
            }
    finally:
        for way in ways:
            way.stop()
            way.remove()
    base = results["direct"]
    print(f"{'':7} {'post us':>8} {'x':>5} {'p99 us':>8} {'new us':>8} {'x':>5}", end=" ")
    print(f"{'event ms':>9} {'p99 ms':>7} {'20 MB s':>8} {'x':>5}")
    for name, row in results.items():
        print(
            f"{name:7} {row['post'] * 1e6:8.0f} {row['post'] / base['post']:5.2f} {row['p99'] * 1e6:8.0f}"
            f" {row['new'] * 1e6:8.0f} {row['new'] / base['new']:5.2f} {row['event'] * 1e3:9.3f}"
            f" {row['event p99'] * 1e3:7.2f} {row['big']:8.3f} {row['big'] / base['big']:5.2f}"
        )
    return results


def last(server: int, exchanges: int) -> dict[str, float]:
    """Measure what a relay takes that runs for long, and print it."""
    way = Way("view", server, view=True)
    try:
        start = time.perf_counter()
        samples = list(measure_long(way, exchanges))
        took = time.perf_counter() - start
        parts = way.stop()
        size = sum(os.path.getsize(part) for part in parts)
        parsed, shown, peak = measure_show(parts)
    finally:
        way.stop()
        way.remove()
    print(f"{exchanges:,} exchanges in {took:.0f} s, {size / 1e6:.0f} MB in {len(parts)} parts; MiB after each tenth:")
    for name, column in (("relay", 0), ("view", 1)):
        print(f"  {name:6}", *(f"{sample[column]:6.1f}" for sample in samples))
    rate = f"{shown / exchanges * 1e6:.0f} us an exchange, {size / shown / 1e6:.1f} MB/s"
    print(
        f"  show --format json: {shown:.1f} s, {rate}, {shown / parsed:.1f} x json.loads of its lines, {peak:.0f} MiB"
    )
    fifth = samples[len(samples) // 5 - 1] if len(samples) >= 5 else samples[0]
    relay, view = samples[-1][0] - fifth[0], samples[-1][1] - fifth[1]
    return {"relay": relay, "view": view, "show": peak, "x json.loads": shown / parsed}


@contextlib.contextmanager
def serving(*words: str) -> Iterator[int]:
    """Run a server that prints its port; give that."""
    server = subprocess.Popen([sys.executable, str(REPO / words[0]), *words[1:]], stdout=subprocess.PIPE)
    assert server.stdout is not None
    try:
        yield int(server.stdout.readline())
    finally:
        server.terminate()
        server.wait()


def main() -> int:
    """Measure and report; the exit status says whether the limits are kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--posts", type=int, default=6000)
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--exchanges", type=int, default=100_000)
    parser.add_argument("--json")
    options = parser.parse_args()
    with serving("tests/torture/http_fake_server.py", "--rate", "50") as port:
        rows = compare(port, options.posts)
    with serving("bench/http_server.py") as port:
        idle, idle_view = measure_idle(port, options.streams)
        print(f"{options.streams} idle streams: relay {idle:.1f} MiB, view {idle_view:.1f} MiB")
        long = last(port, options.exchanges)
    direct, quiet, view = rows["direct"], rows["quiet"], rows["view"]
    found = {
        "post": (quiet["post"] - direct["post"]) * 1e3,
        "p99 with the view": view["p99"] / quiet["p99"],
        "event": (quiet["event"] - direct["event"]) * 1e3,
        "20 MB": quiet["big"] / direct["big"],
        "idle streams": idle,
        "flat, relay": long["relay"],
        "flat, view": long["view"],
        "show": long["show"],
    }
    for what, value in found.items():
        unit, limit = LIMITS[what]
        print(f"{'ok  ' if value <= limit else 'OVER'} {what:18} {value:8.2f} {unit:9} (limit {limit:g})")
    if options.json:
        Path(options.json).write_text(json.dumps({**rows, "long": long, "found": found}, indent=1))
    return 0 if all(value <= LIMITS[what][1] for what, value in found.items()) else 1


if __name__ == "__main__":
    sys.exit(main())
