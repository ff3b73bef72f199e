"""An event stream that cannot leave in the form in which it arrives, since what it says may be another thing.

Its content coding is removed on its way, or its Content-Length, in whose place chunks are made.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from mcpsniff.proxy.relay.edit_records import LIMIT
from mcpsniff.proxy.relay.web.chunks import Chunks
from mcpsniff.proxy.relay.web.held import decoder_of, is_coded
from mcpsniff.proxy.relay.web.stream import OURS, BrokenOffError, EventStream
from mcpsniff.wire.frames import Span
from mcpsniff.wire.http1_parts import LENGTH, Data, Head

if TYPE_CHECKING:
    from mcpsniff.proxy.relay.web.carrier import WebCarrier
    from mcpsniff.proxy.relay.web.held import Errand

REMADE: Final = "its coding or length removed, so that it can be edited"


class RemadeStream(EventStream):
    """See `EventStream`. No byte leaves as it came; each event is recorded where it was complete."""

    def __init__(self, carrier: "WebCarrier", errand: "Errand", head: Head) -> None:
        super().__init__(carrier, errand, head)
        self._decoder = decoder_of(head)
        self._has_length = head.framing == LENGTH
        if self._has_length:
            self._chunks = Chunks(is_chunked=True)
        self._text = bytearray()
        self._done = 0
        """Bytes of the decoded stream that have left, or something else in their place."""
        self._came = 0

    @staticmethod
    def is_for(head: Head) -> bool:
        """True if the stream that follows ``head`` is such a one."""
        return is_coded(head) or head.framing == LENGTH

    @staticmethod
    def headers(head: Head) -> Mapping[str, str | None]:
        """What becomes of headers."""
        changes: dict[str, str | None] = {"Content-Encoding": None} if is_coded(head) else {}
        return (
            {**changes, "Content-Length": None, "Transfer-Encoding": "chunked"} if head.framing == LENGTH else changes
        )

    def data(self, part: Data, raw: bytes) -> None:
        """See `EventStream`."""
        self._arrived(part.span.stop, len(raw))
        for text in self._decoder.pieces(part.data):
            self._take(part.t, text)
        if self._decoder.is_broken:
            self._hub.editor.tell_once("an event stream was broken off, since its content coding cannot be removed")
            raise BrokenOffError(OURS)

    @property
    def awaits_end_of_chunk(self) -> bool:
        """Its chunks do not leave."""
        return False

    def end(self, raw: bytes, start: int) -> None:
        """See `EventStream`."""
        self._arrived(start, 0)
        self._take(0, self._decoder.finish())
        super().end(raw, start)
        if self._has_length:
            with self._output.lock:
                out = self._chunks.end()
                self._output.rewrite(start, 0, out, OURS, REMADE)
                self._output.write(out)

    def _arrived(self, stop: int, length: int) -> None:
        with self._output.lock:
            self._output.rewrite(stop - length, length, b"", OURS, REMADE)
            self._output.passed = stop

    def _take(self, t: int, text: bytes) -> None:
        self._text += text
        came = self._came
        self._came += len(text)
        for frame in self._splitter.feed(t, text, (Span(self._output.channel, came, self._came),)):
            self._frame(frame, frame.spans[-1].stop)
        if not self._splitter.is_inside:
            self._pass(self._came)
        elif self._is_torn or len(self._text) > LIMIT:
            self._tear()
            self._pass(self._came)

    def _pass_rest(self, stop: int) -> None:  # noqa: ARG002
        self._pass(self._came)

    @property
    def _at(self) -> int:
        return self._done

    def _at_hand(self, stop: int) -> None:
        """See `_hold`."""

    def _hold(self, start: int, stop: int, us: int, by: str, why: str = "", *, is_meant: bool = False) -> None:
        """Nothing that arrived leaves unchanged here."""

    def _event(self, stop: int) -> bytes:
        return bytes(self._text[: stop - self._done])

    def _with_line_feed(self, stop: int) -> int:
        at = stop - self._done
        return stop + (self._text[at - 1 : at + 1] == b"\r\n")

    def _pass(self, stop: int, paced: float = 0.0) -> None:
        with self._output.lock:
            if self._done < stop <= self._came:
                text = self._event(stop)
                self._forget(stop)
                self._insert(text, OURS, REMADE, paced)

    def _replace(
        self,
        stop: int,
        data: bytes,
        by: str,
        why: str,
        us: int,
        *,
        paced: float = 0.0,
        is_last: bool = False,  # noqa: ARG002
    ) -> None:
        self._forget(stop)
        out = self._chunks.insert(data)
        self._output.rewrite(self._output.passed, 0, out, by, why, us=us)
        self._output.write(out, paced)

    def _forget(self, stop: int) -> None:
        del self._text[: max(0, stop - self._done)]
        self._done = max(self._done, stop)
