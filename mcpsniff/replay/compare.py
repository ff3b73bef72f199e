"""Compare two JSON values member by member: what was added, what is missing, what is another.

Strict where JSON is: 1, 1.0, "1" and true are four values. What may differ all the same is up to the `Rules`. A text
that is JSON in both values, as servers put it into ``content[].text``, is compared as JSON, and its places go on behind
the place of the text.

Nothing here recurses, and no step takes more than n log n: values may be nested to any depth and be of any size.
"""

from base64 import b64decode
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from math import isnan
from typing import Any, Final

from mcpsniff.protocol.message import Message
from mcpsniff.protocol.outline import outline
from mcpsniff.protocol.reading import JsonReader, Unread
from mcpsniff.replay.compare_lists import Aligner, Forms, Place, Same
from mcpsniff.replay.normalise import Pairs, Path, Rules
from mcpsniff.wire.frames import INCOMPLETE

__all__ = [
    "ABSENT",
    "ADDED",
    "CHANGED",
    "KINDS",
    "MISSING",
    "ORDER",
    "TYPE",
    "UNREAD",
    "Difference",
    "compare",
    "compare_messages",
    "kind_of",
]

ADDED: Final = "added"
MISSING: Final = "missing"
CHANGED: Final = "changed"
TYPE: Final = "type"
ORDER: Final = "order"
UNREAD: Final = "unread"

KINDS: Final = {
    ADDED: "only the live value has it",
    MISSING: "only the recorded value has it",
    CHANGED: "another value of the same type",
    TYPE: "a value of another type; integers and other numbers are two types",
    ORDER: "the same elements in another order",
    UNREAD: "it could not be compared: it is nested too deep, or the capture has only a part of it",
}

EMBEDDED: Final = 8_000_000
"""Characters of a text up to which it is looked at for being JSON."""


class Absent:
    """There is no value: `ABSENT` is the only one of its kind."""

    def __repr__(self) -> str:
        """Its name."""
        return "ABSENT"


ABSENT: Final = Absent()


@dataclass(frozen=True, slots=True, eq=False)
class Difference:
    """One difference between two values."""

    path: Path
    """Where, in the recorded value (in the live one where something was added)."""
    kind: str
    recorded: Any = field(default=ABSENT, repr=False)
    live: Any = field(default=ABSENT, repr=False)
    live_path: Path = ()
    """The same place in the live value: another index where elements were added or are missing before it."""


def compare(
    recorded: Any, live: Any, rules: Rules | None = None, pairs: Pairs | None = None, *, at: Path = ()
) -> list[Difference]:
    """How ``live`` differs from ``recorded``, in the order of the recorded value; empty if not at all.

    Both are parsed JSON as `mcpsniff.protocol.reading.JsonReader` gives it. ``rules`` say what is taken for equal
    (nothing but what the protocol makes up, if None). Give the same ``pairs`` for all values of one run, so that names
    that are made up are followed through it. ``at`` is where the values stand in their message, which is what the rules
    go by, and the beginning of every path. Never raises, whatever the values.
    """
    return _Walk(rules or Rules(), pairs or Pairs()).run(recorded, live, at)


def compare_messages(recorded: Message, live: Message, rules: Rules, pairs: Pairs | None = None) -> list[Difference]:
    """How the live message differs from the recorded one, ``jsonrpc`` and the id aside.

    Of a message of which only a part was kept nothing is known but that part and its size.
    """
    if recorded.raw == live.raw:
        is_part = not INCOMPLETE.isdisjoint((*recorded.frame.flaws, *live.frame.flaws))
        return [Difference((), UNREAD)] if is_part and recorded.size != live.size else []
    one, other = _said(recorded), _said(live)
    if isinstance(one, dict) and isinstance(other, dict):
        for name in _unread(one) & _unread(other):
            texts = [_member_text(message.raw, name) for message in (recorded, live)]
            if texts[0] is not None and texts[0] == texts[1]:
                del one[name], other[name]
    return compare(one, other, rules, pairs)


def _said(message: Message) -> Any:
    body = message.body
    if isinstance(body, dict):
        said = {name: value for name, value in body.items() if name not in ("jsonrpc", "id")}
        return said if said or not isinstance(body, Unread) else body
    return message.raw.decode(errors="backslashreplace") if body is None else body


def _unread(body: dict[str, Any]) -> set[str]:
    return {name for name, value in body.items() if isinstance(value, Unread)}


def _member_text(raw: bytes, name: str) -> str | None:
    """The text of a member at the top level of a message; None if it is not whole."""
    text = raw.decode(errors="backslashreplace")
    places = [text[start:stop] for token, start, stop in outline(text).members if token == f'"{name}"']
    return places[-1] if places else None


_TYPES: Final[dict[type, str]] = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    Decimal: "integer",
    type(None): "null",
}


def kind_of(value: Any) -> str:
    """The JSON type of a value; 1 is an ``integer`` and 1.0 a ``number``. Anything else has the name of its class."""
    name = _TYPES.get(type(value))
    if name is not None:
        return name
    return next((name for one, name in _TYPES.items() if isinstance(value, one)), type(value).__name__)


type _Work = Difference | tuple[Any, Any, Place]


