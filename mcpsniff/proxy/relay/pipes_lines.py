"""Whole lines out of the pieces in which a pipe brings them, with their very bytes, to be held one at a time."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mcpsniff.proxy.relay.edit_records import LIMIT
from mcpsniff.wire.frames import Frame
from mcpsniff.wire.ndjson import line_frame


class Piece(NamedTuple):
    """A whole line, or a part of one that is too long."""

    frame: Frame | None
    """None: it is part of a line that is too long."""
    data: bytes
    """The bytes as they came, with the line's end."""
    ends_line: bool


class Cutter:
    """Cuts what arrives on one channel. It keeps at most ``limit`` bytes of a line that has not ended."""

    def __init__(self, channel: int, direction: str, *, limit: int = LIMIT) -> None:
        self.channel = channel
        self.direction = direction
        self._limit = limit
        self._offset = 0
        """The place in the channel of the first byte that is kept, or of the next one."""
        self._kept = bytearray()
        self._t_first = 0
        self._passing = False

    @property
    def kept(self) -> int:
        """How many bytes of a line that has not ended are kept."""
        return len(self._kept)

    def feed(self, t: int, data: bytes) -> Iterable[Piece]:
        """Take what one read returned at ``t`` (microseconds); return what is to go on, in order."""
        if data.find(b"\n") == len(data) - 1:  # one line, mostly
            return (self._line(t, data),)
        return self._several(t, data)

    def finish(self, t: int) -> Iterable[Piece]:
        """The stream has ended at ``t``: what is left is a line without its LF."""
        return (self._line(t, b""),) if self._kept else ()

    def _several(self, t: int, data: bytes) -> Iterator[Piece]:
        start = 0
        while stop := data.find(b"\n", start) + 1:
            yield self._line(t, data[start:stop])
            start = stop
        if start < len(data):
            piece = self._unended(t, data[start:])
            if piece is not None:
                yield piece

    def _line(self, t: int, data: bytes) -> Piece:
        """Complete a line with ``data``, which ends in its LF."""
        start, t_first = self._offset, t
        if self._kept:
            t_first = self._t_first
            data = bytes(self._kept) + data
            self._kept = bytearray()
        self._offset += len(data)
        if self._passing or len(data) > self._limit:
            self._passing = False
            return Piece(None, data, ends_line=True)
        frame = line_frame(self.channel, self.direction, start, t, data, t_first=t_first)
        return Piece(frame, data, ends_line=True)

    def _unended(self, t: int, data: bytes) -> Piece | None:
        """Keep the beginning of a line, or let it pass if that gets too long."""
        if not self._passing:
            if not self._kept:
                self._t_first = t
            self._kept += data
            if len(self._kept) < self._limit:
                return None
            data = bytes(self._kept)
            self._kept = bytearray()
            self._passing = True
        self._offset += len(data)
        return Piece(None, data, ends_line=False)
