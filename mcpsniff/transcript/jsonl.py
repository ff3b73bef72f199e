"""The transcript as JSON Lines, for programs: one object per event, in order. docs/json-output.md is the reference.

Every line is strict JSON whatever was captured. What was captured is spliced in from its own text where that is strict
JSON, so that ids and payloads keep their spelling; where it is not, a string stands in its place.
"""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Final

import orjson

from mcpsniff.checks import Finding
from mcpsniff.decoder import Event
from mcpsniff.protocol.edits import Edit
from mcpsniff.protocol.events import Close, Note, Stderr
from mcpsniff.protocol.exchanges import Exchange
from mcpsniff.protocol.http import Body, Http
from mcpsniff.protocol.jsonrpc import ENVELOPE_FLAWS
from mcpsniff.protocol.message import Message
from mcpsniff.protocol.meta import META_FLAWS
from mcpsniff.protocol.oauth import Step
from mcpsniff.protocol.reading import MAX_DEPTH, TEXT_FLAWS, is_strict
from mcpsniff.wire.frames import FRAME_FLAWS, Frame, Span
from mcpsniff.wire.http1_parts import HTTP_FLAWS, Head
from mcpsniff.wire.ndjson import BYTE_ORDER_MARK

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?\Z", re.ASCII)
_LINE_BREAKS: Final = bytes.maketrans(b"\r\n", b"  ")


class JsonLines:
    """Turns events into lines, each ending with a newline."""

    def __init__(self, *, payload: bool = False) -> None:
        self._payload = payload
        self._writers: dict[type, Callable[[Any], bytes]] = {
            Frame: _frame,
            Message: self._message,
            Exchange: _exchange,
            Finding: _finding,
            Http: self._http,
            Stderr: _stderr,
            Close: _close,
            Note: _note,
            Edit: _edit,
        }

    def lines(self, events: Iterable[Event]) -> bytes:
        """The lines of ``events``, joined."""
        writers = self._writers
        return b"".join([writers[type(event)](event) for event in events])

    def _message(self, message: Message) -> bytes:
        frame = message.frame
        line = (
            f'{{"type":"message","n":{message.n},"t_us":{message.t},"direction":"{frame.direction}",'
            f'"kind":"{message.kind}"'
        ).encode()
        if message.id is not None:
            line += _id(message.id)
        if message.method is not None:
            line += b',"method":' + _text(message.method)
        line += f',"frame":{frame.n}'.encode()
        if message.link is not None:
            line += f',"exchange":{message.link.request}'.encode()
        line += f',"conversation":{message.conversation},"flaws":{_strings(message.flaws)}'.encode()
        if message.batch is not None:
            line += f',"batch":{message.batch}'.encode()
        if message.http is not None:
            line += f',"http":{message.http.number}'.encode()
        if self._payload:
            line += _payload(message)
        return line + b"}\n"

    def _http(self, event: Http) -> bytes:
        return _http(event, payload=self._payload)


def _frame(frame: Frame) -> bytes:
    line = (
        f'{{"type":"frame","n":{frame.n},"t_us":{frame.t_last},"channel":{frame.channel},'
        f'"direction":"{frame.direction}","framing":"{frame.framing}","size":{frame.size},'
        f'"spans":{_spans(frame.spans)},"flaws":{_strings(frame.flaws)}'
    )
    if frame.http is not None:
        line += f',"http":{frame.http}'
    if frame.coding is not None:
        line += f',"coding":{_dumps(frame.coding).decode()}'
    if frame.sse is None:
        return (line + "}\n").encode()
    event = frame.sse
    fields = {
        "event": event.event,
        "id": event.id,
        "retry": event.retry,
        "comments": list(event.comments),
        "dispatched": event.dispatched,
    }
    return line.encode() + b',"sse":' + _dumps(fields) + b"}\n"


def _exchange(exchange: Exchange) -> bytes:
    line = (
        f'{{"type":"exchange","n":{exchange.n},"t_us":{exchange.t},"direction":"{exchange.direction}"'.encode()
        + _id(exchange.id)
        + b',"method":'
        + _text(exchange.method)
    )
    latency, response = exchange.latency_us, exchange.response
    line += (
        f',"state":"{exchange.state}","latency_us":{"null" if latency is None else latency},'
        f'"request":{exchange.request},"response":{"null" if response is None else response},'
        f'"progress":{_numbers(exchange.progress)},"conversation":{exchange.conversation}'
    ).encode()
    if exchange.http is not None:
        status = "null" if exchange.status is None else exchange.status
        origin = _text(exchange.authority) if exchange.authority else b"null"
        line += f',"http":{exchange.http},"status":{status},"origin":'.encode() + origin
    if touched := _touched(exchange):
        line += b"," + _dumps(touched)[1:-1]
    return line + b"}\n"


