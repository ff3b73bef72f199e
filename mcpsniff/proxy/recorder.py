"""The wire's side of recording: a queue bounded in bytes that never holds the wire up.

What passes is noted before it is written on, so that a reply is never recorded before its request. To note is to append
``(clock(), CHUNK, channel, data)`` to the queue, without a lock. `Recorder.note` does it with care; while there is no
`Recorder.alert`, a pump does it by itself, since on the way of a message a call is a noticeable part of the cost. The
account of the queue is settled later, after the write, and not for every message.

A burst that is faster than any disk (a 40 MB answer of a local server) is slowed: a pump that carries bulk gives way
after it has passed its bytes on and before it reads more, but for no more than `COURTESY` seconds until the queue has
been emptied; a disk that hangs costs that once. Beyond it nothing waits for the disk: when the queue is full, bytes
are counted as lost, and the next record of that channel is a gap that says how many.

The other side, which empties the queue into a file, is `mcpsniff.proxy.storing`.
"""

import time
from _thread import allocate_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Final

    type Entry = tuple[int, str, int | None, Any]
    """A record to be: t in nanoseconds of the monotonic clock, kind, channel, body."""

CHUNK: "Final" = "chunk"
REWRITE: "Final" = "rewrite"
UNKEPT: "Final" = "from here on some of what left instead of recorded bytes is missing: the disk was slower"
LIMIT: "Final" = 6 << 20
"""Bytes that may wait for the disk, and what each pump has not settled yet; at half of it pumps give way."""
COURTESY: "Final" = 1.0
"""Seconds that pumps give way to the disk from one empty queue to the next."""
NAP: "Final" = 0.02
"""Seconds between two looks at the queue while there is traffic: well under the 50 ms promised to followers."""
IDLE: "Final" = 1.0
"""Seconds between two looks when there is none. A note wakes the sleeper, but for one made just as it fell asleep."""
PRESSURE: "Final" = 256 << 10
"""Bytes in the queue that end a nap early."""
OVERHEAD: "Final" = 256
"""What a queued entry costs beyond its bytes; without it one-byte reads would fill memory within the bound."""

_AWAKE, _NAPPING, _ASLEEP = range(3)


