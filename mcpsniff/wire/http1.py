"""HTTP/1.1 from an observer's place: bytes in, heads, body slices, trailers and ends out, each with its place.

`Http1Connection` reads the two directions of a connection together, `Http1Splitter` one of them alone. Written for this
package because framing is what it shows: other parsers give no offsets, and stop for good where a passive observer must
go on (they check ours in the tests).
"""

from mcpsniff.wire.http1_connection import Http1Connection
from mcpsniff.wire.http1_parts import (
    CHUNKED,
    CLOSE,
    HTTP_FLAWS,
    LENGTH,
    NONE,
    TUNNEL,
    UNDECODED,
    Data,
    End,
    Head,
    Part,
    Trailers,
    Undecoded,
)
from mcpsniff.wire.http1_splitter import Http1Splitter
from mcpsniff.wire.http1_stream import HEAD_LIMIT

__all__ = [
    "CHUNKED",
    "CLOSE",
    "HEAD_LIMIT",
    "HTTP_FLAWS",
    "LENGTH",
    "NONE",
    "TUNNEL",
    "UNDECODED",
    "Data",
    "End",
    "Head",
    "Http1Connection",
    "Http1Splitter",
    "Part",
    "Trailers",
    "Undecoded",
]
