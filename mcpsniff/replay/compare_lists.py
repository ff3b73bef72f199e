"""Which element of one list belongs to which of another, in n log n, and what that needs.

Elements are told apart by their *form*: a hash of the value without what the rules take for equal. Equal forms only say
which elements to put side by side; whether they are equal is then found by comparing them.
"""

import marshal
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from decimal import Decimal
from difflib import SequenceMatcher
from typing import Any, Final, NamedTuple

from mcpsniff.protocol.paths import Step
from mcpsniff.protocol.reading import Unread
from mcpsniff.replay.normalise import Path, Rules

EFFORT: Final = 200_000
"""Pairs of equal elements that all exact alignments of one comparison may look at."""
AT_ONCE: Final = 20_000
"""The same for one list."""
REREAD: Final = 8
"""How many times the size of both values may be spent on finding out that parts of them are the same."""

LOOKED_AT: Final = 64
"""Elements that are looked at to find which of two lists is taken as the first."""


class Place:
    """A place while values are walked: the step from the place above; the path is made where it is asked for."""

    __slots__ = ("_above", "_live", "step")

    def __init__(self, above: "Place | None", step: Step | None, live: Step | None) -> None:
        self._above = above
        self.step = step
        self._live = live

    @classmethod
    def of(cls, path: Path) -> "Place":
        """The place at ``path``."""
        place = cls(None, None, None)
        for step in path:
            place = place.below(step)
        return place

    def below(self, step: Step, live: Step | None = None) -> "Place":
        """The place one step further; ``live`` is the step in the live value, where it is another."""
        return Place(self, step, step if live is None else live)

    @property
    def path(self) -> Path:
        """The way in the recorded value."""
        return tuple(reversed([place.step for place in self._upwards() if place.step is not None]))

    @property
    def live_path(self) -> Path:
        """The way in the live value."""
        return tuple(reversed([place._live for place in self._upwards() if place._live is not None]))

    def _upwards(self) -> Iterator["Place"]:
        place: Place | None = self
        while place is not None:
            yield place
            place = place._above


class Same:
    """Tells quickly that two values are the very same; False means that it is not known.

    Whole values are written out and compared as bytes. As the parts of a deep value would be written again and again,
    there is a limit to it, beyond which only plain values are looked at.
    """

    def __init__(self) -> None:
        self._left = 0

    def begin(self, one: Any, other: Any) -> bool:
        """Compare two whole values, and see how much work their parts are worth."""
        texts = _written(one), _written(other)
        if texts[0] is None or texts[1] is None:
            return False
        self._left = REREAD * (len(texts[0]) + len(texts[1]))
        return texts[0] == texts[1]

    def __call__(self, one: Any, other: Any) -> bool:
        """True if the values are the same for certain."""
        kind = type(one)
        if kind is not type(other):
            return False
        if kind is dict or kind is list:
            if len(one) != len(other):
                return False
            text = self.text(one)
            return text is not None and text == self.text(other)
        return bool(one == other) if kind in _PLAIN else False

    def text(self, value: Any) -> bytes | None:
        """The value written out; None if it cannot be, or if there was enough of it."""
        if self._left <= 0:
            return None
        text = _written(value)
        self._left -= self._left if text is None else len(text)
        return text


_PLAIN: Final = (str, int, float, bool, type(None), Decimal)


def _written(value: Any) -> bytes | None:
    """A value as bytes that are equal for equal values only; None if it is too deep, or has values not of JSON."""
    try:
        return marshal.dumps(value, 2)  # version 2: without references, which depend on who else holds an object
    except (ValueError, RecursionError):
        return None


