"""A recorded request as it is to be sent again: to whom, with which headers, after which handshake.

What is recorded is kept byte for byte. What belongs to one connection (session, lengths, encodings) is left to whoever
sends it.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from mcpsniff.errors import UsageError
from mcpsniff.protocol.http import (
    LEGACY_STREAM,
    SESSION_HEADER,
    VERSION_HEADER,
    HttpExchange,
    is_json_type,
    media_type,
    origin_form,
)
from mcpsniff.protocol.message import REQUEST, Message
from mcpsniff.protocol.outline import outline
from mcpsniff.protocol.param_headers import PREFIX
from mcpsniff.protocol.revisions import LEGACY as LEGACY_REVISIONS
from mcpsniff.protocol.talk import BARE, LEGACY, MODERN, SESSION
from mcpsniff.replay.resend.holes import Holed, form, header_value, json_object, plain, url, words
from mcpsniff.replay.resend.pick import Picked
from mcpsniff.replay.resend.talk import tool_headers
from mcpsniff.replay.script import PIPE, Script, Talk, Web, is_answer
from mcpsniff.replay.send.headers import (
    ACCEPT,
    JSON,
    METHOD_HEADER,
    NAME_HEADER,
    named_by,
    param_values,
    standard_headers,
)
from mcpsniff.transcript.safe import visible

INITIALIZED: Final = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
_NO_URL: Final = "the capture tells no URL of the server that can be used, only {}: --to URL says where it is"
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_HTTP: Final = re.compile(r"https?://", re.IGNORECASE)
_OF_A_CONNECTION: Final = frozenset(
    [
        *("host", "connection", "keep-alive", "proxy-connection", "transfer-encoding", "content-length", "te"),
        *("trailer", "upgrade", "expect", "accept-encoding", "user-agent", "accept-language", "priority"),
        *("last-event-id", "proxy-authorization", "forwarded", "via"),
    ]
)


@dataclass(slots=True)
class Order:
    """A request that is to be sent."""

    title: str
    """Captured text: what it is, on one line once it is made visible."""
    kind: str
    """One of `mcpsniff.replay.script.TALK_KINDS`: how it is to be carried."""
    body: bytes
    """The message's JSON text, or what else the HTTP request carried."""
    is_request: bool = True
    """True if an answer is to come."""
    method: str = "POST"
    """Of HTTP."""
    url: Holed = ()
    headers: list[tuple[str, Holed]] = field(default_factory=list)
    opening: list[bytes] = field(default_factory=list)
    """The messages of the handshake, in order; none where the request can stand alone."""
    command: list[Holed] = field(default_factory=list)
    """Over pipes: what to start."""
    cwd: str | None = None
    answers: list[tuple[str, bytes]] = field(default_factory=list)
    """What the client answered while it was open: the method asked, and the text of ``{"result": …}`` or error."""


def order_of(
    picked: Picked, script: Script, name: str, *, url_to: str | None = None, command: tuple[str, ...] = ()
) -> Order:
    """How the request that was picked is to be sent: to whom it was sent when recorded, or else where is told.

    ``name`` is what the capture is called. Raises UsageError where it cannot be sent so.
    """
    message, talk = picked.message, picked.talk
    if message is None or talk is None:
        return _bare_http(picked, name, url_to)
    if url_to is not None:
        _check(url_to, "--to {} is no URL")
    order = Order(f"#{message.n} {message.method}{_about(message)} of {name}", talk.kind, message.raw)
    order.is_request = message.kind == REQUEST
    if picked.scene is not None:
        order.answers = _answers(picked)
    if url_to is not None:
        _to_url(order, picked, message, url_to)
        order.headers += _param_headers(script, talk, message)
    elif command or talk.kind == PIPE:
        order.kind = PIPE
        recorded = [str(word) for word in script.header.argv or ()]
        order.command = [(word,) for word in command] if command else words(recorded)
        order.cwd = None if command else script.header.cwd
    else:
        order.url = _recorded_url(picked, talk)
        _check(plain(order.url), _NO_URL)
        order.headers = _headers_of(picked, message) + _param_headers(script, talk, message)
    if order.kind == LEGACY:  # its two requests differ in these
        order.headers = [one for one in order.headers if one[0].lower() not in ("accept", "content-type")]
    if talk.kind == MODERN or talk.is_modern or (order.kind == BARE and url_to is None):
        return order
    if message.method != "initialize":
        order.opening = _opening(talk)
    order.headers = [
        (one, value) for one, value in order.headers if one.lower() not in (SESSION_HEADER, VERSION_HEADER)
    ]
    return order


def _about(message: Message) -> str:
    name = named_by(message)
    return "" if name is None else f" {name}"


def _opening(talk: Talk) -> list[bytes]:
    """The handshake as it was recorded; one of our own where the capture has none."""
    opening = talk.opening
    first = opening.cue.raw if opening is not None and opening.cue is not None else _own_initialize(talk.revision)
    said = (m.raw for m in talk.messages if m.direction == "c2s" and m.method == "notifications/initialized")
    return [first, next(said, INITIALIZED)]


