"""What the capture is told of edited frames of one channel, before the bytes leave.

Chunks with these rewrites applied are byte for byte what left.
"""

from mcpsniff.hooks.editor import Edit, Outgoing
from mcpsniff.proxy.recorder import Recorder
from mcpsniff.proxy.relay import edit_records

type Because = Edit | Outgoing
"""Who it is by, and why."""


class Told:
    """Makes the records. May be used by several threads, of which the lock of the pipe lets one write at a time."""

    def __init__(self, recorder: Recorder, channel: int) -> None:
        self._recorder = recorder
        self._channel = channel

    def rewritten(self, start: int, length: int, data: bytes, because: Because, us: int = 0) -> None:
        """Instead of the ``length`` bytes at ``start`` leaves ``data``; it was held for ``us`` microseconds."""
        body = edit_records.rewrite(start, length, data, because.by, because.why, us=us)
        self._recorder.mark("rewrite", self._channel, body)

    def held(self, start: int, length: int, because: Because, us: int) -> None:
        """The bytes leave as they came, ``us`` microseconds later."""
        self._hold(start, length, max(us, 1), because.by, because.why)

    def begun(self, start: int, length: int, by: str, why: str) -> None:
        """The bytes are held from now on."""
        self._hold(start, length, 0, by, why)

    def remark(self, text: str) -> None:
        """Something about this channel that no other record says."""
        self._recorder.mark("comment", self._channel, {"text": text, "by": "mcpsniff"})

    def _hold(self, start: int, length: int, us: int, by: str, why: str) -> None:
        self._recorder.mark("hold", self._channel, edit_records.hold(start, length, us, by, why))
