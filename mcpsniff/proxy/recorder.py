"""The wire's side of recording: a queue bounded in bytes that never holds the wire up.

`Recorder.note` takes a time stamp and appends to a list, under a lock held for less than a microsecond. It never
waits for the disk: when the queue is full the bytes are counted as lost, and the next record of that channel is a
gap that says how many. The other side, which empties the queue into a file, is `mcpsniff.proxy.storing`.
"""

import _thread
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    type Entry = tuple[int, str, int | None, Any]

LIMIT: "Final" = 8 << 20
"""Bytes that may wait for the disk."""
NAP: "Final" = 0.02
"""Seconds between two looks at the queue while there is traffic: well under the 50 ms promised to followers."""
PRESSURE: "Final" = 256 << 10
"""Bytes in the queue that end a nap early."""
OVERHEAD: "Final" = 256
"""What a queued entry costs beyond its bytes; without it one-byte reads would fill memory within the bound."""

_AWAKE, _NAPPING, _ASLEEP = range(3)


class Recorder:
    """Collects what passes on all channels of one run, in one order of time.

    `note`, `mark` and `discard` may be called from any thread; they neither raise nor wait. The other methods are for
    the one thread that stores.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self.started_ns = time.time_ns()
        """The wall clock at t = 0, in nanoseconds since the epoch."""
        self._zero = time.monotonic_ns()
        self._limit = limit
        self._lock = _thread.allocate_lock()  # guards everything below
        self._queue: list[Entry] = []
        self._pending = 0
        self._lost: dict[int, int] = {}
        self._off = False
        self._closing = False
        self._storer = _AWAKE
        self._bell = _thread.allocate_lock()  # released: rung
        self._bell.acquire()

    def note(self, channel: int, data: bytes) -> None:
        """Note that ``data`` arrived on ``channel`` now."""
        size = len(data)
        with self._lock:
            if self._off:
                return
            pending = self._pending + size + OVERHEAD
            if pending > self._limit:
                self._lost[channel] = self._lost.get(channel, 0) + size
                return
            t = (time.monotonic_ns() - self._zero) // 1000
            if self._lost:
                self._admit_gap(t, channel)
            self._queue.append((t, "chunk", channel, data))
            self._pending = pending
            # Awake it looks by itself; only a sleeper, or a dozer under pressure, is worth a system call.
            if self._storer == _ASLEEP or (self._storer == _NAPPING and pending > PRESSURE):
                self._wake()

    def mark(self, kind: str, channel: int | None, body: "dict[str, Any]") -> None:
        """Note a record other than a chunk; these are few and small, and find room in a full queue."""
        with self._lock:
            if self._off:
                return
            t = (time.monotonic_ns() - self._zero) // 1000
            if channel is not None:
                self._admit_gap(t, channel)
            self._queue.append((t, kind, channel, body))
            if self._storer == _ASLEEP:
                self._wake()

    def discard(self) -> None:
        """Record nothing, now and later."""
        with self._lock:
            self._off = True
            self._queue, self._pending, self._lost = [], 0, {}

    def close(self) -> None:
        """Take no more; what is queued is still to be stored."""
        with self._lock:
            now = (time.monotonic_ns() - self._zero) // 1000
            for channel in list(self._lost):
                self._admit_gap(now, channel)
            self._off = self._closing = True
            self._wake()

    def take(self) -> "tuple[list[Entry], bool]":
        """Return all that is queued, oldest first, and whether it is the last."""
        with self._lock:
            batch, self._queue = self._queue, []
            return batch, self._closing

    def release(self, entries: "list[Entry]") -> None:
        """Give back the room of ``entries``, which have been stored or given up."""
        cost = sum([len(entry[3]) + OVERHEAD for entry in entries if entry[1] == "chunk"])
        with self._lock:
            self._pending -= cost

    def waiting(self) -> int:
        """Return how many bytes are still to be stored."""
        with self._lock:
            return self._pending

    def sleep(self, *, deep: bool) -> None:
        """Wait for the end of a nap, or for pressure. With ``deep``: until something is noted."""
        with self._lock:
            if self._closing or (deep and self._queue):
                return
            self._storer = _ASLEEP if deep else _NAPPING
        self._bell.acquire(timeout=-1 if deep else NAP)
        self._storer = _AWAKE

    def _admit_gap(self, t: int, channel: int) -> None:
        """Queue the gap record of what was lost on ``channel``, if anything was."""
        lost = self._lost.pop(channel, 0)
        if lost:
            self._queue.append((t, "gap", channel, {"bytes": lost, "why": "queue"}))

    def _wake(self) -> None:
        """Ring the bell, unless it has been rung already. The lock is held, so nobody else does at the same time."""
        self._storer = _AWAKE
        if self._bell.locked():
            self._bell.release()
