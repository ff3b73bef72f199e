"""Finds many byte strings at once in a text, in time that hardly depends on how many they are."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Final

SHORTEST: Final = 4
"""Bytes of the shortest value that is looked for."""
MANY: Final = 100_000
"""Beginnings from which on only a part of each is in the expression, which else takes long to make."""
COMPARED: Final = 64
"""Bytes of a text that are compared first."""

_DIGITS: Final = frozenset(b"0123456789")


class Matcher:
    """Knows ``values``, each of at least SHORTEST bytes; finds the longest at each place, from left to right.

    A value of digits is found as a whole number only, not within a longer one.
    """

    def __init__(self, values: Iterable[bytes]) -> None:
        self._values = sorted(set(values))
        self._within: dict[bytes, bytes] = {}
        """Of a value that begins with others: the longest of these."""
        self.longest = max(map(len, self._values), default=0)
        """Bytes of the longest value."""
        self.shortest = min(map(len, self._values), default=SHORTEST)
        """Bytes of the shortest value."""
        around: list[bytes] = []
        for value in self._values:
            while around and not value.startswith(around[-1]):
                around.pop()
            if around:
                self._within[value] = around[-1]
            around.append(value)
        self._starts = any_of({value[:SHORTEST] for value in self._values})

    def find(self, text: bytes, *, numbers: bool = True) -> Iterator[tuple[int, int, bytes]]:
        """Yield (start, stop, value) of what is found; places do not overlap. Digits alone only if ``numbers``."""
        if self._starts is None:
            return
        position, search = 0, self._starts.search
        while found := search(text, position):
            start = found.start()
            value = self._at(text, start, numbers)
            position = start + (1 if value is None else len(value))
            if value is not None:
                yield start, position, value

    def has(self, text: bytes) -> bool:
        """Say whether there is one in ``text``."""
        return self.first(text) is not None

    def first(self, text: bytes) -> int | None:
        """Where the first one begins, or None."""
        return next((start for start, _, _ in self.find(text)), None)

    def _at(self, text: bytes, start: int, numbers: bool) -> bytes | None:
        """The longest value that begins at ``start``.

        All that begins as one value does follows it at once in the order. So the last one that is not beyond the text
        begins with all that are in the text here.
        """
        beginning = text[start : start + COMPARED]
        number = bisect_right(self._values, beginning)
        if number < len(self._values) and self._values[number].startswith(beginning):
            number = bisect_right(self._values, text[start : start + self.longest])
        value: bytes | None = self._values[number - 1] if number else None
        while value is not None:
            if text.startswith(value, start) and not (
                value.isdigit() and (not numbers or is_within_number(text, start, value))
            ):
                return value
            value = self._within.get(value)
        return None


def is_within_number(text: bytes, start: int, value: bytes) -> bool:
    """Say whether there are more digits before or after."""
    stop = start + len(value)
    return (start > 0 and text[start - 1] in _DIGITS) or (stop < len(text) and text[stop] in _DIGITS)


def any_of(starts: set[bytes]) -> re.Pattern[bytes] | None:
    """An expression for any of ``starts``; of many, for what begins as they do."""
    size = SHORTEST
    while len(starts) > MANY and size > 1:
        size -= 1
        starts = {start[:size] for start in starts}
    return re.compile(_trie(sorted(starts)), re.DOTALL) if starts else None


def _trie(starts: list[bytes]) -> bytes:
    """An expression for any of ``starts``, all of one length, that looks at each byte of a text once or so."""
    if len(starts) == 1:
        return re.escape(starts[0])
    branches: dict[bytes, list[bytes]] = {}
    for start in starts:
        branches.setdefault(start[:1], []).append(start[1:])
    if len(starts[0]) == 1:
        return b"[" + b"".join(re.escape(first) for first in sorted(branches)) + b"]"
    whole = [re.escape(first) + (_trie(rest) if rest[0] else b"") for first, rest in sorted(branches.items())]
    return b"(?:" + b"|".join(whole) + b")" if len(whole) > 1 else whole[0]
