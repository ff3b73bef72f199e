"""What the capture is told of edited frames of one channel, before the bytes leave.

Chunks with these rewrites applied are byte for byte what left.
"""

from typing import Any, Final

from mcpsniff.hooks.editor import Edit, Outgoing
from mcpsniff.proxy.answers import as_data
from mcpsniff.proxy.recorder import Recorder

NOTABLE: Final = 1_000
"""Microseconds for which a frame may be held without a word about it."""

type Because = Edit | Outgoing
"""Who it is by, and why."""


class Told:
    """Makes the records. May be used by several threads, of which the lock of the pipe lets one write at a time."""

    def __init__(self, recorder: Recorder, channel: int) -> None:
        self._recorder = recorder
        self._channel = channel

    def rewritten(self, start: int, length: int, data: bytes, because: Because, us: int = 0) -> None:
        """Instead of the ``length`` bytes at ``start`` leaves ``data``; it was held for ``us`` microseconds."""
        body = {"start": start, "length": length, "data": as_data(data), "by": because.by}
        self._mark("rewrite", body, because.why, us)

    def held(self, start: int, length: int, because: Because, us: int) -> None:
        """The bytes leave as they came, ``us`` microseconds later; nothing is said of less than `NOTABLE`."""
        if us >= NOTABLE:
            self._mark("hold", {"start": start, "length": length, "by": because.by}, because.why, us)

    def remark(self, text: str) -> None:
        """Something about this channel that no other record says."""
        self._recorder.mark("comment", self._channel, {"text": text, "by": "mcpsniff"})

    def _mark(self, kind: str, body: dict[str, Any], why: str, us: int) -> None:
        if why:
            body["why"] = why
        if us >= NOTABLE:
            body["us"] = us
        self._recorder.mark(kind, self._channel, body)
