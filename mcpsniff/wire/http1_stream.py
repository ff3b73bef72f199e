"""Where a splitter stands in its stream, and the account of which bytes parts have been given for."""

from collections import deque
from typing import Final

from mcpsniff.wire.frames import GAP, Span
from mcpsniff.wire.http1_head import StartLine
from mcpsniff.wire.http1_parts import NOT_HTTP, TUNNEL, Data, End, Part, Undecoded

HEAD_LIMIT: Final = 256 * 1024
"""Bytes of a head, and of trailers, that are read."""
LINE_LIMIT: Final = 8 * 1024
"""Bytes of a chunk's size line, and of a line in which a head is looked for after a loss."""

IN_HEAD, IN_BODY, IN_SIZE, IN_CHUNK, IN_CHUNK_END, IN_TRAILERS, UNTIL_CLOSE, TUNNELLED, LOST = range(9)
"""What the next bytes belong to. `IN_HEAD` is also the state between two messages."""


class Stream:
    """One direction of a connection. The steps that read it are functions (stream, data, position) -> position."""

    def __init__(self, channel: int, direction: str, offset: int) -> None:
        self.channel = channel
        self.direction = direction
        self.request = direction == "c2s"
        self.state = IN_HEAD
        self.parts: list[Part] = []
        """Given, and not handed out yet."""
        self.offset = offset
        """Of the next byte to come."""
        self.mark = offset
        """Parts have been given for all bytes before this one."""
        self.base = offset
        """Offset of the data being read."""
        self.t = 0
        self.t_first = 0
        """When the head being read began."""
        self.pending = bytearray()
        """The beginning of a head or line: the bytes right before the next ones."""
        self.start: StartLine | None = None
        """Of the head in ``pending``."""
        self.trailers: list[bytes] = []
        self.left = 0
        """Bytes to come of the body or chunk; in trailers: bytes read."""
        self.flaws: list[str] = []
        """Of the body being read."""
        self.open = False
        """A head has been given, but not its end."""
        self.seen = False
        """Any head has been given."""
        self.expected: deque[str] = deque()
        """Methods of the requests that responses on this stream will answer."""
        self.why = NOT_HTTP
        """Why bytes are not decoded, while they are not."""
        self.anywhere = False
        """While lost: the next head may begin in the middle of a line."""
        self.midline = False
        """While lost: the line being passed is not looked into."""
        self.refused = -1
        """Where the last bytes began that are no head although one was due or looked for there; it only ever rises."""

    def flaw(self, flaw: str) -> None:
        """Note a flaw of the body."""
        if flaw not in self.flaws:
            self.flaws.append(flaw)

    def take(self, data: bytes, position: int, stop: int) -> None:
        """Give the bytes of ``data`` from ``position`` to ``stop`` as body bytes."""
        start, mark = self.base + position, self.mark
        self.mark = self.base + stop
        piece = data if stop - position == len(data) else data[position:stop]
        lead = Span(self.channel, mark, start) if mark < start else None
        self.parts.append(Data(piece, Span(self.channel, start, self.mark), self.t, lead))

    def end(self, stop: int, *why: str) -> None:
        """End the message, ``why`` if before its time; bytes up to ``stop`` not given yet are its end."""
        for flaw in why:
            self.flaw(flaw)
        spans = (Span(self.channel, self.mark, stop),) if self.mark < stop else ()
        self.mark = max(self.mark, stop)
        complete = not why and GAP not in self.flaws
        self.parts.append(End(self.t, complete, tuple(self.flaws), spans))
        self.flaws, self.trailers = [], []
        self.open, self.left, self.state = False, 0, IN_HEAD

    def lose(self, why: str, *, anywhere: bool = False, midline: bool = False) -> None:
        """Look for the next head from here on; if a message is open, also for its next chunk."""
        if midline or why == GAP:
            self.pending.clear()
        self.start = None
        self.state, self.why, self.anywhere, self.midline = LOST, why, anywhere, midline

    def leave_http(self, why: str = TUNNEL) -> None:
        """What follows is another protocol."""
        self.pending.clear()
        self.start = None
        self.state, self.why = TUNNELLED, why

    def undecoded(self, stop: int) -> None:
        """Give the bytes up to ``stop`` that have not been given yet as no HTTP."""
        if self.mark < stop:
            self.parts.append(Undecoded((Span(self.channel, self.mark, stop),), self.t, self.why))
            self.mark = stop
