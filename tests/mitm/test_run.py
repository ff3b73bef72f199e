"""`mcpsniff run` as it is: clients on plain HTTP and TLS, those that do not trust it, and those that ignore it."""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from mcpsniff.proxy.client_trust import BUNDLES
from mcpsniff.proxy.mitm.distrust import HUNG_UP
from tests.cli.running import run_in
from tests.mitm.certificates import Authority
from tests.mitm.terminator import Terminator
from tests.proxy.wrapped import Captured, environment

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
PONG = b'{"jsonrpc":"2.0","id":1,"result":{}}'

ASK = """
import ssl, sys, urllib.request
for url in sys.argv[1:]:
    request = urllib.request.Request(url, {data!r}, {{"Content-Type": "application/json"}})
    try:
        print(urllib.request.build_opener({direct}).open(request, timeout=60).read().decode())
    except OSError as error:
        print(error)
"""
ASYNC = """
import asyncio, os, ssl, sys
from urllib.parse import urlsplit
async def main():
    server, proxy = urlsplit(sys.argv[1]), urlsplit(os.environ["HTTPS_PROXY"])
    reader, writer = await asyncio.open_connection(proxy.hostname, proxy.port)
    writer.write(f"CONNECT {server.netloc} HTTP/1.1\\r\\nHost: {server.netloc}\\r\\n\\r\\n".encode())
    await reader.readuntil(b"\\r\\n\\r\\n")
    try:
        await writer.start_tls(ssl.create_default_context(), server_hostname=server.hostname)
    except ssl.SSLError as error:
        print(error)
asyncio.run(main())
"""
DIRECT = "urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=ssl._create_unverified_context())"


def client(data: bytes = PING, *, direct: bool = False) -> list[str]:
    """A client in Python that posts to URLs and prints the answers."""
    return [sys.executable, "-c", ASK.format(data=data, direct=DIRECT if direct else "")]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        answer = PONG if b"jsonrpc" in body else b'{"plain":"thing"}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        pass


@dataclass
class Servers:
    plain: str
    secure: str
    authority: Authority


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Servers]:
    """One that speaks plain HTTP, and the same behind TLS."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    authority = Authority(tmp_path)
    with Terminator(server.server_port, str(authority.issue())) as terminator:
        yield Servers(f"http://127.0.0.1:{server.server_port}/mcp", f"{terminator.url}/mcp", authority)
    server.shutdown()
    server.server_close()


@dataclass
class Ran:
    out: list[str]
    err: str
    status: int
    capture: Captured

    @property
    def asked(self) -> list[str]:
        """Where the recorded requests went."""
        opened = [body for _, kind, _, body in self.capture.records if kind == "open"]
        return [
            f"{body['meta']['scheme']}://{body['meta']['authority']}"
            for body in opened
            if body["kind"] == "http-request"
        ]


def ran(folder: Path, command: list[str], *options: str, **env: str) -> Ran:
    set_here = {*BUNDLES, "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"}
    kept = {
        name: value for name, value in environment().items() if name not in set_here and "PROXY" not in name.upper()
    }
    words = ["run", "--no-transcript", "--dir", str(folder / "c"), *options, "--", *command]
    done = run_in({**kept, **env}, *words)
    (path,) = (folder / "c").glob("*.mcpcap")
    return Ran(done.out.splitlines(), done.err, done.status, Captured(path))


def test_plain_and_tls_on_this_machine_are_seen_and_unchanged(tmp_path: Path, servers: Servers) -> None:
    """The client trusts nothing but what mcpsniff run sets, and mcpsniff the server by --upstream-ca."""
    run = ran(tmp_path, [*client(), servers.plain, servers.secure], "--upstream-ca", str(servers.authority.file))
    assert (run.out, run.status) == ([PONG.decode()] * 2, 0)
    assert run.asked == [servers.plain.removesuffix("/mcp"), servers.secure.removesuffix("/mcp")]
    assert f"saw 2 HTTP exchanges of MCP with {', '.join(run.asked)}\n" in run.err
    assert run.capture.header["transport"] == "forward"
    chunks = [body for _, kind, _, body in run.capture.records if kind == "chunk"]
    assert chunks == [PING.decode(), PONG.decode()] * 2


@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"])
def test_an_authority_that_the_environment_names_is_trusted_by_mcpsniff(
    tmp_path: Path, servers: Servers, name: str
) -> None:
    run = ran(tmp_path, [*client(), servers.secure], **{name: str(servers.authority.file)})
    assert run.out == [PONG.decode()]
    assert run.asked == [servers.secure.removesuffix("/mcp")]


def test_what_is_no_mcp_passes_and_is_not_written_down(tmp_path: Path, servers: Servers) -> None:
    run = ran(tmp_path, [*client(b"a secret"), servers.secure], "--upstream-ca", str(servers.authority.file))
    assert run.out == ['{"plain":"thing"}']
    assert run.asked == []
    assert "secret" not in run.capture.path.read_text()
    assert "nothing is recorded: " in run.err
    place = servers.secure.removesuffix("/mcp")
    assert f"made 1 connection through the proxy to {place}, none with MCP in it" in run.err


def test_hosts_besides_only_are_not_looked_into(tmp_path: Path, servers: Servers) -> None:
    """The client then sees the server's own certificate, which it trusts by itself."""
    run = ran(tmp_path, [*client(), servers.secure], "--only", "mcp.test", SSL_CERT_FILE=str(servers.authority.file))
    assert run.out == [PONG.decode()]
    assert run.asked == []
    assert "none with MCP to mcp.test (--only); it went to localhost:" in run.err


