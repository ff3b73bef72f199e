"""What a decoder tells of a dialogue over HTTP, in few words."""

import re
from collections.abc import Iterable, Iterator
from textwrap import dedent

from mcpsniff.capture.records import Header, Record
from mcpsniff.checks import Finding
from mcpsniff.decoder import Decoder, Event
from mcpsniff.protocol.exchange import Exchange
from mcpsniff.protocol.http import Http
from mcpsniff.protocol.message import Message
from mcpsniff.transcript.jsonl import JsonLines
from tests.dialogue import Played, play

_WORDS = {
    "call": '{{"jsonrpc":"2.0","id":{0},"method":"tools/call","params":{{"name":"{1}"}}}}',
    "modern": '{{"jsonrpc":"2.0","id":{0},"method":"tools/call","params":{{"name":"{1}","_meta":$ENVELOPE}}}}',
    "result": '{{"jsonrpc":"2.0","id":{0},"result":{{"content":[]}}}}',
    "complete": '{{"jsonrpc":"2.0","id":{0},"result":{{"resultType":"complete","content":[]}}}}',
    "note": '{{"jsonrpc":"2.0","method":"{0}"}}',
    "initialize": (
        '{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{}},'
        '"clientInfo":{{"name":"c","version":"1"}}}}}}'
    ),
    "welcome": (
        '{{"jsonrpc":"2.0","id":0,"result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},'
        '"serverInfo":{{"name":"s","version":"1"}}}}}}'
    ),
}
_TIME = re.compile(rb'"(t_us|latency_us)":\d+')
_WORD = re.compile(r"\$(" + "|".join(_WORDS) + r")(?:\(([^()]*)\))?")


def spelt(text: str) -> str:
    """``text`` with ``$call(1,name)`` and the like as messages; a name that is left out is ``t``."""
    return _WORD.sub(lambda found: _WORDS[found[1]].format(*(found[2] or "").split(","), "t"), text)


def played(text: str) -> Played:
    """A dialogue over HTTP, played; see `spelt`."""
    return play("@http\n" + spelt(dedent(text)))


def messages(events: Iterable[Event]) -> list[Message]:
    return [event for event in events if isinstance(event, Message)]


def exchanges(events: Iterable[Event]) -> list[Exchange]:
    return [event for event in events if isinstance(event, Exchange)]


def https(events: Iterable[Event], *, last: bool = True) -> list[Http]:
    """The events of HTTP exchanges; only the last one of each, by number, or all."""
    found = [event for event in events if isinstance(event, Http)]
    if not last:
        return found
    by_number = {event.exchange.number: event for event in found}
    return [by_number[number] for number in sorted(by_number)]


def codes(events: Iterable[Event], *severities: str) -> list[str]:
    """The codes of all findings, or of those that weigh so much."""
    found = [event for event in events if isinstance(event, Finding)]
    return [one.code for one in found if not severities or one.severity in severities]


def facts(message: Message) -> list[str]:
    return [fact.name for fact in message.facts]


def outcomes(events: Iterable[Event]) -> list[str]:
    """Each exchange as ``target id state 1→2``: by which HTTP exchange it was asked, and by which it was answered."""
    events = list(events)
    by_number = {message.n: message for message in messages(events)}
    told = []
    for one in sorted(exchanges(events), key=lambda exchange: exchange.request):
        answer = None if one.response is None else by_number[one.response].http
        there = "" if answer is None else str(answer.number)
        told.append(f"{one.target or one.method} {one.id} {one.state} {one.http}→{there}")
    return told


def lines(records: Iterable[Record], *, times: bool = True, header: Header | None = None) -> list[bytes]:
    """The JSON output of these records, as it is written while they come; without times, if so wished."""
    decoder, writer = Decoder(header), JsonLines(payload=True)
    said = b"".join([*(writer.lines(decoder.feed(record)) for record in records), writer.lines(decoder.finish())])
    return (said if times else _TIME.sub(rb'"\1":0', said)).splitlines()


def recut(records: Iterable[Record], size: int) -> Iterator[Record]:
    """The same bytes in pieces of at most ``size``."""
    for record in records:
        if record.kind != "chunk":
            yield record
            continue
        for start in range(0, len(record.body) or 1, size):
            yield record._replace(body=record.body[start : start + size])


def joined(records: Iterable[Record]) -> Iterator[Record]:
    """The same bytes, neighbours on one channel in one piece."""
    held: Record | None = None
    for record in records:
        if held is not None and record.kind == "chunk" and record.channel == held.channel:
            held = held._replace(body=held.body + record.body)
            continue
        if held is not None:
            yield held
        held = record if record.kind == "chunk" else None
        if held is None:
            yield record
    if held is not None:
        yield held
