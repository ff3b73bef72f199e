"""A transparent tap: one thread per direction that reads, notes, and writes on.

How a byte travels, and why this is all of it:

1. `os.read` returns as soon as *anything* has arrived, at most `READ_SIZE` bytes. No line, no message, no timeout: the
   pump does not know what it carries, so nothing it carries can upset it.
2. The bytes are noted **before** they are written on. A reply is caused by its request, so it cannot be read before
   the request was written, so its note comes after the request's note. What else there is to do for the record is
   settled after the write, and not with every message.
3. `os.write` blocks when the receiver is slow, and so does this thread. That is the whole flow control: nobody
   reads on, the kernel's pipe fills, and the sender feels what it would feel without a pump. Nothing piles up here.
   The other direction has a thread of its own and is not held up.
4. The end of the stream travels like a byte: when the source ends, the sink is ended at once.

A descriptor that is done with is pointed at ``/dev/null`` rather than closed. The other end sees the same (it is a
close of the pipe), but the *number* stays taken: a thread that is about to use it cannot hit a file that was opened
under it in the meantime.
"""

import os
import select
import sys
import time

from mcpsniff.proxy.recorder import CHUNK, OVERHEAD
from mcpsniff.proxy.say import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

    from mcpsniff.proxy.recorder import Recorder

SETTLE_AT: "Final" = 32 << 10
"""Bytes after which the account with the recorder is settled: with every small message it would cost more than that."""
BULK: "Final" = 32 << 10
"""Bytes in one read that are no longer a message of a conversation, and may be held up a little in a burst."""
NOTHING: "Final" = b""
SHORTAGE: "Final" = 0.1
"""Seconds from one try to get memory to the next."""

READ_SIZE: "Final" = 65536
"""Bytes per read: what a pipe holds. Larger buffers are mapped anew for each read, which costs more than it saves."""

PIPE_BUF: "Final" = select.PIPE_BUF
"""Bytes that can be written without waiting to a pipe or socket that has room at all (POSIX, write and poll)."""

BUSY: "Final" = "busy"
"""Not an end: there is more to carry than can be done without waiting."""
EOF: "Final" = "eof"
"""The source's other end was closed."""
RESET: "Final" = "reset"
"""The source could not be read to its end."""
BROKEN: "Final" = "broken"
"""The sink's other end was closed: nobody will read what is still to come."""
CUT: "Final" = "cut"
"""We ended it ourselves."""
SEVERED: "Final" = "severed"
"""We ended it ourselves because an edit hook wanted that (`mcpsniff.proxy.relay`)."""


