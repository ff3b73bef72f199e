"""TLS towards servers: whose certificates are trusted, and what is said of those that are not."""

import re
import ssl
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from weakref import WeakSet, WeakValueDictionary

from mitmproxy import ctx
from mitmproxy.addons.tlsconfig import TlsConfig
from mitmproxy.connection import Client, Server
from mitmproxy.http import HTTPFlow
from mitmproxy.net import tls as net_tls
from mitmproxy.proxy.context import Context
from mitmproxy.tls import TlsData
from OpenSSL import SSL, crypto

from mcpsniff.capture.labels import shown
from mcpsniff.errors import UsageError

REMEMBERED: Final = 256
"""Connections of which it is known why their certificates were refused."""
_REQUIRED: Final = 116
"""The alert certificate_required (RFC 8446 section 6.2)."""
_PERHAPS: Final = (40, 42)
"""handshake_failure and bad_certificate, which is what TLS 1.2 has for it."""
_ASKS: Final = b"read server certificate request"
"""OpenSSL's name for that step."""
_create: Final = net_tls._create_ssl_context
_CERTIFICATE: Final = re.compile(b"-----BEGIN (TRUSTED |X509 )?CERTIFICATE-----")


class Refusal:
    """A certificate that was refused: ``why`` in OpenSSL's words, the names in it, and at which depth of the chain."""

    __slots__ = ("depth", "issuer", "names", "subject", "why")

    def __init__(self, why: str, depth: int, subject: str, issuer: str, names: str) -> None:
        self.why = why
        self.depth = depth
        self.subject = subject
        self.issuer = issuer
        self.names = names

    @property
    def which(self) -> str:
        """Which certificate it is, with its names."""
        place = "its certificate" if self.depth == 0 else f"certificate {self.depth} of its chain"
        names = f", for {self.names}" if self.depth == 0 and self.names else ""
        return f"{place} ({self.subject}, issued by {self.issuer}{names})"


class _Heard:
    """What a server has said about a connection."""

    alert: int | None = None
    """The last alert (RFC 8446 section 6)."""
    is_asked = False
    """True if it asked for a certificate; many do, and let those in that have none."""


class UpstreamTls(TlsConfig):
    """mitmproxy's TLS, with the system's certificates beside those of certifi, and those of a file of the user's.

    ``has_clients``: whether TLS is spoken with clients, too, for which mitmproxy's CA is read, or made.
    """

    name = "tlsconfig"

    def __init__(self, *, authorities: str | None = None, has_clients: bool) -> None:
        self.refusals: OrderedDict[str, Refusal] = OrderedDict()
        """Why the certificate was refused, by the id of the connection to the server."""
        self._heard: WeakValueDictionary[str, _Heard] = WeakValueDictionary()
        """What servers have said, by the id of the connection, as long as that lasts."""
        self._authorities = authorities
        self.has_clients = has_clients
        vars(net_tls)["_create_ssl_context"] = _create_context
        self._prepared: WeakSet[SSL.Context] = WeakSet()

    def configure(self, updated: set[str]) -> None:
        """Read the options; mitmproxy's CA is left alone if no client needs it."""
        if self.has_clients:
            super().configure(updated)  # type: ignore[no-untyped-call]

    def request(self, flow: HTTPFlow) -> None:
        """Answer who looks for the revocations of mitmproxy's CA; no client needs them if none is shown it."""
        if self.has_clients:
            super().request(flow)

    def tls_start_server(self, tls_start: TlsData) -> None:
        """Begin TLS with a server."""
        if tls_start.ssl_conn is not None:
            return
        super().tls_start_server(tls_start)
        connection, server = tls_start.ssl_conn, tls_start.conn
        if connection is None or not isinstance(server, Server):
            return
        heard = self._heard[server.id] = _Heard()
        connection.set_app_data(heard)
        context = connection.get_context()
        if context not in self._prepared:
            self._prepared.add(context)
            self._extend(context)
        if ctx.options.ssl_insecure:
            return

        def judged(_connection: SSL.Connection, certificate: crypto.X509, error: int, depth: int, ok: int) -> bool:
            if not ok:
                self._refuse(server.id, certificate, error, depth)
            return bool(ok)

        connection.set_verify(net_tls.Verify.VERIFY_PEER.value, judged)

    def wants_certificate(self, server: str) -> bool:
        """True if a server has ended a connection, by its id, because we have no certificate to show."""
        heard = self._heard.get(server)
        return heard is not None and (heard.alert == _REQUIRED or (heard.is_asked and heard.alert in _PERHAPS))

    def prepare(self) -> None:
        """Read the authorities now: that takes a moment, for which the first request would wait."""
        context = Context(Client(peername=("", 0), sockname=("", 0)), ctx.options)
        self.tls_start_server(TlsData(Server(address=("localhost", 443)), context))

    def _extend(self, context: SSL.Context) -> None:
        """Let more than certifi's authorities be trusted; the context may be in use, its store may be extended."""
        store = context.get_cert_store()
        if store is None:
            return
        if self._authorities is not None:  # which may be the server's own certificate, that an unknown CA has issued
            store.set_flags(crypto.X509StoreFlags.PARTIAL_CHAIN)
        known = ssl.get_default_verify_paths()
        for file, folder in ((known.cafile, known.capath), (self._authorities, None)):
            if file or folder:
                with suppress(crypto.Error):  # the system's are none of our business; the user's were looked at before
                    store.load_locations(file, folder)

    def _refuse(self, server: str, certificate: crypto.X509, error: int, depth: int) -> None:
        self.refusals[server] = Refusal(_words(error), depth, *_names(certificate))
        while len(self.refusals) > REMEMBERED:
            self.refusals.popitem(last=False)


