"""Both directions of a conversation in one thread, for as long as they are calm.

A thread that sleeps until a byte comes must be woken for it, and on the way of a small message that waking costs more
than all else. In a conversation that goes to and fro, one thread can do with half of it: it passes a request on and is
still awake when the answer comes, if that comes at once (`ATTENTION`); if not, it sleeps like any other.

One thread for two directions must never wait in one of them, or it would hold up the other. So it writes only what
fits for certain (`Pump.step`). A direction that brings more, or whose receiver is slow, is *busy*: it gets a thread of
its own, a plain `Pump`, until it is calm again. There are two threads in all and no more are ever needed:

    calm   calm      the first thread looks after both, the second one rests
    busy   calm      the second thread carries the busy direction, the first one looks after the other
    busy   busy      each carries one; the second one stays with its own until the first one is back
"""

import os
import select
import stat
import time
from _thread import allocate_lock

from mcpsniff.courtesy import let_others_run
from mcpsniff.proxy.pump import BUSY, RESET, SHORTAGE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

    from mcpsniff.proxy.pump import Pump

ATTENTION: "Final" = 70_000
"""Nanoseconds for which the thread stays awake after it passed something on, if that had come as quickly."""


def suits(*descriptors: int) -> bool:
    """Say whether poll and `Pump.step` hold what they promise there: for pipes and sockets, not for terminals."""
    try:
        modes = [os.fstat(descriptor).st_mode for descriptor in descriptors]
    except OSError:
        return False
    return all(stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) for mode in modes)


class Duplex:
    """Carries ``forth`` and ``back``, which are pumps over pipes or sockets, until both have ended.

    `run` and `assist` are to be called once each, in two threads. Raises OSError if there are no descriptors left.
    """

    def __init__(self, forth: "Pump", back: "Pump") -> None:
        self._calm = [forth, back]
        """Those that the first thread looks after."""
        self._busy: Pump | None = None
        """The one that the second thread carries."""
        self._engaged = False
        """True while the first thread carries one, too."""
        self._over = False
        self._lock = allocate_lock()  # guards the four above
        self._work = allocate_lock()  # released: there is something for the second thread to do
        self._work.acquire()
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        self._attention = ATTENTION if _processors() > 1 else 0

    def run(self) -> None:
        """Look after both directions; the first thread's work."""
        try:
            while self._has_work():
                try:
                    self._look_after()
                except MemoryError:
                    time.sleep(SHORTAGE)
        finally:
            self._over = True
            self._work.release()

    def assist(self) -> None:
        """Carry what is busy, whenever something is; the second thread's work."""
        while True:
            self._work.acquire()
            pump = self._busy
            if self._over or pump is None:
                return
            outcome = self._flow(pump, self._rest)
            if outcome is not None:
                with self._lock:
                    self._busy = None
                pump.end(outcome)
            os.write(self._wake, b"\0")

    def _has_work(self) -> bool:
        with self._lock:
            return bool(self._calm) or self._busy is not None

    def _look_after(self) -> None:
        """Carry what comes, until the pumps that the first thread has are others than before."""
        calm = {pump.source: pump for pump in self._calm}
        poll = select.poll()
        for descriptor in (*calm, self._woken):
            poll.register(descriptor, select.POLLIN)
        wait, clock, attention = poll.poll, time.monotonic_ns, self._attention
        passed_at = 0
        attentive = False
        while True:
            events: list[tuple[int, int]] = []
            if attentive:
                until = passed_at + attention
                while not events and clock() < until:
                    let_others_run()  # on a busy machine that may be the server
                    events = wait(0)
            for descriptor, _ in events or wait():
                pump = calm.get(descriptor)
                if pump is None:
                    os.read(self._woken, 1)
                    return
                outcome = pump.step()
                if outcome is not None:
                    self._leave(pump, outcome)
                    return
                before, passed_at = passed_at, clock()
                attentive = passed_at - before < attention

    def _leave(self, pump: "Pump", outcome: str) -> None:
        """Stop looking after ``pump``: it has ended, or is busy."""
        if outcome != BUSY:
            self._calm.remove(pump)
            pump.end(outcome)
            return
        with self._lock:
            self._engaged = self._busy is not None
            if not self._engaged:
                self._calm.remove(pump)
                self._busy = pump
        if not self._engaged:
            self._work.release()
            return
        ended = self._flow(pump, lambda: True)
        with self._lock:
            self._engaged = False
        if ended is not None:
            self._calm.remove(pump)
            pump.end(ended)

    def _rest(self) -> bool:
        """Give the second thread's pump back to the first one, if that has time for it."""
        with self._lock:
            pump = self._busy
            if self._engaged or pump is None:
                return False
            self._calm.append(pump)
            self._busy = None
            return True

    def _flow(self, pump: "Pump", rest: "Callable[[], bool]") -> str | None:
        try:
            return pump.flow(rest)
        except Exception:  # noqa: BLE001 - such as no memory: an end like others, and the other direction goes on
            return RESET


def _processors() -> int:
    """How many processors we may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
