"""Lines of a capture to headers and records: one line at a time, no files.

docs/capture-format.md is the reference. What decodes is checked against `records.RECORD_FIELDS`; what does not fit
raises MalformedError, whose text says why in a few words for the reader's report.
"""

import re
from binascii import Error as Base64Error
from binascii import a2b_base64
from datetime import UTC, datetime
from typing import Any, Final

import orjson

from mcpsniff.capture.records import (
    CHUNK,
    CLIENT_TO_SERVER,
    COMMENT,
    FORMAT_VERSION,
    GAP,
    HEADER_FIELDS,
    KINDS,
    RECORD_FIELDS,
    REDACT,
    SERVER_TO_CLIENT,
    Header,
    Record,
)

LARGEST: Final = 2**63 - 1
"""No number in a capture is larger; offsets and times stay far below."""

LATEST: Final = 100 * 366 * 86_400 * 1_000_000
"""A ``t`` beyond a century is damage."""

_STARTED = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII)


class MalformedError(ValueError):
    """A line does not hold what the format asks for."""


class NewerVersionError(MalformedError):
    """A header names a major version above ours; ``version`` is the one it names."""

    def __init__(self, version: int) -> None:
        super().__init__(f"written by a newer version ({version})")
        self.version = version


def decode_data(value: object) -> bytes:
    """Return the bytes that a string or ``{"b64": …}`` stands for; raises MalformedError for anything else."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict) and isinstance(text := value.get("b64"), str):
        try:
            return a2b_base64(text, strict_mode=True) if text else b""
        except (Base64Error, ValueError):
            raise MalformedError("its data is not base64") from None
    raise MalformedError("its data is neither text nor base64")


def decode_header(line: bytes) -> tuple[Header, list[str]]:
    """Return the header that ``line`` holds, and what had to be passed over in it.

    Raises NewerVersionError, or MalformedError when it is no header (of any version).
    """
    row = load(line)
    if not isinstance(row, dict) or "mcpcap" not in row:
        raise MalformedError("it has no `mcpcap`")
    version = row["mcpcap"]
    if type(version) is not int or version < 1:
        raise MalformedError("`mcpcap` is not a version number")
    if version > FORMAT_VERSION:
        raise NewerVersionError(version)
    known: dict[str, Any] = {}
    notes: list[str] = []
    for field in HEADER_FIELDS[1:]:
        if field.name not in row:
            if not field.optional:
                raise MalformedError(f"it has no `{field.name}`")
            continue
        try:
            known[field.name] = _header_value(field.name, field.type, row[field.name])
        except MalformedError as error:
            if not field.optional:
                raise
            notes.append(f"the header's {error}, passed over")
    names = {field.name for field in HEADER_FIELDS}
    extra = {name: value for name, value in row.items() if name not in names}
    return Header(**known, extra=extra or None), notes


def decode_row(row: object, notes: list[str]) -> Record | None:
    """Return the record that a decoded line holds, or None for a kind that this version does not know.

    Optional members of a wrong type are dropped and named in ``notes``. ``t`` and ``at`` are checked for their type
    only. Raises MalformedError when the rest does not fit.
    """
    if not isinstance(row, list) or len(row) < 2 or not isinstance(row[1], str):
        raise MalformedError("it is not a record")
    kind = row[1]
    if kind not in KINDS:
        return None
    if len(row) < 4:
        raise MalformedError("it is not a whole record")
    t, channel, body = row[0], row[2], row[3]
    if type(t) is not int:
        raise MalformedError("its time is not an integer")
    if not _is_count(channel) and not (channel is None and kind in (COMMENT, REDACT, GAP)):
        raise MalformedError("its channel is not a channel number")
    at = row[4] if len(row) > 4 and type(row[4]) is int else None
    return Record(t, kind, channel, decode_data(body) if kind == CHUNK else _decode_body(kind, body, notes), at)


def load(line: bytes) -> Any:
    """Return the JSON value in ``line``; raises MalformedError when it is none."""
    try:
        return orjson.loads(line)
    except (orjson.JSONDecodeError, RecursionError):
        raise MalformedError("it is not JSON") from None


def _decode_body(kind: str, body: object, notes: list[str]) -> dict[str, Any]:
    """Check a body against the table; bytes among its members are decoded, members not in the table are kept."""
    if not isinstance(body, dict):
        raise MalformedError(f"the body of its {kind} is not an object")
    for field in RECORD_FIELDS[kind].fields:
        name = field.name
        if name not in body:
            if not field.optional:
                raise MalformedError(f"its {kind} has no `{name}`")
        elif field.type == "data":
            body[name] = decode_data(body[name])
        elif not _fits(field.type, body[name]):
            if not field.optional:
                raise MalformedError(f"`{name}` of its {kind} is not {_article(field.type)}")
            notes.append(f"`{name}` of its {kind} is not {_article(field.type)}, passed over")
            del body[name]
    return body


def _fits(expected: str, value: object) -> bool:
    match expected:
        case "text":
            return isinstance(value, str)
        case "count":
            return _is_count(value)
        case "integer":
            return _is_integer(value)
        case "list of text":
            return isinstance(value, list) and all(isinstance(word, str) for word in value)
        case "direction":
            return value in {CLIENT_TO_SERVER, SERVER_TO_CLIENT} if isinstance(value, str) else False
        case _:
            return isinstance(value, dict)


def _is_integer(value: object) -> bool:
    return type(value) is int and -LARGEST <= value <= LARGEST


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value <= LARGEST


def _article(expected: str) -> str:
    return f"an {expected}" if expected[0] in "aeio" else f"a {expected}" if expected != "text" else expected


def _header_value(name: str, expected: str, value: Any) -> Any:
    """Return a header member as `Header` holds it; raises MalformedError."""
    if not _fits(expected, value):
        raise MalformedError(f"`{name}` is not {_article(expected)}")
    if name == "part" and value < 1:
        raise MalformedError("`part` is below 1")
    if name == "started" and not _is_instant(value):
        raise MalformedError("`started` is not a time in RFC 3339")
    return tuple(value) if isinstance(value, list) else value


def _is_instant(text: str) -> bool:
    try:
        return bool(_STARTED.fullmatch(text) and datetime.fromisoformat(text).astimezone(UTC))
    except (ValueError, OverflowError):
        return False
