"""What the checks of HTTP have in common: whom they are about, and how heads are read and named."""

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from mcpsniff.checks.words import plain
from mcpsniff.protocol.http import EVENT_STREAM, HttpExchange
from mcpsniff.protocol.talk import LEGACY, MODERN

JSON: Final = "application/json"
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})

STREAMABLE: Final = "basic/transports#streamable-http"
SENDING: Final = "basic/transports#sending-messages-to-the-server"
LISTENING: Final = "basic/transports#listening-for-messages-from-the-server"
SESSIONS: Final = "basic/transports#session-management"
RESUMING: Final = "basic/transports#resumability-and-redelivery"
METADATA: Final = "basic/transports/streamable-http#request-metadata"
EVENTS: Final = "html#server-sent-events"

_SPECIAL: Final = frozenset({"http", "https", "ws", "wss", "ftp"})
_LINE_ENDS = re.compile(r"[\t\r\n]")
_CONTROLS_AND_SPACE: Final = "".join(map(chr, range(0x21)))
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_AUTHORITY = re.compile(r"[/\\]*([^/\\?#]*)")
_TWO_SLASHES = re.compile(r"[/\\]{2}")


type Place = tuple[str, int | None]
"""Host and port."""


def is_streamable(http: HttpExchange) -> bool:
    """True if it belongs to a conversation that is not one of HTTP+SSE (2024-11-05), which has rules of its own."""
    return http.talk is not None and http.talk.kind != LEGACY


def is_of_mcp(http: HttpExchange) -> bool:
    """True for a request that carries a message, asks for a stream, or belongs to a conversation."""
    return http.talk is not None or http.asked.messages > 0 or EVENT_STREAM in (http.asks("accept") or "").lower()


def is_modern(http: HttpExchange) -> bool:
    """True if it is a request of 2026-07-28, where each stands for itself."""
    return http.is_modern or (http.talk is not None and http.talk.kind == MODERN)


def is_served(http: HttpExchange) -> bool:
    """True if the server, and not mcpsniff in its place, said yes."""
    return http.by is None and http.status is not None and 200 <= http.status < 300


def request_line(http: HttpExchange) -> str:
    """A request by its method and target."""
    return f"{plain(http.method, 20)} {plain(http.path, 40)}"


def answer(http: HttpExchange) -> str:
    """A response by its status and media type."""
    kind = (http.says("content-type") or "").partition(";")[0].strip()
    return f"{http.status} ({plain(kind, 40)})" if kind else f"{http.status}"


def accepted(values: Iterable[str]) -> set[str]:
    """The media ranges of Accept headers in lower case, without those that are refused by ``q=0``."""
    found = set()
    for media in ", ".join(values).lower().split(","):
        kind, *parameters = (part.strip() for part in media.split(";"))
        if kind and not any(part.startswith("q=") and not part[2:].strip("0.") for part in parameters):
            found.add(kind)
    return found


def covers(ranges: set[str], kind: str) -> bool:
    """True if a media type is accepted by a wildcard."""
    return "*/*" in ranges or kind.partition("/")[0] + "/*" in ranges


def host_of(url_or_authority: str) -> Place:
    """Host (lower case) and port of a URL or of ``host:port``; no host where it cannot be read."""
    text = url_or_authority.strip()
    try:
        parts = urlsplit(text if "//" in text else "//" + text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return "", None
    return host, port or {"http": 80, "https": 443}.get(parts.scheme)


def origin_named(reference: str, base_scheme: str) -> tuple[str, str] | None:
    """Scheme and ``host:port`` that a URL reference names, None for a path; ``base_scheme`` is http or https.

    Read as clients do (WHATWG URL section 4.4): backslashes are slashes, and white space around it does not count. Of a
    scheme such as ``javascript`` there is no host.
    """
    text = _LINE_ENDS.sub("", reference).strip(_CONTROLS_AND_SPACE)
    found = _SCHEME.match(text)
    scheme = found[1].lower() if found else base_scheme
    if scheme not in _SPECIAL:
        return scheme, ""
    rest = text[found.end() :] if found else text
    if scheme == base_scheme and not _TWO_SLASHES.match(rest):
        return None
    authority = _AUTHORITY.match(rest)
    return scheme, authority[1] if authority else ""


def is_same_place(one: Place, other: Place) -> bool:
    """True for one host and port; all names of this computer are one."""
    (host, port), (other_host, other_port) = one, other
    same_host = host == other_host or (is_loopback(host) and is_loopback(other_host))
    return same_host and (port or 80) == (other_port or 80)


def is_address(host: str) -> bool:
    """True for a name of this computer or a numeric address."""
    return is_loopback(host) or ":" in host or host.replace(".", "").isdecimal()


def is_loopback(host: str) -> bool:
    """True for a name of this computer."""
    return host in LOOPBACK or host.startswith("127.")
