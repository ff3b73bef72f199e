"""An HTTP exchange: a request, its response, and what both mean to MCP; and the event that tells of it.

Most HTTP exchanges carry messages, but not all that matters is in messages: a 401, a 404 of an ended session, a 405
where a stream is not offered, the POST and GET of a client that looks for the transport, OAuth discovery. An exchange
changes until it is over; what a decoder emits is an `Http`, which does not.
"""

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from mcpsniff.protocol.message import Fact
from mcpsniff.protocol.revisions import LEGACY, is_published
from mcpsniff.wire.frames import Frame, Span
from mcpsniff.wire.http1_parts import Head

if TYPE_CHECKING:
    from mcpsniff.protocol.oauth import Step
    from mcpsniff.protocol.oauth_reading import Values
    from mcpsniff.protocol.talk import WebTalk

OPEN: Final = "open"
STREAMING: Final = "streaming"
COMPLETE: Final = "complete"
ABORTED: Final = "aborted"
LOST: Final = "lost"
UNDECODED: Final = "undecoded"

HTTP_STATES: Final = {
    OPEN: "no response yet, or not all of it; only where the capture has no end of it",
    STREAMING: "its response is an event stream that has begun",
    COMPLETE: "request and response are whole",
    ABORTED: "the connection ended before the response was whole",
    LOST: "bytes of it are missing from the capture",
    UNDECODED: "what the connection carries from here on is no HTTP/1.x",
}

POST: Final = "post"
GET: Final = "get"
LEGACY_STREAM: Final = "legacy"
RESUMED: Final = "resumed"

STREAM_KINDS: Final = {
    POST: "the response to a POST",
    GET: "the server's own stream, asked for by GET",
    RESUMED: "a GET that goes on with an earlier stream (Last-Event-ID)",
    LEGACY_STREAM: "the stream of the HTTP+SSE transport of 2024-11-05",
}

SESSION_HEADER: Final = "mcp-session-id"
VERSION_HEADER: Final = "mcp-protocol-version"
LAST_EVENT_ID: Final = "last-event-id"

_CONTROLS: Final = re.compile("[\\x00-\\x08\\x0e-\\x1f\\x7f-\\x9f]")
"""Control characters but white space: where they are many, it is no text."""


@dataclass(slots=True)
class Body:
    """What was seen of one body."""

    wire: int = 0
    """Bytes on the wire, without the framing of chunks."""
    size: int = 0
    """Bytes after the content coding was removed."""
    messages: int = 0
    """JSON-RPC messages in it; the elements of a batch count."""
    events: int = 0
    """Of an event stream: events with data."""
    primings: int = 0
    """Events with an id and without data, which only make the stream one that can be resumed."""
    keep_alives: int = 0
    """Comments between events."""
    is_over: bool = False
    is_complete: bool = False
    """True if it came to its end."""
    flaws: tuple[str, ...] = ()
    """Flaws of its framing and its coding."""
    beginning: bytes = b""
    """Of a response that refuses and carries no message: its first bytes, as people are to read them."""
    kept: bytes = b""
    """Of a body that carries no message, its coding removed: all of a form or JSON up to 64 KiB, else a beginning."""

    def so_far(self) -> "Body":
        """What was seen by now, which does not change any more; ``kept`` goes along, so that it is told only once."""
        counts = (self.wire, self.size, self.messages, self.events, self.primings, self.keep_alives)
        body = Body(*counts, self.is_over, self.is_complete, self.flaws, self.beginning, self.kept)
        self.kept = b""
        return body

    @property
    def is_cut(self) -> bool:
        """True if ``kept`` is not all of it."""
        return len(self.kept) < self.size

    @property
    def text(self) -> str:
        """Its beginning as text; empty if it is no text. What is left of a character that was cut is left out."""
        return self.text_of(self.beginning)

    def text_of(self, data: bytes) -> str:
        """Its first bytes as text, see `text`."""
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            is_cut = self.size > len(data) and error.start >= len(data) - 3
            text = data[: error.start].decode() if is_cut else data.decode("latin-1")
        return "" if len(_CONTROLS.findall(text)) * 8 > len(text) else text.strip()


