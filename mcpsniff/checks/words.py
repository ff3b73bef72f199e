"""How findings name what they are about: captured text is shortened and cannot move a cursor or hide a word."""

import signal
from typing import Any, Final

import orjson

from mcpsniff.capture.labels import shown
from mcpsniff.capture.records import AND
from mcpsniff.protocol.edits import ANSWERED_BY, Touch
from mcpsniff.protocol.events import Close
from mcpsniff.protocol.exchanges import Exchange
from mcpsniff.protocol.message import BATCH, ERROR, INVALID, Message

WIDTH: Final = 60
"""Characters of captured text in one place of a finding."""

_NOUNS: Final = {ERROR: "error response", INVALID: "message"}


def plain(text: str, width: int = WIDTH) -> str:
    """Captured text without quotation marks: controls and bidi marks escaped, at most about ``width`` characters."""
    short = shown(text[: width + 1])
    return short if len(short) <= width else short[: width - 1] + "…"


def quoted(text: str | bytes, width: int = WIDTH) -> str:
    r"""Captured text in quotation marks; bytes that are not UTF-8 appear as ``\xff``."""
    if isinstance(text, bytes):
        text = text[: 4 * width].decode(errors="backslashreplace")
    return f'"{plain(text, width)}"'


def said_by_us(body: bytes) -> str:
    """The sentence in the body of an answer of mcpsniff's own: text, JSON, or a JSON-RPC error."""
    text = body.decode(errors="replace")
    try:
        said = orjson.loads(body)
    except orjson.JSONDecodeError:
        said = None
    error = said.get("error") if isinstance(said, dict) else None
    if isinstance(error, dict):
        error = error.get("message")
    return (error if isinstance(error, str) else text).removeprefix("mcpsniff: ")


def value(thing: Any) -> str:
    """A JSON value as a finding names it: small ones as they are, large ones by their type."""
    match thing:
        case None:
            return "null"
        case bool():
            return "true" if thing else "false"
        case str():
            return quoted(thing, 40)
        case dict():
            return "an object"
        case list():
            return "an array"
        case int() if abs(thing) >= 10**40:
            return "a very large number"
        case _:
            return plain(str(thing), 40)


def identity(token: str | None) -> str:
    """An id by its own JSON token."""
    return "no id" if token is None else "id " + plain(token, 40)


def call(exchange: Exchange) -> str:
    """A request by its id, its method and what it is about."""
    target = "" if exchange.target is None else " " + plain(exchange.target, 40)
    return f"request {plain(exchange.id, 40)} ({plain(exchange.method, 40)}{target})"


def done(touch: Touch) -> str:
    """What somebody did to a part of an exchange: ``its request was dropped by rules (no calls today)``."""
    was = "was added" if touch.change == ANSWERED_BY else f"was {touch.change}"
    part = "another answer" if touch.part == "answer" and touch.change == "added" else f"its {touch.part}"
    return f"{part} {was} by {doer(touch.by, touch.why)}"


def doer(by: str, why: str, width: int = WIDTH) -> str:
    """Who did something on the way, and why, as it stands after ``by``; a fault's reason names it already."""
    if why.startswith("fault ") and AND not in by:
        return plain(why, width)
    who = plain(by) or "mcpsniff"
    return f"{who} ({plain(why, width)})" if why and why != by else who


def subject(message: Message) -> str:
    """A message by its kind and its method or id."""
    noun = _NOUNS.get(message.kind, message.kind)
    if message.method is not None:
        return f"{noun} {plain(message.method, 40)}"
    if message.kind == BATCH:
        return noun
    return f"{noun} with {identity(message.id)}" if message.id is not None else f"{noun} without an id"


def duration(us: int) -> str:
    """Microseconds as people read them."""
    if us < 1_000_000:
        return f"{us / 1000:.0f} ms"
    return f"{us / 1_000_000:.1f} s" if us < 120_000_000 else f"{us / 60_000_000:.0f} min"


def size(count: int) -> str:
    """A number of bytes as people read it."""
    if count < 10_000:
        return f"{count} bytes"
    return f"{count / 1024:.0f} KiB" if count < 1024 * 1024 else f"{count / 1024 / 1024:.1f} MiB"


def listed(words: list[str], most: int = 5) -> str:
    """Words with commas, the last with "and"; beyond ``most`` only counted."""
    if len(words) > most:
        words = [*words[:most], f"{len(words) - most} more"]
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]


def signal_name(number: int | None) -> str:
    """Such as SIGKILL."""
    if number is None:
        return "a signal"
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def ending(close: Close) -> str:
    """How a process or a stream ended, as the end of a sentence about the server."""
    if close.how == "killed":
        return f"was killed by {signal_name(close.signal)}"
    if close.how == "exit":
        return f"ended with status {close.status}"
    if close.how == "error":
        return f"could not be started: {plain(close.error or 'no reason is recorded', 200)}"
    return "closed its output"
