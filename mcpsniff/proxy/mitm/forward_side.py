"""What clients of a forward proxy are told when a server is not reached: our answer, or a hang-up where it hung up.

mitmproxy would send a page of its own as if the server had. See `client_side` for how that is avoided.
"""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from mitmproxy.addons.next_layer import NextLayer
from mitmproxy.connection import Client
from mitmproxy.http import HTTPFlow, Request
from mitmproxy.net.tls import starts_like_tls_record
from mitmproxy.proxy import events, layer
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers import ClientTLSLayer, TCPLayer
from mitmproxy.proxy.layers.http import HttpLayer, HTTPMode
from mitmproxy.proxy.layers.tls import parse_client_hello
from mitmproxy.tls import ClientHelloData

from mcpsniff.errors import UsageError
from mcpsniff.protocol.origins import server_of
from mcpsniff.proxy.address import Upstream, authority, parse_upstream
from mcpsniff.proxy.answers import Answer
from mcpsniff.proxy.ends import REFUSED
from mcpsniff.proxy.farewell import ANSWERED
from mcpsniff.proxy.mitm.client_side import ClientSide, Desk, ReverseHttp
from mcpsniff.proxy.mitm.desk import NO_SERVER, OURSELVES, Answers, as_response, explain, head_of, is_for_us
from mcpsniff.proxy.mitm.handshakes import Handshakes
from mcpsniff.proxy.mitm.hosts import Hosts
from mcpsniff.proxy.mitm.select import Select, remember
from mcpsniff.proxy.mitm.tap import Tap
from mcpsniff.proxy.mitm.words import not_connected, sent_alert
from mcpsniff.proxy.recorder import Recorder

if TYPE_CHECKING:
    from mcpsniff.proxy.mitm.detour import Detours

BAD_REQUEST: Final = 400
_ERRORS: Final = "Cannot connect to "
_HINT: Final = " If you plan to redirect"
"""How mitmproxy tells of a server that is not reached, and goes on to give advice."""
_WHY: Final = "mcpsniff.unreached"
"""Where a flow has the sentence about a server that was not reached, until it is known whether it is recorded."""


class ForwardTap(Tap):
    """A tap that asks ``desk`` before it takes a failed exchange for a hang-up, and counts what we answer ourselves."""

    desk: "ForwardDesk"
    detours: "Detours | None" = None
    """In edit mode: what goes through the relay, which records it."""

    def __init__(self, recorder: Recorder, judge: Select) -> None:
        super().__init__(recorder, judge)
        self.own = self.rejected = 0
        """Requests that we have answered ourselves: how many were recorded, and how many were not."""
        self.passed = 0
        """Exchanges that passed without being recorded."""
        self.reached: dict[str, None] = {}
        """Servers, by their origins, with which something was recorded."""
        self.unreached: dict[str, None] = {}
        """Those of recorded requests that we answered, since they did not get there."""
        self.astray: dict[str, None] = {}
        """What requests named in the place of a server that were meant for us."""

    def over(self, flow: HTTPFlow, refused: str, *, is_recorded: bool) -> None:
        """See `Tap`."""
        answer = None if self.detours is None else self.detours.answer(flow)
        if answer is not None:
            refused = REFUSED if answer.answer is NO_SERVER else ANSWERED
            self.desk.note(flow, answer.answer, is_told=answer.is_told)
        request = flow.request
        origin = server_of(request.scheme, authority(request.host, request.port, 0))
        if not refused:
            self.passed += not is_recorded
        elif is_recorded:
            self.own += 1
        else:
            self.rejected += 1
        if refused == REFUSED:
            remember(self.astray, origin)
        elif is_recorded:
            remember(self.unreached if refused else self.reached, origin)
            self.desk.tell_why(flow)

    def next_connection(self) -> int:
        """See `Tap`; the relay numbers its connections, too."""
        return super().next_connection() if self.detours is None else next(self.detours.numbers)

    def next_channel(self) -> int:
        """See `Tap`; the relay has two channels for each number."""
        return super().next_channel() if self.detours is None else 2 * next(self.detours.numbers)

    def error(self, flow: HTTPFlow) -> None:
        """See `Tap`."""
        if not self.desk.explains(flow):
            super().error(flow)


