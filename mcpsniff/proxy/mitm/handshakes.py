"""TLS with servers, as it goes on: what came of it, and which servers let one wait. An addon of mitmproxy."""

import asyncio
from collections.abc import Callable
from typing import Final, NamedTuple

from mitmproxy.connection import Client, ConnectionState, Server
from mitmproxy.http import HTTPFlow
from mitmproxy.proxy.server_hooks import ServerConnectionHookData
from mitmproxy.tls import TlsData

from mcpsniff.proxy.address import Upstream, authority
from mcpsniff.proxy.answers import Answer
from mcpsniff.proxy.mitm.upstream import Refusal, UpstreamTls
from mcpsniff.proxy.mitm.words import CLOSED, no_tls, not_trusted, wants_certificate

PATIENCE: Final = 10.0
"""Seconds after which it is told that a server does not answer."""
TOLD: Final = 256
"""Servers of which that is remembered."""

type Address = tuple[str, int]


class Failure(NamedTuple):
    """Why there is no TLS with a server."""

    told: str
    """What mitmproxy says."""
    refusal: Refusal | None = None
    """The certificate that was refused, if that is why."""
    wants_certificate: bool = False
    """True if the server wants to see a certificate."""

    def answer(self, upstream: Upstream, path: str) -> Answer:
        """Return the answer to a client that asked for ``path`` of ``upstream``."""
        if self.refusal is not None:
            return not_trusted(upstream, self.refusal)
        return wants_certificate(upstream) if self.wants_certificate else no_tls(upstream, self.told, path)


class Handshakes:
    """Watches connections to servers.

    ``stalled`` is given a client, the server and a sentence, once for each server that lets clients wait, ``failed``
    those of each failure, and why.
    """

    def __init__(
        self, stalled: Callable[[Client, Address, str], object], failed: Callable[[Client, Address, Failure], object]
    ) -> None:
        self.tls: UpstreamTls
        """To be set before a client is let in."""
        self._stalled = stalled
        self._failed = failed
        self._failures: dict[tuple[str, Address], Failure] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._told: set[tuple[Address, str]] = set()
        self._picky: set[Address] = set()
        """Servers that have ended a connection for want of a certificate; the word may get lost with the next one."""

    def failure(self, flow: HTTPFlow) -> Failure | None:
        """Return why there is no TLS with the server of a request that has failed, if that is why."""
        address = flow.request.host, flow.request.port
        if address in self._picky or self.tls.wants_certificate(flow.server_conn.id):  # told late, in TLS 1.3
            failure = Failure("", wants_certificate=True)
            self._failed(flow.client_conn, address, failure)
            return failure
        return self._failures.get((flow.client_conn.id, address))

    # -- hooks of mitmproxy ------------------------------------------------------------------------------------------

    def server_connect(self, data: ServerConnectionHookData) -> None:
        """A connection is about to be made."""
        address = _address(data.server)
        self._failures.pop((data.client.id, address), None)
        self._wait(data.client, data.server, f"no connection to {authority(*address, 0)} yet")

    def server_connected(self, data: ServerConnectionHookData) -> None:
        """A connection is made."""
        self._rest(data.server)

    def server_connect_error(self, data: ServerConnectionHookData) -> None:
        """No connection can be made."""
        self._rest(data.server)

    def server_disconnected(self, data: ServerConnectionHookData) -> None:
        """A connection is over."""
        self._rest(data.server)
        if self.tls.wants_certificate(data.server.id) and len(self._picky) < TOLD:
            self._picky.add(_address(data.server))

    def tls_start_server(self, data: TlsData) -> None:
        """A handshake begins."""
        if isinstance(data.conn, Server):
            place = authority(*_address(data.conn), 443)
            plain = f"http://{authority(*_address(data.conn))}"
            text = f"the upstream https://{place} does not answer the TLS handshake"
            self._wait(data.context.client, data.conn, text, f"; is it plain {plain}?")

    def tls_established_server(self, data: TlsData) -> None:
        """A handshake is over."""
        if isinstance(data.conn, Server):
            self._rest(data.conn)

    def tls_failed_server(self, data: TlsData) -> None:
        """A handshake has failed: remember why, for the answer."""
        server = data.conn
        if isinstance(server, Server):
            self._rest(server)
            wants = self.tls.wants_certificate(server.id)
            failure = Failure(server.error or "", self.tls.refusals.pop(server.id, None), wants)
            self._failures[data.context.client.id, _address(server)] = failure
            if failure.told != CLOSED or server.state & ConnectionState.CAN_WRITE:  # else it is we who closed it
                self._failed(data.context.client, _address(server), failure)

    def client_disconnected(self, client: Client) -> None:
        """A client's connection is over."""
        for key in [key for key in self._failures if key[0] == client.id]:
            del self._failures[key]

    # -- inside ------------------------------------------------------------------------------------------------------

    def _wait(self, client: Client, server: Server, what: str, guess: str = "") -> None:
        self._rest(server)
        loop = asyncio.get_running_loop()
        self._timers[server.id] = loop.call_later(PATIENCE, self._tell, client, server, what, guess)

    def _rest(self, server: Server) -> None:
        timer = self._timers.pop(server.id, None)
        if timer is not None:
            timer.cancel()

    def _tell(self, client: Client, server: Server, what: str, guess: str) -> None:
        self._timers.pop(server.id, None)
        key = _address(server), what
        if key not in self._told and len(self._told) < TOLD:
            self._told.add(key)
            self._stalled(client, key[0], f"{what} ({PATIENCE:.0f} s so far){guess}")


def _address(server: Server) -> Address:
    return ("", 0) if server.address is None else (server.address[0], server.address[1])
