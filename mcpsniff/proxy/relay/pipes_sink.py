"""The end of a pipe that whole frames are written to, by its own thread and by that of the other direction."""

import os
import select
import time
from _thread import allocate_lock
from collections.abc import Callable
from typing import Final

STEP: Final = 0.05
"""Seconds between two pieces of what is to go on slowly."""
_GONE: Final = select.POLLERR | select.POLLHUP | select.POLLNVAL


class Sink:
    """Writes to one descriptor. Whoever writes, or ends it, holds ``lock`` for as long as a frame is not whole."""

    def __init__(self, descriptor: int) -> None:
        self.lock = allocate_lock()
        self.is_shut = False
        """Nothing goes on any more: it has ended, or it stalls, or nobody reads."""
        self.is_broken = False
        """Nobody reads on the other side; noticed by a write."""
        self._descriptor = descriptor
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)

    def put(self, data: bytes) -> bool:
        """Write all of ``data``, and wait for a slow receiver; return False if there is none, or none any more."""
        if self.is_shut:
            return not self.is_broken
        try:
            written = self._write(data)
            while written < len(data):
                written += self._write(memoryview(data)[written:])
        except OSError:
            self.is_shut = self.is_broken = True
            return False
        return True

    def _write(self, data: bytes | memoryview) -> int:
        """Write what fits. Raises OSError."""
        try:
            return os.write(self._descriptor, data)
        except BlockingIOError:  # whoever shares the descriptor has made it so
            self._poll.poll()
            return 0

    def put_slowly(self, data: bytes, bytes_per_second: float, is_over: Callable[[], bool]) -> bool:
        """Write ``data`` at that rate, or at once as soon as ``is_over`` says so. Returns as `put` does."""
        began = time.monotonic()
        sent = 0
        while sent < len(data) and not is_over():
            due = min(len(data), int((time.monotonic() - began + STEP) * bytes_per_second))
            if due > sent:
                if not self.put(data[sent:due]):
                    return False
                sent = due
            time.sleep(STEP)
        return self.put(data[sent:])

    def has_room(self, size: int) -> bool:
        """True if so many bytes can be written without waiting (POSIX, write and poll)."""
        return size <= select.PIPE_BUF and bool(self._poll.poll(0))

    def is_gone(self) -> bool:
        """True if nobody reads on the other side. May be asked without the lock."""
        if self.is_broken:
            return True
        poll = select.poll()  # one is not for two threads
        poll.register(self._descriptor, 0)
        return any(events & _GONE for _, events in poll.poll(0))