@dataclass(slots=True, eq=False)
class Stream:
    """An event stream of the server, over all the HTTP responses that carried it."""

    origin: int
    """The number of the HTTP exchange with which it began."""
    kind: str
    """A key of STREAM_KINDS but RESUMED."""
    last_event_id: str = ""
    """The last id on it: what a client names to resume it. Empty: it cannot be resumed."""
    retry_ms: int | None = None
    """How long a client is to wait before it resumes."""
    ended_at: int | None = None
    """When its latest response ended (microseconds); None while one goes on, or where that was lost."""
    answered: int | None = None
    """On a POST's stream: the latest message that answered one of its requests."""
    events: int = 0
    """Events with data so far."""
    is_torn: bool = False
    """True if bytes were lost on a connection that carried it."""

    @property
    def is_resumable(self) -> bool:
        """True if events after its end can still be asked for."""
        return bool(self.last_event_id)


@dataclass(slots=True, eq=False)
class HttpExchange:
    """A request and its response. It changes until it is over."""

    number: int
    """Its running number among the HTTP exchanges of the capture."""
    connection: int
    authority: str
    """The server behind it: its origin as `mcpsniff.protocol.origins` spells it, else host and port; may be empty."""
    request: Head | None
    """None where only the response was seen."""
    response: Head | None = None
    interim: list[int] = field(default_factory=list)
    """The status of each 1xx response before the response, at most 100."""
    state: str = OPEN
    by: str | None = None
    """Who made the response, where that is not the server: ``mcpsniff``, an addon, a rule or a fault."""
    made_by: str | None = None
    """Who made the request, where that is not the client; captured text."""
    held_us: int = 0
    """For how many microseconds its request was held."""
    ended_by: str | None = None
    """Who ended the connection before or with it: ``client``, ``server``, ``mcpsniff``; None: nobody, or unknown."""
    t_request: int = 0
    t_response: int | None = None
    t_end: int | None = None
    asked: Body = field(default_factory=Body)
    """The request's body."""
    answered: Body = field(default_factory=Body)
    """The response's body."""
    facts: list[Fact] = field(default_factory=list)
    requests: int = 0
    """JSON-RPC requests in the request's body."""
    notices: int = 0
    """Notifications and answers in the request's body."""
    error_code: int | None = None
    """The code of the latest JSON-RPC error in the response, if it is an integer."""
    opens: bool = False
    """True if it carries ``initialize``."""
    stream: Stream | None = None
    """Where the response is an event stream."""
    resumed: bool = False
    """True if it goes on with an earlier stream."""
    endpoint: str | None = None
    """What the stream named as the endpoint for POSTs, as it was spelt (HTTP+SSE)."""
    is_told: bool = False
    told: int = 0
    """How many of its facts an event has told; ``is_told`` once there was one."""
    resumes: Stream | None = None
    """The stream that the request asks to go on with, if it was seen."""
    is_torn: bool = False
    """True if bytes of its connection were lost before its end: what belongs to it is not certain."""
    talk: "WebTalk | None" = None
    """The conversation it belongs to, with what is open in it; None if it belongs to none."""
    asked_values: "Values | None" = None
    """What a request body that is no message says in the words of OAuth; None if it was not read."""
    said_values: "Values | None" = None
    """Likewise of the response."""
    is_unread: bool = False
    """True if the response is nested deeper than mcpsniff reads."""
    auth: "Step | None" = None
    """Where it is a step of an authorization."""

    @property
    def method(self) -> str:
        """GET, POST …; empty where the request was not seen."""
        return "" if self.request is None else self.request.method or ""

    @property
    def target(self) -> str:
        """The request target as it was sent; empty where the request was not seen."""
        return "" if self.request is None else self.request.target or ""

    @property
    def path(self) -> str:
        """The target without its query, and without an origin before it."""
        return origin_form(self.target).partition("?")[0]

    @property
    def status(self) -> int | None:
        """The status of the response."""
        return None if self.response is None else self.response.status

    @property
    def is_refused(self) -> bool:
        """True if the status says that nothing came of the request."""
        status = self.status
        return status is not None and status >= 400

    @property
    def is_redirect(self) -> bool:
        """True if the status says that what is asked for is elsewhere."""
        return self.status in (301, 302, 303, 307, 308)

    @property
    def session_id(self) -> str | None:
        """The session that the request names."""
        return self.asks(SESSION_HEADER)

    @property
    def session_given(self) -> str | None:
        """The session that the response names."""
        return self.says(SESSION_HEADER)

    @property
    def version(self) -> str | None:
        """The revision that the request names in its header."""
        return self.asks(VERSION_HEADER)

    @property
    def is_modern(self) -> bool:
        """True if its header names a revision after the legacy ones; what is not published does not count."""
        version = self.version
        return is_published(version) and version not in LEGACY

    @property
    def last_event_id(self) -> str | None:
        """From where on the request asks for a stream."""
        return self.asks(LAST_EVENT_ID)

    @property
    def stream_kind(self) -> str | None:
        """A key of STREAM_KINDS; None where the response is no event stream."""
        if self.stream is None:
            return None
        return RESUMED if self.resumed else self.stream.kind

    @property
    def origin(self) -> int:
        """The number of the HTTP exchange that this one goes on with: its own, unless it resumes a stream."""
        return self.number if self.stream is None else self.stream.origin

    @property
    def conversation(self) -> int | None:
        """The number of the conversation it belongs to."""
        return None if self.talk is None else self.talk.conversation.number

    @property
    def is_over(self) -> bool:
        """True if nothing more can come."""
        return self.state not in (OPEN, STREAMING)

    @property
    def flaws(self) -> tuple[str, ...]:
        """What is wrong or odd with either message as HTTP, each once."""
        heads = [head.flaws for head in (self.request, self.response) if head is not None]
        return tuple(dict.fromkeys(flaw for flaws in (*heads, self.asked.flaws, self.answered.flaws) for flaw in flaws))

    def asks(self, name: str) -> str | None:
        """The first value of a request header."""
        return None if self.request is None else self.request.get(name)

    def says(self, name: str) -> str | None:
        """The first value of a response header."""
        return None if self.response is None else self.response.get(name)

    def fact(self, name: str) -> Fact | None:
        """The fact of that name, if it is true of this exchange."""
        return next((fact for fact in self.facts if fact.name == name), None)

    def tell(self, name: str, n: int | None = None, t: int | None = None, text: str = "") -> None:
        """Note a fact, unless it is there already."""
        if self.fact(name) is None:
            self.facts.append(Fact(name, n, t, text))


