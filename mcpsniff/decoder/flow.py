"""The parts of the HTTP messages on one connection to HTTP exchanges and the frames in their bodies.

A `Flow` is fed heads, pieces of bodies and ends, wherever they come from: split from the bytes of a TCP connection, or
recorded as such. It tells a `Listener` what happens, in order.
"""

from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from mcpsniff.decoder.bodies import BEGINNING, Reader, is_like_a_message, reader_of
from mcpsniff.decoder.emitter import Event
from mcpsniff.protocol.http import (
    ABORTED,
    COMPLETE,
    EVENT_STREAM,
    LOST,
    UNDECODED,
    Body,
    HttpExchange,
    is_json_type,
    media_type,
)
from mcpsniff.protocol.oauth_reading import document, is_beyond_reading
from mcpsniff.protocol.oauth_urls import read_request
from mcpsniff.wire.frames import GAP, Frame
from mcpsniff.wire.http1_parts import CLOSE, TUNNEL, Data, End, Head, Part, Undecoded
from mcpsniff.wire.tls import refuses_plain

EXPECTS_TLS: Final = "expects-tls"
"""A fact of `mcpsniff.protocol.http_facts`."""
BAD_REQUEST: Final = 400
INTERIM_LIMIT: Final = 100
OPEN_LIMIT: Final = 1_024
"""Exchanges without a response that one connection may have; the splitter knows as many."""


class Listener(Protocol):
    """Whoever makes sense of HTTP exchanges."""

    def next_number(self) -> int:
        """The number of the next exchange."""

    def is_place(self, http: HttpExchange) -> bool:
        """True if its request goes where MCP is spoken."""

    def requested(self, out: list[Event], http: HttpExchange) -> None:
        """The head of a request is there."""

    def asked(self, out: list[Event], http: HttpExchange, frame: Frame) -> None:
        """The body of a request is a message."""

    def responded(self, out: list[Event], http: HttpExchange) -> None:
        """The head of a response is there."""

    def said(self, out: list[Event], http: HttpExchange, frame: Frame) -> None:
        """The body of a response is a message, or its stream has an event."""

    def over(self, out: list[Event], http: HttpExchange, t: int) -> None:
        """An exchange is over."""

    def undecoded(self, out: list[Event], http: HttpExchange, t: int, why: str) -> None:
        """The connection carries something else than HTTP from here on; ``http`` stands for it."""


