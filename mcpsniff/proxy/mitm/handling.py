"""The tasks of mitmproxy that serve connections, where they lose something: an end, or what came in before it.

An answer that a server gives before it has read the request (401, 413) is often followed by a reset. What is received
by then counts, though sending fails (RFC 9112 section 9.6 tells clients to read on).
"""

import asyncio
import os
import time
from contextlib import suppress
from typing import Any, Final

from mitmproxy.connection import Connection, ConnectionState, Server
from mitmproxy.proxy import mode_servers
from mitmproxy.proxy.commands import OpenConnection
from mitmproxy.proxy.events import OpenConnectionCompleted
from mitmproxy.proxy.server import ConnectionIO

_PIECE: Final = 1 << 16


class PatientLock(asyncio.Lock):
    """A lock that a task waits for even if it is cancelled meanwhile; then it is right after that.

    mitmproxy's tasks close what they serve when they are cancelled, unless they are waiting for this lock just then.
    """

    async def acquire(self) -> Any:
        """See `asyncio.Lock`."""
        task = asyncio.current_task()
        late: asyncio.CancelledError | None = None
        while True:
            try:
                await super().acquire()
            except asyncio.CancelledError as cancelled:
                late = cancelled
                if task is not None:
                    task.uncancel()
            else:
                break
        if late is not None and task is not None:
            task.cancel(*late.args)
        return True


class LastingReader(asyncio.StreamReader):
    """Gives all that has come in before its connection broke, and an end only then."""

    _is_over = False

    def feed_eof(self) -> None:
        """See `asyncio.StreamReader`."""
        self._is_over = True
        super().feed_eof()

    def set_exception(self, exc: BaseException) -> None:  # noqa: ARG002 - see `asyncio.StreamReader`
        """The connection broke, maybe while something was sent; its socket is still open, and may hold what came in."""
        transport = getattr(self, "_transport", None)
        sock = None if transport is None else transport.get_extra_info("socket")
        if self._is_over:
            return
        if sock is not None:
            with suppress(OSError):  # nothing more is there, or has ever been
                while data := os.read(sock.fileno(), _PIECE):
                    self.feed_data(data)
        self.feed_eof()


class Handler(mode_servers.ProxyConnectionHandler):
    """Serves one client, and the servers it talks to."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)  # type: ignore[no-untyped-call]
        self._server_event_lock = PatientLock()

    async def open_connection(self, command: OpenConnection) -> None:
        """Connect to a server, or to what its address says: one that can `connect` is none of the network."""
        connect = getattr(command.connection.address, "connect", None)
        if connect is None:
            await super().open_connection(command)
            return
        connection = command.connection
        connection.timestamp_start = connection.timestamp_tcp_setup = time.time()
        try:
            reader, writer = await connect()
        except OSError as error:
            connection.error = str(error)
            await self.server_event(OpenConnectionCompleted(command, connection.error))
            return
        connection.state = ConnectionState.OPEN
        connection.peername = connection.sockname = writer.get_extra_info("peername")
        self.transports[connection] = ConnectionIO(asyncio.current_task(), reader, writer)
        await self.server_event(OpenConnectionCompleted(command, None))
        await self.handle_connection(connection)
        connection.timestamp_end = time.time()

    async def handle_connection(self, connection: Connection) -> None:
        """Serve a connection until it is over. It is closed then, whatever has happened."""
        io = self.transports[connection]
        if isinstance(connection, Server) and type(io.reader) is asyncio.StreamReader:
            io.reader.__class__ = LastingReader
        try:
            await super().handle_connection(connection)
        finally:
            if self.transports.pop(connection, None) is not None and io.writer is not None:
                io.writer.close()

    async def drain_writers(self) -> None:
        """Wait until what was sent has left. A connection where that fails is over once all is read that came in."""
        async with self._drain_lock:
            for transport in list(self.transports.values()):
                if transport.writer is None:
                    continue
                try:
                    await transport.writer.drain()
                except OSError as error:
                    reader = transport.reader
                    has_rest = isinstance(reader, LastingReader) and not reader.at_eof()
                    if transport.handler is not None and not has_rest:
                        transport.handler.cancel(f"Error sending data: {error}")


def install() -> None:
    """Let mitmproxy serve with this, in the whole process."""
    vars(mode_servers)["ProxyConnectionHandler"] = Handler
