"""A talk: a conversation together with what pairs in it.

On pipes there is one. Over HTTP there is one for each session, and in 2026-07-28 each request is one of its own, while
what the server has declared is shared by the requests to one place.
"""

from typing import Final, NamedTuple

from mcpsniff.protocol.conversation import Conversation
from mcpsniff.protocol.exchange import Exchange
from mcpsniff.protocol.exchanges import Exchanges
from mcpsniff.protocol.finished import Finished, SharedWindow
from mcpsniff.protocol.http import LEGACY_STREAM, HttpExchange, Stream
from mcpsniff.protocol.http_pairing import HttpExchanges
from mcpsniff.wire.frames import Frame

BARE: Final = "bare"
SESSION: Final = "session"
LEGACY: Final = "legacy"
MODERN: Final = "modern"

TALK_KINDS: Final = {
    BARE: "of a server without sessions",
    SESSION: "named by Mcp-Session-Id",
    LEGACY: "the stream of HTTP+SSE and the POSTs to its endpoint",
    MODERN: "one request of 2026-07-28",
}


class Talk[Pairing: Exchanges]:
    """One conversation and the requests that are open in it."""

    def __init__(self, conversation: Conversation, exchanges: Pairing) -> None:
        self.conversation = conversation
        self.exchanges = exchanges


class EventMark(NamedTuple):
    """An event with an id that a stream has carried."""

    stream: Stream
    frame: int
    message: int | None
    content: int
    """A hash of its data."""
    exchange: Exchange | None


class WebTalk(Talk[HttpExchanges]):
    """One conversation over HTTP, or one request of 2026-07-28."""

    def __init__(
        self, conversation: Conversation, exchanges: HttpExchanges, authority: str, kind: str, events: SharedWindow
    ) -> None:
        super().__init__(conversation, exchanges)
        self.authority = authority
        self.kind = kind
        """A key of TALK_KINDS."""
        self.keys: list[tuple[str, str]] = []
        """Under which it is found: authority and session id, or authority and endpoint."""
        self.going_on: set[int] = set()
        """The numbers of its HTTP exchanges that are not over."""
        self.has_ended = False
        self.shows_token = False
        """True if the latest request with a token was served."""
        self._events: Finished[str, EventMark] = Finished(events)
        conversation.is_shared = kind == BARE

    def be_named(self, kind: str) -> None:
        """It turns out to be a session or the stream of HTTP+SSE: all that is said in it comes from one client."""
        self.kind = kind
        self.exchanges.one_client = True
        self.conversation.is_shared = False

    def mark(self, event_id: str) -> EventMark | None:
        """The event of that id, if it is still known."""
        return self._events.get(event_id)

    def remember(self, event_id: str, mark: EventMark) -> None:
        """An event with an id has come."""
        self._events.add(event_id, mark)

    def over(self, http: HttpExchange, t: int) -> list[Exchange]:
        """One of its HTTP exchanges is over; returns the exchanges that ended with it."""
        self.going_on.discard(http.number)
        if http.stream is not None and http.stream.kind == LEGACY_STREAM:
            return []  # the session ends with it
        elsewhere = self.kind == LEGACY and not http.is_refused and http.state == "complete"
        return self.exchanges.over(http, t, modern=self.kind == MODERN, last=self.has_ended, elsewhere=elsewhere)


def content_of(frame: Frame) -> int:
    """What tells whether two events say the same."""
    return hash(frame.payload)
