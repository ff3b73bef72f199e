"""Newline framing for pipes: one message per line, and only 0x0A ends a line (MCP transports, stdio).

JSON allows U+2028, U+2029, U+0085, VT and FF unescaped in strings, and a CR between tokens, so nothing but LF may
split. Lines are cut on bytes and never decoded here: a character may be torn over two reads.
"""

from typing import Final

from mcpsniff.wire.frames import (
    BARE_CR,
    BOM,
    CR_BEFORE_LF,
    DEFAULT_FRAME_LIMIT,
    EMPTY_LINE,
    GAP,
    INVALID_UTF8,
    TRUNCATED,
    UNTERMINATED,
    Frame,
    Span,
)

BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
JSON_WHITE_SPACE: Final = b" \t\r\n"


class LineSplitter:
    """Splits one channel's bytes into lines.

    Memory is bounded by ``limit`` bytes however long a line gets: the copy is cut and the frame says ``truncated``,
    with its true size; the wire is not touched by any of this.
    """

    def __init__(self, channel: int, direction: str, *, limit: int = DEFAULT_FRAME_LIMIT, offset: int = 0) -> None:
        self.channel = channel
        self.direction = direction
        self._limit = limit
        self._start = offset
        self._offset = offset
        self._pending = bytearray()
        self._t_first = 0
        self._gapped = False

    def feed(self, t: int, data: bytes) -> list[Frame]:
        """Take what one read returned at ``t``; return the lines that end in it."""
        *ended, rest = data.split(b"\n")
        frames = [self._end_of_line(t, piece) for piece in ended]
        if rest:
            self._keep(t, rest)
            self._offset += len(rest)
        return frames

    def gap(self) -> None:
        """Bytes are missing here: the line around the hole cannot be trusted."""
        self._gapped = True

    def finish(self, t: int) -> list[Frame]:
        """The stream has ended at ``t``: what is left is a line without its LF."""
        if self._start == self._offset:
            return []
        return [self._frame(t, bytes(self._pending), terminated=False)]

    def _end_of_line(self, t: int, piece: bytes) -> Frame:
        if self._start == self._offset:
            self._t_first = t
            self._offset += len(piece) + 1
            return self._frame(t, piece if len(piece) <= self._limit else piece[: self._limit], terminated=True)
        self._keep(t, piece)
        self._offset += len(piece) + 1
        return self._frame(t, bytes(self._pending), terminated=True)

    def _keep(self, t: int, piece: bytes) -> None:
        if self._start == self._offset:
            self._t_first = t
        room = self._limit - len(self._pending)
        if room > 0:
            self._pending += piece[:room]

    def _frame(self, t: int, payload: bytes, *, terminated: bool) -> Frame:
        start, stop = self._start, self._offset
        size = stop - start - terminated
        flaws = _flaws(payload, size, terminated=terminated, gapped=self._gapped)
        self._start = stop
        self._pending = bytearray()
        self._gapped = False
        return Frame(
            self.channel,
            self.direction,
            "line",
            (Span(self.channel, start, stop),),
            self._t_first,
            t,
            payload,
            size,
            flaws,
        )


def line_frame(channel: int, direction: str, start: int, t: int, line: bytes, *, t_first: int | None = None) -> Frame:
    """The frame of a whole line, which begins at ``start`` of its channel and ended at ``t``; its LF may be missing."""
    terminated = line.endswith(b"\n")
    payload = line[:-1] if terminated else line
    flaws = _flaws(payload, len(payload), terminated=terminated, gapped=False)
    spans = (Span(channel, start, start + len(line)),)
    return Frame(channel, direction, "line", spans, t if t_first is None else t_first, t, payload, len(payload), flaws)


def _flaws(payload: bytes, size: int, *, terminated: bool, gapped: bool) -> tuple[str, ...]:
    """What the bytes of a line show on their own."""
    if terminated and not gapped and size == len(payload) and payload[:1] == b"{" and payload.isascii():
        return () if b"\r" not in payload else _carriage_returns(payload, terminated=True)
    flaws = []
    if payload.startswith(BYTE_ORDER_MARK):
        flaws.append(BOM)
    if size > len(payload):
        flaws.append(TRUNCATED)
    if gapped:
        flaws.append(GAP)
    if not terminated:
        flaws.append(UNTERMINATED)
    if not payload.strip(JSON_WHITE_SPACE):
        flaws.append(EMPTY_LINE)
    elif not is_utf8(payload, cut=size > len(payload)):
        flaws.append(INVALID_UTF8)
    flaws.extend(_carriage_returns(payload, terminated=terminated))
    return tuple(flaws)


def _carriage_returns(payload: bytes, *, terminated: bool) -> tuple[str, ...]:
    ends_with_cr = terminated and payload.endswith(b"\r")
    inside = payload.find(b"\r", 0, len(payload) - ends_with_cr) >= 0
    return ((BARE_CR,) if inside else ()) + ((CR_BEFORE_LF,) if ends_with_cr else ())


def is_utf8(payload: bytes, *, cut: bool) -> bool:
    """True if ``payload`` is UTF-8; if it is ``cut`` by our limit, a torn character at its end is allowed."""
    if payload.isascii():
        return True
    try:
        payload.decode()
    except UnicodeDecodeError as error:
        # The limit may have cut a character in two; that is our doing.
        return cut and error.end == len(payload) and error.reason == "unexpected end of data"
    return True
