"""Messages that are kept back until another one has overtaken them.

In a stream, or on a pipe, the next message must be read to overtake: what is kept leaves after it, or is given to the
lane when its time is up (`Lane.late`), or at the end of the stream (`Editor.flush`). What has a body of HTTP for
itself is waited for in its own thread.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Event, Lock, Timer
from typing import TYPE_CHECKING, Final

from mcpsniff.hooks.waiting import LONG

if TYPE_CHECKING:
    from mcpsniff.hooks.editor import Lane, Outgoing

SHORTLY: Final = 0.02
"""Seconds that what overtakes on another connection gets to be gone."""
TICK: Final = 0.05

type Way = tuple[int, str]
"""A conversation and a direction."""


@dataclass(slots=True, eq=False)
class Kept:
    """A message that has not left yet."""

    way: Way
    lane: "Lane"
    due: float
    """When it leaves even if nothing has overtaken it, as `time.monotonic` counts."""
    out: "Outgoing | None" = None
    """None: its thread waits with it."""
    overtaken: Event = field(default_factory=Event)
    gone: Event = field(default_factory=Event)
    """Set once its lane has let it leave."""
    timer: Timer | None = None


class Keeper:
    """All that is kept. May be used by many threads at once."""

    def __init__(self) -> None:
        self.is_used = False
        """True once something was kept."""
        self._kept: list[Kept] = []
        self._leaving: list[Kept] = []
        """What has been given to its lane, which has not returned yet."""
        self._lock = Lock()

    def keep(self, out: "Outgoing", way: Way, lane: "Lane", seconds: float) -> None:
        """Keep ``out`` until the next message of its lane, or for so many seconds."""
        kept = Kept(way, lane, time.monotonic() + seconds, out)
        with self._lock:
            self.is_used = True
            self._kept.append(kept)
            self._start(kept, seconds)

    def wait(self, way: Way, lane: "Lane", seconds: float, by: str, why: str) -> None:
        """Return when another message of this conversation and direction has passed, or after so many seconds."""
        kept = Kept(way, lane, time.monotonic() + seconds)
        with self._lock:
            self.is_used = True
            self._kept.append(kept)
        with lane.holding():
            if seconds > LONG:
                lane.held(by, why)
            while not lane.is_gone and (left := kept.due - time.monotonic()) > 0:
                if kept.overtaken.wait(min(left, TICK)):
                    time.sleep(SHORTLY)
                    break
        self._take(kept)

    def of(self, lane: "Lane") -> list[Kept]:
        """What is kept of a lane."""
        if not self._kept:
            return []
        with self._lock:
            return [kept for kept in self._kept if kept.lane is lane and kept.out is not None]

    def passed(self, way: Way, earlier: Sequence[Kept]) -> "list[Outgoing]":
        """Another message passes: what leaves after it, of ``earlier``; what other lanes have kept leaves soon."""
        leaving = self._all(earlier)
        if self._kept:
            with self._lock:
                for kept in self._kept:
                    if kept.way == way and not kept.overtaken.is_set():
                        kept.overtaken.set()
                        if kept.timer is not None:
                            kept.timer.cancel()
                            self._start(kept, SHORTLY)
        return leaving

    def flush(self, lane: "Lane") -> "list[Outgoing]":
        """The lane's stream ends: what leaves before, after what was given to the lane. See `Editor.flush`."""
        ending = self.of(lane)
        for kept in ending:
            while lane.transport == "http" and not lane.is_gone and (left := kept.due - time.monotonic()) > 0:
                if kept not in self._kept or kept.overtaken.wait(min(left, TICK)):
                    break
        leaving = self._all(ending)
        with self._lock:
            given = [kept for kept in self._leaving if kept.lane is lane]
        for kept in given:
            kept.gone.wait()
        return leaving

    def _start(self, kept: Kept, seconds: float) -> None:
        kept.timer = Timer(seconds, self._late, (kept,))
        kept.timer.daemon = True
        kept.timer.start()

    def _late(self, kept: Kept) -> None:
        if kept.out is None or not self._take(kept, self._leaving):
            return
        try:
            kept.lane.late(kept.out)
        finally:
            kept.gone.set()
            with self._lock:
                self._leaving.remove(kept)

    def _all(self, several: Sequence[Kept]) -> "list[Outgoing]":
        return [kept.out for kept in several if kept.out is not None and self._take(kept)]

    def _take(self, kept: Kept, to: list[Kept] | None = None) -> bool:
        """True if nobody else has taken it."""
        with self._lock:
            if kept not in self._kept:
                return False
            self._kept.remove(kept)
            if to is not None:
                to.append(kept)
        if kept.timer is not None:
            kept.timer.cancel()
        return True