class _Walk:
    """One comparison: a stack of what is still to be compared, the next on top."""

    def __init__(self, rules: Rules, pairs: Pairs) -> None:
        self._rules = rules
        self._pairs = pairs
        self._reader = JsonReader()
        self._same = Same()
        self._aligner = Aligner(Forms(rules), self._same)
        self._stack: list[_Work] = []
        self._kept: list[Any] = []
        """What was read from texts: what has a form must stay alive."""

    def run(self, recorded: Any, live: Any, at: Path) -> list[Difference]:
        found: list[Difference] = []
        place = Place.of(at)
        if self._same.begin(recorded, live):
            return found
        self._stack.append((recorded, live, place))
        while self._stack:
            work = self._stack.pop()
            if not isinstance(work, Difference):
                self._pair(*work)
            elif not self._rules.ignores(work.path):
                found.append(work)
        return found

    def _push(self, works: Iterable[_Work]) -> None:
        self._stack.extend(reversed(list(works)))

    def _say(self, kind: str, recorded: Any, live: Any, place: Place) -> None:
        self._stack.append(_difference(kind, recorded, live, place))

    def _pair(self, one: Any, other: Any, place: Place) -> None:
        if one is other and not isinstance(one, Unread):
            return
        kind = kind_of(one)
        if isinstance(one, Unread) or isinstance(other, Unread):
            self._say(UNREAD, one, other, place)
        elif kind != kind_of(other):
            if not self._same_across(one, other, place):
                self._say(TYPE, one, other, place)
        elif kind == "object":
            self._push(self._members(one, other, place))
        elif kind == "array":
            self._push(self._elements(one, other, place))
        elif kind == "string":
            self._texts(one, other, place)
        elif one != other and not _are_nan(one, other):
            is_number = kind in ("integer", "number")
            if not (is_number and self._rules.same_number(one, other, place.path)):
                self._say(CHANGED, one, other, place)

    def _same_across(self, one: Any, other: Any, place: Place) -> bool:
        """Values of two types."""
        numbers = {"integer", "number"}
        if kind_of(one) in numbers and kind_of(other) in numbers:
            return self._rules.same_number(one, other, place.path)
        return self._rules.same_kinds(place.path)

    def _texts(self, one: str, other: str, place: Place) -> None:
        if one == other:
            return
        if place.step == "text" and (values := self._embedded(one, other)) is not None:
            self._kept.append(values)
            self._stack.append((*values, place))
        elif not self._rules.same_text(one, other, place.path, self._pairs) and not (
            place.step == "blob" and self._same_blob(one, other, place)
        ):
            self._say(CHANGED, one, other, place)

    def _same_blob(self, one: str, other: str, place: Place) -> bool:
        """True if the contents of two resources are texts, in Base64, that say the same by the rules."""
        if max(len(one), len(other)) > EMBEDDED:
            return False
        try:
            text, text_too = (b64decode(blob, validate=True).decode() for blob in (one, other))
        except ValueError:
            return False
        return self._rules.same_text(text, text_too, place.path, self._pairs)

    def _embedded(self, one: str, other: str) -> tuple[Any, Any] | None:
        """What two texts say if both are JSON objects, or both arrays, with nothing odd about them."""
        starts = one.lstrip()[:1], other.lstrip()[:1]
        if starts not in (("{", "{"), ("[", "[")) or max(len(one), len(other)) > EMBEDDED:
            return None
        readings = [self._reader.read(text.encode(errors="surrogatepass")) for text in (one, other)]
        if any(reading.flaws for reading in readings):
            return None
        return readings[0].value, readings[1].value

    def _members(self, one: dict[str, Any], other: dict[str, Any], place: Place) -> Iterable[_Work]:
        for name, value in one.items():
            below = place.below(name)
            if name in other:
                if not self._same(value, other[name]):
                    yield value, other[name], below
            elif not self._rules.may_lack(below.path):
                yield _difference(MISSING, value, ABSENT, below)
        for name, value in other.items():
            if name not in one and not self._rules.may_lack(place.below(name).path):
                yield _difference(ADDED, ABSENT, value, place.below(name))

    def _elements(self, one: list[Any], other: list[Any], place: Place) -> Iterable[_Work]:
        is_watched = place.step is not None and self._rules.watches(place.step)
        if is_watched and self._rules.is_set(place.path):
            aligned = self._aligner.of_set(one, other, self._rules.key_of(place.path), place)
        else:
            aligned = self._aligner.of_list(one, other, place)
        if aligned.is_permuted:
            yield _difference(ORDER, one, other, place)
        for i, j in aligned.pairs:
            if i is None and j is not None:
                yield _difference(ADDED, ABSENT, other[j], place.below(j))
            elif j is None and i is not None:
                yield _difference(MISSING, one[i], ABSENT, place.below(i))
            elif i is not None and j is not None:
                yield one[i], other[j], place.below(i, j)


def _are_nan(one: Any, other: Any) -> bool:
    return isinstance(one, float) and isinstance(other, float) and isnan(one) and isnan(other)


def _difference(kind: str, recorded: Any, live: Any, place: Place) -> Difference:
    return Difference(place.path, kind, recorded, live, place.live_path)
