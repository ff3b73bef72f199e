"""A server that speaks HTTP/2 with TLS, and nothing else."""

import socket
import ssl
from collections.abc import Callable
from contextlib import suppress

import h2.config
import h2.connection
import h2.events
from hyperframe.frame import GoAwayFrame

from tests.proxy.listening import Listening


class Stream:
    """One exchange: what was asked, and what is to be said."""

    def __init__(self, server: "Served", number: int, headers: list[tuple[bytes, bytes]]) -> None:
        self.headers = headers
        self.body = b""
        self._server = server
        self._number = number

    def head(self, *headers: tuple[str, str], end: bool = False) -> None:
        self._server.h2.send_headers(self._number, list(headers), end_stream=end)
        self._server.flush()

    def data(self, data: bytes, *, end: bool = False) -> None:
        self._server.h2.send_data(self._number, data, end_stream=end)
        self._server.flush()

    def reset(self) -> None:
        self._server.h2.reset_stream(self._number)
        self._server.flush()

    def go_away(self, error: int = 0) -> None:
        """Say that no more streams are taken; those that are go on."""
        frame = GoAwayFrame(0, last_stream_id=self._number, error_code=error)
        self._server.write(frame.serialize())


class Served:
    """One connection."""

    def __init__(self, connection: ssl.SSLSocket, script: Callable[[Stream], object], resets: list[int]) -> None:
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding=None))
        self._connection = connection
        self._script = script
        self._resets = resets

    def flush(self) -> None:
        self.write(self.h2.data_to_send())

    def write(self, data: bytes) -> None:
        self._connection.sendall(data)

    def run(self) -> None:
        self.h2.initiate_connection()
        self.flush()
        streams: dict[int, Stream] = {}
        while data := self._connection.recv(1 << 16):
            for event in self.h2.receive_data(data):
                if isinstance(event, h2.events.RequestReceived):
                    streams[event.stream_id] = Stream(self, event.stream_id, list(event.headers))
                elif isinstance(event, h2.events.DataReceived):
                    streams[event.stream_id].body += event.data
                    self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                elif isinstance(event, h2.events.StreamEnded):
                    self._script(streams[event.stream_id])
                elif isinstance(event, h2.events.StreamReset):
                    self._resets.append(event.stream_id)
            self.flush()


class Http2Server(Listening):
    """Listens on a port of its own, and plays ``script`` for each request."""

    def __init__(self, pem: str, script: Callable[[Stream], object]) -> None:
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(pem)
        self._context.set_alpn_protocols(["h2"])
        self._script = script
        self.resets: list[int] = []
        """The streams that the client gave up."""
        self.connections = 0
        super().__init__()
        self.url = f"https://localhost:{self.port}"

    def serve(self, connection: socket.socket) -> None:
        self.connections += 1
        with suppress(OSError):
            secure = self._context.wrap_socket(connection, server_side=True)
            with suppress(OSError):
                Served(secure, self._script, self.resets).run()
            secure.close()
