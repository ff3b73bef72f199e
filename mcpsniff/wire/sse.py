"""Event streams: bytes to events by WHATWG HTML 9.2.5 and 9.2.6, with the bytes, comments and ids that readers drop.

CR LF, LF and CR end a line, and nothing else does. A CR ends its line at once, also at the end of a read: waiting for
an LF that may never come would hold back the last event. A blank line ends a frame. Each frame is one block of lines
with its blank line; a block without data (a comment as a keep-alive, an id, a blank line alone) is no event for a
reader, and a frame with ``dispatched`` False here.

Frames lie side by side, with one exception: the LF of a CR LF that ends a frame belongs to none. The frame is complete
with the CR, and where its bytes end must not depend on what the next read brings.

Lines are cut on bytes, and data is never decoded here: a character may be torn over two reads. A reader sees
``payload.decode(errors="replace")``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from mcpsniff.wire.frames import (
    BOM,
    DEFAULT_FRAME_LIMIT,
    GAP,
    INVALID_UTF8,
    SSE_BAD_RETRY,
    SSE_BOM,
    SSE_NUL_IN_ID,
    SSE_UNKNOWN_FIELD,
    TRUNCATED,
    UNTERMINATED,
    Frame,
    ServerSentEvent,
    Span,
)
from mcpsniff.wire.ndjson import BYTE_ORDER_MARK, is_utf8
from mcpsniff.wire.spans import CodedSpans, ExactSpans, Spans

FIELD_LIMIT: Final = 64 * 1024
"""Bytes kept of an event type, of an id, and of all comments of one block together."""
RETRY_LIMIT: Final = 2**53 - 1
"""The longest reconnection time told, in milliseconds: what a double still holds. Longer ones are given as this."""

_LF: Final = 0x0A
_CR: Final = 0x0D
_FIELD_HEAD: Final = len(b"event: ")

type _Bytes = bytes | bytearray


@dataclass(slots=True)
class _Block:
    """What the lines of the block that is being read have said."""

    payload: _Bytes | None = None
    size: int = 0
    event: str = ""
    id: str | None = None
    retry: int | None = None
    comments: list[str] = field(default_factory=list)
    comment_room: int = FIELD_LIMIT
    flaws: list[str] = field(default_factory=list)

    def flaw(self, flaw: str) -> None:
        if flaw not in self.flaws:
            self.flaws.append(flaw)


class EventSplitter:
    """Splits one event stream into frames.

    Memory is bounded by about twice ``limit`` (or `FIELD_LIMIT`) however long an event gets: the copy is cut and the
    frame says ``truncated``, with the true size of its data; the wire is not touched by any of this.
    """

    def __init__(
        self, channel: int, direction: str, *, limit: int = DEFAULT_FRAME_LIMIT, coding: str | None = None
    ) -> None:
        """``coding``: the content coding that was removed from the data, None if the data are the recorded bytes."""
        self.channel = channel
        self.direction = direction
        self.last_event_id = ""
        """The last event id as readers know it now (it outlives its event)."""
        self.reconnection_time: int | None = None
        """Milliseconds, as last set by ``retry``."""
        self._limit = limit
        self._line_limit = max(limit, FIELD_LIMIT) + _FIELD_HEAD + len(BYTE_ORDER_MARK)
        self._coding = coding
        self._spans: Spans = ExactSpans() if coding is None else CodedSpans()
        self._lf = self._cr = -1
        self._after_cr = False
        self._at_start = True
        self._inside = False
        self._gapped = False
        self._t_first = 0
        self._line = bytearray()
        self._line_size = 0
        self._block = _Block()

    # -- what the world tells the splitter -------------------------------------------------------------------------

    def feed(self, t: int, data: bytes, spans: Sequence[Span]) -> list[Frame]:
        """Take the next ``data`` of the stream, read at ``t`` (microseconds); return the frames that end in it.

        ``spans`` are the recorded bytes that the data came from: as many bytes as ``data`` has, or, if a coding was
        removed, whatever was fed to the decoder for it.
        """
        self._spans.begin(spans, len(data))
        self._lf = self._cr = -1
        frames: list[Frame] = []
        position = self._swallow_lf(data)
        size = len(data)
        while position < size:
            if not self._inside and not self._gapped:
                position = self._usual_frames(frames, t, data, position)
            if position < size:
                position = self._lines(frames, t, data, position)
        self._spans.end(inside=self._inside)
        return frames

    @property
    def is_inside(self) -> bool:
        """True if an event has begun that is not complete."""
        return self._inside

    def gap(self) -> None:
        """Bytes are missing here: the event around the hole cannot be trusted."""
        self._gapped = True
        self._after_cr = False
        self._at_start = self._at_start and self._inside

    def finish(self, t: int) -> list[Frame]:
        """The stream has ended at ``t``: what is left is an unfinished block, which readers discard."""
        if not self._inside:
            return []
        line, size = self._whole_line()
        if line.startswith((b"data:", b":")):
            # Of a torn line only text is worth showing: half of a name, an id or a number would be another one.
            self._field(line, size)
        self._block.flaw(UNTERMINATED)
        self._block.id = None
        return [self._frame(t, self._spans.rest())]

    # -- lines -----------------------------------------------------------------------------------------------------

    def _swallow_lf(self, data: bytes) -> int:
        """Where the lines of this piece begin: behind the LF of a CR LF that was cut in two."""
        if not (self._after_cr and data):
            return 0
        self._after_cr = False
        if data[0] != _LF:
            return 0
        if not self._inside:
            self._spans.skip(1)
        return 1

    def _usual_frames(self, frames: list[Frame], t: int, data: bytes, position: int) -> int:
        """Take whole events of the form that nearly all have; returns where the first other one begins.

        That form is one short data line, perhaps after ``event: message``, with LF or CR LF. It is only a quicker way
        to the very same frames.
        """
        while True:
            at = position
            if data.startswith(b"event: message\n", at):
                at += 15
            elif data.startswith(b"event: message\r\n", at):
                at += 16
            if not data.startswith(b"data: ", at):
                return position
            at += 6
            lf, cr = self._next_line_ends(data, at)
            if lf < cr and data.startswith(b"\n\n", lf):
                stop, end, after = lf, lf + 2, lf + 2
            elif cr == lf - 1 and data.startswith(b"\r\n\r\n", cr):
                stop, end, after = cr, cr + 3, cr + 4
            else:
                stop = len(data)
            if stop - at > self._limit or stop == len(data):
                self._go_back(data, position, at)
                return position
            payload = data[at:stop]
            flaws = () if payload.isascii() else _data_flaws(payload, len(payload))
            frames.append(
                Frame(
                    self.channel,
                    self.direction,
                    "sse",
                    self._spans.take(end),
                    t,
                    t,
                    payload,
                    len(payload),
                    flaws,
                    self._coding,
                    ServerSentEvent(),
                )
            )
            if after != end:
                self._spans.skip(after)
            self._at_start = False
            position = after

    def _go_back(self, data: bytes, position: int, at: int) -> None:
        """The line ends were found from ``at`` on, but the lines are read from ``position`` on: one lies between."""
        lf = data.find(b"\n", position, at)
        if lf >= 0:
            self._lf = lf
            self._cr = lf - 1 if data[lf - 1] == _CR else self._cr

    def _lines(self, frames: list[Frame], t: int, data: bytes, position: int) -> int:
        """Take lines up to the blank one that ends the block; returns where the next block begins."""
        if not self._inside:
            self._inside = True
            self._t_first = t
        size = len(data)
        while position < size:
            lf, cr = self._next_line_ends(data, position)
            stop = min(lf, cr)
            if stop == size:
                self._keep(data, position, stop)
                return size
            if self._line_size or self._at_start or stop - position > self._line_limit:
                self._keep(data, position, stop)
                line, width = self._whole_line()
            else:
                line, width = data[position:stop], stop - position
            position = stop + 1
            if stop == cr:
                self._after_cr = position == size
                position += lf == position
            if not line:
                frames.append(self._frame(t, self._spans.take(stop + 1)))
                self._spans.skip(position)
                return position
            self._field(line, width)
        return position

    def _next_line_ends(self, data: bytes, position: int) -> tuple[int, int]:
        """Where the next LF and the next CR stand; ``len(data)`` if there is none. Each byte is searched once."""
        if self._lf < position:
            found = data.find(b"\n", position)
            self._lf = found if found >= 0 else len(data)
        if self._cr < position:
            found = data.find(b"\r", position)
            self._cr = found if found >= 0 else len(data)
        return self._lf, self._cr

    def _keep(self, data: bytes, start: int, stop: int) -> None:
        """Add to the line that is being read; no more of it than a field of the limit's size needs."""
        room = self._line_limit - len(self._line)
        self._line_size += stop - start
        if room > 0:
            self._line += data[start : min(stop, start + room)]

    def _whole_line(self) -> tuple[_Bytes, int]:
        """The line that has ended: what was kept of it, and its size."""
        line, size = self._line, self._line_size
        self._line, self._line_size = bytearray(), 0
        if self._at_start:
            self._at_start = False
            if line.startswith(BYTE_ORDER_MARK):
                self._block.flaw(SSE_BOM)
                del line[: len(BYTE_ORDER_MARK)]
                size -= len(BYTE_ORDER_MARK)
        return line, size

    # -- fields ----------------------------------------------------------------------------------------------------

    def _field(self, line: _Bytes, size: int) -> None:
        """Process one line that is not blank; ``size`` is its size on the wire."""
        colon = line.find(b":", 0, _FIELD_HEAD)
        value: _Bytes
        if colon < 0:
            name, value, size = line[:_FIELD_HEAD], b"", 0
        else:
            name, start = line[:colon], colon + 1
            start += line.startswith(b" ", start)
            size -= start
            if isinstance(line, bytearray):
                del line[:start]
                value = line
            else:
                value = line[start:]
        if name == b"data":
            self._add_data(value, size)
        elif name == b"event":
            self._block.event = self._text(value, size, FIELD_LIMIT)
        elif name == b"id":
            self._set_id(value, size)
        elif name == b"retry":
            self._set_retry(bytes(value), cut=len(value) < size)
        elif colon == 0:
            self._add_comment(value, size)
        else:
            self._block.flaw(SSE_UNKNOWN_FIELD)

    def _add_data(self, value: _Bytes, size: int) -> None:
        block = self._block
        if block.payload is None:
            block.payload = value if len(value) <= self._limit else value[: self._limit]
            block.size = size
            return
        if isinstance(block.payload, bytes):
            block.payload = bytearray(block.payload)
        block.size += 1 + size
        if len(block.payload) < self._limit:
            block.payload += b"\n"
        with memoryview(value) as view:
            block.payload += view[: self._limit - len(block.payload)]

    def _add_comment(self, value: _Bytes, size: int) -> None:
        """Keep a comment; each costs one byte more than it has, so that their number is bounded too."""
        block = self._block
        if block.comment_room <= 0:
            block.flaw(TRUNCATED)
            return
        block.comments.append(self._text(value, size, block.comment_room))
        block.comment_room -= size + 1

    def _set_id(self, value: _Bytes, size: int) -> None:
        if 0 in value:
            self._block.flaw(SSE_NUL_IN_ID)
        else:
            self._block.id = self._text(value, size, FIELD_LIMIT)

    def _set_retry(self, value: bytes, *, cut: bool) -> None:
        if cut or not value.isdigit():
            self._block.flaw(TRUNCATED if cut else SSE_BAD_RETRY)
            return
        digits = value.lstrip(b"0")
        self._block.retry = self.reconnection_time = min(int(digits[:17] or b"0"), RETRY_LIMIT)

    def _text(self, value: _Bytes, size: int, room: int) -> str:
        """A field's value as text, cut to ``room`` bytes."""
        if size <= room and value.isascii():
            return value.decode()
        kept = bytes(value[:room])
        cut = len(kept) < size
        if cut:
            self._block.flaw(TRUNCATED)
        if not is_utf8(kept, cut=cut):
            self._block.flaw(INVALID_UTF8)
        return kept.decode(errors="replace")

    # -- frames ----------------------------------------------------------------------------------------------------

    def _frame(self, t: int, spans: tuple[Span, ...]) -> Frame:
        """The block that has ended, as a frame; the splitter is between two blocks afterwards."""
        block, self._block = self._block, _Block()
        payload = b"" if block.payload is None else bytes(block.payload)
        unfinished = UNTERMINATED in block.flaws
        flaws = tuple(dict.fromkeys((*_data_flaws(payload, block.size, unfinished=unfinished), *block.flaws)))
        if self._gapped:
            # Where bytes are missing, the rest of a line is easily taken for something else.
            flaws = (*(flaw for flaw in flaws if flaw in (TRUNCATED, UNTERMINATED)), GAP)
        if block.id is not None:
            self.last_event_id = block.id
        dispatched = block.payload is not None and not unfinished
        self._inside = self._gapped = False
        return Frame(
            self.channel,
            self.direction,
            "sse",
            spans,
            self._t_first,
            t,
            payload,
            block.size,
            flaws,
            self._coding,
            ServerSentEvent(block.event or "message", block.id, block.retry, tuple(block.comments), dispatched),
        )


def _data_flaws(payload: bytes, size: int, *, unfinished: bool = False) -> tuple[str, ...]:
    """What the data of an event show on their own, as for a line on a pipe."""
    flaws = []
    if payload.startswith(BYTE_ORDER_MARK):
        flaws.append(BOM)
    if size > len(payload):
        flaws.append(TRUNCATED)
    if not is_utf8(payload, cut=unfinished or size > len(payload)):
        flaws.append(INVALID_UTF8)
    return tuple(flaws)
