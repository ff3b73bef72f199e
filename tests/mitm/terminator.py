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

from tests.proxy.listening import Listening


class Terminator(Listening):
    """Listens at a port of its own for clients of the plain server at ``port``."""

    def __init__(self, port: int, pem: str, alpn: tuple[str, ...] = ("http/1.1",), host: str = "127.0.0.1") -> None:
        self._port = port
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(pem)
        self._context.set_alpn_protocols(list(alpn))
        self.names: list[str | None] = []
        """The names that clients asked for (SNI)."""
        self._context.sni_callback = lambda _socket, name, _context: self.names.append(name)
        super().__init__(host)

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}"

    def serves(self, port: int) -> None:
        """Stand in front of another server."""
        self._port = port

    def serve(self, connection: socket.socket) -> None:
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
