"""The records of a capture file (``*.mcpcap``), as they travel between recorder, writer, reader and decoder.

A capture is newline-delimited JSON: a header object, then one record per line as ``[t, kind, channel, body]``.
Where t is later than the truth, this follows as a fifth element.
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
REDACT: Final = "redact"
HOLD: Final = "hold"
BRIEF_US: Final = 10_000
"""A hold of fewer microseconds for which nobody gives a reason is what an addon takes to think: no form shows it."""
AND: Final = " + "
"""Stands in `by` between the names of several who changed one message, or elements of one batch."""


class Field(NamedTuple):
    """One member of a record's body, or of the header: its type by name, whether it may be absent, its meaning."""

    name: str
    type: str
    optional: bool
    meaning: str


class Shape(NamedTuple):
    """What the records of one kind hold: the meaning of their channel and of their body's members."""

    meaning: str
    channel: str
    fields: tuple[Field, ...]


RECORD_FIELDS: Final[dict[str, Shape]] = {
    OPEN: Shape(
        "a channel begins: one direction of one pipe, connection or body",
        "its number, new in this run",
        (
            Field("kind", "text", False, "`stdin`, `stdout`, `stderr`, `tcp`, `http-request` or `http-response`"),
            Field("dir", "direction", False, "who sends on it: `c2s` client to server, `s2c` server to client"),
            Field("conn", "count", False, "the connection; channels of one connection share it"),
            Field("of", "count", True, "the channel whose bytes this one answers"),
            Field("meta", "object", True, "what is known of it: peer addresses, start line, raw header pairs"),
        ),
    ),
    CHUNK: Shape("bytes that one read returned", "where they arrived", ()),
    CLOSE: Shape(
        "a channel ended",
        "which; no chunk follows on it, but the close of the process may follow that of its stdout",
        (
            Field(
                "how",
                "text",
                False,
                "of a stream: `eof` the sender ended it, `aborted` the receiver did, `reset` reading failed; of the "
                "wrapped process, on its stdout channel: `exit`, `killed` by a signal, `error` it could not be started",
            ),
            Field("status", "integer", True, "exit status of the process; after `error`, of mcpsniff"),
            Field("signal", "integer", True, "number of the signal that ended the process"),
            Field("error", "text", True, "why, in words"),
            Field("sent", "list of text", True, "signals that reached the process through mcpsniff, in order"),
            Field("by", "text", True, "who caused the last of `sent`: `client`, or `mcpsniff` shutting down"),
        ),
    ),
    REWRITE: Shape(
        "what left instead of recorded bytes",
        "where the recorded bytes arrived",
        (
            Field("start", "count", False, "offset in the channel of the first byte replaced"),
            Field("length", "count", False, "how many recorded bytes were replaced; 0: inserted before `start`"),
            Field("data", "data", False, "the bytes that left; empty: dropped"),
            Field(
                "by",
                "text",
                False,
                "who did it: an addon, a rule, a fault, a break point, or `mcpsniff`; several with ` + ` between them",
            ),
            Field("why", "text", True, "why, in words"),
            Field("us", "count", True, "for how many microseconds the bytes were held before this left"),
        ),
    ),
    HOLD: Shape(
        "recorded bytes that left unchanged, but were held on purpose",
        "where they arrived",
        (
            Field("start", "count", False, "offset in the channel of the first byte held"),
            Field("length", "count", False, "how many bytes"),
            Field("us", "count", False, "for how many microseconds"),
            Field("by", "text", False, "who held them; several with ` + ` between them"),
            Field("why", "text", True, "why, in words"),
        ),
    ),
    MASK: Shape(
        "recorded bytes that stand as `*` because they were secret",
        "where",
        (
            Field("start", "count", False, "offset in the channel of the first masked byte"),
            Field("length", "count", False, "how many bytes, as many as the secret had"),
            Field("what", "text", False, "what it was: a header or member name"),
            Field("fp", "text", False, "HMAC-SHA256 of the secret with this store's salt, 64 bits in hex"),
        ),
    ),
    GAP: Shape(
        "bytes that passed and are not in the capture: our loss, admitted",
        "where; null: any channel, after a part that could not be read",
        (
            Field("bytes", "count", False, "how many"),
            Field(
                "why",
                "text",
                False,
                "`queue` or `disk`: it was slower than the traffic, or refused; `limit`; `secret`; `internal`: a bug "
                "of ours; `source`: the file that was imported does not have them; `damage`: the file that was "
                "redacted could not be read there",
            ),
        ),
    ),
    COMMENT: Shape(
        "a remark of a person or an addon",
        "what it is about; null: the whole capture",
        (
            Field("text", "text", False, "the remark"),
            Field("by", "text", False, "who made it"),
        ),
    ),
    REDACT: Shape(
        "`mcpsniff redact` has put something else in the place of what was there",
        "where; null: in the header, or in a comment on the whole capture",
        (
            Field("what", "text", False, "what it was, in a word or two: `email`, `token`"),
            Field("start", "count", True, "offset in the channel of the first byte of what stands there now"),
            Field("length", "count", True, "how many bytes of the channel that is"),
            Field("at", "text", True, "where in the message, head or record: `params.arguments.key`"),
        ),
    ),
}
"""The body of each kind of record. The reader checks against it, and the table in the reference is printed from it."""

