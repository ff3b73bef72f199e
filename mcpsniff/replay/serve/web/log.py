"""An event stream that is being served: what was said on it, so that a client may read it later, or once more.

What belongs to a stream is put into its log, whether or not a client reads at the moment: messages for the stream of a
GET come before the GET does, and a stream that was cut goes on where a client resumes it (MCP transports, Streamable
HTTP, resumability). Ids of events are unique among all streams of a replay, as they have to be for that; an id that a
recording uses once more is therefore given another spelling.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator
from typing import Final, NamedTuple

WAITING_BYTES: Final = 16 * 1024 * 1024
"""What may wait in a log for a client to read it; then the oldest is dropped."""
KEPT_BYTES: Final = 1024 * 1024
"""What was read and can be resumed is kept up to this."""
KEPT_EVENTS: Final = 1_000
FINISHED_BYTES: Final = 32 * 1024 * 1024
FINISHED_LOGS: Final = 1_000
"""What all streams that have ended keep to be resumed; the oldest are forgotten."""
AHEAD_BYTES: Final = 256 * 1024
"""How far a writer may be ahead of a client that reads."""
KNOWN_IDS: Final = 50_000
"""Event ids that can be resumed at; the oldest are forgotten."""


class Block(NamedTuple):
    """A block of an event stream, ready to be written."""

    pieces: tuple[bytes, ...]
    """Its bytes, as they are to be written one after the other."""
    id: str | None = None
    """The event id that it sets."""
    dues: tuple[float | None, ...] = ()
    """When each piece is to be written, by the loop's clock, if recorded moments are kept; None: at once."""
    breaks: bool = False
    """True if the connection is broken off after it."""

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return sum(map(len, self.pieces))


class Pause(NamedTuple):
    """Here the response that carries a stream ends, and the stream may be resumed."""

    is_broken: bool = False
    """True if the connection is broken off, as it was in the recording."""


class EventIds:
    """Gives out event ids, and knows where in which stream each was."""

    def __init__(self) -> None:
        self._places: OrderedDict[str, tuple[StreamLog, int]] = OrderedDict()
        self._again = 0
        self._finished: deque[tuple[StreamLog, int]] = deque()
        self._finished_bytes = 0
        self.dropped = 0
        """Events that were dropped since nobody read them."""

    def fresh(self, recorded: str) -> str:
        """The recorded id if no event of this replay has it yet, else one that is like it."""
        live = recorded
        while live and live in self._places:
            self._again += 1
            live = f"{recorded}.{self._again}"
        return live

    def note(self, event_id: str, log: "StreamLog", position: int) -> None:
        """An event with this id stands at this position of the log."""
        if event_id:
            self._places[event_id] = (log, position)
            if len(self._places) > KNOWN_IDS:
                self._places.popitem(last=False)

    def place(self, event_id: str) -> "tuple[StreamLog, int] | None":
        """The log with the event of that id, and its position there."""
        return self._places.get(event_id)

    def finished(self, log: "StreamLog") -> None:
        """Nothing more comes on a stream: what it keeps is kept as long as there is room."""
        self._finished.append((log, log.kept + log.waiting))
        self._finished_bytes += log.kept + log.waiting
        while len(self._finished) > FINISHED_LOGS or (
            self._finished_bytes > FINISHED_BYTES and len(self._finished) > 1
        ):
            oldest, size = self._finished.popleft()
            self._finished_bytes -= size
            oldest.forget()


