"""Connections to the upstream: all addresses of its name are tried, and what each of them said is kept."""

import errno
import os
import socket

from mcpsniff.proxy.address import LOOPBACK, authority, is_loopback_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from mcpsniff.proxy.address import Upstream

PATIENCE: "Final" = 10.0
"""Seconds that one address may take to accept a connection."""


class UnreachableError(Exception):
    """No address of the upstream accepts a connection; ``tried`` says of each, in words, why not."""

    def __init__(self, tried: "list[str]") -> None:
        super().__init__("; ".join(tried))
        self.tried = tried


class Dialler:
    """Connects to ``upstream``. Its methods may be called from any thread.

    `is_loopback` is decided once: a name that leads to loopback addresses only keeps them, whatever the name service
    says later, because whether requests are screened depends on it.
    """

    def __init__(self, upstream: "Upstream") -> None:
        self._upstream = upstream
        self._pinned: list[str] = []
        if upstream.names_loopback:
            self._pinned = list(LOOPBACK) if not is_loopback_address(upstream.host) else [upstream.host]
        else:
            found = self._look_up(quiet=True)
            if found and all(is_loopback_address(address) for address in found):
                self._pinned = found
        self.is_loopback = bool(self._pinned)
        """True if the upstream is on this machine, and reached over its loopback interface."""
        self._latest = ""

    def dial(self) -> tuple[socket.socket, tuple[str, int]]:
        """Return a new connection, blocking and without Nagle's delay, and its address.

        Raises UnreachableError, and ConnectionResetError if the server accepted and reset it in the same moment.
        """
        try:
            addresses = self._pinned or self._look_up()
        except OSError as error:
            raise UnreachableError([f"{self._upstream.host}: {_why(error)}"]) from None
        latest = self._latest
        if latest in addresses:
            addresses = [latest, *(address for address in addresses if address != latest)]
        tried = []
        for address in addresses:
            try:
                connection = self._connect(address)
            except ConnectionResetError:
                raise
            except OSError as error:
                tried.append(f"{authority(address, self._upstream.port)}: {_why(error)}")
            else:
                self._latest = address
                return connection, (address, self._upstream.port)
        raise UnreachableError(tried)

    def _connect(self, address: str) -> socket.socket:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        connection = socket.socket(family, socket.SOCK_STREAM)
        try:
            connection.settimeout(PATIENCE)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.connect((address, self._upstream.port))
            if connection.getsockname() == connection.getpeername():
                # A free port of this machine, dialled from itself: TCP's simultaneous open, and nobody listens.
                raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
            connection.settimeout(None)
        except BaseException:
            connection.close()
            raise
        return connection

    def _look_up(self, *, quiet: bool = False) -> list[str]:
        """Return the addresses of the upstream's name, each once. Raises OSError, unless ``quiet``."""
        try:
            # As bytes: Python would load its IDNA tables for a text.
            found = socket.getaddrinfo(self._upstream.host.encode(), self._upstream.port, type=socket.SOCK_STREAM)
        except OSError:
            if quiet:
                return []
            raise
        return list(dict.fromkeys(str(where[0]) for _, _, _, _, where in found))


def _why(error: OSError) -> str:
    """Return what the system said, in its words."""
    if isinstance(error, TimeoutError):
        return f"no answer in {PATIENCE:.0f} s"
    return error.strerror or str(error)