class Forms:
    """The forms of values, each computed once; the values must stay alive and unchanged meanwhile."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._known: dict[int, int] = {}

    def __call__(self, value: Any, place: Place) -> int:
        """The form of the value at ``place``."""
        if not isinstance(value, dict | list):
            return self._plain(value)
        stack: list[tuple[Any, Place, bool]] = [(value, place, False)]
        while stack:
            node, where, is_ready = stack.pop()
            if is_ready:
                self._known[id(node)] = self._container(node, where)
            elif id(node) not in self._known:
                stack.append((node, where, True))
                stack.extend((below, where.below(step), False) for step, below in _containers(node))
        return self._known[id(value)]

    def key(self, value: Any) -> object:
        """The form of a member by which elements of a set are told apart; None if it is no text."""
        return self._rules.text_form(value) if isinstance(value, str) else None

    def _container(self, node: Any, where: Place) -> int:
        if isinstance(node, Unread):
            return hash((type(node), "unread"))
        if isinstance(node, dict):
            return hash(frozenset((name, self._below(value, where, name)) for name, value in node.items()))
        forms = [self._below(value, where, index) for index, value in enumerate(node)]
        if where.step is not None and self._rules.watches(where.step) and self._rules.is_set(where.path):
            forms.sort()
        return hash(tuple(forms))

    def _below(self, value: Any, where: Place, step: Step) -> int:
        if self._rules.watches(step) and self._rules.is_hidden(where.below(step).path):
            return 0
        known = self._known.get(id(value)) if isinstance(value, dict | list) else None
        return self._plain(value) if known is None else known

    def _plain(self, value: Any) -> int:
        if isinstance(value, str):
            return hash(("text", self._rules.text_form(value)))
        if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
            form = self._rules.number_form(value)
            # Python hashes some numbers alike, such as -1 and -2.
            return hash((type(value), f"{form:x}" if isinstance(form, int) else form))
        return hash((type(value), value)) if value.__hash__ is not None else hash(type(value))


def _containers(node: Any) -> Iterator[tuple[Step, Any]]:
    steps: Iterable[tuple[Step, Any]] = node.items() if isinstance(node, dict) else enumerate(node)
    return ((step, below) for step, below in steps if isinstance(below, dict | list))


class Aligned(NamedTuple):
    """What belongs together in two lists."""

    pairs: list[tuple[int | None, int | None]]
    """Indices of elements to compare; None where one has no partner. Elements that are the same are left out."""
    is_permuted: bool = False
    """True if both have the same elements in another order, or parts of them do."""


class Aligner:
    """Aligns the lists of one comparison."""

    def __init__(self, forms: Forms, same: Same) -> None:
        self._forms = forms
        self._same = same
        self._effort = EFFORT

    def of_list(self, one: list[Any], other: list[Any], place: Place) -> Aligned:
        """Two lists whose order counts."""
        start, end = self._ends(one, other)
        rows, columns = range(start, len(one) - end), range(start, len(other) - end)
        if not rows or not columns or len(rows) == len(columns) == 1:
            return Aligned(_side_by_side(rows, columns))
        if not self._goes_first(one, other, start, place):
            pairs, is_permuted = self._align(other, one, columns, rows, place)
            return Aligned([(i, j) for j, i in pairs], is_permuted)
        return self._align(one, other, rows, columns, place)

    def _align(self, one: list[Any], other: list[Any], rows: range, columns: range, place: Place) -> Aligned:
        """What lies between the ends."""
        start = rows.start
        hashes = [self._hash(one[i], place.below(i)) for i in rows]
        hashes_too = [self._hash(other[j], place.below(j)) for j in columns]
        if _is_permuted(hashes, hashes_too):
            return Aligned(_permuted(hashes, hashes_too, start), is_permuted=True)
        pairs: list[tuple[int | None, int | None]] = []
        at = at_too = start
        is_permuted = False
        for i, j in [*self._matches(hashes, hashes_too), (len(rows), len(columns))]:
            aligned = self._of_forms(one, other, range(at, start + i), range(at_too, start + j), place)
            is_permuted = is_permuted or aligned.is_permuted
            pairs += aligned.pairs
            if i < len(rows):
                pairs.append((start + i, start + j))
            at, at_too = start + i + 1, start + j + 1
        return Aligned(pairs, is_permuted)

    def _goes_first(self, one: list[Any], other: list[Any], start: int, place: Place) -> bool:
        """Which of two lists is taken as the first: the same one whichever way they are compared."""
        if len(one) != len(other):
            return len(one) < len(other)
        looked_at = range(start, min(start + LOOKED_AT, len(one)))
        for index in looked_at:  # forms are there for any value, and do not depend on what was written out before
            below = place.below(index)
            form, form_too = self._forms(one[index], below), self._forms(other[index], below)
            if form != form_too:
                return form < form_too
        for index in looked_at:
            text, text_too = self._same.text(one[index]) or b"", self._same.text(other[index]) or b""
            if text != text_too:
                return text < text_too
        return True

    def _ends(self, one: list[Any], other: list[Any]) -> tuple[int, int]:
        """How many elements are the same at the beginning, and at the end."""
        start, end, most = 0, 0, min(len(one), len(other))
        while start < most and self._same(one[start], other[start]):
            start += 1
        while end < most - start and self._same(one[-1 - end], other[-1 - end]):
            end += 1
        return start, end

    def _hash(self, value: Any, place: Place) -> int:
        """A hash that is equal for values that are the very same, or else the form."""
        text = self._same.text(value)
        return self._forms(value, place) if text is None else hash(text)

    def _of_forms(self, one: list[Any], other: list[Any], rows: range, columns: range, place: Place) -> Aligned:
        """Parts of two lists in which nothing is known to be the same."""
        if not rows or not columns or len(rows) == len(columns) == 1:
            return Aligned(_side_by_side(rows, columns))
        forms = [self._forms(one[i], place.below(i)) for i in rows]
        forms_too = [self._forms(other[j], place.below(j)) for j in columns]
        if rows.start == columns.start and _is_permuted(forms, forms_too):
            return Aligned(_permuted(forms, forms_too, rows.start), is_permuted=True)
        pairs: list[tuple[int | None, int | None]] = []
        at, at_too = rows.start, columns.start
        for i, j in [*self._matches(forms, forms_too), (len(rows), len(columns))]:
            pairs += _side_by_side(range(at, rows.start + i), range(at_too, columns.start + j))
            if i < len(rows):
                pairs.append((rows.start + i, columns.start + j))
            at, at_too = rows.start + i + 1, columns.start + j + 1
        return Aligned(pairs)

    def of_set(self, one: list[Any], other: list[Any], key: str | None, place: Place) -> Aligned:
        """Two lists whose order does not count; elements are told apart by ``key``, or by their value."""
        names = self._names(one, key), self._names(other, key)
        if names[0] is None or names[1] is None:
            return self.of_list(one, other, place)
        theirs: dict[object, list[int]] = {}
        for j in range(len(names[1]) - 1, -1, -1):
            theirs.setdefault(names[1][j], []).append(j)
        pairs: list[tuple[int | None, int | None]] = []
        for i, name in enumerate(names[0]):
            partners = theirs.get(name)
            pairs.append((i, partners.pop() if partners else None))
        pairs += [(None, j) for j in sorted(j for rest in theirs.values() for j in rest)]
        return Aligned(pairs)

    def _names(self, elements: list[Any], key: str | None) -> list[object] | None:
        """What tells the elements of a set apart; None if nothing does."""
        if key is None:
            plain = all(isinstance(element, _PLAIN) for element in elements)
            return [(type(element), element) for element in elements] if plain else None
        names = [self._forms.key(element.get(key)) if isinstance(element, dict) else None for element in elements]
        return names if None not in names and len(set(names)) == len(names) else None

    def _matches(self, one: list[int], other: list[int]) -> Iterator[tuple[int, int]]:
        """Places of equal forms, both rising: what is unique in both first, then what lies between."""
        at = at_too = 0
        for i, j in [*_rising(_unique(one, other)), (len(one), len(other))]:
            yield from self._between(one[at:i], other[at_too:j], at, at_too)
            if i < len(one):
                yield i, j
            at, at_too = i + 1, j + 1

    def _between(self, one: list[int], other: list[int], at: int, at_too: int) -> Iterator[tuple[int, int]]:
        start = end = 0
        most = min(len(one), len(other))
        while start < most and one[start] == other[start]:
            start += 1
        while end < most - start and one[-1 - end] == other[-1 - end]:
            end += 1
        yield from ((at + k, at_too + k) for k in range(start))
        rest, rest_too = one[start : len(one) - end], other[start : len(other) - end]
        counts, counts_too = Counter(rest), Counter(rest_too)
        effort = sum(number * counts_too[form] for form, number in counts.items())
        if 0 < effort <= min(AT_ONCE, self._effort):
            self._effort -= effort
            for block in SequenceMatcher(None, rest, rest_too, autojunk=False).get_matching_blocks():
                first, first_too = at + start + block.a, at_too + start + block.b
                yield from ((first + k, first_too + k) for k in range(block.size))
        yield from ((at + len(one) - k, at_too + len(other) - k) for k in range(end, 0, -1))


def _side_by_side(rows: range, columns: range) -> list[tuple[int | None, int | None]]:
    """Elements with nothing in common: the first with the first, and what is left over alone."""
    both = min(len(rows), len(columns))
    pairs: list[tuple[int | None, int | None]] = list(zip(rows, columns, strict=False))
    return [*pairs, *((i, None) for i in rows[both:]), *((None, j) for j in columns[both:])]


def _is_permuted(one: list[int], other: list[int]) -> bool:
    return one != other and len(one) == len(other) and Counter(one) == Counter(other)


def _permuted(one: list[int], other: list[int], start: int) -> list[tuple[int | None, int | None]]:
    places: dict[int, list[int]] = {}
    for j in range(len(other) - 1, -1, -1):
        places.setdefault(other[j], []).append(j)
    return [(start + i, start + places[form].pop()) for i, form in enumerate(one)]


def _unique(one: list[int], other: list[int]) -> list[tuple[int, int]]:
    """Where the forms stand that both lists have exactly once, in the order of the first."""
    counts, counts_too = Counter(one), Counter(other)
    places = {form: j for j, form in enumerate(other) if counts_too[form] == 1}
    return [(i, places[form]) for i, form in enumerate(one) if counts[form] == 1 and form in places]


def _rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest part of the pairs, in their order, whose second numbers rise (patience sorting)."""
    tops: list[int] = []
    piles: list[int] = []
    before: list[int] = []
    for index, (_, j) in enumerate(pairs):
        pile = bisect_left(tops, j)
        before.append(piles[pile - 1] if pile else -1)
        if pile == len(tops):
            tops.append(j)
            piles.append(index)
        else:
            tops[pile], piles[pile] = j, index
    chosen: list[tuple[int, int]] = []
    index = piles[-1] if piles else -1
    while index >= 0:
        chosen.append(pairs[index])
        index = before[index]
    return chosen[::-1]
