"""Which conversation a message over HTTP belongs to, when several go on at once.

* A request that names a session (``Mcp-Session-Id``) belongs to it, and so does all that its response carries.
* ``initialize`` without a session begins a conversation; the session id in the response names it. If all that came
  before from there was refused, it goes on with that conversation: clients look for the transport, or for a token.
* HTTP+SSE: the stream that names an ``endpoint`` begins one; POSTs to that endpoint belong to it.
* 2026-07-28: each request stands for itself, while what the server declares is shared by authority and path.
* Without any of this: the conversation of the same connection, else the latest one without a session at that place.

Tables are bounded: beyond LIVE_LIMIT the conversation that was quiet longest is given up.
"""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from weakref import WeakValueDictionary

from mcpsniff.protocol.conversation import Conversation
from mcpsniff.protocol.endpoints import names_session, resolved
from mcpsniff.protocol.exchange import Exchange
from mcpsniff.protocol.exchanges import Watch
from mcpsniff.protocol.finished import SharedWindow
from mcpsniff.protocol.http import LEGACY_STREAM, HttpExchange, origin_form
from mcpsniff.protocol.http_pairing import HttpExchanges
from mcpsniff.protocol.message import REQUEST, Message
from mcpsniff.protocol.meta import is_modern
from mcpsniff.protocol.revisions import LEGACY as LEGACY_REVISIONS
from mcpsniff.protocol.talk import BARE, LEGACY, MODERN, SESSION, WebTalk

LIVE_LIMIT: Final = 1_000
"""Conversations that have not ended and are known; one whose HTTP exchange is going on is not given up."""
PLACES_LIMIT: Final = 1_000
"""Authorities with a path at which MCP was spoken."""
ENDED_LIMIT: Final = 10_000
"""Sessions that have ended and are still known by name."""
LINGER_LIMIT: Final = 100
"""Sessions that have ended and are still known with all that happened in them."""
NAMES_LIMIT: Final = 10
"""Session ids of one conversation: a server may give a new one at each ``initialize`` in it."""
CONNECTIONS_LIMIT: Final = 10_000
"""Connections whose latest conversation is known."""


@dataclass(slots=True)
class Place:
    """An authority and a path at which MCP was spoken."""

    modern: Conversation | None = None
    """What requests of 2026-07-28 share."""
    bare: WebTalk | None = None
    """The latest conversation without a session."""
    latest: WebTalk | None = None


