"""What arrives on a pipe, noted when it does, also while the thread that is to carry it on is held.

A hold would make all that comes later look late. So while a hook waits on purpose another thread reads on and notes,
up to a bound; then the pipe fills, and the sender feels what it would feel without us.
"""

import os
import select
from _thread import allocate_lock, start_new_thread
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from mcpsniff.proxy.pump import EOF, RESET

AHEAD: Final = 1 << 20
"""Bytes that are read while a message is held."""


class Intake:
    """Reads one descriptor for one thread. `wake` and `finish` may be called by others."""

    def __init__(self, source: int, read: Callable[[], tuple[int, bytes]], *, is_terminal: bool) -> None:
        """``read`` reads once, which blocks, notes, and returns when and what; nothing at the end. It raises OSError.

        What is typed at a terminal is not read ahead: it may be meant for somebody else. OSError: no descriptors left.
        """
        self.ended: str | None = None
        """EOF or RESET once there is nothing more to be read."""
        self.received = 0
        """Bytes read so far."""
        self.is_to_finish = False
        """What has been read is all that is wanted."""
        self._read = read
        self._reads_ahead = not is_terminal
        self._ahead: deque[tuple[int, bytes]] = deque()
        self._waiting = 0
        self._holds = 0
        self._stopped = allocate_lock()  # free: nobody reads ahead
        self._woken, self._wake = os.pipe()
        for end in (self._woken, self._wake):
            os.set_blocking(end, False)
        self._poll = select.poll()
        for descriptor in (source, self._woken):
            self._poll.register(descriptor, select.POLLIN)

    def take(self, *, is_wakeable: bool) -> tuple[int, bytes] | None:
        """What has arrived, and when (`Recorder.clock`); None at the end (see `ended`).

        If it is to be wakeable, which costs a little, None as soon as somebody calls `wake`, too.
        """
        if self._ahead:
            t, data = self._ahead.popleft()
            self._waiting -= len(data)
            return t, data
        if self.ended is not None or self.is_to_finish or (is_wakeable and self._was_woken()):
            return None
        return self._once()

    @property
    def has_more(self) -> bool:
        """True if something was read ahead that nobody has taken yet."""
        return bool(self._ahead)

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Read on meanwhile, in another thread. For the thread that calls `take`."""
        self._holds += 1
        is_reading = self._holds == 1 and self._begin()
        try:
            yield
        finally:
            self._holds -= 1
            if is_reading:
                self.wake()
                with self._stopped:
                    pass

    def wake(self) -> None:
        """Let a `take` that waits and is wakeable return."""
        with suppress(OSError):
            os.write(self._wake, b"\0")

    def finish(self) -> None:
        """What has been read is all."""
        self.is_to_finish = True
        self.wake()

    def close(self) -> None:
        """Give the descriptors back; the thread that reads is over."""
        os.close(self._woken)
        os.close(self._wake)

    def _was_woken(self) -> bool:
        """Wait until there is something to read; return True if somebody wants us not to."""
        for descriptor, _ in self._poll.poll():
            if descriptor == self._woken:
                with suppress(OSError):
                    os.read(self._woken, 64)
                return True
        return False

    def _once(self) -> tuple[int, bytes] | None:
        try:
            t, data = self._read()
        except OSError:
            self.ended = RESET
            return None
        if not data:
            self.ended = EOF
            return None
        self.received += len(data)
        return t, data

    def _begin(self) -> bool:
        """Start to read ahead, if that can be done."""
        if not self._reads_ahead or self.ended is not None or self._waiting >= AHEAD:
            return False
        self._stopped.acquire()
        try:
            start_new_thread(self._read_ahead, ())
        except RuntimeError:  # no more threads: what comes is read after the hold
            self._stopped.release()
            return False
        return True

    def _read_ahead(self) -> None:
        try:
            while self._holds and self._waiting < AHEAD and not self.is_to_finish:
                if self._was_woken():  # perhaps for the sake of an earlier hold
                    continue
                arrived = self._once()
                if arrived is None:
                    return
                self._waiting += len(arrived[1])
                self._ahead.append(arrived)
        finally:
            self._stopped.release()
