#!/usr/bin/env python3
"""What does `mcpsniff http https://…` cost beside mitmproxy itself, when all that this does is to stream?

    python bench/mitm.py [--posts 4000] [--exchanges 50000] [--stream 1024] [--json OUT]

The ways to one TLS server (of this script) are open at the same time and take turns in short blocks; only the ratios
of one run mean anything. Linux (it reads /proc).

    bare         stock `mitmdump` with a script that sets a streaming callback for both bodies, and nothing else
    minimal      the engine of mcpsniff with such an addon in the place of all that is ours: nothing is recorded
    mcpsniff     `mcpsniff http`, quiet, which records

    post         POSTs of 200 bytes, one after another on a connection that is kept: their median beside that of bare
    20 MB        one response of that size, beside bare
    flat         MiB more that mcpsniff takes after all the exchanges than after a fifth of them
    stream       MiB more that it takes at most while one event stream of so many MiB passes
"""

import argparse
import asyncio
import importlib.util
import json
import os
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import ModuleType
from typing import Any

REPO = Path(__file__).resolve().parents[1]
# This folder holds an http.py, which is not Python's.
sys.path[:] = [str(REPO), str(REPO / "tests" / "torture"), *[each for each in sys.path if each != str(REPO / "bench")]]


def _module(name: str) -> ModuleType:
    """Load a script of this folder."""
    spec = importlib.util.spec_from_file_location(f"bench_{name}", REPO / "bench" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SERVER = _module("http_server")
PLAIN = _module("http")
LIMITS = {"post": ("x bare", 1.15), "20 MB": ("x bare", 1.15), "flat": ("MiB more", 4.0), "stream": ("MiB more", 16.0)}
"""What is promised; at most."""
PIECE = b"event: message\ndata: " + b"z" * (64 << 10) + b"\n\n"
STREAMING = """
def noted(data):
    return data
class Streaming:
    def requestheaders(self, flow):
        flow.request.stream = noted
    def responseheaders(self, flow):
        flow.response.stream = noted
addons = [Streaming()]
"""
MINIMAL = """
import sys, threading
from mcpsniff.proxy.mitm.engine import Engine
exec(open(sys.argv[1]).read())
engine = Engine(addons, modes=[sys.argv[2]], options={"ssl_insecure": True})
engine.start()
threading.Event().wait()
"""


class Served(SERVER.Served):  # type: ignore[name-defined,misc]
    """The quick server, with large responses and long streams."""

    def __init__(self) -> None:
        super().__init__()
        self._may_write = asyncio.Event()
        self._may_write.set()

    def pause_writing(self) -> None:
        """See `asyncio.Protocol`."""
        self._may_write.clear()

    def resume_writing(self) -> None:
        """See `asyncio.Protocol`."""
        self._may_write.set()

    def _respond(self, request: dict[str, Any]) -> None:
        if request["method"] == "x/big":
            body = b'{"jsonrpc":"2.0","id":1,"result":{"t":"%s"}}' % (b"z" * request["params"]["size"])
            kind = "Content-Type: application/json"
            self._transport.write(f"HTTP/1.1 200 OK\r\n{kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        elif request["method"] == "x/stream":
            self._task = asyncio.get_running_loop().create_task(self._stream(request["params"]["mib"]))
        else:
            super()._respond(request)

    async def _stream(self, mib: int) -> None:
        kind = b"Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        self._transport.write(b"HTTP/1.1 200 OK\r\n" + kind)
        for _ in range(mib * 16):
            await self._may_write.wait()
            self._transport.write(b"%x\r\n%s\r\n" % (len(PIECE), PIECE))
        self._transport.write(b"0\r\n\r\n")


async def serve(pem: str) -> None:
    """Serve with TLS on a free port of loopback, which is printed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    server = await asyncio.get_running_loop().create_server(Served, "127.0.0.1", 0, ssl=context, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


class Way:
    """A way to the server, through a program."""

    def __init__(self, name: str, server: int, folder: Path, authority: str) -> None:
        self.name = name
        self.port = PLAIN.free_port()
        script = folder / "streaming.py"
        script.write_text(STREAMING)
        mode = f"reverse:https://127.0.0.1:{server}@127.0.0.1:{self.port}"
        dump = str(Path(sys.executable).parent / "mitmdump")
        url = f"https://127.0.0.1:{server}/mcp"
        options = ["--dir", str(folder), "--max-size", "64M", "--quiet", "--no-transcript", "--upstream-ca", authority]
        words = {
            "bare": [dump, "-q", "-s", str(script), "--mode", mode, "--set", "ssl_insecure=true"],
            "minimal": [sys.executable, "-c", MINIMAL, str(script), mode],
            "mcpsniff": [sys.executable, "-m", "mcpsniff", "http", url, "--listen", f"127.0.0.1:{self.port}", *options],
        }[name]
        environment = {**os.environ, "PYTHONPATH": str(REPO), "HOME": str(folder)}
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=environment)
        PLAIN._wait_for(self._answers)

    def stop(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.wait(PLAIN.PATIENCE)

    def memory(self) -> float:
        """The MiB that it takes."""
        return float(PLAIN.memory(self.process.pid))

    def _answers(self) -> bool:
        try:
            PLAIN.socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True


def measure_stream(way: Way, mib: int) -> float:
    """Return the MiB that a way takes more at most while a stream of so many MiB passes."""
    before = way.memory()
    peak = before
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "x/stream", "params": {"mib": mib}}).encode()
    head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{way.port}\r\nContent-Length: {len(body)}\r\n\r\n"
    with PLAIN.socket.create_connection(("127.0.0.1", way.port), timeout=PLAIN.PATIENCE) as stream:
        stream.sendall(head.encode() + body)
        size, tail, look_at = 0, b"", 0
        while not tail.endswith(b"\r\n0\r\n\r\n"):
            data = stream.recv(1 << 18)
            assert data, "the stream broke off"
            size += len(data)
            tail = (tail + data)[-16:]
            if size >= look_at:
                peak, look_at = max(peak, way.memory()), size + (16 << 20)
    assert size >= mib * len(PIECE) * 16
    return peak - before


def measure_flat(way: Way, exchanges: int) -> float:
    """Return the MiB that a way takes more after so many exchanges than after a fifth of them."""
    marks = []
    sessions = max(10, exchanges // PLAIN.SESSION)
    for session in range(sessions):
        client = PLAIN.Client(way.port)
        client.begin()
        for number in range(PLAIN.SESSION - 3):
            client.call(number + 1)
        client.end()
        if (session + 1) % (sessions // 10) == 0:
            marks.append(way.memory())
    return max(marks[2:]) - marks[1]


def report(ways: list[Way], arguments: argparse.Namespace) -> dict[str, float]:
    """Measure, print the figures, and return those that are promised."""
    block = PLAIN.median
    posts = {name: [each for one in taken for each in one] for name, taken in _posts(ways, arguments.posts).items()}
    bare = block(posts["bare"])
    print("post      " + "   ".join(f"{name} {block(each) * 1000:.3f} ms" for name, each in posts.items()))
    big: dict[str, list[float]] = {way.name: [] for way in ways}
    for number in range(arguments.rounds):
        for way in ways:
            client = PLAIN.Client(way.port)
            client.call(0)
            big[way.name].append(client.post("x/big", {"size": 20_000_000}, number))
            client.end()
    print("20 MB     " + "   ".join(f"{name} {block(each):.2f} s" for name, each in big.items()))
    ours = next(way for way in ways if way.name == "mcpsniff")
    figures = {
        "post": block(posts["mcpsniff"]) / bare,
        "20 MB": block(big["mcpsniff"]) / block(big["bare"]),
        "stream": measure_stream(ours, arguments.stream),
        "flat": measure_flat(ours, arguments.exchanges),
    }
    print(f"beside minimal: post {block(posts['mcpsniff']) / block(posts['minimal']):.2f}")
    return figures


def _posts(ways: list[Way], posts: int) -> dict[str, list[list[float]]]:
    clients = [PLAIN.Client(way.port) for way in ways]
    taken: dict[str, list[list[float]]] = {way.name: [] for way in ways}
    for first in range(0, posts, PLAIN.BLOCK):
        for way, client in zip(ways, clients, strict=True):
            taken[way.name].append([client.call(first + number) for number in range(PLAIN.BLOCK)][5:])
    return taken


def main() -> int:
    """Measure all, and return 1 if something takes more than promised."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--posts", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=5, help="responses of 20 MB for each way")
    parser.add_argument("--exchanges", type=int, default=50_000)
    parser.add_argument("--stream", type=int, default=1024, help="MiB")
    parser.add_argument("--json")
    parser.add_argument("--serve", metavar="PEM", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        asyncio.run(serve(arguments.serve))
        return 0
    from tests.mitm.certificates import Authority

    with tempfile.TemporaryDirectory(prefix="bench-mitm-") as name:
        folder = Path(name)
        authority = Authority(folder)
        words = [sys.executable, __file__, "--serve", str(authority.issue())]
        server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None
        port = int(server.stdout.readline())
        ways: list[Way] = []
        try:
            for each in ("bare", "minimal", "mcpsniff"):
                ways += [Way(each, port, folder, str(authority.file))]
            began = time.monotonic()
            figures = report(ways, arguments)
        finally:
            for way in ways:
                way.stop()
            server.terminate()
            server.wait()
    failed = False
    for name, figure in figures.items():
        unit, most = LIMITS[name]
        failed |= figure > most
        print(f"{name:9} {figure:8.2f} {unit:9} (at most {most:g}){'  TOO MUCH' * (figure > most)}")
    print(f"{time.monotonic() - began:.0f} s")
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(figures))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
