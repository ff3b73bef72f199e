"""Checks of the envelope: what JSON-RPC 2.0 and MCP ask of every message, whatever it says."""

from typing import Final

from mcpsniff.checks import ERROR, JSONRPC, WARNING, Hit, Verdict, check
from mcpsniff.checks.words import identity, listed, plain, quoted, value
from mcpsniff.protocol.conversation import Conversation
from mcpsniff.protocol.jsonrpc import MEMBERS
from mcpsniff.protocol.message import ERROR as ERROR_KIND
from mcpsniff.protocol.message import Message

REQUESTS: Final = "basic#requests"
RESPONSES: Final = "basic#responses"
NOTIFICATIONS: Final = "basic#notifications"


def _is_foreign(message: Message) -> bool:
    """True for an object that has nothing of JSON-RPC, such as a log line in JSON: one fault, told once (MCP208)."""
    return isinstance(message.body, dict) and MEMBERS.isdisjoint(message.body)


@check(
    "MCP201",
    "jsonrpc-member",
    on=Message,
    when=("jsonrpc-missing", "jsonrpc-not-2.0"),
    severity=ERROR,
    group=JSONRPC,
    spec="basic#messages",
)
def jsonrpc_member(message: Message, _: Conversation) -> Verdict:
    """The member jsonrpc is missing or is not the string "2.0".

    Every message has it. All SDK servers tried drop a message without it: three say nothing, the Python 1.x server
    sends a log notification, and a request is never answered.

    Fix: Put ``"jsonrpc": "2.0"`` (a string) into every request, notification and response.
    """
    if _is_foreign(message):
        return None
    if "jsonrpc" not in message.body:
        return "the member jsonrpc is missing"
    return f'jsonrpc is {value(message.body["jsonrpc"])} and has to be the string "2.0"'


@check(
    "MCP202",
    "id-null",
    on=Message,
    when=("id-null", "id-absent"),
    severity=ERROR,
    group=JSONRPC,
    spec=REQUESTS,
)
def id_null(message: Message, _: Conversation) -> Verdict:
    """A request has a null id, or a result has a null id or none.

    JSON-RPC allows null for errors that cannot be correlated; MCP forbids it in requests. The SDK servers take such a
    request for a notification and never answer it; a result without an id belongs to nothing.

    Fix: Give every request an integer or a string that was not used before, and repeat it in the answer.
    """
    if message.kind == ERROR_KIND or message.fact("notification-answered") is not None:
        return None
    if message.method is not None:
        return f"the request {plain(message.method, 40)} has a null id, so nothing can answer it"
    return f"a result has {'a null id' if message.id is not None else 'no id'}, so it answers nothing"


@check(
    "MCP203",
    "id-type",
    on=Message,
    when=("id-bool", "id-fraction", "id-structured"),
    severity=ERROR,
    group=JSONRPC,
    spec=REQUESTS,
)
def id_type(message: Message, _: Conversation) -> Verdict:
    """An id is neither a string nor an integer.

    The SDK servers take a request with such an id (true, 1.5, an object) for a notification and never answer it.

    Fix: Use integers that count up, or strings.
    """
    token = plain(message.id or "", 40)
    return f"the id is {token}; it has to be a string or an integer"


@check(
    "MCP204",
    "id-integral-float",
    on=Message,
    when=("id-integral-float",),
    severity=WARNING,
    group=JSONRPC,
    spec=REQUESTS,
)
def id_integral_float(message: Message, _: Conversation) -> Verdict:
    """An id is an integer that is written as a float, such as 1.0.

    It is the same number, and it pairs here, but peers differ: Python servers and clients drop the message, TypeScript
    ones take it for 1. It comes from languages whose numbers are all floats.

    Fix: Write ids as integers (convert them before serialising), and return an id exactly as it was received.
    """
    return f"the id is written as {plain(message.id or '', 40)}; Python peers drop such a message"


