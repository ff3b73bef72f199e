"""Change a JSON text so that it says something else, with the least change of the text.

What stays equal keeps its bytes: key order, white space, escapes, 1.0 that is not 1, bytes that are no UTF-8, what was
too deep to be read. Of a name that stands several times in an object the last one counts, as in every SDK: it is
changed, and others that say the same; a name that is removed goes wherever it stands. What is new is written compactly,
with the white space around it that its neighbours have. Takes linear time.
"""

import json
import re
import threading
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, cast

import orjson

from mcpsniff.protocol.difference import Elements, Members, Plan, Put, difference
from mcpsniff.protocol.outline import name_of
from mcpsniff.protocol.reading import JsonReader, Unread

NOT_READ: Final = "what is nested too deeply to be read stays where it is"
_PLAIN: Final = (str, int, float, dict, list)
_DECODER: Final = json.JSONDecoder(strict=False)
_WHITE: Final = re.compile(r"[ \t\r\n]*+")
_NAME: Final = re.compile(r'("[^"\\]*+(?:\\.[^"\\]*+)*+")([ \t\r\n]*+:[ \t\r\n]*+)', re.DOTALL)
_SIMPLE: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[-+.\w]++', re.DOTALL)
_MARK: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\]]', re.DOTALL)
_COMMA: Final = re.compile(r"[ \t\r\n]*+,?[ \t\r\n]*+")


class _Reading(threading.local):
    """A reader per thread, which takes longer to make than most texts to be read."""

    def __init__(self) -> None:
        self.reader = JsonReader()


_READING: Final = _Reading()


class _UnreadError(ValueError):
    """A part that was not read, since it is too deep, stands elsewhere than where it came."""


def text_of(value: Any) -> bytes:
    """A value as compact JSON. Raises TypeError or ValueError where JSON has no such value."""
    try:
        text = orjson.dumps(value, _plain, orjson.OPT_PASSTHROUGH_SUBCLASS)
        if b"null" in text:  # orjson writes NaN so
            json.dumps(value, allow_nan=False, default=str)
    except TypeError as error:
        if isinstance(error.__cause__, _UnreadError):
            raise error.__cause__ from None
        return _text_of(value)  # an integer beyond 64 bits, half of a surrogate pair, very deep: orjson has none
    return text


def patched(raw: bytes, value: Any) -> bytes:
    """``raw`` changed so that it says ``value``; ``raw`` itself if it does already, or if ``value`` is None.

    Raises TypeError or ValueError where JSON has no such value.
    """
    if value is None or _says(raw, value):
        return raw
    said = _READING.reader.read(raw).value
    if said is None:
        return text_of(value)
    try:
        plan = difference(said, value)
    except RecursionError:
        raise ValueError("the value is nested too deeply") from None
    if plan is None:
        return raw
    # Bytes that are no UTF-8 keep their places.
    text = raw.decode(errors="surrogateescape")
    try:
        return _applied(text, plan).encode(errors="surrogateescape")
    except _NoPlaceError:
        return text_of(value)


def _says(raw: bytes, value: Any) -> bool:
    """True if ``raw`` says just this, as far as that is found out quickly."""
    try:
        text = orjson.dumps(value)
        if text == raw and b"null" not in raw:
            return True
        said = orjson.loads(raw)
        # orjson writes NaN as null; and where only values are compared, 1.0 is 1.
        return (text == raw or text == orjson.dumps(said)) and bool(said == value) and not isinstance(value, Unread)
    except (TypeError, ValueError, RecursionError):
        return False


def _plain(value: Any) -> Any:
    if isinstance(value, Unread):
        raise _UnreadError(NOT_READ)
    for kind in _PLAIN:
        if isinstance(value, kind):
            return cast("Any", kind)(value)
    raise TypeError(f"JSON has no {type(value).__name__}")


def _text_of(value: Any) -> bytes:
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except RecursionError:
        raise ValueError("the value is nested too deeply") from None
    if _has_unread(value):
        raise _UnreadError(NOT_READ)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def _has_unread(value: Any) -> bool:
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, Unread):
            return True
        if isinstance(found, dict | list | tuple):
            waiting.extend(found.values() if isinstance(found, dict) else found)
    return False


# -- where the parts stand ---------------------------------------------------------------------------------------------


class _NoPlaceError(Exception):
    """The text has no place for a change."""


@dataclass(slots=True)
class _Item:
    """A value in the text; of a member, what begins with its name."""

    start: int
    value: int
    stop: int
    name: str = ""
    colon: str = ""
    """From the end of the name to the value."""
    items: "list[_Item] | None" = None
    """If it is a container that is changed inside: what is in it."""


def _applied(text: str, plan: Plan) -> str:
    start = _skip(text, 1 if text.startswith("\ufeff") else 0)
    whole = _located(text, start, plan)
    out = [text[:start]]
    _write(text, whole, plan, out)
    out.append(text[whole.stop :])
    return "".join(out)


def _located(text: str, at: int, plan: Plan | None) -> _Item:
    """The value that begins at ``at``, with what is in it if that is changed."""
    bracket = text[at : at + 1]
    if bracket == "{" and isinstance(plan, Members):
        return _object(text, at, plan)
    if bracket == "[" and isinstance(plan, Elements):
        return _array(text, at, plan)
    return _Item(at, at, _end(text, at))


