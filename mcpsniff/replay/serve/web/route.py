"""What of an HTTP request decides where it goes: its method, the kind of place it is for, and its routing headers.

A request without a message is found in the recording by nothing else; and a recorded refusal of a message is given
back only to a request that is alike in these, since it may be a header that was refused.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from mcpsniff.protocol.http import (
    EVENT_STREAM,
    LAST_EVENT_ID,
    VERSION_HEADER,
    HttpExchange,
    is_json_type,
    media_type,
)
from mcpsniff.protocol.http import LEGACY_STREAM as LEGACY_STREAM_KIND
from mcpsniff.protocol.message import REQUEST, Message
from mcpsniff.protocol.param_headers import PREFIX, decoded
from mcpsniff.protocol.revisions import LEGACY as LEGACY_REVISIONS
from mcpsniff.protocol.revisions import PROTOCOL_VERSION_KEY, is_published
from mcpsniff.protocol.talk import BARE, LEGACY, MODERN, SESSION
from mcpsniff.proxy.address import is_loopback
from mcpsniff.replay.script import Scene, Web
from mcpsniff.replay.send.headers import METHOD_HEADER, NAME_HEADER, named_by

MCP: Final = "<mcp>"
"""The endpoint of Streamable HTTP."""
STREAM: Final = "<stream>"
"""Where HTTP+SSE gives its stream."""
ENDPOINT: Final = "<endpoint>"
"""Where HTTP+SSE takes messages."""

STREAMABLE: Final = (BARE, SESSION, MODERN)
"""The kinds of talk that are held over Streamable HTTP."""

OURS: Final = "mcpsniff"
"""Who gave a response that is not the server's, see `HttpExchange.by`."""
DISCOVER: Final = "server/discover"

NONE: Final = ""
KNOWN: Final = "known"
ENDED: Final = "ended"
UNKNOWN: Final = "unknown"

_RANGE: Final = re.compile(r"\s*([^;,\s]+)\s*((?:;[^,]*)?)(?:,|$)")
_REFUSED_QUALITY: Final = re.compile(r";\s*q\s*=\s*0(?:\.0*)?\s*(?:;|$)", re.IGNORECASE)


class Route(NamedTuple):
    """The headers of a request as far as they decide what becomes of it."""

    session: str = NONE
    """NONE, or whether the session that it names is KNOWN, has ENDED or is UNKNOWN."""
    authorized: bool = False
    takes_json: bool = True
    takes_events: bool = True
    content: str = NONE
    """The media type of its body: ``json``, ``other``, or NONE."""
    version: str = NONE
    """What MCP-Protocol-Version says: ``legacy``, ``modern``, ``unknown``, or NONE."""
    resumes: bool = False
    is_foreign: bool = False
    """True if a page from elsewhere sends it, or if it names a host that is not this machine, where the server is."""
    mirrored: tuple[str, ...] = ()
    """For a request of 2026-07-28: which headers that repeat the message are there, and whether they agree with it."""


type Get = Callable[[str], str | None]
"""Gives the first value of a header by its name in lower case."""


def route(get: Get, session: str, message: Message | None = None, params: Iterable[tuple[str, str]] = ()) -> Route:
    """The route of a request; ``params`` are its ``Mcp-Param-*`` headers."""
    accept = get("accept")
    kind = media_type(get("content-type"))
    return Route(
        session,
        get("authorization") is not None,
        accepts(accept, "application/json"),
        accepts(accept, EVENT_STREAM),
        "json" if is_json_type(kind) else "other" if kind else NONE,
        _version(get(VERSION_HEADER)),
        get(LAST_EVENT_ID) is not None,
        is_foreign(get("origin"), get("host")),
        mirrored(get, message, params),
    )


def accepts(accept: str | None, kind: str) -> bool:
    """Whether a media type is acceptable (RFC 9110 section 12.5.1); without Accept everything is."""
    if accept is None or not accept.strip():
        return True
    wanted = {kind, kind.partition("/")[0] + "/*", "*/*"}
    return any(
        found[1].lower() in wanted and not _REFUSED_QUALITY.search(found[2]) for found in _RANGE.finditer(accept)
    )


def is_foreign(origin: str | None, host: str | None) -> bool:
    """True if a request comes from a page that neither this machine nor its target serves (MCP transports)."""
    if origin is None:
        return False
    try:
        parts = urlsplit(origin)
        name = parts.hostname
    except ValueError:
        return True
    if parts.scheme not in ("http", "https") or not name:
        return True
    return not is_loopback(name) and parts.netloc.lower() != (host or "").lower()


def _version(value: str | None) -> str:
    if value is None:
        return NONE
    if not is_published(value):
        return "unknown"
    return "legacy" if value in LEGACY_REVISIONS else "modern"