@check(
    "MCP205",
    "params-not-object",
    on=Message,
    when=("params-not-object",),
    severity=ERROR,
    group=JSONRPC,
    spec=REQUESTS,
)
def params_not_object(message: Message, _: Conversation) -> Verdict:
    """The member params is there and is not an object.

    JSON-RPC knows positional params, MCP only named ones. For ``null`` the Python servers answer and the TypeScript
    ones drop the message.

    Fix: Send an object, or leave params out when there are none.
    """
    return f"params of {plain(message.method or '', 40)} is {value(message.body['params'])}; it has to be an object"


@check(
    "MCP206",
    "result-not-object",
    on=Message,
    when=("result-not-object",),
    severity=ERROR,
    group=JSONRPC,
    spec=RESPONSES,
)
def result_not_object(message: Message, _: Conversation) -> Verdict:
    """A result is not an object.

    Every MCP result is an object, an empty one where there is nothing to say. Clients fail to parse anything else.

    Fix: Answer with ``{}`` when there is nothing to return, and wrap lists and values in the member that the method
    defines.
    """
    return f"the result of {identity(message.id)} is {value(message.body['result'])}; it has to be an object"


@check(
    "MCP207",
    "result-and-error",
    on=Message,
    when=("result-and-error",),
    severity=ERROR,
    group=JSONRPC,
    spec=RESPONSES,
)
def result_and_error(message: Message, _: Conversation) -> Verdict:
    """A response has both a result and an error.

    It has exactly one of them. Python clients take the error, TypeScript clients drop the message and wait until they
    time out. An ``"error": null`` beside a result counts as both.

    Fix: Leave the other member out of the object instead of setting it to null.
    """
    return f"the response to {identity(message.id)} has both result and error"


@check(
    "MCP208",
    "no-payload",
    on=Message,
    when=("no-payload", "method-with-result", "method-not-string", "method-empty"),
    severity=ERROR,
    group=JSONRPC,
    spec="basic#messages",
)
def no_payload(message: Message, _: Conversation) -> Verdict:
    """A message says nothing, or two things at once: no method, result or error, or a method beside a result.

    What a message is follows from its members: a method makes it a request or a notification, a result or an error a
    response. Receivers drop anything else, and whoever waits for it waits in vain. An object with no member of JSON-RPC
    at all is as a rule a log line in JSON that belongs on stderr.

    Fix: Answer with a result (``{}`` if there is nothing to say) or an error; never put method into a response.
    """
    if _is_foreign(message):
        return f"an object that is no JSON-RPC message: {quoted(message.raw)}"
    if "method-not-string" in message.flaws:
        return f"method is {value(message.body['method'])}; it has to be a string"
    if "method-empty" in message.flaws:
        return Hit("method is an empty string", WARNING)
    if "method-with-result" in message.flaws:
        other = "result" if "result" in message.body else "error"
        return f"method {quoted(message.method or '', 40)} stands beside {other}; a message has one or the other"
    return f"a message with {identity(message.id)} has neither method nor result nor error"


_ERROR_FLAWS: Final = {
    "error-not-object": "it is not an object",
    "error-code-missing": "it has no code",
    "error-code-not-integer": "its code is not an integer",
    "error-message-missing": "it has no message that is a string",
}


@check(
    "MCP209",
    "error-shape",
    on=Message,
    when=tuple(_ERROR_FLAWS),
    severity=ERROR,
    group=JSONRPC,
    spec=RESPONSES,
)
def error_shape(message: Message, _: Conversation) -> Verdict:
    """An error is not an object with an integer code and a message.

    Clients decide by the code and show the message; with another shape they fail to parse the response, and the caller
    sees a time-out or an unrelated error.

    Fix: Send ``{"code": -32603, "message": "what went wrong"}``; anything more goes into ``data``.
    """
    wrong = [text for flaw, text in _ERROR_FLAWS.items() if flaw in message.flaws]
    return f"the error for {identity(message.id)} has the wrong shape: {listed(wrong)}"


@check(
    "MCP210",
    "unknown-member",
    on=Message,
    when=("unknown-member",),
    severity=WARNING,
    group=JSONRPC,
    spec="basic#messages",
)
def unknown_member(message: Message, _: Conversation) -> Verdict:
    """A member at the top level that JSON-RPC does not define.

    Python peers ignore it; TypeScript peers drop the whole message, so that a request is never answered.

    Fix: Put additional data into ``params``, ``result`` or their ``_meta``.
    """
    if _is_foreign(message):
        return None
    names = [quoted(name, 30) for name in message.body if name not in MEMBERS]
    return f"{listed(names)} at the top level; TypeScript peers drop the whole message"


