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

EOF: "Final" = "eof"
"""The source's other end was closed."""
RESET: "Final" = "reset"
"""The source could not be read to its end."""
BROKEN: "Final" = "broken"
"""The sink's other end was closed: nobody will read what is still to come."""
CUT: "Final" = "cut"
"""We ended it ourselves."""


class Pump:
    """Carries bytes from descriptor ``source`` to descriptor ``sink``, until one of the two ends.

    The recorder is told of each piece under the number ``channel``. ``null`` is an open ``/dev/null``.
    """

    __slots__ = (
        "_channel",
        "_cut",
        "_held",
        "_keep_sink",
        "_null",
        "_read",
        "_recorder",
        "_sink",
        "_source",
        "ended_ns",
        "outcome",
        "passed",
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
    ) -> None:
        """Take the two descriptors over; with ``keep_sink`` the sink outlives the stream.

        ``read`` takes the place of `os.read`.
        """
        self.passed = 0
        """Bytes written so far."""
        self.outcome: str | None = None
        """None while it runs, then EOF, RESET, BROKEN or CUT."""
        self.ended_ns = 0
        """When that was, by the recorder's clock; whatever the end caused on the other side is later."""
        self._source = source
        self._sink = sink
        self._channel = channel
        self._recorder = recorder
        self._null = null
        self._keep_sink = keep_sink
        self._read = read
        self._held = NOTHING
        self._cut = False

    def run(self) -> str:
        """Carry everything; then end both descriptors and return the outcome."""
        outcome = RESET
        try:
            outcome = self._flow()
        finally:
            # Known here before the receiver can know it: what the receiver does about it comes after.
            self.ended_ns = self._recorder.clock()
            self.outcome = CUT if self._cut else outcome
            # The sink first: the end of the stream is news for the receiver.
            if not self._keep_sink:
                retire(self._sink, self._null)
            retire(self._source, self._null)
        return self.outcome

    def cut(self) -> None:
        """End this direction from another thread: both sides see a closed pipe.

        A call that is blocked at this moment still finishes with the descriptor it began with.
        """
        self._cut = True
        retire(self._sink, self._null)
        retire(self._source, self._null)

    def pending(self) -> int:
        """Return how many bytes are on their way, in our hands or waiting in the source. Asked from another thread.

        It may miss bytes that change hands at this very moment, but never counts any twice, nor what `passed` has.
        """
        return len(self._held) + _readable_bytes(self._source)

    def _flow(self) -> str:
        """Read, note, write on; settle now and then. Return how it ended."""
        read, write, source, sink = self._read or os.read, os.write, self._source, self._sink
        recorder, channel = self._recorder, self._channel
        append, clock, settle = recorder.append, recorder.clock, recorder.settle
        due = 0
        try:
            while True:
                try:
                    data = read(source, READ_SIZE)
                except BlockingIOError:  # whoever shares the descriptor may have made it non-blocking
                    _await(source, select.POLLIN)
                    continue
                except OSError:
                    return RESET
                except MemoryError:
                    self._forget()
                    continue
                if not data:
                    return EOF
                if self._cut:
                    return CUT
                self._held = data
                try:
                    if recorder.alert:
                        due += recorder.note(channel, data)
                    else:
                        append((clock(), CHUNK, channel, data))
                        due += len(data) + OVERHEAD
                except MemoryError:
                    self._forget()
                try:
                    written = write(sink, data)
                    if written != len(data):
                        self._write_rest(data, written)
                except BlockingIOError:
                    self._write_rest(data, 0)
                except OSError:
                    return BROKEN
                self._held = NOTHING
                self.passed += len(data)
                if due >= SETTLE_AT:
                    settle(due, bulk=len(data) >= BULK)
                    due = 0
        finally:
            settle(due, bulk=False)

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