def _touched(exchange: Exchange) -> dict[str, Any]:
    """What was done to an exchange on the way, until it ended; nothing of one that was left alone."""
    told = {"by": exchange.by, "answered_by": exchange.answered_by, "held_us": exchange.held_us or None}
    touches = [
        {"n": one.n, "part": one.part, "change": one.change, "by": one.by}
        for one in exchange.touches
        if one.n < exchange.n
    ]
    if not touches and exchange.by is None:
        return {}
    lost = exchange.undelivered
    told["undelivered"] = True if lost is not None and lost.n < exchange.n else None
    return {**{name: value for name, value in told.items() if value is not None}, "edits": touches}


def _http(event: Http, *, payload: bool) -> bytes:
    http = event.exchange
    fields = {
        "type": "http",
        "n": event.n,
        "t_us": event.t,
        "number": http.number,
        "conn": http.connection,
        "origin": http.authority or None,
        "method": http.method or None,
        "target": http.target or None,
        "status": http.status,
        "state": event.state,
        "stream": event.stream,
        "conversation": event.conversation,
        "by": http.by,
        "ended_by": event.ended_by,
        "interim": http.interim,
        "request": _half(http.request, event.asked, payload=payload),
        "response": _half(http.response, event.answered, payload=payload),
        "flaws": event.flaws,
        "spans": orjson.Fragment(_spans(event.spans).encode()),
    }
    if event.why:
        fields["why"] = event.why
    if http.made_by is not None:
        fields["made_by"] = http.made_by
    if http.auth is not None and event.is_first:
        fields["oauth"] = _step(http.auth, event.n)
    return _dumps(fields) + b"\n"


def _step(step: Step, n: int) -> dict[str, Any]:
    """Event ``n`` as a step of an authorization; of secrets the values say only that they were there."""
    began = (step.began or n) if step.number else None
    fields = {"authorization": step.number or None, "began": began, "step": step.name}
    return {**fields, "succeeded": step.succeeded, "asked": step.asked, "said": step.said}


def _half(head: Head | None, body: Body, *, payload: bool) -> dict[str, Any] | None:
    """A request or a response."""
    if head is None:
        return None
    fields = {
        "start": head.start_line.decode("latin-1"),
        "headers": head.headers,
        "size": body.wire,
        "decoded": body.size,
        "messages": body.messages,
        "t_us": head.t_last,
    }
    if text := body.text:
        fields["text"] = text
    if payload and body.kept:
        fields |= _body(body)
    return fields


def _body(body: Body) -> dict[str, Any]:
    """The body of a request or a response that carries no message, as far as it was kept."""
    if body.is_cut:
        return {"payload_text": body.kept.decode(errors="replace"), "payload_cut": True}
    try:
        orjson.loads(body.kept)
    except ValueError:
        return {"payload_text": body.kept.decode(errors="replace")}
    # Strict JSON has raw line breaks between tokens only.
    return {"payload": orjson.Fragment(body.kept.strip().translate(_LINE_BREAKS))}


def _finding(finding: Finding) -> bytes:
    fields = {
        "type": "finding",
        "at": finding.at,
        "k": finding.k,
        "t_us": finding.t,
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity,
        "group": finding.group,
        "blame": finding.blame,
        "text": finding.text,
        "message": finding.message,
        "frame": finding.frame,
        "spans": orjson.Fragment(_spans(finding.spans).encode()),
    }
    return _dumps(fields) + b"\n"


def _stderr(line: Stderr) -> bytes:
    fields = {"type": "stderr", "n": line.n, "t_us": line.t, "text": line.text}
    return _dumps(fields) + b"\n"


def _close(close: Close) -> bytes:
    fields: dict[str, Any] = {
        "type": "close",
        "n": close.n,
        "t_us": close.t,
        "channel": close.channel,
        "how": close.how,
        "status": close.status,
    }
    optional = {"signal": close.signal, "error": close.error, "by": close.by}
    fields |= {name: value for name, value in optional.items() if value is not None}
    if close.sent:
        fields["sent"] = list(close.sent)
    return _dumps(fields) + b"\n"


def _note(note: Note) -> bytes:
    return _dumps(_note_fields(note)) + b"\n"


