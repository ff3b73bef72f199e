"""Differences as people read them and as programs do: lines with roles (`mcpsniff.transcript.pretty`), and plain dicts.

Whatever was captured is made visible before it is in a line, and long values are cut to where they differ.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from mcpsniff.protocol.reading import Unread
from mcpsniff.replay.compare import ABSENT, ADDED, CHANGED, MISSING, ORDER, TYPE, UNREAD, Difference, kind_of
from mcpsniff.replay.normalise import path_text
from mcpsniff.replay.normalise_text import common
from mcpsniff.transcript.pretty import Line
from mcpsniff.transcript.safe import cells, visible_json

OLD: Final = "removed"
NEW: Final = "added"
OTHER: Final = "changed"

MOST: Final = 20
"""Differences of one answer that are shown."""
LONGEST: Final = 2_000
"""Characters of JSON up to which a value is given whole to a program."""
BEFORE: Final = 30
"""Characters that are shown before the place where two long texts differ."""

LONGEST_NAME: Final = 60
"""Characters of the name of an element."""
_NAMES: Final = ("name", "uri", "uriTemplate", "taskId", "id")
MARKS: Final = {ADDED: "+", MISSING: "-", CHANGED: "~", TYPE: "~", ORDER: "~", UNREAD: "?"}
_ROLES: Final = {ADDED: NEW, MISSING: OLD}
_IN_WORDS: Final = {ORDER: "the same elements in another order", UNREAD: "nested too deep, or not whole: not compared"}


def difference_lines(
    differences: Sequence[Difference], width: int, *, indent: int = 0, most: int = MOST
) -> Iterator[Line]:
    """Differences as lines of at most about ``width`` cells, the first ``most`` of them.

    ``- path: value`` is only in the recorded value, ``+ path: value`` only in the live one, and of ``~ path`` both
    values are shown, the recorded one first.
    """
    for difference in differences[:most]:
        yield from _difference(difference, max(width - indent, 20), indent)
    if len(differences) > most:
        yield [("", " " * indent), ("remark", f"and {len(differences) - most:,} more differences")]


def _difference(difference: Difference, width: int, indent: int) -> Iterator[Line]:
    kind, start = difference.kind, ("", " " * indent)
    head = f"{MARKS[kind]} {visible_json(_cut_path(path_text(difference.path), width - 6))}"
    role = _ROLES.get(kind, OTHER)
    if kind in _IN_WORDS:
        yield [start, (role, head), ("plain", f": {_IN_WORDS[kind]}")]
        return
    if kind in _ROLES:
        value = difference.live if kind == ADDED else difference.recorded
        head += _name(difference, value)
        yield [start, (role, head), ("plain", ": " + brief(value, max(width - cells(head) - 2, 30)))]
        return
    old, new = both(difference, width - 4)
    if kind == TYPE:
        old, new = f"{old} ({kind_of(difference.recorded)})", f"{new} ({kind_of(difference.live)})"
    if cells(head) + cells(old) + cells(new) + 5 <= width:
        yield [start, (role, head), ("", ": "), (OLD, old), ("remark", " → "), (NEW, new)]
        return
    yield [start, (role, head)]
    yield [start, (OLD, f"  - {old}")]
    yield [start, (NEW, f"  + {new}")]


def _name(difference: Difference, value: Any) -> str:
    """What an element of a list is called, which its index does not say."""
    if not (difference.path and isinstance(difference.path[-1], int) and isinstance(value, Mapping)):
        return ""
    found = next((value[name] for name in _NAMES if isinstance(value.get(name), str)), None)
    return "" if found is None else f" ({brief(found, LONGEST_NAME)})"


def both(difference: Difference, limit: int) -> tuple[str, str]:
    """Both values as JSON on one line; of long texts the part where they differ. Safe to show."""
    one, other = difference.recorded, difference.live
    if isinstance(one, str) and isinstance(other, str) and max(len(one), len(other)) > limit:
        start = max(common(one, other) - BEFORE, 0)
        room = limit - 2
        return _excerpt(one, start, room), _excerpt(other, start, room)
    return brief(one, limit), brief(other, limit)


def _excerpt(text: str, start: int, room: int) -> str:
    piece = text[start : start + room]
    return ("…" if start else "") + visible_json(_quoted(piece)) + ("…" if start + room < len(text) else "")


def brief(value: Any, limit: int) -> str:
    """A value as JSON on one line of at most about ``limit`` characters, the rest cut off. Safe to show."""
    pieces: list[str] = []
    left = limit
    for piece in _pieces(value, limit):
        pieces.append(piece)
        left -= len(piece)
        if left < 0:
            text = "".join(pieces)
            return visible_json(text[: max(limit - 1, 1)]) + "…"
    return visible_json("".join(pieces))


def _pieces(value: Any, limit: int) -> Iterator[str]:
    """The JSON of a value bit by bit, without recursion; it is asked for no more than is needed."""
    stack: list[Iterator[tuple[str, Any]]] = [iter([("", value)])]
    ends = [""]
    while stack:
        item = next(stack[-1], None)
        if item is None:
            stack.pop()
            yield ends.pop()
            continue
        before, node = item
        yield before
        if isinstance(node, Unread):
            yield "…"
        elif isinstance(node, dict):
            yield "{"
            stack.append(_members(node, limit))
            ends.append("}")
        elif isinstance(node, list):
            yield "["
            stack.append((", " if index else "", below) for index, below in enumerate(node))
            ends.append("]")
        else:
            yield _scalar(node, limit)


def _members(node: dict[str, Any], limit: int) -> Iterator[tuple[str, Any]]:
    for index, (name, below) in enumerate(node.items()):
        yield f"{', ' if index else ''}{_quoted(name[: limit + 1])}: ", below


def _scalar(node: Any, limit: int) -> str:
    if isinstance(node, str):
        return _quoted(node[: limit + 1])
    if node is None or isinstance(node, bool):
        return {None: "null", True: "true", False: "false"}[node]
    try:
        return str(node)[: limit + 1]
    except ValueError:  # an integer of more digits than Python writes
        return "(a number of thousands of digits)"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _cut_path(text: str, limit: int) -> str:
    """A path that is not too long to read: its end says most."""
    limit = max(limit, 20)
    return text if len(text) <= limit else "…" + text[1 - limit :]


def as_dict(difference: Difference, names: tuple[str, str] = ("recorded", "live")) -> dict[str, Any]:
    """A difference for programs: ``path``, ``kind``, and the values under ``names``.

    ``recorded`` and ``live`` are there where there is a value and it is short; of a longer one, and of one that is no
    plain JSON, there is ``recorded_cut`` or ``live_cut``, the beginning of its text. ``live_path`` is there where the
    place in the live value is another.
    """
    found: dict[str, Any] = {"path": path_text(difference.path), "kind": difference.kind}
    if difference.live_path != difference.path:
        found[f"{names[1]}_path"] = path_text(difference.live_path)
    for name, value in zip(names, (difference.recorded, difference.live), strict=True):
        if value is not ABSENT:
            found |= plain_value(name, value)
    return found


def plain_value(name: str, value: Any) -> dict[str, Any]:
    """A value under its name if it is short plain JSON, else its beginning as text under ``NAME_cut``."""
    text = brief(value, LONGEST)
    if len(text) < LONGEST:
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            pass
        else:
            return {name: value}
    return {f"{name}_cut": text}