def _own_initialize(revision: str | None) -> bytes:
    asked = revision if revision in LEGACY_REVISIONS else LEGACY_REVISIONS[-1]
    params = {"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "mcpsniff", "version": "0"}}
    return json.dumps({"jsonrpc": "2.0", "id": "mcpsniff-0", "method": "initialize", "params": params}).encode()


def _answers(picked: Picked) -> list[tuple[str, bytes]]:
    """The client's answers to what the server asked while the request was open."""
    assert picked.scene is not None
    asked: dict[int, str] = {}
    found: list[tuple[str, bytes]] = []
    for message in picked.scene.messages():
        if message.direction == "s2c" and message.kind == REQUEST:
            asked[message.n] = message.method or ""
        elif message.direction == "c2s" and is_answer(message) and message.link is not None:
            text = _without_id(message.raw)
            if message.link.request in asked and text is not None:
                found.append((asked[message.link.request], text))
    return found


def _without_id(raw: bytes) -> bytes | None:
    """``{"result":…}`` or ``{"error":…}`` of an answer, as it was spelt."""
    text = raw.decode(errors="replace").removeprefix("\ufeff")
    for token, start, stop in outline(text).members:
        if token in ('"result"', '"error"'):
            return f"{{{token}:{text[start:stop]}}}".encode()
    return None


# -- HTTP ----------------------------------------------------------------------------------------------------------


def _bare_http(picked: Picked, name: str, url_to: str | None) -> Order:
    http = picked.http
    assert http is not None
    order = Order(f"HTTP {http.method} {http.path} of {name}", BARE, b"", is_request=False, method=http.method)
    if picked.web is not None:
        order.body = _body(picked.web)
        order.title += (
            ", whose body is not whole" if picked.web.asked.is_cut or order.body != picked.web.asked.kept else ""
        )
    order.url = (url_to,) if url_to is not None else url(_whole(http))
    _check(plain(order.url), _NO_URL if url_to is None else "--to {} is no URL")
    order.headers = _headers(http)
    return order


def _body(web: Web) -> bytes:
    """What a request carried that is no message, without the secrets in it; empty where they cannot be told."""
    kind = media_type(web.http.asks("content-type"))
    if kind == "application/x-www-form-urlencoded":
        return form(web.asked.kept)
    return json_object(web.asked.kept) if is_json_type(kind) else b""


def _check(text: str, wrong: str) -> None:
    """Raise UsageError, which is to say ``wrong`` of it, for what cannot be the URL of a server."""
    try:
        parts = urlsplit(text)
        is_one = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        is_one = False
    if not is_one:
        raise UsageError(wrong.format(visible(text)))


def _whole(http: HttpExchange) -> str:
    if _HTTP.match(http.target):
        return http.target
    origin = http.authority if "://" in http.authority else f"http://{http.authority}"
    return origin + origin_form(http.target)


def _recorded_url(picked: Picked, talk: Talk) -> Holed:
    """Where the request was sent; for HTTP+SSE where its stream was asked for."""
    if talk.kind != LEGACY:
        assert picked.http is not None
        return url(_whole(picked.http))
    for web in talk.webs:
        if web.http.stream_kind == LEGACY_STREAM and web.http.request is not None:
            return url(_whole(web.http))
    raise UsageError("the capture does not have the stream that this request belongs to: --to URL says where it is")


def _headers(http: HttpExchange | None) -> list[tuple[str, Holed]]:
    """The headers of the recorded request that mean something to the server."""
    if http is None or http.request is None:
        return [("Content-Type", (JSON,)), ("Accept", (ACCEPT,))]
    return [
        (name, header_value(name, value))
        for name, value in http.request.headers
        if name.lower() not in _OF_A_CONNECTION and not name.lower().startswith("sec-") and _TOKEN.match(name)
    ]


def _headers_of(picked: Picked, message: Message) -> list[tuple[str, Holed]]:
    """The recorded headers; of a request that was edited, those that repeat what it says are made anew."""
    if message.http is not None or picked.http is None:
        return _headers(message.http)
    said = [(name, (value,)) for name, value in standard_headers((message,))]
    names = {name.lower() for name, _ in said} | {METHOD_HEADER, NAME_HEADER}
    recorded = _headers(picked.http)
    return said + [one for one in recorded if one[0].lower() not in names and not one[0].lower().startswith(PREFIX)]


def _param_headers(script: Script, talk: Talk, message: Message) -> list[tuple[str, Holed]]:
    """The headers with arguments that its tool asks for (2026-07-28), where they are not the recorded ones."""
    name = message.params.get("name")
    if message.http is not None or message.method != "tools/call" or not isinstance(name, str) or not talk.is_modern:
        return []
    known = tool_headers(script, talk.server)
    return [(header, (value,)) for header, value in param_values(known.get(name, ()), message).items()]


def _to_url(order: Order, picked: Picked, message: Message, url_to: str) -> None:
    talk = picked.talk
    assert talk is not None
    order.url = (url_to,)
    if talk.kind == PIPE:
        order.kind, order.headers = SESSION, [(name, (value,)) for name, value in standard_headers((message,))]
        if talk.is_modern:
            order.kind = MODERN
    else:
        recorded = [one for one in _headers_of(picked, message) if one[0].lower() not in ("accept", "content-type")]
        order.headers = [("Content-Type", (JSON,)), ("Accept", (ACCEPT,)), *recorded]
    if talk.kind not in (PIPE, MODERN):
        order.kind = SESSION
    if url_to.partition("?")[0].rstrip("/").endswith("/sse"):
        order.kind = LEGACY