def test_a_client_that_does_not_trust_us_is_named_with_its_alert(tmp_path: Path, servers: Servers) -> None:
    command = ["env", "-u", "SSL_CERT_FILE", *client(), servers.secure]
    run = ran(tmp_path, command, "--upstream-ca", str(servers.authority.file))
    assert "certificate verify failed" in run.out[0]
    place = servers.secure.removeprefix("https://").removesuffix("/mcp")
    assert f"the client refused mcpsniff's certificate for {place} (unknown ca): " in run.err
    assert "nothing is recorded: " in run.err
    comments = [body["text"] for _, kind, _, body in run.capture.records if kind == "comment"]
    assert any("unknown ca" in text for text in comments)


def test_a_client_that_hangs_up_without_an_alert_is_named_as_likely(tmp_path: Path, servers: Servers) -> None:
    """As all that is built on asyncio does, such as the Python SDK."""
    command = ["env", "-u", "SSL_CERT_FILE", sys.executable, "-c", ASYNC, servers.secure]
    run = ran(tmp_path, command, "--upstream-ca", str(servers.authority.file))
    assert "certificate verify failed" in run.out[0]
    place = servers.secure.removeprefix("https://").removesuffix("/mcp")
    assert f"the client {HUNG_UP} for {place}: it may not trust mcpsniff's certificates, " in run.err
    assert f"; what it had to say to {place} is unknown\n" in run.err
    assert "mcpsniff stdio" not in run.err
    comments = [body["text"] for _, kind, _, body in run.capture.records if kind == "comment"]
    assert f"a client refused mcpsniff's certificate for {place}, it seems ({HUNG_UP})" in comments


def test_a_server_that_mcpsniff_does_not_trust_is_named(tmp_path: Path, servers: Servers) -> None:
    run = ran(tmp_path, [*client(), servers.secure])
    assert "502" in run.out[0]
    assert f"the upstream {servers.secure.removesuffix('/mcp')} is not trusted: " in run.err
    assert f"saw 1 HTTP request of MCP that did not reach {servers.secure.removesuffix('/mcp')}\n" in run.err
    assert "--upstream-ca" in run.err


def test_mcp_that_no_server_was_there_for_is_not_told_as_none(tmp_path: Path) -> None:
    """Of one that asked for a tunnel first it is not known what it had to say."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = f"127.0.0.1:{taken.getsockname()[1]}"
    tunnelled = ran(tmp_path / "tunnel", [*client(), f"https://{place}/mcp"])
    assert f"cannot reach the upstream https://{place}" in tunnelled.err
    assert f"through the proxy to {place}; what it had to say to a server that was not reached is unk" in tunnelled.err
    assert "none with MCP" not in tunnelled.err
    plain = ran(tmp_path / "plain", [*client(), f"http://{place}/mcp"])
    assert "502" in plain.out[0]
    assert f"saw 1 HTTP request of MCP that did not reach http://{place}\n" in plain.err
    assert plain.err.count(f"cannot reach the upstream http://{place} ({place}: ") == 1


def test_a_client_that_dials_directly_is_not_told_as_silent(tmp_path: Path, servers: Servers) -> None:
    run = ran(tmp_path, [*client(direct=True), servers.secure])
    assert run.out == [PONG.decode()]
    assert "never used the proxy that it was given, so what it said is unknown" in run.err
    assert "mcpsniff forward" in run.err
    assert "mcpsniff http URL" in run.err
    (comment,) = [body["text"] for _, kind, _, body in run.capture.records if kind == "comment"]
    assert comment == "nothing is recorded: no client used the proxy; what was said past it is unknown"


def test_usage_errors_start_nothing(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    for words in (["--", ""], ["--nope", "--", "touch", str(mark)], ["--only", "a/b", "--", "touch", str(mark)], []):
        done = subprocess.run(
            [sys.executable, "-m", "mcpsniff", "run", *words],
            capture_output=True,
            text=True,
            env=environment(MCPSNIFF_DIR=str(tmp_path / "c"), TMPDIR=str(tmp_path)),
        )
        assert done.returncode == 2, done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_the_capture_can_be_shown(tmp_path: Path, servers: Servers) -> None:
    run = ran(tmp_path, [*client(), servers.plain])
    done = subprocess.run(
        [sys.executable, "-m", "mcpsniff", "show", str(run.capture.path), "--format", "json"],
        capture_output=True,
        text=True,
        env=environment(),
    )
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["state"] for event in events if event["type"] == "exchange"] == ["answered"]
