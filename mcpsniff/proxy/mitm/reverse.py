"""`mcpsniff http` in front of servers that speak TLS: one engine for all of them, whose addon this is."""

import asyncio
import socket
from collections.abc import Mapping, Sequence
from typing import Any, Final

from mitmproxy.connection import Client
from mitmproxy.http import HTTPFlow, Request
from mitmproxy.proxy.layer import NextLayer
from mitmproxy.proxy.layers.modes import ReverseProxy
from mitmproxy.proxy.server_hooks import ServerConnectionHookData

from mcpsniff.errors import UsageError
from mcpsniff.proxy.answers import Answer
from mcpsniff.proxy.endpoint import EVENT_STREAM
from mcpsniff.proxy.ends import REFUSED
from mcpsniff.proxy.farewell import ANSWERED
from mcpsniff.proxy.mitm.body import EndpointBody
from mcpsniff.proxy.mitm.client_side import ReverseHttp
from mcpsniff.proxy.mitm.desk import Answers, explain, read_head
from mcpsniff.proxy.mitm.engine import Engine
from mcpsniff.proxy.mitm.exchange import RESPONSE
from mcpsniff.proxy.mitm.handshakes import Address, Failure, Handshakes
from mcpsniff.proxy.mitm.place import Place
from mcpsniff.proxy.mitm.upstream import check_authorities
from mcpsniff.proxy.say import say

ALPN: Final = (b"h2", b"http/1.1")
"""What is offered to servers; they choose."""
TRIES: Final = 5
"""Free ports that somebody else may take before we do."""


def serve(places: Sequence[Place], options: Mapping[str, Any]) -> Engine:
    """Begin to listen for clients of all ``places``; ``options`` are those of the command.

    Raises UsageError.
    """
    authorities = options["upstream_ca"]
    if authorities is not None:
        authorities = check_authorities(authorities)
    for tried in range(TRIES):
        wanted = [place.bound for place in places]
        for place in places:
            host, port = place.bound
            place.bound = (host, port or _free_port(host))
        reverse = Reverse(places)
        engine = Engine(
            [reverse, reverse.handshakes],
            modes=[place.mode for place in places],
            options={"ssl_insecure": options["insecure"]},
            authorities=authorities,
        )
        reverse.handshakes.tls = engine.tls
        try:
            engine.start()
        except UsageError:
            engine.stop()
            for place, bound in zip(places, wanted, strict=True):
                place.bound = bound
            if tried == TRIES - 1 or all(port for _, port in wanted):
                raise
        else:
            for place in places:
                place.engine = engine
            return engine
    raise AssertionError


