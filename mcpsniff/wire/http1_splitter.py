"""Splits one direction of an HTTP/1.1 connection into its parts, byte for byte (RFC 9112).

An observer cannot refuse a message or close the connection, so this reads on where a server would give up: what is
sloppy is understood and flagged, what is no HTTP is `Undecoded`, and after a loss it goes on at the next plausible
head, or, inside a chunked body, at the next plausible chunk. Nothing that arrives raises an exception; the time is
linear in the bytes, and memory is bounded by one head.
"""

import re
from collections.abc import Callable
from typing import Final

from mcpsniff.wire.frames import GAP, Span
from mcpsniff.wire.http1_body import in_body, in_chunk_end, in_size, in_trailers, until_close
from mcpsniff.wire.http1_head import (
    is_http2_preface,
    may_become_start_line,
    parse_head,
    parse_start_line,
)
from mcpsniff.wire.http1_lost import lost
from mcpsniff.wire.http1_parts import (
    CHUNKED,
    CLOSE,
    CUT,
    HEAD_TOO_LARGE,
    HTTP2,
    LEADING_BLANK_LINE,
    LENGTH,
    NONE,
    NOT_HTTP,
    SURPLUS_BYTES,
    TUNNEL,
    UPGRADED,
    Head,
    Part,
)
from mcpsniff.wire.http1_stream import (
    HEAD_LIMIT,
    IN_BODY,
    IN_CHUNK,
    IN_CHUNK_END,
    IN_HEAD,
    IN_SIZE,
    IN_TRAILERS,
    LOST,
    TUNNELLED,
    UNTIL_CLOSE,
    Stream,
)

REQUESTS_LIMIT: Final = 1024
"""Requests without a response that are remembered per connection; no client pipelines that many."""

_PENDING: Final = {IN_HEAD: "head", IN_TRAILERS: "trailers", LOST: "unknown"}
_BLANK = re.compile(rb"[\r\n]*")
_HEAD_END = re.compile(rb"\n\r?\n")


class Http1Splitter:
    """Splits what arrives on ``channel``: requests if ``direction`` is ``c2s``, else responses.

    ``offset`` is the place of the first byte in the recorded channel.
    """

    def __init__(self, channel: int, direction: str, *, offset: int = 0) -> None:
        self.channel = channel
        self.direction = direction
        self._stream = Stream(channel, direction, offset)

    @property
    def pending(self) -> str:
        """What the bytes are that no part has been given for yet.

        ``head``, ``trailers``, ``framing`` (of a chunked body), ``unknown`` (perhaps the next head), or nothing.
        """
        stream = self._stream
        if stream.mark == stream.offset:
            return ""
        return _PENDING.get(stream.state, "framing")

    @property
    def flaws(self) -> tuple[str, ...]:
        """What is wrong, up to here, with the body whose end has not come yet."""
        return tuple(self._stream.flaws)

    @property
    def is_lost(self) -> bool:
        """Whether a head is looked for in bytes that do not begin with one."""
        return self._stream.state == LOST

    @property
    def is_http2(self) -> bool:
        """Whether the stream has turned out to be HTTP/2."""
        return self._stream.state == TUNNELLED and self._stream.why == HTTP2

    def expect(self, method: str) -> None:
        """A request with this method has been sent, which a response will answer; to be said in order."""
        if len(self._stream.expected) < REQUESTS_LIMIT:
            self._stream.expected.append(method)

    def withdraw(self, place: int) -> None:
        """The request at this place among those said and not answered will not be answered here."""
        if place < len(self._stream.expected):
            del self._stream.expected[place]

    def forget(self) -> None:
        """The requests said so far will not be answered here: their responses were lost."""
        self._stream.expected.clear()

    def feed(self, t: int, data: bytes) -> list[Part]:
        """Take what one read returned at ``t``; return the parts that are complete with it."""
        stream = self._stream
        stream.base, stream.t = stream.offset, t
        position, size = 0, len(data)
        while position < size:  # a step that takes no bytes leads to one that does: see `Stream.refused`
            position = _STEPS[stream.state](stream, data, position)
        stream.offset += size
        if stream.state >= TUNNELLED:
            stream.undecoded(stream.offset - len(stream.pending))
        return self._given()

    def gap(self, size: int = 0) -> None:
        """``size`` bytes (0: unknown) are missing here. What was open is cut, unless they all belong to its body.

        A chunked body stays open: it goes on with the next plausible chunk, and is cut by the next plausible head.
        """
        stream = self._stream
        if stream.state == TUNNELLED:
            return
        if stream.state == UNTIL_CLOSE:
            stream.flaw(GAP)
        elif stream.state in {IN_BODY, IN_CHUNK} and 0 < size <= stream.left:
            stream.flaw(GAP)
            stream.left -= size
            if not stream.left and stream.state == IN_BODY:
                stream.end(stream.mark)
            elif not stream.left:
                stream.state = IN_CHUNK_END
        else:
            if stream.start is not None:
                _cut_head(stream, GAP)
            elif stream.open and stream.state in {IN_BODY, IN_TRAILERS}:
                stream.end(stream.mark, GAP)
            elif stream.open:
                stream.flaw(GAP)
            stream.lose(GAP)

    def tunnel(self, why: str) -> None:
        """From here on this is another protocol: ``upgraded``, ``tunnel`` or ``http2``."""
        if self._stream.open:
            self._stream.end(self._stream.mark, CUT)
        self._stream.leave_http(why)

    def untunnel(self) -> None:
        """The tunnel was refused: HTTP goes on."""
        if self._stream.state == TUNNELLED:
            self._stream.state = IN_HEAD

    def finish(self, t: int) -> list[Part]:
        """The stream has ended at ``t``: what is open ends, completely only if the end of the stream delimits it."""
        stream = self._stream
        stream.t = t
        if stream.state == IN_HEAD and stream.start is not None:
            _cut_head(stream, CUT)
        elif stream.state in {IN_HEAD, TUNNELLED, LOST}:
            if stream.state == IN_HEAD:
                stream.why = CUT if stream.pending else SURPLUS_BYTES
            stream.undecoded(stream.offset)
        if stream.open:
            stream.end(stream.offset, *(() if stream.state == UNTIL_CLOSE else (CUT,)))
        stream.pending.clear()
        stream.state = IN_HEAD
        return self._given()

    def _given(self) -> list[Part]:
        parts, self._stream.parts = self._stream.parts, []
        return parts


