"""Checks of the events on a stream: their names, their data, their charset, and the endpoint of HTTP+SSE."""

from mcpsniff.checks import ERROR, HTTP, INFO, SERVER, WARNING, Hit, Verdict, check
from mcpsniff.checks.over_http import (
    EVENTS,
    Place,
    host_of,
    is_of_mcp,
    is_same_place,
    is_streamable,
    origin_named,
    request_line,
)
from mcpsniff.checks.words import plain, quoted
from mcpsniff.protocol.conversation import Conversation
from mcpsniff.protocol.http import STREAMING, Http, HttpExchange, NamedEndpoint, NamedEvent
from mcpsniff.protocol.message import Message
from mcpsniff.protocol.reading import TRAILING_DATA
from mcpsniff.wire.frames import UNTERMINATED

LEGACY_STREAM = "basic/transports#http-with-sse"


@check(
    "MCP531",
    "sse-event-name",
    on=NamedEvent,
    severity=WARNING,
    group=HTTP,
    spec=EVENTS,
    once=True,
)
def sse_event_name(event: NamedEvent, _: Conversation) -> Verdict:
    """An event is named something else than ``message``.

    Messages are events named ``message``, or without a name; in HTTP+SSE one is named ``endpoint``. The SDK clients
    drop all others, and a message in such an event is lost. Told once per conversation.

    Fix: Leave the name out, or use ``message``; as a sign of life send a comment line (``: ping``).
    """
    http, sse = event.exchange, event.frame.sse
    if http.talk is None or sse is None or (sse.event == "endpoint" and not is_streamable(http)):
        return None
    return f"an event on the stream of {request_line(http)} is named {quoted(sse.event, 40)}; clients drop it"


@check(
    "MCP532",
    "sse-data-not-json",
    on=Message,
    when=("not-json", "not-an-object", TRAILING_DATA),
    framing="sse",
    severity=ERROR,
    group=HTTP,
    spec=EVENTS,
)
def sse_data_not_json(message: Message, _: Conversation) -> Verdict:
    """The data of an event is not one JSON-RPC message.

    Each event carries one message; empty data is allowed, as a point to resume from. The SDK clients log a parse error
    and go on, so what was meant is lost. Raw line feeds in the data are fine if each line begins with ``data:``.

    Fix: After ``data:`` write one serialised message, then a blank line; send signs of life as comments.
    """
    if message.batch is not None:
        return f"an element of the array is no message: {quoted(message.raw)}"
    return f"the data of an event is no JSON-RPC message: {quoted(message.raw)}"


@check(
    "MCP533",
    "sse-truncated",
    on=Http,
    when=(UNTERMINATED,),
    severity=WARNING,
    group=HTTP,
    spec=EVENTS,
    blame=SERVER,
)
def sse_truncated(event: Http, _: Conversation) -> Verdict:
    """A stream ends inside an event: no blank line follows its data.

    Readers drop an event that is not finished, so the last message is lost although all of it may have arrived.

    Fix: Write the blank line together with the data, and flush before the stream is closed.
    """
    http = event.exchange
    if http.stream is None or http.ended_by == "client":
        return None
    return f"the stream of {request_line(http)} ended inside an event, which readers drop"


@check(
    "MCP534",
    "sse-charset",
    on=Http,
    when=(STREAMING,),
    severity=WARNING,
    group=HTTP,
    spec=EVENTS,
    blame=SERVER,
)
def sse_charset(event: Http, _: Conversation) -> Verdict:
    """The Content-Type of an event stream names another charset than UTF-8.

    Event streams are UTF-8 and readers decode them so, whatever the header says: what is really sent in another
    charset arrives broken.

    Fix: Send ``Content-Type: text/event-stream`` without a charset, and encode in UTF-8.
    """
    kind = event.exchange.says("content-type") or ""
    for parameter in kind.split(";")[1:]:
        name, _equals, value = parameter.partition("=")
        charset = value.strip().strip('"')
        if name.strip().lower() == "charset" and charset.lower() not in ("utf-8", "utf8"):
            return f"an event stream says that its charset is {quoted(charset, 40)}"
    return None