def _create_context(**settings: Any) -> SSL.Context:
    """Make a context as mitmproxy does, that hears alerts; mitmproxy misses those that follow the handshake."""
    context: SSL.Context = _create(**settings)
    if settings["method"] is net_tls.Method.TLS_CLIENT_METHOD:
        context.set_info_callback(_hear)
    return context


def _hear(connection: SSL.Connection, where: int, what: int) -> None:
    """OpenSSL tells of a step of a handshake, or of an alert."""
    heard = connection.get_app_data()
    if not isinstance(heard, _Heard):
        return
    if where & SSL.SSL_CB_READ_ALERT == SSL.SSL_CB_READ_ALERT:
        heard.alert = what & 0xFF
    elif where & SSL.SSL_CB_LOOP and _ASKS in connection.get_state_string():
        heard.is_asked = True


def check_authorities(path: str) -> str:
    """Return ``path`` made absolute if it is a PEM file of certificates. Raises UsageError."""
    try:
        content = Path(path).expanduser().read_bytes()
    except OSError as error:
        raise UsageError(f"--upstream-ca {shown(path)}: {error.strerror or error}") from None
    whole = str(Path(path).expanduser().absolute())
    try:
        if not _CERTIFICATE.search(content):
            raise SSL.Error
        SSL.Context(SSL.TLS_CLIENT_METHOD).load_verify_locations(whole)
    except SSL.Error:
        raise UsageError(f"--upstream-ca {shown(path)} holds no certificate in PEM form") from None
    return whole


def _words(error: int) -> str:
    """Return OpenSSL's words for a failed verification."""
    text: bytes = SSL._ffi.string(SSL._lib.X509_verify_cert_error_string(error))  # type: ignore[attr-defined]
    return text.decode("ascii", "replace")


def _names(certificate: crypto.X509) -> tuple[str, str, str]:
    """Return subject, issuer and the alternative names of a certificate, as text that may go to a terminal."""
    from cryptography.x509 import DNSName, IPAddress, SubjectAlternativeName

    subject = issuer = "?"
    names: list[str] = []
    try:
        read = certificate.to_cryptography()
        subject, issuer = _name(read.subject), _name(read.issuer)
        found = read.extensions.get_extension_for_class(SubjectAlternativeName).value
        names = [*found.get_values_for_type(DNSName), *map(str, found.get_values_for_type(IPAddress))]
    except Exception:  # noqa: BLE001, S110 - there are none, or they cannot be read
        pass
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return subject, issuer, shown(", ".join(names[:4]) + more)


def _name(name: Any) -> str:
    """Return a distinguished name (of `cryptography`) as people know it."""
    parts = {each.rfc4514_attribute_name: str(each.value) for each in name}
    return shown(
        parts.get("CN") or parts.get("O") or ", ".join(f"{key}={value}" for key, value in parts.items()) or "?"
    )