class Conversations:
    """All conversations of a capture over HTTP. ``first`` is the one that is counted first."""

    def __init__(self, first: Conversation, watch: Watch) -> None:
        self.main = first
        """The conversation that the capture is mainly about: the first in which a server gave a result."""
        self.is_torn = False
        """True while a connection goes on of which bytes were lost: what it carries may be of any conversation."""
        self.given_up: list[Exchange] = []
        """Exchanges that ended because a table was full; for whoever reads and clears it."""
        self._first = first
        self._joined_late = first.joined_late
        self._watch = watch
        self._count = 0
        self._window, self._events = SharedWindow(), SharedWindow()
        self._known: WeakValueDictionary[int, Conversation] = WeakValueDictionary({first.number: first})
        self._live: OrderedDict[int, WebTalk] = OrderedDict()
        self._named: dict[tuple[str, str], WebTalk] = {}
        self._ended: OrderedDict[tuple[str, str], int] = OrderedDict()
        """When each of these ended, in microseconds."""
        self._lingering: OrderedDict[tuple[str, str], WebTalk] = OrderedDict()
        """Those that have ended last."""
        self._places: OrderedDict[tuple[str, str], Place] = OrderedDict()
        self._on_connection: OrderedDict[int, WebTalk] = OrderedDict()
        self._refused: OrderedDict[str, Conversation] = OrderedDict()
        """By authority: the latest conversation in which nothing was granted, if nothing goes on in it."""

    def conversation(self, number: int) -> Conversation:
        """The conversation of that number."""
        return self._known.get(number, self.main)

    def lose(self) -> None:
        """Bytes are missing: a conversation whose beginning is not seen from here on may have begun in them."""
        self._joined_late = True

    def live(self) -> Iterator[WebTalk]:
        """Those that have not ended, 2026-07-28 aside."""
        return iter(self._live.values())

    def is_place(self, http: HttpExchange) -> bool:
        """True if MCP was spoken where this request goes, or the request says that it will be."""
        known = (http.authority, http.path) in self._places or self._endpoint_key(http) in self._named
        return known or http.session_id is not None or http.version is not None or "event-stream" in _accepts(http)

    def disconnect(self, connection: int) -> None:
        """A connection has ended."""
        self._on_connection.pop(connection, None)

    # -- requests --------------------------------------------------------------------------------------------------

    def arrive(self, http: HttpExchange) -> None:
        """The head of a request: the session it names, and the stream that it asks to go on with."""
        session = http.session_id
        if session is None or http.is_modern:
            return
        key = (http.authority, session)
        talk = self._named.get(key) or self._lingering.get(key)
        if key in self._ended:
            http.tell("session-ended", t=self._ended[key])
        elif talk is None and not self._joined_late:
            http.tell("session-unknown")
        if talk is None:
            return
        self._join(http, talk)
        wanted = http.last_event_id
        if wanted is not None:
            mark = talk.mark(wanted)
            http.resumes = None if mark is None else mark.stream
            if mark is None and not (talk.conversation.joined_late or self._joined_late):
                http.tell("resume-unknown", text=wanted)

    def of_request(self, http: HttpExchange, message: Message) -> WebTalk:
        """The conversation of a message in the body of a request; ``message`` is the first one there."""
        if message.kind == REQUEST and message.method == "initialize":
            http.opens = True
            talk = self._of_opening(http)
        elif http.talk is None and self._endpoint_key(http) in self._named:
            talk = self._named[self._endpoint_key(http)]  # HTTP+SSE answers on its stream, whatever the revision
        elif http.is_modern or (message.kind == REQUEST and is_modern(message.meta)):
            talk = self._one_request(http)
        else:
            talk = http.talk or self._named.get(self._endpoint_key(http)) or self._guess(http)
        self._join(http, talk)
        talk.conversation.assume(http.version)
        return talk

    def _of_opening(self, http: HttpExchange) -> WebTalk:
        """``initialize``: in a session that goes on, or else the beginning of a conversation."""
        if http.talk is not None and not http.talk.has_ended:
            return http.talk
        return self._named.get(self._endpoint_key(http)) or self._begin(http)

    def of_response(self, http: HttpExchange) -> WebTalk:
        """The conversation of a message in a response whose request belongs to none so far."""
        if http.talk is not None:
            return http.talk
        place = self._place(http)
        talk = place.latest if http.stream is None else place.bare
        if talk is None or talk.has_ended:
            talk = self._begin(http, joined_late=http.stream is not None or self._joined_late)
            self._name(http, talk)
        self._join(http, talk)
        return talk

    def _guess(self, http: HttpExchange) -> WebTalk:
        """A message that names no conversation: that of its connection, else the latest one at its place."""
        if http.session_id is None and names_session(http.target):
            late = self._begin(http, joined_late=True)
            self._be_legacy(http, late, origin_form(http.target))
            return late
        place = self._place(http)
        if http.session_id is None:
            candidates = (self._on_connection.get(http.connection), place.bare, place.latest)
            talk = next((one for one in candidates if one is not None and _is_open_to(http, one)), None)
            if talk is not None:
                if talk.kind == SESSION:
                    http.tell("session-missing")
                return talk
        has_begun = http.session_id is not None or http.version in LEGACY_REVISIONS or self._joined_late
        talk = self._begin(http, joined_late=has_begun)
        self._name(http, talk)
        return talk

    # -- responses -------------------------------------------------------------------------------------------------

    def respond(self, http: HttpExchange) -> None:
        """The head of a response: the session that it names."""
        talk, session = http.talk, http.session_given
        if talk is None:
            return
        talk.exchanges.responded(http)
        if session is None or talk.kind == MODERN:
            return
        if http.opens and not http.is_refused and http.by is None:
            self._be_session(talk, session)
        elif talk.conversation.session_id != session:
            http.tell("session-changed", text=session)

    def endpoint(self, http: HttpExchange, value: str) -> None:
        """An event names the endpoint for POSTs: a conversation over HTTP+SSE begins."""
        if http.endpoint is not None:
            http.tell("endpoint-repeated")
            return
        http.endpoint = value
        if http.stream is not None:
            http.stream.kind = LEGACY_STREAM
        if http.talk is not None:
            http.tell("endpoint-not-first")
        talk = http.talk or self._begin(http)
        self._be_legacy(http, talk, resolved(http.target, value))
        self._join(http, talk)

    def over(self, http: HttpExchange, t: int) -> list[Exchange]:
        """An HTTP exchange is over: the exchanges that ended with it, and the session if it did."""
        talk = http.talk
        if talk is None:
            return []
        ended = talk.over(http, t)
        ender = None if talk.has_ended or talk.kind == MODERN else _ends_session(http, talk)
        if ender is not None:
            ended += self.end(talk, t, ender)
        conversation = talk.conversation
        if not (conversation.is_served or talk.has_ended or talk.going_on):
            _put(self._refused, talk.authority, conversation, PLACES_LIMIT)
        return ended

    def notice(self, conversation: Conversation) -> None:
        """A server gave a result in this conversation."""
        if not self.main.is_served:
            self.main = conversation

    def end(self, talk: WebTalk, t: int, by: str | None) -> list[Exchange]:
        """A session has ended; what is still going on over HTTP may bring the last answers."""
        talk.has_ended = True
        talk.conversation.leave(t, by)
        self._live.pop(talk.conversation.number, None)
        for key in talk.keys:
            if self._named.get(key) is talk:
                del self._named[key]
                _put(self._ended, key, t, ENDED_LIMIT)
                _put(self._lingering, key, talk, LINGER_LIMIT)
        return talk.exchanges.end_session(t, talk.going_on, by)

    # -- beginnings ------------------------------------------------------------------------------------------------

    def _begin(self, http: HttpExchange, *, joined_late: bool = False) -> WebTalk:
        joined_late = joined_late or self.is_torn
        conversation = None if joined_late else self._refused.pop(http.authority, None)
        if conversation is None or conversation.is_served or conversation.joined_late:
            conversation = self._new(joined_late=joined_late)
        for place in self._places.values():
            if place.modern is conversation:
                place.modern = None
        exchanges = HttpExchanges(
            joined_late=conversation.joined_late, one_client=False, watch=self._watch, window=self._window
        )
        talk = WebTalk(conversation, exchanges, http.authority, BARE, self._events)
        self._live[conversation.number] = talk
        self._make_room(http.t_request)
        return talk

    def _new(self, *, joined_late: bool = False) -> Conversation:
        self._count += 1
        if self._count > 1:
            conversation = Conversation(self._count, joined_late=joined_late, over_http=True)
            self._known[self._count] = conversation
            return conversation
        self._first.over_http = True  # it was there before anything was said
        if joined_late:
            self._first.join_late()
        return self._first

    def _one_request(self, http: HttpExchange) -> WebTalk:
        """A request of 2026-07-28, with what is known at its place."""
        if http.talk is not None and http.talk.kind == MODERN:
            return http.talk
        place = self._place(http)
        if place.modern is None:
            place.modern = self._new()
        place.modern.be_modern()
        exchanges = HttpExchanges(joined_late=http.is_torn, watch=self._watch)
        return WebTalk(place.modern, exchanges, http.authority, MODERN, self._events)

    def _make_room(self, t: int) -> None:
        for _ in range(len(self._live) - LIVE_LIMIT):
            quiet = next((one for one in self._live.values() if not one.going_on), None)
            if quiet is None:
                return
            self.given_up += self.end(quiet, t, None)

    # -- names and places ------------------------------------------------------------------------------------------

    def _join(self, http: HttpExchange, talk: WebTalk) -> None:
        if http.talk is talk:
            return
        if http.talk is not None:
            http.talk.going_on.discard(http.number)
        http.talk = talk
        talk.going_on.add(http.number)
        place = self._place(http)
        if talk.kind == MODERN:
            return
        place.latest = talk
        if talk.kind == BARE:
            place.bare = talk
        _put(self._on_connection, http.connection, talk, CONNECTIONS_LIMIT)
        if talk.conversation.number in self._live:
            self._live.move_to_end(talk.conversation.number)

    def _place(self, http: HttpExchange) -> Place:
        key = (http.authority, http.path)
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = Place()
            if len(self._places) > PLACES_LIMIT:
                self._places.popitem(last=False)
        else:
            self._places.move_to_end(key)
        return place

    def _name(self, http: HttpExchange, talk: WebTalk) -> None:
        """A conversation whose beginning was not seen, by the session that the client names."""
        if http.session_id is not None:
            self._be_session(talk, http.session_id)

    def _be_session(self, talk: WebTalk, session: str) -> None:
        if talk.kind != LEGACY:
            talk.be_named(SESSION)
        talk.conversation.session_id = session
        self._call(talk, (talk.authority, session))
        for place in self._places.values():
            if place.bare is talk:
                place.bare = None

    def _be_legacy(self, http: HttpExchange, talk: WebTalk, target: str) -> None:
        talk.be_named(LEGACY)
        talk.conversation.endpoint = target
        self._call(talk, (http.authority, target))

    def _call(self, talk: WebTalk, key: tuple[str, str]) -> None:
        self._named[key] = talk
        self._ended.pop(key, None)
        self._lingering.pop(key, None)
        if key not in talk.keys:
            talk.keys.append(key)
            if len(talk.keys) > NAMES_LIMIT:
                self._named.pop(talk.keys.pop(0), None)

    def _endpoint_key(self, http: HttpExchange) -> tuple[str, str]:
        return (http.authority, origin_form(http.target))


def _ends_session(http: HttpExchange, talk: WebTalk) -> str | None:
    """Who ends the session with this HTTP exchange; None if it goes on."""
    stream, status = http.stream, http.status
    if stream is not None and talk.kind == LEGACY and http.endpoint is not None:
        return http.ended_by or "server"
    if talk.kind != SESSION or http.session_id != talk.conversation.session_id or http.by is not None:
        return None
    if http.method == "DELETE" and status is not None and (200 <= status < 300 or status == 404):
        return "client"
    unknown_method = http.error_code == -32601
    return "server" if http.method == "POST" and status == 404 and not unknown_method else None


def _is_open_to(http: HttpExchange, talk: WebTalk) -> bool:
    """True if a request without any name may belong to this conversation."""
    return talk.kind in (BARE, SESSION) and not talk.has_ended and talk.authority == http.authority


def _put[Key, Value](table: OrderedDict[Key, Value], key: Key, value: Value, limit: int) -> None:
    """Note ``value`` as the latest; the oldest goes when there are more than ``limit``."""
    table[key] = value
    table.move_to_end(key)
    if len(table) > limit:
        table.popitem(last=False)


def _accepts(http: HttpExchange) -> str:
    return (http.asks("accept") or "").lower()
