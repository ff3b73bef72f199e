"""Heads of responses as they were recorded, for another connection, another session and another address."""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple
from urllib.parse import parse_qs, quote, unquote_plus, urlsplit

from mcpsniff.protocol.http import SESSION_HEADER, VERSION_HEADER
from mcpsniff.replay.script import Web

type Headers = list[tuple[str, str]]

SESSION_NAME: Final = "Mcp-Session-Id"
"""How the header is spelt where the recording does not tell (MCP transports, session management)."""

_NOT_OURS: Final = frozenset(
    [
        *("connection", "keep-alive", "proxy-authenticate", "proxy-connection", "te", "trailer", "transfer-encoding"),
        *("upgrade", "date", "content-length", "content-encoding", "alt-svc", "strict-transport-security", "age"),
    ]
)
"""What is about one connection, one moment, or the form in which the body came."""
_HAVE_URLS: Final = frozenset({"location", "content-location", "www-authenticate", "link"})
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_STATE: Final = re.compile(r"(?<=[?&#]state=)[^&#]*")
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_BODILESS: Final = (204, 205, 304)


class Head(NamedTuple):
    """The head of a response to be sent."""

    status: int
    reason: str | None
    headers: Headers

    @property
    def has_body(self) -> bool:
        """False if the status allows none (RFC 9110 section 6.4.1)."""
        return self.status not in _BODILESS

    def get(self, name: str) -> str | None:
        """The first value of a header, by its name in lower case."""
        return next((value for key, value in self.headers if key.lower() == name), None)


class Origins:
    """The recorded addresses of the server, which become the one that serves now."""

    def __init__(self, webs: Iterable[Web], servers: Iterable[str]) -> None:
        """``servers`` are the origins of those that MCP was spoken with; what is elsewhere keeps its address."""
        wanted = set(servers)
        found: set[str] = set()
        for web in webs:
            if web.http.authority in wanted:
                scheme = web.http.authority.partition("://")[0] if "://" in web.http.authority else "http"
                host = web.http.asks("host")
                found |= {web.http.authority, f"{scheme}://{host}" if host else ""}
        urls = sorted((re.escape(one) for one in found if "://" in one), key=len, reverse=True)
        self._recorded = re.compile(rf"(?:{'|'.join(urls)})(?![\w.:-])", re.IGNORECASE) if urls else None

    def live(self, text: str, origin: str) -> str:
        """The text with the live origin in the place of the recorded ones."""
        return text if self._recorded is None else self._recorded.sub(lambda _: origin, text)

    def live_body(self, body: bytes, origin: str) -> bytes:
        """Likewise for a body of text."""
        return self.live(body.decode(errors="surrogateescape"), origin).encode(errors="surrogateescape")


def head_of(
    web: Web | None, origins: Origins, origin: str, *, session: str | None = None, target: str = ""
) -> Head | None:
    """The recorded head, the session that it names replaced; None if there was no response, or not of HTTP any more.

    ``target`` is that of the live request, the state of which goes back to its client.
    """
    response = None if web is None else web.http.response
    if response is None or response.status is None or not 200 <= response.status <= 999:
        return None
    headers: Headers = []
    for name, value in response.headers:
        lowered = name.lower()
        if lowered in _NOT_OURS or not _TOKEN.match(name):
            continue
        if lowered == SESSION_HEADER:
            headers += [(name, session)] if session is not None else []
            continue
        text = as_sent(value)
        if text is not None:
            headers.append((name, origins.live(text, origin) if lowered in _HAVE_URLS else text))
    recorded, live = _state_of(web.http.target) if web is not None else None, _state_of(target)
    if recorded is not None and live is not None:
        headers = [
            (name, _with_state(value, recorded, live) if name.lower() == "location" else value)
            for name, value in headers
        ]
    reason = response.reason if response.reason.isprintable() and response.reason.isascii() else None
    return Head(response.status, reason, headers)


def _state_of(target: str) -> str | None:
    """The client's own word in a request for authorization."""
    try:
        return next(iter(parse_qs(urlsplit(target).query, errors="replace").get("state", [])), None)
    except ValueError:
        return None


def _with_state(location: str, recorded: str, live: str) -> str:
    """Where a page leads to, with the live state, which the client wants back (RFC 6749 section 4.1.2)."""
    return _STATE.sub(lambda found: quote(live, safe="") if unquote_plus(found[0]) == recorded else found[0], location)


def as_sent(value: str) -> str | None:
    """The value of a header as text that is sent in the same bytes; None if it cannot be sent."""
    try:
        text = value.encode("latin-1").decode()
    except UnicodeError:
        return None
    return None if _CONTROLS.search(text) else text


def for_pages(origin: str | None, method: str) -> Headers:
    """What lets a web page of this machine use the server (Fetch, CORS protocol); nothing without an Origin."""
    if origin is None:
        return []
    headers = [("Access-Control-Allow-Origin", origin), ("Vary", "Origin")]
    if method == "OPTIONS":
        headers += [
            ("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS"),
            ("Access-Control-Allow-Headers", "*, Authorization"),
        ]
    return [*headers, ("Access-Control-Expose-Headers", f"{SESSION_NAME}, {VERSION_HEADER}, WWW-Authenticate")]
