"""HTTP/1.1 on the TCP connections of an ``http`` capture: two channels each, split into the parts of their messages."""

from typing import TYPE_CHECKING, Any

from mcpsniff.capture.records import Record
from mcpsniff.decoder.channel import Channel, close_event, number_of, text_of
from mcpsniff.decoder.emitter import Event
from mcpsniff.decoder.flow import Flow
from mcpsniff.decoder.left import starts_http
from mcpsniff.protocol.events import Close
from mcpsniff.protocol.http import HttpExchange
from mcpsniff.protocol.origins import server_of
from mcpsniff.wire.http1 import Http1Connection, Http1Splitter
from mcpsniff.wire.http1_parts import End, Head, Part
from mcpsniff.wire.tls import ALERT_SIZE, is_alert

if TYPE_CHECKING:
    from mcpsniff.decoder.web import Web

NO_CHANNEL = -1
"""In place of a channel that was never announced."""

ENDS = {
    ("c2s", "eof"): "client",
    ("c2s", "reset"): "client",
    ("c2s", "aborted"): "server",
    ("s2c", "eof"): "server",
    ("s2c", "reset"): "server",
    ("s2c", "aborted"): "client",
}
"""Who hung up when a channel ends like this, if the other one has not ended before."""


class TcpChannel(Channel):
    """One direction of a TCP connection."""

    def __init__(self, web: "Web", number: int, fields: dict[str, Any], offset: int = 0) -> None:
        super().__init__(number, fields)
        self.offset = offset
        self._connection = connection_of(number, fields)
        self.is_resumed = False
        self.wire = web.wire_of(self, fields)
        self.web = web

    def feed(self, out: list[Event], t: int, data: bytes) -> None:
        """See `Channel`."""
        self.web.goes_on(out, self.number, t)
        if self.direction == "s2c":
            self.wire.hear(data)
        self.wire.take(out, self.direction, self.wire.splitter.feed(t, self.number, data))

    def close(self, out: list[Event], record: Record) -> None:
        """See `Channel`."""
        self.web.goes_on(out, self.number, record.t)
        close = close_event(self, record)
        self.wire.close(out, self, close, record.t)
        self.web.closed(out, self, close, record.t)

    def where(self) -> str:
        """See `Channel`."""
        sender = "client" if self.direction == "c2s" else "server"
        return f"what the {sender} sent on connection {self._connection}"

    def current(self) -> HttpExchange | None:
        """See `Channel`."""
        return self.wire.flow.current(of_requests=self.direction == "c2s")

    def gap(self, size: int, why: str) -> None:
        """See `Channel`."""
        self.wire.splitter.gap(self.number, size)
        self.wire.flow.gap(of_requests=self.direction == "c2s")
        self.wire.forget_beginning()
        if why != "secret":  # left out on purpose, from a body of OAuth
            self.wire.flow.tear()
            self.web.lose()

    def resume(self) -> None:
        """See `Channel`."""
        self.is_resumed = True
        self.wire.forget_beginning()
        self.wire.flow.tear()

    def inject(self, out: list[Event], t: int, data: bytes, by: str) -> None:
        """What ``by`` said in the server's place, or in the client's, without any recorded bytes."""
        if self.direction == "c2s":
            self.wire.ask_for(out, requests_of(self.number, t, data), by)
            return
        flow = self.wire.flow
        http = flow.next_to_answer()
        parts = responses_of(self.number, None if http is None else http.method, t, data)
        if flow.answer_for(out, parts, by) and http is not None:
            self.wire.splitter.withdraw(http.request)


