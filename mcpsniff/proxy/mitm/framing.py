"""HTTP/1 that mitmproxy cannot read: trailers let its exchanges hang, and interim responses pass for the responses.

Trailers are left out, as intermediaries may (RFC 9110 section 6.5.1). Interim responses pass (RFC 9110 section 15.2),
but for those to clients of HTTP/2, which do without.
"""

import re
from typing import Any, Final

import h11
from h11._readers import ChunkedReader
from h11._receivebuffer import ReceiveBuffer
from mitmproxy.proxy import commands, events, layer, layers
from mitmproxy.proxy.layers.http import _http1

_INTERIM: Final = re.compile(rb"(?s)HTTP/1\.[01] 1(?!01)[0-9][0-9][ \r\n].*?\r?\n\r?\n")
_BEGINS: Final = (b"HTTP/1.1 1", b"HTTP/1.0 1")
_make_body_reader: Final = _http1.make_body_reader


class NoTrailers(ChunkedReader):
    """Reads a body in chunks, and says nothing of trailers."""

    def __call__(self, buf: ReceiveBuffer) -> Any:
        """See h11."""
        event = super().__call__(buf)
        return h11.EndOfMessage() if isinstance(event, h11.EndOfMessage) else event


class ServerSide(_http1.Http1Client):
    """HTTP/1 with one server, whose interim responses pass."""

    def read_headers(self, event: events.ConnectionEvent) -> layer.CommandGenerator[None]:
        """Read the head of a response."""
        if isinstance(event, events.DataReceived) and self.request is not None:
            while self.buf._data.startswith(_BEGINS) and (interim := _INTERIM.match(self.buf._data)):
                head = bytes(self.buf.maybe_extract_at_most(interim.end()) or b"")
                if self.request.http_version == "HTTP/1.1":
                    yield commands.SendData(self.context.client, head)
        yield from super().read_headers(event)


def body_reader(size: int | None) -> Any:
    """Return what reads a body of ``size`` bytes; None: in chunks, -1: up to the end of the connection."""
    return NoTrailers() if size is None else _make_body_reader(size)


def install() -> None:
    """Let mitmproxy's layers use this, in the whole process."""
    vars(_http1)["make_body_reader"] = body_reader
    vars(layers.http)["Http1Client"] = ServerSide
