"""What the two threads of a relayed connection do.

Both directions are blind pumps as long as that will do. What is looked at:

* Did the client send a ``GET``? Then what the upstream says next is the head of the answer (the client has read all
  that came before, or it would not have asked): `EndpointWatch` sees it, up to the first event of a stream.
* Where `Gate` screens requests, the head of each of them, and of each response: only the server can end the screening.
"""

import os
import select
import time
from _thread import start_new_thread

from mcpsniff.proxy.endpoint import HOLD_SECONDS, EndpointWatch
from mcpsniff.proxy.ends import REFUSED, REQUESTS, RESPONSES, Ends
from mcpsniff.proxy.farewell import inject
from mcpsniff.proxy.pump import BROKEN, BULK, EOF, READ_SIZE, RESET, Pump
from mcpsniff.proxy.say import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

    from mcpsniff.proxy.endpoint import Origins
    from mcpsniff.proxy.gate import Gate
    from mcpsniff.proxy.recorder import Recorder

_GET: "Final" = b"GET "
_NOTHING: "Final" = b""


class Carrier:
    """Carries what passes between the two sockets of ``ends``, recorded as ``channel`` (requests) and the next one.

    ``gate`` screens requests if there is one. ``null`` is an open ``/dev/null``. ``greet`` is given the first bytes
    that the server says, and does not raise.
    """

    def __init__(
        self,
        ends: Ends,
        channel: int,
        *,
        recorder: "Recorder",
        origins: "Origins",
        null: int,
        gate: "Gate | None",
        greet: "Callable[[bytes], object]",
    ) -> None:
        self.is_waiting = False
        """True while nothing has come back since the client said something."""
        self._ends = ends
        self._greet = greet
        self._is_greeted = False
        self._first_channel = channel
        self._recorder = recorder
        self._origins = origins
        self._null = null
        self._gate = gate
        self._pumps: list[Pump | None] = [None, None]
        self._passed = [0, 0]
        """Bytes that went through the pumps before these."""
        self._beginning = _NOTHING
        """What a request began with, if that was too little to know its method."""
        self._asked = False
        """A GET has been passed on, and nothing that the upstream said has been looked at since."""
        self._answer = _NOTHING
        """The first bytes of the response to it."""

    @property
    def progress(self) -> int:
        """How many bytes have been passed on, both ways."""
        return sum(self._passed) + sum([pump.passed for pump in self._pumps if pump is not None])

    def run(self) -> None:
        """Carry both directions to their ends, the requests in this thread. Nothing is raised."""
        try:
            start_new_thread(self._carry, (RESPONSES, self._responses))
        except RuntimeError as error:
            say(f"a connection is refused: {error}")
            self._ends.break_off(REFUSED)
            self._ends.end(RESPONSES, RESET)
            self._ends.leave()
        self._carry(REQUESTS, self._requests)

    def _carry(self, direction: int, carry: "Callable[[], str]") -> None:
        """Carry one direction to its end, and pass that on."""
        try:
            self._ends.end(direction, carry())
            self._ends.outlast(direction)
        except Exception as error:  # noqa: BLE001 - such as no memory: an end like others, and no traceback
            say(f"a connection was lost: {error!r}")
            self._ends.break_off(REFUSED)
            self._ends.end(direction, RESET)
        finally:
            self._ends.leave()

    def _requests(self) -> str:
        """Carry requests; blindly if they need not be screened."""
        outcome = None if self._gate is None else self._screened(self._gate)
        return self._pump(REQUESTS, self._read_request) if outcome is None else outcome

    def _screened(self, gate: "Gate") -> str | None:
        """Carry requests that may pass, and answer the first one that must not; None: the rest need not be screened."""
        ends, channel, clock = self._ends, self._first_channel, self._recorder.clock
        source, sink = ends.sources[REQUESTS].fileno(), ends.sinks[REQUESTS].fileno()
        while True:
            try:
                data = os.read(source, READ_SIZE)
            except OSError:
                return RESET
            if not data:
                return EOF
            room = self._recorder.note(channel, data)
            allowed = gate.feed(clock(), data)
            for body in gate.take_rewrites():
                self._recorder.mark("rewrite", channel, {**body, "by": "mcpsniff"})
            self._asked = self._asked or gate.has_get
            self.is_waiting = True
            if not self._write(sink, allowed):
                return BROKEN
            self._passed[REQUESTS] += len(data)
            self._recorder.settle(room, bulk=len(data) >= BULK)
            if gate.refusal is not None:
                self._refuse(gate)
                return EOF
            if gate.is_over:
                return None

    def _refuse(self, gate: "Gate") -> None:
        """Answer a request in the server's place."""
        ends, channel = self._ends, self._first_channel + RESPONSES
        assert gate.refusal is not None
        if not ends.take_over(at_once=not gate.has_passed):
            ends.break_off(REFUSED)
            return
        answer = gate.refusal.to(gate.refused)
        inject(self._recorder, channel, self._passed[RESPONSES], answer)
        ends.say_last(answer)

    def _responses(self) -> str:
        """Carry responses, and look at the beginning of those to a GET."""
        while True:
            outcome = self._pump(RESPONSES, self._read_response)
            first, self._answer = self._answer, _NOTHING
            if not first:
                return outcome
            ended = self._watched(first)
            if ended is not None:
                return ended

    def _watched(self, data: bytes) -> str | None:
        """Carry a response that begins with ``data`` until it need not be looked at any more, or how it ended."""
        recorder, channel, clock = self._recorder, self._first_channel + RESPONSES, self._recorder.clock
        source, sink = self._ends.sources[RESPONSES].fileno(), self._ends.sinks[RESPONSES].fileno()
        watch = EndpointWatch(channel, self._passed[RESPONSES], self._origins)
        until = 0.0
        while True:
            room = recorder.note(channel, data)
            self._hear(data)
            was_holding = watch.is_holding
            allowed = watch.feed(clock(), data)
            for body in watch.take_rewrites():
                recorder.mark("rewrite", channel, {**body, "by": "mcpsniff"})
            self.is_waiting = False
            if allowed and not self._write(sink, allowed):
                return BROKEN
            self._passed[RESPONSES] += len(data)
            recorder.settle(room, bulk=len(data) >= BULK)
            if watch.is_over:
                return None
            if watch.is_holding and not was_holding:
                until = time.monotonic() + HOLD_SECONDS
            if watch.is_holding and not _readable(source, until):
                return None if self._write(sink, watch.release()) else BROKEN
            try:
                data = os.read(source, READ_SIZE)
                outcome = EOF
            except OSError:
                data, outcome = _NOTHING, RESET
            if not data:
                return outcome if self._write(sink, watch.release()) else BROKEN

    def _pump(self, direction: int, read: "Callable[[int, int], bytes]") -> str:
        """Carry one direction until it ends, or until ``read`` says that it does."""
        source = os.dup(self._ends.sources[direction].fileno())
        sink = self._ends.sinks[direction].fileno()
        channel = self._first_channel + direction
        pump = Pump(source, sink, channel, self._recorder, self._null, keep_sink=True, read=read)
        self._pumps[direction] = pump
        try:
            return pump.run()
        finally:
            os.close(source)
            self._pumps[direction] = None
            self._passed[direction] += pump.passed

    def _read_request(self, source: int, size: int) -> bytes:
        """Read, and notice a GET."""
        data = os.read(source, size)
        if data[:4] == _GET:
            self._asked = True
        elif len(data) < len(_GET) or self._beginning:
            beginning = self._beginning + data[: len(_GET)]
            self._asked = self._asked or beginning.startswith(_GET)
            self._beginning = beginning if len(beginning) < len(_GET) and _GET.startswith(beginning) else _NOTHING
        self.is_waiting = True
        return data

    def _read_response(self, source: int, size: int) -> bytes:
        """Read; end the pump at the beginning of the response to a GET, which is then in `_answer`."""
        data = os.read(source, size)
        if not self._is_greeted:
            self._is_greeted = True
            self._greet(data)
        if self._asked:
            self._asked = False
            self._answer = data
            return _NOTHING
        self.is_waiting = False
        self._hear(data)
        return data

    def _hear(self, data: bytes) -> None:
        """Let the gate know what the server says: it may agree to another protocol."""
        if self._gate is not None:
            self._gate.hear(self._recorder.clock(), data)

    @staticmethod
    def _write(sink: int, data: bytes) -> bool:
        """Write all of ``data``; return False if the receiver is gone."""
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(sink, rest) :]
        except OSError:
            return False
        return True


def _readable(source: int, until: float) -> bool:
    """Wait until there is something to read, or until a time by the monotonic clock."""
    poll = select.poll()
    poll.register(source, select.POLLIN)
    return bool(poll.poll(max(0.0, until - time.monotonic()) * 1000))
