"""Finds many byte strings at once in a text, in time that does not depend on how many they are."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

SHORTEST: Final = 4
"""Bytes of the shortest value that is looked for."""

_DIGITS: Final = frozenset(b"0123456789")


class Matcher:
    """Knows ``values``, each of at least SHORTEST bytes; finds the longest at each place, from left to right.

    A value of digits is found as a whole number only, not within a longer one.
    """

    def __init__(self, values: Iterable[bytes]) -> None:
        self._by_start: dict[bytes, list[bytes]] = {}
        self.longest = 0
        """Bytes of the longest value."""
        for value in set(values):
            self._by_start.setdefault(value[:SHORTEST], []).append(value)
            self.longest = max(self.longest, len(value))
        self.shortest = min((len(value) for group in self._by_start.values() for value in group), default=SHORTEST)
        """Bytes of the shortest value."""
        for group in self._by_start.values():
            group.sort(key=len, reverse=True)
        self._starts = re.compile(_trie(list(self._by_start)), re.DOTALL) if self._by_start else None

    def find(self, text: bytes) -> Iterator[tuple[int, int, bytes]]:
        """Yield (start, stop, value) of what is found; places do not overlap."""
        if self._starts is None:
            return
        position, search = 0, self._starts.search
        while found := search(text, position):
            start = found.start()
            for value in self._by_start[found[0]]:
                if text.startswith(value, start) and not _is_within_number(text, start, value):
                    position = start + len(value)
                    yield start, position, value
                    break
            else:
                position = start + 1

    def has(self, text: bytes) -> bool:
        """Say whether there is one in ``text``."""
        return self.first(text) is not None

    def first(self, text: bytes) -> int | None:
        """Where the first one begins, or None."""
        return next((start for start, _, _ in self.find(text)), None)


def _is_within_number(text: bytes, start: int, value: bytes) -> bool:
    if not value.isdigit():
        return False
    stop = start + len(value)
    return (start > 0 and text[start - 1] in _DIGITS) or (stop < len(text) and text[stop] in _DIGITS)


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