class Flow:
    """The HTTP exchanges of one connection to ``authority``; ``limit``: how many bytes of one frame are kept."""

    def __init__(self, listener: Listener, connection: int, authority: str, limit: int) -> None:
        self.open: dict[int, HttpExchange] = {}
        """The exchanges that are not over, by number."""
        self.hung_up: str | None = None
        """``client``, ``server`` or ``mcpsniff``: who ended the connection first."""
        self.is_torn = False
        """True once bytes were lost: which parts belong to which exchange is not certain any more."""
        self._listener = listener
        self._connection = connection
        self._authority = authority
        self._limit = limit
        self._waiting: dict[int, HttpExchange] = {}
        """Exchanges without a response, by the identity of the request's head."""
        self._asking: tuple[HttpExchange, Reader] | None = None
        self._answering: tuple[HttpExchange, Reader] | None = None
        self._early: HttpExchange | None = None
        """The exchange whose response has begun before its request was whole: what it says is told after that."""
        self._held: tuple[Reader, End] | None = None
        """The end of that response, if it has come."""
        self._told: set[str] = set()
        self._is_denied = False
        self._unseen: set[int] = set()
        """The numbers of those whose response may have been lost as a whole."""
        self._cut_at_close = True
        """Whether a response that goes on until the connection ends has been cut by that end."""

    # -- requests --------------------------------------------------------------------------------------------------

    def requests(self, out: list[Event], parts: Iterable[Part], by: str | None = None) -> None:
        """Parts of the direction of requests; ``by`` is who made them, if not the client."""
        for part in parts:
            if isinstance(part, Data):
                self._ask(out, part)
            elif isinstance(part, Head):
                self._begin(out, part, by)
            elif isinstance(part, End):
                self._asked(out, part)
            elif isinstance(part, Undecoded):
                self._undecoded(out, part)

    def _begin(self, out: list[Event], head: Head, by: str | None) -> None:
        http = self._new(head, head.t_first)
        http.made_by = by
        if len(self._waiting) >= OPEN_LIMIT:
            first = next(iter(self._waiting))
            self._end(out, self._waiting[first], head.t_last, LOST)
        self._waiting[id(head)] = http
        self._listener.requested(out, http)
        reader = reader_of(head, self._limit, lambda payload: self._is_request(http, payload))
        self._asking = (http, reader)

    def _ask(self, out: list[Event], part: Data) -> None:
        if self._asking is None:
            return
        http, reader = self._asking
        http.asked.wire += len(part.data)
        for frame in reader.feed(part):
            self._listener.asked(out, http, frame)

    def _asked(self, out: list[Event], part: End) -> None:
        if self._asking is None:
            return
        http, reader = self._asking
        self._asking = None
        frames = reader.end(part.t, complete=part.complete)
        _conclude(http.asked, part, reader)
        if text := reader.document:
            http.asked_values = read_request(http, text)
        for frame in frames:
            self._listener.asked(out, http, frame)
        self._catch_up(out, part.t)
        self._settle(out, http, part.t)

    # -- responses -------------------------------------------------------------------------------------------------

    def responses(self, out: list[Event], parts: Iterable[Part]) -> None:
        """Parts of the direction of responses."""
        for part in parts:
            if isinstance(part, Data):
                self._answer(out, part)
            elif isinstance(part, Head):
                self._respond(out, part)
            elif isinstance(part, End):
                self._answered(out, part)
            elif isinstance(part, Undecoded):
                self._undecoded(out, part)

    def _respond(self, out: list[Event], head: Head) -> None:
        http = self._waiting.get(id(head.request))
        if head.interim:
            if http is not None and len(http.interim) < INTERIM_LIMIT:
                http.interim.append(head.status or 0)
            return
        if http is None:
            http = self._new(None, head.t_first)
            http.asked.is_over = True
        else:
            del self._waiting[id(head.request)]
        http.response = head
        http.t_response = head.t_last
        is_early = self._asking is not None and self._asking[0] is http
        if is_early and media_type(http.says("content-type")) != EVENT_STREAM:
            self._early = http
        else:
            self._listener.responded(out, http)
        reader = reader_of(head, self._limit, lambda payload: _is_response(http, payload))
        self._answering = (http, reader)

    def _answer(self, out: list[Event], part: Data) -> None:
        if self._answering is None:
            return
        http, reader = self._answering
        http.answered.wire += len(part.data)
        frames = reader.feed(part)
        http.answered.size = reader.size
        for frame in frames:
            self._listener.said(out, http, frame)

    def _answered(self, out: list[Event], part: End) -> None:
        if self._answering is None:
            return
        http, reader = self._answering
        self._answering = None
        if http is self._early:
            self._held = (reader, part)
        else:
            self._conclude_answer(out, http, reader, part)

    def _conclude_answer(self, out: list[Event], http: HttpExchange, reader: Reader, part: End) -> None:
        head = http.response
        if head is not None and head.framing == CLOSE and self.hung_up is not None and self._cut_at_close:
            part = End(part.t, False, part.flaws, part.spans)
        frames = reader.end(part.t, complete=part.complete)
        _conclude(http.answered, part, reader)
        if http.is_refused:
            http.answered.beginning = reader.beginning
            if http.status == BAD_REQUEST and refuses_plain(reader.beginning, http.says("content-type") or ""):
                http.tell(EXPECTS_TLS)
        if not http.requests and (text := reader.document):
            http.said_values = document(text)
            http.is_unread = http.said_values is None and is_beyond_reading(text)
        for frame in frames:
            self._listener.said(out, http, frame)
        if head is not None and head.framing == TUNNEL:
            http.tell("tunnel")
            self._told.add(TUNNEL)
            http.asked.is_over = True
        self._settle(out, http, part.t)

    def _catch_up(self, out: list[Event], t: int) -> None:
        """Tell of a response that began before its request was whole: a server may refuse a request by its head."""
        http, held = self._early, self._held
        self._early = self._held = None
        if http is None:
            return
        self._listener.responded(out, http)
        if held is not None:
            reader, end = held
            self._conclude_answer(out, http, reader, End(max(t, end.t), end.complete, end.flaws, end.spans))

    def current(self, *, of_requests: bool) -> HttpExchange | None:
        """The exchange whose request, or response, goes on; else the next one to be answered."""
        going_on = self._asking if of_requests else self._answering
        return going_on[0] if going_on is not None else self.next_to_answer()

    def next_to_answer(self) -> HttpExchange | None:
        """The exchange whose response comes next."""
        return next(iter(self._waiting.values()), None)

    def answer_for(self, out: list[Event], parts: Sequence[Part], by: str) -> bool:
        """A response that ``by`` made up in the server's place; False if nobody waits for one."""
        if not self._waiting:
            return False
        key, http = next(iter(self._waiting.items()))
        head = next((part for part in parts if isinstance(part, Head)), None)
        if head is None or self._answering is not None:
            return False
        del self._waiting[key]
        http.by = by
        http.response, http.t_response = head, head.t_last
        body = b"".join(part.data for part in parts if isinstance(part, Data))
        http.answered.wire = http.answered.size = len(body)
        http.answered.beginning = http.answered.kept = body[:BEGINNING]
        http.answered.is_over = http.answered.is_complete = True
        self._listener.responded(out, http)
        self._settle(out, http, head.t_last)
        return True

    # -- ends ------------------------------------------------------------------------------------------------------

    def gap(self, *, of_requests: bool) -> None:
        """Bytes are missing from what goes on in this direction."""
        if not of_requests:
            self._unseen = {http.number for http in self._waiting.values()}
        open_body = self._asking if of_requests else self._answering
        if open_body is not None:
            open_body[1].gap()

    def deny_plain(self) -> None:
        """The server has said by an alert of TLS that it expects TLS."""
        self._is_denied = True
        for http in self._waiting.values():
            http.tell(EXPECTS_TLS)

    def tear(self) -> None:
        """Bytes are missing that may have been of heads."""
        self.is_torn = True
        for http in self.open.values():
            http.is_torn = True
            if http.stream is not None:
                http.stream.is_torn = True

    def hang_up(self, by: str, *, cuts: bool) -> None:
        """One side ends the connection; ``cuts`` if that cuts a response that only the end would have delimited."""
        self.hung_up = self.hung_up or by
        self._cut_at_close = cuts

    def finish(self, out: list[Event], t: int) -> None:
        """No response can come any more."""
        self._catch_up(out, t)
        for http in list(self.open.values()):
            whole = http.answered.is_complete
            lost = GAP in http.flaws or (http.response is None and http.number in self._unseen)
            self._end(out, http, t, LOST if lost else COMPLETE if whole else ABORTED)

    def _settle(self, out: list[Event], http: HttpExchange, t: int) -> None:
        """End an exchange whose response is over, once its request is; a broken off response ends it at once."""
        if not http.answered.is_over:
            return
        if GAP in http.asked.flaws or GAP in http.answered.flaws:
            self._end(out, http, t, LOST)
        elif not http.answered.is_complete:
            self._end(out, http, t, ABORTED)
        elif http.asked.is_over:
            self._end(out, http, t, COMPLETE)

    def _end(self, out: list[Event], http: HttpExchange, t: int, state: str) -> None:
        if self.open.pop(http.number, None) is None:
            return
        self._waiting.pop(id(http.request), None)
        http.state = state
        http.t_end = t
        if state == ABORTED or (http.response is not None and http.response.framing == CLOSE):
            http.ended_by = self.hung_up
        self._listener.over(out, http, t)

    def _new(self, request: Head | None, t: int) -> HttpExchange:
        number = self._listener.next_number()
        http = HttpExchange(number, self._connection, self._authority, request, t_request=t)
        http.is_torn = self.is_torn
        self.open[number] = http
        return http

    def _undecoded(self, out: list[Event], part: Undecoded) -> None:
        """Told once for each reason; our own losses have a row of their own, and a tunnel its exchange."""
        if part.why in self._told or part.why == GAP or TUNNEL in self._told:
            return
        self._told.add(part.why)
        http = HttpExchange(self._listener.next_number(), self._connection, self._authority, None, t_request=part.t)
        http.state = UNDECODED
        if self._is_denied:
            http.tell(EXPECTS_TLS)
        self._listener.undecoded(out, http, part.t, part.why)

    def _is_request(self, http: HttpExchange, payload: bytes) -> bool:
        """A body is a message if it looks like one, or if it should be one where it goes."""
        if is_like_a_message(payload):
            return True
        return (
            http.method == "POST"
            and is_json_type(media_type(http.asks("content-type")))
            and self._listener.is_place(http)
        )


def _is_response(http: HttpExchange, payload: bytes) -> bool:
    """A body is a message if it looks like one, or if it should be one: as JSON, in answer to a request."""
    if is_like_a_message(payload):
        return True
    return http.requests > 0 and not http.is_refused and is_json_type(media_type(http.says("content-type")))


def _conclude(body: Body, part: End, reader: Reader) -> None:
    body.is_over = True
    body.is_complete = part.complete
    body.size = reader.size
    body.kept = reader.document or reader.beginning
    body.flaws += tuple(flaw for flaw in (*part.flaws, *reader.flaws) if flaw not in body.flaws)
