"""What the two threads of a connection do in edit mode: `Requests` and `Responses`, and what they share."""

import socket
import time
from _thread import start_new_thread
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from threading import Condition
from typing import TYPE_CHECKING, Final

from mcpsniff.hooks.editor import Outgoing
from mcpsniff.proxy.ends import REFUSED, REQUESTS, RESPONSES, Ends
from mcpsniff.proxy.pump import BULK, EOF, READ_SIZE, RESET
from mcpsniff.proxy.relay.pipes_intake import Intake
from mcpsniff.proxy.relay.web.held import Errand, Lane
from mcpsniff.proxy.relay.web.inject import inject
from mcpsniff.proxy.relay.web.output import Output
from mcpsniff.proxy.relay.web.stream import BrokenOffError
from mcpsniff.proxy.say import say

if TYPE_CHECKING:
    from mcpsniff.proxy.gate import Gate
    from mcpsniff.proxy.listener import Listener
    from mcpsniff.proxy.relay.web.hub import Hub, Session

LOOK: Final = 0.1
"""Seconds between two looks at whether anybody is still there, while nothing else happens."""
GRACE: Final = 10.0
"""Seconds for which a client that has ended its side is taken to read on: whether it has closed both is not seen."""


class WebCarrier:
    """Carries what passes between the two sockets of ``ends``; see `mcpsniff.proxy.carrier.Carrier`."""

    def __init__(self, listener: "Listener", hub: "Hub", ends: Ends, channel: int, gate: "Gate | None") -> None:
        from mcpsniff.proxy.relay.web.requests import Requests
        from mcpsniff.proxy.relay.web.responses import Responses

        self.listener = listener
        self.hub = hub
        self.ends = ends
        self.number = channel // 2
        self.recorder = listener.recorder
        self.gate = gate
        self.door = listener.guard(ends.sources[REQUESTS])
        """Who is let in where ``gate`` does not see to it; None: all."""
        self.is_waiting = False
        """True while nothing has come back since the client said something."""
        self.is_over = False
        """True once the client, or mcpsniff, has ended the connection."""
        self.is_blind = False
        """True once what passes is no HTTP: all of it passes as it comes."""
        self.is_busy = False
        """True while a request is held: the upstream may let an idle connection go meanwhile."""
        self.errands: deque[Errand] = deque()
        """Requests that have left and whose response has not, in order."""
        self.changed = Condition()
        """Told of all changes of these."""
        self._is_lost = False
        self._left_at = 0.0
        """When it was first seen that the client had ended its side."""
        self.outputs = [Output(self.recorder, channel + way, ends.sinks[way]) for way in (REQUESTS, RESPONSES)]
        self.intakes: list[Intake] = []
        try:
            for way in (REQUESTS, RESPONSES):
                self.intakes.append(self._intake(way, channel + way))
        except OSError:  # no descriptors left
            for intake in self.intakes:
                intake.close()
            raise
        self.requests = Requests(self)
        self.responses = Responses(self)

    @property
    def progress(self) -> int:
        """How many bytes have been passed on, both ways."""
        return sum([output.sent for output in self.outputs])

    def run(self) -> None:
        """Carry both directions to their ends, the requests in this thread. Nothing is raised."""
        try:
            start_new_thread(self._carry, (RESPONSES, self.responses.run))
        except RuntimeError as error:
            say(f"a connection is refused: {error}")
            self.ends.break_off(REFUSED)
            self.ends.end(RESPONSES, RESET)
            self._leave(RESPONSES)
        self._carry(REQUESTS, self.requests.run)

    def lane(self, way: int, late: Callable[[Outgoing], object]) -> Lane:
        """A lane of one direction."""

        def holding() -> AbstractContextManager[object]:
            return self.intakes[way].holding()

        return Lane(holding, lambda: self.is_gone, late, self.outputs[way].begin)

    @property
    def is_gone(self) -> bool:
        """True if nobody is there any more who wants to hear or to be heard.

        A client that has merely ended its side is there, for a while.
        """
        ended = self.intakes[REQUESTS].ended
        if self.ends.is_broken_off or ended == RESET:
            return True
        if ended is None:
            return False
        now = time.monotonic()
        self._left_at = self._left_at or now
        return now - self._left_at > GRACE or _is_reset(self.ends.sources[REQUESTS])

    @property
    def has_left(self) -> bool:
        """True if the client has said all that it wants to say, or the connection is over."""
        return self.is_over or self.intakes[REQUESTS].ended is not None

    def now(self) -> int:
        """Microseconds since the capture began."""
        return (self.recorder.clock() - self.recorder.zero_ns) // 1000

    def tell(self) -> None:
        """Something has changed."""
        with self.changed:
            self.changed.notify_all()

    def turn(self) -> bool:
        """Wait until all requests that have left are answered; False if the connection is over before."""
        with self.changed:
            while self.errands and not self.is_over:
                self.changed.wait(LOOK)
        return not self.is_over

    def close(self) -> None:
        """The client has its last response, which is ours: the connection ends as if the server had ended it."""
        self.is_over = True
        self.tell()
        self.ends.close_client()

    def give_back(self, session: "Session", out: Outgoing) -> None:
        """Send a message of a hook to the server."""
        inject(self.hub, session, out, waits=False)

    # -- an upstream that lets go while a request is held --------------------------------------------------------------

    def is_renewed(self) -> bool:
        """The upstream has ended the connection. If that is idle, and a request is held, wait for another one."""
        with self.changed:
            if self.errands or not self.is_busy or self.is_over or self.is_blind:
                return False
            self._is_lost = True
            while self._is_lost and not self.is_over and self.is_busy:
                self.changed.wait(LOOK)
            return not self._is_lost and not self.is_over

    def have_upstream(self) -> None:
        """See to it that there is an upstream, before a request leaves. Raises what `Dialler.dial` does."""
        if not self._is_lost:
            return
        upstream, _ = self.listener.dialler.dial()
        self.ends.renew(upstream)
        with self.changed:
            self.outputs[REQUESTS].sink = upstream
            self.intakes[RESPONSES].close()
            self.intakes[RESPONSES] = self._intake(RESPONSES, self.outputs[RESPONSES].channel)
            self._is_lost = False
            self.changed.notify_all()

    # -- threads -------------------------------------------------------------------------------------------------------

    def _intake(self, way: int, channel: int) -> Intake:
        source: socket.socket = self.ends.sources[way]
        recorder = self.recorder

        def read() -> tuple[int, bytes]:
            data = source.recv(READ_SIZE)
            at = recorder.clock()
            if data:
                recorder.settle(recorder.note(channel, data, at), bulk=len(data) >= BULK)
            return at, data

        return Intake(source.fileno(), read, is_terminal=False)

    def _carry(self, direction: int, carry: Callable[[], str]) -> None:
        """Carry one direction to its end, and pass that on."""
        try:
            try:
                outcome = carry()
            except BrokenOffError as broken:
                self.is_over = True
                self.tell()
                self.ends.break_off(f"broken off by {broken.by}", delivers=True)
                outcome = EOF  # what is recorded says by whom
            if direction == REQUESTS:
                self.is_over = True
            self.tell()
            self.ends.end(direction, outcome)
            self.ends.outlast(direction)
        except Exception as error:  # noqa: BLE001 - such as no memory: an end like others, and no traceback
            say(f"a connection was lost: {error!r}")
            self.is_over = True
            self.ends.break_off(REFUSED)
            self.ends.end(direction, RESET)
        finally:
            self._leave(direction)

    def _leave(self, direction: int) -> None:
        self.intakes[direction].close()
        if direction == REQUESTS:
            self.hub.forget(self.number)
        self.ends.leave()


def _is_reset(side: socket.socket) -> bool:
    """True if the peer of a socket has told that nobody reads there any more."""
    try:
        side.getpeername()
    except OSError:
        return True
    return False
