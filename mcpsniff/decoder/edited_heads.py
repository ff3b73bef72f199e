"""Heads of HTTP that left changed: which headers are not as they were."""

import re
from collections.abc import Sequence
from typing import Final

from mcpsniff.wire.frames import Span
from mcpsniff.wire.http1_parts import Head

_ROUTINE: Final = re.compile(
    r"(?i)content-length|transfer-encoding|content-encoding|mcp-method|mcp-name|mcp-param-.+|expect"
)
"""What has to be made true when the message in the body has changed."""
_LINE: Final = re.compile(rb"(?:\A|\n)([!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}):[ \t]*([^\r\n]*)")
_STATUS: Final = re.compile(rb"HTTP/1\.[01] ([0-9]{3})")
STATUS: Final = "status"
TARGET: Final = "request line"


def changed_headers(
    before: Sequence[Head | None], after: Head | None, data: bytes, place: Span | None = None
) -> tuple[str, ...]:
    """The names of the headers that changed, and the status before and after it.

    Of a piece of a head, where ``data`` left in the place of ``place``, those that either of them names.
    """
    head = next((one for one in before if one is not None), None)
    if after is None or head is None:
        lost = [] if head is None or place is None else _within(head, place)
        known = set() if head is None else {(name.lower(), value.strip()) for name, value in head.headers}
        pairs = [(name.decode("ascii"), value.decode("latin-1").strip()) for name, value in _LINE.findall(data)]
        stays = {(name.lower(), value) for name, value in pairs}
        names = [name for name, value in pairs if (name.lower(), value) not in known]
        names += [name for name, value in lost if (name.lower(), value.strip()) not in stays]
        status = _STATUS.match(data)
        first = [] if head is None or status is None else _start(head, int(status[1]))
        return tuple(dict.fromkeys([*first, *names]))
    found = [] if head.start_line == after.start_line else _start(head, after.status)
    old, new = _by_name(head), _by_name(after)
    found += [name for lowered, (name, _) in {**old, **new}.items() if _values(old, lowered) != _values(new, lowered)]
    return tuple(found)


def is_routine(members: Sequence[str], data: bytes) -> bool:
    """True if a head changed only where the body made that necessary."""
    return not unusual(members) if members else data.strip().isdigit() or not data


def unusual(members: Sequence[str]) -> tuple[str, ...]:
    """Those of the headers that somebody wanted to change."""
    return tuple(name for name in members if not _ROUTINE.fullmatch(name))


def _start(head: Head, status: int | None) -> list[str]:
    """How the first line changed."""
    if head.status is None or status is None:
        return [TARGET]
    return [f"{STATUS} {head.status} → {status}" if status != head.status else STATUS]


def _within(head: Head, place: Span) -> list[tuple[str, str]]:
    """The headers that lie in ``place``, as far as it is spelt as heads mostly are: then their places are known."""
    (_, start, stop), *more = head.spans or (place,)
    lines = [len(name) + len(": ") + len(value) + len("\r\n") for name, value in head.headers]
    if more or len(head.start_line) + 2 + sum(lines) + 2 != stop - start:
        return []
    found, at = [], start + len(head.start_line) + 2
    for header, length in zip(head.headers, lines, strict=True):
        if place.start <= at and at + length <= place.stop:
            found.append(header)
        at += length
    return found


def _by_name(head: Head) -> dict[str, tuple[str, list[str]]]:
    found: dict[str, tuple[str, list[str]]] = {}
    for name, value in head.headers:
        found.setdefault(name.lower(), (name, []))[1].append(value)
    return found


def _values(headers: dict[str, tuple[str, list[str]]], name: str) -> list[str]:
    return headers[name][1] if name in headers else []