KINDS: Final = frozenset(RECORD_FIELDS)

HEADER_FIELDS: Final = (
    Field("mcpcap", "count", False, f"major version of the format: {FORMAT_VERSION}"),
    Field("run", "text", False, "identifies the run; the same in all its parts"),
    Field("part", "count", False, "1, and one more for each part"),
    Field("started", "text", False, "when the run began, to which all `t` count: RFC 3339, UTC, microseconds"),
    Field("transport", "text", True, "`stdio`, `http` or `forward`"),
    Field("label", "text", True, "name of the server, for people"),
    Field("argv", "list of text", True, "the command that was wrapped"),
    Field("cwd", "text", True, "the folder it ran in"),
    Field("upstream", "text", True, "the URL of the server that was recorded; secrets in its query are masked"),
    Field("listen", "text", True, "the URL at which its clients reached it through mcpsniff"),
    Field("imported", "text", True, "the file of another program that the capture was made from"),
    Field("kept_by", "text", True, "the program that had written that file, with its version if the file has it"),
    Field("by", "text", True, "program and version that wrote the capture"),
    Field(
        "redacted",
        "object",
        True,
        "by which program, how many `values` at how many `places`, by `kinds`; `damage`: how many places of the source "
        "could not be read",
    ),
    Field(
        "channels", "object", True, "part 2 and later: body of `open` and `offset` of each channel open at its start"
    ),
)
"""The members of the header; a reader needs only those that are not optional."""


class Record(NamedTuple):
    """One line of a capture.

    ``t`` is in microseconds since the header's ``started``. ``channel`` is an integer, or None for a comment on the
    whole capture. ``body`` is ``bytes`` for a chunk and a ``dict`` for every other kind. ``at`` is when it was, if that
    was before ``t``: `t` never decreases in a capture, and what is held back for a while is written later.
    """

    t: int
    kind: str
    channel: int | None
    body: Any
    at: int | None = None


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
    upstream: str | None = None
    listen: str | None = None
    imported: str | None = None
    kept_by: str | None = None
    channels: dict[str, Any] | None = None
    """Part 2 and later: for each open channel its ``open`` body and ``offset``, for readers that lost early parts."""
    extra: dict[str, Any] | None = None
    """Fields this version does not know, kept as they were."""
    redacted: dict[str, Any] | None = None
    """Of a capture from which `mcpsniff redact` has removed something: what is said of it."""


def table_markdown() -> str:
    """Return the reference table of all records, in Markdown, as docs/capture-format.md shows it."""
    rows = ["| record | channel | member | type | meaning |", "|---|---|---|---|---|"]
    for kind, shape in RECORD_FIELDS.items():
        body = "bytes as *data*, in place of an object" if kind == CHUNK else "an object:"
        rows.append(f"| **{kind}** | {shape.channel} | {body} | | {shape.meaning} |")
        rows.extend(f"| | | {_cells(field)}" for field in shape.fields)
    return "\n".join(rows) + "\n"


def header_table_markdown() -> str:
    """Return the table of the header's members, in Markdown."""
    rows = ["| member | type | meaning |", "|---|---|---|"]
    rows.extend(f"| {_cells(field)}" for field in HEADER_FIELDS)
    return "\n".join(rows) + "\n"


def _cells(field: Field) -> str:
    optional = ", may be absent" if field.optional else ""
    return f"`{field.name}` | {field.type}{optional} | {field.meaning} |"