class Pump:
    """Carries bytes from descriptor ``source`` to descriptor ``sink``, until one of the two ends.

    The recorder is told of each piece under the number ``channel``. ``null`` is an open ``/dev/null``.
    """

    __slots__ = (
        "_channel",
        "_cut",
        "_due",
        "_held",
        "_keep_sink",
        "_null",
        "_read",
        "_recorder",
        "_room",
        "_roomy",
        "_sink",
        "_tell",
        "ended_ns",
        "outcome",
        "passed",
        "severed_by",
        "source",
    )

    def __init__(
        self,
        source: int,
        sink: int,
        channel: int,
        recorder: "Recorder",
        null: int,
        *,
        keep_sink: bool = False,
        read: "Callable[[int, int], bytes] | None" = None,
        tell: "Callable[[int], object] | None" = None,
    ) -> None:
        """Take the two descriptors over; with ``keep_sink`` the sink outlives the stream.

        ``read`` takes the place of `os.read`. ``tell`` is called with the channel's number when the stream has ended.
        """
        self.passed = 0
        """Bytes written so far."""
        self.outcome: str | None = None
        """None while it runs, then EOF, RESET, BROKEN, CUT or SEVERED."""
        self.severed_by = ""
        """Who wanted it to be SEVERED, in words."""
        self.ended_ns = 0
        """When that was, by the recorder's clock; whatever the end caused on the other side is later."""
        self.source = source
        self._due = 0
        """Room of what was noted and has not been settled with the recorder."""
        self._roomy = False
        self._sink = sink
        self._room = select.poll()
        self._room.register(sink, select.POLLOUT)
        self._channel = channel
        self._recorder = recorder
        self._null = null
        self._keep_sink = keep_sink
        self._read = read
        self._tell = tell
        self._held = NOTHING
        self._cut = False

    def run(self) -> str:
        """Carry everything; then end both descriptors and return the outcome."""
        outcome = RESET
        try:
            outcome = self.flow() or RESET
        finally:
            self.end(outcome)
        return self.outcome or outcome

    def flow(self, rest: "Callable[[], bool] | None" = None) -> str | None:
        """Read, note, write on, again and again; return how it ended.

        What `step` left is passed on first. Whenever there is a lull, ``rest`` is asked whether to go on: if it says
        True, this returns None.
        """
        carry, take = self._carry, self._take
        try:
            data = self._held or take()
            while data:
                if not carry(data):
                    return BROKEN
                lull = rest is not None and len(data) <= PIPE_BUF and self._has_room()
                if lull or self._due >= SETTLE_AT:
                    self._settle(bulk=len(data) >= BULK)
                if lull and rest is not None and rest():
                    return None  # from here on this is another thread's
                data = take()
        except OSError:
            return RESET
        return CUT if self._cut else EOF

    def step(self) -> str | None:
        """Carry what one read returns, if writing it on certainly does not block; the source is ready to be read.

        Returns None if that is done, BUSY if the bytes have been read and `flow` is to pass them on, else how the
        stream ended.
        """
        try:
            data = self._held or self._take()
        except OSError:
            return RESET
        if not data:
            return CUT if self._cut else EOF
        if len(data) > PIPE_BUF or not (self._roomy or self._has_room()):
            self._held = data
            return BUSY
        if not self._carry(data):
            return BROKEN
        self._has_room()
        if self._due >= SETTLE_AT:
            self._settle(bulk=False)
        return None

    def end(self, outcome: str) -> None:
        """End both descriptors; ``outcome`` is how the stream ended."""
        self._settle(bulk=False)
        # Known here before the receiver can know it: what the receiver does about it comes after.
        self.ended_ns = self._recorder.clock()
        self.outcome = CUT if self._cut else outcome
        # The sink first: the end of the stream is news for the receiver.
        if not self._keep_sink:
            retire(self._sink, self._null)
        retire(self.source, self._null)
        if self._tell is not None:
            self._tell(self._channel)

    def cut(self) -> None:
        """End this direction from another thread: both sides see a closed pipe.

        A call that is blocked at this moment still finishes with the descriptor it began with.
        """
        self._cut = True
        retire(self._sink, self._null)
        retire(self.source, self._null)

    def finish(self) -> None:
        """End this direction from another thread, when all that arrived has been passed on."""
        self.cut()

    def pending(self) -> int:
        """Return how many bytes are on their way, in our hands or waiting in the source. Asked from another thread.

        It may miss bytes that change hands at this very moment, but never counts any twice, nor what `passed` has.
        """
        return len(self._held) + _readable_bytes(self.source)

    def _has_room(self) -> bool:
        """Return, and remember, whether PIPE_BUF bytes can be written without waiting (POSIX, poll).

        That stays true until the next write: nobody but us fills the sink.
        """
        self._roomy = bool(self._room.poll(0))
        return self._roomy

    def _take(self) -> bytes:
        """Return what has arrived; nothing at the end of the stream. Raises OSError."""
        read = self._read or os.read
        while True:
            try:
                data = read(self.source, READ_SIZE)
            except BlockingIOError:  # whoever shares the descriptor may have made it non-blocking
                _await(self.source, select.POLLIN)
            except MemoryError:
                self._forget()
            else:
                return NOTHING if self._cut else data

    def _carry(self, data: bytes) -> bool:
        """Note ``data`` and write it on; return False if the receiver is gone."""
        self._held = data
        recorder = self._recorder
        try:
            if recorder.alert:
                self._due += recorder.note(self._channel, data)
            else:
                recorder.append((recorder.clock(), CHUNK, self._channel, data))
                self._due += len(data) + OVERHEAD
        except MemoryError:
            self._forget()
        try:
            try:
                written = os.write(self._sink, data)
            except BlockingIOError:
                written = 0
            if written != len(data):
                self._write_rest(data, written)
        except OSError:
            return False
        self._held = NOTHING
        self.passed += len(data)
        return True

    def _settle(self, *, bulk: bool) -> None:
        """Account for what was noted since the last time."""
        due, self._due = self._due, 0
        self._recorder.settle(due, bulk=bulk)

    def _forget(self) -> None:
        """Give what memory the record takes to the session, and let others give back theirs."""
        self._recorder.discard()
        say("out of memory: recording ended; the session goes on")
        time.sleep(SHORTAGE)

    def _write_rest(self, data: bytes, start: int) -> None:
        """Write what one call did not: the receiver's end is non-blocking, or was nearly full when it was cut."""
        rest = memoryview(data)[start:]
        while rest:
            try:
                rest = rest[os.write(self._sink, rest) :]
            except BlockingIOError:
                _await(self._sink, select.POLLOUT)


def retire(descriptor: int, null: int) -> None:
    """Close what ``descriptor`` stands for but keep its number taken, by ``null``, an open ``/dev/null``."""
    os.dup2(null, descriptor, inheritable=False)


def _await(descriptor: int, event: int) -> None:
    """Wait until ``descriptor`` is ready for ``event``, or broken: the next call says which."""
    poll = select.poll()
    poll.register(descriptor, event)
    poll.poll()


def _readable_bytes(descriptor: int) -> int:
    """Return how many bytes a read would find at once."""
    count = bytearray(4)
    try:
        import fcntl
        import termios

        fcntl.ioctl(descriptor, termios.FIONREAD, count)
    except (OSError, ImportError):  # already retired; or no descriptor is left to load these
        return 0
    return int.from_bytes(count, sys.byteorder)
