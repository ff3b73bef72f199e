"""The disk's side of recording: one thread that moves what a `Recorder` holds into a capture.

It sleeps until something is noted, then looks every 20 ms while there is traffic, so that a burst of small messages
costs one wake-up rather than one each. It encodes and appends in slices, so that memory stays near the queue's bound.
When the disk refuses it says so once, counts what is lost, and tries again at growing intervals.
"""

import _thread
import time

from mcpsniff.courtesy import let_others_run
from mcpsniff.proxy.places import Places
from mcpsniff.proxy.recorder import REWRITE, room_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final, Protocol

    from mcpsniff.proxy.mask import Masker
    from mcpsniff.proxy.recorder import Entry, Recorder

    class Writer(Protocol):
        """What this needs of `mcpsniff.capture.writer.CaptureWriter`."""

        failure: Exception | None

        def append(self, records: "list[Entry]") -> int:
            """Append records; return how many are stored."""


SLICE: "Final" = 16
"""Entries handed to the writer at once: between two of them the pumps get their turn, and memory is given back."""
QUIET: "Final" = 25
"""Empty looks in a row (half a second), after which the thread sleeps until it is woken."""
SWEEP: "Final" = 4096
"""Marks that a refusing disk may leave before they are looked through for what can be forgotten."""
ASIDE: "Final" = 1 << 20
"""Bytes of rewrites that are kept while the disk refuses; what they replaced is in gaps then, too."""
FIRST_PAUSE: "Final" = 1.0
"""Seconds from a refusal of the disk to the next try; each further refusal doubles it."""
LONGEST_PAUSE: "Final" = 60.0


