"""docs/clients.md: its examples are valid, differ in what is to differ, and its command lines do what the page says."""

import ast
import shlex
import socket
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from threading import Thread

import pytest

from tests.docs.snippets import CONFIGURATIONS, PROGRAMS, Block, Server, blocks, command_lines, parsed, servers
from tests.mitm.certificates import Authority
from tests.mitm.terminator import Terminator
from tests.peers.harness import free_port
from tests.proxy.wrapped import Captured, environment, wait_for

ORIGIN, HOST = "https://mcp.example.com", "mcp.example.com"
ADDRESS = "http://127.0.0.1:9000"
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
PONG = b'{"jsonrpc":"2.0","id":1,"result":{}}\n'
TRANSPORTS = {"stdio": "stdio", "run": "forward"}

POST = """
def post(body, url):
    import urllib.request
    headers = {"Content-Type": "application/json"}
    return urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=30).read()
"""
STUBS = {
    "mcpsniff": "import os\nos.execv(sys.executable, [sys.executable, '-m', 'mcpsniff', *sys.argv[1:]])\n",
    # A server: answers each line.
    "uvx": "assert sys.argv[1:] == ['mcp-server-time']\n"
    f"for _ in sys.stdin: print({PONG.decode().strip()!r}, flush=True)\n",
    # A bridge: posts each line.
    "npx": "assert sys.argv[1] == 'mcp-remote'\n"
    "for line in sys.stdin.buffer: sys.stdout.buffer.write(post(line, sys.argv[2])), sys.stdout.flush()\n",
}
CLIENT = "import os\nsys.stdout.buffer.write(post({ping!r}, os.environ['STUB_URL']))\n"

BY_CHAPTER: dict[str, list[Block]] = {}
for _block in blocks():
    if _block.language in (*CONFIGURATIONS, *PROGRAMS):
        BY_CHAPTER.setdefault(_block.chapter, []).append(_block)
CHANGED = [server for _, *after in BY_CHAPTER.values() for block in after for server in servers(block).values()]
COMMANDS = sorted({server.command for server in CHANGED if server.command})
ADDRESSES = sorted({server.url for server in CHANGED if server.url})
LINES = [shlex.split(line) for line in command_lines()]
RUNS = [line for line in LINES if line[:2] == ["mcpsniff", "run"]]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(PONG)))
        self.end_headers()
        self.wfile.write(PONG)

    def log_message(self, *_: object) -> None:
        pass


@dataclass(frozen=True)
class World:
    """A server at https://, and programs of the names that the page uses."""

    folder: Path
    url: str
    authority: Path

    def real(self, words: Sequence[str], **names: str) -> list[str]:
        """Return words of the page with what is there in the place of what the page names."""
        found: list[str] = []
        for word in words:
            for name, there in {ORIGIN: self.url, HOST: "localhost", **names}.items():
                word = word.replace(name, there)  # noqa: PLW2901
            way = word if found[-1:] == ["mcpsniff"] else ""
            found.append(word)
            if way in ("http", "forward"):
                found += ["--upstream-ca", str(self.authority)]
            elif way == "stdio":
                found += ["--grace", "60"]  # however long its server takes to end on a busy machine
        return found

    def run(self, words: Sequence[str], captures: Path) -> "subprocess.CompletedProcess[bytes]":
        """Run a command to its end."""
        program, env = self.folder / words[0], self.environment(captures)
        nothing = subprocess.DEVNULL
        return subprocess.run(words, stdin=nothing, capture_output=True, env=env, timeout=100, executable=program)

    def ask(self, words: Sequence[str], captures: Path) -> "subprocess.CompletedProcess[bytes]":
        """Run a command that serves on its stdin: send a ping, hear what comes back, and only then let it end."""
        pipe, program, env = subprocess.PIPE, self.folder / words[0], self.environment(captures)
        with (captures / "stderr").open("w+b") as log:
            process = subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=log, env=env, executable=program)
            assert process.stdin
            assert process.stdout
            process.stdin.write(PING)
            process.stdin.flush()
            heard = process.stdout.readline()
            rest, _ = process.communicate(timeout=100)
            log.seek(0)
            return subprocess.CompletedProcess(words, process.returncode, heard + rest, log.read())

    def environment(self, captures: Path) -> dict[str, str]:
        path = f"{self.folder}:{environment()['PATH']}"
        more = {"HOME": str(self.folder), "SSL_CERT_FILE": str(self.authority), "STUB_URL": f"{self.url}/mcp"}
        return environment(PATH=path, MCPSNIFF_DIR=str(captures), **more)

    def program(self, name: str, text: str) -> None:
        path = self.folder / name
        path.write_text(f"#!{sys.executable}\nimport sys\n{POST}\n{text}", encoding="utf-8")
        path.chmod(0o755)

    @contextmanager
    def standing(self, words: Sequence[str], port: int, captures: Path) -> Iterator[None]:
        """Run a command that listens at a port, until the end of the block, when it is told to end."""
        program, env = self.folder / words[0], self.environment(captures)
        process = subprocess.Popen(
            words, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, executable=program
        )
        try:
            assert wait_for(lambda: _listens(port)), process.stderr
            yield
        finally:
            process.terminate()
            _, said = process.communicate(timeout=60)
        assert process.returncode == 0, said


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("world")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    authority = Authority(folder)
    with Terminator(server.server_port, str(authority.issue())) as terminator:
        found = World(folder, terminator.url, authority.file)
        for name, text in STUBS.items():
            found.program(name, text)
        for words in RUNS:
            found.program(words[words.index("--") + 1], CLIENT.format(ping=PING))
        yield found
    server.shutdown()
    server.server_close()


