"""Drive `mcpsniff http` from outside: a scripted server behind it, raw sockets before it, and what it left behind."""

import os
import re
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from mcpsniff.wire.http1 import Data, End, Head, Http1Splitter, Part
from tests.cli.ready import ready
from tests.proxy.listening import Listening
from tests.proxy.wrapped import PATIENCE, Captured, environment, wait_for

EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
JSON = b"Content-Type: application/json\r\n"


def post(body: bytes, *headers: str, target: str = "/mcp", host: str = "127.0.0.1") -> bytes:
    lines = [f"POST {target} HTTP/1.1", f"Host: {host}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def get(target: str = "/sse", *headers: str, host: str = "127.0.0.1") -> bytes:
    lines = [f"GET {target} HTTP/1.1", f"Host: {host}", "Accept: text/event-stream", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


def answer(body: bytes = b"", *headers: str, status: str = "200 OK") -> bytes:
    lines = [f"HTTP/1.1 {status}", *headers, f"Content-Length: {len(body)}"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


class Peer:
    """One end of a connection, with what it has read so far."""

    def __init__(self, connection: socket.socket, direction: str = "s2c") -> None:
        self.socket = connection
        self.socket.settimeout(PATIENCE)
        self.came = b""
        self._parts: Iterator[Part] = iter(())
        self._splitter = Http1Splitter(0, direction)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.socket.sendall(piece)

    def read(self) -> bytes:
        """Return what one read gives; empty at the end."""
        data = self.socket.recv(1 << 16)
        self.came += data
        return data

    def read_until(self, needle: bytes) -> bytes:
        """Read until ``needle`` came, and return all that came so far."""
        while needle not in self.came:
            assert self.read(), f"the stream ended after {self.came[-200:]!r}"
        return self.came

    def read_all(self) -> bytes:
        """Return all that comes up to the end of the stream."""
        while self.read():
            pass
        return self.came

    def next_message(self) -> tuple[Head, bytes]:
        """Return head and body of the next request or response."""
        head, body = None, []
        while True:
            for part in self._parts:
                if isinstance(part, Head):
                    head = part
                elif isinstance(part, Data):
                    body.append(part.data)
                elif isinstance(part, End):
                    assert head is not None
                    return head, b"".join(body)
            data = self.read()
            assert data, "the stream ended"
            self._parts = iter(self._splitter.feed(0, data))

    def half_close(self) -> None:
        self.socket.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        """Close with a reset."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def sees_reset(self) -> bool:
        """Read to the end; return whether that was a reset."""
        try:
            self.read_all()
        except ConnectionResetError:
            return True
        return False


class Upstream(Listening):
    """A server whose every connection is played by ``script`` in a thread of its own."""

    def __init__(self, script: Callable[[Peer], object], family: int = socket.AF_INET) -> None:
        self._script = script
        self.peers: list[Peer] = []
        self.failures: list[BaseException] = []
        super().__init__("::1" if family == socket.AF_INET6 else "127.0.0.1")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        for peer in self.peers:
            with suppress(OSError):
                peer.socket.shutdown(socket.SHUT_RDWR)
        if kind is None and self.failures:
            raise self.failures[0]

    def serve(self, connection: socket.socket) -> None:
        peer = Peer(connection, "c2s")
        self.peers.append(peer)
        self._play(peer)

    def _play(self, peer: Peer) -> None:
        try:
            self._script(peer)
        except (ConnectionError, AssertionError) as error:
            if not isinstance(error, ConnectionError) and "the stream ended" not in str(error):
                self.failures.append(error)
        finally:
            peer.socket.close()


def echo(peer: Peer) -> None:
    """Answer each request with its own body."""
    while True:
        _, body = peer.next_message()
        peer.send(answer(body))


class Relay:
    """`mcpsniff http` in front of ``upstreams``, quietly and without a transcript unless told otherwise."""

    def __init__(
        self,
        folder: Path,
        *words: str,
        quiet: bool = True,
        transcript: bool = False,
        env: dict[str, str] | None = None,
        command: str = "http",
    ) -> None:
        self.folder = folder / "captures"
        line = [command, *words, "--dir", str(self.folder)]
        line += [*(["--quiet"] if quiet else []), *([] if transcript else ["--no-transcript"])]
        (our_out, their_out), (our_err, their_err) = os.pipe(), os.pipe()
        theirs = [os.open(os.devnull, os.O_RDONLY), their_out, their_err]
        self.process = ready().start(line, theirs, environment(**(env or {})), None)
        for descriptor in theirs:
            os.close(descriptor)
        self.out = self.err = b""
        self._threads = [
            threading.Thread(target=self._drain, args=each, daemon=True)
            for each in (("out", our_out), ("err", our_err))
        ]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> Self:
        self.port = int(self.addresses()[0].split(":")[2].split("/")[0])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def _drain(self, name: str, source: int) -> None:
        while data := os.read(source, 65536):
            setattr(self, name, getattr(self, name) + data)
        os.close(source)

    def addresses(self) -> list[str]:
        """The addresses that are given out, once they are."""

        def look() -> list[str]:
            assert self.process.poll() is None, self.err
            told = re.findall(r"give the client (\S+)", self.err.decode())
            return told or (self.out.decode().split() if self.out.endswith(b"\n") else [])

        assert wait_for(look), self.err
        return look()

    def connect(self, port: int | None = None) -> Peer:
        return Peer(socket.create_connection(("127.0.0.1", port or self.port), PATIENCE))

    def ask(self, request: bytes) -> tuple[Head, bytes]:
        """Return the response to a request on a connection of its own."""
        with self.connect() as peer:
            peer.send(request)
            return peer.next_message()

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and return the exit status."""
        self.process.send_signal(number)
        status = self.process.wait(PATIENCE)
        for thread in self._threads:
            thread.join(PATIENCE)
        return status

    def recorded(self, probe: Callable[[Captured], object], label: str = "") -> Captured:
        """Wait until the growing capture shows something, and return it."""

        def look() -> object:
            paths = list(self.folder.glob(f"{label}*.mcpcap"))
            return paths and b"\n" in paths[0].read_bytes() and probe(Captured(paths[0]))

        assert wait_for(look)
        return self.capture(label)

    def capture(self, label: str = "") -> Captured:
        """Return what the one capture in the folder holds."""
        (path,) = self.folder.glob(f"{label}*.mcpcap")
        return Captured(path)

    def size(self) -> int:
        """Bytes of all that is in the folder of captures."""
        total = 0
        for part in self.folder.iterdir():
            with suppress(FileNotFoundError):
                total += part.stat().st_size
        return total

    def footprint(self) -> tuple[int, int]:
        """How many threads and descriptors the relay has, where the system tells."""
        process = Path(f"/proc/{self.process.pid}")
        if not process.exists():
            return 0, 0
        return len(os.listdir(process / "task")), len(os.listdir(process / "fd"))

    def footprint_at_rest(self) -> tuple[int, int]:
        """The footprint once it has been the same for a while: what loads, opens files."""
        seen = [self.footprint()]

        def look() -> bool:
            seen.append(self.footprint())
            return len(seen) > 10 and len(set(seen[-10:])) == 1

        assert wait_for(look)
        return seen[-1]


def closes(capture: Captured) -> dict[int, dict[str, str]]:
    """How each channel ended."""
    return {channel: body for _, kind, channel, body in capture.records if kind == "close"}


def rest() -> None:
    """A moment in which what must not happen could happen."""
    time.sleep(0.1)
