"""What was changed on the way in a session, counted: for its summary."""

from collections.abc import Iterator
from typing import Final

from mcpsniff.protocol.edits import ADDED, ANSWERED_BY, CHANGED, CHANGES, DROPPED, HEAD, HELD, Edit
from mcpsniff.transcript.units import count, duration

NAMES: Final = 20
"""Names of those who changed something that are told apart."""
OTHERS: Final = "others"
BEGUN: Final = 10_000
"""Messages that are held at once and counted once."""
_SAID: Final = {
    CHANGED: "changed",
    DROPPED: "dropped",
    ADDED: "added",
    ANSWERED_BY: "answered",
    HEAD: "changed",
    HELD: "held",
}

type Place = tuple[int | None, int]
"""A channel, and where on it."""


class EditCounts:
    """Feed it edits, then read its lines."""

    def __init__(self) -> None:
        self.changes = dict.fromkeys(CHANGES, 0)
        self.by: dict[str, int] = {}
        """How many, by who did it; captured text."""
        self.held_us = 0
        self._begun: dict[Place, list[str]] = {}
        """Where something is held of which it is not known yet for how long, and by whom."""

    def feed(self, edit: Edit) -> None:
        """Count an edit that is shown."""
        if edit.is_quiet:
            return
        place = edit.channel, edit.spans[0].start if edit.spans else 0
        if (begun := self._begun.pop(place, None)) is not None:  # this tells how that went on
            self.changes[HELD] -= 1
            for by in begun:
                self.by[by] -= 1
                if not self.by[by]:
                    del self.by[by]
        self.changes[edit.change] += 1
        self.held_us += edit.held_us
        names = [name if name in self.by or len(self.by) < NAMES else OTHERS for name in edit.names or ("",)]
        for by in names:
            self.by[by] = self.by.get(by, 0) + 1
        if edit.change == HELD and not edit.held_us and len(self._begun) < BEGUN:
            self._begun[place] = names

    @property
    def total(self) -> int:
        """How many there are."""
        return sum(self.changes.values())

    def names(self) -> list[tuple[str, int]]:
        """Who did it, and how often, most often first; captured text."""
        return sorted(self.by.items(), key=lambda one: (-one[1], one[0]))

    def lines(self) -> Iterator[str]:
        """What it all comes to; captured text is among it."""
        if not self.total:
            return
        parts = [_counted(change, self.changes[change]) for change in _SAID if self.changes[change]]
        held = f", {duration(self.held_us)} in all" if self.held_us else ""
        names = ", ".join(f"{name} {times:,}" for name, times in self.names())
        yield f"on the way: {count(self.total, 'edit')} ({', '.join(parts)}{held}) by {names}"


def _counted(change: str, number: int) -> str:
    return f"{count(number, 'head')} changed" if change == HEAD else f"{number:,} {_SAID[change]}"
