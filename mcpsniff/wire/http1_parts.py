"""What an HTTP/1.1 stream is made of: heads, pieces of bodies, trailers, ends, and what is no HTTP.

Every recorded byte of a channel belongs to exactly one part: to ``spans`` or ``span``, or, for the bytes that only
frame a chunked body (sizes, line ends), to ``lead`` of the piece that follows them or to ``spans`` of the end.
"""

from dataclasses import dataclass, field
from typing import Final

from mcpsniff.wire.frames import GAP, Span

# How a body is delimited (RFC 9112 section 6.3).
NONE: Final = "none"
LENGTH: Final = "length"
CHUNKED: Final = "chunked"
CLOSE: Final = "close"
TUNNEL: Final = "tunnel"

BARE_LF: Final = "bare-lf"
BARE_CR: Final = "bare-cr"
LEADING_BLANK_LINE: Final = "leading-blank-line"
BAD_START_LINE: Final = "bad-start-line"
LOWER_CASE_METHOD: Final = "lower-case-method"
NO_REASON_PHRASE: Final = "no-reason-phrase"
BAD_VERSION: Final = "bad-version"
BAD_HEADER: Final = "bad-header"
SPACE_BEFORE_COLON: Final = "space-before-colon"
FOLDED_HEADER: Final = "folded-header"
CONTROL_CHARACTER: Final = "control-character"
CONFLICTING_FRAMING: Final = "conflicting-framing"
CONFLICTING_LENGTH: Final = "conflicting-length"
REPEATED_LENGTH: Final = "repeated-length"
BAD_LENGTH: Final = "bad-length"
BAD_TRANSFER_ENCODING: Final = "bad-transfer-encoding"
CHUNKED_IN_HTTP10: Final = "chunked-in-http10"
BAD_CHUNK: Final = "bad-chunk"
CHUNK_WHITE_SPACE: Final = "chunk-white-space"
BAD_TRAILER: Final = "bad-trailer"
UNASKED_RESPONSE: Final = "unasked-response"
CUT: Final = "cut"

HTTP_FLAWS: Final[dict[str, str]] = {
    BARE_LF: "a line ends with LF alone instead of CR LF (RFC 9112 section 2.2)",
    BARE_CR: "a CR stands inside a line, without its LF (RFC 9112 section 2.2)",
    LEADING_BLANK_LINE: "empty lines stand before the start line (RFC 9112 section 2.2)",
    BAD_START_LINE: "the start line has odd white space or spelling (RFC 9112 sections 3 and 4)",
    LOWER_CASE_METHOD: "the method is not in capitals, and methods are case-sensitive (RFC 9110 section 9.1)",
    NO_REASON_PHRASE: "no space and reason phrase follow the status code; the space is required (RFC 9112 section 4)",
    BAD_VERSION: "the version is not HTTP/1.0 or HTTP/1.1 (RFC 9112 section 2.3)",
    BAD_HEADER: "a header line has no colon, or its name is no token (RFC 9112 section 5)",
    SPACE_BEFORE_COLON: "white space stands between a header's name and its colon (RFC 9112 section 5.1)",
    FOLDED_HEADER: "a header's value goes on in the next line (RFC 9112 section 5.2)",
    CONTROL_CHARACTER: "a control character stands in the head (RFC 9110 section 5.5)",
    CONFLICTING_FRAMING: "both Content-Length and Transfer-Encoding: the latter counts (RFC 9112 section 6.3)",
    CONFLICTING_LENGTH: "different values of Content-Length: the first is used here (RFC 9112 section 6.3)",
    REPEATED_LENGTH: "the same Content-Length more than once (RFC 9110 section 8.6)",
    BAD_LENGTH: "Content-Length is no decimal number (RFC 9110 section 8.6)",
    BAD_TRANSFER_ENCODING: "Transfer-Encoding is empty, or `chunked` is not once and at its end (RFC 9112 section 6.1)",
    CHUNKED_IN_HTTP10: "Transfer-Encoding in a message of HTTP/1.0 (RFC 9112 section 6.1)",
    BAD_CHUNK: "a chunk's size or its end cannot be read (RFC 9112 section 7.1)",
    CHUNK_WHITE_SPACE: "white space stands around a chunk's size (RFC 9112 section 7.1)",
    BAD_TRAILER: "a trailer line is no header line, or the trailers are too long (RFC 9112 section 7.1.2)",
    UNASKED_RESPONSE: "a response without a request (RFC 9112 section 9.2)",
    CUT: "the stream ended inside this message",
    GAP: "bytes of this message are missing from the capture",
}
"""What can be wrong with an HTTP message as far as its bytes show. Flaws of the body are on its `End`."""

