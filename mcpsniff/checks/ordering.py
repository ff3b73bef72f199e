"""Checks of correlation: who answers what, once, with the right id, and who may ask at all."""

from typing import Final

from mcpsniff.checks import CLIENT, ERROR, INFO, MCPSNIFF, NOTE, ORDERING, SERVER, WARNING, Hit, Verdict, check
from mcpsniff.checks.ending import asked_to_end
from mcpsniff.checks.words import call, done, duration, ending, identity, plain, subject
from mcpsniff.protocol.conversation import CROSSING_US, Conversation
from mcpsniff.protocol.events import StillOpen
from mcpsniff.protocol.exchanges import OTHER, Exchange
from mcpsniff.protocol.message import INVALID, Message
from mcpsniff.protocol.revisions import R_2025_11_25

REQUESTS: Final = "basic#requests"
RESPONSES: Final = "basic#responses"
SIDES: Final = {"c2s": CLIENT, "s2c": SERVER}
LISTEN: Final = "subscriptions/listen"
GIVES_UP_US: Final = 60_000_000
"""How long clients wait before they give a request up (the time-out of the TypeScript SDK)."""


@check(
    "MCP401",
    "id-duplicate-open",
    on=Message,
    when=("id-open",),
    severity=ERROR,
    group=ORDERING,
    spec=REQUESTS,
)
def id_duplicate_open(message: Message, _: Conversation) -> Verdict:
    """A request uses the id of another request of the same sender that is still open.

    Whose answer comes first cannot be told any more: here the two pair in order of sending and both are marked. A peer
    that keys its table by id overwrites the first one, which then never ends.

    Fix: Take ids from one counter per connection; do not reset it, and do not share a connection between two clients.
    """
    fact = message.fact("id-open")
    earlier = f"message {fact.n}" if fact is not None and fact.n is not None else "another request"
    return f"{subject(message)} has {identity(message.id)} while {earlier} with that id is still open"


@check(
    "MCP402",
    "id-reused",
    on=Message,
    when=("id-reused",),
    severity=ERROR,
    group=ORDERING,
    until=R_2025_11_25,
    spec=REQUESTS,
)
def id_reused(message: Message, _: Conversation) -> Verdict:
    """A request uses an id that its sender has used before in this session.

    Up to 2025-11-25 an id must never come again, not even after its answer; 2026-07-28 only forbids it while the
    earlier request is unanswered. A late or repeated answer to the first request is taken for one to the second.

    Fix: Take ids from one counter per connection and do not reset it.
    """
    fact = message.fact("id-reused")
    earlier = f" (message {fact.n})" if fact is not None and fact.n is not None else ""
    return f"{subject(message)} has {identity(message.id)}, which was used before in this session{earlier}"


@check(
    "MCP403",
    "response-unknown-id",
    on=Message,
    when=("unknown-id",),
    severity=ERROR,
    group=ORDERING,
    spec=RESPONSES,
)
def response_unknown_id(message: Message, _: Conversation) -> Verdict:
    """A response has an id that the other side never used.

    It answers nothing: clients log it or drop it. The request it was meant for, if there is one, stays open.

    Fix: Return the id of the request, with its type and value. If two servers or clients share a pipe, part them.
    """
    return None if message.kind == INVALID else f"{identity(message.id)} is answered and was never asked"


@check(
    "MCP404",
    "response-twice",
    on=Message,
    when=("answered-twice",),
    severity=ERROR,
    group=ORDERING,
    spec=RESPONSES,
)
def response_twice(message: Message, _: Conversation) -> Verdict:
    """A request is answered a second time.

    Each request gets one response. The second one is dropped or, if the id is used again, taken for another answer.

    Fix: End the handler after it has answered; make sure that a time-out and the result cannot both answer.
    """
    fact = message.fact("answered-twice")
    first = f" (first by message {fact.n})" if fact is not None and fact.n is not None else ""
    return f"{identity(message.id)} is answered again{first}"


@check(
    "MCP405",
    "response-id-type",
    on=Message,
    when=("id-type-differs",),
    severity=ERROR,
    group=ORDERING,
    spec=RESPONSES,
)
def response_id_type(message: Message, _: Conversation) -> Verdict:
    """An answer returns an id of another type: a string for a number, or a number for a string.

    The id has to be the same value, and "1" is not 1. The SDK clients tolerate a string of digits for a number, others
    do not, and then the request is never answered.

    Fix: Keep the id as it was parsed, without turning it into text or a number.
    """
    asked = "a number" if isinstance(message.key, str) else "a string"
    return f"the response has {identity(message.id)}, and the request has that id as {asked}"


@check(
    "MCP406",
    "response-wrong-side",
    on=Message,
    when=("wrong-side",),
    severity=ERROR,
    group=ORDERING,
    spec=RESPONSES,
)
def response_wrong_side(message: Message, _: Conversation) -> Verdict:
    """A response comes from the side that sent the request.

    Each side numbers its own requests and answers those of the other. An echo of one's own request, or a relay that
    mixes the two directions, looks like this.

    Fix: Keep one table of open requests per direction, and answer only what was received.
    """
    fact = message.fact("wrong-side")
    where = f" (message {fact.n})" if fact is not None and fact.n is not None else ""
    return f"{identity(message.id)} is answered by the {SIDES[message.direction]}, which asked it itself{where}"


@check(
    "MCP407",
    "response-uncorrelated",
    on=Message,
    when=("uncorrelated",),
    severity=INFO,
    group=ORDERING,
    spec=RESPONSES,
)
def response_uncorrelated(message: Message, _: Conversation) -> Verdict:
    """An error without an id that belongs to a request: null, none, or a made-up one.

    This is how a receiver says that it could not read a message well enough to know its id. JSON-RPC asks for null, the
    schemas since 2025-11-25 leave the id out; the Python 1.x server sends "server-error". The sender of the
    unreadable message waits in vain unless it notices.

    Fix: Look at what the other side sent just before; that is what could not be read.
    """
    text = message.error.get("message")
    said = f": {plain(text)}" if isinstance(text, str) and text else ""
    return f"an error with {identity(message.id)} belongs to no request{said}"


