"""Dialogues over HTTP, for `tests.dialogue.play`: what stands on the TCP connections of an ``http`` capture.

    @http
    @open 2025-11-25                                          a handshake on connection 1, with a session id
    C> POST /mcp {"jsonrpc":"2.0","id":1,"method":"tools/list"}
    S> 200 {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}     ⟵ MCP201
    C2> GET /mcp                                              another connection, while the first goes on
    S2> 200 STREAM                                            an event stream begins
    S2> EVENT id=7 {"jsonrpc":"2.0","method":"x"}             one event of it
    S2> END                                                   its last chunk
    C> POST /mcp
        Mcp-Session-Id: other                                 a header of this message, instead of the usual one
        -Accept                                               a usual header that is left out
        {"jsonrpc":"2.0","id":2,"method":"ping"}              the body may stand here too

``C``, ``S``, ``M`` and ``G`` may name a connection (``C2>``); without a number it is 1. A line that begins with white
space belongs to the line above it; their findings stand in the margin of the first one. What a line can be:

    C> METHOD TARGET [BODY]     a request. Usual headers: Host, Accept; with a body Content-Type (JSON) and
                                Content-Length; those that @session and @version set; in 2026-07-28 Mcp-Method, Mcp-Name
    S> STATUS [BODY]            a response, with Content-Type (JSON or text) and Content-Length
    S> STATUS STREAM            the head of a response with an event stream, chunked
    S> EVENT [id=X] [event=X] [retry=N] [DATA]
                                an event of the stream; without DATA its data is empty, ⏎ goes on in a new data line
    S> COMMENT TEXT             a comment line in the stream, as a keep-alive
    S> END                      the last chunk of the stream
    C| B, S| B                  exactly these bytes (see tests/dialogue.py)
    C> EOF, S> EOF              the client, or the server, closes the connection
    C> RESET, S> RESET          it breaks it off
    M> STATUS [BODY]            mcpsniff answers the request itself
    M> INSTEAD OLD NEW          mcpsniff passed on NEW and a comment line, in equal length, in the place of OLD, which
                                stands in the latest chunk from the server
    G> C N WHY                  the recorder lost N bytes of the client's (or S, the server's) side
    @session ID, @version REV   requests carry this Mcp-Session-Id, this MCP-Protocol-Version from now on (no ID, no
                                REV: none)
    @open REVISION [ID]         POST initialize and notifications/initialized at /mcp, with SESSION_ID or ID as session
                                id (``none``: no session), then @session and @version
    @sse                        revision 2024-11-05: GET /sse on connection 9, whose stream names /messages?sessionId=1
                                for POSTs, and the handshake; answers are ``S9> EVENT``
    @modern                     server/discover in 2026-07-28, then @version
    + 3s, @late, @limit, X>, N>, #  as in tests/dialogue.py

A header ``Transfer-Encoding: chunked`` or ``Content-Encoding: gzip`` is carried out, in streams too. A connection is
opened when its number is used first, and again after it was closed. Records are as the relay writes them.
"""

import json
import re
import zlib
from dataclasses import dataclass, field
from typing import Any

from tests.dialogue import STEP_US, DialogueError, Line, Stage, bytes_of, discovery, handshake, spelt_out

Headers = list[tuple[str, str]]

