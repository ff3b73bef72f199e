"""Read the JSON-RPC messages out of a capture of HTTP, with h11: not a line of this uses our decoder."""

import base64
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h11

LINE_END = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True)
class Answered:
    """One HTTP request with its body, and the status and body of its response; no status when there was none."""

    request: h11.Request
    sent: bytes
    status: int | None
    kind: str
    got: bytes


def streams(capture: Path) -> Iterator[tuple[bytes, bytes]]:
    """What the client and what the server sent, for each TCP connection of a capture."""
    sides: dict[int, dict[str, bytes]] = {}
    where: dict[int, tuple[int, str]] = {}
    with capture.open(encoding="utf-8", newline="\n") as lines:
        next(lines)
        for line in lines:
            _, kind, channel, body = json.loads(line)[:4]
            if kind == "open":
                where[channel] = (body["conn"], body["dir"])
                sides.setdefault(body["conn"], {"c2s": b"", "s2c": b""})
            elif kind == "chunk":
                conn, side = where[channel]
                sides[conn][side] += body.encode() if isinstance(body, str) else base64.b64decode(body["b64"])
    for connection in sides.values():
        yield connection["c2s"], connection["s2c"]


def requests(sent: bytes) -> Iterator[tuple[h11.Request, bytes]]:
    """The whole requests that a client sent on one connection."""
    server = h11.Connection(h11.SERVER)
    server.receive_data(sent)
    request, body = None, b""
    while True:
        event = server.next_event()
        if isinstance(event, h11.Request):
            request, body = event, b""
        elif isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.EndOfMessage) and request is not None:
            yield request, body
            server.send(h11.Response(status_code=200, headers=[("Content-Length", "0")]))
            server.send(h11.EndOfMessage())
            if server.our_state is h11.MUST_CLOSE:
                return
            server.start_next_cycle()
        else:
            return


def response(client: h11.Connection) -> tuple[int | None, str, bytes]:
    """The next response of a connection: its status, its content type, its body as far as it came."""
    status, kind, body, ended = None, "", b"", False
    while True:
        try:
            event = client.next_event()
        except h11.RemoteProtocolError:
            return status, kind, body
        if isinstance(event, h11.Response):
            status, kind = event.status_code, dict(event.headers).get(b"content-type", b"").decode()
        elif isinstance(event, h11.Data):
            body += event.data
        elif event is h11.NEED_DATA and not ended:
            client.receive_data(b"")
            ended = True
        elif not isinstance(event, h11.InformationalResponse):
            return status, kind, body


def answered(capture: Path) -> Iterator[Answered]:
    """All HTTP requests of a capture."""
    for sent, got in streams(capture):
        client = h11.Connection(h11.CLIENT)
        client.receive_data(got)
        for request, body in requests(sent):
            client.send(h11.Request(method=request.method, target=request.target, headers=[("Host", "x")]))
            client.send(h11.EndOfMessage())
            yield Answered(request, body, *response(client))
            if client.states != {h11.CLIENT: h11.DONE, h11.SERVER: h11.DONE}:
                break
            client.start_next_cycle()


def events(stream: bytes) -> Iterator[str]:
    """The data of the whole server-sent events of a stream that are messages and have any."""
    *whole, _ = LINE_END.sub("\n", stream.decode()).split("\n\n")
    for event in whole:
        fields = [line.partition(":")[::2] for line in event.split("\n")]
        data = "\n".join(value.removeprefix(" ") for name, value in fields if name == "data")
        if data and dict(fields).get("event", "message").strip() == "message":
            yield data


def messages(capture: Path) -> Iterator[tuple[str, Any]]:
    """What went either way as a body or an event, with its direction: as JSON, or as a string if it is none."""
    for each in answered(capture):
        if each.sent:
            yield "c2s", parsed(each.sent.decode())
        if each.kind.startswith("text/event-stream"):
            for data in events(each.got):
                yield "s2c", parsed(data)
        elif each.kind.startswith("application/json") and each.got:
            yield "s2c", parsed(each.got.decode())


def parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
