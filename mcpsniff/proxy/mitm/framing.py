"""HTTP/1 that mitmproxy cannot read: trailers let its exchanges hang, and interim responses pass for the responses.

Trailers are left out, as intermediaries may (RFC 9110 section 6.5.1), unless the other side speaks HTTP/2. Interim
responses pass (RFC 9110 section 15.2), but for those to clients of HTTP/2, which do without.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import h11
from h11._readers import ChunkedReader
from h11._receivebuffer import ReceiveBuffer
from mitmproxy.connection import ConnectionState
from mitmproxy.http import Headers
from mitmproxy.proxy import commands, events, layer, layers
from mitmproxy.proxy.layers.http import _http1
from mitmproxy.proxy.layers.http._base import HttpEvent, ReceiveHttp
from mitmproxy.proxy.layers.http._events import (
    RequestEndOfMessage,
    RequestTrailers,
    ResponseEndOfMessage,
    ResponseHeaders,
    ResponseTrailers,
)
from mitmproxy.proxy.layers.tls import TLSLayer
from OpenSSL import SSL

from mcpsniff.proxy.mitm.http2_side import Http2ServerSide
from mcpsniff.proxy.mitm.remarks import add_interim

_INTERIM: Final = re.compile(rb"(?s)HTTP/1\.[01] 1(?!01)[0-9][0-9][ \r\n].*?\r?\n\r?\n")
_BEGINS: Final = (b"HTTP/1.1 1", b"HTTP/1.0 1")
_receive_data: Final = TLSLayer.receive_data
_make_body_reader: Final = _http1.make_body_reader


class NoTrailers(ChunkedReader):
    """Reads a body in chunks, and keeps trailers to itself."""

    trailers: Any = ()

    def __call__(self, buf: ReceiveBuffer) -> Any:
        """See h11."""
        event = super().__call__(buf)
        if not isinstance(event, h11.EndOfMessage):
            return event
        self.trailers = list(event.headers) or self.trailers  # the reader calls itself
        return h11.EndOfMessage()


class ServerSide(_http1.Http1Client):
    """HTTP/1 with one server, whose interim responses pass."""

    def read_headers(self, event: events.ConnectionEvent) -> layer.CommandGenerator[None]:
        """Read the head of a response."""
        if isinstance(event, events.DataReceived) and self.request is not None:
            while self.buf._data.startswith(_BEGINS) and (interim := _INTERIM.match(self.buf._data)):
                head = bytes(self.buf.maybe_extract_at_most(interim.end()) or b"")
                self._interim = [*self._interim, int(head[9:12])]
                if self._passes_interim:
                    yield commands.SendData(self.context.client, head)
        passed = self._passes_interim
        for command in super().read_headers(event):
            if isinstance(command, ReceiveHttp) and isinstance(command.event, ResponseHeaders):
                add_interim(command.event.response, self._interim, passed=passed)
                self._interim = []
            yield command

    def read_body(self, event: events.Event) -> layer.CommandGenerator[None]:
        """Read a body, and its trailers."""
        yield from with_trailers(self, super().read_body(event))

    def send(self, event: HttpEvent) -> layer.CommandGenerator[None]:
        """Tell the server something."""
        if not isinstance(event, RequestTrailers):
            yield from super().send(event)

    @property
    def _passes_interim(self) -> bool:
        is_http1 = self.request is not None and self.request.http_version == "HTTP/1.1"
        return is_http1 and self.context.client.alpn != b"h2"

    _interim: Sequence[int] = ()


def with_trailers(side: _http1.Http1Connection, given: Iterable[Any]) -> layer.CommandGenerator[None]:
    """Pass commands on that come of reading a body, and the trailers that were read with it."""
    for command in given:
        if isinstance(command, ReceiveHttp) and (fields := getattr(side.body_reader, "trailers", ())):
            end, number = command.event, command.event.stream_id
            if isinstance(end, RequestEndOfMessage):
                yield ReceiveHttp(RequestTrailers(number, Headers(fields)))
            elif isinstance(end, ResponseEndOfMessage):
                yield ReceiveHttp(ResponseTrailers(number, Headers(fields)))
        yield command


def body_reader(size: int | None) -> Any:
    """Return what reads a body of ``size`` bytes; None: in chunks, -1: up to the end of the connection."""
    return NoTrailers() if size is None else _make_body_reader(size)


def receive_data(side: TLSLayer, data: bytes) -> layer.CommandGenerator[None]:
    """Take bytes of TLS; an alert that ends it is an end for who waits, too. mitmproxy would let that one wait on."""
    yield from _receive_data(side, data)
    if side.tls.get_shutdown() & SSL.RECEIVED_SHUTDOWN and side.conn.state & ConnectionState.CAN_READ:
        side.conn.state &= ~ConnectionState.CAN_READ
        yield from side.event_to_child(events.ConnectionClosed(side.conn))


def install() -> None:
    """Let mitmproxy's layers use this, in the whole process."""
    TLSLayer.receive_data = receive_data  # type: ignore[method-assign,assignment]
    vars(_http1)["make_body_reader"] = body_reader
    vars(layers.http)["Http1Client"] = ServerSide
    vars(layers.http)["Http2Client"] = Http2ServerSide