class ForwardDesk(Answers):
    """Explains failures to clients, and has ``tap`` record that. An addon, too, which chooses mitmproxy's layers.

    ``hosts`` are those that may be looked into: what goes to another passes as it is, and ``left_out`` is given which.
    ``trouble`` is given why a server is not reached, ``rejection`` why a request is answered by us for another reason.
    """

    def __init__(
        self,
        tap: ForwardTap,
        hosts: Hosts,
        handshakes: Handshakes,
        *,
        left_out: Callable[[str], object],
        trouble: Callable[[str], object],
        rejection: Callable[[str], bool],
    ) -> None:
        super().__init__()
        self._trouble = trouble
        self._rejection = rejection
        self.astray: dict[int, bool] = {}
        """Requests that are to be refused, by their identity."""
        self._tap = tap
        self._hosts = hosts
        self._handshakes = handshakes
        self._left_out = left_out
        self._next = NextLayer()

    # -- hooks of mitmproxy ------------------------------------------------------------------------------------------

    def configure(self, updated: set[str]) -> None:
        """Read the options about hosts."""
        self._next.configure(updated)  # type: ignore[no-untyped-call]

    def next_layer(self, next_layer: layer.NextLayer) -> None:
        """Choose as mitmproxy does, but for HTTP our own, and nothing for what is not to be looked into."""
        context = next_layer.context
        if not self._may_look(next_layer):
            self._pass(context)
            next_layer.layer = TCPLayer(context, ignore=True)
            return
        self._next.next_layer(next_layer)
        chosen = next_layer.layer
        if isinstance(chosen, ClientTLSLayer) and type(chosen.child_layer) is HttpLayer:  # a proxy reached with TLS
            chosen.child_layer = self._ours(context, chosen.child_layer)
        elif type(chosen) is HttpLayer:
            next_layer.layer = self._ours(context, chosen)

    def tls_clienthello(self, data: ClientHelloData) -> None:
        """Leave TLS alone where neither the address nor the name that is asked for may be looked into."""
        address = data.context.server.address
        if address is None or self._hosts.has(*address[:2]):
            return
        if not (data.client_hello.sni and self._hosts.has(data.client_hello.sni, address[1])):
            self._pass(data.context)
            data.ignore_connection = True

    def http_connect_error(self, flow: HTTPFlow) -> None:
        """There is no tunnel: say so in our words."""
        told = "" if flow.response is None else flow.response.get_text(strict=False) or ""
        if OURSELVES in told:
            flow.response = as_response(self.reject(flow.request))
            return
        told = told.removeprefix(_ERRORS).partition(": ")[2].partition(_HINT)[0]
        answer = not_connected(upstream_of(flow.request), told)
        self._trouble(answer.error)
        if self._hosts.has(flow.request.host, flow.request.port):
            self._tap.remark(f"a client that asked for a tunnel was answered {answer.status}: {answer.error}")
        flow.response = as_response(answer.to(head_of(flow.request)))

    def requestheaders(self, flow: HTTPFlow) -> None:
        """Refuse a request that takes us for a server; the tap has heard of it before."""
        if self.astray.pop(id(flow.request), None):
            self._tell_rejection(NO_SERVER, is_known=True)
            self.answer(self._tap, flow, NO_SERVER, REFUSED)
            flow.kill()  # type: ignore[no-untyped-call]

    def client_disconnected(self, client: Client) -> None:
        """A client's connection is over."""
        self.forget(client)
        if self._tap.detours is not None:
            self._tap.detours.forget(client.id)

    # -- for the tap -------------------------------------------------------------------------------------------------

    def explains(self, flow: HTTPFlow) -> bool:
        """Answer a request that has failed, if that is for us to do; False if one side simply hung up."""
        if self.has_answered(flow.request):
            return True
        if is_for_us(flow.error):
            self._tell_rejection(NO_SERVER, is_known=True)
            self.answer(self._tap, flow, NO_SERVER, REFUSED)
            return True
        answer = explain(flow, upstream_of(flow.request), self._handshakes)
        if answer is None:
            return False
        # Of alerts and failures of TLS others tell.
        self.note(flow, answer, is_told=sent_alert(flow) or self._handshakes.failure(flow) is not None)
        self.answer(self._tap, flow, answer, ANSWERED)
        return True

    def note(self, flow: HTTPFlow, answer: Answer, *, is_told: bool) -> None:
        """Remember why a request was answered by us."""
        if answer.status == BAD_REQUEST or answer is NO_SERVER:
            self._tell_rejection(answer, is_known=True)
        elif not is_told:
            flow.metadata[_WHY] = answer.error

    def tell_why(self, flow: HTTPFlow) -> None:
        """Tell why the server of a recorded request was not reached, if it was not."""
        self._trouble(flow.metadata.pop(_WHY, ""))

    # -- see `mcpsniff.proxy.mitm.client_side.Desk` ------------------------------------------------------------------

    def screen(self, listen: tuple[str, int], request: Request, head: bytes) -> None:
        """Let every request pass."""

    def reject(self, request: Request) -> bytes:
        """Return the answer to a request for us that no addon has heard of."""
        self._tap.rejected += 1
        self._tell_rejection(NO_SERVER)
        return NO_SERVER.to(head_of(request))

    def screen_front(self, request: Request) -> None:
        """Note a request to the proxy itself that names no server."""
        self.astray.pop(id(request), None)  # of one that was here before
        if not request.authority:
            self.astray[id(request)] = True

    def stray(self, why: str) -> None:
        """See `Desk`; it may be anything, so only why it is turned away is written down."""
        self._tap.rejected += 1
        self._tell_rejection(Answer(BAD_REQUEST, why))

    # -- inside ------------------------------------------------------------------------------------------------------

    def _tell_rejection(self, answer: Answer, *, is_known: bool = False) -> None:
        """Tell why we have answered in the place of a server, once, and in the capture if no addon knows of it.

        The sentence quotes nothing of what the client has said.
        """
        text = f"a client was answered {answer.status}: {answer.error}"
        if self._rejection(text) and not is_known:
            self._tap.remark(text)

    def _ours(self, context: Context, theirs: HttpLayer) -> "ForwardHttp":
        """Put our layer in the place of mitmproxy's, which has not begun."""
        context.layers.remove(theirs)
        desk = _Front(self) if theirs.mode is HTTPMode.regular else self
        if self._tap.detours is None:
            return ForwardHttp(context, theirs.mode, desk)
        from mcpsniff.proxy.mitm.detour_side import DetouredHttp

        return DetouredHttp(context, theirs.mode, desk, self._tap.detours)

    def _may_look(self, next_layer: layer.NextLayer) -> bool:
        """False if neither the address nor anything else that may come can be one that we may look into."""
        context = next_layer.context
        address = context.server.address
        if address is None or self._hosts.has(*address[:2]) or isinstance(context.layers[-1], ClientTLSLayer):
            return True
        data = next_layer.data_client()  # type: ignore[no-untyped-call]
        greeting = next_layer.data_server()  # type: ignore[no-untyped-call]
        if greeting or not starts_like_tls_record(data):
            return False
        try:
            parse_client_hello(data)
        except ValueError:
            return False
        return True  # `tls_clienthello` decides

    def _pass(self, context: Context) -> None:
        if context.server.address is not None:
            self._left_out(authority(*context.server.address[:2], 0))


