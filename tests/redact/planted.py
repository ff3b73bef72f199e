"""Captures with a secret planted in them, in any encoding, on any transport."""

import base64
import gzip
import html
import json
import urllib.parse
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from mcpsniff.capture.reader import Capture, open_capture
from mcpsniff.capture.records import Record
from mcpsniff.cli.redact import NAMES
from mcpsniff.decoder import Decoder, Event
from mcpsniff.export.redact import Report, Rules, make_rules, redact
from mcpsniff.protocol.exchange import Exchange
from mcpsniff.protocol.message import Message
from mcpsniff.wire.frames import Frame
from tests.capture.capture_files import save

SECRET = "s3cr3t/Vål&ue+42<x>"
TOKEN = "ghp_0123456789abcdefghijABCDEFGHIJ012345"


def _units(text: str, upper: bool = False) -> str:
    raw = text.encode("utf-16-be").hex()
    raw = raw.upper() if upper else raw
    return "".join(f"\\u{raw[at : at + 4]}" for at in range(0, len(raw), 4))


def _b64(skip: int, url: bool) -> Callable[[str], bytes]:
    encode = base64.urlsafe_b64encode if url else base64.b64encode
    return lambda text: encode(b"user:xyz"[:skip] + text.encode() + b"!end").rstrip(b"=" if url else b"")


def _percent(text: str) -> str:
    return urllib.parse.quote(text, safe="")


ENCODINGS: dict[str, Callable[[str], bytes]] = {
    "base64, 0": _b64(6, False),
    "base64, 1": _b64(7, False),
    "base64, 2": _b64(8, False),
    "url base64, 0": _b64(6, True),
    "url base64, 1": _b64(7, True),
    "url base64, 2": _b64(8, True),
    "percent": lambda text: _percent(text).encode(),
    "percent, small": lambda text: "%".join(
        [(rest := _percent(text).split("%"))[0], *(one[:2].lower() + one[2:] for one in rest[1:])]
    ).encode(),
    "percent of all": lambda text: "".join(f"%{byte:02x}" for byte in text.encode()).encode(),
    "percent twice": lambda text: _percent(_percent(text)).encode(),
    "form": lambda text: urllib.parse.quote_plus(text).encode(),
    "JSON": lambda text: json.dumps(text)[1:-1].replace("/", "\\/").encode(),
    "JSON of all": lambda text: _units(text).encode(),
    "JSON of all, capital": lambda text: _units(text, upper=True).encode(),
    "JSON twice": lambda text: json.dumps(json.dumps(text)[1:-1])[1:-1].encode(),
    "HTML": lambda text: html.escape(text).encode(),
    "HTML, numbers": lambda text: "".join(f"&#x{ord(one):x};" for one in text).encode(),
    "hex": lambda text: text.encode().hex().encode(),
    "HEX": lambda text: text.encode().hex().upper().encode(),
    "base64 of UTF-16": lambda text: base64.b64encode(("key " + text).encode("utf-16-le")),
    "base64 twice": lambda text: base64.b64encode(base64.b64encode(text.encode())),
    "base64 of JSON": lambda text: base64.b64encode(json.dumps({"k": text}).encode()),
    "hex of percent": lambda text: _percent(text).encode().hex().encode(),
}
"""Texts that may stand within a JSON string, a header or a log line as they are."""

BINARY: dict[str, Callable[[str], bytes]] = {
    "plain": lambda text: text.encode(),
    "UTF-16": lambda text: ("key " + text).encode("utf-16-le"),
    "UTF-16, big": lambda text: ("key " + text).encode("utf-16-be"),
}

REQUEST = '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"x":"%s"}}}'
RESULT = '{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"%s"}]}}'


def pipes(*said: tuple[int, bytes]) -> list[Record]:
    """Records of a wrapped server: (channel, bytes) a millisecond apart."""
    opens = [
        Record(0, "open", 0, {"kind": "stdin", "dir": "c2s", "conn": 0}),
        Record(0, "open", 1, {"kind": "stdout", "dir": "s2c", "conn": 0, "of": 0}),
        Record(0, "open", 2, {"kind": "stderr", "dir": "s2c", "conn": 0}),
    ]
    chunks = [Record(1000 * n, "chunk", channel, data) for n, (channel, data) in enumerate(said, 1)]
    ends = [
        Record(900_000, "close", 0, {"how": "eof"}),
        Record(900_001, "close", 2, {"how": "eof"}),
        Record(900_002, "close", 1, {"how": "exit", "status": 0}),
    ]
    return opens + chunks + ends


def wire(*said: tuple[int, bytes]) -> list[Record]:
    """Records of one TCP connection: (0, bytes of the client) and (1, bytes of the server)."""
    meta = {"client": "127.0.0.1:51000", "server": "127.0.0.1:8000"}
    opens = [
        Record(0, "open", 0, {"kind": "tcp", "dir": "c2s", "conn": 0, "meta": meta}),
        Record(0, "open", 1, {"kind": "tcp", "dir": "s2c", "conn": 0, "of": 0, "meta": meta}),
    ]
    chunks = [Record(1000 * n, "chunk", channel, data) for n, (channel, data) in enumerate(said, 1)]
    return opens + chunks + [Record(900_000, "close", channel, {"how": "eof"}) for channel in (0, 1)]


