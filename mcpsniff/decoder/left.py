"""Read the bytes that left in the place of others, or besides them: lines, events, bodies, whole messages of HTTP."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from mcpsniff.decoder.bodies import reader_of
from mcpsniff.wire.body import BodyDecoder
from mcpsniff.wire.frames import DEFAULT_FRAME_LIMIT, EMPTY_LINE, INVALID_UTF8, Frame
from mcpsniff.wire.http1 import Data, End, Head, Http1Splitter, Part
from mcpsniff.wire.ndjson import JSON_WHITE_SPACE, LineSplitter, is_utf8
from mcpsniff.wire.sse import EventSplitter

LINE: Final = "line"
BODY: Final = "body"
SSE: Final = "sse"
EITHER: Final = ""
"""Of HTTP, but not known whether of a stream or of a body."""

_RESPONSE: Final = re.compile(rb"HTTP/1\.[01] [0-9]{3}")
_REQUEST: Final = re.compile(rb"[A-Z]{3,16} \S+ HTTP/1\.[01]\r?\n")
_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\r\n]*)?\r\n")
_FIELD: Final = re.compile(rb"(?:\A|[\r\n])(?:data|event|id|retry)?:")


class Left(NamedTuple):
    """What left, read."""

    frames: Sequence[Frame]
    head: Head | None = None
    """Where a head of HTTP is among it."""
    parts: Sequence[Part] = ()
    """Likewise: all of it."""


def read_left(  # noqa: PLR0917
    data: bytes, framing: str, channel: int, direction: str, t: int, coding: str | None = None, method: str = "POST"
) -> Left:
    """Read what left at ``t`` on a channel. ``framing`` is that of what it replaces or stands beside.

    ``coding`` is the content coding of what it replaces; ``method`` that of the request that a response answers. Places
    are not known: what left is not among the recorded bytes. Does not raise.
    """
    if not data:
        return Left(())
    if framing == LINE:
        splitter = LineSplitter(channel, direction)
        frames = [*splitter.feed(t, data), *splitter.finish(t)]
        return Left([_placeless(frame) for frame in frames if EMPTY_LINE not in frame.flaws])
    if starts_http(data):
        return _http(data, channel, t, method)
    text = _without_coding(_without_sizes(data), coding)
    if framing == SSE or (not _is_json(text) and _is_events(text, framing)):
        events = EventSplitter(channel, direction)
        frames = [*events.feed(t, text, ()), *events.finish(t)]
        return Left([_placeless(frame) for frame in frames if frame.payload])
    if not text.strip(JSON_WHITE_SPACE):
        return Left(())
    flaws = () if is_utf8(text, cut=False) else (INVALID_UTF8,)
    return Left([Frame(channel, direction, BODY, (), t, t, text, len(text), flaws)])


def starts_http(data: bytes) -> bool:
    """True if ``data`` begins with the head of a request or of a response."""
    return bool(_RESPONSE.match(data) or _REQUEST.match(data))


def _http(data: bytes, channel: int, t: int, method: str) -> Left:
    direction = "s2c" if data.startswith(b"HTTP/") else "c2s"
    splitter = Http1Splitter(channel, direction)
    if direction == "s2c":
        splitter.expect(method or "POST")
    parts = [*splitter.feed(t, data), *splitter.finish(t)]
    heads = [part for part in parts if isinstance(part, Head) and not part.interim]
    if not heads:
        return Left((), None, parts)
    reader = reader_of(heads[0], DEFAULT_FRAME_LIMIT, _is_json)
    frames: list[Frame] = []
    for part in parts:
        if isinstance(part, Data):
            frames += reader.feed(part)
        elif isinstance(part, End):
            frames += reader.end(t, complete=part.complete)
    return Left([_placeless(frame) for frame in frames if frame.payload], heads[0], parts)


def _without_sizes(data: bytes) -> bytes:
    """The contents of chunks of HTTP, of which the last may go on; ``data`` itself if it is none."""
    pieces: list[bytes] = []
    position = 2 if data.startswith(b"\r\n") else 0
    while position < len(data):
        size = _SIZE.match(data, position)
        if size is None:
            return data if not pieces else b"".join(pieces)
        length = int(size[1], 16)
        end = size.end() + length
        if end < len(data) and data[end : end + 2] != b"\r\n":
            return data if not pieces else b"".join(pieces)
        pieces.append(data[size.end() : end])
        position = end + 2
    return b"".join(pieces) if pieces else data


def _without_coding(data: bytes, coding: str | None) -> bytes:
    if coding is None or _is_json(data):
        return data
    decoder = BodyDecoder(coding)
    text = decoder.feed(data) + decoder.finish()
    return data if decoder.flaws else text


def _is_events(text: bytes, framing: str) -> bool:
    """True if what left is of an event stream: a body may become one, since more than an answer is to be said."""
    if framing == EITHER:
        return bool(_FIELD.search(text[:4096]))
    return bool(_FIELD.match(text.lstrip(b"\r\n")))


def _is_json(data: bytes) -> bool:
    return data.removeprefix(b"\xef\xbb\xbf").lstrip(JSON_WHITE_SPACE)[:1] in (b"{", b"[")


def _placeless(frame: Frame) -> Frame:
    frame.spans = ()
    return frame
