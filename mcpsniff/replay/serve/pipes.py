"""Read lines from one descriptor and write to others without ever blocking the event loop.

The standard streams are shared with whoever started us, so they are not made non-blocking; threads wait for them. What
is short and fits into the pipe at once is written without the detour.
"""

import asyncio
import os
import select
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from threading import Condition, Event, Semaphore, Thread
from typing import Final

CHUNK: Final = 64 * 1024
QUEUED: Final = 1024 * 1024
"""Bytes that may wait to be written before a sender has to wait, too."""
MOST_QUEUED: Final = 64 * 1024 * 1024
"""Bytes that may wait until no more is read from a client that does not read either."""
MOST_MESSAGES: Final = 10_000
"""As MOST_QUEUED, for messages."""
READ_AHEAD: Final = 2
"""Blocks that are read and not yet heard."""
LONGEST_LINE: Final = 256 * 1024 * 1024
"""Bytes of a line that are read; what is longer is given as its beginning, which is no JSON."""


class Sink:
    """Writes to a descriptor, in order. To be used from one event loop."""

    def __init__(self, descriptor: int, on_broken: Callable[[], None]) -> None:
        """``on_broken`` is called in the event loop when nobody reads any more."""
        self._descriptor = descriptor
        self._on_broken = on_broken
        self._loop = asyncio.get_running_loop()
        self._queue: deque[bytes] = deque()
        self._queued = 0
        self._changed = Condition()
        self._waiting: dict[int, list[asyncio.Future[None]]] = {}
        """Who waits for the queue to be no longer than so many bytes."""
        self._thread: Thread | None = None
        self.is_broken = False
        self.error: OSError | None = None
        """Why nothing more can be written, if it is not that nobody reads any more."""
        self.has_room = Event()
        """Not set while so much waits to be written that nothing more should be asked for."""
        self.has_room.set()

    async def write(self, data: bytes) -> None:
        """Write, or put it in the queue, if that is not too long. Raises ConnectionError when nobody reads any more."""
        if self.is_broken:
            raise ConnectionError
        if not self._queued and len(data) <= select.PIPE_BUF and self._is_ready():
            self._write_now(data)
            return
        with self._changed:
            self._queue.append(data)
            self._queued += len(data)
            self._changed.notify()
        if self._queued > MOST_QUEUED or len(self._queue) > MOST_MESSAGES:
            self.has_room.clear()
        if self._thread is None:
            self._thread = Thread(target=self._run, daemon=True)
            self._thread.start()
        await self._until_at_most(QUEUED)

    async def flush(self) -> None:
        """Return when everything is written, or nobody reads any more."""
        await self._until_at_most(0)

    async def _until_at_most(self, size: int) -> None:
        """Wait until no more than so many bytes are to be written."""
        while self._queued > size and not self.is_broken:
            waiter = self._loop.create_future()
            self._waiting.setdefault(size, []).append(waiter)
            await waiter

    def _is_ready(self) -> bool:
        """True if as many bytes as pipes take as a whole can be written without waiting (POSIX, PIPE_BUF)."""
        poll = select.poll()
        poll.register(self._descriptor, select.POLLOUT)
        return any(event & select.POLLOUT for _, event in poll.poll(0))

    def _write_now(self, data: bytes) -> None:
        try:
            write_all(self._descriptor, data)
        except OSError as error:
            self._break(error)
            raise ConnectionError from error

    def _run(self) -> None:
        """The thread: write what is queued."""
        while True:
            with self._changed:
                while not self._queue:
                    self._changed.wait()
                data = self._take()
            try:
                write_all(self._descriptor, data)
            except OSError as error:
                self._tell(self._break, error)
                return
            self._tell(self._written, len(data))

    def _take(self) -> bytes:
        """What is to be written at once: as much as a pipe holds, but no message in part."""
        parts, size = [self._queue.popleft()], 0
        while self._queue and (size := size + len(parts[-1])) < CHUNK:
            parts.append(self._queue.popleft())
        return b"".join(parts)

    def _tell(self, what: Callable[..., None], *values: int | OSError) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            self._loop.call_soon_threadsafe(what, *values)

    def _written(self, size: int) -> None:
        with self._changed:
            self._queued -= size
        self._wake()

    def _break(self, error: OSError) -> None:
        if not self.is_broken:
            self.error = None if isinstance(error, ConnectionError) else error
            self.is_broken = True
            self._wake()
            self._on_broken()

    def _wake(self) -> None:
        for size in [size for size in self._waiting if self._queued <= size or self.is_broken]:
            for waiter in self._waiting.pop(size):
                if not waiter.done():
                    waiter.set_result(None)
        if self._queued <= QUEUED or self.is_broken:
            self.has_room.set()


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of it, however long that takes. Raises OSError."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(descriptor, view) :]
        except BlockingIOError:  # whoever shares it with us has made it non-blocking
            select.select([], [descriptor], [])


def read_lines(descriptor: int, on_line: Callable[[bytes], None], on_end: Callable[[], None], may_read: Event) -> None:
    """Begin to read: call ``on_line`` in the event loop for each line, without its LF; ``on_end`` after the last.

    While ``may_read`` is not set nothing is read.
    """
    loop = asyncio.get_running_loop()
    ahead = Semaphore(READ_AHEAD)

    def run() -> None:
        lines = Lines()
        while True:
            may_read.wait()
            ahead.acquire()
            try:
                data = _read(descriptor)
                found = lines.feed(data) if data else lines.rest()
                loop.call_soon_threadsafe(give, found)
                if not data:
                    loop.call_soon_threadsafe(on_end)
                    return
            except OSError:
                loop.call_soon_threadsafe(on_end)
                return
            except RuntimeError:  # the loop is closed
                return

    def give(found: list[bytes]) -> None:
        for line in found:
            on_line(line)
        ahead.release()

    Thread(target=run, daemon=True).start()


def _read(descriptor: int) -> bytes:
    while True:
        try:
            return os.read(descriptor, CHUNK)
        except BlockingIOError:
            select.select([descriptor], [], [])


class Lines:
    """Cuts what is read into lines."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._held = 0

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that end in ``data``."""
        *whole, rest = data.split(b"\n")
        found = [self._take(line) for line in whole]
        self._hold(rest)
        return found

    def rest(self) -> list[bytes]:
        """The last line, if it has no end."""
        return [self._take(b"")] if self._parts else []

    def _take(self, end: bytes) -> bytes:
        self._hold(end)
        line = b"".join(self._parts)
        self._parts, self._held = [], 0
        return line

    def _hold(self, part: bytes) -> None:
        part = part[: max(0, LONGEST_LINE - self._held)]
        if part:
            self._parts.append(part)
            self._held += len(part)