def post(url: str, **handlers: urllib.request.BaseHandler) -> bytes:
    request = urllib.request.Request(url, PING, {"Content-Type": "application/json"})
    opener = urllib.request.build_opener(*(handlers.values() or [urllib.request.ProxyHandler({})]))
    with opener.open(request, timeout=30) as answer:
        return bytes(answer.read())


def captured(folder: Path) -> list[Captured]:
    """Return the captures in a folder, each with the ping in it."""
    found = [Captured(path) for path in folder.glob("*.mcpcap")]
    for capture in found:
        chunks = "".join(str(body) for _, kind, _, body in capture.records if kind == "chunk")
        assert '"method":"ping"' in chunks, capture.path
    return found


def as_before(server: Server) -> Server:
    """Return an entry without mcpsniff in it."""
    words = list(server.command)
    while words[:1] == ["mcpsniff"]:
        words = [word for word in words[words.index("--") + 1 :] if word != "--enable-proxy"]
    return replace(server, command=tuple(words), url=server.url.replace(ADDRESS, ORIGIN))


@pytest.mark.parametrize("chapter", BY_CHAPTER)
def test_examples_change_only_the_command_or_the_url(chapter: str) -> None:
    before, *after = BY_CHAPTER[chapter]
    old = servers(before)
    assert old
    assert after
    for block in after:
        new = servers(block)
        assert block.language == before.language
        assert {place: as_before(server) for place, server in new.items()} == old
        assert all(new[place] != old[place] for place in old)


def test_programs_are_programs() -> None:
    for block in blocks():
        if block.language == "python":
            ast.parse(block.text)


def test_what_surrounds_the_servers_is_left_alone() -> None:
    (before, after) = (parsed(block) for block in BY_CHAPTER["VS Code"])
    assert before["inputs"] == after["inputs"]
    assert list(before) == list(after)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_commands_serve_and_record(world: World, tmp_path: Path, words: tuple[str, ...]) -> None:
    done = world.ask(world.real(words), tmp_path)
    assert (done.returncode, done.stdout) == (0, PONG), done.stderr
    ways = [TRANSPORTS[way] for name, way in pairwise(words) if name == "mcpsniff"]
    assert sorted(capture.header["transport"] for capture in captured(tmp_path)) == sorted(ways)


def test_addresses_lead_to_the_server(world: World, tmp_path: Path) -> None:
    (line,) = [line for line in LINES if line[:2] == ["mcpsniff", "http"]]
    port = free_port()
    with world.standing(world.real(line, **{"127.0.0.1:9000": f"127.0.0.1:{port}"}), port, tmp_path):
        assert ADDRESSES
        for address in ADDRESSES:
            assert post(address.replace(":9000/", f":{port}/")) == PONG
    (capture,) = captured(tmp_path)
    assert sum(kind == "open" and body["kind"] == "http-request" for _, kind, _, body in capture.records) == len(
        ADDRESSES
    )


@pytest.mark.parametrize("words", RUNS, ids=" ".join)
def test_clients_run_through_the_proxy(world: World, tmp_path: Path, words: list[str]) -> None:
    done = world.run(world.real(words), tmp_path)
    assert (done.returncode, done.stdout) == (0, PONG), done.stderr
    assert b"saw 1 HTTP exchange of MCP with https://localhost:" in done.stderr
    assert len(captured(tmp_path)) == 1


def test_a_standing_proxy_serves_clients_that_trust_its_authority(world: World, tmp_path: Path) -> None:
    (line,) = [line for line in LINES if line[:2] == ["mcpsniff", "forward"]]
    port = free_port()
    with world.standing(world.real(line, **{"127.0.0.1:8888": f"127.0.0.1:{port}"}), port, tmp_path):
        said = world.run(["mcpsniff", "ca", "--path"], tmp_path)
        proxy = urllib.request.ProxyHandler({"https": f"http://127.0.0.1:{port}"})
        trust = urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=said.stdout.decode().strip()))
        assert post(f"{world.url}/mcp", proxy=proxy, trust=trust) == PONG
    assert [capture.header["transport"] for capture in captured(tmp_path)] == ["forward"]


def test_every_command_line_is_known(world: World, tmp_path: Path) -> None:
    """What is not run above is a command of a client, which gets what an example has, or shows something."""
    for words in LINES:
        if words == ["mcpsniff", "ca"]:
            done = world.run(words, tmp_path)
            assert done.returncode == 0
            assert str(world.folder) in done.stdout.decode()
        elif words[0] != "mcpsniff":
            assert words[1:3] == ["mcp", "add"], words
            given = tuple(words[words.index("--") + 1 :]) if "--" in words else words[-1]
            assert given in COMMANDS or given in ADDRESSES
        else:
            assert words in RUNS or words[1] in ("http", "forward")


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
