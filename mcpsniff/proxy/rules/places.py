"""The places in a message's body that a pattern names."""

from collections.abc import Iterator
from typing import Any

from mcpsniff.protocol.paths import ANY, DEEP, Pattern, Wild


def places(body: Any, pattern: Pattern, *, making: bool = False) -> Iterator[tuple[Any, Any, tuple[str, ...]]]:
    """Each place once: its container, its key or index there, and the names of members that are missing below it.

    A pattern that ends with ``**`` names none. ``making``: also places that are not there, where only objects and their
    members are missing, and no ``**`` is on the way. Nothing may be changed while it is asked for more.
    """
    steps = pattern.steps
    makes = making and Wild(DEEP) not in steps
    seen: set[tuple[int, int]] = set()
    waiting = [(body, 0)]
    while waiting:
        value, at = waiting.pop()
        if (id(value), at) in seen or not isinstance(value, dict | list):
            continue
        seen.add((id(value), at))
        if at == len(steps):
            continue
        step = steps[at]
        if step == Wild(DEEP):
            waiting.append((value, at + 1))
            waiting += [(inner, at) for inner in reversed(list(value.values() if isinstance(value, dict) else value))]
            continue
        keys = _keys(value, step)
        if at + 1 == len(steps):
            yield from ((value, key, ()) for key in keys)
        else:
            waiting += [(value[key], at + 1) for key in reversed(keys)]
        rest = tuple(name for name in steps[at:] if isinstance(name, str))
        if not keys and makes and isinstance(value, dict) and len(rest) == len(steps) - at:
            yield value, rest[0], rest[1:]


def removed(body: Any, pattern: Pattern) -> int:
    """Remove what is at a pattern's places; how many that were."""
    found = [(container, key) for container, key, _ in places(body, pattern)]
    for container, key in sorted(found, key=lambda place: -place[1] if isinstance(place[1], int) else 0):
        del container[key]
    return len(found)


def values_in(body: Any, members: tuple[str, ...]) -> Iterator[tuple[Any, Any, Any]]:
    """All values below some members of a body: container, key and value."""
    waiting: list[Any] = [body[name] for name in members if name in body] if isinstance(body, dict) else []
    while waiting:
        container = waiting.pop()
        if not isinstance(container, dict | list):
            continue
        for key, value in list(container.items() if isinstance(container, dict) else enumerate(container)):
            yield container, key, value
            waiting.append(value)


def leads_in(pattern: Pattern) -> str:
    """The member of the message that a pattern begins with; empty if it may be any."""
    first = pattern.steps[0]
    return first if isinstance(first, str) else ""


def _keys(value: Any, step: Any) -> list[Any]:
    if step == Wild(ANY):
        return list(value) if isinstance(value, dict) else list(range(len(value)))
    if isinstance(value, dict):
        return [step] if isinstance(step, str) and step in value else []
    return [step] if isinstance(step, int) and step < len(value) else []
