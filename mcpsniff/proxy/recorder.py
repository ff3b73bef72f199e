"""The wire's side of recording: a queue bounded in bytes that never holds the wire up.

A pump calls `note` (see `Recorder.tap`) before it writes bytes on: a time stamp, and an append without a lock. That
must come first, so that a reply is never recorded before its request. The account of the queue can wait: it is settled
after the write, and not for every message.

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

    `tap`, `settle`, `mark` and `discard` may be called from any thread; they do not raise, nor does what `tap` returns,
    and but for `settle` they do not wait. The other methods are for the one thread that stores.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self.started_ns = time.time_ns()
        """The wall clock at t = 0, in nanoseconds since the epoch."""
        self.zero_ns = time.monotonic_ns()
        """The monotonic clock at that moment."""
        self._clock = time.monotonic_ns
        self._limit = limit
        self._pressure = min(PRESSURE, limit // 2)
        self._queue: list[Entry] = []
        self._attention = False
        """A tap must look closer: the queue is or was full, the storing thread sleeps, or nothing is recorded."""
        self._lock = allocate_lock()  # guards what follows
        self._pending = 0
        self._courtesy = COURTESY
        self._lost: dict[int, int] = {}
        self._off = False
        self._closing = False
        self._storer = _AWAKE
        self._bell = allocate_lock()  # released: rung
        self._bell.acquire()

    def tap(self, channel: int) -> "Callable[[bytes], bool]":
        """Return the function that notes that bytes arrived on ``channel`` now.

        It says whether they found room, and are to be settled, soon.
        """
        append, clock = self._queue.append, self._clock

        def note(data: bytes) -> bool:
            if self._attention:
                return self._note_with_care(channel, data)
            append((clock(), "chunk", channel, data))
            return True

        return note

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
                self._attention = True
            crowded = self._pending > self._limit // 2
        if crowded and bulk:
            self._give_way()

    def mark(self, kind: str, channel: int | None, body: "dict[str, Any]") -> None:
        """Note a record other than a chunk; these are few and small, and find room in a full queue."""
        with self._lock:
            if self._off:
                return
            if channel is not None:
                self._admit_gap(channel)
            self._queue.append((self._clock(), kind, channel, body))
            if self._storer == _ASLEEP:
                self._wake()

    def discard(self) -> None:
        """Record nothing, now and later."""
        with self._lock:
            self._off = self._attention = True
            self._pending, self._lost = 0, {}
            self._queue.clear()

    def close(self) -> None:
        """Take no more; what is queued is still to be stored."""
        with self._lock:
            for channel in list(self._lost):
                self._admit_gap(channel)
            self._off = self._attention = self._closing = True
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
        """Return how many bytes are still to be stored."""
        with self._lock:
            return max(0, self._pending)

    def sleep(self, *, deep: bool) -> None:
        """Wait for the end of a nap, or for pressure. With ``deep`` much longer: until something is noted."""
        with self._lock:
            if self._closing:
                return
            self._storer = _ASLEEP if deep else _NAPPING
            self._attention = self._attention or deep
        self._bell.acquire(timeout=IDLE if deep else NAP)
        self._storer = _AWAKE

    def _note_with_care(self, channel: int, data: bytes) -> bool:
        with self._lock:
            if self._off:
                return False
            if self._pending + len(data) + OVERHEAD > self._limit:
                self._lost[channel] = self._lost.get(channel, 0) + len(data)
                return False
            self._admit_gap(channel)
            self._queue.append((self._clock(), "chunk", channel, data))
            if self._storer == _ASLEEP:
                self._wake()
            self._attention = bool(self._lost)
            return True

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
            self._queue.append((self._clock(), "gap", channel, {"bytes": lost, "why": "queue"}))

    def _wake(self) -> None:
        """Ring the bell, unless it has been rung already. The lock is held, so nobody else does at the same time."""
        self._storer = _AWAKE
        if self._bell.locked():
            self._bell.release()
