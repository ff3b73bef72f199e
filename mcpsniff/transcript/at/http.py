"""An HTTP exchange on the page of an event: its facts, and both heads as they were recorded."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from mcpsniff.protocol.http import HTTP_STATES, STREAM_KINDS, UNDECODED, Body, Http, HttpExchange
from mcpsniff.protocol.http_facts import HTTP_FACTS
from mcpsniff.transcript.http_words import CUT_BY_US, US, counts, undecoded
from mcpsniff.transcript.units import count, duration, moment
from mcpsniff.wire.http1_parts import Head

_ENDERS: Final = {"client": "the client hung up", "server": "the server hung up", US: CUT_BY_US}


class Known(NamedTuple):
    """One thing that is known. ``value`` may be captured text, ``remark`` is our own."""

    name: str
    value: str
    remark: str = ""


def http_facts(http: HttpExchange, event: Http | None) -> Iterator[Known]:
    """What is known of an HTTP exchange; of ``event`` also what it told."""
    stream = f", {STREAM_KINDS[http.stream_kind]}" if http.stream_kind is not None else ""
    of = "" if http.conversation is None else f", conversation {http.conversation}"
    yield Known("http", "", f"exchange {http.number} on connection {http.connection}{of}{stream}")
    if http.authority:
        yield Known("server", http.authority)
    if event is None:
        return
    meaning = undecoded(event) if event.state == UNDECODED else HTTP_STATES[event.state]
    yield Known("state", "", f"{event.state}: {meaning}")
    if http.by is not None:
        yield Known("by", http.by, "the response is not of the server")
    if event.ended_by in _ENDERS:
        yield Known("ended by", "", _ENDERS[event.ended_by])
    if http.interim:
        yield Known("before it", "", ", ".join(map(str, http.interim)))
    for name, head, body in (("asked", http.request, event.asked), ("answered", http.response, event.answered)):
        if head is not None:
            yield Known(name, "", _body(body))
    for fact in event.facts:
        said = HTTP_FACTS.get(fact.name, fact.name).replace("``text``", "that")
        said = said.replace("``n``", f"#{fact.n}").replace("``t``", "?" if fact.t is None else moment(fact.t))
        said = said.replace("``", "")
        yield Known("fact", fact.text, f"{fact.name}: {said}")


def _body(body: Body) -> str:
    """``158 bytes, 1 message``; what its coding made of it, and the events of a stream."""
    parts = [count(body.wire, "byte")]
    if body.size != body.wire:
        parts.append(f"{body.size:,} decoded")
    if body.messages:
        parts.append(count(body.messages, "message"))
    if body.events or body.primings or body.keep_alives:
        parts += counts(body.events, body.keep_alives, body.primings)
    return ", ".join(parts)


def heads(http: HttpExchange) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Each head with its title: start line and headers, as name and value. Captured text; what was masked is ``*``."""
    if http.request is not None:
        yield "HTTP request", _lines(http.request)
    if http.response is not None:
        took = ""
        if http.t_response is not None and http.request is not None:
            took = f", {duration(max(http.t_response - http.t_request, 0))} later"
        yield f"HTTP response{took}", _lines(http.response)


def _lines(head: Head) -> list[tuple[str, str]]:
    return [("", head.start_line.decode("latin-1")), *head.headers]