class Reverse:
    """mitmproxy's addon for ``places``."""

    def __init__(self, places: Sequence[Place]) -> None:
        self.handshakes = Handshakes(self._stalled, self._no_tls)
        """An addon, too."""
        self._places = {place.mode: place for place in places}
        self._desks = {mode: Counter(place) for mode, place in self._places.items()}
        self._told: set[str] = set()

    # -- hooks of mitmproxy ------------------------------------------------------------------------------------------

    async def client_connected(self, client: Client) -> None:
        """Let a client wait until what it says is recorded."""
        place = self._places[client.proxy_mode.full_spec]
        while place.tap is None:
            await asyncio.sleep(0.01)

    def next_layer(self, next_layer: NextLayer) -> None:
        """Speak HTTP with clients, and TLS with the server."""
        context = next_layer.context
        if next_layer.layer is None and isinstance(context.layers[-1], ReverseProxy):
            address = context.server.address
            context.server.tls = True
            context.server.sni = address[0] if address else None
            next_layer.layer = ReverseHttp(context, self._desks[context.client.proxy_mode.full_spec])

    def server_connect(self, data: ServerConnectionHookData) -> None:
        """Offer HTTP/2, too, whatever the client speaks."""
        data.server.alpn_offers = list(ALPN)

    def requestheaders(self, flow: HTTPFlow) -> None:
        """Record a request, and refuse it, or let it pass with the right `Host`."""
        place, desk = self._of(flow)
        if place.tap is None:
            return
        hosts = [value for name, value in flow.request.headers.fields if name.lower() == b"host"]
        host = None if place.host is None else place.host.encode("ascii")
        if host is None or hosts == [host]:
            place.tap.requestheaders(flow)
        else:
            place.tap.requestheaders(flow, host=place.host)
        refusal = desk.refusals.pop(id(flow.request), None)
        if refusal is not None:
            desk.answer(place.tap, flow, refusal, REFUSED)
            flow.kill()  # type: ignore[no-untyped-call]
        elif host is not None:
            fields = [(name, host if name.lower() == b"host" else value) for name, value in flow.request.headers.fields]
            flow.request.headers.fields = tuple(fields)

    def request(self, flow: HTTPFlow) -> None:
        """A request is over."""
        place, _ = self._of(flow)
        if place.tap is not None:
            place.tap.request(flow)

    def responseheaders(self, flow: HTTPFlow) -> None:
        """Record a response, and look for an endpoint in it that would lead the client past us."""
        place, _ = self._of(flow)
        tap, response = place.tap, flow.response
        if tap is None or response is None:
            return
        tap.responseheaders(flow)
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        coding = response.headers.get("content-encoding", "identity").strip().lower()
        is_stream = kind == EVENT_STREAM and coding == "identity" and response.status_code == 200
        if is_stream and flow.request.method == "GET" and callable(response.stream):
            response.stream = EndpointBody(
                place.origins,
                response.stream,
                lambda rewrite: tap.put(flow, RESPONSE, "rewrite", {**rewrite, "by": "mcpsniff"}),
                lambda error: tap.fail(None, RESPONSE, 0, error),
            )
        give_an_end(flow)

    def response(self, flow: HTTPFlow) -> None:
        """A response is over."""
        place, _ = self._of(flow)
        if place.tap is not None:
            place.tap.response(flow)

    def error(self, flow: HTTPFlow) -> None:
        """An exchange has failed: say why if nobody has said anything yet, else pass on who hung up."""
        place, desk = self._of(flow)
        if place.tap is None or desk.has_answered(flow.request):
            return
        answer = explain(flow, place.upstream, self.handshakes)
        if answer is None:
            place.tap.error(flow)
        else:
            desk.answer(place.tap, flow, answer, ANSWERED)

    def client_disconnected(self, client: Client) -> None:
        """A client's connection is over."""
        place = self._places[client.proxy_mode.full_spec]
        self._desks[client.proxy_mode.full_spec].forget(client)
        if place.tap is not None:
            place.tap.client_disconnected(client)

    # -- inside ------------------------------------------------------------------------------------------------------

    def _of(self, flow: HTTPFlow) -> "tuple[Place, Counter]":
        mode = flow.client_conn.proxy_mode.full_spec
        return self._places[mode], self._desks[mode]

    def _stalled(self, client: Client, _: Address, text: str) -> None:
        """The server lets a client wait: tell of it, and in the capture, too."""
        place = self._places[client.proxy_mode.full_spec]
        say(text)
        if place.tap is not None:
            place.tap.remark(text)

    def _no_tls(self, client: Client, _: Address, failure: Failure) -> None:
        """Say once why the server is not reached; its clients are told each time."""
        upstream = self._places[client.proxy_mode.full_spec].upstream
        text = failure.answer(upstream, upstream.target.partition("?")[0]).error
        if text not in self._told:
            self._told.add(text)
            say(text)


class Counter(Answers):
    """Where the clients of one place get our answers: see `mcpsniff.proxy.mitm.client_side.Desk`."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.refusals: dict[int, Answer] = {}
        """Our answers to requests that are not known to mitmproxy's addons yet, by their identity."""
        self._place = place

    def screen(self, listen: tuple[str, int], request: Request, head: bytes) -> None:
        """See `Desk`."""
        self.refusals.pop(id(request), None)  # of one that was here before
        door = self._place.door(listen)
        refusal = None if door is None else door.refusal(read_head(head))
        if refusal is not None:
            self.refusals[id(request)] = refusal

    def stray(self, why: str) -> None:
        """See `Desk`."""
        if self._place.tap is not None:
            self._place.tap.remark(f"a client is answered 400: {why}")


def give_an_end(flow: HTTPFlow) -> None:
    """Give a response of HTTP/2 that does not tell its length an end that the client can see, and miss.

    Otherwise only the end of the connection would be its end, and a stream that breaks off would seem whole.
    """
    response, request = flow.response, flow.request
    if response is None or not response.is_http2 or request.http_version != "HTTP/1.1":
        return
    has_body = request.method != "HEAD" and response.status_code not in {204, 304} and response.status_code >= 200
    if has_body and "content-length" not in response.headers:
        response.headers.fields = (*response.headers.fields, (b"Transfer-Encoding", b"chunked"))


def _free_port(host: str) -> int:
    """Return a port at which nobody listens. Raises UsageError where none can be listened at."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind((host, 0))
            return int(probe.getsockname()[1])
    except OSError as error:
        from mcpsniff.proxy.portowner import cannot_listen

        raise UsageError(cannot_listen(host, 0, error)) from None
