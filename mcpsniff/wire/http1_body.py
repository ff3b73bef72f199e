"""Bodies of HTTP/1.1: by length, chunked with trailers, until the connection closes (RFC 9112 sections 6 and 7)."""

import re

from mcpsniff.wire.frames import Span
from mcpsniff.wire.http1_head import line_end_flaws, parse_fields
from mcpsniff.wire.http1_parts import BAD_CHUNK, BAD_TRAILER, BARE_LF, CHUNK_WHITE_SPACE, Trailers
from mcpsniff.wire.http1_stream import (
    HEAD_LIMIT,
    IN_BODY,
    IN_CHUNK,
    IN_CHUNK_END,
    IN_SIZE,
    IN_TRAILERS,
    LINE_LIMIT,
    Stream,
)

_SIZE_LINE = re.compile(rb"([ \t]*)([0-9A-Fa-f]{1,16})([ \t]*)(;[^\n]*)?\r?\n")


def in_body(stream: Stream, data: bytes, position: int) -> int:
    """Go on in a body or chunk whose length is known."""
    stop = min(position + stream.left, len(data))
    stream.take(data, position, stop)
    stream.left -= stop - position
    if not stream.left:
        if stream.state == IN_BODY:
            stream.end(stream.mark)
        else:
            stream.state = IN_CHUNK_END
    return stop


def until_close(stream: Stream, data: bytes, position: int) -> int:
    """Go on in a body that the end of the stream delimits."""
    stream.take(data, position, len(data))
    return len(data)


def in_size(stream: Stream, data: bytes, position: int) -> int:
    """Go on in the line with a chunk's size; extensions after it mean nothing to us."""
    pending = stream.pending
    end = data.find(b"\n", position, position + LINE_LIMIT) + 1
    if not end and len(pending) + len(data) - position <= LINE_LIMIT:
        pending += data[position:]
        return len(data)
    line = bytes(pending) + data[position:end] if pending else data[position:end]
    found = _SIZE_LINE.fullmatch(line) if end and len(line) <= LINE_LIMIT else None
    if not found:
        _break_off(stream, BAD_CHUNK)
        return position
    before, size, after, extension = found.groups()
    if before or (after and not extension):
        stream.flaw(CHUNK_WHITE_SPACE)
    for flaw in line_end_flaws(line):
        stream.flaw(flaw)
    pending.clear()
    stream.left = int(size, 16)
    stream.state = IN_CHUNK if stream.left else IN_TRAILERS
    return end


def in_chunk_end(stream: Stream, data: bytes, position: int) -> int:
    """Take the line end after a chunk's data."""
    if not stream.pending and data.startswith(b"\r\n", position):
        stream.state = IN_SIZE
        return position + 2
    byte = data[position : position + 1]
    if byte == b"\r" and not stream.pending:
        stream.pending += byte
        return position + 1
    if byte != b"\n":
        _break_off(stream, BAD_CHUNK, midline=True)
        return position
    if not stream.pending:
        stream.flaw(BARE_LF)
    stream.pending.clear()
    stream.state = IN_SIZE
    return position + 1


def in_trailers(stream: Stream, data: bytes, position: int) -> int:
    """Go on in the lines after the last chunk, up to the empty one."""
    end = data.find(b"\n", position) + 1
    stop = end or len(data)
    if stream.left + len(stream.pending) + stop - position > HEAD_LIMIT:
        _break_off(stream, BAD_TRAILER)
        return position
    stream.pending += data[position:stop]
    if not end:
        return stop
    line = bytes(stream.pending)
    stream.pending.clear()
    stream.left += len(line)
    stream.trailers.append(line)
    if line in (b"\n", b"\r\n"):
        _end_trailers(stream, stream.base + end)
    return end


def _end_trailers(stream: Stream, stop: int) -> None:
    block = b"".join(stream.trailers)
    for flaw in line_end_flaws(block):
        stream.flaw(flaw)
    if len(stream.trailers) > 1:
        flaws: list[str] = []
        fields = parse_fields(block.decode("latin-1"), flaws)
        if flaws:
            stream.flaw(BAD_TRAILER)
        stream.parts.append(Trailers(fields, (Span(stream.channel, stream.mark, stop),), stream.t))
        stream.mark = stop
    stream.end(stop)


def _break_off(stream: Stream, why: str, *, midline: bool = False) -> None:
    """The body cannot be read on, and nobody knows where it ends."""
    stream.end(stream.mark, why)
    stream.lose(why, midline=midline)