_BARE_IPV6: Final = re.compile(rb"([A-Z]+ http://)([0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*):([0-9]{1,5})(/.*)", re.DOTALL)
"""A start line for a proxy with an IPv6 address that has no brackets, and a port."""


class FrontSide(ClientSide):
    """HTTP/1 with a client that has not asked for a tunnel."""

    def mended(self, lines: list[bytes]) -> list[bytes]:
        """Give an IPv6 address the brackets that httpx leaves out, if `Host` has the same with them.

        Without that, ``http://::1:80/`` might mean another port (RFC 3986, 3.2.2).
        """
        found = _BARE_IPV6.fullmatch(lines[0]) if lines else None
        if found is None:
            return lines
        place = b"[%b]:%b" % (found[2], found[3])
        fields = (line.partition(b":") for line in lines[1:])
        hosts = [value.strip(b" \t") for name, _, value in fields if name.lower() == b"host"]
        return [found[1] + place + found[4], *lines[1:]] if hosts == [place] else lines


def upstream_of(request: Request) -> Upstream:
    """Return where a request goes; one for a tunnel does not tell what will be spoken in it."""
    scheme = request.scheme or ("http" if request.port == 80 else "https")
    origin = f"{scheme}://{authority(request.host, request.port, 443 if scheme == 'https' else 80)}"
    try:
        return parse_upstream(origin)
    except UsageError:  # no host that could exist
        return Upstream(None, request.host, request.port, "", scheme)


class _Front:
    """The desk of those who have not asked for a tunnel: they have to say which server they want."""

    def __init__(self, desk: ForwardDesk) -> None:
        self._desk = desk
        self.late = desk.late
        self.stray = desk.stray

    def screen(self, listen: tuple[str, int], request: Request, head: bytes) -> None:  # noqa: ARG002 - see `Desk`
        """See `Desk`."""
        self._desk.screen_front(request)

    def take_answer(self, request: Request | None) -> bytes | None:
        """See `Desk`; a request that names no server at all ends before an addon hears of it."""
        answer = self._desk.take_answer(request)
        if answer is None and request is not None and self._desk.astray.pop(id(request), False):
            answer = self._desk.reject(request)
        return answer


class ForwardHttp(ReverseHttp):
    """HTTP for the clients of a forward proxy: ``mode`` is transparent inside a tunnel."""

    def __init__(self, context: Context, mode: HTTPMode, desk: Desk) -> None:
        super().__init__(context, desk)
        self.mode = mode

    def http1_side(self, context: Context) -> ClientSide:
        """See `ReverseHttp`."""
        front = self.mode is HTTPMode.regular
        return FrontSide(context, self._desk) if front else super().http1_side(context)

    def _handle_event(self, event: events.Event) -> layer.CommandGenerator[None]:
        is_of_server = isinstance(event, events.ConnectionClosed) and event.connection is not self.context.client
        if self.mode is HTTPMode.regular and is_of_server:
            # Other servers may be asked on the same connection.
            yield from HttpLayer._handle_event(self, event)
        else:
            yield from super()._handle_event(event)