class Recorder:
    """Collects what passes on all channels of one run.

    `note`, `settle`, `mark` and `discard` may be called from any thread; they do not raise, and all but `settle` do not
    wait. The other methods are for the one thread that stores.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self.started_ns = time.time_ns()
        """The wall clock at t = 0, in nanoseconds since the epoch."""
        self.zero_ns = time.monotonic_ns()
        """The monotonic clock at that moment."""
        self.clock = time.monotonic_ns
        self._limit = limit
        self._pressure = min(PRESSURE, limit // 2)
        self._queue: list[Entry] = []
        self.append: Callable[[Entry], None] = self._queue.append
        self.alert = False
        """Appending needs care: the queue is or was full, the storing thread sleeps, or nothing is to be recorded."""
        self._lock = allocate_lock()  # guards what follows
        self._pending = 0
        self._courtesy = COURTESY
        self._lost: dict[int, int] = {}
        self._unkept = 0
        self._off = False
        self._closing = False
        self._storer = _AWAKE
        self._bell = allocate_lock()  # released: rung
        self._bell.acquire()

    def note(self, channel: int, data: bytes, at: int | None = None) -> int:
        """Note that ``data`` arrived on ``channel``; return the room it takes, which is to be settled.

        ``at`` is when that was, by `clock`; None: now.
        """
        with self._lock:
            if self._off:
                return 0
            room = len(data) + OVERHEAD
            if self._pending + room > self._limit:
                self._lost[channel] = self._lost.get(channel, 0) + len(data)
                return 0
            self._admit_gap(channel)
            self.append((self.clock() if at is None else at, CHUNK, channel, data))
            if self._storer == _ASLEEP:
                self._wake()
            self.alert = bool(self._lost)
            return room

    def settle(self, room: int, *, bulk: bool) -> None:
        """Account for the room that noted entries take: their bytes and `OVERHEAD` for each.

        The bytes have been passed on. If they came in ``bulk`` and the queue is filling up, this gives way.
        """
        with self._lock:
            self._pending += room
            if self._pending <= self._pressure:
                return
            if self._storer == _NAPPING:
                self._wake()
            if self._pending > self._limit:
                self.alert = True
            crowded = self._pending > self._limit // 2
        if crowded and bulk:
            self._give_way()

    def mark(self, kind: str, channel: int | None, body: "dict[str, Any]", at: int | None = None) -> None:
        """Note a record other than a chunk, now or ``at``; these are few and small, and find room in a full queue.

        But for a rewrite, which may be as large as what passes: one that finds the queue full is lost.
        """
        with self._lock:
            if self._off:
                return
            if kind == REWRITE:
                if self._pending > self._limit:
                    self._lose(channel, room_of(body))
                    return
                self._pending += room_of(body) + OVERHEAD
            if channel is not None:
                self._admit_gap(channel)
            self.append((self.clock() if at is None else at, kind, channel, body))
            if self._storer == _ASLEEP:
                self._wake()

    def discard(self) -> None:
        """Record nothing, now and later."""
        with self._lock:
            self._off = self.alert = True
            self._pending, self._lost, self._unkept = 0, {}, 0
            self._queue.clear()

    def close(self) -> None:
        """Take no more; what is queued is still to be stored."""
        with self._lock:
            for channel in list(self._lost):
                self._admit_gap(channel)
            self._off = self.alert = self._closing = True
            self._wake()

    def take(self) -> "tuple[list[Entry], bool]":
        """Return all that is queued, oldest first, and whether it is the last."""
        with self._lock:
            last = self._closing
        queue = self._queue
        count = len(queue)  # what is appended from here on stays for the next time
        batch = queue[:count]
        del queue[:count]
        return batch, last

    def release(self, size: int, entries: int) -> None:
        """Give back the room of so many chunks of ``size`` bytes in all, which have been stored or given up."""
        with self._lock:
            self._pending -= size + entries * OVERHEAD
            if self._pending < self._pressure:
                self._courtesy = COURTESY

    def waiting(self) -> int:
        """Return how many bytes are still to be stored, or never will be, since the queue was full."""
        with self._lock:
            return max(0, self._pending) + self._unkept

    def sleep(self, *, deep: bool) -> None:
        """Wait for the end of a nap, or for pressure. With ``deep`` much longer: until something is noted."""
        with self._lock:
            if self._closing:
                return
            self._storer = _ASLEEP if deep else _NAPPING
            self.alert = self.alert or deep
        self._bell.acquire(timeout=IDLE if deep else NAP)
        self._storer = _AWAKE

    def _give_way(self) -> None:
        """Let the storing thread catch up, within the courtesy that is left."""
        since = time.monotonic()
        while self._courtesy > 0 and self._pending > self._limit // 2:
            time.sleep(0.001)
            now = time.monotonic()
            self._courtesy -= now - since
            since = now

    def _admit_gap(self, channel: int) -> None:
        """Queue the gap record of what was lost on ``channel``, if anything was."""
        lost = self._lost.pop(channel, 0)
        if lost:
            self.append((self.clock(), "gap", channel, {"bytes": lost, "why": "queue"}))

    def _lose(self, channel: int | None, size: int) -> None:
        """Admit that a rewrite is lost."""
        if not self._unkept:
            self.append((self.clock(), "comment", channel, {"text": UNKEPT, "by": "mcpsniff"}))
        self._unkept += size

    def _wake(self) -> None:
        """Ring the bell, unless it has been rung already. The lock is held, so nobody else does at the same time."""
        self._storer = _AWAKE
        if self._bell.locked():
            self._bell.release()


def room_of(rewrite: "dict[str, Any]") -> int:
    """Return how many bytes the data of a rewrite takes."""
    data = rewrite["data"]
    return len(data if isinstance(data, str) else data["b64"])
