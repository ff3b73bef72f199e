"""The two sockets of a relayed connection, and how an end on one side reaches the other.

What happened is passed on as it happened. The end of a stream is a half-close: the other direction may go on. A reset
is a reset, so that no client takes for whole what its server broke off (RFC 9112, 8). Each end is recorded before it is
passed on, so that what it causes comes after it.

A socket is not closed under a thread that waits at it: that would neither wake the thread nor end the connection. To
wake it the socket is shut down for reading, which the peer does not see. The thread that leaves last closes both.
"""

import select
import socket
import struct
import time
from _thread import allocate_lock
from contextlib import suppress

from mcpsniff.proxy.pump import BROKEN, EOF, RESET

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

    from mcpsniff.proxy.recorder import Recorder

REQUESTS, RESPONSES = range(2)
"""The two directions."""

CLIENT_CLOSED: "Final" = "the client closed its end"
SERVER_CLOSED: "Final" = "the server closed its end"
REFUSED: "Final" = "mcpsniff refused the request"
STOPPED: "Final" = "mcpsniff was stopped"

PATIENCE: "Final" = 1.0
"""Seconds that a client may take to receive what it was told before the reset that follows, which could undo it; and
for which bytes are taken from it that nobody wants, since a close with such bytes unread is a reset, too."""
LOOK: "Final" = 0.5
"""Seconds between two looks at whether the connection was broken off meanwhile."""
WAKING: "Final" = 0.05
"""Seconds after which a thread that was to end is taken to be stuck in a write."""
_RESET_ON_CLOSE: "Final" = struct.pack("ii", 1, 0)
"""SO_LINGER with no time: the close is a reset."""


