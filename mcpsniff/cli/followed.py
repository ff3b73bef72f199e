"""One capture that is followed: from its growing file to what a view shows of it."""

import gc
import os
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Final

from mcpsniff.capture.follower import CaptureLost, Follower
from mcpsniff.capture.reader import part_numbers
from mcpsniff.capture.records import Record
from mcpsniff.capture.store import SUFFIX, part_path, split_part, writer_state
from mcpsniff.courtesy import let_others_run
from mcpsniff.errors import CaptureError
from mcpsniff.transcript.live.foot import Going
from mcpsniff.transcript.live.session import Facts, LiveSession
from mcpsniff.transcript.live.view import View

TICK: Final = 0.25
"""Seconds between two looks at the clock and at whether the capture is still being written."""

COLLECT: Final = 10_000
"""Records after which the garbage is collected. Sessions that ended are some of it, in cycles, and left to itself
Python collects those only when they have come to a quarter of all that is alive."""

type Begin = Callable[[Facts, str], tuple[LiveSession, View]]
"""Makes session and view of a capture, given its label, once its first line is there."""


class Followed:
    """Follows the capture at ``path``. Raises CaptureError when there is none."""

    def __init__(self, path: str, begin: Begin, clock: Callable[[], float] = time.monotonic) -> None:
        self.path = path
        self.is_over = False
        """True once the session has ended, or will never be written on."""
        self._begin = begin
        self._clock = clock
        self._follower = Follower(path)
        self._session: LiveSession | None = None
        self._view: View | None = None
        self._origin = 0.0
        self._next_tick = 0.0
        self._unwritten = 0
        self._uncollected = 0

    def step(self) -> bool:
        """Show what is new; return whether there was anything.

        Raises CaptureLost when the file vanished or changed, after which it is over; CaptureError when it is no
        capture, or nothing was ever written to it.
        """
        try:
            records = self._follower.poll()
        except CaptureLost:
            self._end([], lost=True)
            raise
        if self._session is None and self._follower.header is not None:
            self._start()
        if self._session is not None and self._view is not None:
            for record in records:
                self._view.feed(self._session.feed(record))
                let_others_run()
        if records:
            self._unwritten = 0
            self._collect(len(records))
            return True
        if self._view is not None:
            self._view.rest()
        if self._follower.ended:
            self._end(self._follower.finish())
        elif self._clock() >= self._next_tick:
            self._tick()
        return False

    def _collect(self, records: int) -> None:
        self._uncollected += records
        if self._uncollected >= COLLECT:
            self._uncollected = 0
            gc.collect()

    def waiting(self) -> Iterable[Going]:
        """The requests and the streams that are open."""
        return () if self._view is None else self._view.waiting(self._now_us())

    def finish(self) -> None:
        """Nothing more will be recorded: show what is left, and the end. What was lost is not told any more."""
        try:
            while self.step():
                pass
        except CaptureError:
            return
        if not self.is_over:
            self._end(self._follower.finish())

    def close(self) -> None:
        """Stop following."""
        self._follower.close()

    def _start(self) -> None:
        header = self._follower.header
        assert header is not None
        facts = Facts(header, self.path, self._follower.joined_late, self._follower.damage)
        label = header.label or os.path.basename(self.path).removesuffix(SUFFIX)
        self._session, self._view = self._begin(facts, label)
        began = datetime.fromisoformat(header.started)
        began = began if began.tzinfo else began.replace(tzinfo=UTC)
        self._origin = self._clock() - (datetime.now(UTC) - began).total_seconds()

    def _now_us(self) -> int:
        """How long the session has lasted, in microseconds: by the clock, and not less than its latest event tells."""
        assert self._session is not None
        return max(int((self._clock() - self._origin) * 1_000_000), self._session.now_us)

    def _tick(self) -> None:
        """Everything was read: let time pass, unless the recorder is gone. Two looks, for it may begin a new part."""
        self._next_tick = self._clock() + TICK
        first, number = split_part(self._follower.path)
        latest = part_path(first, max([number, *part_numbers(first)]))
        if writer_state(latest) is False and writer_state(self._follower.path) is False:
            self._unwritten += 1
            if self._unwritten > 1:
                self._end(self._follower.finish())
            return
        self._unwritten = 0
        if self._session is not None and self._view is not None:
            self._view.feed(self._session.advance(self._now_us()))

    def _end(self, records: Iterable[Record], *, lost: bool = False) -> None:
        self.is_over = True
        self._follower.close()
        if self._session is None or self._view is None:
            return
        for record in records:
            self._view.feed(self._session.feed(record))
        self._view.end(self._session.finish(), lost=lost)
