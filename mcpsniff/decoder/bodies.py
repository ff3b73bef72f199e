"""Bodies of HTTP messages to frames: the events of a stream, or one JSON text; anything else is only measured."""

from collections.abc import Callable, Sequence
from typing import Final, Protocol

import orjson

from mcpsniff.protocol.http import EVENT_STREAM, is_json_type, media_type
from mcpsniff.protocol.oauth_reading import DOCUMENT_LIMIT
from mcpsniff.wire.body import BodyDecoder
from mcpsniff.wire.frames import BOM, GAP, INCOMPLETE, INVALID_UTF8, TRUNCATED, UNTERMINATED, Frame
from mcpsniff.wire.http1_parts import Data, Head
from mcpsniff.wire.ndjson import BYTE_ORDER_MARK, JSON_WHITE_SPACE, is_utf8
from mcpsniff.wire.spans import CodedSpans, ExactSpans
from mcpsniff.wire.sse import EventSplitter

_BEGINNINGS: Final = (b"{", b"[", BYTE_ORDER_MARK)
BEGINNING: Final = 2048
"""Bytes of a body that is no message that are kept, its coding removed: what a refusal says for people."""
FORM: Final = "application/x-www-form-urlencoded"


class Reader(Protocol):
    """Reads one body."""

    @property
    def size(self) -> int:
        """Bytes of the body so far, its coding removed."""

    def feed(self, part: Data) -> Sequence[Frame]:
        """The next bytes of it; the frames that end in them."""

    def gap(self) -> None:
        """Bytes of it are missing here."""

    def end(self, t: int, *, complete: bool) -> Sequence[Frame]:
        """It is over."""

    @property
    def flaws(self) -> tuple[str, ...]:
        """What was wrong with its coding."""

    @property
    def beginning(self) -> bytes:
        """The first BEGINNING bytes of what was no frame, its coding removed; empty if a gap is in them."""

    @property
    def document(self) -> bytes:
        """After its end: the whole of a form or a JSON text that was no frame; empty if it is none, or too long."""


def reader_of(head: Head, limit: int, is_message: Callable[[bytes], bool]) -> Reader:
    """The reader of the body that follows ``head``.

    ``limit`` is how many bytes of one frame are kept; ``is_message`` is asked whether a whole body that is no event
    stream is to be read as a message.
    """
    kind = media_type(head.get("content-type"))
    codings = ", ".join(head.all("content-encoding"))
    if kind == EVENT_STREAM and head.status is not None:
        return EventReader(head.direction, codings, limit)
    return TextReader(head.direction, codings, limit, kind, is_message)


class _Coded:
    """Removes the content coding of a body, if it has one."""

    def __init__(self, codings: str, limit: int, *, stream: bool) -> None:
        self._decoder = BodyDecoder(codings, limit=limit, stream=stream) if codings else None
        self.coding = None if self._decoder is None else self._decoder.coding
        self.size = 0

    @property
    def flaws(self) -> tuple[str, ...]:
        """What was wrong with the coding."""
        return () if self._decoder is None else self._decoder.flaws

    def gap(self) -> None:
        """Bytes are missing; of a coded body nothing more can be read."""
        if self._decoder is not None:
            self._decoder.gap()

    def plain(self, data: bytes) -> bytes:
        """What the next bytes come to."""
        if self._decoder is not None:
            data = self._decoder.feed(data)
        self.size += len(data)
        return data

    def rest(self) -> bytes:
        """What the end of the body brings."""
        data = b"" if self._decoder is None else self._decoder.finish()
        self.size += len(data)
        return data


class EventReader:
    """An event stream."""

    def __init__(self, direction: str, codings: str, limit: int) -> None:
        self._coded = _Coded(codings, limit, stream=True)
        self._splitter = EventSplitter(-1, direction, limit=limit, coding=self._coded.coding)
        self._is_torn = False

    @property
    def size(self) -> int:
        """See `Reader`."""
        return self._coded.size

    @property
    def flaws(self) -> tuple[str, ...]:
        """See `Reader`; ``unterminated`` if the stream ended inside an event."""
        return (*self._coded.flaws, UNTERMINATED) if self._is_torn else self._coded.flaws

    @property
    def beginning(self) -> bytes:
        """See `Reader`; all of a stream is in frames."""
        return b""

    document = b""

    def feed(self, part: Data) -> Sequence[Frame]:
        """See `Reader`."""
        self._splitter.channel = part.span.channel
        return self._splitter.feed(part.t, self._coded.plain(part.data), (part.span,))

    def gap(self) -> None:
        """See `Reader`."""
        self._splitter.gap()
        self._coded.gap()

    def end(self, t: int, *, complete: bool) -> Sequence[Frame]:  # noqa: ARG002 - an event is whole by its blank line
        """See `Reader`."""
        rest = self._coded.rest()
        frames = self._splitter.feed(t, rest, ()) if rest else []
        unfinished = self._splitter.finish(t)
        self._is_torn = any(frame.payload and GAP not in frame.flaws for frame in unfinished)
        return frames + unfinished