def _edit(edit: Edit) -> bytes:
    fields = _note_fields(edit)
    link, http = edit.link, edit.http
    fields["edit"] = edit.change
    fields["direction"] = edit.direction
    fields["of"] = None if edit.of is None else edit.of.n
    fields["left"] = [orjson.Fragment(_left(message)) for message in edit.left]
    if edit.members:
        fields["members"] = edit.members
    if edit.lost:
        fields["undelivered"] = [exchange.request for exchange in edit.lost]
    if edit.found:
        fields["delivered"] = [exchange.request for exchange in edit.found]
    if link is not None:
        fields["exchange"] = link.request
    if edit.conversation:
        fields["conversation"] = edit.conversation
    if http is not None:
        fields["http"] = http.number
    return _dumps(fields) + b"\n"


def _left(message: Message) -> bytes:
    line = f'{{"kind":"{message.kind}"'.encode()
    if message.id is not None:
        line += _id(message.id)
    if message.method is not None:
        line += b',"method":' + _text(message.method)
    return line + f',"flaws":{_strings(message.flaws)}}}'.encode()


def _note_fields(note: Note) -> dict[str, Any]:
    fields: dict[str, Any] = {"type": note.kind, "n": note.n, "t_us": note.t, "channel": note.channel}
    for name, value in note.fields.items():
        fields.setdefault(name, _recorded(value) if isinstance(value, bytes) else value)
    if note.spans:
        fields.setdefault("spans", orjson.Fragment(_spans(note.spans).encode()))
    return fields


def _payload(message: Message) -> bytes:
    """The message's own JSON, or its text as a string where splicing it in would not give strict JSON."""
    raw = message.raw
    flaws = message.flaws if message.batch is None else message.flaws + message.frame.flaws
    if is_strict(flaws):
        raw = raw.removeprefix(BYTE_ORDER_MARK)
        # Strict JSON has raw line breaks between tokens only.
        return b',"payload":' + (raw.translate(_LINE_BREAKS) if b"\r" in raw or b"\n" in raw else raw)
    return b',"payload_text":' + _dumps(raw.decode(errors="replace"))


def _id(token: str) -> bytes:
    """The id member: the token itself, or ``id_text`` with the token as a string if it is no strict JSON."""
    if token.isdecimal() and token.isascii():
        return b',"id":' + token.encode()
    return _odd_id(token)


@lru_cache(maxsize=1024)
def _odd_id(token: str) -> bytes:
    if _NUMBER.match(token):
        return b',"id":' + token.encode()
    encoded = token.encode(errors="replace")
    try:
        if token.count("[") + token.count("{") > MAX_DEPTH:
            raise ValueError
        orjson.loads(encoded)
    except ValueError:
        return b',"id_text":' + _text(token)
    return b',"id":' + encoded.translate(_LINE_BREAKS)


@lru_cache(maxsize=4096)
def _strings(words: tuple[str, ...]) -> str:
    return orjson.dumps(words).decode()


def _spans(spans: tuple[Span, ...]) -> str:
    return "[" + ",".join([f"[{span[0]},{span[1]},{span[2]}]" for span in spans]) + "]"


def _numbers(numbers: list[int]) -> str:
    return "[" + ",".join(map(str, numbers)) + "]" if numbers else "[]"


def _text(text: str) -> bytes:
    return _dumps(text)


def _recorded(data: bytes) -> Any:
    """Bytes as a capture writes them: a string where they are UTF-8, else base64."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        from base64 import b64encode

        return {"b64": b64encode(data).decode()}


def _dumps(value: Any) -> bytes:
    """``value`` as JSON; half surrogates, which JSON in UTF-8 cannot hold, become U+FFFD."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return orjson.dumps(_whole(value))


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_whole(name): _whole(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_whole(item) for item in value]
    return value


FLAWS: Final = (
    ("frame", "The bytes of the frame", FRAME_FLAWS),
    ("http", "HTTP as such", HTTP_FLAWS),
    ("message", "The JSON text", TEXT_FLAWS),
    ("message", "The JSON-RPC envelope", ENVELOPE_FLAWS),
    ("message", "`_meta`", META_FLAWS),
)


def flaws_markdown() -> str:
    """The table of all flaws, in Markdown, as docs/json-output.md shows it."""
    lines = []
    for on, title, flaws in FLAWS:
        where = {"frame": "on a frame and on its message", "http": "on an `http` line"}.get(on, f"on a {on}")
        lines += [f"**{title}** ({where})", ""]
        lines += ["| flaw | meaning |", "|---|---|"]
        lines += [f"| `{name}` | {meaning} |" for name, meaning in flaws.items()]
        lines.append("")
    return "\n".join(lines)
