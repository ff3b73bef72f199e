"""Heads of HTTP that left changed: which headers are not as they were."""

import re
from collections.abc import Sequence
from typing import Final

from mcpsniff.wire.http1_parts import Head

_ROUTINE: Final = re.compile(
    r"(?i)content-length|transfer-encoding|content-encoding|mcp-method|mcp-name|mcp-param-.+|expect"
)
"""What has to be made true when the message in the body has changed."""
_LINE: Final = re.compile(rb"(?:\A|\n)([!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}):[ \t]*([^\r\n]*)")
STATUS: Final = "status"
TARGET: Final = "request line"


def changed_headers(before: Sequence[Head | None], after: Head | None, data: bytes) -> tuple[str, ...]:
    """The names of the headers that changed; of a piece of a head, those that ``data`` names."""
    head = next((one for one in before if one is not None), None)
    if after is None or head is None:
        known = set() if head is None else {(name.lower(), value.strip()) for name, value in head.headers}
        pairs = [(name.decode("ascii"), value.decode("latin-1").strip()) for name, value in _LINE.findall(data)]
        return tuple(dict.fromkeys(name for name, value in pairs if (name.lower(), value) not in known))
    found = [] if head.start_line == after.start_line else [TARGET if head.status is None else STATUS]
    old, new = _by_name(head), _by_name(after)
    found += [name for lowered, (name, _) in {**old, **new}.items() if _values(old, lowered) != _values(new, lowered)]
    return tuple(found)


def is_routine(members: Sequence[str], data: bytes) -> bool:
    """True if a head changed only where the body made that necessary."""
    return not unusual(members) if members else data.strip().isdigit() or not data


def unusual(members: Sequence[str]) -> tuple[str, ...]:
    """Those of the headers that somebody wanted to change."""
    return tuple(name for name in members if not _ROUTINE.fullmatch(name))


def _by_name(head: Head) -> dict[str, tuple[str, list[str]]]:
    found: dict[str, tuple[str, list[str]]] = {}
    for name, value in head.headers:
        found.setdefault(name.lower(), (name, []))[1].append(value)
    return found


def _values(headers: dict[str, tuple[str, list[str]]], name: str) -> list[str]:
    return headers[name][1] if name in headers else []
