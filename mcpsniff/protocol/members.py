"""Name the members in which two JSON values differ, as people read them: ``params.arguments.city``."""

from collections.abc import Iterator
from typing import Any, Final

SHOWN: Final = 20
"""Members that are named at most."""
DEEPEST: Final = 100
"""Levels that are looked into; what differs below is named by the level above."""
_ABSENT: Final = object()
_NAMES: Final = ("name", "uri", "uriTemplate", "id", "taskId")
"""Members by which the elements of MCP's lists are told apart."""


def changed_members(before: Any, after: Any) -> tuple[str, ...]:
    """The places at which ``after`` says something else than ``before``, at most SHOWN of them.

    An element of a list is named by its place in brackets, or by its name where all elements have one. A member that
    is gone or new is named like one that changed. Texts are as they were captured.
    """
    found: list[str] = []
    for path in _places("", before, after, 0):
        if len(found) == SHOWN:
            return (*found[:-1], "…")
        found.append(path)
    return tuple(found)


def _places(path: str, before: Any, after: Any, depth: int) -> Iterator[str]:
    if depth < DEEPEST and isinstance(before, dict) and isinstance(after, dict):
        for name in dict.fromkeys((*before, *after)):
            inner = f"{path}.{name}" if path else str(name)
            yield from _places(inner, before.get(name, _ABSENT), after.get(name, _ABSENT), depth + 1)
    elif depth < DEEPEST and isinstance(before, list) and isinstance(after, list):
        yield from _elements(path, before, after, depth)
    elif type(before) is not type(after) or before != after:  # 1, 1.0 and true are equal for Python
        yield path or "all of it"


def _elements(path: str, before: list[Any], after: list[Any], depth: int) -> Iterator[str]:
    for name in _NAMES:
        old, new = _by(name, before), _by(name, after)
        if old is not None and new is not None:
            for key in dict.fromkeys((*old, *new)):
                yield from _places(f"{path}[{key}]", old.get(key, _ABSENT), new.get(key, _ABSENT), depth + 1)
            if list(old) != list(new) and old.keys() == new.keys():
                yield f"{path} (order)"
            return
    for place in range(max(len(before), len(after))):
        one = before[place] if place < len(before) else _ABSENT
        other = after[place] if place < len(after) else _ABSENT
        yield from _places(f"{path}[{place}]", one, other, depth + 1)


def _by(name: str, elements: list[Any]) -> dict[str, Any] | None:
    """The elements by the string under ``name``; None if one has none, or two have the same."""
    found: dict[str, Any] = {}
    for element in elements:
        key = element.get(name) if isinstance(element, dict) else None
        if not isinstance(key, str) or key in found:
            return None
        found[key] = element
    return found