@check(
    "MCP408",
    "notification-answered",
    on=Message,
    when=("notification-answered",),
    severity=ERROR,
    group=ORDERING,
    spec="basic#notifications",
)
def notification_answered(message: Message, _: Conversation) -> Verdict:
    """A notification is answered.

    A message without an id is a notification whatever it is called, and nothing may answer it: the sender could not
    tell what the answer belongs to.

    Fix: Ignore notifications that are not known, and do not answer the others either.
    """
    fact = message.fact("notification-answered")
    where = f" {fact.n}" if fact is not None and fact.n is not None else ""
    return f"{subject(message)} answers notification{where}, and notifications have no answer"


@check(
    "MCP409",
    "request-unanswered",
    on=Exchange,
    when=("abandoned",),
    severity=WARNING,
    group=ORDERING,
    spec=RESPONSES,
)
def request_unanswered(exchange: Exchange, conversation: Conversation) -> Verdict:
    """A request was neither answered nor cancelled before the session ended.

    A client that gets no answer waits for its time-out, and the Python 1.x client has none. If the asking side itself
    ended the session soon after the request, that is a note and nobody's failure. So it is where mcpsniff, or an addon,
    changed something on the way.

    Fix: Answer every request, with an error where there is nothing else to say, also when a handler raises. Who gives
    up on a request of its own sends notifications/cancelled before it leaves.
    """
    if exchange.is_refused or exchange.lost or not conversation.closed_at:
        return None
    if exchange.method == LISTEN or exchange.method.startswith("notifications/"):
        return None
    if exchange.cause is not None:
        return Hit(f"{call(exchange)} was never answered: {done(exchange.cause)}", NOTE, MCPSNIFF)
    if exchange.unseen:
        return None
    if exchange.t_request > max(conversation.closed_at.values()):
        return None  # sent into a session that had ended (MCP517)
    judge = _client_waited if exchange.direction == "c2s" else _server_waited
    return judge(exchange, conversation)


def _client_waited(exchange: Exchange, conversation: Conversation) -> Hit:
    left, process = conversation.client_left_at, conversation.process_end
    if left is not None:
        waited = left - exchange.t_request
        if waited < GIVES_UP_US:
            text = f"the client left {duration(waited)} after {call(exchange)}, without an answer or a cancel"
            return Hit(text, NOTE, CLIENT)
        return Hit(f"{call(exchange)} had no answer in the {duration(waited)} until the client left", blame=SERVER)
    if process is not None and asked_to_end(process):
        text = f"{call(exchange)} was open when the server was ended by SIG{plain(process.sent[-1])}"
        return Hit(text, NOTE, CLIENT)
    how = "ended the session" if conversation.over_http else "closed its output"
    how = how if process is None else ending(process)
    return Hit(f"{call(exchange)} was never answered: the server {how}", blame=SERVER)


def _server_waited(exchange: Exchange, conversation: Conversation) -> Hit:
    left = conversation.client_left_at
    if left is None:
        what = "ended the session" if conversation.over_http else "ended"
        return Hit(f"the server {what} while its own {call(exchange)} was open", NOTE, SERVER)
    waited = left - exchange.t_request
    text = f"the client left {duration(waited)} after the server's {call(exchange)}, without an answer"
    return Hit(text, INFO if waited <= CROSSING_US else WARNING, CLIENT)


@check(
    "MCP410",
    "request-slow",
    on=StillOpen,
    severity=INFO,
    group=ORDERING,
    spec="basic/lifecycle#timeouts",
)
def request_slow(moment: StillOpen, conversation: Conversation) -> Verdict:
    """A request has had no answer and no progress for a minute.

    The TypeScript clients give up after 60 seconds by default; the Python clients wait for ever unless told otherwise.

    Fix: Send notifications/progress for long work when the request offers a token, or return at once and let the
    client ask again.
    """
    exchange = moment.exchange
    if exchange.method == LISTEN or conversation.is_broken_off:
        return None
    text = f"{call(exchange)} has had no answer and no progress for {duration(moment.waited_us)}"
    return Hit(text, blame=SIDES[OTHER[exchange.direction]])


@check(
    "MCP411",
    "modern-server-request",
    on=Message,
    when=("modern-server-request",),
    severity=ERROR,
    group=ORDERING,
    spec="basic#requests",
)
def modern_server_request(message: Message, _: Conversation) -> Verdict:
    """The server sends a request although the session is one of 2026-07-28.

    In that revision servers send no requests: what they need from the client they ask for inside a result with
    ``resultType`` "input_required". A client of 2026-07-28 does not answer, so the server waits in vain.

    Fix: Return an input_required result and read the answers from the client's next request.
    """
    return f"the server sent the request {plain(message.method or '', 40)}; in 2026-07-28 only clients send requests"


@check(
    "MCP412",
    "modern-client-response",
    on=Message,
    when=("modern-client-response",),
    severity=ERROR,
    group=ORDERING,
    spec="basic/transports",
)
def modern_client_response(message: Message, _: Conversation) -> Verdict:
    """The client sends a response although the session is one of 2026-07-28.

    In that revision there is nothing to answer: servers send no requests, and input goes into the next request as
    ``inputResponses``. Servers drop or refuse the response.

    Fix: Send the request again with ``inputResponses`` and the ``requestState`` of the input_required result.
    """
    return f"the client sent a response with {identity(message.id)}; in 2026-07-28 only servers respond"
