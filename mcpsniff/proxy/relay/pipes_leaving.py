"""What the editor has decided of a line is told to the capture and done: it goes on, changed or not, or others do."""

from typing import TYPE_CHECKING

from mcpsniff.hooks.actions import Cut, Disconnect, Paced, Raw, Stall
from mcpsniff.hooks.editor import BACK, CHANGED, SAME, Edit, Outgoing
from mcpsniff.proxy.pump import BROKEN, SEVERED
from mcpsniff.proxy.relay.pipes_told import Because

if TYPE_CHECKING:
    from mcpsniff.proxy.relay.pipes import EditPump


class Leaving:
    """One held line of ``pump``: the bytes ``data`` as they came, and what is to become of them.

    For the thread of that pump. The line was held for ``us`` microseconds.
    """

    def __init__(self, pump: "EditPump", data: bytes, edit: Edit, us: int) -> None:
        self._pump = pump
        self._data = data
        self._edit = edit
        self._us = us
        self._start = pump.passed
        self._has_gone = False
        """The line itself has gone on, or it is told that it has not."""

    def go(self) -> str | None:
        """Do it, and return how the stream has ended, if it has."""
        pump = self._pump
        if not self._edit.passes:
            self._drop(self._edit)
        for out in self._edit.leaving:
            if out.what == BACK:
                self._give_back(out)
            elif pump.stalled is None and not self._one(out):
                return SEVERED
        if not self._has_gone:
            self._drop(self._edit)
        return BROKEN if pump.out.is_broken else None

    def _one(self, out: Outgoing) -> bool:
        """Let one thing go on; return False if the connection is to be broken off."""
        match out.action:
            case Stall():
                self._drop(out, is_needed=out.what == CHANGED)
                self._pump.stalled = out
            case Disconnect():
                self._disconnect(out)
                return False
            case _ if out.what == SAME:
                self._pass(out)
            case _:
                self._put(out)
        return True

    def _pass(self, out: Outgoing) -> None:
        """The line goes on as it came."""
        pump = self._pump
        with pump.out.lock:
            pump.held_for(self._start, len(self._data), out, self._us)
            pump.out.put(self._data)
            self._gone()

    def _put(self, out: Outgoing) -> None:
        """Something goes on in the line's place, or beside it."""
        pump, action = self._pump, out.action
        data = action.data if isinstance(action, Raw) else self._framed(out)
        if isinstance(action, Cut):
            data = data[: max(0, action.keep)]
        is_slow = isinstance(action, Paced) and action.bytes_per_second > 0
        us = self._us if out.what == CHANGED else 0
        if isinstance(action, Paced) and is_slow:
            us += int(len(data) / action.bytes_per_second * 1_000_000)
            with pump.holding(), pump.out.lock:
                self._tell(out, data, us)
                pump.out.put_slowly(data, action.bytes_per_second, lambda: pump.is_gone)
                self._counted(out)
            return
        with pump.out.lock:
            self._tell(out, data, us)
            pump.out.put(data)
            self._counted(out)

    def _tell(self, out: Outgoing, data: bytes, us: int) -> None:
        told = self._pump.told
        if out.what != CHANGED:
            told.rewritten(self._pump.passed, 0, data, out, us)
        elif data == self._data:
            self._pump.held_for(self._start, len(data), out, us)
        else:
            told.rewritten(self._start, len(self._data), data, out, us)

    def _counted(self, out: Outgoing) -> None:
        if out.what == CHANGED:
            self._gone()

    def _framed(self, out: Outgoing) -> bytes:
        """A message with the line end that it needs where it goes."""
        if self._data.endswith(b"\n"):
            return out.data + b"\n"
        if out.what == CHANGED:
            return out.data  # the last line had no end, and has none now
        return b"\n" + out.data + b"\n" if self._has_gone else out.data + b"\n"

    def _drop(self, because: Because, *, is_needed: bool = True) -> None:
        """The line does not go on, which is told once."""
        if self._has_gone or not is_needed:
            return
        pump = self._pump
        with pump.out.lock:
            pump.told.rewritten(self._start, len(self._data), b"", because, self._us)
            self._gone()

    def _gone(self) -> None:
        self._has_gone = True
        self._pump.passed = self._start + len(self._data)

    def _disconnect(self, out: Outgoing) -> None:
        """Nothing of what has arrived goes on."""
        pump = self._pump
        with pump.out.lock:
            pump.told.rewritten(pump.passed, pump.received - pump.passed, b"", out, self._us)
            pump.passed = pump.received
            pump.out.is_shut = True
            pump.severed_by = f"broken off by {out.by}"

    def _give_back(self, out: Outgoing) -> None:
        """Say something to the side that the line came from.

        That side may be waiting for us to read before it reads itself, so what comes meanwhile is read on.
        """
        pump, peer = self._pump, self._pump.peer
        data = out.data + b"\n"
        if peer.out.lock.acquire(blocking=False):
            try:
                if peer.out.has_room(len(data)):
                    peer.insert(data, out, self._us)
                    return
            finally:
                peer.out.lock.release()
        with pump.holding(), peer.out.lock:
            peer.insert(data, out, self._us)