def _object(text: str, at: int, plan: Members) -> _Item:
    items: list[_Item] = []
    position = _skip(text, at + 1)
    while text[position : position + 1] not in ("}", ""):
        found = _NAME.match(text, position)
        if found is None:
            raise _NoPlaceError
        name, colon = name_of(found[1]), found[2]
        value = found.end()
        change = plan.changed.get(name)
        if change is None:
            item = _Item(position, value, _end(text, value), name, colon)
        else:
            inside = _located(text, value, change)
            item = _Item(position, value, inside.stop, name, colon, inside.items)
        items.append(item)
        position = _skip(text, item.stop, _COMMA)
    return _Item(at, at, position + 1, items=items)


def _array(text: str, at: int, plan: Elements) -> _Item:
    items: list[_Item] = []
    position = _skip(text, at + 1)
    changes = plan.changes
    while text[position : position + 1] not in ("]", ""):
        item = _located(text, position, changes.get(len(items)))
        items.append(item)
        position = _skip(text, item.stop, _COMMA)
    return _Item(at, at, position + 1, items=items)


def _skip(text: str, at: int, what: re.Pattern[str] = _WHITE) -> int:
    found = what.match(text, at)
    return at if found is None else found.end()


def _end(text: str, at: int) -> int:
    """Where the value ends that begins at ``at``."""
    simple = _SIMPLE.match(text, at)
    if simple is not None:
        return simple.end()
    try:
        return _DECODER.raw_decode(text, at)[1]
    except (ValueError, RecursionError):
        pass  # very deep, or with a number of very many digits
    depth = 0
    for mark in _MARK.finditer(text, at):
        depth += 1 if mark[0] in ("{", "[") else -1 if mark[0] in ("}", "]") else 0
        if depth == 0:
            return mark.end()
    raise _NoPlaceError


# -- writing -----------------------------------------------------------------------------------------------------------


class _Step(NamedTuple):
    """What stands next in a container that is changed inside."""

    at: int | None
    """The place that it had; None: it is new, and `plan` puts it there."""
    plan: Plan | None = None
    name: str | None = None
    """Of a new member."""


def _write(text: str, item: _Item, plan: Plan | None, out: list[str], *, spaced: bool = False) -> None:
    """Write a value as ``plan`` wants it; ``spaced``: members around it have a space behind their colons."""
    if plan is None:
        out.append(text[item.value : item.stop])
    elif isinstance(plan, Put):
        out.append(text_of(plan.value).decode())
    elif item.items is None:
        raise _NoPlaceError
    elif isinstance(plan, Members):
        _write_inside(text, item, item.items, _of_members(text, item.items, plan), out, spaced=spaced)
    else:
        _write_inside(text, item, item.items, [_Step(*step) for step in plan.sequence], out, spaced=spaced)


def _of_members(text: str, items: list[_Item], plan: Members) -> list[_Step]:
    last = {item.name: at for at, item in enumerate(items)}
    added: dict[int, list[_Step]] = {}
    changed = dict(plan.changed)
    for anchor, name, value in plan.added:
        if name in last:  # in an object that was read in part only
            changed[name] = Put(value)
        else:
            place = -1 if anchor is None else last.get(anchor, len(items) - 1)
            added.setdefault(place, []).append(_Step(None, Put(value), name))
    if not changed.keys() <= last.keys():
        raise _NoPlaceError
    said = {name: text[items[last[name]].value : items[last[name]].stop] for name in changed}
    steps = added.get(-1, [])
    for at, item in enumerate(items):
        if item.name not in plan.removed:
            is_meant = item.name in changed and text[item.value : item.stop] == said[item.name]
            steps.append(_Step(at, changed[item.name] if is_meant else None))
        steps += added.get(at, [])
    return steps


def _write_inside(
    text: str, whole: _Item, items: list[_Item], steps: list[_Step], out: list[str], *, spaced: bool
) -> None:
    lead = text[whole.value + 1 : items[0].start] if items and steps else ""
    tail = text[items[-1].stop : whole.stop - 1] if items and steps else ""
    colon = items[0].colon if items and items[0].colon else ": " if spaced else ":"
    spaced = colon[-1] != ":"
    first = "," + (lead if "\n" in lead else " " if spaced else "")
    out += (text[whole.value], lead)
    for number, (at, plan, name) in enumerate(steps):
        if number:
            out.append(_between(text, items, steps[number - 1].at, at) or first)
        if at is not None:
            item = items[at]
            out.append(text[item.start : item.value])
            _write(text, item, plan, out, spaced=spaced)
        elif isinstance(plan, Put):
            out.append("" if name is None else text_of(name).decode() + colon)
            out.append(text_of(plan.value).decode())
    out += (tail, text[whole.stop - 1])


def _between(text: str, items: list[_Item], before: int | None, at: int | None) -> str:
    """What stands between two parts: as between those that stood there; empty if there is no example."""
    if at:
        behind = at
    elif before is not None and before + 1 < len(items):
        behind = before + 1
    else:
        behind = 1
    return text[items[behind - 1].stop : items[behind].start] if behind < len(items) else ""
