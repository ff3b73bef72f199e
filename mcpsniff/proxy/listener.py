"""One upstream and the port at which clients reach it through us."""

import errno
import os
import socket
from _thread import start_new_thread
from itertools import count

from mcpsniff.capture.labels import shown
from mcpsniff.proxy.address import authority, is_loopback_address
from mcpsniff.proxy.connection import Connection
from mcpsniff.proxy.dial import Dialler
from mcpsniff.proxy.endpoint import Origins
from mcpsniff.proxy.ends import spelled
from mcpsniff.proxy.say import say
from mcpsniff.wire.tls import expects_tls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Final, Protocol

    from mcpsniff.proxy.address import Upstream
    from mcpsniff.proxy.gate import Door, Gate
    from mcpsniff.proxy.recorder import Recorder
    from mcpsniff.proxy.relay.web.hub import Hub

    class Dials(Protocol):
        """Connects to the server, however that is reached: see `Dialler`."""

        is_loopback: bool

        def dial(self) -> tuple[socket.socket, tuple[str, int]]:
            """Return a new connection, blocking and without Nagle's delay, and its address. Raises UnreachableError."""


BACKLOG: "Final" = 512
"""Connections that may wait to be accepted."""
AT_ONCE: "Final" = 64
"""Connections accepted before somebody else gets a turn."""
UNSPECIFIED: "Final" = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - not listened at, recognised
"""Addresses that mean all interfaces, and one at which a client on this machine reaches them."""


class Listener:
    """Listens at ``host`` and ``port`` (0: a free one) for clients of ``upstream``. Raises OSError.

    ``keep_host``: whether `Host` passes as the client sent it; None: if the upstream is on this machine. ``allowed``
    are the names of `mcpsniff.proxy.gate.Door`. ``dialler``: what connects to the upstream, if not this module's own.
    """

    def __init__(
        self,
        upstream: "Upstream",
        host: str,
        port: int,
        *,
        keep_host: bool | None,
        allowed: "Sequence[str]",
        dialler: "Dials | None" = None,
    ) -> None:
        self.upstream = upstream
        self.dialler: Dials = Dialler(upstream) if dialler is None else dialler
        self.origins = Origins(upstream, is_local=self.dialler.is_loopback)
        self.recorder: Recorder
        """Where connections are noted; to be set before `accept`."""
        self.hub: Hub | None = None
        """What edits messages here; None: all passes as it is. To be set before `accept`."""
        self.numbers: Iterator[int] = count()
        """Numbers of connections; listeners with one recorder have to share them."""
        self.null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        self.live: set[Connection] = set()
        """The connections that are open."""
        keeps = self.dialler.is_loopback if keep_host is None else keep_host
        self._host = None if keeps else upstream.authority
        self._screens = not (self.dialler.is_loopback and keeps)
        self._allowed = allowed
        self._expects_tls = False
        self.socket = _listening(host, port)

    @property
    def address(self) -> str:
        """What the client is to use in the place of the upstream's URL."""
        host, port = self.socket.getsockname()[:2]
        return f"http://{authority(UNSPECIFIED.get(host, host), port)}{self.upstream.target}"

    @property
    def listens_to_others(self) -> bool:
        """True if other machines can connect."""
        return not is_loopback_address(self.socket.getsockname()[0])

    @property
    def is_its_own_upstream(self) -> bool:
        """True if whoever connects would be connected to us again, and so on."""
        return self.dialler.is_loopback and self.upstream.port == self.socket.getsockname()[1]

    def occupies(self, host: str, port: int) -> bool:
        """Return True if nobody else can listen at ``port`` of the address ``host`` because of us."""
        mine, taken = self.socket.getsockname()[:2]
        return bool(port == taken and (host == mine or {host, mine} & UNSPECIFIED.keys()))

    def accept(self) -> bool:
        """Begin with the clients that wait; return False if the system has no room for them at the moment."""
        for _ in range(AT_ONCE):
            try:
                client, address = self.socket.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return True
            except OSError as error:
                if error.errno not in {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}:
                    continue
                return False
            self._begin(client, address)
        return True

    @property
    def host(self) -> str | None:
        """What `Host` is to say; None: what the client sent."""
        return self._host

    def gate(self, client: socket.socket, channel: int) -> "Gate | None":
        """Return what screens the requests of a connection, or None if they need not be screened."""
        door = self.door(client)
        if door is None:
            return None
        from mcpsniff.proxy.gate import Gate

        return Gate(channel, door, self._host if self.hub is None else None)

    def door(self, client: socket.socket) -> "Door | None":
        """Return who is let in where ``client`` came in, or None if everybody is."""
        if not self._screens:
            return None
        from mcpsniff.proxy.gate import Door

        host, port = self.local_address(client)
        return Door(host, port, self._allowed)

    def guard(self, client: socket.socket) -> "Door | None":
        """Return who is let in to what we edit, or say ourselves, where all are let in to the server; see `door`."""
        if self._screens:
            return None
        from mcpsniff.proxy.gate import Door

        host, port = self.local_address(client)
        return Door(host, port, self._allowed)

    def local_address(self, client: socket.socket) -> tuple[str, int]:
        """Return where ``client`` came in."""
        try:
            host, port = client.getsockname()[:2]
        except OSError:  # reset, where the system then forgets
            host, port = self.socket.getsockname()[:2]
        return host, port

    def greeted(self, data: bytes) -> None:
        """Say once if ``data``, the first bytes of the server on a connection, tell that it expects TLS."""
        if not self._expects_tls and expects_tls(data):
            self._expects_tls = True
            place = authority(self.upstream.host, self.upstream.port, 443)
            say(f"the upstream {self.upstream.origin} expects TLS: give https://{place}{shown(self.upstream.target)}")

    def close(self) -> None:
        """Listen no more."""
        self.socket.close()

    def _begin(self, client: socket.socket, address: "tuple[object, ...]") -> None:
        number = next(self.numbers)
        try:
            client.setblocking(True)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = Connection(self, client, address, number)
            self.live.add(connection)
            start_new_thread(connection.run, ())
        except OSError:  # gone already
            client.close()
        except RuntimeError as error:
            self.live.discard(connection)
            say(f"a connection from {spelled(address)} is refused: {error}")
            client.close()


def _listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens there. Raises OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, protocol, _, address = found[0]
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(BACKLOG)
        listening.setblocking(False)
    except BaseException:
        listening.close()
        raise
    return listening
