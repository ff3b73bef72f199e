"""Checks of event streams over their whole life: what belongs on which, how they end, how they are resumed."""

from mcpsniff.checks import CLIENT, ERROR, HTTP, INFO, SERVER, WARNING, Hit, Verdict, check
from mcpsniff.checks.over_http import LISTENING, RESUMING, SENDING, is_modern, is_streamable, request_line
from mcpsniff.checks.words import call, duration, identity, quoted, subject
from mcpsniff.protocol.conversation import Conversation
from mcpsniff.protocol.http import ABORTED, COMPLETE, POST, Http
from mcpsniff.protocol.message import REQUEST, Message
from mcpsniff.protocol.revisions import R_2025_03_26, R_2025_11_25, R_2026_07_28, is_within
from mcpsniff.protocol.revisions import is_modern as is_modern_revision

MULTIPLE = "basic/transports#multiple-connections"
TOLERANCE = 0.95
"""The part of the reconnection time after which a client is taken to have waited: timers round."""


@check(
    "MCP522",
    "stream-response-on-get",
    on=Message,
    when=("answer-on-get-stream",),
    severity=ERROR,
    group=HTTP,
    since=R_2025_03_26,
    until=R_2025_11_25,
    spec=LISTENING,
)
def stream_response_on_get(message: Message, _: Conversation) -> Verdict:
    """A response comes on a stream that was opened by GET and goes on with no other one.

    Responses belong into the response to the POST that asked. A GET stream may carry them only if it resumes the
    stream of that POST (Last-Event-ID). Clients that wait at the POST never see it.

    Fix: Keep with each request the stream of its POST, and write the response there.
    """
    http = message.http
    if http is None or not is_streamable(http) or message.link is None or http.last_event_id is not None:
        return None
    return f"the answer to {call(message.link)} came on the stream of {request_line(http)}, not on that of its POST"


@check(
    "MCP523",
    "stream-duplicate",
    on=Message,
    when=("on-two-streams",),
    severity=WARNING,
    group=HTTP,
    since=R_2025_03_26,
    until=R_2025_11_25,
    spec=MULTIPLE,
)
def stream_duplicate(message: Message, _: Conversation) -> Verdict:
    """The same message comes on two streams of a session within a second.

    A server sends each message on one stream; a client that has several handles it twice otherwise. Two equal
    notifications may also be two that say the same, so they are a warning, and nothing is said of those on the streams
    of two POSTs; a request with the same id is an error.

    Fix: Choose one stream per message: that of the request it belongs to, else one GET stream.
    """
    fact = message.fact("on-two-streams")
    if fact is None or message.http is None or not is_streamable(message.http):
        return None
    if message.kind == REQUEST:
        return Hit(f"{subject(message)} with {identity(message.id)} came on another stream as message {fact.n}", ERROR)
    return f"{subject(message)} came on another stream just before, as message {fact.n}"


@check(
    "MCP524",
    "stream-foreign",
    on=Message,
    when=("answer-on-foreign-stream", "progress-on-foreign-stream"),
    severity=WARNING,
    group=HTTP,
    since=R_2025_03_26,
    spec=SENDING,
)
def stream_foreign(message: Message, _: Conversation) -> Verdict:
    """A response or progress comes on the stream of another request than the one it belongs to.

    A stream that answers a POST carries what relates to its request. Clients read it for that one only, and the other
    call waits in vain; the Python SDK clients even take such a response for their own. In 2026-07-28 it is an error.

    Fix: Keep with each request the stream of its POST, and write there.
    """
    if message.link is None:
        return None
    text = f"{subject(message)} belongs to {call(message.link)}, and came on the stream of another POST"
    return Hit(text, ERROR if is_modern_revision(message.revision) else None)


@check(
    "MCP525",
    "stream-unanswered",
    on=Http,
    when=("ended-unanswered",),
    severity=WARNING,
    group=HTTP,
    since=R_2025_03_26,
    spec=SENDING,
    blame=SERVER,
)
def stream_unanswered(event: Http, conversation: Conversation) -> Verdict:
    """The stream that was to bring the answer to a request ends without it.

    Up to 2025-06-18 a server should not do this. In 2025-11-25 it may, once it has sent an event with an id, from
    which the client resumes. In 2026-07-28 nothing can be resumed, and the request is lost.

    Fix: Answer before the stream is closed, also with an error; before a shutdown, answer what is open.
    """
    http = event.exchange
    stream = http.stream
    if stream is None or stream.kind != POST or event.state != COMPLETE or http.is_refused or not is_streamable(http):
        return None
    if stream.is_resumable and is_within(conversation.revision, R_2025_11_25, R_2025_11_25):
        return None
    resumable = ", and can be resumed" if stream.is_resumable and not is_modern(http) else ""
    return f"the stream of {request_line(http)} ended without the answer{resumable}"