def mirrored(get: Get, message: Message | None, params: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Which of the headers that repeat a message are there, and whether they agree with it."""
    if message is None or message.kind != REQUEST or _version(get(VERSION_HEADER)) != "modern":
        return ()
    said = []
    for name, value in ((METHOD_HEADER, message.method), (NAME_HEADER, named_by(message))):
        header = get(name)
        if header is None:
            said.append(f"{name}: missing" if value is not None else "")
        else:
            said.append("" if decoded(header) == value else f"{name}: different")
    return (*filter(None, said), *sorted(f"{name.lower()}: {value}" for name, value in params))


class Recorded:
    """The routes of recorded requests, and which of them were refused."""

    def __init__(self, webs: Sequence[Web]) -> None:
        """``webs`` are all HTTP exchanges of the replay, in order."""
        self.mcp_paths: set[str] = set()
        """Where Streamable HTTP was spoken."""
        self.stream_paths: set[str] = set()
        """Where a stream of HTTP+SSE was given."""
        self.endpoint_paths: set[str] = set()
        """Where messages were taken for one."""
        self.routes: dict[int, Route] = {}
        """By the number of the HTTP exchange."""
        self.has_origins = any(web.http.asks("origin") is not None for web in webs)
        """True if a client was a web page, so that what the server said of CORS was said on purpose."""
        self._refused: set[tuple[str, Route]] = set()
        given = {web.http.session_given for web in webs} | {web.talk.session_id for web in webs if web.talk}
        ended: set[str] = set()
        for web in webs:
            self._place(web)
            self.routes[web.number] = _route_of(web, given, ended)
            if web.http.method == "DELETE" and not web.http.is_refused and web.http.session_id:
                ended.add(web.http.session_id)
        for web in webs:
            if not self._is_probe(web):
                self._refused.update((scene.method, self.of(scene)) for scene in web.scenes if scene.is_refused)

    def of(self, scene: Scene) -> Route:
        """The route of the request that carried a scene's cue."""
        if scene.web is None:
            return Route()
        found = self.routes[scene.web.number]
        request = scene.web.http.request
        if request is None or scene.cue is None:
            return found
        return found._replace(mirrored=mirrored(request.get, scene.cue, mirror_headers(request.headers)))

    def chooses(self, message: Message, live: Route) -> Callable[[Scene], bool]:
        """Which scenes a message with this route is to cue: a refusal of the like of it first, no other refusal.

        What was asked in 2026-07-28 is not answered to an earlier revision, nor the other way round.
        """
        was_refused = self.was_refused(message, live)
        is_modern = is_modern_message(message, live.version)

        def is_meant(scene: Scene) -> bool:
            if scene.web is not None and (self._is_probe(scene.web) or scene.web.http.by == OURS):
                return False
            if scene.is_refused or was_refused:
                return self.of(scene) == live
            return is_modern == (scene.talk.kind == MODERN or scene.talk.is_modern)

        return is_meant

    def was_refused(self, message: Message, live: Route) -> bool:
        """True if a message of that method was refused under this very route."""
        return (message.method or "", live) in self._refused

    def _is_probe(self, web: Web) -> bool:
        """True if a client tried Streamable HTTP where the server has HTTP+SSE, and was refused.

        Neither an endpoint of HTTP+SSE nor one that is served as Streamable HTTP refuses for that reason.
        """
        path = bare_path(web.http.path)
        return web.http.is_refused and path in self.stream_paths - self.mcp_paths - self.endpoint_paths

    def _place(self, web: Web) -> None:
        http, kind = web.http, None if web.talk is None else web.talk.kind
        path = bare_path(http.path)
        if http.stream is not None and http.stream.kind == LEGACY_STREAM_KIND:
            self.stream_paths.add(path)
        elif kind == LEGACY and http.method == "POST":
            self.endpoint_paths.add(path)
        elif kind in STREAMABLE and http.method == "POST" and web.asked.messages and not http.is_refused:
            self.mcp_paths.add(path)


def mirror_headers(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The headers that repeat arguments of a tool."""
    return [(name, value) for name, value in headers if name.lower().startswith(PREFIX)]


def is_modern_message(message: Message, version: str) -> bool:
    """True for a message of 2026-07-28, which needs no session."""
    return version == "modern" or PROTOCOL_VERSION_KEY in message.meta or message.method == DISCOVER


def names_loopback(host: str) -> bool:
    """True if a Host header, or an authority, names this machine."""
    name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
    return is_loopback(name.strip("[]"))


def _route_of(web: Web, given: set[str | None], ended: set[str]) -> Route:
    session, host = web.http.session_id, web.http.asks("host")
    state = NONE if session is None else ENDED if session in ended else KNOWN if session in given else UNKNOWN
    found = route(web.http.asks, state)
    at_home = host is None or names_loopback(host) or not names_loopback(web.http.authority.rpartition("/")[2])
    return found if at_home else found._replace(is_foreign=True)


def bare_path(path: str) -> str:
    """A path without a slash at its end."""
    return path.rstrip("/") or "/"


def query_values(query: str) -> list[str]:
    """The values in a query, in order."""
    return [value for _, value in parse_qsl(query, keep_blank_values=True, errors="replace")]


def is_message_of_client(http: HttpExchange) -> bool:
    """True if the request carried notifications or answers, and nothing that is to be answered."""
    return http.method == "POST" and http.requests == 0 and http.notices > 0
