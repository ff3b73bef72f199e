"""Clients that do not trust our authority: an addon of mitmproxy that tells them by what TLS says, or by silence.

OpenSSL, Go, Java and most others send an alert while the handshake goes on. Node finishes the handshake and looks at
the certificate then, so what is seen of it is a connection that ends without a word.
"""

import re
from collections.abc import Callable
from typing import Final

from mitmproxy.connection import Client
from mitmproxy.http import HTTPFlow
from mitmproxy.tcp import TCPFlow
from mitmproxy.tls import TlsData

from mcpsniff.capture.labels import shown
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
SILENT: Final = "hung up after the handshake, without a word"
HUNG_UP: Final = "hung up during the TLS handshake"
_EARLY: Final = ("connection closed early", "Cannot parse ClientHello")
"""What is no refusal: the client was gone, or spoke something else."""


class Distrust:
    """Notices refusals and gives ``tell`` the host, the client's words, and whether they leave no doubt.

    A handshake that ends for another reason is no refusal: ``left`` is given the host and what the client did.
    """

    def __init__(self, tell: Callable[[str, str, bool], object], left: Callable[[str, str], object]) -> None:
        self.refusals: list[tuple[str, str]] = []
        """Host and words, each pair once."""
        self.hung_up: dict[str, None] = {}
        """Hosts that clients went away from before TLS was there."""
        self._tell = tell
        self._left = left
        self._silent: dict[str, str] = {}
        """Hosts to which clients have TLS but have not said anything yet, by the ids of the clients."""
        self._trusted: set[str] = set()
        """Hosts to which a client has said something."""

    def tls_failed_client(self, data: TlsData) -> None:
        """The handshake with a client has failed."""
        error = data.conn.error or ""
        if error.startswith(_EARLY):
            return
        alert, reason = _ALERT.search(error), _REASON.search(error)
        if alert and alert[1] in TRUST:
            self._refused(_host(data), alert[1], is_certain=True)
        elif error.startswith(_DISCONNECTED):
            self._gone(_host(data), HUNG_UP)
        else:
            version = "no version in common" if error.startswith(_VERSION) else error
            why = alert[1] if alert else reason[1] if reason else version
            self._gone(_host(data), f"did not agree on TLS ({shown(why)})")

    def tls_established_client(self, data: TlsData) -> None:
        """The handshake with a client is over: whether it likes what it saw is not known yet."""
        self._silent[data.conn.id] = _host(data)

    def requestheaders(self, flow: HTTPFlow) -> None:
        """A client says something."""
        self._spoke(flow.client_conn)

    def tcp_start(self, flow: TCPFlow) -> None:
        """A client says something that is no HTTP."""
        self._spoke(flow.client_conn)

    def client_disconnected(self, client: Client) -> None:
        """A client is gone."""
        host = self._silent.pop(client.id, None)
        if host is not None and host not in self._trusted:
            self._refused(host, SILENT, is_certain=False)

    def _gone(self, host: str, words: str) -> None:
        if host not in self._trusted and host not in self.hung_up and len(self.hung_up) < NAMED:
            self.hung_up[host] = None
            self._left(host, words)

    def _spoke(self, client: Client) -> None:
        host = self._silent.pop(client.id, None)
        if host is not None and len(self._trusted) < NAMED:
            self._trusted.add(host)

    def _refused(self, host: str, words: str, *, is_certain: bool) -> None:
        words = shown(words)
        if (host, words) not in self.refusals and len(self.refusals) < NAMED:
            self.refusals.append((host, words))
            self._tell(host, words, is_certain)


def _host(data: TlsData) -> str:
    """Return the host that the client wanted."""
    address = data.context.server.address
    return data.conn.sni or (address[0] if address else "") or "an unnamed host"