NOT_HTTP: Final = "not-http"
SURPLUS_BYTES: Final = "surplus-bytes"
HEAD_TOO_LARGE: Final = "head-too-large"
HTTP2: Final = "http2"
UPGRADED: Final = "upgraded"

UNDECODED: Final[dict[str, str]] = {
    NOT_HTTP: "the stream does not begin as HTTP/1.x",
    SURPLUS_BYTES: "bytes that belong to no message, after the end of one",
    HEAD_TOO_LARGE: "a head of more than 256 KiB, which mcpsniff does not read",
    HTTP2: "HTTP/2 without TLS (RFC 9113 section 3.3)",
    UPGRADED: "another protocol, after 101 Switching Protocols",
    TUNNEL: "a tunnel, after CONNECT",
    BAD_CHUNK: "what follows a chunk that cannot be read",
    BAD_TRAILER: "trailers that cannot be read, and what follows them",
    CUT: "the stream ended in the first line of a message",
    GAP: "bytes are missing from the capture here, and the next message has not begun yet",
}
"""Why bytes were not decoded."""


@dataclass(slots=True)
class Head:
    """The head of a request or response."""

    direction: str
    """``c2s`` for a request, ``s2c`` for a response."""
    start_line: bytes
    """As it was, without its line end."""
    method: str | None
    target: str | None
    """The request target, byte for byte (latin-1)."""
    status: int | None
    reason: str
    version: str
    """Such as ``HTTP/1.1``."""
    headers: tuple[tuple[str, str], ...]
    """Names as spelt and values (latin-1) without the white space around them, in order, repeats kept."""
    spans: tuple[Span, ...]
    t_first: int
    t_last: int
    flaws: tuple[str, ...]
    framing: str
    """How the body is delimited: ``none``, ``length``, ``chunked``, ``close`` or ``tunnel`` (no HTTP from here on)."""
    length: int | None
    """Bytes of the body where ``framing`` is ``length``, else None."""
    request: "Head | None" = field(default=None, repr=False, compare=False)
    """Of a response: the request that it answers, as far as that is known (set by `Http1Connection`)."""

    def get(self, name: str) -> str | None:
        """Return the first value of the header ``name``, in whatever case, or None."""
        name = name.lower()
        for key, value in self.headers:
            if key.lower() == name:
                return value
        return None

    def all(self, name: str) -> list[str]:
        """Return all values of the header ``name``, in whatever case, in order."""
        name = name.lower()
        return [value for key, value in self.headers if key.lower() == name]

    @property
    def interim(self) -> bool:
        """Whether this is a 1xx response that another one follows (RFC 9110 section 15.2)."""
        return self.status is not None and 100 <= self.status < 200 and self.status != 101


@dataclass(slots=True)
class Data:
    """Bytes of a body without its chunk framing, one contiguous run: ``span`` has as many bytes as ``data``."""

    data: bytes
    span: Span
    t: int
    lead: Span | None = None
    """The framing bytes right before it: the end of the chunk before and this chunk's size."""


@dataclass(slots=True)
class Trailers:
    """The fields after a chunked body (RFC 9112 section 7.1.2); ``spans`` include the last chunk's line."""

    headers: tuple[tuple[str, str], ...]
    spans: tuple[Span, ...]
    t: int


@dataclass(slots=True)
class End:
    """A message is over."""

    t: int
    complete: bool
    """False if the stream ended, or was lost, inside it."""
    flaws: tuple[str, ...] = ()
    """Flaws of the body and of its framing."""
    spans: tuple[Span, ...] = ()
    """The framing bytes that end it, if there are any."""


@dataclass(slots=True)
class Undecoded:
    """Bytes that are not HTTP/1.x; further ones give further parts."""

    spans: tuple[Span, ...]
    t: int
    why: str
    """A key of `UNDECODED`."""


type Part = Head | Data | Trailers | End | Undecoded
