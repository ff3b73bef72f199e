"""Our answers to requests that mitmproxy has failed: why there is one, and where it waits for the client's side."""

from typing import Final

from mitmproxy.connection import Client, ConnectionState
from mitmproxy.flow import Error
from mitmproxy.http import HTTPFlow, Request, Response
from mitmproxy.net.http import http1

from mcpsniff.capture.labels import shown
from mcpsniff.proxy.address import Upstream
from mcpsniff.proxy.answers import Answer
from mcpsniff.proxy.mitm.handshakes import Handshakes
from mcpsniff.proxy.mitm.tap import Tap
from mcpsniff.proxy.mitm.words import expects_tls, flaw, not_connected, sent_alert
from mcpsniff.wire.http1 import Http1Splitter
from mcpsniff.wire.http1_parts import Head

NO_SERVER: Final = Answer(
    403,
    "this is a proxy: a client needs it as its proxy, not as the address of a server. For an address that stands in"
    " the place of a server's, run mcpsniff http URL.",
)
"""The answer to a request that names no server but in `Host`, which a web page chooses (DNS rebinding)."""
OURSELVES: Final = "Request destination unknown"
"""How mitmproxy tells that a request, or a tunnel, is meant to lead to the proxy itself."""
_SMUGGLED: Final = "refusing to prevent request smuggling attacks"
_SCHEME: Final = "Invalid request scheme: "
_CONNECT: Final = "mitmproxy received an HTTP CONNECT request"
_UNREADABLE: Final = "Cannot parse HTTP response: "


class Answers:
    """What we have answered ourselves: the base of a `mcpsniff.proxy.mitm.client_side.Desk`."""

    def __init__(self) -> None:
        self._answers: dict[int, bytes] = {}
        self._flows: dict[int, tuple[Tap, HTTPFlow]] = {}

    def answer(self, tap: Tap, flow: HTTPFlow, answer: Answer, why: str) -> None:
        """Answer a request ourselves, and have ``tap`` record that."""
        content = answer.to(head_of(flow.request))
        self._answers[id(flow.request)], self._flows[id(flow.request)] = content, (tap, flow)
        tap.answered(flow, content, why)

    def has_answered(self, request: Request) -> bool:
        """True if a request that still goes on was answered by us."""
        return id(request) in self._flows

    def take_answer(self, request: Request | None) -> bytes | None:
        """See `Desk`."""
        return self._answers.pop(id(request), None)

    def late(self, request: Request, data: bytes) -> None:
        """See `Desk`."""
        tap, flow = self._flows.get(id(request), (None, None))
        if tap is not None and flow is not None:
            tap.late(flow, data)

    def forget(self, client: Client) -> None:
        """A client's connection is over."""
        for key, (_, flow) in list(self._flows.items()):
            if flow.client_conn.id == client.id:
                del self._flows[key]
                self._answers.pop(key, None)


def explain(flow: HTTPFlow, upstream: Upstream, handshakes: Handshakes) -> Answer | None:
    """Return our answer to a request to ``upstream`` that has failed, or None if one side simply hung up."""
    told = "" if flow.error is None else flow.error.msg
    if _SMUGGLED in told:
        whose = "request" if "from client" in told else "response"
        what = flaw(told.removeprefix("Received ").partition(" from ")[0])
        return Answer(400 if whose == "request" else 502, f"the {whose} may be read differently: {what}")
    if told.startswith(_SCHEME):
        what = "this proxy goes to http:// and https:// alone, and the request to something else"
        return Answer(400, f"{what}: {shown(told.removeprefix(_SCHEME))}")
    if told.startswith(_CONNECT):
        return Answer(400, "a server is asked here, not a proxy: it makes no tunnel (CONNECT)")
    if flow.response is not None or not flow.client_conn.state & ConnectionState.CAN_READ:
        return None
    if sent_alert(flow):
        return expects_tls(upstream, flow.request.path.partition("?")[0])
    if told.startswith(_UNREADABLE):
        return Answer(502, f"what {upstream.origin} says is no HTTP: {flaw(told.removeprefix(_UNREADABLE))}")
    failure = handshakes.failure(flow)
    if failure is not None:
        return failure.answer(upstream, flow.request.path.partition("?")[0])
    return not_connected(upstream, told) if flow.server_conn.timestamp_start is None else None


def is_for_us(error: Error | None) -> bool:
    """True if an exchange failed because it would have led to the proxy itself."""
    return error is not None and OURSELVES in error.msg


def head_of(request: Request) -> Head:
    """Return the head of a request as our own splitter has it. Raises ValueError if it is none."""
    return read_head(http1.assemble_request_head(request))  # type: ignore[no-untyped-call]


def read_head(data: bytes) -> Head:
    """Return the head of a request, with all that is odd about it. Raises ValueError if it is none."""
    for part in Http1Splitter(0, "c2s").feed(0, data):
        if isinstance(part, Head):
            return part
    raise ValueError("no head")


def as_response(answer: bytes) -> Response:
    """Return an answer of ours as mitmproxy has it, for clients that do not speak HTTP/1.1 on this connection."""
    head, _, body = answer.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    response = http1.read_response_head(lines)
    response.raw_content = body
    return response
