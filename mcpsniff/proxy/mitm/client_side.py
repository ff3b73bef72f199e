"""The side of mitmproxy's HTTP layer that clients of a reverse proxy talk to, with our answers in the place of its own.

mitmproxy makes pages of errors up as if the server had sent them. Here a server that hangs up is passed on as that, and
where we have to answer ourselves, the client reads whose answer it is, and what the matter is.
"""

import re
from collections.abc import Callable
from typing import Final, Protocol

from h11._receivebuffer import ReceiveBuffer
from mitmproxy.connection import ConnectionState
from mitmproxy.http import HTTPFlow, Request
from mitmproxy.net.http import http1
from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers.http import HttpLayer, HTTPMode, HttpStream
from mitmproxy.proxy.layers.http._base import HttpEvent, ReceiveHttp
from mitmproxy.proxy.layers.http._events import (
    ErrorCode,
    RequestData,
    RequestEndOfMessage,
    RequestHeaders,
    ResponseData,
    ResponseEndOfMessage,
    ResponseHeaders,
    ResponseProtocolError,
    ResponseTrailers,
)
from mitmproxy.proxy.layers.http._http1 import Http1Server
from mitmproxy.proxy.layers.http._http2 import Http2Server

from mcpsniff.proxy.answers import Answer, no_http
from mcpsniff.proxy.ends import PATIENCE
from mcpsniff.proxy.mitm.desk import as_response
from mcpsniff.proxy.mitm.framing import body_reader, with_trailers
from mcpsniff.proxy.mitm.words import flaw

LONGEST_HEAD: Final = 1 << 20
"""Bytes of a head, beyond which it is taken for something else."""
_PLAUSIBLE: Final = re.compile(rb"[\r\n]*(?:\Z|[!#$%&'*+.^_`|~0-9A-Za-z-])")
"""How a request begins; a TLS client that comes to the wrong port begins otherwise, and then waits."""


class Desk(Protocol):
    """Who knows what is to be said to clients."""

    def screen(self, listen: tuple[str, int], request: Request, head: bytes) -> None:
        """A request came in at ``listen``, and mitmproxy's addons are about to hear of it."""

    def take_answer(self, request: Request | None) -> bytes | None:
        """Return the answer of ours that a request is to get, once."""

    def late(self, request: Request, data: bytes) -> None:
        """More of the body of a request that is answered by us; empty: it is over."""

    def stray(self, why: str) -> None:
        """What a client says is no request."""


class HeadBuffer(ReceiveBuffer):
    """Keeps the bytes of the head that was read last."""

    head = b""

    def maybe_extract_lines(self) -> list[bytearray] | None:
        """See h11."""
        before = bytes(self._data) if len(self._data) <= LONGEST_HEAD else b""
        lines: list[bytearray] | None = super().maybe_extract_lines()
        if lines is not None:
            self.head = before[: len(before) - len(self._data)]
        return lines


class ClientSide(Http1Server):
    """HTTP/1 with one client, which is told what ``desk`` says."""

    def __init__(self, context: Context, desk: Desk) -> None:
        super().__init__(context)
        self.buf: HeadBuffer = HeadBuffer()
        self._desk = desk
        self._has_body = False

    def read_headers(self, event: events.ConnectionEvent) -> layer.CommandGenerator[None]:
        """Read the head of a request."""
        if not isinstance(event, events.DataReceived):
            yield from super().read_headers(event)
            return
        lines = self.buf.maybe_extract_lines()
        if not lines:
            if not _PLAUSIBLE.match(bytes(self.buf)[:64]) or len(self.buf) > LONGEST_HEAD:
                yield from self._turn_away(no_http(bytes(self.buf)[:2]))
            return
        try:
            request = http1.read_request_head(self.mended([bytes(line) for line in lines]))
            size = http1.expected_http_body_size(request)
            self._desk.screen(self.context.client.sockname[:2], request, self.buf.head)
        except ValueError as error:
            what = flaw(str(error), map(bytes, lines))
            yield from self._turn_away(f"what the client sends cannot be read as HTTP/1.1 ({what})")
            return
        self.request, self._has_body = request, True
        self.body_reader = body_reader(size)
        yield ReceiveHttp(RequestHeaders(self.stream_id, request, size == 0))
        if self.state == self.read_headers:
            self.state = self.read_body
        yield from self.state(event)

    def mended(self, lines: list[bytes]) -> list[bytes]:
        """Return the lines of a head as they are to be read."""
        return lines

    def send(self, event: HttpEvent) -> layer.CommandGenerator[None]:
        """Tell the client something, but no trailers."""
        if not isinstance(event, ResponseProtocolError):
            if not isinstance(event, ResponseTrailers):
                yield from super().send(event)
            return
        if not self.conn.state & ConnectionState.CAN_WRITE:
            return
        answer = None if self.response else self._desk.take_answer(self.request)
        if answer is None:
            yield commands.CloseConnection(self.conn)
        else:
            yield from self._say_last(answer)

    def read_body(self, event: events.Event) -> layer.CommandGenerator[None]:
        """Read a body, and its trailers."""
        yield from with_trailers(self, super().read_body(event))

    def _turn_away(self, why: str) -> layer.CommandGenerator[None]:
        """Answer what is no request."""
        self._desk.stray(why)
        self._has_body = False
        yield from self._say_last(Answer(400, why).to(None))

    def _say_last(self, answer: bytes) -> layer.CommandGenerator[None]:
        """Give an answer of ours, and let the client read it: a close with unread bytes would take it away again."""
        yield commands.SendData(self.conn, answer)
        if not self.conn.tls:  # within TLS mitmproxy has no half-close: in a tunnel it would close all
            yield commands.CloseTcpConnection(self.conn, half_close=True)
        yield commands.RequestWakeup(PATIENCE)
        self.state = self._leave
        yield from self._read_late(events.DataReceived(self.conn, b""))

    def _leave(self, event: events.Event) -> layer.CommandGenerator[None]:
        """Take what still comes, for a while."""
        if isinstance(event, events.DataReceived):
            yield from self._read_late(event)
            return
        yield from self._close()

    def _close(self) -> layer.CommandGenerator[None]:
        self.state = self.done
        yield commands.CloseConnection(self.conn)

    def _read_late(self, event: events.DataReceived) -> layer.CommandGenerator[None]:
        """Read on in the body of a request that is answered already, for the record."""
        if self._has_body and self.request is not None and not self.request_done:
            yield from self._read_late_body(self.request, event)
        else:
            self.buf.maybe_extract_at_most(len(self.buf))
        self.state = self._leave
        if self.request_done and self.conn.tls:
            yield from self._close()

    def _read_late_body(self, request: Request, event: events.Event) -> layer.CommandGenerator[None]:
        for command in super().read_body(event):
            if not isinstance(command, ReceiveHttp):
                yield command
            elif isinstance(command.event, RequestData):
                self._desk.late(request, command.event.data)
            elif isinstance(command.event, RequestEndOfMessage):
                self._desk.late(request, b"")