@dataclass(slots=True)
class Http:
    """An HTTP exchange at the moment at which something could be told of it: its stream has begun, or it is over."""

    exchange: HttpExchange
    state: str
    """A key of HTTP_STATES."""
    asked: Body
    answered: Body
    facts: tuple[Fact, ...]
    """Those that were not told with an earlier event of this exchange."""
    is_first: bool
    """True for the first event of this exchange."""
    stream: str | None = None
    """What is known of its stream by then: a key of STREAM_KINDS."""
    conversation: int | None = None
    """The number of the conversation, as far as it is known by then."""
    ended_by: str | None = None
    why: str = ""
    """For ``undecoded``: a key of `mcpsniff.wire.http1_parts.UNDECODED`."""
    n: int = 0
    t: int = 0

    @property
    def flaws(self) -> tuple[str, ...]:
        """The flaws of the exchange, told with its last event."""
        return () if self.state == STREAMING else self.exchange.flaws

    @property
    def direction(self) -> str:
        """``s2c``: it is told when the response is."""
        return "s2c"

    @property
    def spans(self) -> tuple[Span, ...]:
        """The recorded bytes of both heads."""
        heads = (self.exchange.request, self.exchange.response)
        return tuple(span for head in heads if head is not None for span in head.spans)


@dataclass(slots=True)
class NamedEvent:
    """A moment, not an event: an event of a stream that is not named ``message``, with what carried it."""

    frame: Frame
    exchange: HttpExchange

    @property
    def direction(self) -> str:
        """``s2c``."""
        return self.frame.direction

    @property
    def spans(self) -> tuple[Span, ...]:
        """The recorded bytes of the event."""
        return self.frame.spans


@dataclass(slots=True)
class NamedEndpoint:
    """A moment, not an event: a stream of HTTP+SSE has named an endpoint; and once more, if it was passed on so."""

    frame: Frame
    exchange: HttpExchange
    is_passed: bool = False
    """True when what comes next on the channel is there, and no record has said that mcpsniff changed the event."""

    @property
    def direction(self) -> str:
        """``s2c``."""
        return self.frame.direction

    @property
    def spans(self) -> tuple[Span, ...]:
        """The recorded bytes of the event."""
        return self.frame.spans


def origin_form(target: str) -> str:
    """A request target without scheme and authority, as `POST http://host/mcp` has them in front of a proxy."""
    scheme, found, rest = target.partition("://")
    if not found or "/" in scheme:
        return target
    return "/" + rest.partition("/")[2]


def media_type(value: str | None) -> str:
    """The media type of a Content-Type in lower case, without parameters; empty if there is none."""
    return "" if value is None else value.partition(";")[0].strip().lower()


EVENT_STREAM: Final = "text/event-stream"


def is_json_type(kind: str) -> bool:
    """True for a media type whose content is one JSON text (RFC 8259, RFC 6839)."""
    return kind == "application/json" or kind.endswith("+json")
