"""Finds any of some hundred byte strings in a text where there is seldom one, by the rarest part of each."""

from collections.abc import Iterable, Iterator
from typing import Final

from mcpsniff.export.redact.matcher import SHORTEST, any_of, is_within_number

_COMMON: Final = b' "etaonirslhdcu,\\mfpg:ywbv.0k{}12_3456789/-[]=xjqz'
"""What is most in JSON and logs; of all else there is less."""
_RANK: Final = tuple(len(_COMMON) - at if (at := _COMMON.find(code)) >= 0 else 0 for code in range(256))


class Sieve:
    """Knows ``values``, each of at least SHORTEST bytes; a value of digits is found as a whole number only."""

    def __init__(self, values: Iterable[bytes]) -> None:
        self._by_part: dict[bytes, list[tuple[int, bytes]]] = {}
        self.longest = 0
        """Bytes of the longest value."""
        for value in sorted(set(values), key=len, reverse=True):
            at = min(range(len(value) - SHORTEST + 1), key=lambda one: _RANK[value[one]])
            self._by_part.setdefault(value[at : at + SHORTEST], []).append((at, value))
            self.longest = max(self.longest, len(value))
        self._parts = any_of(set(self._by_part))

    def find(self, text: bytes, *, numbers: bool = True) -> Iterator[tuple[int, int, bytes]]:
        """Yield (start, stop, value) of what is found, of those around one part the longest.

        Digits alone only if ``numbers``.
        """
        if self._parts is None:
            return
        position, search = 0, self._parts.search
        while found := search(text, position):
            position = found.start() + 1
            for at, value in self._by_part[found[0]]:
                start = found.start() - at
                if start < 0 or not text.startswith(value, start):
                    continue
                if not value.isdigit() or (numbers and not is_within_number(text, start, value)):
                    yield start, start + len(value), value
                    break