@check(
    "MCP535",
    "endpoint-first",
    on=NamedEvent,
    severity=ERROR,
    group=HTTP,
    spec=LEGACY_STREAM,
    once=True,
)
def endpoint_first(event: NamedEvent, _: Conversation) -> Verdict:
    """On a stream of HTTP+SSE the ``endpoint`` event does not come first, or comes again.

    The client cannot send anything before it knows the endpoint, and the SDK clients change it at every such event.

    Fix: Send ``event: endpoint`` once, before anything else on the stream.
    """
    sse, http = event.frame.sse, event.exchange
    if sse is None or sse.event != "endpoint":
        return None
    if http.fact("endpoint-repeated") is not None:
        return "a second event names an endpoint"
    if http.fact("endpoint-not-first") is not None:
        return "the endpoint event came after other messages on its stream"
    return None


@check(
    "MCP536",
    "endpoint-origin",
    on=NamedEndpoint,
    severity=WARNING,
    group=HTTP,
    spec=LEGACY_STREAM,
)
def endpoint_origin(moment: NamedEndpoint, _: Conversation) -> Verdict:
    """The ``endpoint`` event leads away from where the stream comes from, so that POSTs bypass mcpsniff.

    The SDK clients refuse an endpoint of another scheme, host or port than the stream's; others go there, and what
    they say is not in the capture. An absolute address of the upstream is made relative on the way, but not in a
    compressed stream, nor where its event takes more than 1 s or 64 KiB to arrive, or is not the first on its stream.

    Fix: Send the endpoint as a path (``/messages?sessionId=…``), and do not compress event streams.
    """
    http = moment.exchange
    if http.request is None:
        return None
    endpoint = moment.frame.payload.decode(errors="replace").strip()
    own_scheme = _scheme_of(http)
    named = origin_named(endpoint, own_scheme)
    if named is None:
        return None
    place = host_of(f"{named[0]}://{named[1]}")
    is_same_scheme = named[0] == own_scheme
    is_upstream = is_same_scheme and is_same_place(place, host_of(http.authority))
    leads = _leads_away(http, endpoint, place if is_same_scheme else None, is_coded=moment.frame.coding is not None)
    if not moment.is_passed:
        return leads
    if leads is None and is_upstream and not is_same_place(place, host_of(http.asks("host") or "")):
        return f"the endpoint {quoted(endpoint, 60)} was passed on as it is, and leads past mcpsniff"
    return None


def _scheme_of(http: HttpExchange) -> str:
    return "https" if http.authority.startswith("https:") else "http"


def _leads_away(http: HttpExchange, endpoint: str, place: Place | None, *, is_coded: bool) -> str | None:
    """What an absolute endpoint is, if not the client's own address of the server; None for one of another scheme."""
    shown = f"the endpoint {quoted(endpoint, 60)}"
    asked = host_of(http.asks("host") or "")
    if place is not None and is_same_place(place, asked):
        return None if place[0] == asked[0] else f"{shown} names another host than the stream, which clients refuse"
    if place is not None and is_same_place(place, host_of(http.authority)):
        return f"{shown} is in a compressed stream and leads past mcpsniff" if is_coded else None
    return f"{shown} is at another origin than the stream; POSTs bypass mcpsniff"


@check(
    "MCP539",
    "http-compressed-stream",
    on=Http,
    when=(STREAMING,),
    severity=INFO,
    group=HTTP,
    spec=EVENTS,
    blame=SERVER,
    once=True,
)
def http_compressed_stream(event: Http, _: Conversation) -> Verdict:
    """An event stream is compressed.

    Compressors and what is between hold small events back until there is more, so that answers come late or only at
    the end. Told once per conversation.

    Fix: Leave ``text/event-stream`` out of what a compression layer takes, or flush it after every event.
    """
    http = event.exchange
    coding = (http.says("content-encoding") or "identity").strip().lower()
    if coding == "identity" or not is_of_mcp(http):
        return None
    return Hit(f"the stream of {request_line(http)} has the coding {plain(coding, 40)}")
