"""Break points of `mcpsniff http`: many at once, and clients and servers that go while a message is held."""

import json
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

from mcpsniff.cli.attach_link import Link, attached
from tests.breaks.desks import call, comes
from tests.cli.running import COMMAND, environment
from tests.proxy.wrapped import wait_for

MANY = 200
NOTE = b'data: {"jsonrpc":"2.0","method":"notifications/message","params":{}}\n\n'
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n" + NOTE


class Server:
    """Answers each POST with its arguments; those whose arguments ask for it in a stream, behind a notification."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=MANY)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/mcp"
        self.asked: list[int] = []
        self.connections: list[socket.socket] = []
        Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections.append(connection)
            Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream:
            while line := stream.readline():
                if line.lower().startswith(b"content-length:"):
                    length = int(line.partition(b":")[2])
                elif line == b"\r\n":
                    asked = json.loads(stream.read(length))
                    self.asked.append(asked["id"])
                    answer = {"jsonrpc": "2.0", "id": asked["id"], "result": asked["params"]["arguments"]}
                    data = json.dumps(answer).encode()
                    if asked["params"]["arguments"].get("stream"):
                        connection.sendall(STREAM + b"data: " + data + b"\n\n")
                        return
                    head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                    connection.sendall(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)

    def close(self) -> None:
        self._listener.close()
        for connection in self.connections:
            connection.close()


class Client:
    """A POST on a connection of its own."""

    def __init__(self, url: str, number: int, **arguments: object) -> None:
        host, _, port = url.split("/")[2].partition(":")
        self.socket = socket.create_connection((host, int(port)))
        self.socket.settimeout(60)
        body = call(number, n=number, **arguments)
        head = f"POST /mcp HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\n"
        accept = "Accept: application/json, text/event-stream\r\n"
        self.socket.sendall(f"{head}{accept}Content-Length: {len(body)}\r\n\r\n".encode() + body)

    def stream(self) -> bytes:
        """The whole response of a stream, but for its head."""
        data = b""
        while piece := self.socket.recv(65536):
            data += piece
        return data.partition(b"\r\n\r\n")[2]

    def answer(self) -> dict[str, object]:
        data = b""
        while b"\r\n\r\n" not in data or not data.endswith(b"}"):
            piece = self.socket.recv(65536)
            assert piece, data
            data += piece
        answer: dict[str, object] = json.loads(data.partition(b"\r\n\r\n")[2])
        return answer


@pytest.fixture
def server() -> Iterator[Server]:
    one = Server()
    yield one
    one.close()


@contextmanager
def relay(server: Server, folder: Path, *options: str) -> Iterator[tuple[str, Link, subprocess.Popen[bytes]]]:
    """A relay: the address for clients, a link to its desk, and its process."""
    words = [*COMMAND, "http", "--quiet", "--no-transcript", "--dir", str(folder / "captures"), *options, server.url]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        url = process.stdout.readline().decode().strip()
        link = attached(str(process.pid))
        try:
            yield url, link, process
        finally:
            link.close()
            process.terminate()
            _, said = process.communicate(timeout=60)
            assert b"Traceback" not in said
            assert process.returncode == 0


def test_hundreds_are_held_and_each_goes_its_own_way(server: Server, tmp_path: Path) -> None:
    with relay(server, tmp_path, "--break", "tool:add kind:request") as (url, link, _):
        clients = [Client(url, number) for number in range(MANY)]
        assert comes(link, lambda: len(link.held) == MANY)
        assert server.asked == []
        by_id = {int(held.facts["id"]): held.number for held in link.held.values()}
        for number in range(0, MANY, 2):
            link.order("answer", by_id[number], error="no")
        for number in range(0, MANY, 2):
            assert clients[number].answer()["error"] == {"code": -32000, "message": "no"}
        link.order("pass all")
        for number in range(1, MANY, 2):
            assert clients[number].answer()["result"] == {"n": number}
        assert sorted(server.asked) == list(range(1, MANY, 2))
        for client in clients:
            client.socket.close()


def test_a_held_event_holds_up_its_own_stream_alone(server: Server, tmp_path: Path) -> None:
    with relay(server, tmp_path, "--break", "kind:notification dir:s2c") as (url, link, _):
        clients = [Client(url, number, stream=True) for number in (1, 2)]
        assert comes(link, lambda: len(link.held) == 2)
        other = Client(url, 3)
        assert other.answer()["result"] == {"n": 3}
        link.order("drop", 1)
        link.order("change", 2, text='{"jsonrpc":"2.0","method":"notifications/other"}')
        streams = [client.stream() for client in clients]
        assert sorted(stream.count(b"data: ") for stream in streams) == [1, 2]
        (changed,) = [stream for stream in streams if b"notifications" in stream]
        assert b'data: {"jsonrpc":"2.0","method":"notifications/other"}\n\n' in changed
        assert all(b'"stream": true' in stream for stream in streams)
        for client in (*clients, other):
            client.socket.close()


def test_a_client_that_hangs_up_and_one_that_waits(server: Server, tmp_path: Path) -> None:
    with relay(server, tmp_path, "--break", "tool:add kind:request") as (url, link, _):
        first, second = Client(url, 1), Client(url, 2)
        assert comes(link, lambda: len(link.held) == 2)
        by_id = {int(held.facts["id"]): held.number for held in link.held.values()}
        first.socket.close()
        assert comes(link, lambda: link.gone)
        (gone,) = link.gone
        assert (gone[0].number, gone[1]) == (by_id[1], "given up, as its connection is gone")
        link.order("pass", by_id[2])
        assert second.answer()["id"] == 2
        second.socket.close()


def test_a_client_that_hangs_up_while_its_answer_is_held(server: Server, tmp_path: Path) -> None:
    with relay(server, tmp_path, "--break", "tool:add kind:response") as (url, link, _):
        client = Client(url, 1)
        assert comes(link, lambda: link.held)
        assert link.held[1].facts["dir"] == "s2c"
        client.socket.close()
        assert comes(link, lambda: link.gone)


def test_a_server_that_ends_while_its_answer_is_held(server: Server, tmp_path: Path) -> None:
    """What it has said is still good."""
    with relay(server, tmp_path, "--break", "tool:add kind:response") as (url, link, _):
        client = Client(url, 1)
        assert comes(link, lambda: link.held)
        server.close()
        link.order("pass", 1)
        assert client.answer()["result"] == {"n": 1}
        client.socket.close()


def test_the_end_lets_go_what_is_held(server: Server, tmp_path: Path) -> None:
    with relay(server, tmp_path, "--break", "tool:add kind:request", "--label", "x") as (url, link, process):
        assert link.session["labels"] == ["x"]
        client = Client(url, 1)
        assert comes(link, lambda: link.held)
        process.terminate()
        assert client.answer()["result"] == {"n": 1}
        assert comes(link, lambda: link.gone and link.gone[0][1] == "passed at the end of the session")
        client.socket.close()
        assert wait_for(lambda: process.poll() is not None)
