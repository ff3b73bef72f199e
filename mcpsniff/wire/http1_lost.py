"""Finding the way back after a loss, after what is no HTTP, and after a body that could not be read.

What counts as a head here is narrower than between two messages, since it is looked for in any bytes whatever. What has
been refused as a head at its place is not proposed again: so the search always gets on, whatever the two make of it.
"""

import re
from typing import Final

from mcpsniff.wire.http1_stream import IN_HEAD, IN_SIZE, LINE_LIMIT, Stream

_REQUEST: Final = rb"[A-Z]{3,20} [!-~\x80-\xff]{1,8000} HTTP/1\.[01]\r?\n"
_STATUS: Final = rb"HTTP/1\.[01] [1-5][0-9][0-9](?: [^\x00-\x08\x0a-\x1f\x7f]*)?\r?\n"
_CHUNK_SIZE: Final = rb"([0-9A-Fa-f]{1,8}[ \t]*(?:;[^\r\n]*)?\r\n)"

_ANYWHERE = {True: re.compile(_REQUEST), False: re.compile(_STATUS)}
_AT_LINE = {True: re.compile(rb"(?m:^)" + _REQUEST), False: re.compile(rb"(?m:^)" + _STATUS)}
_OR_CHUNK = {
    True: re.compile(rb"(?m:^)(?:" + _REQUEST + rb"|" + _CHUNK_SIZE + rb")"),
    False: re.compile(rb"(?m:^)(?:" + _STATUS + rb"|" + _CHUNK_SIZE + rb")"),
}


def lost(stream: Stream, data: bytes, position: int) -> int:
    """Go on looking, line by line; lines above the limit are not looked into."""
    pending = stream.pending
    end = data.find(b"\n", position) + 1
    if stream.midline:
        stream.midline = not end
        return end or len(data)
    if not end:
        pending += data[position : position + LINE_LIMIT + 1]
        if len(pending) > LINE_LIMIT:
            pending.clear()
            stream.midline = True
        return len(data)
    if not pending:
        return _in_lines(stream, data, position)
    line = bytes(pending) + data[position:end]
    after = max(0, stream.refused + 1 - (stream.base + position - len(pending)))
    found = _wanted(stream).search(line, after) if len(line) <= LINE_LIMIT else None
    if not found:
        pending.clear()
        return end
    at = found.start() - len(pending)  # from `position`; negative: it begins in what was kept
    del pending[: found.start()]
    _go_on(stream, found, stream.base + position + at)
    return position + max(0, at)


def _in_lines(stream: Stream, data: bytes, position: int) -> int:
    """Look through all whole lines of ``data`` from ``position`` on."""
    last = data.rfind(b"\n") + 1
    wanted = _wanted(stream)
    after = stream.refused + 1 - stream.base
    while found := wanted.search(data, max(position, after), last):
        begin = data.rfind(b"\n", position, found.start()) + 1 or position
        if found.end() - begin <= LINE_LIMIT:
            _go_on(stream, found, stream.base + found.start())
            return found.start()
        position = found.end()
    return last


def _wanted(stream: Stream) -> re.Pattern[bytes]:
    """What to go on with: a head; where a message is open, also a chunk of it.

    A head begins a line. But what a wrong Content-Length left over may stand right before the next head.
    """
    return (_OR_CHUNK if stream.open else _ANYWHERE if stream.anywhere else _AT_LINE)[stream.request]


def _go_on(stream: Stream, found: re.Match[bytes], at: int) -> None:
    """Go on with what begins at ``at`` in the channel."""
    stream.undecoded(at)
    if stream.open and found[1]:
        stream.state = IN_SIZE
        return
    if stream.open:
        stream.end(at, *stream.flaws)
    stream.t_first = stream.t
    stream.state = IN_HEAD
