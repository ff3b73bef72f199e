"""HTTP/2 with one server, where mitmproxy falls short: a server that says it will go, and interim responses.

A GOAWAY without an error ends nothing that goes on (RFC 9113 section 6.8): an event stream may last for hours after it.
mitmproxy would break all of it off.
"""

from typing import Any, Final

import h2.connection
import h2.errors
import h2.events
from h2.connection import ConnectionState as Http2State
from mitmproxy.connection import ConnectionState
from mitmproxy.proxy import layer
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers.http._base import ReceiveHttp
from mitmproxy.proxy.layers.http._events import ResponseHeaders, ResponseProtocolError
from mitmproxy.proxy.layers.http._http2 import Http2Client
from mitmproxy.proxy.layers.http._http_h2 import BufferedH2Connection

from mcpsniff.proxy.mitm.remarks import add_interim

_WRONG: Final = "stream reset by client"
"""What mitmproxy says whoever did it."""
_RIGHT: Final = "stream reset by server"


class _Connection(BufferedH2Connection):
    """One that goes on after a GOAWAY without an error."""

    def _receive_goaway_frame(self, frame: Any) -> Any:
        state: Http2State = self.state_machine.state
        unsent = bytearray(self._data_to_send)
        said = super()._receive_goaway_frame(frame)
        if frame.error_code == h2.errors.ErrorCodes.NO_ERROR:
            self.state_machine.state = state
            self._data_to_send = unsent
        return said


class Http2ServerSide(Http2Client):
    """HTTP/2 with one server."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.h2_conn = _Connection(self.h2_conf)
        self.h2_conn.local_settings.enable_push = 0
        self.h2_conn.local_settings.acknowledge()
        self._is_leaving = False
        self._interim: dict[int, list[int]] = {}

    def handle_h2_event(self, event: h2.events.Event) -> layer.CommandGenerator[bool]:
        """See `Http2Connection`."""
        if isinstance(event, h2.events.ConnectionTerminated) and event.error_code == h2.errors.ErrorCodes.NO_ERROR:
            yield from self._let_go(event.last_stream_id or 0)
        elif isinstance(event, h2.events.InformationalResponseReceived):
            status = dict(event.headers or ()).get(b":status", b"")
            self._interim.setdefault(event.stream_id or 0, []).append(int(status) if status.isdigit() else 0)
        else:
            is_over = yield from self._usual(event)
            if is_over:
                return True
        if self._is_leaving and not self.streams:
            yield from self.close_connection("the server has gone")
            return True
        return False

    def _usual(self, event: h2.events.Event) -> layer.CommandGenerator[bool]:
        commands = super().handle_h2_event(event)
        while True:
            try:
                command = next(commands)
            except StopIteration as end:
                return bool(end.value)
            if isinstance(command, ReceiveHttp) and isinstance(command.event, ResponseHeaders):
                add_interim(command.event.response, self._interim.pop(command.event.stream_id, []), passed=False)
            elif isinstance(command, ReceiveHttp) and isinstance(command.event, ResponseProtocolError):
                command.event.message = command.event.message.replace(_WRONG, _RIGHT)
            yield command

    def _let_go(self, last: int) -> layer.CommandGenerator[None]:
        """The server answers no stream after ``last``, and will end the connection; others need a new one."""
        self._is_leaving = True
        self.conn.state &= ~ConnectionState.CAN_WRITE  # as of which mitmproxy takes another for what comes
        for stream in [number for number in self.streams if number > last]:
            del self.streams[stream]
            error = self.ReceiveProtocolError(stream, "the server has gone", self.ReceiveProtocolError.code)
            yield ReceiveHttp(error)
