"""The terms of the filter language: for each field, how its value is read and what it is true of.

A term is compiled once, to one test per type of event. The fields are data: the documentation, the help and the
suggestions are made from FIELDS.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from mcpsniff.capture.records import AND
from mcpsniff.checks import CLIENT, MCPSNIFF, NETWORK, SERVER, SEVERITIES, Finding, load
from mcpsniff.protocol.by_revision import REVISION_FLAWS
from mcpsniff.protocol.edits import Edit
from mcpsniff.protocol.events import Close, Note, Stderr
from mcpsniff.protocol.exchanges import STATES, Exchange, target_of
from mcpsniff.protocol.http import STREAM_KINDS, Http
from mcpsniff.protocol.jsonrpc import ENVELOPE_FLAWS
from mcpsniff.protocol.message import BATCH, ERROR, INVALID, KINDS, NOTIFICATION, RESPONSE, Message
from mcpsniff.protocol.meta import META_FLAWS
from mcpsniff.protocol.reading import TEXT_FLAWS
from mcpsniff.protocol.revisions import METHODS
from mcpsniff.transcript.filter.error import BadValueError, nearest
from mcpsniff.transcript.filter.http_terms import auth, http, is_bare, server, session, status, stream
from mcpsniff.transcript.filter.lexer import TEXT, Value
from mcpsniff.transcript.filter.term import Context, Term, Tests
from mcpsniff.transcript.filter.values import (
    DURATIONS,
    SIZES,
    Interval,
    amount,
    choice,
    id_key,
    interval,
    moment,
    pattern,
    whole,
)
from mcpsniff.wire.frames import EMPTY_LINE, FRAME_FLAWS, Frame
from mcpsniff.wire.http1_parts import HTTP_FLAWS

EVENT_KINDS: Final = (*KINDS, "http", "blank", "stderr", "close", "gap", "comment", "rewrite", "hold", "mask")
FLAWS: Final = (*FRAME_FLAWS, *TEXT_FLAWS, *ENVELOPE_FLAWS, *META_FLAWS, *REVISION_FLAWS, *HTTP_FLAWS)
RISING: Final = tuple(reversed(SEVERITIES))
SIDES: Final = (CLIENT, SERVER, NETWORK, MCPSNIFF)
HAS: Final = ("error", "finding", "edit")

# What the parts of an exchange after its request may be.
_LATER_KINDS: Final = frozenset({NOTIFICATION, RESPONSE, ERROR, INVALID, BATCH})
_LATER_METHODS: Final = ("notifications/progress", "notifications/cancelled")
_OF_URIS: Final = frozenset(name for name, method in METHODS.items() if method.target == "uri")


class Field(NamedTuple):
    """A field of the language."""

    compile: Callable[[Value, Context], Term]
    help: str


def _method(value: Value, _: Context) -> Term:
    match = pattern(value)

    def of_message(message: Message) -> bool:
        method = message.method
        if method is None and message.link is not None:
            method = message.link.method
        return method is not None and match(method)

    late = any(map(match, _LATER_METHODS))
    return Term({Message: of_message, Exchange: lambda exchange: match(exchange.method)}, late=late)


def _target(methods: frozenset[str]) -> Callable[[Value, Context], Term]:
    def compile_(value: Value, _: Context) -> Term:
        match = pattern(value)

        def of_message(message: Message) -> bool:
            link = message.link
            method, target = (message.method, None) if link is None else (link.method, link.target)
            if method not in methods:
                return False
            target = target_of(message) if link is None else target
            return target is not None and match(target)

        def of_exchange(exchange: Exchange) -> bool:
            return exchange.method in methods and exchange.target is not None and match(exchange.target)

        return Term({Message: of_message, Exchange: of_exchange}, late=False)

    return compile_


def _direction(value: Value, context: Context) -> Term:
    wanted = choice(value, ("c2s", "s2c"), {"client": "c2s", "server": "s2c", "in": "c2s", "out": "s2c"})

    def of_message(message: Message) -> bool:
        link = None if context.alone else message.link
        return (message if link is None else link).direction == wanted

    tests: Tests = {
        Message: of_message,
        Exchange: lambda exchange: exchange.direction == wanted,
        Frame: lambda frame: EMPTY_LINE in frame.flaws and frame.direction == wanted,
        Http: lambda _: wanted == "c2s",
    }
    return Term(tests, late=False, inherited=False)


def _kind(value: Value, _: Context) -> Term:
    other_names = {"result": "response", "noise": "invalid", "exit": "close", "eof": "close", "call": "request"}
    wanted = choice(value, EVENT_KINDS, other_names)
    if wanted in KINDS:
        return Term({Message: lambda message: message.kind == wanted}, late=wanted in _LATER_KINDS)
    if wanted == "http":
        return Term({Http: lambda _: True, Frame: is_bare}, late=False, of_http_alone=True)
    if wanted == "blank":
        return Term({Frame: lambda frame: EMPTY_LINE in frame.flaws}, late=False)
    if wanted in ("stderr", "close"):
        return Term({Stderr if wanted == "stderr" else Close: lambda _: True}, late=False)
    return Term({Note: lambda note: note.kind == wanted, Edit: lambda edit: edit.kind == wanted})


def _state(value: Value, _: Context) -> Term:
    wanted = choice(value, STATES, {"failed": "errored", "error": "errored", "pending": "open", "done": "answered"})
    return Term(_of_ends(lambda exchange: exchange.state == wanted))


def _latency(value: Value, _: Context) -> Term:
    wanted = interval(value, amount(DURATIONS), "500ms", exact=False)
    return Term(_of_ends(lambda exchange: exchange.latency_us is not None and wanted.holds(exchange.latency_us)))


def _of_ends(test: Callable[[Exchange], bool]) -> Tests:
    """Tests of what is known when an exchange ends: of the exchange, and of the message that ends it."""

    def of_message(message: Message) -> bool:
        link = message.link
        return link is not None and message.n in (link.response, link.cancel) and test(link)

    return {Message: of_message, Exchange: test}


def _id(value: Value, context: Context) -> Term:
    key = id_key(value)

    def of_message(message: Message) -> bool:
        if key is None:
            return message.id == value.text
        link = None if context.alone else message.link
        return (message if link is None else link).key == key

    return Term({Message: of_message, Exchange: lambda exchange: exchange.key == key}, late=key is None)


def _code(value: Value, _: Context) -> Term:
    text = value.text
    if text.upper().startswith("MCP") or "MCP".startswith(text.upper()):
        prefix = text.upper() if value.quoted or text.endswith("*") else text.upper() + "*"
        match = pattern(value._replace(text=prefix))
        return Term({Finding: lambda finding: match(finding.code)})
    match = pattern(value)
    names = [check.name for check in load().values()]
    if not any(map(match, names)):
        meant = nearest(text, names) or ("MCP" + text if text.isdigit() else "")
        raise BadValueError(f"no check has the code or the name {text[:40]}", 0, meant)
    return Term({Finding: lambda finding: match(finding.name)})


def _severity(value: Value, _: Context) -> Term:
    def rank(text: str) -> int:
        return RISING.index(choice(Value(text, True, 0), RISING, {"warn": "warning", "err": "error"}))

    wanted = interval(value, rank, "warning")
    ranks = {severity: place for place, severity in enumerate(RISING)}
    return Term({Finding: lambda finding: wanted.holds(ranks[finding.severity])})


def _blame(value: Value, _: Context) -> Term:
    wanted = choice(value, SIDES, {"c2s": CLIENT, "s2c": SERVER, "proxy": MCPSNIFF})
    return Term({Finding: lambda finding: finding.blame == wanted})


def _flaw(value: Value, _: Context) -> Term:
    match = pattern(value)
    if not any(map(match, FLAWS)):
        raise BadValueError(f"there is no flaw {value.text[:40]}", 0, nearest(value.text, list(FLAWS)))

    def test(event: Frame | Message | Stderr | Http) -> bool:
        return any(map(match, event.flaws))

    return Term({Frame: test, Message: test, Stderr: test, Http: test})


def _by(value: Value, _: Context) -> Term:
    match = pattern(value)

    def test(note: Note) -> bool:
        by = note.fields.get("by")
        return isinstance(by, str) and (match(by) or (AND in by and any(map(match, by.split(AND)))))

    return Term({Note: test, Edit: test})


def _has(value: Value, _: Context) -> Term:
    wanted = choice(value, HAS, {"errors": "error", "findings": "finding", "edits": "edit", "rewrite": "edit"})
    if wanted == "finding":
        return Term({Finding: lambda _: True})
    if wanted == "edit":
        return Term({Edit: lambda edit: not edit.is_quiet})

    def fails(message: Message) -> bool:
        return message.kind == ERROR or (message.kind == RESPONSE and message.result.get("isError") is True)

    return Term({Message: fails})


def _size(value: Value, _: Context) -> Term:
    wanted = interval(value, amount(SIZES), "64k")
    tests: Tests = {
        Message: lambda message: wanted.holds(message.size),
        Frame: lambda frame: EMPTY_LINE in frame.flaws and wanted.holds(frame.size),
    }
    return Term(tests)


def _time(value: Value, context: Context) -> Term:
    wanted = interval(value, moment(context.started), "10s", exact=False)
    return Term(_of_all(wanted, lambda event: event.t_last if type(event) is Frame else event.t))


def _number(value: Value, _: Context) -> Term:
    return Term(_of_all(interval(value, whole, "12"), lambda event: event.n))


def _of_all(wanted: Interval, number: Callable[[Any], int]) -> Tests:
    def test(event: Any) -> bool:
        return wanted.holds(number(event))

    return dict.fromkeys((Frame, Message, Exchange, Http, Stderr, Close, Note, Edit), test)


def _conversation(value: Value, _: Context) -> Term:
    wanted = interval(value, whole, "1")

    def test(event: Message | Exchange | Edit) -> bool:
        return wanted.holds(event.conversation)

    def of_http(event: Http) -> bool:
        return event.conversation is not None and wanted.holds(event.conversation)

    return Term({Message: test, Exchange: test, Edit: test, Http: of_http}, late=False)


def _text(value: Value, context: Context) -> Term:
    if not value.text:
        raise BadValueError("an empty text is in everything")
    return Term(context.texts.tests(value.text))


FIELDS: Final[Mapping[str, Field]] = {
    "method": Field(_method, "the method, of an answer that of its request; `*` stands for anything"),
    "tool": Field(_target(frozenset({"tools/call"})), "the name of the tool that is called"),
    "prompt": Field(_target(frozenset({"prompts/get"})), "the name of the prompt"),
    "uri": Field(_target(_OF_URIS), "the URI of the resource"),
    "dir": Field(_direction, "who asked: `c2s` the client, `s2c` the server; with `--alone`, who sent it"),
    "kind": Field(_kind, ", ".join(f"`{kind}`" for kind in EVENT_KINDS)),
    "state": Field(_state, "what became of a request: " + ", ".join(f"`{state}`" for state in STATES)),
    "latency": Field(_latency, "from a request to its answer: `us`, `ms`, `s`, `m`, `h`"),
    "id": Field(_id, 'the id: `7` is the number (and 7.0), `"7"` the string'),
    "has": Field(
        _has,
        "`error`: an error or a tool's result with isError; `finding`: any finding; `edit`: something that was changed"
        " on the way",
    ),
    "by": Field(
        _by,
        "who changed something on the way, or remarked something: the name of an addon, a rule; one of several will do",
    ),
    "code": Field(_code, "a finding's code or its beginning (`MCP4`), or its name"),
    "severity": Field(_severity, "a finding's severity: " + " < ".join(f"`{severity}`" for severity in RISING)),
    "blame": Field(_blame, "who is to blame for a finding: " + ", ".join(f"`{side}`" for side in SIDES)),
    "flaw": Field(_flaw, "what the bytes show to be odd: the words of docs/json-output.md"),
    "size": Field(_size, "bytes of a message: `k`, `m`, `g` (steps of 1,024)"),
    "t": Field(_time, "when: `10s`, `1m20s`, `1:02.345` since the start, or a time of day, `10:32:05Z`"),
    "n": Field(_number, "the number of an event, as every transcript shows it"),
    "conversation": Field(_conversation, "the number of the conversation"),
    "status": Field(status, "over HTTP, the status of the response: `404`, `4xx`, `>=400`"),
    "http": Field(http, 'over HTTP, the method, the target or its path, or both: `GET`, `/mcp`, `"GET /mcp"`'),
    "server": Field(
        server, "over HTTP, the server: `api.example.com`, `127.0.0.1:3001`, `3001`, `https://*.x.org`, or its own name"
    ),
    "session": Field(session, "over HTTP, the session id, or the endpoint of HTTP+SSE"),
    "stream": Field(stream, "over HTTP, the event stream: " + ", ".join(f"`{kind}`" for kind in STREAM_KINDS)),
    "auth": Field(auth, "over HTTP, a step of an authorization (`token`, `*`), or the number of the authorization"),
    TEXT: Field(_text, "a text in the message, also behind its escapes, on stderr or in a finding; case is ignored"),
}

OTHER_NAMES: Final = {
    "direction": "dir",
    "from": "dir",
    "type": "kind",
    "name": "tool",
    "resource": "uri",
    "level": "severity",
    "time": "t",
    "duration": "latency",
    "took": "latency",
    "error": "kind:error",
    "stderr": "kind:stderr",
    "finding": "has:finding",
    "edit": "has:edit",
    "addon": "by",
    "rule": "by",
    "fault": "by",
    "is": "has",
    "path": "http",
    "target": "http",
    "url": "http",
    "host": "server",
    "origin": "server",
    "upstream": "server",
    "authority": "server",
    "transport": "stream",
    "oauth": "auth",
    "authorization": "auth",
    "step": "auth",
    "check": "code",
    "number": "n",
}
"""What somebody may call a field, for the suggestion."""