class StreamLog:
    """What is said on one stream. One client reads at a time; the latest that asks gets what comes."""

    def __init__(self, ids: EventIds, owner: object = None, *, waits: bool = False) -> None:
        """``waits``: what is said is kept for a reader who may still come; else one will come, or `abandon` be told."""
        self.ids = ids
        self.owner = owner
        """Whose stream it is: nobody else may resume it."""
        self.is_resumable = waits
        """True once an event of it had an id, too."""
        self.has_ended = False
        self._items: deque[Block | Pause] = deque()
        self._first = 0
        """The position of the first item that is kept."""
        self._read = 0
        """The position of the first item that no client has read."""
        self.waiting = 0
        """Bytes that no client has read."""
        self.kept = 0
        """Bytes that were read and can be read once more."""
        self._reader: object | None = None
        self._lost_reader = False
        self._is_expected = not waits
        self._changed = asyncio.Event()

    @property
    def unread(self) -> int:
        """The position of the first item that no client has read."""
        return self._read

    @property
    def is_read(self) -> bool:
        """True while a client reads."""
        return self._reader is not None

    async def put(self, block: Block) -> None:
        """Say something. Raises ConnectionError if nobody will ever read it; waits for a client that reads slowly."""
        if self.has_ended or (self._lost_reader and not self.is_resumable and self._reader is None):
            raise ConnectionResetError("the client has left the stream")
        if block.id is not None:
            self.is_resumable = True
            self.ids.note(block.id, self, self._first + len(self._items))
        self._append(block)
        while (self._reader is not None or self._is_expected) and self.waiting > AHEAD_BYTES and not self.has_ended:
            await self._changed.wait()

    def pause(self, *, is_broken: bool = False) -> None:
        """The response that carries the stream ends here, or its connection is broken off."""
        self._append(Pause(is_broken))

    def finish(self) -> None:
        """Nothing more will be said."""
        if not self.has_ended:
            self.has_ended = True
            self.ids.finished(self)
            self._tell()

    def abandon(self) -> None:
        """The response that was to carry it is over, whether or not it has begun."""
        self._is_expected = False
        self._lost_reader = self._reader is None
        self._tell()

    def forget(self) -> None:
        """Keep nothing more of it."""
        self._first += len(self._items)
        self._read = self._first
        self._items.clear()
        self.kept = self.waiting = 0

    async def follow(self, position: int | None = None) -> AsyncGenerator[Block, None]:
        """What is said from ``position`` on (None: what nobody has read), until the response is to end.

        A client that asks for the stream while another reads takes its place; the other one gets nothing any more.
        """
        me = self._reader = object()
        self._lost_reader = self._is_expected = False
        at = self._read if position is None else max(position, self._first)
        at = self._after_pauses(at)
        try:
            while True:
                if self._reader is not me:
                    if self.has_ended:
                        return
                elif at - self._first < len(self._items):
                    item = self._items[max(0, at - self._first)]
                    at = max(at, self._first)
                    if isinstance(item, Block):
                        yield item
                    at += 1
                    self._was_read(at)
                    if isinstance(item, Pause):
                        if item.is_broken:
                            yield Block((), breaks=True)
                        return
                    continue
                elif self.has_ended:
                    return
                await self._changed.wait()
        finally:
            if self._reader is me:
                self._reader = None
                self._lost_reader = True
                self._tell()

    def _after_pauses(self, at: int) -> int:
        while at - self._first < len(self._items) and isinstance(self._items[at - self._first], Pause):
            at += 1
            self._was_read(at)
        return at

    def _append(self, item: Block | Pause) -> None:
        self._items.append(item)
        self.waiting += _size(item)
        nobody = self._reader is None and not self._is_expected
        while self.waiting > WAITING_BYTES and nobody and len(self._items) > 1:
            self._drop_unread()
        self._tell()

    def _drop_unread(self) -> None:
        """Make room: what was read goes with it, since a resumed stream has no holes that nobody tells of."""
        while self._first <= self._read and self._items:
            item = self._items.popleft()
            if self._first == self._read:
                self.waiting -= _size(item)
                self.ids.dropped += isinstance(item, Block)
            self._first += 1
        self._read = max(self._read, self._first)
        self.kept = 0

    def _was_read(self, up_to: int) -> None:
        for position in range(self._read, up_to):
            size = _size(self._items[position - self._first])
            self.waiting -= size
            self.kept += size
        self._read = max(self._read, up_to)
        limit, most = (KEPT_BYTES, KEPT_EVENTS) if self.is_resumable else (0, 0)
        while self._first < self._read and (self.kept > limit or self._read - self._first > most):
            self.kept -= _size(self._items.popleft())
            self._first += 1
        self._tell()

    def _tell(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


def _size(item: Block | Pause) -> int:
    return item.size if isinstance(item, Block) else 0
