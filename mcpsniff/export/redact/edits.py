"""The edits of one channel: where bytes are replaced, how far that moves what follows, and what a chunk becomes."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from mcpsniff.export.redact.views import Edit, settled


class Gap(NamedTuple):
    """So many bytes of a chunk are left out."""

    size: int


class Told(NamedTuple):
    """An edit that is done: what there was, and where what stands there now is."""

    what: str
    at: str
    start: int
    length: int


class ChannelEdits:
    """Edits in the offsets of a channel as it was recorded; added in any order, used once it was sealed."""

    def __init__(self) -> None:
        self._edits: list[Edit] = []
        self._starts: list[int] = []
        self._stops: list[int] = []
        self._moved: list[int] = []

    def __len__(self) -> int:
        return len(self._edits)

    def add(self, edit: Edit) -> None:
        """One more edit."""
        self._edits.append(edit)

    def whats(self) -> Iterator[str]:
        """What there was at each place that is told of."""
        return (edit.what for edit in self._edits if edit.what)

    @property
    def growth(self) -> int:
        """By how many bytes the channel grows; what is left out as a gap counts as if it was there."""
        return sum(len(edit.new) - (edit.stop - edit.start) for edit in self._edits if not edit.is_gap)

    def since(self, number: int) -> list[Edit]:
        """The edits after the first ``number`` that were added, by their place."""
        return sorted(self._edits[number:])

    def seal(self) -> None:
        """Nothing more is added."""
        self._edits = settled(self._edits)
        self._starts = [edit.start for edit in self._edits]
        self._stops = [edit.stop for edit in self._edits]
        moved = 0
        for edit in self._edits:
            moved += len(edit.new) - (edit.stop - edit.start)
            self._moved.append(moved)

    def moved_start(self, offset: int) -> int:
        """Where the byte at ``offset`` is afterwards; within an edit, where that begins."""
        at = bisect_right(self._starts, offset) - 1
        if at < 0:
            return offset
        if offset < self._stops[at]:
            return self._starts[at] + self._before(at)
        return offset + self._moved[at]

    def moved_stop(self, offset: int) -> int:
        """Where what ends before ``offset`` ends afterwards; within an edit, where that ends."""
        at = bisect_left(self._starts, offset) - 1
        if at < 0:
            return offset
        if offset < self._stops[at]:
            return self._stops[at] + self._moved[at]
        return offset + self._moved[at]

    def chunk(self, base: int, data: bytes) -> Iterator[bytes | Gap | Told]:
        """What becomes of a chunk whose first byte is at ``base``: bytes, gaps, and the edits that end in it."""
        end = base + len(data)
        out: list[bytes] = []
        told: list[Told] = []
        position = base
        at = bisect_right(self._stops, base)
        while at < len(self._edits) and self._starts[at] < end:
            edit = self._edits[at]
            first, last = max(edit.start, base), min(edit.stop, end)
            out.append(data[position - base : first - base])
            if edit.is_gap:
                if whole := b"".join(out):
                    yield whole
                out = []
                yield Gap(last - first)
                if last == edit.stop:
                    told.append(Told(edit.what, edit.at, edit.start + self._before(at), 0))
            else:
                out.append(_share(edit, first, last))
            if edit.what and last == edit.stop and not edit.is_gap:
                told.append(Told(edit.what, edit.at, edit.start + self._before(at), len(edit.new)))
            position = last
            at += 1
        out.append(data[position - base :])
        if whole := b"".join(out):
            yield whole
        yield from told

    def _before(self, at: int) -> int:
        return self._moved[at - 1] if at else 0


def _share(edit: Edit, first: int, last: int) -> bytes:
    """The part of an edit's bytes that stands for those from ``first`` to ``last``: the first has one at least."""
    size, whole = len(edit.new), edit.stop - edit.start
    return edit.new[-(-size * (first - edit.start) // whole) : -(-size * (last - edit.start) // whole)]
