"""The latest frames and heads of each channel, by their place: an edit is recorded after what it changes has come."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from mcpsniff.protocol.http import HttpExchange
from mcpsniff.protocol.message import Message
from mcpsniff.protocol.talk import Talk
from mcpsniff.wire.frames import Frame, Span
from mcpsniff.wire.http1_parts import Head

FEW: Final = 500
"""Frames and heads that are remembered of a capture in which nothing was edited so far."""
MANY: Final = 20_000
"""And from the first edit on."""
BYTES: Final = 2 << 20
"""Bytes of frames that are remembered: while a message is held, at most 1 MiB of what comes after it is read."""

HEAD_SIZE: Final = 256
FRAMING: Final = 32
"""Bytes of framing that may lie between what was inserted and the frame beside it."""


@dataclass(slots=True)
class Entry:
    """A frame with its messages, or a head of HTTP, and where it lies in its channel."""

    channel: int
    start: int
    stop: int
    size: int
    frame: Frame | None = None
    messages: Sequence[Message] = ()
    head: Head | None = None
    talk: Talk[Any] | None = None
    http: HttpExchange | None = None


type _Come = tuple[Frame | Head, Sequence[Message], Talk[Any] | None, HttpExchange | None]


class Window:
    """What has come last, of all channels. As long as nothing is edited, it is only put into a row."""

    def __init__(self) -> None:
        self.is_wide = False
        """True once there are edits: more is remembered then, by its place."""
        self._come: deque[_Come] = deque()
        self._channels: dict[int, deque[Entry]] = {}
        self._order: deque[Entry] = deque()
        self._size = 0

    def widen(self) -> None:
        """There are edits."""
        if self.is_wide:
            return
        self.is_wide, self._size = True, 0
        for one in self._come:
            self._place(one)
        self._come.clear()

    def frame(self, frame: Frame, messages: Sequence[Message], talk: Talk[Any], http: HttpExchange | None) -> None:
        """A frame has come."""
        if self.is_wide:
            self._place((frame, messages, talk, http))
            return
        self._come.append((frame, messages, talk, http))
        self._size += frame.size
        while len(self._come) > FEW or (self._size > BYTES and len(self._come) > 1):
            oldest = self._come.popleft()[0]
            self._size -= oldest.size if isinstance(oldest, Frame) else 0

    def head(self, head: Head, http: HttpExchange) -> None:
        """A head has come."""
        if self.is_wide:
            self._place((head, (), None, http))
            return
        self._come.append((head, (), None, http))
        if len(self._come) > FEW:
            oldest = self._come.popleft()[0]
            self._size -= oldest.size if isinstance(oldest, Frame) else 0

    def over(self, channel: int, start: int, stop: int) -> list[Entry]:
        """What lies, wholly or in part, from ``start`` up to ``stop``, in order."""
        found = []
        for entry in reversed(self._channels.get(channel, ())):
            if entry.stop <= start:
                break
            if entry.start < stop:
                found.append(entry)
        return found[::-1]

    def head_around(self, channel: int, at: int) -> Entry | None:
        """The head that has bytes on both sides of ``at``."""
        for entry in reversed(self._channels.get(channel, ())):
            if entry.start < at:
                return entry if entry.head is not None and at < entry.stop else None
        return None

    def beside(self, channel: int, at: int) -> Entry | None:
        """The frame that ends where ``at`` is or lies around it, else the one that begins there.

        Between two frames may be what frames the chunks of a body.
        """
        after = None
        for entry in reversed(self._channels.get(channel, ())):
            if entry.frame is None:
                continue
            if entry.start >= at:
                after = entry
                continue
            if at - entry.stop <= FRAMING:
                return entry
            break
        return after if after is not None and after.start - at <= FRAMING else None

    def latest(self, channel: int) -> Entry | None:
        """What has come last on a channel."""
        queue = self._channels.get(channel)
        return queue[-1] if queue else None

    def next(self, channel: int, at: int) -> Entry | None:
        """The first frame that begins at ``at`` or later."""
        found = None
        for entry in reversed(self._channels.get(channel, ())):
            if entry.start < at:
                break
            found = entry if entry.frame is not None else found
        return found

    def _place(self, come: _Come) -> None:
        what, messages, talk, http = come
        if not what.spans:
            return
        channel, start, _ = what.spans[0]
        stop = what.spans[-1].stop
        if isinstance(what, Frame):
            entry = Entry(channel, start, stop, what.size, what, messages, None, talk, http)
        else:
            entry = Entry(channel, start, stop, HEAD_SIZE, head=what, http=http)
        self._channels.setdefault(channel, deque()).append(entry)
        self._order.append(entry)
        self._size += entry.size
        while len(self._order) > MANY or (self._size > BYTES and len(self._order) > 1):
            oldest = self._order.popleft()
            self._size -= oldest.size
            queue = self._channels[oldest.channel]
            queue.popleft()
            if not queue:
                del self._channels[oldest.channel]


def spliced(entry: Entry, data: bytes, place: Span) -> bytes:
    """What a frame became where ``data`` left only in the place of a part of it; else ``data`` itself."""
    frame = entry.frame
    covers = place.start <= entry.start and place.stop >= entry.start + (0 if frame is None else frame.size)
    if frame is None or covers or frame.sse is not None or frame.coding is not None or len(frame.spans) != 1:
        return data
    before = frame.payload[: max(place.start - entry.start, 0)]
    end = b"\n" if frame.framing == "line" and place.stop < entry.stop else b""
    return before + data + frame.payload[place.stop - entry.start :] + end