class Wire:
    """One TCP connection."""

    def __init__(self, web: "Web", connection: int, fields: dict[str, Any]) -> None:
        meta = fields.get("meta")
        about = meta if isinstance(meta, dict) else {}
        self.connection = connection
        self.channels: dict[str, TcpChannel] = {}
        self.closed: set[str] = set()
        self._web = web
        self._authority = server_of("", text_of(about.get("upstream")) or text_of(about.get("server")))
        self._connection: Http1Connection | None = None
        self._made_for = (NO_CHANNEL, NO_CHANNEL)
        self._flow: Flow | None = None
        self._beginning: bytes | None = b""
        """The first bytes of the server, until they are enough, or where they are not there."""

    @property
    def flow(self) -> Flow:
        """Its HTTP exchanges."""
        if self._flow is None:
            self._flow = Flow(self._web, self.connection, self._authority, self._web.limit)
        return self._flow

    @property
    def is_over(self) -> bool:
        """True if all channels that were announced have ended."""
        return self.closed >= self.channels.keys()

    @property
    def splitter(self) -> Http1Connection:
        """It splits the bytes of both directions."""
        numbers = (self._number("c2s"), self._number("s2c"))
        if self._connection is None or numbers != self._made_for:
            self._made_for = numbers
            offsets = {side: one.offset for side, one in self.channels.items()}
            self._connection = Http1Connection(
                *numbers,
                request_offset=offsets.get("c2s", 0),
                response_offset=offsets.get("s2c", 0),
            )
            for channel in self.channels.values():
                if channel.is_resumed:
                    self._connection.gap(channel.number)
        return self._connection

    def hear(self, data: bytes) -> None:
        """Look for an alert of TLS at the beginning of what the server says."""
        beginning = self._beginning
        if beginning is None:
            return
        beginning += data[: ALERT_SIZE - len(beginning)]
        if len(beginning) < ALERT_SIZE:
            self._beginning = beginning
            return
        self._beginning = None
        if is_alert(beginning):
            self.flow.deny_plain()

    def forget_beginning(self) -> None:
        """The next bytes of the server may not be its first ones."""
        self._beginning = None

    def take(self, out: list[Event], direction: str, parts: list[Part]) -> None:
        """Parts of one direction."""
        if direction == "c2s":
            self.flow.requests(out, parts)
        else:
            self.flow.responses(out, parts)

    def ask_for(self, out: list[Event], parts: list[Part], by: str) -> None:
        """A request that ``by`` made, and that the server answers."""
        self.splitter.expect(parts)
        self.flow.requests(out, parts, by)

    def close(self, out: list[Event], channel: TcpChannel, close: Close, t: int) -> None:
        """One direction has ended."""
        by = ENDS.get((channel.direction, close.how))
        if close.is_ours or self._web.is_cut(self.connection):
            by = "mcpsniff"
        if by is not None:
            self.flow.hang_up(by, cuts=channel.direction == "s2c" and close.how != "eof")
        self.take(out, channel.direction, self.splitter.finish(t, channel.number))
        self.closed.add(channel.direction)
        if channel.direction == "s2c" or self.is_over:
            self.flow.finish(out, t)

    def _number(self, direction: str) -> int:
        channel = self.channels.get(direction)
        return NO_CHANNEL if channel is None else channel.number


def connection_of(number: int, fields: dict[str, Any]) -> int:
    """The connection of a channel; where none is recorded, a channel is one of its own."""
    connection = number_of(fields.get("conn"))
    return -1 - number if connection is None else connection


def responses_of(channel: int, method: str | None, t: int, data: bytes) -> list[Part]:
    """The parts of a response that nobody sent on ``channel``, to a request with ``method``."""
    splitter = Http1Splitter(channel, "s2c")
    splitter.expect(method or "GET")
    parts = [*splitter.feed(t, data), *splitter.finish(t)]
    return [_placeless(part, t) for part in parts]


def requests_of(channel: int, t: int, data: bytes) -> list[Part]:
    """The parts of a request that no client sent on ``channel``; nothing if ``data`` is none."""
    if not starts_http(data):
        return []
    splitter = Http1Splitter(channel, "c2s")
    return [_placeless(part, t) for part in (*splitter.feed(t, data), *splitter.finish(t))]


def _placeless(part: Part, t: int) -> Part:
    """A part of something that is not among the recorded bytes."""
    if isinstance(part, Head):
        part.spans = ()
    elif isinstance(part, End):
        part = End(t, part.complete, part.flaws)
    return part
