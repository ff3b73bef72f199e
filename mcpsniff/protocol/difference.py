"""What has to be done to one JSON value to make it another: the least, so that what stays equal can keep its text.

Equal means written alike: 1, 1.0 and true differ, the order of members does not count, an element of an array that has
moved is still the same element.
"""

import json
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from math import isnan
from typing import Any, Final

import orjson

from mcpsniff.protocol.outline import PATH_DEPTH
from mcpsniff.protocol.reading import Unread

ARRAY_DEPTH: Final = 8
"""Elements of arrays inside of so many arrays are compared one by one in their order: looking for those that have
moved takes as long as writing the array, at each level."""
QUICK_DEPTH: Final = 8
"""So deep, two containers are first compared as a whole, which is far quicker where they are alike."""
LABELS: Final = ("name", "uri", "uriTemplate", "id")
"""Members that tell which of several objects one is, also when it has changed."""


@dataclass(slots=True)
class Put:
    """This value takes the place."""

    value: Any


@dataclass(slots=True)
class Members:
    """What becomes of the members of an object; those that are not named stay."""

    changed: "dict[str, Plan]" = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    added: list[tuple[str | None, str, Any]] = field(default_factory=list)
    """The member behind which it comes (None: at the beginning), its name and its value."""


@dataclass(slots=True)
class Elements:
    """The elements that an array has afterwards: the place of an old one and its change, or a new one (None, Put)."""

    sequence: "list[tuple[int | None, Plan | None]]"

    @property
    def changes(self) -> "dict[int, Plan]":
        """What becomes of the old elements, by their places."""
        return {at: plan for at, plan in self.sequence if at is not None and plan is not None}


type Plan = Put | Members | Elements


def difference(old: Any, new: Any, depth: int = 0, arrays: int = 0) -> Plan | None:
    """What makes ``new`` of ``old``; None if nothing has to be done. ``depth`` and ``arrays``: how deep they stand.

    Raises TypeError or ValueError where JSON has no such value as ``new``.
    """
    if isinstance(old, Unread) != isinstance(new, Unread):
        return Put(new)
    if depth > PATH_DEPTH:
        return None if _key(old) == _key(new) else Put(new)
    if 0 < depth <= QUICK_DEPTH and isinstance(old, dict | list) and _key(old) == _key(new):
        return None
    if isinstance(old, dict) and isinstance(new, dict):
        return _members(old, new, depth, arrays)
    if isinstance(old, list) and isinstance(new, list | tuple):
        return _elements(old, new, depth, arrays)
    return None if _is_same(old, new) else Put(new)


def _is_same(old: Any, new: Any) -> bool:
    """True if two scalars are written alike."""
    if isinstance(old, float) and isinstance(new, float) and isnan(old):
        return isnan(new)
    if isinstance(old, str) and isinstance(new, str):
        return old == new  # str subclasses, such as members of an enumeration, are written as what they say
    return type(old) is type(new) and bool(old == new)


def _members(old: dict[str, Any], new: dict[str, Any], depth: int, arrays: int) -> Members | None:
    plan = Members(removed={name for name in old if name not in new})
    before: str | None = None
    for name, value in new.items():
        if not isinstance(name, str):
            raise TypeError(f"the name of a member is a string, not {name!r}")
        if name not in old:
            plan.added.append((before, name, value))
            continue
        before = name
        change = difference(old[name], value, depth + 1, arrays)
        if change is not None:
            plan.changed[name] = change
    return plan if plan.removed or plan.added or plan.changed else None


def _elements(old: list[Any], new: Sequence[Any], depth: int, arrays: int) -> Elements | None:
    same: dict[int, int] = {}
    """By the place of a new element that of the old one that it is."""
    was = dict(zip(range(len(new)), range(len(old)), strict=False))
    """By the place of a new element that of the old one that it was."""
    if arrays < ARRAY_DEPTH and (len(old), len(new)) != (1, 1):
        left = set(range(len(old)))
        same = _paired(_key, old, new, left, range(len(new)))
        was = _paired(_rest, old, new, left, [at for at in range(len(new)) if at not in same])
        was |= _paired(_label, old, new, left, [at for at in range(len(new)) if at not in same and at not in was])
        was |= zip([at for at in range(len(new)) if at not in same and at not in was], sorted(left), strict=False)
    sequence: list[tuple[int | None, Plan | None]] = []
    for at, value in enumerate(new):
        if at in same:
            sequence.append((same[at], None))
        elif at in was:
            sequence.append((was[at], difference(old[was[at]], value, depth + 1, arrays + 1)))
        else:
            sequence.append((None, Put(value)))
    if len(old) == len(new) and all(at == place and not change for place, (at, change) in enumerate(sequence)):
        return None
    return Elements(sequence)


def _paired(
    key_of: Callable[[Any], Hashable], old: list[Any], new: Sequence[Any], left: set[int], of: Iterable[int]
) -> dict[int, int]:
    """By their places, new elements and old ones that have a key in common; these are no longer ``left``."""
    places: defaultdict[Hashable, deque[int]] = defaultdict(deque)
    for place in sorted(left):
        places[key_of(old[place])].append(place)
    pairs = {}
    for at in of:
        key = key_of(new[at])
        if key is not None and places.get(key):
            pairs[at] = place = places[key].popleft()
            left.discard(place)
    return pairs


def _key(value: Any) -> Hashable:
    """What two values have in common if they are written alike, with their members in the same order."""
    try:
        key = orjson.dumps(value)
    except TypeError:
        return json.dumps(value, default=repr)
    # orjson writes NaN as null.
    return json.dumps(value, default=repr) if b"null" in key else key


def _rest(value: Any) -> Hashable:
    """What several objects have in common of which only the label has changed."""
    rest = {name: inner for name, inner in value.items() if name not in LABELS} if isinstance(value, dict) else None
    return _key(rest) if rest else None


def _label(value: Any) -> Hashable:
    """By what an object is known among others like it."""
    if isinstance(value, dict):
        for name in LABELS:
            if isinstance(value.get(name), str):
                return name, value[name]
    return None