class TextReader:
    """A body that may be a message: kept as a whole, up to a limit, unless its first byte says that it is none."""

    def __init__(
        self,
        direction: str,
        codings: str,
        limit: int,
        kind: str,
        is_message: Callable[[bytes], bool],
    ) -> None:
        self._channel = -1
        self._direction = direction
        self._coded = _Coded(codings, limit, stream=False)
        self._spans: ExactSpans | CodedSpans = ExactSpans() if self._coded.coding is None else CodedSpans()
        self._limit = limit
        self._is_message = is_message
        self._keeps: bool | None = True if is_json_type(kind) else None
        """None until its first byte has come."""
        self._is_form = kind == FORM
        self._payload = bytearray()
        self._beginning = b""
        self._t_first: int | None = None
        self._gapped = False

    @property
    def size(self) -> int:
        """See `Reader`."""
        return self._coded.size

    @property
    def flaws(self) -> tuple[str, ...]:
        """See `Reader`."""
        return self._coded.flaws

    @property
    def beginning(self) -> bytes:
        """See `Reader`."""
        return b"" if self._gapped else self._beginning

    @property
    def document(self) -> bytes:
        """See `Reader`."""
        is_whole = not self._gapped and self.size == len(self._payload) <= DOCUMENT_LIMIT
        return bytes(self._payload) if self._beginning and is_whole else b""

    def feed(self, part: Data) -> Sequence[Frame]:
        """See `Reader`."""
        if self._t_first is None:
            self._t_first, self._channel = part.t, part.span.channel
        data = self._coded.plain(part.data)
        self._keep(data)
        if self._keeps is not False:
            self._spans.begin((part.span,), len(data))
            self._spans.end(inside=True)
        return ()

    def gap(self) -> None:
        """See `Reader`."""
        self._gapped = True
        self._coded.gap()

    def end(self, t: int, *, complete: bool) -> Sequence[Frame]:
        """See `Reader`."""
        self._keep(self._coded.rest())
        if not self._keeps or self._t_first is None:
            return ()
        payload = bytes(self._payload)
        if not payload.strip(JSON_WHITE_SPACE) or not self._is_message(payload):
            return ()
        frame = Frame(
            self._channel,
            self._direction,
            "body",
            self._spans.rest(),
            self._t_first,
            t,
            payload,
            self.size,
            self._frame_flaws(payload, complete=complete),
            self._coded.coding,
        )
        self._beginning = b""
        return (frame,)

    def _keep(self, data: bytes) -> None:
        if len(self._beginning) < BEGINNING:
            self._beginning += data[: BEGINNING - len(self._beginning)]
        if self._keeps is None:
            begins = (bytes(self._payload) + data[:64]).lstrip(JSON_WHITE_SPACE)
            if begins:
                self._keeps = begins.startswith(_BEGINNINGS) or BYTE_ORDER_MARK.startswith(begins)
                if self._is_form and not self._keeps:
                    self._keeps, self._limit = True, min(self._limit, DOCUMENT_LIMIT)
        room = self._limit - len(self._payload)
        if self._keeps is not False and room > 0:
            self._payload += data[:room]
        elif self._keeps is False:
            self._payload.clear()

    def _frame_flaws(self, payload: bytes, *, complete: bool) -> tuple[str, ...]:
        cut = self.size > len(payload)
        torn = cut or not complete or not INCOMPLETE.isdisjoint(self.flaws)
        found = {
            BOM: payload.startswith(BYTE_ORDER_MARK),
            TRUNCATED: cut,
            GAP: self._gapped,
            UNTERMINATED: not complete and not self._gapped,
            INVALID_UTF8: not is_utf8(payload, cut=torn),
        }
        return (*(flaw for flaw, is_there in found.items() if is_there), *self.flaws)


def is_like_a_message(payload: bytes) -> bool:
    """True if a body looks like JSON-RPC, whatever its type says."""
    text = payload.removeprefix(BYTE_ORDER_MARK).lstrip(JSON_WHITE_SPACE)
    if text[:1] not in (b"{", b"[") or b'"jsonrpc"' not in text:
        return False
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return b'"jsonrpc"' in text[:200]
    return any(isinstance(one, dict) and "jsonrpc" in one for one in (value if isinstance(value, list) else [value]))
