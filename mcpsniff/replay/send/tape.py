"""A capture of the live session, in which nothing that was given to the server stands.

The values of ``--header`` and ``--env`` are replaced wherever they appear, also where a server says them back, in any
encoding (`mcpsniff.replay.send.hide`). Whatever else is a secret over HTTP is masked as usual.
"""

from collections.abc import Callable
from typing import Any, Final

from mcpsniff.capture.records import CHUNK, CLOSE, MASK, OPEN
from mcpsniff.replay.send.hide import Hider
from mcpsniff.replay.send.link import now_us

type Entry = tuple[int, str, int | None, Any]
"""t in microseconds since the start, kind, channel, body: what `mcpsniff.capture.writer.CaptureWriter` takes."""

GIVEN: Final = "given"


class CaptureTape:
    """Makes records of what passes over links (`mcpsniff.replay.send.link.Tape`)."""

    def __init__(self, append: Callable[[list[Entry]], None], hider: Hider) -> None:
        """``append`` takes records to be written; it is not to raise."""
        self._append = append
        self._hider = hider
        self._began = now_us()
        self._channels = 0
        self._connections = 0
        self._sizes: dict[int, int] = {}

    def open(self, body: dict[str, Any]) -> int:
        """A channel begins; gives its number."""
        number, self._channels = self._channels, self._channels + 1
        self._sizes[number] = 0
        meta = body.get("meta")
        hidden = body if meta is None else {**body, "meta": self._hider.hide_all(meta)}
        self._append([(self._t(), OPEN, number, hidden)])
        return number

    def chunk(self, channel: int, data: bytes) -> None:
        """Bytes of it."""
        hidden, places = self._hider.hide(data)
        t, start = self._t(), self._sizes.get(channel, 0)
        self._sizes[channel] = start + len(hidden)
        masks: list[Entry] = [
            (t, MASK, channel, {"start": start + at, "length": length, "what": GIVEN, "fp": mark})
            for at, length, mark in places
        ]
        self._append([(t, CHUNK, channel, hidden), *masks])

    def close(self, channel: int, body: dict[str, Any]) -> None:
        """Its end."""
        self._append([(self._t(), CLOSE, channel, body)])

    def connection(self) -> int:
        """The number of a new connection."""
        number, self._connections = self._connections, self._connections + 1
        return number

    def _t(self) -> int:
        return now_us() - self._began
