"""Make records of a wrapped server's session by hand, and decode them."""

import json
from collections.abc import Iterable

from mcpsniff.capture.records import Record
from mcpsniff.checks import Finding
from mcpsniff.decoder import Decoder, Event
from mcpsniff.protocol.exchanges import Exchange
from mcpsniff.protocol.message import Message

OPENS = [
    Record(0, "open", 0, {"kind": "stdin", "dir": "c2s", "conn": 0}),
    Record(0, "open", 1, {"kind": "stdout", "dir": "s2c", "conn": 0, "of": 0}),
    Record(0, "open", 2, {"kind": "stderr", "dir": "s2c", "conn": 0}),
]
CHANNEL = {"c2s": 0, "s2c": 1, "err": 2}


def line(message: object) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def records(*said: tuple[str, object], step: int = 1000) -> list[Record]:
    """Records for ``(direction, message)`` pairs, ``step`` microseconds apart; bytes and str go as they are."""
    made = list(OPENS)
    for number, (direction, message) in enumerate(said, 1):
        raw = (
            message
            if isinstance(message, bytes)
            else message.encode() + b"\n"
            if isinstance(message, str)
            else line(message)
        )
        made.append(Record(number * step, "chunk", CHANNEL[direction], raw))
    return made


def end(t: int, **fields: object) -> list[Record]:
    """The end that a polite server has after its client has left."""
    return [Record(t, "close", 0, {"how": "eof"}), Record(t + 1000, "close", 1, {"how": "exit", "status": 0, **fields})]


def decode(these: Iterable[Record], *, finish: bool = True, decoder: Decoder | None = None) -> list[Event]:
    decoder = Decoder() if decoder is None else decoder
    events = [event for record in these for event in decoder.feed(record)]
    return events + (decoder.finish() if finish else [])


def messages(events: Iterable[Event]) -> list[Message]:
    return [event for event in events if isinstance(event, Message)]


def exchanges(events: Iterable[Event]) -> list[Exchange]:
    return [event for event in events if isinstance(event, Exchange)]


def findings(events: Iterable[Event]) -> list[Finding]:
    return [event for event in events if isinstance(event, Finding)]


def pairs(events: list[Event]) -> list[tuple[int, int]]:
    """Index pairs (request, response) in order of the messages, as the case lists count them."""
    index = {message.n: place for place, message in enumerate(messages(events))}
    return sorted((index[one.request], index[one.response]) for one in exchanges(events) if one.response is not None)


def facts(message: Message) -> list[str]:
    return [fact.name for fact in message.facts]