SESSION = "Mcp-Session-Id"
SESSION_ID = "s-5c1e0b7f93a2"
VERSION = "MCP-Protocol-Version"
NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
REASONS = {200: "OK", 202: "Accepted", 307: "Temporary Redirect", 400: "Bad Request", 401: "Unauthorized"}
REASONS |= {403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed", 502: "Bad Gateway"}

_SPEAKER = re.compile(r"([CSMG])(\d*)([>|])\s?(.*)", re.DOTALL)
_HEADER = re.compile(r"([\w!#$%&'*+.^`|~-]+):\s?(.*)$")
_FIELD = re.compile(r"(id|event|retry)=(\S*)\s*")


@dataclass
class Link:
    """One TCP connection through the relay."""

    connection: int
    closed: set[str] = field(default_factory=set)
    chunked: bool = False
    deflate: Any = None

    def channel(self, side: str) -> int:
        return 2 * self.connection + (side != "C")


class HttpStage(Stage):
    """A dialogue over HTTP."""

    def __init__(self, *settings: Any) -> None:
        super().__init__(*settings)
        self._links: dict[str, Link] = {}
        self._opened = 0
        self._session = self._version = ""

    def act(self, line: Line) -> bool:
        if line.is_more:
            return self._is_of_a_block(line)
        said = _SPEAKER.match(line.text)
        if said is None:
            return self._set_up(line)
        side, number, mark, rest = said.groups()
        link = self._link(line, number or "1")
        if side == "G":
            where, count, why = rest.split(maxsplit=2)
            self.feed(line, "gap", link.channel(where), {"bytes": int(count), "why": why})
        elif mark == "|":
            self.feed(line, "chunk", link.channel(side), bytes_of(rest, line))
        elif rest in ("EOF", "RESET"):
            self._end(line, side, link, rest)
        elif side == "C":
            self._request(line, link, rest, *self._block(line))
        elif side == "M" and rest.startswith("INSTEAD "):
            self._change(line, link, *rest.split()[1:])
        elif side == "M":
            self._own_answer(line, link, _response(rest, *self._block(line), Link(0)))
        else:
            self._reply(line, link, rest)
        return True

    # -- lines -----------------------------------------------------------------------------------------------------

    def _is_of_a_block(self, line: Line) -> bool:
        """True for a line that was read with the one above it; it takes no time of its own."""
        self.t -= STEP_US
        above = [one for one in self.lines if one.number < line.number and not one.is_more]
        return bool(above) and _SPEAKER.match(above[-1].text) is not None

    def _block(self, line: Line) -> tuple[list[str], str]:
        """The header lines and the body in the indented lines below ``line``, whose margins go to ``line``."""
        headers, body = [], ""
        for more in self.lines[self.lines.index(line) + 1 :]:
            if not more.is_more:
                break
            line.expected += more.expected
            more.expected = []
            if _HEADER.match(more.text) or more.text.startswith("-"):
                headers.append(more.text)
            else:
                body = more.text
        return headers, body

    def _set_up(self, line: Line) -> bool:
        word, *arguments = line.text.split()
        if word == "@session":
            self._session = arguments[0] if arguments else ""
        elif word == "@version":
            self._version = arguments[0] if arguments else ""
        elif word == "@open" and arguments:
            self._open(line, arguments[0], (*arguments[1:], SESSION_ID)[0])
        elif word == "@sse":
            self._open_legacy(line)
        elif word == "@modern":
            self._version = "2026-07-28"
            asked, found = (json.dumps({"jsonrpc": "2.0", **message}) for _, message in discovery())
            self._request(line, self._link(line, "1"), f"POST /mcp {asked}")
            self._reply(line, self._link(line, "1"), f"200 {found}")
        else:
            return False
        return True

    def _open(self, line: Line, revision: str, session: str) -> None:
        link = self._link(line, "1")
        asked, answered, confirmed = (json.dumps({"jsonrpc": "2.0", **message}) for _, message in handshake(revision))
        self._request(line, link, f"POST /mcp {asked}")
        headers = [] if session == "none" else [f"{SESSION}: {session}"]
        self.feed(line, "chunk", link.channel("S"), _response(f"200 {answered}", headers, "", link))
        self._session = "" if session == "none" else session
        self._version = revision if revision >= "2025-06-18" else ""
        self._request(line, link, f"POST /mcp {confirmed}")
        self._reply(line, link, "202")

    def _open_legacy(self, line: Line) -> None:
        stream = self._link(line, "9")
        self._request(line, stream, "GET /sse")
        self._reply(line, stream, "200 STREAM")
        self._reply(line, stream, "EVENT event=endpoint /messages?sessionId=1")
        for side, message in handshake("2024-11-05"):
            text = json.dumps({"jsonrpc": "2.0", **message})
            if side == "C":
                self._request(line, self._link(line, "1"), f"POST /messages?sessionId=1 {text}")
                self._reply(line, self._link(line, "1"), "202 Accepted")
            else:
                self._reply(line, stream, f"EVENT {text}")

    # -- the wire --------------------------------------------------------------------------------------------------

    def _link(self, line: Line, number: str) -> Link:
        link = self._links.get(number)
        if link is not None and len(link.closed) < 2:
            return link
        link = self._links[number] = Link(self._opened)
        self._opened += 1
        meta = {"client": f"127.0.0.1:{51000 + link.connection}", "server": "127.0.0.1:8000"}
        meta |= {"listen": "127.0.0.1:9000", "upstream": "http://127.0.0.1:8000"}
        about = {"kind": "tcp", "conn": link.connection, "meta": meta}
        self.feed(line, "open", link.channel("C"), {"dir": "c2s", **about})
        self.feed(line, "open", link.channel("S"), {"dir": "s2c", "of": link.channel("C"), **about})
        return link

    def _end(self, line: Line, side: str, link: Link, how: str) -> None:
        error = {"error": "Connection reset by peer"} if how == "RESET" else {}
        self.feed(line, "close", link.channel(side), {"how": how.lower(), **error})
        other, who = ("S", "client") if side == "C" else ("C", "server")
        link.closed.add(side)
        if other not in link.closed:
            link.closed.add(other)
            self.feed(line, "close", link.channel(other), {"how": "aborted", "error": f"the {who} closed its end"})

    def _request(self, line: Line, link: Link, text: str, changes: list[str] | None = None, body: str = "") -> None:
        method, target, *rest = text.split(" ", 2)
        body = spelt_out(rest[0] if rest else body)
        headers: Headers = [("Host", "127.0.0.1:9000")]
        headers.append(("Accept", "text/event-stream" if method == "GET" else "application/json, text/event-stream"))
        headers += [(SESSION, self._session)] * bool(self._session)
        headers += [(VERSION, self._version)] * bool(self._version)
        if self._version == "2026-07-28":
            headers += _routing(body)
        if body:
            headers.append(("Content-Type", "application/json"))
        headers = _changed(headers, changes or [])
        start = f"{method} {target} HTTP/1.1"
        self.feed(line, "chunk", link.channel("C"), _whole(start, headers, body.encode(), has_length=bool(body)))

    def _reply(self, line: Line, link: Link, text: str) -> None:
        word, _, rest = text.partition(" ")
        if word == "EVENT":
            data = _event(spelt_out(rest))
        elif word == "COMMENT":
            data = f": {rest}\n\n".encode()
        elif word == "END":
            ended = link.deflate.flush() if link.deflate else b""
            self.feed(line, "chunk", link.channel("S"), (_chunk(ended) if ended else b"") + b"0\r\n\r\n")
            return
        elif word.isdecimal():
            self.feed(line, "chunk", link.channel("S"), _response(text, *self._block(line), link))
            return
        else:
            raise DialogueError(f"line {line.number} is none of a dialogue: {line.text}")
        if link.deflate is not None:
            data = link.deflate.compress(data) + link.deflate.flush(zlib.Z_SYNC_FLUSH)
        self.feed(line, "chunk", link.channel("S"), _chunk(data) if link.chunked else data)

    def _change(self, line: Line, link: Link, old: str, new: str) -> None:
        channel = link.channel("S")
        said = b"".join(one.body for one in self.records if one.kind == "chunk" and one.channel == channel)
        data = f"{new}\n:".encode().ljust(len(old))
        body = {"start": said.rindex(old.encode()), "length": len(old), "data": data, "by": "mcpsniff"}
        self.feed(line, "rewrite", channel, body)

    def _own_answer(self, line: Line, link: Link, data: bytes) -> None:
        channel = link.channel("S")
        start = sum(len(one.body) for one in self.records if one.kind == "chunk" and one.channel == channel)
        body = {"start": start, "length": 0, "data": data, "by": "mcpsniff"}
        self.feed(line, "rewrite", channel, body)


def _routing(body: str) -> Headers:
    """The headers that repeat what a request of 2026-07-28 says."""
    try:
        message = json.loads(body)
        method = message["method"]
        name = message.get("params", {}).get(NAMED_BY.get(method, ""))
    except (ValueError, TypeError, KeyError, AttributeError):
        return []
    return [("Mcp-Method", method)] + ([("Mcp-Name", name)] if name is not None else [])


def _changed(headers: Headers, changes: list[str]) -> Headers:
    """``Name: value`` takes the place of the usual header of that name, ``-Name`` leaves it out."""
    given = [(found[1], found[2]) for change in changes if (found := _HEADER.match(change))]
    replaced = {name.lower() for name, _ in given}
    dropped = {change[1:].strip().lower() for change in changes if change.startswith("-")}
    return [(name, value) for name, value in headers if name.lower() not in replaced | dropped] + given


def _response(text: str, changes: list[str], body: str, link: Link) -> bytes:
    """A whole response, or the head of a stream."""
    status, _, rest = text.partition(" ")
    start = f"HTTP/1.1 {status} {REASONS.get(int(status), '')}"
    body = spelt_out(rest or body)
    if body != "STREAM":
        kind = "application/json" if body[:1] in ("{", "[") else "text/plain"
        headers = _changed([("Content-Type", kind)] * bool(body), changes)
        return _whole(start, headers, body.encode(), has_length=status != "204")
    usual = [("Content-Type", "text/event-stream"), ("Cache-Control", "no-store"), ("Transfer-Encoding", "chunked")]
    headers = _changed(usual, changes)
    link.chunked = _value(headers, "transfer-encoding") == "chunked"
    link.deflate = zlib.compressobj(wbits=31) if _value(headers, "content-encoding") == "gzip" else None
    return _head(start, headers)


def _whole(start: str, headers: Headers, body: bytes, *, has_length: bool) -> bytes:
    if _value(headers, "content-encoding") == "gzip":
        packer = zlib.compressobj(wbits=31)
        body = packer.compress(body) + packer.flush()
    if _value(headers, "transfer-encoding") == "chunked":
        half = len(body) // 2
        return _head(start, headers) + _chunk(body[:half]) + _chunk(body[half:]) + b"0\r\n\r\n"
    if has_length and not _value(headers, "content-length"):
        headers = [*headers, ("Content-Length", str(len(body)))]
    return _head(start, headers) + body


def _head(start: str, headers: Headers) -> bytes:
    return "".join(f"{line}\r\n" for line in (start, *(f"{n}: {v}" for n, v in headers), "")).encode("latin-1")


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""


def _value(headers: Headers, name: str) -> str:
    return next((value for key, value in headers if key.lower() == name), "")


def _event(text: str) -> bytes:
    fields = []
    while found := _FIELD.match(text):
        fields.append(f"{found[1]}: {found[2]}\n")
        text = text[found.end() :]
    return "".join([*fields, *(f"data: {one}\n" for one in text.split("⏎")), "\n"]).encode()
