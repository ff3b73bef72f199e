"""Classify one JSON text as JSON-RPC 2.0 in the way MCP uses it: its kind, its id as it is spelt, its flaws.

Kinds (JSON-RPC 2.0 sections 4 and 5): an object with ``method`` and ``id`` is a request, with ``method`` alone a
notification, with ``result`` a response, with ``error`` an error; an array is a batch; the rest is invalid.
Presence of a member decides, never its truth: 0 and "" are good ids.
"""

from decimal import Decimal
from typing import Any, Final

from mcpsniff.protocol.ids import is_fraction, number_key
from mcpsniff.protocol.message import BATCH, ERROR, INVALID, NOTIFICATION, REQUEST, RESPONSE, IdKey, Message
from mcpsniff.protocol.meta import envelope_flaws, meta_flaws
from mcpsniff.protocol.outline import name_of, outline
from mcpsniff.protocol.reading import NOT_JSON, JsonReader, Reading, Unread
from mcpsniff.protocol.revisions import METHODS
from mcpsniff.wire.frames import INCOMPLETE, Frame

MEMBERS: Final = frozenset({"jsonrpc", "id", "method", "params", "result", "error"})

BATCH_LIMIT: Final = 10_000
"""Elements of a batch that are looked at. One line may hold millions, each a message of its own; no peer sends more
than a few dozen, and no revision since 2025-06-18 allows any."""

BATCH_CUT: Final = "batch-cut"

ENVELOPE_FLAWS: Final = {
    "not-an-object": "the JSON value is neither an object nor an array",
    "jsonrpc-missing": "there is no jsonrpc member",
    "jsonrpc-not-2.0": "jsonrpc is not the string 2.0",
    "id-null": "a request or a result with a null id",
    "id-bool": "the id is true or false",
    "id-fraction": "the id is a number with a fractional part",
    "id-integral-float": "the id is an integer written as a float, such as 1.0",
    "id-structured": "the id is an object or an array",
    "id-absent": "a response without an id",
    "error-id-null": "an error with a null id",
    "error-id-absent": "an error without an id",
    "method-not-string": "method is not a string",
    "method-empty": "method is an empty string",
    "method-rpc-prefix": "method starts with rpc., which JSON-RPC keeps for itself",
    "method-with-result": "a method together with a result or an error",
    "params-not-object": "params is there and is not an object",
    "result-not-object": "result is not an object",
    "result-and-error": "result and error together",
    "no-payload": "neither method nor result nor error",
    "error-not-object": "error is not an object",
    "error-code-missing": "the error has no code",
    "error-code-not-integer": "the error's code is not an integer",
    "error-message-missing": "the error has no message that is a string",
    "unknown-member": "a top-level member that JSON-RPC does not define",
    "notification-method-with-id": "a notifications/ method with an id",
    "request-method-without-id": "a method that MCP defines as a request, without an id",
    "batch-empty": "an array without elements",
    "batch-bad-element": "an element of the array is not a JSON-RPC object",
    "batch-mixed": "requests or notifications share the array with responses",
    "batch-initialize": "initialize stands inside a batch",
    BATCH_CUT: f"mcpsniff looked at the first {BATCH_LIMIT:,} elements only; the wire carried all",
}


def classify(frame: Frame, reader: JsonReader) -> list[Message]:
    """Turn a frame into its messages: one, or a batch followed by one for each element. Never raises."""
    reading = reader.read(frame.payload, frame.flaws)
    flaws = frame.flaws + reading.flaws
    value = reading.value
    if type(value) is dict:
        return [_object(frame, value, frame.payload, flaws, reading)]
    if isinstance(value, Unread) and isinstance(value, dict):
        return [_object(frame, value, frame.payload, flaws, reading)]
    if isinstance(value, list) and not isinstance(value, Unread):
        return _batch(frame, value, flaws, reading, reader)
    if NOT_JSON not in flaws and INCOMPLETE.isdisjoint(flaws) and not isinstance(value, Unread):
        flaws += ("not-an-object",)
    return [Message(frame, INVALID, None, None, None, None, frame.payload, flaws)]


def _object(frame: Frame, body: dict[str, Any], raw: bytes, flaws: tuple[str, ...], reading: Reading) -> Message:
    """Classify one JSON object."""
    found: list[str] = []
    if body.get("jsonrpc") != "2.0":
        found.append("jsonrpc-not-2.0" if "jsonrpc" in body else "jsonrpc-missing")
    if not body.keys() <= MEMBERS:
        found.append("unknown-member")
    if "method" in body:
        kind, method = _call(body, found)
    else:
        kind, method = _answer(body, found), None
    token, key = None, None
    if "id" in body:
        token, key = _identify(body["id"], raw, reading, kind, found)
    if not INCOMPLETE.isdisjoint(flaws):
        found = [flaw for flaw in found if flaw in _SEEN_IN_PART]
    return Message(frame, kind, token, key, method, body, raw, flaws + tuple(found) if found else flaws)


# What a cut message can still be held to: flaws of members that are there, not of members that may be missing.
_SEEN_IN_PART: Final = frozenset(
    {"jsonrpc-not-2.0", "id-null", "id-bool", "id-fraction", "id-integral-float", "method-not-string", "unknown-member"}
)


