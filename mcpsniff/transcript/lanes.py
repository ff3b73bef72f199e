"""Tie requests to their answers with lines beside the rows, as a graph of commits ties branches.

An open request holds a lane; its progress and its cancel touch it, its end frees it. When all lanes are taken, a
request goes without; the numbers on the rows tie it still.
"""

from typing import Final

LANES: Final = 3

FREE: Final = " "
PASSING: Final = "│"
BEGINS: Final = "┬"
TOUCHES: Final = "├"
ENDS: Final = "┴"
BROKEN: Final = "╵"


class Lanes:
    """Which open exchange, by the number of its request, holds which lane."""

    def __init__(self, count: int = LANES) -> None:
        self._held: list[int | None] = [None] * count

    def begin(self, request: int) -> str:
        """The lanes of the row on which a request begins."""
        if request not in self._held and None in self._held:
            self._held[self._held.index(None)] = request
        return self._drawn(request, BEGINS)

    def touch(self, request: int | None) -> str:
        """The lanes of a row that belongs to an open exchange, or to none."""
        return self._drawn(request, TOUCHES)

    def end(self, request: int, mark: str = ENDS) -> str:
        """The lanes of the row with which an exchange ends."""
        drawn = self._drawn(request, mark)
        if request in self._held:
            self._held[self._held.index(request)] = None
        return drawn

    def _drawn(self, request: int | None, mark: str) -> str:
        return "".join(FREE if holder is None else mark if holder == request else PASSING for holder in self._held)