@check(
    "MCP526",
    "stream-after-response",
    on=Message,
    when=("after-response",),
    severity=INFO,
    group=HTTP,
    since=R_2025_03_26,
    spec=SENDING,
)
def stream_after_response(message: Message, _: Conversation) -> Verdict:
    """A message comes on the stream of a POST after the response.

    The stream should end with the response. The SDK clients stop reading there, so what comes later is lost.

    Fix: End the stream after the response; send what belongs to no request on a GET stream.
    """
    fact = message.fact("after-response")
    after = f", message {fact.n}" if fact is not None and fact.n is not None else ""
    return f"{subject(message)} came on the stream after the response{after}"


@check(
    "MCP527",
    "event-id-duplicate",
    on=Http,
    when=("event-id-repeated",),
    severity=ERROR,
    group=HTTP,
    since=R_2025_03_26,
    until=R_2025_11_25,
    spec=RESUMING,
    blame=SERVER,
)
def event_id_duplicate(event: Http, _: Conversation) -> Verdict:
    """Two events of a session have the same id.

    An id is a place in one stream: a client that names it must get what followed there. Ids that begin anew on each
    stream lead to the events of another one, or to none. Told once per response.

    Fix: Put the stream into the id, or count over all streams of the session.
    """
    fact = next((fact for fact in event.facts if fact.name == "event-id-repeated"), None)
    if fact is None or not is_streamable(event.exchange):
        return None
    return f"the event id {quoted(fact.text, 40)} was used before in this session, in frame {fact.n}"


@check(
    "MCP528",
    "event-id-26",
    on=Http,
    when=(COMPLETE, ABORTED),
    severity=INFO,
    group=HTTP,
    since=R_2026_07_28,
    spec="basic/transports/streamable-http#receiving-messages",
    blame=SERVER,
    once=True,
)
def event_id_26(event: Http, _: Conversation) -> Verdict:
    """Events have ids in 2026-07-28, where no stream can be resumed.

    Last-Event-ID is gone; a client whose stream breaks sends its request again with a new id. Told once.

    Fix: Leave the ids out, unless older clients use the same stream.
    """
    http = event.exchange
    if http.stream is None or not http.stream.is_resumable or not is_modern(http):
        return None
    return f"events of {request_line(http)} have ids, such as {quoted(http.stream.last_event_id, 40)}"


@check(
    "MCP529",
    "resume-unknown",
    on=Http,
    when=("resume-unknown",),
    severity=WARNING,
    group=HTTP,
    since=R_2025_03_26,
    until=R_2025_11_25,
    spec=RESUMING,
    blame=CLIENT,
)
def resume_unknown(event: Http, _: Conversation) -> Verdict:
    """Last-Event-ID names an event that was not sent in this session.

    The server cannot know from where to go on: it begins a new stream, answers an error, or guesses. The id may come
    from another session or server, or may have been changed on the way.

    Fix: Send the id of the last event exactly as it was received, and forget it with the session.
    """
    fact = next((fact for fact in event.facts if fact.name == "resume-unknown"), None)
    return None if fact is None else f"Last-Event-ID is {quoted(fact.text, 40)}, and no event here had that id"


@check(
    "MCP530",
    "retry-ignored",
    on=Http,
    when=("resumed-early",),
    severity=ERROR,
    group=HTTP,
    since=R_2025_11_25,
    until=R_2025_11_25,
    spec=SENDING,
    blame=CLIENT,
)
def retry_ignored(event: Http, _: Conversation) -> Verdict:
    """A client resumes a stream sooner than the server has asked for by ``retry``.

    The server sets the pace at which it is polled. A client that comes back at once makes it hold a connection for
    every waiting call, which polling is there to avoid.

    Fix: Wait for as many milliseconds as the last ``retry`` of the stream says.
    """
    fact = next((fact for fact in event.facts if fact.name == "resumed-early"), None)
    if fact is None or fact.t is None or not fact.text.isdecimal():
        return None
    waited, wanted = event.exchange.t_request - fact.t, int(fact.text) * 1000
    if waited >= wanted * TOLERANCE:
        return None
    return f"the stream was resumed {duration(max(waited, 0))} after its end, and retry asked for {duration(wanted)}"
