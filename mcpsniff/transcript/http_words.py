"""What a transcript says about an HTTP exchange: what became of it, and what it means to MCP. Words of our own only."""

from typing import Final

from mcpsniff.checks.words import plain
from mcpsniff.protocol.http import (
    ABORTED,
    LOST,
    OPEN,
    POST,
    UNDECODED,
    Http,
    HttpExchange,
)
from mcpsniff.protocol.message import Message
from mcpsniff.transcript.oauth_words import oauth_remark
from mcpsniff.transcript.units import count, duration
from mcpsniff.wire.frames import UNTERMINATED, Frame
from mcpsniff.wire.http1_parts import UNDECODED as WHY_UNDECODED

US: Final = "mcpsniff"
CUT_BY_US: Final = "mcpsniff ended the connection"
"""No peer hung up: mcpsniff was stopped, or had refused something on this connection."""
SAID_BY_US: Final = "said by mcpsniff, not by the server"

NO_STATUS: Final = "---"
ENDS: Final = "end"
"""What stands in the place of a status."""

_NOT_A_PROBE: Final = frozenset({401, 403})
"""Who is refused for who it is has found the server."""

_FACTS: Final = {
    "session-unknown": "names a session that never began here",
    "session-ended": "names a session that had ended",
    "session-missing": "names no session",
    "session-changed": "another session than the request's",
    "resume-unknown": "from an event that never came",
    "resumed-early": "sooner than retry says",
    "garbled": "its message was cut on the way",
    "token-missing": "without the token of this session",
}
_MESSAGE_FACTS: Final = {
    "answer-on-get-stream": "not on a stream for answers",
    "answer-on-foreign-stream": "on the stream of another request",
    "progress-on-foreign-stream": "on the stream of another request",
    "on-two-streams": "on another stream, too",
    "after-response": "after the response",
}
_HUNG_UP: Final = {"client": "the client hung up", "server": "the server hung up", US: CUT_BY_US}
_ENDED: Final = {"client": "by the client", "server": "cut off by the server", US: CUT_BY_US}


def is_probe(http: HttpExchange, methods: tuple[str, ...]) -> bool:
    """True if a client seems to have tried which transport or revision there is, and was told: not this one.

    ``methods`` are those of the requests that were sent (MCP transports, Backwards compatibility).
    """
    status = http.status or 0
    tries = "initialize" in methods or "server/discover" in methods
    return tries and 400 <= status < 500 and status not in _NOT_A_PROBE


def meaning(http: HttpExchange, methods: tuple[str, ...]) -> tuple[str, ...]:
    """What the response to a request means."""
    status = http.status or 0
    words: list[str] = []
    if http.by is not None:
        words.append(SAID_BY_US if http.by == US else f"said by {plain(http.by, 40)}, not by the server")
    elif is_probe(http, methods):
        words.append("tried Streamable HTTP" if "initialize" in methods else "a probe for a revision")
    elif status == 401 and http.auth is None:
        words.append("asks for authorization")
    elif http.method == "GET" and status == 405:
        words.append("offers no GET stream")
    elif http.method == "DELETE" and 200 <= status < 300:
        words.append("ends the session")
    elif http.method == "DELETE" and status == 405:
        words.append("lets no client end a session")
    elif status == 101:
        words.append("another protocol from here on")
    return (*words, *_facts_of(http))


def _facts_of(http: HttpExchange) -> tuple[str, ...]:
    return tuple(_FACTS[fact.name] for fact in http.facts if fact.name in _FACTS)


def is_usual(http: HttpExchange, methods: tuple[str, ...]) -> bool:
    """True if nobody need look twice: a success, a redirect, or a refusal that MCP foresees."""
    status = http.status
    if status is None or http.by is not None:
        return False
    if status < 400 or is_probe(http, methods) or (http.auth is not None and http.auth.is_vain and status < 500):
        return True
    return status == 405 and http.method in ("GET", "DELETE")


def remark_on(http: HttpExchange) -> str:
    """The few words of a peer that matter most: where to, with which authorization, with which protocol. Captured."""
    status = http.status or 0
    if status == 401:
        return http.says("www-authenticate") or ""
    if http.auth is not None and (said := oauth_remark(http.auth)):
        return said
    if 300 <= status < 400:
        return f"to {location}" if (location := http.says("location")) else ""
    if status == 101:
        return http.says("upgrade") or ""
    return ""


def failure(event: Http) -> tuple[str, ...]:
    """What kept an exchange from being complete; empty if nothing did."""
    http = event.exchange
    if event.state == LOST:
        return ("bytes of it are not in this capture",)
    if event.state == OPEN:
        return ("no response yet" if http.response is None else "not complete yet",)
    if event.state != ABORTED:
        return ()
    who = _HUNG_UP.get(http.ended_by or "", "the connection ended")
    return (f"{who} before {'the response' if http.response is None else 'it was whole'}",)


def undecoded(event: Http) -> str:
    """Why a connection is not read as HTTP from here on."""
    assert event.state == UNDECODED
    return WHY_UNDECODED.get(event.why, event.why)


def stream_end(event: Http) -> tuple[str, ...]:
    """How the response that carried an event stream ended, and what was on it."""
    http, stream = event.exchange, event.exchange.stream
    words: list[str] = []
    is_early = http.fact("ended-unanswered") is not None and event.state != LOST
    if is_early and stream is not None:
        words.append("before its answer")
        if stream.is_resumable:
            words.append("can be resumed")
    words.extend(counts(event.answered.events, event.answered.keep_alives))
    if stream is not None and stream.retry_ms is not None and (is_early or stream.kind != POST):
        words.append(f"retry {duration(stream.retry_ms * 1000)}")
    if event.state == LOST:
        words.append("bytes of it are not in this capture")
    elif event.state == ABORTED:
        words.append(_ENDED.get(http.ended_by or "", "cut off"))
    else:
        words.append("by the server")
    return tuple(words)


def counts(events: int, keep_alives: int, primings: int = 0) -> list[str]:
    """``3 events``, ``1 priming event``, ``2 keep-alives``: what there is any of, the events in any case."""
    words = [count(events, "event")]
    if primings:
        words.append(count(primings, "priming event"))
    if keep_alives:
        words.append(count(keep_alives, "keep-alive"))
    return words


def message_words(message: Message) -> list[str]:
    """What HTTP adds to a message of the server: the status where its body is the message, facts about its place."""
    http = message.http
    words: list[str] = []
    if http is not None and message.direction == "s2c" and message.frame.framing == "body" and message.batch is None:
        words.append(f"HTTP {http.status}")
    for fact in message.facts:
        if fact.name == "redelivered":
            words.append(f"again, first as #{fact.n}")
        elif fact.name in _MESSAGE_FACTS and (http is None or http.endpoint is None):
            words.append(_MESSAGE_FACTS[fact.name])
    return words


def bare_title(frame: Frame) -> str:
    """What to call an event without a message in it."""
    event = frame.sse
    if UNTERMINATED in frame.flaws or event is None:
        return "unfinished event"
    if not event.dispatched:
        return "keep-alive" if event.comments and event.id is None and event.retry is None else "event without data"
    if event.event == "endpoint":
        return "endpoint"
    if not frame.payload:
        return "priming event"
    return "event"