def _in_head(stream: Stream, data: bytes, position: int) -> int:
    """Go on in a head, or in the blank lines before it (RFC 9112 section 2.2)."""
    pending = stream.pending
    before = len(pending)
    if not before:
        blank = _BLANK.match(data, position)
        position = blank.end() if blank else position
        if position == len(data):
            return position
        stream.t_first = stream.t
    if stream.start is None and not _in_start_line(stream, data, position):
        return position
    stop = min(position + HEAD_LIMIT - before, len(data))
    if before:
        pending += data[position:stop]
        found = _HEAD_END.search(pending, max(0, before - 2))
        block = bytes(pending[: found.end()]) if found else b""
        pending_stop = position + found.end() - before if found else 0
    else:
        found = _HEAD_END.search(data, position, stop)
        block = data[position : found.end()] if found else b""
        pending_stop = found.end() if found else 0
        pending += b"" if found else data[position:stop]
    if found:
        pending.clear()
        _begin(stream, block, stream.base + pending_stop)
        return pending_stop
    if len(pending) == HEAD_LIMIT:
        midline = pending[-1:] != b"\n"
        pending.clear()
        stream.lose(HEAD_TOO_LARGE, midline=midline)
    return stop


def _in_start_line(stream: Stream, data: bytes, position: int) -> bool:
    """Judge the start line as far as it is here; return False, and leave the state, if this is no head."""
    end = data.find(b"\n", position, position + HEAD_LIMIT - len(stream.pending)) + 1
    if end:
        line = bytes(stream.pending) + data[position:end]
        if stream.request and is_http2_preface(line):
            stream.leave_http(HTTP2)
            return False
        stream.start = parse_start_line(line, request=stream.request)
        plausible = stream.start is not None
    else:
        beginning = bytes(stream.pending[:80]) + data[position : position + 80]
        plausible = may_become_start_line(beginning[:80], request=stream.request)
    if not plausible:
        stream.refused = stream.base + position - len(stream.pending)
        stream.lose(SURPLUS_BYTES if stream.seen else NOT_HTTP, anywhere=True)
    return plausible


def _begin(stream: Stream, block: bytes, stop: int) -> None:
    """A head is complete: ``block`` from its start line to its empty line, ending at ``stop``."""
    head = _parsed(stream, block, stop)
    stream.parts.append(head)
    if head.framing == LENGTH and head.length:
        stream.state, stream.left = IN_BODY, head.length
    elif head.framing == CHUNKED:
        stream.state = IN_SIZE
    elif head.framing == CLOSE:
        stream.state = UNTIL_CLOSE
    else:
        stream.end(stop)
        if head.framing == TUNNEL or head.method == "CONNECT":  # after CONNECT a client waits for the answer
            stream.leave_http(UPGRADED if head.status == 101 else TUNNEL)


def _parsed(stream: Stream, block: bytes, stop: int) -> Head:
    """Read ``block``, whose start line is known, and take it off the account."""
    start = stream.start
    assert start is not None
    stream.start = None
    asked = ""
    if not stream.request:
        asked = stream.expected[0] if stream.expected else "GET"
        if stream.expected and (start.status == 101 or not 100 <= (start.status or 0) < 200):
            stream.expected.popleft()
    said = parse_head(block, start, asked)
    flaws = (LEADING_BLANK_LINE, *said.flaws) if stop - len(block) > stream.mark else said.flaws
    span = Span(stream.channel, stream.mark, stop)
    stream.mark = stop
    stream.open = stream.seen = True
    return Head(
        stream.direction,
        said.start_line,
        start.method,
        start.target,
        start.status,
        start.reason,
        start.version,
        said.fields,
        (span,),
        stream.t_first,
        stream.t,
        flaws,
        said.framing,
        said.length,
    )


def _cut_head(stream: Stream, why: str) -> None:
    """A head breaks off after its start line: give what there is of it, without the line that is cut."""
    whole, end, _ = bytes(stream.pending).rpartition(b"\n")
    blank = stream.offset - len(stream.pending) > stream.mark
    stream.pending.clear()
    head = _parsed(stream, whole + end, stream.offset)
    flaws = [flaw for flaw in head.flaws if flaw != LEADING_BLANK_LINE or blank]
    head.flaws = (why, *flaws)
    head.framing, head.length = NONE, None
    stream.parts.append(head)
    stream.end(stream.offset, why)


def _pass(_stream: Stream, data: bytes, _position: int) -> int:
    """Pass over what is another protocol."""
    return len(data)


_STEPS: Final[tuple[Callable[[Stream, bytes, int], int], ...]] = (
    _in_head,
    in_body,
    in_size,
    in_body,
    in_chunk_end,
    in_trailers,
    until_close,
    _pass,
    lost,
)
"""What is done with bytes in each state, in the order of the states."""