class Http2ClientSide(Http2Server):
    """HTTP/2 with one client; ``request_of`` gives the request of a stream, while that lasts."""

    def __init__(self, context: Context, desk: Desk, request_of: Callable[[int], Request | None]) -> None:
        super().__init__(context)
        self._desk = desk
        self._request_of = request_of

    def _handle_event(self, event: events.Event) -> layer.CommandGenerator[None]:
        if not isinstance(event, ResponseProtocolError):
            yield from super()._handle_event(event)
            return
        answer = self._desk.take_answer(self._request_of(event.stream_id))
        if answer is None or not self.is_open_for_us(event.stream_id):
            # One that has no status for it is reset by mitmproxy, as the server has done; others it would answer.
            if event.code.http_status_code() is not None:
                event.code = ErrorCode.KILL
            yield from super()._handle_event(event)
            return
        response = as_response(answer)
        del response.headers["connection"]  # which HTTP/2 does not have
        for said in (
            ResponseHeaders(event.stream_id, response),
            ResponseData(event.stream_id, response.raw_content or b""),
            ResponseEndOfMessage(event.stream_id),
        ):
            yield from super()._handle_event(said)


class Stream(HttpStream):
    """One exchange, which goes on reading its request after it was answered by ``desk``."""

    def __init__(self, context: Context, stream_id: int, desk: Desk) -> None:
        super().__init__(context, stream_id)
        self._desk = desk

    def state_errored(self, event: events.Event) -> layer.CommandGenerator[None]:
        """Take what comes after an answer of ours."""
        flow: HTTPFlow | None = getattr(self, "flow", None)
        if flow is not None:
            if isinstance(event, RequestData):
                self._desk.late(flow.request, event.data)
            elif isinstance(event, RequestEndOfMessage):
                self._desk.late(flow.request, b"")
        yield from ()


class ReverseHttp(HttpLayer):
    """HTTP for the clients of a reverse proxy."""

    def __init__(self, context: Context, desk: Desk) -> None:
        super().__init__(context, HTTPMode.transparent)
        self._desk = desk
        self._is_used = False

    def _handle_event(self, event: events.Event) -> layer.CommandGenerator[None]:
        client = self.context.client
        if isinstance(event, events.Start):
            context = self.context.fork()
            self.connections[client] = (
                Http2ClientSide(context, self._desk, self._request_of)
                if client.alpn == b"h2"
                else self.http1_side(context)
            )
        yield from super()._handle_event(event)
        is_of_server = isinstance(event, events.ConnectionClosed) and event.connection is not client
        is_idle = self._is_used and not self.streams and client.alpn != b"h2"
        if is_of_server and is_idle and client.state & ConnectionState.CAN_WRITE:
            # An idle connection that the server ends is over for the client, too, as it would be without us; one that
            # was not used yet may have ended for a reason that its first request is to be answered with.
            yield commands.CloseConnection(client)

    def http1_side(self, context: Context) -> ClientSide:
        """Return what speaks HTTP/1 with the client."""
        return ClientSide(context, self._desk)

    def make_stream(self, stream_id: int) -> layer.CommandGenerator[None]:
        """See `HttpLayer`."""
        self._is_used = True
        self.streams[stream_id] = Stream(self.context.fork(), stream_id, self._desk)
        yield from self.event_to_child(self.streams[stream_id], events.Start())

    def _request_of(self, stream_id: int) -> Request | None:
        flow: HTTPFlow | None = getattr(self.streams.get(stream_id), "flow", None)
        return None if flow is None else flow.request
