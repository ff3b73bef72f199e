"""The records of a capture file (``*.mcpcap``), as they travel between recorder, writer, reader and decoder.

A capture is newline-delimited JSON: a header object, then one record per line as ``[t, kind, channel, body]``.
docs/capture-format.md is the reference; the names here are the ones used there.
"""

from typing import Any, Final, NamedTuple

FORMAT_VERSION: Final = 1
"""The major version written into ``mcpcap``; a reader refuses only a higher one."""

CLIENT_TO_SERVER: Final = "c2s"
SERVER_TO_CLIENT: Final = "s2c"

OPEN: Final = "open"
CHUNK: Final = "chunk"
CLOSE: Final = "close"
REWRITE: Final = "rewrite"
MASK: Final = "mask"
GAP: Final = "gap"
COMMENT: Final = "comment"

KINDS: Final = frozenset({OPEN, CHUNK, CLOSE, REWRITE, MASK, GAP, COMMENT})


class Record(NamedTuple):
    """One line of a capture.

    ``t`` is in microseconds since the header's ``started``. ``channel`` is an integer, or None for a comment on the
    whole capture. ``body`` is ``bytes`` for a chunk and a ``dict`` for every other kind.
    """

    t: int
    kind: str
    channel: int | None
    body: Any


class Header(NamedTuple):
    """The first line of a capture; only ``mcpcap``, ``run``, ``part`` and ``started`` need to be there."""

    run: str
    part: int
    started: str
    """RFC 3339 in UTC with microseconds, such as ``2026-11-29T10:00:00.000000Z``."""
    transport: str | None = None
    label: str | None = None
    argv: tuple[str, ...] = ()
    cwd: str | None = None
    by: str | None = None
    channels: dict[str, Any] | None = None
    """Part 2 and later: for each open channel its ``open`` body and ``offset``, for readers that lost early parts."""
    extra: dict[str, Any] | None = None
    """Fields this version does not know, kept as they were."""
