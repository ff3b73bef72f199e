"""What clients of a forward proxy are told when a server is not reached: our answer, or a hang-up where it hung up.

mitmproxy would send a page of its own as if the server had. See `client_side` for how that is avoided.
"""

from typing import Final

from mitmproxy.addons.next_layer import NextLayer
from mitmproxy.connection import Client, ConnectionState
from mitmproxy.http import HTTPFlow, Request
from mitmproxy.net.http import http1
from mitmproxy.proxy import events, layer
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers import ClientTLSLayer
from mitmproxy.proxy.layers.http import HttpLayer, HTTPMode

from mcpsniff.errors import UsageError
from mcpsniff.proxy.address import authority, parse_upstream
from mcpsniff.proxy.answers import Answer
from mcpsniff.proxy.ends import REFUSED
from mcpsniff.proxy.farewell import ANSWERED
from mcpsniff.proxy.mitm.client_side import Desk, ReverseHttp, read_head
from mcpsniff.proxy.mitm.tap import Tap
from mcpsniff.proxy.mitm.words import not_connected

NO_SERVER: Final = Answer(403, "this is a proxy: a client needs it as its proxy, not as the address of a server")
"""The answer to a request that names no server but in `Host`, which a web page chooses (DNS rebinding)."""
_SMUGGLED: Final = "refusing to prevent request smuggling attacks"
_UNREADABLE: Final = "Cannot parse HTTP response: "


class ForwardTap(Tap):
    """A tap that asks ``desk`` before it takes a failed exchange for a hang-up."""

    desk: "ForwardDesk"

    def error(self, flow: HTTPFlow) -> None:
        """See `Tap`."""
        if not self.desk.has_answered(flow):
            super().error(flow)


