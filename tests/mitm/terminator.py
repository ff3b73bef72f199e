"""A TLS terminator: TLS on one side, the same bytes without it on the other. Hang-ups pass as they are.

As a program: ``python -m tests.mitm.terminator PORT PEM CA -- COMMAND...`` stands in front of a plain server at PORT of
this machine, and runs COMMAND with ``{tls}`` replaced by its own URL and ``{ca}`` by CA.
"""

import signal
import socket
import ssl
import subprocess
import sys
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self


class Terminator:
    """Listens at a port of its own for clients of the plain server at ``port``."""

    def __init__(self, port: int, pem: str, alpn: tuple[str, ...] = ("http/1.1",), host: str = "127.0.0.1") -> None:
        self._port = port
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(pem)
        self._context.set_alpn_protocols(list(alpn))
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, 0), family=family, backlog=512)
        self.port: int = self._socket.getsockname()[1]
        self.names: list[str | None] = []
        """The names that clients asked for (SNI)."""
        self._context.sni_callback = lambda _socket, name, _context: self.names.append(name)
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}"

    def serves(self, port: int) -> None:
        """Stand in front of another server."""
        self._port = port

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._carry, args=(connection,), daemon=True).start()

    def _carry(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            secure = self._context.wrap_socket(connection, server_side=True)
        except OSError:
            connection.close()
            return
        try:
            plain = socket.create_connection(("127.0.0.1", self._port))
        except OSError:
            secure.close()
            return
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        up = threading.Thread(target=_pump, args=(secure, plain), daemon=True)
        up.start()
        _pump(plain, secure)
        up.join()
        secure.close()
        plain.close()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    """Carry bytes until either side ends; then both do."""
    try:
        while data := source.recv(1 << 16):
            sink.sendall(data)
    except (OSError, ValueError):
        pass
    for side in (sink, source):
        with suppress(OSError):
            socket.socket.shutdown(side, socket.SHUT_RDWR)


def main() -> int:
    port, pem, ca, _, *command = sys.argv[1:]
    terminator = Terminator(int(port), pem)
    words = [word.replace("{tls}", terminator.url).replace("{ca}", ca) for word in command]
    process = subprocess.Popen(words)
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    return process.wait()


if __name__ == "__main__":
    sys.exit(main())
