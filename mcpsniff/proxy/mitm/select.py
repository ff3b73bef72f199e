"""Which HTTP exchanges are recorded by a forward proxy: those of MCP, judged by what they say.

The judge of a `mcpsniff.proxy.mitm.tap.Tap`, and an addon of mitmproxy that comes after it. Kept are: what carries a
header of MCP; JSON-RPC of MCP in the body of a request; an event stream that carries it; whatever goes to a path where
MCP was spoken; and the OAuth and well-known exchanges that belong to such a server (`known`).
"""

from collections.abc import Callable, Iterable
from typing import Any, Final
from urllib.parse import urljoin
from weakref import WeakKeyDictionary

import orjson
from mitmproxy.http import Headers, HTTPFlow, Message

from mcpsniff.protocol.http import EVENT_STREAM
from mcpsniff.protocol.origins import names_of, server_of
from mcpsniff.proxy.address import authority
from mcpsniff.proxy.mitm.content import JsonBody, StreamBody
from mcpsniff.proxy.mitm.hosts import Hosts
from mcpsniff.proxy.mitm.known import Known, is_metadata, origin_of, split
from mcpsniff.proxy.mitm.tap import Verdict
from mcpsniff.wire.body import BodyDecoder

HEADERS: Final = frozenset({"mcp-session-id", "mcp-protocol-version", "mcp-method", "mcp-name"})
"""What only MCP has in a head (Streamable HTTP, all revisions)."""
DOCUMENT: Final = 256 << 10
"""Bytes of a metadata document that are read."""
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
NAMED: Final = 1024
"""Hosts that are remembered by name."""
_FORMS: Final = ("application/x-www-form-urlencoded", "multipart/", "image/", "audio/", "video/")
"""Types of bodies that are no message, whatever is in them."""
_BARE: Final = ("GET", "HEAD", "DELETE", "OPTIONS")


class _Case:
    """What is known of an exchange that is going on."""

    __slots__ = ("body", "host", "is_kept", "learns", "origin", "path", "server", "stream")

    def __init__(self, flow: HTTPFlow) -> None:
        request = flow.request
        self.host = request.host
        self.origin = origin_of(request.scheme, self.host, request.port)
        self.server = server_of(request.scheme, authority(self.host, request.port, 0))
        """The origin as transcripts have it."""
        self.path = request.path.partition("?")[0]
        self.is_kept = False
        self.learns = False
        """True if the response may be a metadata document."""
        self.body: JsonBody | None = None
        """The body of the request, while it may be a message."""
        self.stream: StreamBody | None = None
        """The body of the response, while it may carry messages."""