@check(
    "MCP211",
    "notification-with-id",
    on=Message,
    when=("notification-method-with-id",),
    severity=ERROR,
    group=JSONRPC,
    spec=NOTIFICATIONS,
)
def notification_with_id(message: Message, _: Conversation) -> Verdict:
    """A notification method is sent with an id.

    With an id the message is a request, and the receiver has no handler for one by that name: the notification has no
    effect, and an error comes back that nobody expects.

    Fix: Send notifications without the member id.
    """
    return f"{plain(message.method or '', 60)} is a notification and has {identity(message.id)}"


@check(
    "MCP212",
    "request-without-id",
    on=Message,
    when=("request-method-without-id",),
    severity=ERROR,
    group=JSONRPC,
    spec=REQUESTS,
)
def request_without_id(message: Message, _: Conversation) -> Verdict:
    """A request method is sent without an id.

    Without an id the message is a notification: the receiver ignores it and nothing is answered.

    Fix: Give every request an id.
    """
    return f"{plain(message.method or '', 60)} is a request and has no id, so it gets no answer"


@check(
    "MCP213",
    "batch-forbidden",
    on=Message,
    when=("batch",),
    severity=ERROR,
    group=JSONRPC,
    spec="basic#messages",
)
def batch_forbidden(message: Message, _: Conversation) -> Verdict:
    """An array of messages is sent where the protocol version has no batches.

    Batches exist in 2025-03-26 only. Since 2025-06-18 they are removed (an error); 2024-11-05 does not mention them (a
    warning). On stdio every SDK client and server tried drops the whole array.

    Fix: Send each message on its own.
    """
    count = len(message.body) if isinstance(message.body, list) else 0
    text = f"an array of {count} messages, and {message.revision} has no batches"
    return Hit(text, WARNING if message.revision == "2024-11-05" else ERROR)


@check(
    "MCP214",
    "batch-initialize",
    on=Message,
    when=("batch-initialize",),
    severity=ERROR,
    group=JSONRPC,
    spec="basic/lifecycle#initialization",
)
def batch_initialize(message: Message, _: Conversation) -> Verdict:
    """A batch contains initialize.

    initialize MUST NOT be part of a batch: what else is in the array would be sent before anything is agreed on.

    Fix: Send initialize alone and wait for its result.
    """
    return "initialize stands in a batch of " + str(len(message.body))


@check(
    "MCP215",
    "batch-mixed",
    on=Message,
    when=("batch-mixed",),
    severity=ERROR,
    group=JSONRPC,
    spec="basic/transports",
)
def batch_mixed(_message: Message, _: Conversation) -> Verdict:
    """Requests or notifications share a batch with responses.

    An array holds either requests and notifications, or responses (2025-03-26 transports).

    Fix: Send two arrays, or each message on its own.
    """
    return "one array holds both calls and responses"


@check(
    "MCP216",
    "batch-empty",
    on=Message,
    when=("batch-empty",),
    severity=ERROR,
    group=JSONRPC,
    spec="jsonrpc#batch",
)
def batch_empty(_message: Message, _: Conversation) -> Verdict:
    """An array has no elements.

    JSON-RPC calls an empty array an invalid request; it is answered with one error or not at all.

    Fix: Send nothing when there is nothing to send.
    """
    return "an empty array is no message"


@check(
    "MCP217",
    "method-rpc-prefix",
    on=Message,
    when=("method-rpc-prefix",),
    severity=WARNING,
    group=JSONRPC,
    spec="jsonrpc#request_object",
)
def method_rpc_prefix(message: Message, _: Conversation) -> Verdict:
    """A method name begins with ``rpc.``, which JSON-RPC keeps for itself.

    No such method is defined in MCP, and libraries may treat these names in their own way.

    Fix: Name extension methods under a prefix of your own.
    """
    return f"the method {quoted(message.method or '', 40)} has a prefix that JSON-RPC reserves"
