"""Servers that answer and hang up before they have read the request: the answer arrives, and so does the end."""

import asyncio
import socket
import ssl
import struct
from contextlib import suppress
from pathlib import Path

import pytest

from mcpsniff.proxy.mitm.handling import LastingReader, PatientLock
from tests.mitm.certificates import Authority
from tests.mitm.proxied import Proxy, home, upstream_ca
from tests.proxy.listening import Listening
from tests.proxy.relayed import Relay
from tests.proxy.wrapped import PATIENCE, wait_for

__all__ = ["home", "upstream_ca"]

ANSWER = b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig"
SIZE = 300_000
TRIES = 8
"""How often it is tried: before, each of these was met with by every second one or more."""


class Impatient(Listening):
    """Answers the head of a request, unless it is to say nothing, and hangs up with the body unread: a reset."""

    def __init__(self, pem: str | None = None, said: bytes = ANSWER) -> None:
        self._context: ssl.SSLContext | None = None
        self._said = said
        if pem is not None:
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.load_cert_chain(pem)
        super().__init__()

    def serve(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else a reset takes back what was said
        with suppress(OSError):
            if self._context is not None:
                connection = self._context.wrap_socket(connection, server_side=True)
            head = b""
            while b"\r\n\r\n" not in head and (piece := connection.recv(1)):
                head += piece
            connection.sendall(self._said)
            connection.recv(1)
        connection.close()


def ask(client: socket.socket, target: str = "/mcp", host: str = "h") -> bytes:
    """Send a long request, whatever happens meanwhile; return all that is received before the end."""
    client.settimeout(PATIENCE)
    with client, suppress(ConnectionError):
        with suppress(ConnectionError):
            client.sendall(f"POST {target} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {SIZE}\r\n\r\n".encode())
            client.sendall(bytes(SIZE))
        said = b""
        with suppress(ConnectionError):
            while data := client.recv(1 << 16):
                said += data
    return said


@pytest.mark.parametrize("said", [ANSWER, b""], ids=["answered", "silent"])
def test_a_client_of_a_forward_proxy_gets_the_answer_and_the_end(
    tmp_path: Path, upstream_ca: Authority, said: bytes
) -> None:
    proxy = Proxy(tmp_path, upstream_ca.file, [])
    with Impatient(str(upstream_ca.issue()), said) as secure, Impatient(said=said) as plain, proxy.running():
        trust = ssl.create_default_context(cafile=proxy.session.ca_path)
        target = f"http://127.0.0.1:{plain.port}/mcp"
        for _ in range(TRIES):
            tunnel = proxy.tunnel("localhost", secure.port)
            assert ask(trust.wrap_socket(tunnel, server_hostname="localhost")) == said
            assert ask(proxy.connect(), target) == said
        assert wait_for(lambda: not proxy.session._engine.connections)


def test_a_client_of_a_reverse_proxy_gets_the_answer_and_the_end(tmp_path: Path, upstream_ca: Authority) -> None:
    with Impatient(str(upstream_ca.issue())) as server:
        url = f"https://localhost:{server.port}/mcp"
        with Relay(tmp_path, url, "--upstream-ca", str(upstream_ca.file)) as relay:
            for _ in range(TRIES):
                client = socket.create_connection(("127.0.0.1", relay.port), PATIENCE)
                assert ask(client, host=f"localhost:{relay.port}") == ANSWER


def test_a_task_that_is_cancelled_while_it_waits_for_the_lock_is_cancelled_after_it() -> None:
    done: list[str] = []

    async def work(lock: PatientLock) -> None:
        async with lock:
            done.append("inside")
        try:
            await asyncio.sleep(PATIENCE)
        except asyncio.CancelledError as error:
            done.append(*error.args)
            raise

    async def main() -> None:
        lock = PatientLock()
        async with lock:
            task = asyncio.create_task(work(lock))
            await asyncio.sleep(0)
            for why in ("first", "second"):
                task.cancel(why)
                await asyncio.sleep(0)
            assert done == []
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert done == ["inside", "second"]


def test_what_came_in_before_sending_failed_is_read() -> None:
    """Neither what was buffered nor what the system still holds is lost, and the end comes after it."""

    async def main() -> bytes:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            reader, writer = await asyncio.open_connection(*listening.getsockname())
            reader.__class__ = LastingReader
            peer, _ = listening.accept()
        writer.write(b"x")
        peer.sendall(b"first ")
        while not reader._buffer:  # type: ignore[attr-defined]
            await asyncio.sleep(0)
        peer.sendall(b"second")
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.close()  # a reset
        writer.write(b"y")
        with pytest.raises(ConnectionError):
            await writer.drain()
        writer.close()
        return await reader.read(-1)

    assert asyncio.run(main()) == b"first second"
