"""A frame: one unit that the transport delimits, with the bytes it came from.

On pipes a frame is a line, in an event stream an event, in a plain HTTP body the body. What the frame *says* is the
business of ``mcpsniff.protocol``; here only bytes, places, times and the flaws that the bytes alone show.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

DEFAULT_FRAME_LIMIT: Final = 16 * 1024 * 1024
"""Bytes of one frame that the observer keeps. The wire has no limit; 10 MiB is the largest any SDK accepts."""

# Flaws of a frame, as they appear in the JSON output.
BOM: Final = "bom"
BARE_CR: Final = "bare-cr"
CR_BEFORE_LF: Final = "cr-before-lf"
EMPTY_LINE: Final = "empty-line"
INVALID_UTF8: Final = "invalid-utf8"
UNTERMINATED: Final = "unterminated"
TRUNCATED: Final = "truncated"
GAP: Final = "gap"
SSE_BOM: Final = "sse-bom"
SSE_UNKNOWN_FIELD: Final = "sse-unknown-field"
SSE_NUL_IN_ID: Final = "sse-nul-in-id"
SSE_BAD_RETRY: Final = "sse-bad-retry"

FRAME_FLAWS: Final = {
    BOM: "a UTF-8 byte order mark stands before the message (RFC 8259 section 8.1)",
    BARE_CR: "a CR stands inside the line, not directly before its LF",
    CR_BEFORE_LF: "the line ends with CR LF",
    EMPTY_LINE: "nothing but white space on the line",
    INVALID_UTF8: "the bytes are not UTF-8",
    UNTERMINATED: "the stream ended inside this frame",
    TRUNCATED: "mcpsniff kept only the beginning of this frame; the wire carried all of it",
    GAP: "bytes of this frame are missing from the capture",
    SSE_BOM: "the event stream begins with a byte order mark; browsers drop it, Python SDKs lose the first field",
    SSE_UNKNOWN_FIELD: "a line of the event is no `data`, `event`, `id` or `retry` field, so every reader ignores it",
    SSE_NUL_IN_ID: "an id with a NUL in it, which every reader ignores",
    SSE_BAD_RETRY: "a reconnection time that is not ASCII digits only; browsers ignore it, some SDKs do not",
}

INCOMPLETE: Final = frozenset({TRUNCATED, GAP})
"""Flaws that are the observer's own: what is missing must never be blamed on a peer."""


class Span(NamedTuple):
    """A run of recorded bytes: ``start`` up to, not including, ``stop`` of one channel."""

    channel: int
    start: int
    stop: int


@dataclass(slots=True)
class ServerSentEvent:
    """The fields of an event stream's event besides its data (WHATWG HTML 9.2.6)."""

    event: str = "message"
    """Its type: what its ``event`` field says, or ``message``."""
    id: str | None = None
    """The last event id that this block commits; None if it has no valid ``id`` field."""
    retry: int | None = None
    """The reconnection time that it sets, in milliseconds."""
    comments: tuple[str, ...] = ()
    dispatched: bool = True
    """False if a reader sees no event here: the block has no ``data`` field, or the stream ended inside it."""


@dataclass(slots=True)
class Frame:
    """One frame. Nobody changes it once the decoder has numbered it.

    Not a frozen dataclass for one reason only: freezing makes building one about six times slower, and a
    decoder builds one per message.
    """

    channel: int
    direction: str
    framing: str
    """``line``, ``sse`` or ``body``."""
    spans: tuple[Span, ...]
    """All its recorded bytes, line end included, one span per contiguous run."""
    t_first: int
    """When its first byte was read, in microseconds since the capture started."""
    t_last: int
    payload: bytes
    """The bytes to be read as a message; without the LF, and at most the observer's limit."""
    size: int
    """The payload's true length in bytes."""
    flaws: tuple[str, ...] = ()
    coding: str | None = None
    sse: ServerSentEvent | None = None
    n: int = 0
    """Its running number among the events of the capture."""
