"""The text of events in a stream (WHATWG HTML 9.2.6): changed with the least change, or made."""

import re
from typing import Final

from mcpsniff.wire.ndjson import BYTE_ORDER_MARK

_LINE = re.compile(rb"([^\r\n]*)(\r\n|\r|\n|\Z)")
_LINE_END = re.compile(rb"\r\n|\r|\n")
_DATA: Final = b"data"


def with_data(event: bytes, data: bytes) -> bytes:
    """An event with other data; its type, id, comments and line ends stay, and the white space after ``data:``."""
    mark = BYTE_ORDER_MARK if event.startswith(BYTE_ORDER_MARK) else b""
    lines = _lines(event[len(mark) :])
    places = [at for at, (line, _) in enumerate(lines) if line == _DATA or line.startswith(b"data:")]
    if not places:
        return mark + b"".join([line + end for line, end in lines])
    new = _LINE_END.split(data)
    if len(new) != len(places):
        first = places[0]
        line, end = lines[first]
        lines[first] = (b"", b"".join([_prefix(line, each) + each + end for each in new]))
        for at in places[1:]:
            lines[at] = (b"", b"")
    else:
        for at, each in zip(places, new, strict=True):
            line, end = lines[at]
            if line.removeprefix(_prefix(line, each)) != each:
                lines[at] = (_prefix(line, each) + each, end)
    return mark + b"".join([line + end for line, end in lines])


def made(data: bytes, like: bytes) -> bytes:
    """An event with a message; without an id, which only the sender of the stream may give. Lines end as ``like``."""
    lines = [b"event: message", *[b"data: " + line for line in _LINE_END.split(data)], b"", b""]
    return like.join(lines)


def line_end_of(event: bytes, otherwise: bytes) -> bytes:
    """How the lines of an event end."""
    found = _LINE_END.search(event)
    return found[0] if found else otherwise


def _lines(text: bytes) -> list[tuple[bytes, bytes]]:
    return [(found[1], found[2]) for found in _LINE.finditer(text) if found[0]]


def _prefix(line: bytes, value: bytes) -> bytes:
    """What stands before the value in a data line: one space after the colon does not count as part of it."""
    return b"data: " if line.startswith(b"data: ") or line == _DATA or value.startswith(b" ") else b"data:"
