"""Checks of how HTTP answers a message: status, media type, and what the bodies of both sides hold."""

from typing import Final

from mcpsniff.checks import ERROR, HTTP, SERVER, WARNING, Hit, Verdict, check
from mcpsniff.checks.framing import objects_on
from mcpsniff.checks.over_http import JSON, SENDING, answer, is_served, is_streamable, request_line
from mcpsniff.checks.words import plain, quoted, size
from mcpsniff.protocol.conversation import Conversation
from mcpsniff.protocol.http import COMPLETE, EVENT_STREAM, Http, media_type
from mcpsniff.protocol.message import ERROR as ERROR_KIND
from mcpsniff.protocol.message import Message
from mcpsniff.protocol.oauth import AUTHORIZED
from mcpsniff.protocol.reading import TRAILING_DATA
from mcpsniff.protocol.revisions import R_2025_03_26, R_2026_07_28, is_modern
from mcpsniff.wire.frames import (
    CODING_CUT,
    CODING_DAMAGED,
    CODING_MISMATCH,
    CODING_UNKNOWN,
    UNTERMINATED,
)

ACCEPTED: Final = 202
STATUS_OF: Final = {-32700: 400, -32600: 400, -32601: 404, -32020: 400, -32021: 400, -32022: 400}
"""The status that an error code has in 2026-07-28, where the code alone settles it."""
MODERN_CODES: Final = frozenset({-32020, -32021, -32022})
"""Codes that only a server of 2026-07-28 knows."""
_CODED: Final = frozenset({CODING_CUT, CODING_DAMAGED, CODING_MISMATCH, CODING_UNKNOWN})


@check(
    "MCP503",
    "http-response-type",
    on=Http,
    when=(COMPLETE,),
    severity=ERROR,
    group=HTTP,
    since=R_2025_03_26,
    spec=SENDING,
    blame=SERVER,
)
def http_response_type(event: Http, _: Conversation) -> Verdict:
    """A request is answered with success, and neither as JSON nor as an event stream.

    A client reads the answer by its Content-Type. With another one, or none, the SDK clients report an unexpected
    content type and the call fails, whatever the body says. A page in HTML means that something else answered.

    Fix: Send ``application/json`` with one JSON-RPC object, or ``text/event-stream``. Check the path of the URL.
    """
    http = event.exchange
    if not http.requests or not is_served(http) or http.status == ACCEPTED or not is_streamable(http):
        return None
    if media_type(http.says("content-type")) in (JSON, EVENT_STREAM):
        return None
    return f"a request was answered with {answer(http)}, neither JSON nor an event stream"


@check(
    "MCP504",
    "http-body-count",
    on=Message,
    when=(TRAILING_DATA, "not-json", "not-an-object"),
    framing="body",
    severity=ERROR,
    group=HTTP,
    spec=SENDING,
)
def http_body_count(message: Message, _: Conversation) -> Verdict:
    """A body that has to be one JSON-RPC message is none, or more than one.

    A POST carries one message (2025-03-26: or an array), and so does an answer in JSON. Receivers parse the body as a
    whole: SDK servers refuse it with 400, and a client's call fails with a parse error.

    Fix: Serialise one object per body; send each message in a POST of its own.
    """
    http = message.http
    if http is None or UNTERMINATED in message.flaws:
        return None
    body = http.asked if message.direction == "c2s" else http.answered
    if not _CODED.isdisjoint(body.flaws):
        return None
    if message.batch is not None:
        return f"an element of the array is no message: {quoted(message.raw)}"
    count = objects_on(message)
    if count > 1:
        return f"the body holds {count} JSON objects and has to be one"
    return f"the body is no JSON-RPC message: {quoted(message.raw)}"


@check(
    "MCP505",
    "http-notification-status",
    on=Http,
    when=(COMPLETE,),
    severity=ERROR,
    group=HTTP,
    since=R_2025_03_26,
    spec=SENDING,
    blame=SERVER,
)
def http_notification_status(event: Http, _: Conversation) -> Verdict:
    """A notification or a response is accepted with something else than 202 without a body.

    Nothing answers these messages, so the server says 202 and no more, or refuses with an error status. SDK clients
    take any success, others wait for what 200 promises. A body behind 202 is ignored, and a warning only.

    Fix: Answer 202 with an empty body.
    """
    http = event.exchange
    if http.requests or not http.notices or not is_served(http) or not is_streamable(http):
        return None
    if http.status != ACCEPTED:
        return f"a message that has no answer was accepted with {answer(http)} instead of 202"
    return Hit(f"202 has a body of {size(http.answered.wire)}", WARNING) if http.answered.wire else None


@check(
    "MCP506",
    "http-request-202",
    on=Http,
    severity=ERROR,
    group=HTTP,
    since=R_2025_03_26,
    spec=SENDING,
    blame=SERVER,
)
def http_request_202(event: Http, _: Conversation) -> Verdict:
    """A request is answered 202, which is for messages that have no answer.

    The answer to a request stands in the response to its POST. After 202 SDK clients expect nothing more on this
    connection, and the call waits for its time-out unless the answer happens to come on another stream.

    Fix: Answer requests with 200 and JSON or an event stream. An ``id`` that the server does not take for one (null)
    makes it treat a request as a notification.
    """
    http = event.exchange
    if not http.requests or http.status != ACCEPTED or http.by is not None or not is_streamable(http):
        return None
    return f"{request_line(http)} carries a request and was answered 202"


@check(
    "MCP507",
    "http-error-status",
    on=Message,
    http="s2c",
    severity=ERROR,
    group=HTTP,
    since=R_2026_07_28,
    spec="basic/transports/streamable-http#protocol-version-header",
)
def http_error_status(message: Message, conversation: Conversation) -> Verdict:
    """The HTTP status does not fit the code of the JSON-RPC error.

    In 2026-07-28 a method that is not there has 404; malformed requests, header mismatches, missing capabilities and
    unsupported versions have 400. Clients tell by it whether to go on, to try another version, or to fall back.

    Fix: Send the status that belongs to the code, and find these errors before a stream is begun.
    """
    http, asked = message.http, message.link
    if message.kind != ERROR_KIND or http is None or http.by is not None or asked is None:
        return None
    code = message.error.get("code")
    expected = STATUS_OF.get(code) if isinstance(code, int) else None
    if expected in (None, http.status) or http.number != asked.http or not is_modern(asked.revision):
        return None
    if code not in MODERN_CODES and not conversation.is_served:
        return None  # may be a server of an earlier revision, which the client is finding out
    return f"error {code} ({plain(asked.method, 40)}) came with status {http.status} and belongs to {expected}"


@check(
    "MCP515",
    "http-modern-get",
    on=Http,
    severity=WARNING,
    group=HTTP,
    since=R_2026_07_28,
    spec="basic/transports/streamable-http#earlier-streamable-http-revisions",
    blame=SERVER,
)
def http_modern_get(event: Http, _: Conversation) -> Verdict:
    """GET or DELETE is served in 2026-07-28, where only POST is.

    There are no streams of the server's own and no sessions any more; both methods are answered 405. A client that
    gets a stream takes the server for one of an earlier revision.

    Fix: Answer 405 with ``Allow: POST`` when the request names 2026-07-28.
    """
    http = event.exchange
    if http.method not in ("GET", "DELETE") or not http.is_modern or not is_served(http):
        return None
    if http.auth is not None and http.auth.name != AUTHORIZED:
        return None  # clients of OAuth name their revision, too
    return f"{request_line(http)} names {http.version} and was answered {http.status} instead of 405"
