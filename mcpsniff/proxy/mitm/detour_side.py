"""HTTP of a forward proxy in edit mode: exchanges that are MCP are sent through the relay (`detour`)."""

from mitmproxy.connection import ConnectionState
from mitmproxy.http import HTTPFlow, Request
from mitmproxy.proxy import events, layer
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers.http import (
    GetHttpConnection,
    GetHttpConnectionCompleted,
    HttpClient,
    HTTPMode,
    HttpStream,
    SendHttp,
)
from mitmproxy.proxy.layers.http._events import (
    ErrorCode,
    RequestData,
    RequestEndOfMessage,
    RequestHeaders,
    RequestTrailers,
    ResponseProtocolError,
)

from mcpsniff.proxy.mitm.client_side import Desk, Stream
from mcpsniff.proxy.mitm.detour import Detours, Place
from mcpsniff.proxy.mitm.forward_side import ForwardHttp


class DetouredStream(Stream):
    """One exchange. Its request waits until it is known whether it is MCP, if its body can tell."""

    flow: HTTPFlow

    def __init__(self, context: Context, stream_id: int, desk: Desk, detours: Detours) -> None:
        super().__init__(context, stream_id, desk)
        self._detours = detours
        self._waiting: list[bytes] = []

    def start_request_stream(self) -> layer.CommandGenerator[None]:
        """See `HttpStream`."""
        if self._detours.is_undecided(self.flow):
            self.client_state = self.state_judge_request_body
        else:
            yield from super().start_request_stream()

    def state_judge_request_body(self, event: events.Event) -> layer.CommandGenerator[None]:
        """Keep the body until it is known where it goes: `HELD` bytes of it at most."""
        if isinstance(event, RequestTrailers):
            self.flow.request.trailers = event.trailers
            return
        if isinstance(event, RequestData):
            noted = self.flow.request.stream
            if callable(noted):
                noted(event.data)
            self._waiting.append(event.data)
            if self._detours.is_undecided(self.flow):
                return
        else:
            self._detours.decide(self.flow)
        yield from super().start_request_stream()
        waiting, self._waiting = self._waiting, []
        if self.client_state == self.state_errored:
            return
        for data in waiting:
            yield SendHttp(RequestData(self.stream_id, data), self.context.server)
        if isinstance(event, RequestEndOfMessage):
            yield from self.client_state(event)

    def make_server_connection(self) -> layer.CommandGenerator[bool]:
        """See `HttpStream`."""
        place = self._detours.place(self.flow)
        if place is None:
            return (yield from super().make_server_connection())
        connection, err = yield GetHttpConnection(place, False, None)
        if err:
            failed = ResponseProtocolError(self.stream_id, err, ErrorCode.CONNECT_FAILED)
            yield from self.handle_protocol_error(failed)
            return False
        self.context.server = self.flow.server_conn = connection
        return True


class DetouredHttp(ForwardHttp):
    """HTTP with one client."""

    def __init__(self, context: Context, mode: HTTPMode, desk: Desk, detours: Detours) -> None:
        super().__init__(context, mode, desk)
        self._detours = detours

    def make_stream(self, stream_id: int) -> layer.CommandGenerator[None]:
        """See `HttpLayer`."""
        self._is_used = True
        self.streams[stream_id] = DetouredStream(self.context.fork(), stream_id, self._desk, self._detours)
        yield from self.event_to_child(self.streams[stream_id], events.Start())

    def event_to_child(self, child: layer.Layer | HttpStream, event: events.Event) -> layer.CommandGenerator[None]:
        """See `HttpLayer`. A request of HTTP/2 is one of HTTP/1.1 to the relay, whose connection goes on after it."""
        if isinstance(event, RequestHeaders) and isinstance(child, HttpClient):
            is_later = event.request.is_http2 or event.request.is_http3
            if is_later and isinstance(child.context.server.address, Place):
                event = RequestHeaders(event.stream_id, as_http1(event.request, event.end_stream), event.end_stream)
        yield from super().event_to_child(child, event)

    def get_connection(self, event: GetHttpConnection, *, reuse: bool = True) -> layer.CommandGenerator[None]:
        """See `HttpLayer`, which would have a new one for each request of HTTP/2 to a server of HTTP/1."""
        if isinstance(event.address, Place) and self.context.client.alpn == b"h2":
            busy = [stream.context.server for stream in self.streams.values()]
            for connection in self.connections:
                is_open = connection.state is ConnectionState.OPEN and connection not in busy
                if is_open and event.connection_spec_matches(connection):
                    stream = self.command_sources.pop(event)
                    yield from self.event_to_child(stream, GetHttpConnectionCompleted(event, (connection, None)))
                    return
            reuse = False
        yield from super().get_connection(event, reuse=reuse)


def as_http1(request: Request, is_over: bool) -> Request:
    """Return a request of HTTP/2 as one of HTTP/1.1. ``is_over``: it has no body."""
    converted = request.copy()
    converted.http_version = "HTTP/1.1"
    headers = converted.headers
    if "host" not in headers and converted.authority:
        headers.insert(0, "Host", converted.authority)
    converted.authority = ""
    cookies = headers.get_all("cookie")
    if len(cookies) > 1:  # RFC 9113 section 8.2.3
        headers["Cookie"] = "; ".join(cookies)
    if not is_over and "content-length" not in headers:
        headers["Transfer-Encoding"] = "chunked"
    return converted