class ForwardDesk:
    """Explains failures to clients, and has ``tap`` record that. An addon, too, which chooses mitmproxy's layers."""

    def __init__(self, tap: Tap) -> None:
        self.failures: dict[str, str] = {}
        """Why TLS with the server of a client has failed, by the id of the client."""
        self.astray: dict[int, bool] = {}
        """Requests that are to be refused, by their identity."""
        self._tap = tap
        self._next = NextLayer()
        self._answers: dict[int, bytes] = {}
        self._flows: dict[int, HTTPFlow] = {}

    # -- hooks of mitmproxy ------------------------------------------------------------------------------------------

    def configure(self, updated: set[str]) -> None:
        """Read the options about hosts."""
        self._next.configure(updated)  # type: ignore[no-untyped-call]

    def next_layer(self, next_layer: layer.NextLayer) -> None:
        """Choose as mitmproxy does, but for HTTP our own."""
        self._next.next_layer(next_layer)
        chosen, context = next_layer.layer, next_layer.context
        if isinstance(chosen, ClientTLSLayer) and type(chosen.child_layer) is HttpLayer:  # a proxy reached with TLS
            chosen.child_layer = self._ours(context, chosen.child_layer)
        elif type(chosen) is HttpLayer and context.client.alpn != b"h2":
            next_layer.layer = self._ours(context, chosen)

    def requestheaders(self, flow: HTTPFlow) -> None:
        """Refuse a request that takes us for a server; the tap has heard of it before."""
        if self.astray.pop(id(flow.request), None):
            self._answer(flow, NO_SERVER, REFUSED)
            flow.kill()  # type: ignore[no-untyped-call]

    def client_disconnected(self, client: Client) -> None:
        """A client's connection is over."""
        self.failures.pop(client.id, None)
        for key, flow in list(self._flows.items()):
            if flow.client_conn.id == client.id:
                del self._flows[key]
                self._answers.pop(key, None)

    # -- for the tap -------------------------------------------------------------------------------------------------

    def has_answered(self, flow: HTTPFlow) -> bool:
        """Answer a request that has failed, if that is for us to do; False if one side simply hung up."""
        if id(flow.request) in self._flows:
            return True
        answer = None if flow.client_conn.alpn == b"h2" else self._explain(flow)
        if answer is None:
            return False
        self._answer(flow, answer, ANSWERED)
        return True

    # -- see `mcpsniff.proxy.mitm.client_side.Desk` ------------------------------------------------------------------

    def screen(self, listen: tuple[str, int], request: Request, head: bytes) -> None:
        """Let every request pass."""

    def screen_front(self, request: Request) -> None:
        """Note a request to the proxy itself that names no server."""
        self.astray.pop(id(request), None)  # of one that was here before
        if not request.authority:
            self.astray[id(request)] = True

    def take_answer(self, request: Request | None) -> bytes | None:
        """See `Desk`."""
        return self._answers.pop(id(request), None)

    def late(self, request: Request, data: bytes) -> None:
        """See `Desk`."""
        flow = self._flows.get(id(request))
        if flow is not None:
            self._tap.late(flow, data)

    def stray(self, why: str) -> None:
        """See `Desk`; it may be anything, so it is not written down."""

    # -- inside ------------------------------------------------------------------------------------------------------

    def _ours(self, context: Context, theirs: HttpLayer) -> "ForwardHttp":
        """Put our layer in the place of mitmproxy's, which has not begun."""
        context.layers.remove(theirs)
        return ForwardHttp(context, theirs.mode, _Front(self) if theirs.mode is HTTPMode.regular else self)

    def _answer(self, flow: HTTPFlow, answer: Answer, why: str) -> None:
        content = answer.to(read_head(http1.assemble_request_head(flow.request)))  # type: ignore[no-untyped-call]
        self._answers[id(flow.request)], self._flows[id(flow.request)] = content, flow
        self._tap.answered(flow, content, why)

    def _explain(self, flow: HTTPFlow) -> Answer | None:
        told = "" if flow.error is None else flow.error.msg
        client, request = flow.client_conn, flow.request
        origin = f"{request.scheme}://{authority(request.host, request.port, 443 if request.scheme == 'https' else 80)}"
        if _SMUGGLED in told:
            whose = "request" if "from client" in told else "response"
            what = told.removeprefix("Received ").partition(" from ")[0]
            return Answer(400 if whose == "request" else 502, f"the {whose} may be read differently: {what}")
        if not client.state & ConnectionState.CAN_READ:
            return None
        if told.startswith(_UNREADABLE):
            return Answer(502, f"what {origin} says is no HTTP: {told.removeprefix(_UNREADABLE)}")
        if client.id in self.failures:
            return Answer(502, self.failures[client.id], upstream=origin)
        if flow.server_conn.timestamp_start is not None:
            return None
        try:
            return not_connected(parse_upstream(origin), told)
        except UsageError:  # no host that could exist
            return Answer(502, f"cannot reach {origin}: {told}")


class _Front:
    """The desk of those who have not asked for a tunnel: they have to say which server they want."""

    def __init__(self, desk: ForwardDesk) -> None:
        self._desk = desk
        self.take_answer = desk.take_answer
        self.late = desk.late
        self.stray = desk.stray

    def screen(self, listen: tuple[str, int], request: Request, head: bytes) -> None:  # noqa: ARG002 - see `Desk`
        """See `Desk`."""
        self._desk.screen_front(request)


class ForwardHttp(ReverseHttp):
    """HTTP for the clients of a forward proxy: ``mode`` is transparent inside a tunnel."""

    def __init__(self, context: Context, mode: HTTPMode, desk: Desk) -> None:
        super().__init__(context, desk)
        self.mode = mode

    def _handle_event(self, event: events.Event) -> layer.CommandGenerator[None]:
        is_of_server = isinstance(event, events.ConnectionClosed) and event.connection is not self.context.client
        if self.mode is HTTPMode.regular and is_of_server:
            # Other servers may be asked on the same connection.
            yield from HttpLayer._handle_event(self, event)
        else:
            yield from super()._handle_event(event)
