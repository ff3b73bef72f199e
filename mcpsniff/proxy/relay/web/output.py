"""Where the bytes of one direction leave, and the records of what leaves in the place of what arrived."""

import socket
import time
from threading import RLock
from typing import TYPE_CHECKING, Final

from mcpsniff.hooks.actions import Paced
from mcpsniff.proxy.relay import edit_records
from mcpsniff.proxy.relay.edit_records import LONG_US, NOTABLE_US

if TYPE_CHECKING:
    from mcpsniff.hooks.editor import Outgoing
    from mcpsniff.proxy.recorder import Recorder

CUT_OFF: Final = "the connection was broken off before this"
SLICE: Final = 0.05
"""Seconds between two pieces of what leaves slowly."""


class GoneError(Exception):
    """Nobody reads any more what we write."""


class Output:
    """Writes to ``sink`` what passes on ``channel``. Whoever writes holds `lock`, for whole frames."""

    def __init__(self, recorder: "Recorder", channel: int, sink: socket.socket) -> None:
        self.lock = RLock()
        self.channel = channel
        self.sink = sink
        self.sent = 0
        """Bytes written."""
        self.passed = 0
        """The bytes that arrived before this offset have left, or something else has in their place."""
        self._begun = 0
        """Up to where in the channel it is told that a hold has begun."""
        self._recorder = recorder

    def write(self, data: bytes, paced: float = 0.0) -> None:
        """Write all of ``data``, at ``paced`` bytes per second if that is given. Raises GoneError."""
        try:
            if paced > 0:
                step = max(1, int(paced * SLICE))
                for at in range(0, len(data), step):
                    self.sink.sendall(data[at : at + step])
                    self.sent += min(step, len(data) - at)
                    time.sleep(min(step, len(data) - at) / paced)
            elif data:
                self.sink.sendall(data)
                self.sent += len(data)
        except OSError:
            raise GoneError from None

    def rewrite(self, start: int, length: int, data: bytes, by: str, why: str = "", *, us: int = 0) -> None:
        """Record that ``data`` leaves in the place of what arrived there; to be done before it does."""
        if length or data:
            self._recorder.mark("rewrite", self.channel, edit_records.rewrite(start, length, data, by, why, us=us))

    def drop_rest(self, stop: int, by: str, why: str = CUT_OFF) -> None:
        """Nothing leaves any more: record that of what arrived up to ``stop`` and has not left, if there is any."""
        with self.lock:
            if stop > self.passed:
                self.rewrite(self.passed, stop - self.passed, b"", by, why)
                self.passed = stop

    def hold(self, start: int, length: int, us: int, by: str, why: str = "", *, on_purpose: bool = True) -> None:
        """Record that what arrived there leaves unchanged, but was held."""
        if us > LONG_US or (us > NOTABLE_US and on_purpose) or start < self._begun:
            self._hold(start, length, max(us, 1), by, why)

    def begin(self, start: int, length: int, by: str, why: str = "") -> None:
        """Record that what arrived there is held from now on."""
        self._begun = max(self._begun, start + length)
        self._hold(start, length, 0, by, why)

    def _hold(self, start: int, length: int, us: int, by: str, why: str) -> None:
        self._recorder.mark("hold", self.channel, edit_records.hold(start, length, us, by, why))


def pace_of(out: "Outgoing") -> float:
    """How many bytes of it are to leave per second; 0: all at once."""
    return max(1.0, out.action.bytes_per_second) if isinstance(out.action, Paced) else 0.0


def us_of_pace(out: "Outgoing", data: bytes) -> int:
    """For how many microseconds ``data`` is on its way if it leaves slowly."""
    pace = pace_of(out)
    return round(len(data) / pace * 1_000_000) if pace else 0