class Storing:
    """Stores what ``recorder`` collects, until it is closed.

    ``open_writer`` is called in the storing thread and may load what it needs there. ``complain`` is given one
    sentence, once, if the capture cannot be written. ``clock`` tells seconds. ``open_masker``, called like
    ``open_writer``, gives what keeps secrets out of the capture.
    """

    def __init__(
        self,
        recorder: "Recorder",
        open_writer: "Callable[[], Writer]",
        complain: "Callable[[str], object]",
        clock: "Callable[[], float]" = time.monotonic,
        open_masker: "Callable[[], Masker] | None" = None,
    ) -> None:
        self._recorder = recorder
        self._open_writer = open_writer
        self._open_masker = open_masker
        self._masker: Masker | None = None
        self._complain = complain
        self._clock = clock
        self._writer: Writer | None = None
        self._lost = 0
        self._backlog: list[Entry] = []
        """What a refusing disk left: marks, and one gap for what passed on a channel between two of its marks."""
        self._open_gaps: dict[int | None, int] = {}
        self._aside = 0
        """Bytes of rewrites that a refusing disk has left."""
        self._places = Places()
        self._sweep_at = SWEEP
        self._complained = False
        self._pause = 0.0
        self._retry_at = 0.0
        self._begun, self._finished = _thread.allocate_lock(), _thread.allocate_lock()

    def start(self) -> None:
        """Start the thread."""
        self._begun.acquire()
        self._finished.acquire()
        _thread.start_new_thread(self.run, ())

    def wait_for_beginning(self, timeout: float) -> None:
        """Wait at most ``timeout`` seconds until the capture has its first line, or never will."""
        self._begun.acquire(timeout=timeout)

    def finish(self, timeout: float) -> int:
        """Wait at most ``timeout`` seconds for the rest to be stored; return how many bytes never were."""
        self._recorder.close()
        self._finished.acquire(timeout=timeout)
        return self._lost + self._recorder.waiting()

    def run(self) -> None:
        """Store until the recorder is closed. Whatever goes wrong here stays here."""
        try:
            self._loop()
        except Exception as error:  # noqa: BLE001 - recording may fail, the session may not
            self._lost += self._recorder.waiting()
            self._recorder.discard()
            self._suspended(f"internal error: {error!r}")
        finally:
            self._has_begun()
            self._finished.release()

    def _loop(self) -> None:
        if self._open_masker is not None:
            self._masker = self._open_masker()
        self._writer = self._open_writer()
        self._append([])  # the first line: whoever looks finds a capture, although nothing was said yet
        self._has_begun()
        looks = 0
        while True:
            batch, last = self._recorder.take()
            looks = 0 if batch else looks + 1
            if last:
                self._retry_at = 0.0  # one more try, now or never
            self._store(batch)
            if last:
                if self._masker is not None:
                    self._append(self._masker.finish())
                if self._backlog:
                    self._append([])
                return
            self._recorder.sleep(deep=looks >= QUIET)

    def _has_begun(self) -> None:
        if self._begun.locked():
            self._begun.release()

    def _store(self, batch: "list[Entry]") -> None:
        """Store all entries of ``batch``, a slice at a time, and give back their room as soon as it is free."""
        zero = self._recorder.zero_ns
        while batch:
            entries = [((ns - zero) // 1000, kind, channel, body) for ns, kind, channel, body in batch[:SLICE]]
            del batch[:SLICE]
            self._lost += sum([body["bytes"] for _, kind, _, body in entries if kind == "gap"])
            sizes = [len(body) for _, kind, _, body in entries if kind == "chunk"]
            sizes += [room_of(body) for _, kind, _, body in entries if kind == REWRITE]
            self._append(entries if self._masker is None else self._masker(entries))
            self._recorder.release(sum(sizes), len(sizes))
            let_others_run()

    def _append(self, entries: "list[Entry]") -> None:
        """Append what the disk left before, then ``entries``; keep account of what it takes."""
        if self._clock() < self._retry_at or self._writer is None:
            self._set_aside(entries)
            return
        entries = self._backlog + entries if self._backlog else entries
        self._backlog, self._open_gaps, self._aside = [], {}, 0
        stored = self._writer.append(self._places.placed(entries))
        self._places.stored(entries[:stored])
        if stored == len(entries) and self._writer.failure is None:
            self._pause = 0.0
            return
        self._set_aside(entries[stored:])
        self._pause = min(self._pause * 2 or FIRST_PAUSE, LONGEST_PAUSE)
        self._retry_at = self._clock() + self._pause
        failure = self._writer.failure
        self._suspended((isinstance(failure, OSError) and failure.strerror) or str(failure))

    def _set_aside(self, entries: "list[Entry]") -> None:
        """Keep what must not be missing in the capture, and of the bytes their number only."""
        if len(self._backlog) >= self._sweep_at:
            self._sweep()
        for t, kind, channel, body in entries:
            if kind == REWRITE:
                self._aside += room_of(body)
                if self._aside > ASIDE:
                    self._lost += room_of(body)
                    continue
            if kind not in {"chunk", "gap"}:
                self._backlog.append((t, kind, channel, body))
                self._open_gaps.pop(channel, None)
                continue
            size = len(body) if kind == "chunk" else body["bytes"]
            if kind == "chunk":
                self._lost += size
            at = self._open_gaps.get(channel)
            if at is None:
                self._open_gaps[channel] = len(self._backlog)
                self._backlog.append((t, "gap", channel, {"bytes": size, "why": "disk"}))
            else:
                self._backlog[at][3]["bytes"] += size

    def _sweep(self) -> None:
        """Forget channels that both began and ended while the disk refused: a relay may have them for days."""
        closed = {channel for _, kind, channel, _ in self._backlog if kind == "close"}
        passed = {channel for _, kind, channel, _ in self._backlog if kind == "open" and channel in closed}
        self._backlog = [entry for entry in self._backlog if entry[2] not in passed]
        self._open_gaps.clear()
        self._sweep_at = max(SWEEP, 2 * len(self._backlog))

    def _suspended(self, why: str) -> None:
        if not self._complained:
            self._complained = True
            self._complain(f"recording suspended: {why}; the session goes on")
