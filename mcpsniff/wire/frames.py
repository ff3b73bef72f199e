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
CODING_UNKNOWN: Final = "coding-unknown"
CODING_MISMATCH: Final = "coding-mismatch"
CODING_CUT: Final = "coding-cut"
CODING_DAMAGED: Final = "coding-damaged"
CODING_TRAILING: Final = "coding-trailing"
DECODE_CAP: Final = "decode-cap"

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
    CODING_UNKNOWN: "a content coding that mcpsniff cannot remove, or more than five: the bytes are as they came",
    CODING_MISMATCH: "the declared content coding was not applied: the bytes are taken as they came",
    CODING_CUT: "the coded body ended too early; what could be decoded is there",
    CODING_DAMAGED: "the coded bytes are broken; what could be decoded before that place is there",
    CODING_TRAILING: "bytes follow the end of the coded body, and are ignored",
    DECODE_CAP: "mcpsniff stopped decoding, as the body expands too far; the wire carried all of it",
}

INCOMPLETE: Final = frozenset({TRUNCATED, GAP, DECODE_CAP})
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
    http: int | None = None
    """Over HTTP: the number of the HTTP exchange that carried it."""