class Select:
    """Judges by content; ``hosts`` are those that may be looked into. With ``everything`` all of these are recorded."""

    def __init__(self, hosts: Hosts, *, everything: bool = False) -> None:
        self.known = Known()
        self.kept: dict[str, None] = {}
        """Servers with which something was recorded, in order, by their origins."""
        self.passed: dict[str, None] = {}
        """Servers to which a request went, by their origins, or by host and port."""
        self._hosts = hosts
        self._everything = everything
        self._cases: WeakKeyDictionary[HTTPFlow, _Case] = WeakKeyDictionary()
        """Not in ``metadata`` of the flow, which mitmproxy saves with it."""

    # -- as the judge ------------------------------------------------------------------------------------------------

    def begin(self, flow: HTTPFlow) -> Verdict:
        """See `mcpsniff.proxy.mitm.tap.Judge`."""
        case = self._cases[flow] = _Case(flow)
        request = flow.request
        if not self._may_keep(flow):
            remember(self.passed, authority(case.host, request.port, 0))
            return Verdict.DROP
        remember(self.passed, case.server)
        is_form = request.headers.get("content-type", "").strip().lower().startswith(_FORMS)
        if _speaks(request.headers):
            is_place = not is_form and not is_metadata(case.path) and request.method != "OPTIONS"
            return self._keep(case, is_place=is_place)
        if self._everything or self.known.is_place(case.origin, case.path):
            return self._keep(case)
        if self.known.belongs(request.method, case.origin, case.path):
            case.learns = request.method == "GET"
            return self._keep(case)
        if request.method in _BARE:
            asks = request.headers.get("access-control-request-headers", "")
            if request.method == "OPTIONS" and any(name.strip().lower() in HEADERS for name in asks.split(",")):
                return self._keep(case)
            return Verdict.WAIT if request.method in {"GET", "DELETE"} else Verdict.DROP
        if is_form:
            return Verdict.DROP
        case.body = JsonBody(_codings(request), lenient=self._is_likely(flow, case))
        return Verdict.WAIT

    def more(self, flow: HTTPFlow, direction: str, data: bytes) -> Verdict:
        """See `mcpsniff.proxy.mitm.tap.Judge`."""
        case = self._cases[flow]
        if direction == "c2s":
            return Verdict.WAIT if case.body is None else self._asked(case, case.body, data)
        if flow.response is None:
            return Verdict.WAIT
        if _speaks(flow.response.headers):
            return self._keep(case, is_place=True)
        if case.body is not None:  # its request is not whole, or it was no message
            return Verdict.WAIT if flow.request.timestamp_end is None else self._asked(case, case.body, b"")
        if case.stream is None:
            kind = flow.response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind != EVENT_STREAM:
                return Verdict.DROP
            case.stream = StreamBody(_codings(flow.response), lenient=self.known.is_server(case.origin))
        verdict = case.stream.feed(data)
        if verdict and case.stream.endpoint:
            self._take_endpoint(case, case.stream.endpoint)
        return self._judged(case, verdict)

    # -- as an addon -------------------------------------------------------------------------------------------------

    def responseheaders(self, flow: HTTPFlow) -> None:
        """Learn from the response what else belongs to the server."""
        case = self._cases.get(flow)
        response = flow.response
        if case is None or response is None or not case.is_kept:
            return
        if response.status_code in {401, 403} and self.known.is_place(case.origin, case.path):
            self.known.challenged(case.origin, response.headers.get("www-authenticate", ""))
        if case.learns or (is_metadata(case.path) and flow.request.method == "GET"):
            tapped = response.stream
            if response.status_code in REDIRECTS:
                self.known.leads_to(_target(case, response.headers.get("location", "")))
            elif response.status_code == 200 and callable(tapped):
                response.stream = _Reading(tapped, _codings(response), self.known.learn)

    # -- inside ------------------------------------------------------------------------------------------------------

    def _may_keep(self, flow: HTTPFlow) -> bool:
        """True if the host that is reached is to be looked into, or the name by which TLS asked for it."""
        request, sni = flow.request, flow.client_conn.sni
        return self._hosts.has(request.host, request.port) or (
            request.scheme == "https" and bool(sni) and self._hosts.has(str(sni), request.port)
        )

    def _asked(self, case: _Case, body: JsonBody, data: bytes) -> Verdict:
        """Judge by the body of a request; no data: it is over."""
        return self._judged(case, body.feed(data) if data else body.end())

    def _judged(self, case: _Case, verdict: bool | None) -> Verdict:
        if verdict is None:
            return Verdict.WAIT
        return self._keep(case, is_place=True) if verdict else Verdict.DROP

    def _keep(self, case: _Case, *, is_place: bool = False) -> Verdict:
        case.is_kept, case.body, case.stream = True, None, None
        remember(self.kept, case.server)
        if is_place:
            self.known.speaks(case.origin, case.path)
        return Verdict.KEEP

    def _take_endpoint(self, case: _Case, endpoint: str) -> None:
        """Remember where the legacy transport is posted to, if that is at the same origin."""
        if endpoint.startswith("/") and not endpoint.startswith("//"):
            self.known.speaks(case.origin, endpoint.partition("?")[0].partition("#")[0])
        else:
            place = split(endpoint)
            if place is not None and place[0] == case.origin:
                self.known.speaks(*place)

    def _is_likely(self, flow: HTTPFlow, case: _Case) -> bool:
        """True if a request looks like one of MCP before its body is seen."""
        return self.known.is_server(case.origin) or EVENT_STREAM in flow.request.headers.get("accept", "").lower()


def _target(case: _Case, location: str) -> str:
    """Return where a Location leads to, as a URL without query; nothing if that is none."""
    try:
        return urljoin(case.origin + case.path, location).partition("?")[0].partition("#")[0]
    except ValueError:
        return ""


class _Reading:
    """Reads the document that a body is, as it streams by: returns what it is given, on every path."""

    def __init__(
        self, tapped: Callable[[bytes], Iterable[bytes] | bytes], codings: str, learn: Callable[[Any], None]
    ) -> None:
        self._tapped = tapped
        self._learn = learn
        self._decoder: BodyDecoder | None = BodyDecoder(codings, limit=DOCUMENT)
        self._text = bytearray()

    def __call__(self, data: bytes) -> Iterable[bytes] | bytes:
        """Pass a piece on; without data the body is over."""
        passed = self._tapped(data)
        try:
            self._read(data)
        except Exception:  # noqa: BLE001 - not JSON, or damaged: nothing is learnt
            self._decoder = None
        return passed

    def _read(self, data: bytes) -> None:
        if self._decoder is None:
            return
        self._text += self._decoder.feed(data) if data else self._decoder.finish()
        if len(self._text) > DOCUMENT:
            self._decoder = None
        elif self._text.rstrip().endswith(b"}"):
            try:
                self._learn(orjson.loads(bytes(self._text)))
            except orjson.JSONDecodeError:
                return
            self._decoder = None


def remember(names: dict[str, None], name: str) -> None:
    """Add a name to an ordered set that does not grow beyond `NAMED`."""
    if len(names) < NAMED:
        names[name] = None


def besides(passed: Iterable[str], kept: Iterable[str]) -> list[str]:
    """Return those of ``passed`` that are not ``kept``; one that is named with its scheme, too, is named so only."""
    first = [name for name in passed if name not in kept]
    named = {other for name in (*kept, *first) if "://" in name for other in names_of(name)}
    return [name for name in first if "://" in name or name.lower() not in named]


def _speaks(headers: Headers) -> bool:
    """True if a head has what only MCP has."""
    return any(name.lower() in HEADERS for name in headers)


def _codings(message: Message) -> str:
    return ", ".join(message.headers.get_all("content-encoding"))
