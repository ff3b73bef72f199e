"""Why a server at a URL cannot be reached, or does not let us in, in words that show no secret."""

import os
import ssl
from typing import Final
from urllib.parse import urljoin, urlsplit

import aiohttp

from mcpsniff.proxy.mask_argv import mask_argv

_NO_TLS: Final = frozenset(
    ["WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG", "UNKNOWN_PROTOCOL"]
)
"""OpenSSL's reasons where the other side does not speak TLS."""
_ALERT: Final = ("\x15\x03", "\\x15\\x03")
"""How an alert of TLS begins (RFC 8446, 5.1), as it is and as aiohttp quotes it."""


def named(url: str) -> str:
    """A URL as it may be shown: without passwords and keys."""
    return mask_argv([url])[0]


def reason(error: Exception, url: str) -> str:
    """Why nobody was reached at ``url``."""
    if isinstance(error, aiohttp.InvalidURL):
        return "that is no URL"
    inner = getattr(error, "certificate_error", None) or getattr(error, "os_error", None) or error
    if isinstance(inner, ssl.SSLCertVerificationError):
        why = inner.verify_message.rstrip(".") or "it cannot be verified"
        return (
            f"its certificate is not trusted: {why} (if you trust it, name a file with it, or with its CA's,"
            " in the variable SSL_CERT_FILE)"
        )
    if isinstance(inner, ssl.SSLError):
        if inner.reason in _NO_TLS:
            return f"nobody speaks TLS there; {_other_scheme(url)} may be right"
        return f"TLS failed: {(inner.reason or type(inner).__name__).replace('_', ' ').lower()}"
    number = getattr(inner, "errno", None)
    return os.strerror(number) if isinstance(number, int) and number > 0 else str(inner) or type(inner).__name__


def lost(error: Exception, url: str) -> str:
    """How a connection was lost, as after "the server"."""
    told = str(error) or type(error).__name__
    if any(alert in told for alert in _ALERT):
        return f"takes TLS only; {_other_scheme(url)} may be right"
    return f"broke the connection off ({told})"


def _other_scheme(url: str) -> str:
    scheme, _, rest = named(url).partition("://")
    return f"{'http' if scheme.lower() == 'https' else 'https'}://{rest}"


def redirected(status: int, url: str, location: str | None) -> str | None:
    """What is to be said of a redirect that was not followed; None if it is none."""
    if not 300 <= status < 400 or status == 304 or not location:
        return None
    try:
        target = urljoin(url, location)
        one, other = urlsplit(url), urlsplit(target)
    except ValueError:
        return "to what is no URL"
    is_elsewhere = (one.scheme, one.netloc) != (other.scheme, other.netloc)
    why = "another server, which gets nothing of this" if is_elsewhere else "by which a POST would become a GET"
    return f"a redirect to {named(target)}, not followed: {why}"
