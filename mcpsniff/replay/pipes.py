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
from threading import Condition, Thread
from typing import Final

CHUNK: Final = 64 * 1024
QUEUED: Final = 1024 * 1024
"""Bytes that may wait to be written before a sender has to wait, too."""
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
        self._waiting: list[asyncio.Future[None]] = []
        self._thread: Thread | None = None
        self.is_broken = False

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
        if self._thread is None:
            self._thread = Thread(target=self._run, daemon=True)
            self._thread.start()
        while self._queued > QUEUED and not self.is_broken:
            await self._progress()

    async def flush(self) -> None:
        """Return when everything is written, or nobody reads any more."""
        while self._queued and not self.is_broken:
            await self._progress()

    async def _progress(self) -> None:
        """Wait until something of the queue was written."""
        waiter = self._loop.create_future()
        self._waiting.append(waiter)
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
            self._break()
            raise ConnectionError from error

    def _run(self) -> None:
        """The thread: write what is queued."""
        while True:
            with self._changed:
                while not self._queue:
                    self._changed.wait()
                data = self._queue.popleft()
            try:
                write_all(self._descriptor, data)
            except OSError:
                self._tell(self._break)
                return
            self._tell(self._written, len(data))

    def _tell(self, what: Callable[..., None], *values: int) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            self._loop.call_soon_threadsafe(what, *values)

    def _written(self, size: int) -> None:
        self._queued -= size
        self._wake()

    def _break(self) -> None:
        if not self.is_broken:
            self.is_broken = True
            self._wake()
            self._on_broken()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of it, however long that takes. Raises OSError."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(descriptor, view) :]
        except BlockingIOError:  # whoever shares it with us has made it non-blocking
            select.select([], [descriptor], [])


def read_lines(descriptor: int, on_line: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
    """Begin to read: call ``on_line`` in the event loop for each line, without its LF; ``on_end`` after the last."""
    loop = asyncio.get_running_loop()

    def run() -> None:
        lines = Lines()
        while True:
            try:
                data = _read(descriptor)
                found = lines.feed(data) if data else lines.rest()
                if found:
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