class Ends:
    """Both sockets, with a thread for each direction: `end` and then `leave` are to be called in each of them."""

    def __init__(
        self,
        client: socket.socket,
        upstream: socket.socket,
        first_channel: int,
        recorder: "Recorder",
        done: "Callable[[], object]",
    ) -> None:
        """Take the sockets over; ``done`` is called when they are closed."""
        self.sources = (client, upstream)
        """By direction, where its bytes come from."""
        self.sinks = (upstream, client)
        """By direction, where they go."""
        self._first_channel = first_channel
        self._recorder = recorder
        self._done = done
        self._lock = allocate_lock()  # guards what follows
        self._threads = 2
        self._outcomes: list[str | None] = [None, None]
        self._broken_off = ""
        self._is_ours = False
        self._delivers = False

    def renew(self, upstream: socket.socket) -> None:
        """Take another connection to the upstream in the place of one that the upstream has ended."""
        client, ended = self.sources
        with self._lock:
            self.sources = (client, upstream)
            self.sinks = (upstream, client)
            is_over = bool(self._broken_off)
        ended.close()
        if is_over:
            shut(upstream, socket.SHUT_RDWR)

    def end(self, direction: int, outcome: str) -> None:
        """Record and pass on the end of a direction; ``outcome`` is that of its pump."""
        with self._lock:
            earlier, why = self._outcomes[1 - direction], self._broken_off
            if outcome == EOF and not why and self._is_reset(direction):
                outcome = RESET
            self._record(direction, outcome, why)
        if why:
            return
        if outcome == EOF:
            if not (self._is_ours and direction == RESPONSES):
                shut(self.sinks[direction], socket.SHUT_WR)
        elif outcome == RESET:
            self._break_off(direction, CLIENT_CLOSED if direction == REQUESTS else SERVER_CLOSED)
        elif direction == RESPONSES:
            self._break_off(direction, CLIENT_CLOSED)
        elif earlier is not None:
            self._break_off(direction, SERVER_CLOSED)

    def outlast(self, direction: int) -> None:
        """After `end`: see to it that a reset, and an answer to what is not wanted any more, still get through."""
        outcome = self._outcomes[direction]
        if outcome == EOF and not self._broken_off:
            self._await_reset(direction)
        elif outcome == BROKEN and direction == REQUESTS:
            self._discard(lambda: self._outcomes[RESPONSES] is not None)

    def leave(self) -> None:
        """The calling thread has done with both sockets."""
        with self._lock:
            self._threads -= 1
            if self._threads:
                return
        if self._broken_off == SERVER_CLOSED or self._delivers:
            deliver(self.sources[REQUESTS])
        if self._delivers:
            deliver(self.sources[RESPONSES])
        for each in self.sources:
            each.close()
        self._done()

    @property
    def is_broken_off(self) -> bool:
        """True once both directions have been ended before their time, by whomever."""
        return bool(self._broken_off)

    def take_over(self, *, at_once: bool) -> bool:
        """Let the upstream go, whatever the client sends; return True if the client's side is free for a word of ours.

        It is if all that the server was asked has been answered, unless ``at_once``: then it was asked nothing.
        """
        self._is_ours = True
        upstream = self.sinks[REQUESTS]
        shut(upstream, socket.SHUT_RDWR if at_once else socket.SHUT_WR)
        until = time.monotonic() + PATIENCE
        while self._outcomes[RESPONSES] is None and time.monotonic() < until:
            time.sleep(0.005)
        return self._outcomes[RESPONSES] == EOF

    def say_last(self, answer: bytes) -> None:
        """Tell the client ``answer``, after `take_over`, and let it read that."""
        client = self.sources[REQUESTS]
        try:
            client.sendall(answer)
        except OSError:
            return
        shut(client, socket.SHUT_WR)
        self._discard(lambda: True)

    def close_client(self) -> None:
        """Let the client know that nothing more comes, whatever the upstream does, and let it read."""
        shut(self.sources[RESPONSES], socket.SHUT_RD)
        self._discard(lambda: self._outcomes[RESPONSES] is not None)

    def break_off(self, why: str, *, delivers: bool = False) -> None:
        """End both directions, from any thread; closing will be a reset for both sides.

        ``delivers``: they get what was sent to them before.
        """
        self._delivers = delivers
        self._break_off(None, why)

    def stop(self) -> None:
        """End both directions, from any thread, since mcpsniff ends."""
        with self._lock:
            self._broken_off = self._broken_off or STOPPED
            for direction in (REQUESTS, RESPONSES):
                if self._outcomes[direction] is None:
                    self._record(direction, EOF, STOPPED)
        for each in self.sources:
            shut(each, socket.SHUT_RDWR)

    def _break_off(self, direction: int | None, why: str) -> None:
        with self._lock:
            if self._broken_off:
                return
            self._broken_off = why
        for each in self.sources:
            reset_on_close(each)
            shut(each, socket.SHUT_RD)
        if direction != RESPONSES:
            return
        until = time.monotonic() + WAKING
        while self._outcomes[REQUESTS] is None and time.monotonic() < until:
            time.sleep(0.005)
        if self._outcomes[REQUESTS] is None:  # it writes to a server that does not read
            shut(self.sinks[REQUESTS], socket.SHUT_RDWR)

    def _is_reset(self, direction: int) -> bool:
        """Say whether what seems to be an end is a reset: the system tells of it once, and may have told the writer."""
        other = self._outcomes[1 - direction]
        if self._is_ours or other not in {None, BROKEN}:  # we have ended that socket, too, and it is no more connected
            return False
        if other == BROKEN:
            return True
        try:
            self.sources[direction].getpeername()
        except OSError:
            return True
        return False

    def _record(self, direction: int, outcome: str, why: str) -> None:
        """Record the end of a channel, once; the lock is held."""
        if self._outcomes[direction] is not None:
            return
        self._outcomes[direction] = outcome
        if direction == REQUESTS and self._is_ours:
            why = REFUSED
        sender, receiver = (CLIENT_CLOSED, SERVER_CLOSED) if direction == REQUESTS else (SERVER_CLOSED, CLIENT_CLOSED)
        if outcome == RESET or why == sender:
            body = {"how": "reset"}
        elif why or outcome != EOF:
            body = {"how": "aborted", "error": why or receiver}
        else:
            body = {"how": "eof"}
        self._recorder.mark("close", self._first_channel + direction, body)

    def _await_reset(self, direction: int) -> None:
        """The peer has said all it has to say; see whether it resets the connection while the other side lasts."""
        poll = select.poll()
        for each in self.sources:
            poll.register(each, 0)
        while not poll.poll(LOOK * 1000):
            if self._broken_off:  # by us, which nobody tells us
                return
        if self.sources[direction].getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self._break_off(direction, CLIENT_CLOSED if direction == REQUESTS else SERVER_CLOSED)

    def _discard(self, is_over: "Callable[[], bool]") -> None:
        """Take what the client still sends: until its end, or `PATIENCE` after ``is_over`` holds."""
        client = self.sources[REQUESTS]
        poll = select.poll()
        poll.register(client, select.POLLIN)
        until: float | None = None
        try:
            while until is None or time.monotonic() < until:
                if until is None and is_over():
                    until = time.monotonic() + PATIENCE
                if poll.poll(50) and not client.recv(1 << 16):
                    return
        except OSError:
            return


def reset_on_close(side: socket.socket) -> None:
    """Let the close of a socket be a reset."""
    with suppress(OSError):  # reset by its peer
        side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)


def shut(side: socket.socket, how: int) -> None:
    """Shut down a socket, whatever became of it."""
    with suppress(OSError):
        side.shutdown(how)


def deliver(side: socket.socket) -> None:
    """Wait until the system of a peer has all that was sent to it; for at most `PATIENCE`."""
    try:
        import fcntl
        import termios

        until = time.monotonic() + PATIENCE
        unsent = bytearray(4)
        while time.monotonic() < until:
            fcntl.ioctl(side.fileno(), termios.TIOCOUTQ, unsent)
            if not any(unsent):
                return
            time.sleep(0.005)
    except OSError:  # gone, or a system that does not tell
        return


def spelled(address: "tuple[object, ...]") -> str:
    """Return a socket's address as text."""
    host = str(address[0])
    return f"[{host}]:{address[1]}" if ":" in host else f"{host}:{address[1]}"
