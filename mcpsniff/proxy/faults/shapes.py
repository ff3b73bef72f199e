"""What each fault makes of a message: an action of an edit hook."""

import json
from typing import Any, Final

from mcpsniff.hooks.actions import (
    Cut,
    Disconnect,
    Drop,
    HttpAnswer,
    Later,
    Paced,
    Returned,
    Stall,
    Text,
    Told,
    copy,
    refuse,
)
from mcpsniff.hooks.arrivals import NOTABLE
from mcpsniff.protocol.message import REQUEST, Message
from mcpsniff.protocol.patch import patched, text_of
from mcpsniff.proxy.faults.values import Code, Part, Status, Times, phrase

WAIT: Final = 1
"""Seconds of `Retry-After`, unless it is said."""
NEEDS_WAIT: Final = (429, 503)
CHALLENGE: Final = 'Bearer error="invalid_token"'
OTHER_ID: Final = 987_654_321
SPOILT: Final = b"\xff\xfe"
"""Bytes that occur in no UTF-8."""


def drop(_message: Message, _value: None, why: str) -> Returned:
    """Nothing goes on."""
    return Drop(why)


def duplicate(message: Message, _value: None, why: str) -> Returned:
    """It goes on twice."""
    return [message, Told(copy(message), why)]


def reorder(message: Message, value: Times, why: str) -> Returned:
    """It goes on after the next one."""
    return Later(message, value.low / 1e6, why)


def wrong_id(message: Message, value: str, why: str) -> Returned:
    """It has another id than the request that it answers, or another one than the client has given."""
    if value == "none":
        message.body = {name: member for name, member in message.body.items() if name != "id"}
    else:
        message.body = {**message.body, "id": other_id(message, value)}
    return Told(message, why)


def other_id(message: Message, value: str) -> Any:
    """The id that a message is to have; for one that it is to have none, something that is no id."""
    return {"other": OTHER_ID, "null": None, "none": ...}.get(value, _other_type(message.body["id"]))


def error(message: Message, value: Code, why: str) -> Returned:
    """A request is answered with an error in the receiver's place; an answer becomes one."""
    if message.kind == REQUEST:
        return refuse(message, value.text, code=value.code, why=why)
    members = {"error": error_of(value)}
    kept = {name: member for name, member in message.body.items() if name not in ("result", "error")}
    message.body = {**kept, **members}
    return Told(message, why)


def error_of(value: Code) -> dict[str, Any]:
    """The error of JSON-RPC that a value is."""
    return {"code": value.code, "message": value.text}


def cut(message: Message, value: Part, why: str) -> Returned:
    """Its beginning goes on, and no more of it."""
    return Cut(message, value.of(len(_text(message))), why)


def half(message: Message, value: Part, why: str) -> Returned:
    """The beginning of its text goes on in whole framing."""
    text = _text(message)
    return Text(text[: value.of(len(text))], message, why)


def noise(message: Message, value: str, why: str) -> Returned:
    """Something that is no message stands before it."""
    said = value.encode()
    if message.frame.framing == "body":
        return Text(said + b"\n" + _text(message), message, why)
    return [Text(said, None, why), message]


def invalid_utf8(message: Message, _value: None, why: str) -> Returned:
    """Bytes that are no UTF-8 stand at the end of its last string."""
    text = _text(message)
    place = text.rfind(b'"')
    return Text(text[:place] + SPOILT + text[place:], message, why)


def status(_message: Message, value: Status, why: str) -> Returned:
    """HTTP refuses the request that carries it."""
    said = {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": phrase(value.code)}}
    body = json.dumps(said).encode()
    headers = [("Content-Type", "application/json")]
    if value.code == 401:
        headers.append(("WWW-Authenticate", value.detail or CHALLENGE))
    elif value.code == 403 and value.detail:
        headers.append(("WWW-Authenticate", value.detail))
    elif value.detail or value.code in NEEDS_WAIT:
        headers.append(("Retry-After", value.detail or str(WAIT)))
    return HttpAnswer(value.code, headers, body, why)


def stall(_message: Message, _value: None, why: str) -> Returned:
    """Nothing goes on from here."""
    return Stall(why)


def slow(message: Message, value: int, why: str) -> Returned:
    """It goes on a few bytes at a time, and for long enough that the capture tells of it."""
    return Paced(message, min(float(value), len(_text(message)) / NOTABLE), why)


def disconnect(_message: Message, _value: None, why: str) -> Returned:
    """The connection ends here."""
    return Disconnect(why)


def _other_type(old: Any) -> Any:
    if isinstance(old, str):
        return int(old) if old.isascii() and old.isdigit() and len(old) < 16 else OTHER_ID
    return str(old) if isinstance(old, int | float) else OTHER_ID


def _text(message: Message) -> bytes:
    """What would leave."""
    try:
        return patched(message.raw, message.body) if message.raw else text_of(message.body)
    except (TypeError, ValueError):  # the editor tells of it, and lets the message pass as it came
        return message.raw or b"null"
