"""What a capture says of whether MCP is there at all: paths that refuse it, and upstreams that nobody listens at.

A client that is refused looks elsewhere: it POSTs, is answered 404 or 405, and asks for a stream by GET. Only if
nothing follows was it told the wrong path. So a refusal waits for PATIENCE_US, and is forgotten if a conversation
begins at that server.
"""

from collections import OrderedDict
from collections.abc import Container
from dataclasses import dataclass
from typing import Final

from mcpsniff.protocol.endpoints import names_session
from mcpsniff.protocol.http import ABORTED, EVENT_STREAM, Http, HttpExchange
from mcpsniff.protocol.talk import LEGACY
from mcpsniff.wire.frames import Span

PATIENCE_US: Final = 3_000_000
"""How long a client may take to look elsewhere."""
NOT_HERE: Final = frozenset({404, 405})
PLACES_LIMIT: Final = 1_000
"""Authorities, and paths, of which something is remembered."""
UNREACHABLE: Final = 502
"""The status of our own answer where no connection to the upstream can be made."""

type Key = tuple[str, str]
"""An authority and a path."""


@dataclass(slots=True)
class NotHere:
    """A moment, not an event: a POST was answered as if no MCP were there, and its client has not looked elsewhere."""

    event: Http
    """The event of its HTTP exchange."""
    due: int
    """When it is told, if nothing follows (microseconds)."""

    @property
    def exchange(self) -> HttpExchange:
        """The HTTP exchange of that POST."""
        return self.event.exchange

    @property
    def spans(self) -> tuple[Span, ...]:
        """The recorded bytes of its heads."""
        return self.event.spans


class Reach:
    """What is known of each server's paths."""

    def __init__(self) -> None:
        self._pending: OrderedDict[Key, NotHere] = OrderedDict()
        """Refusals that may be told of, by when they are due."""
        self._trying: dict[int, list[NotHere]] = {}
        """What waits for the response to a GET that asks for a stream, by its number."""
        self._settled: OrderedDict[Key, bool] = OrderedDict()
        """Where MCP was spoken, or where it was told that it is not."""
        self._heard: OrderedDict[str, bool] = OrderedDict()
        """The servers that have answered something."""
        self._down: OrderedDict[str, bool] = OrderedDict()
        """The upstreams that nobody listened at when they were asked last."""

    @property
    def deadline(self) -> int | None:
        """When the first refusal is due."""
        return next((refusal.due for refusal in self._pending.values()), None)

    def requested(self, http: HttpExchange) -> None:
        """A request has come: a GET that asks for a stream is the other way to look for MCP."""
        if self._pending and http.method == "GET" and EVENT_STREAM in (http.asks("accept") or "").lower():
            self._trying[http.number] = self._take(http.authority)

    def responded(self, http: HttpExchange) -> None:
        """The head of a response is there, of mcpsniff or of a server."""
        if http.by is None:
            _put(self._heard, http.authority)
            self._down.pop(http.authority, None)
        elif http.status == UNREACHABLE and http.authority not in self._down:
            http.tell("unreachable")
            _put(self._down, http.authority)
        tried = self._trying.pop(http.number, ())
        if http.by is not None or http.status in NOT_HERE:
            for refusal in tried:
                self._wait(refusal.event, http.t_response or 0)

    def ends(self, http: HttpExchange) -> None:
        """An HTTP exchange is over, and not told of yet."""
        hung_up = http.state == ABORTED and http.response is None and http.ended_by == "server"
        if hung_up and not http.is_torn and http.authority not in self._heard:
            http.tell("never-answered")

    def over(self, event: Http, t: int) -> None:
        """An HTTP exchange is over."""
        http = event.exchange
        self._trying.pop(http.number, None)
        key = (http.authority, http.path)
        if _speaks(http):
            self._speak(http, begins=http.opens)
        elif _refuses(http) and key not in self._settled and key not in self._pending:
            self._wait(event, t)

    def spoken(self, http: HttpExchange) -> None:
        """MCP is spoken at this path: a stream has begun."""
        self._speak(http, begins=http.method == "GET")

    def due(self) -> NotHere:
        """Take the refusal that is due first; there has to be one."""
        key, refusal = self._pending.popitem(last=False)
        _put(self._settled, key)
        return refusal

    def rest(self, going_on: Container[int]) -> list[NotHere]:
        """Take, at the end, the refusals on connections that are over: their clients have left."""
        keys = [key for key, refusal in self._pending.items() if refusal.exchange.connection not in going_on]
        return [self._pending.pop(key) for key in keys]

    def lose(self) -> None:
        """Bytes are missing: what followed a refusal may have been among them."""
        self._pending.clear()
        self._trying.clear()

    def _speak(self, http: HttpExchange, *, begins: bool) -> None:
        """MCP is spoken at this path; whoever was refused elsewhere may have found it, if a conversation begins."""
        key = (http.authority, http.path)
        _put(self._settled, key)
        self._pending.pop(key, None)
        if begins:
            self._take(http.authority)

    def _wait(self, event: Http, t: int) -> None:
        key = (event.exchange.authority, event.exchange.path)
        self._pending[key] = NotHere(event, t + PATIENCE_US)
        self._pending.move_to_end(key)
        if len(self._pending) > PLACES_LIMIT:
            self._pending.popitem(last=False)

    def _take(self, authority: str) -> list[NotHere]:
        """The refusals of one server, which wait no longer."""
        keys = [key for key in self._pending if key[0] == authority]
        return [self._pending.pop(key) for key in keys]


def _refuses(http: HttpExchange) -> bool:
    """True if a message was POSTed, and the answer is that of a place where there is no MCP."""
    if http.method != "POST" or not http.asked.messages or http.status not in NOT_HERE or http.by is not None:
        return False
    if http.answered.messages or http.is_torn or http.session_id is not None or names_session(http.target):
        return False
    talk = http.talk
    return talk is not None and talk.kind != LEGACY and (http.opens or not talk.conversation.joined_late)


def _speaks(http: HttpExchange) -> bool:
    """True if a message was taken, or one came back."""
    if http.by is not None or http.status is None:
        return False
    return http.answered.messages > 0 or (http.asked.messages > 0 and http.status < 400)


def _put[Key](table: OrderedDict[Key, bool], key: Key) -> None:
    table[key] = True
    table.move_to_end(key)
    if len(table) > PLACES_LIMIT:
        table.popitem(last=False)