def _call(body: dict[str, Any], found: list[str]) -> tuple[str, str | None]:
    """Classify an object that has a method."""
    method = body["method"]
    if not isinstance(method, str):
        found.append("method-not-string")
        return INVALID, None
    if "result" in body or "error" in body:
        found.append("method-with-result")
    params = body.get("params")
    if isinstance(params, dict):
        if "_meta" in params:
            found.extend(meta_flaws(params["_meta"]))
            if "id" in body:
                found.extend(envelope_flaws(params["_meta"]))
    elif "params" in body:
        found.append("params-not-object")
    if method.startswith("notifications/"):
        if "id" in body:
            found.append("notification-method-with-id")
    elif not method:
        found.append("method-empty")
    elif method.startswith("rpc."):
        found.append("method-rpc-prefix")
    if "id" in body:
        return REQUEST, method
    known = METHODS.get(method)
    if known is not None and known.kind == REQUEST:
        found.append("request-method-without-id")
    return NOTIFICATION, method


def _answer(body: dict[str, Any], found: list[str]) -> str:
    """Classify an object that has no method."""
    if "error" in body:
        if "result" in body:
            found.append("result-and-error")
            return INVALID
        _judge_error(body["error"], found)
        if "id" not in body:
            found.append("error-id-absent")
        return ERROR
    if "result" not in body:
        found.append("no-payload")
        return INVALID
    if "id" not in body:
        found.append("id-absent")
    result = body["result"]
    if not isinstance(result, dict):
        found.append("result-not-object")
    elif "_meta" in result:
        found.extend(meta_flaws(result["_meta"]))
    return RESPONSE


def _judge_error(error: Any, found: list[str]) -> None:
    if not isinstance(error, dict):
        found.append("error-not-object")
        return
    if isinstance(error, Unread):
        return
    code = error.get("code")
    if "code" not in error:
        found.append("error-code-missing")
    elif isinstance(code, bool) or not isinstance(code, int):
        found.append("error-code-not-integer")
    if not isinstance(error.get("message"), str):
        found.append("error-message-missing")


def _identify(value: Any, raw: bytes, reading: Reading, kind: str, found: list[str]) -> tuple[str, IdKey | None]:
    """The id's own token, and the key it pairs by."""
    if type(value) is int and (value or b"-0" not in raw):
        return str(value), value  # JSON knows one spelling of an integer; only zero has two
    token = _token(value, raw, reading)
    if isinstance(value, bool):
        found.append("id-bool")
    elif value is None:
        found.append("error-id-null" if kind == ERROR else "id-null")
    elif isinstance(value, str):
        return token, value
    elif isinstance(value, int | float | Decimal):
        return token, _number(token, found)
    else:
        found.append("id-structured")
    return token, None


def _number(token: str, found: list[str]) -> IdKey | None:
    key = number_key(token)
    if is_fraction(key):
        found.append("id-fraction")
    elif key is not None and not token.lstrip("-").isdigit():
        found.append("id-integral-float")
    return key


def _token(value: Any, raw: bytes, reading: Reading) -> str:
    """The id as it is spelt in the text. Equal names: the last one counts, as in every SDK."""
    if isinstance(value, str) and b"\\" not in raw:
        return f'"{value}"'
    text = raw.decode(errors="replace") if reading.text is None else reading.text
    places = reading.places if reading.places is not None else outline(text)
    token = ""
    for name, start, stop in places.members:
        if name == '"id"' or ("\\" in name and name_of(name) == "id"):
            token = text[start:stop]
    return token


def _batch(
    frame: Frame, values: list[Any], flaws: tuple[str, ...], reading: Reading, reader: JsonReader
) -> list[Message]:
    """A batch is one message of its own, followed by its elements. Arrays inside it are not unpacked."""
    text = frame.payload.decode(errors="replace") if reading.text is None else reading.text
    texts = [text[start:stop].encode() for start, stop in outline(text, BATCH_LIMIT).elements]
    elements = [_element(frame, element, reader) for element in texts]
    found = []
    kinds = {element.kind for element in elements}
    if not values:
        found.append("batch-empty")
    if any(not isinstance(value, dict) for value in values):
        found.append("batch-bad-element")
    if kinds & {REQUEST, NOTIFICATION} and kinds & {RESPONSE, ERROR}:
        found.append("batch-mixed")
    if any(element.method == "initialize" for element in elements):
        found.append("batch-initialize")
    if len(values) > BATCH_LIMIT:
        found.append(BATCH_CUT)
    whole = Message(frame, BATCH, None, None, None, values, frame.payload, flaws + tuple(found))
    return [whole, *elements]


def _element(frame: Frame, raw: bytes, reader: JsonReader) -> Message:
    reading = reader.read(raw)
    if isinstance(reading.value, dict):
        message = _object(frame, reading.value, raw, reading.flaws, reading)
    else:
        message = Message(frame, INVALID, None, None, None, None, raw, (*reading.flaws, "not-an-object"))
    message.batch = 0
    return message