def bodies(request: Sequence[bytes], response: Sequence[bytes], asked: Any = (), said: Any = ()) -> list[Record]:
    """Records of an exchange of a forward proxy; ``asked`` and ``said`` are more headers."""
    about = {"authority": "mcp.test:443", "scheme": "https"}
    head = [["Content-Type", "application/json"], ["Content-Length", str(sum(map(len, request)))], *asked]
    back = [["Content-Type", "application/json"], ["Content-Length", str(sum(map(len, response)))], *said]
    first = {"start": "POST /mcp HTTP/1.1", "headers": head, **about}
    second = {"start": "HTTP/1.1 200 OK", "headers": back, **about}
    return [
        Record(0, "open", 0, {"kind": "http-request", "dir": "c2s", "conn": 0, "meta": first}),
        *(Record(n, "chunk", 0, data) for n, data in enumerate(request, 1)),
        Record(500, "close", 0, {"how": "eof"}),
        Record(600, "open", 1, {"kind": "http-response", "dir": "s2c", "conn": 0, "of": 0, "meta": second}),
        *(Record(600 + n, "chunk", 1, data) for n, data in enumerate(response, 1)),
        Record(5000, "close", 1, {"how": "eof"}),
    ]


def post(body: bytes, *lines: str) -> bytes:
    """A request."""
    head = ["POST /mcp HTTP/1.1", "Host: h", "Content-Type: application/json", f"Content-Length: {len(body)}", *lines]
    return "\r\n".join([*head, "", ""]).encode() + body


def answer(body: bytes, *lines: str, kind: str = "application/json", chunks: Iterable[int] | None = None) -> bytes:
    """A response, chunked if ``chunks`` says in which sizes."""
    framing = f"Content-Length: {len(body)}" if chunks is None else "Transfer-Encoding: chunked"
    head = "\r\n".join(["HTTP/1.1 200 OK", f"Content-Type: {kind}", framing, *lines, "", ""]).encode()
    if chunks is None:
        return head + body
    parts, at = [], 0
    for size in [*chunks, len(body)]:
        if piece := body[at : at + size]:
            parts.append(b"%x\r\n%b\r\n" % (len(piece), piece))
        at += size
    return head + b"".join(parts) + b"0\r\n\r\n"


def coded(body: bytes, coding: str) -> bytes:
    if coding == "gzip":
        return gzip.compress(body, mtime=0)
    if coding == "deflate":
        return zlib.compress(body)
    if coding == "br":
        import brotli  # type: ignore[import-untyped]

        return bytes(brotli.compress(body))
    from mcpsniff.wire.codings import zstd_module

    return bytes(zstd_module().compress(body))


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def rules(**asked: Any) -> Rules:
    """The rules of these options, with the names that the command knows."""
    return make_rules(**{name: value if name == "seed" else tuple(value) for name, value in asked.items()}, names=NAMES)


class Redacted:
    """A capture and what was made of it."""

    def __init__(self, source: Path, path: Path, report: Report) -> None:
        self.source = source
        self.path = path
        self.report = report
        self.raw = path.read_bytes()
        self.records = list(open_capture(str(path)).records())

    @property
    def capture(self) -> Capture:
        return open_capture(str(self.path))

    def bytes_of(self, channel: int) -> bytes:
        return b"".join(one.body for one in self.records if one.kind == "chunk" and one.channel == channel)


def redacted(folder: Path, records: Sequence[Record], header: dict[str, Any] | None = None, **asked: Any) -> Redacted:
    """Redact these records by these rules."""
    kind = records[0].body.get("kind") if records else ""
    transport = {"tcp": "http", "http-request": "forward"}.get(str(kind), "stdio")
    source = save(folder, "source.mcpcap", records, **{"transport": transport, **(header or {})})
    path = folder / "redacted.mcpcap"
    path.write_bytes(b"")
    return Redacted(source, path, redact(open_capture(str(source)), rules(**asked), str(path)))


def events(path: Path) -> list[Event]:
    """What a capture decodes to."""
    capture = open_capture(str(path))
    decoder = Decoder(capture.header, joined_late=capture.joined_late)
    found = [event for record in capture.records() for event in decoder.feed(record)]
    return found + decoder.finish()


def outline(path: Path) -> list[tuple[Any, ...]]:
    """What has to be the same in a redacted capture: what happened, by number, kind, method and pairing."""
    lines: list[tuple[Any, ...]] = []
    for event in events(path):
        name = type(event).__name__
        if isinstance(event, Message):
            lines.append((name, event.n, event.direction, event.kind, event.method, event.exchange, event.flaws))
        elif isinstance(event, Frame):
            lines.append((name, event.n, event.direction, event.framing, event.flaws, event.coding))
        elif isinstance(event, Exchange):
            lines.append((name, event.n, event.method, event.state, event.request, event.response))
        else:
            lines.append((name, getattr(event, "n", None), getattr(event, "code", None)))
    return lines
