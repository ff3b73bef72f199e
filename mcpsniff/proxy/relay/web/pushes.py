"""Messages of others for one event stream, until they can leave on it.

Whoever has something for a stream must not wait for its reader: that may be a client that has stopped to read, and the
one who would wait a request of another connection. So what is pushed waits here, and a thread that lives as long as
there is something writes it.
"""

from _thread import allocate_lock, start_new_thread
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mcpsniff.hooks.editor import Outgoing

ROOM: Final = 4 << 20
"""Bytes that may wait; one message may, whatever its size."""


class Pushes:
    """What waits, in order. All may be called from any thread."""

    def __init__(self, let_out: Callable[[], bool]) -> None:
        """``let_out`` takes what can leave, in a thread of its own, and may block; False if nothing can for now."""
        self._let_out = let_out
        self._waiting: deque[Outgoing] = deque()
        self._size = 0
        self._is_running = self._is_new = self._is_closed = False
        self._lock = allocate_lock()

    def put(self, out: "Outgoing") -> bool:
        """Add a message; False if there is no room for it, or the stream is over."""
        size = _size(out)
        with self._lock:
            if self._is_closed or (self._waiting and self._size + size > ROOM):
                return False
            self._waiting.append(out)
            self._size += size
            self._is_new = True
            starts = not self._is_running
            self._is_running = True
        if starts:
            try:
                start_new_thread(self._run, ())
            except RuntimeError:  # no more threads: it leaves with what the stream itself says next
                self._is_running = False
        return True

    def take(self) -> "Outgoing | None":
        """The next message, which is to leave now; None if there is none."""
        with self._lock:
            if not self._waiting:
                return None
            out = self._waiting.popleft()
            self._size -= _size(out)
            return out

    def close(self) -> "list[Outgoing]":
        """The stream is over: return what has not left."""
        with self._lock:
            self._is_closed = True
            rest = list(self._waiting)
            self._waiting.clear()
            self._size = 0
            return rest

    def _run(self) -> None:
        while True:
            self._is_new = False
            can_leave = False
            with suppress(MemoryError):
                can_leave = self._let_out()
            with self._lock:
                if not self._waiting or not (can_leave or self._is_new):  # the stream sees to what cannot leave yet
                    self._is_running = False
                    return


def _size(out: "Outgoing") -> int:
    return len(out.data) + len(getattr(out.action, "data", b""))
