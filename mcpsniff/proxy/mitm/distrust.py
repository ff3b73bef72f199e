"""Clients that do not trust our authority: an addon of mitmproxy that tells them by what TLS says, or by silence.

OpenSSL, Go, Java and most others send an alert while the handshake goes on. Python's asyncio (httpx, the Python SDK)
loses that alert and hangs up. Node (the TypeScript SDK) hangs up, too: within the handshake, or after it, since it
looks at the certificate then. A hang-up leaves a doubt, which whoever speaks to the same server later takes away.
"""

import re
from collections.abc import Callable
from typing import Final

from mitmproxy.connection import Client
from mitmproxy.http import HTTPFlow
from mitmproxy.tcp import TCPFlow
from mitmproxy.tls import TlsData

from mcpsniff.capture.labels import shown
from mcpsniff.proxy.address import authority
from mcpsniff.proxy.mitm.select import NAMED

_ALERT: Final = re.compile(r"\balert ([a-z][a-z ]*[a-z])")
_REASON: Final = re.compile(r"'([^']+)'\)\]\)")
_VERSION: Final = "Client and mitmproxy cannot agree on a TLS version"
_DISCONNECTED: Final = "The client disconnected during the handshake"
"""How mitmproxy puts it."""
TRUST: Final = frozenset(
    {
        "access denied",
        "bad certificate",  # Go, Firefox, and Python where the name is another
        "certificate expired",
        "certificate revoked",
        "certificate unknown",  # Java, Chrome, .NET
        "unknown ca",  # OpenSSL (Python, curl, Ruby, PHP), rustls, Firefox
        "unsupported certificate",
    }
)
"""Alerts by which clients say that they do not trust a certificate (RFC 8446 section 6.2), and who sends them."""
SILENT: Final = "hung up without a word after the TLS handshake"
HUNG_UP: Final = "hung up during the TLS handshake"
_EARLY: Final = ("connection closed early", "Cannot parse ClientHello")
"""What is no refusal: the client was gone, or spoke something else."""


class Distrust:
    """Notices refusals, and gives ``refused`` the server, as host and port, and the client's words, each pair once.

    What a client did that is likely to be one, or ended the handshake otherwise, goes to ``left`` with the server, once
    for each.
    """

    def __init__(self, refused: Callable[[str, str], object], left: Callable[[str, str, bool], object]) -> None:
        self.refusals: list[tuple[str, str]] = []
        """Servers, and the alerts that leave no doubt."""
        self.disagreed: dict[str, str] = {}
        """Servers with which there was no TLS for another reason, and what the client did."""
        self._refused = refused
        self._left = left
        self._suspects: dict[str, str] = {}
        self._shown: set[str] = set()
        """Clients that were shown a certificate and have not answered, by their ids."""
        self._silent: dict[str, str] = {}
        """Servers to which clients have TLS but have not said anything yet, by the ids of the clients."""
        self._trusted: set[str] = set()
        """Servers to which a client has said something."""

    @property
    def suspects(self) -> list[tuple[str, str]]:
        """Servers whose certificate a client is likely to have refused, and what it did; from mitmproxy's thread."""
        certain = {place for place, _ in self.refusals}
        return [each for each in self._suspects.items() if each[0] not in certain]

    # -- hooks of mitmproxy ------------------------------------------------------------------------------------------

    def tls_start_client(self, data: TlsData) -> None:
        """A client is about to be shown a certificate."""
        self._shown.add(data.conn.id)

    def tls_failed_client(self, data: TlsData) -> None:
        """The handshake with a client has failed."""
        error, place = data.conn.error or "", _place(data)
        if error.startswith(_EARLY) or data.conn.id not in self._shown:
            return
        alert, reason = _ALERT.search(error), _REASON.search(error)
        if alert and alert[1] in TRUST:
            self._refuse(place, alert[1])
        elif error.startswith(_DISCONNECTED):
            self._suspect(place, HUNG_UP)
        elif place not in self._trusted and place not in self.disagreed and len(self.disagreed) < NAMED:
            version = "no version in common" if error.startswith(_VERSION) else error
            why = alert[1] if alert else reason[1] if reason else version
            self.disagreed[place] = f"did not agree on TLS ({shown(why)})"
            self._left(place, self.disagreed[place], False)

    def tls_established_client(self, data: TlsData) -> None:
        """The handshake with a client is over: whether it likes what it saw is not known yet."""
        self._silent[data.conn.id] = _place(data)

    def requestheaders(self, flow: HTTPFlow) -> None:
        """A client says something."""
        self._spoke(flow.client_conn)

    def tcp_start(self, flow: TCPFlow) -> None:
        """A client says something that is no HTTP."""
        self._spoke(flow.client_conn)

    def client_disconnected(self, client: Client) -> None:
        """A client is gone."""
        self._shown.discard(client.id)
        place = self._silent.pop(client.id, None)
        if place is not None:
            self._suspect(place, SILENT)

    # -- inside ------------------------------------------------------------------------------------------------------

    def _spoke(self, client: Client) -> None:
        place = self._silent.pop(client.id, None)
        if place is not None and len(self._trusted) < NAMED:
            self._trusted.add(place)
            self._suspects.pop(place, None)
            self.disagreed.pop(place, None)

    def _suspect(self, place: str, words: str) -> None:
        if place not in self._trusted and place not in self._suspects and len(self._suspects) < NAMED:
            self._suspects[place] = words
            self._left(place, words, True)

    def _refuse(self, place: str, words: str) -> None:
        if (place, words) not in self.refusals and len(self.refusals) < NAMED:
            self.refusals.append((place, words))
            self._refused(place, words)


def _place(data: TlsData) -> str:
    """Return the server that the client wanted, by the name it asked TLS for, if any."""
    address = data.context.server.address
    host = data.conn.sni or (address[0] if address else "") or "an unnamed host"
    return authority(host, address[1], 0) if address else host
