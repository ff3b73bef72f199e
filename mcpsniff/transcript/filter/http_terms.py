"""The terms about HTTP: status, method and target, session, stream."""

import re
from typing import Final

from mcpsniff.protocol.exchange import STATES, Exchange
from mcpsniff.protocol.http import STREAM_KINDS, STREAMING, Http, HttpExchange, origin_form
from mcpsniff.protocol.message import Message
from mcpsniff.protocol.oauth import STEPS
from mcpsniff.protocol.origins import names_of
from mcpsniff.transcript.filter.error import BadValueError, nearest
from mcpsniff.transcript.filter.lexer import Value
from mcpsniff.transcript.filter.term import Context, Term
from mcpsniff.transcript.filter.values import Interval, choice, interval, pattern, whole
from mcpsniff.wire.frames import Frame

_SERVERS_LIMIT: Final = 1_000
"""Servers of which it is remembered whether they match."""
_CLASS: Final = re.compile("([1-9])xx", re.IGNORECASE)


def is_bare(frame: Frame) -> bool:
    """True for an event of a stream that can carry no message."""
    event = frame.sse
    return event is not None and (not event.dispatched or not frame.payload or event.event == "endpoint")


def status(value: Value, _: Context) -> Term:
    """``404``, ``4xx``, ``>=400``, ``400..499``."""
    if value.text.lower() in STATES:
        meant = f"state:{value.text.lower()}"
        raise BadValueError(f"{value.text} is what became of a request, not a status of HTTP", 0, meant)
    found = _CLASS.fullmatch(value.text)
    wanted = interval(value, whole, "404") if found is None else Interval(int(found[1]) * 100, int(found[1]) * 100 + 99)

    def holds(number: int | None) -> bool:
        return number is not None and wanted.holds(number)

    def of_message(message: Message) -> bool:
        # When a request is read there is no response to it yet.
        return message.direction == "s2c" and message.http is not None and holds(message.http.status)

    return Term(
        {
            Message: of_message,
            Exchange: lambda exchange: holds(exchange.status),
            Http: lambda event: holds(event.exchange.status),
        }
    )


def http(value: Value, _: Context) -> Term:
    """The method, the target or its path, or method and target."""
    match = pattern(value)

    def holds(exchange: HttpExchange | None) -> bool:
        if exchange is None or exchange.request is None:
            return False
        method, target = exchange.method, origin_form(exchange.target)
        path = exchange.path
        return any(map(match, (method, target, path, f"{method} {target}", f"{method} {path}")))

    return Term({Message: lambda message: holds(message.http), Http: lambda event: holds(event.exchange)})


def server(value: Value, _: Context) -> Term:
    """The server behind it: its host, with or without the port, its port, its origin, or the name it gives itself.

    Case does not matter.
    """
    match = pattern(value._replace(text=value.text.lower().removesuffix("/")))
    known: dict[str, bool] = {}

    def holds(origin: str) -> bool:
        if origin not in known:
            if len(known) >= _SERVERS_LIMIT:
                known.clear()
            names = names_of(origin)
            known[origin] = any(map(match, names | {name.rpartition(":")[2] for name in names}))
        return known[origin]

    def of_http(exchange: HttpExchange | None) -> bool:
        if exchange is None:
            return False
        name = None if exchange.talk is None else exchange.talk.conversation.server_info.get("name")
        return holds(exchange.authority) or (isinstance(name, str) and bool(name) and match(name.lower()))

    # What it calls itself is said by its first answer.
    return Term(
        {
            Message: lambda message: of_http(message.http),
            Exchange: lambda exchange: holds(exchange.authority),
            Http: lambda event: of_http(event.exchange),
        }
    )


def auth(value: Value, _: Context) -> Term:
    """The step of an authorization, or the number of the authorization."""
    match = pattern(value)
    if not value.text.isdecimal() and not any(map(match, STEPS)):
        raise BadValueError(f"an authorization has no step {value.text[:40]}", 0, nearest(value.text, list(STEPS)))

    def holds(event: Http) -> bool:
        step = event.exchange.auth
        return step is not None and (match(step.name) or (step.number > 0 and match(str(step.number))))

    return Term({Http: holds})


def session(value: Value, _: Context) -> Term:
    """The id of the session, as a request, a response or the conversation has it; or the endpoint of HTTP+SSE."""
    match = pattern(value)

    def holds(exchange: HttpExchange | None) -> bool:
        if exchange is None:
            return False
        names = [exchange.session_id, exchange.session_given, exchange.endpoint]
        if exchange.talk is not None:
            names += [exchange.talk.conversation.session_id, exchange.talk.conversation.endpoint]
        return any(name is not None and match(name) for name in names)

    return Term({Message: lambda message: holds(message.http), Http: lambda event: holds(event.exchange)})


def stream(value: Value, _: Context) -> Term:
    """The kind of the event stream that carried it."""
    other_names = {"sse": "legacy", "resume": "resumed", "own": "get"}
    wanted = choice(value, tuple(STREAM_KINDS), other_names)

    def of_message(message: Message) -> bool:
        return message.frame.sse is not None and message.http is not None and message.http.stream_kind == wanted

    def of_http(event: Http) -> bool:
        if event.state == STREAMING and event.exchange.method == "GET" and event.conversation is None:
            return False  # its first event will tell whether it is one of HTTP+SSE
        return event.stream == wanted

    return Term({Message: of_message, Http: of_http})
