"""A table for a terminal: columns that fit its width, counted in cells, the least important left out."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from mcpsniff.transcript.layout import cells, fitted
from mcpsniff.transcript.pretty import Line

GAP: Final = 2


class Column(NamedTuple):
    """A column: its title, how its cells look, and how much room it asks for."""

    title: str
    weight: int
    """How much it matters: the least is left out first."""
    right: bool = False
    least: int | None = None
    """Cells to which it can be cut; None: it is shown whole or not at all."""
    most: int = 1000
    is_extra: bool = False
    """True: it gets only what the others leave when they have all that they ask for."""


type Cell = tuple[str, str]
"""A role and a text that is safe to show."""


def table(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], width: int | None) -> Iterator[Line]:
    """Lay out the title line and ``rows`` in ``width`` cells; None: as wide as it takes."""
    wanted = [
        min(max(cells(column.title), *(cells(row[at][1]) for row in rows), 1), column.most) if rows else 1
        for at, column in enumerate(columns)
    ]
    rooms = dict(enumerate(wanted)) if width is None else _fitted_rooms(columns, wanted, width)
    yield _line(columns, [("label", column.title) for column in columns], rooms)
    for row in rows:
        yield _line(columns, row, rooms)


def _fitted_rooms(columns: Sequence[Column], wanted: list[int], width: int) -> dict[int, int]:
    """Choose columns by weight; what is left over goes to those that had to be cut, the most important first."""
    rooms: dict[int, int] = {}
    left = width + GAP
    for extra in (False, True):
        order = [at for at in range(len(columns)) if columns[at].is_extra == extra]
        order.sort(key=lambda at: -columns[at].weight)
        for at in order:
            least = columns[at].least
            need = wanted[at] if least is None else min(least, wanted[at])
            if not rooms:
                need = min(need, width)
            if need + GAP <= left:
                rooms[at] = need
                left -= need + GAP
        for at in order:
            more = min(wanted[at] - rooms.get(at, wanted[at]), left)
            rooms.update({at: rooms[at] + more} if more else {})
            left -= more
    return rooms


def _line(columns: Sequence[Column], row: Sequence[Cell], rooms: dict[int, int]) -> Line:
    line: Line = []
    for at in sorted(rooms):
        role, text = row[at]
        text = fitted(text, rooms[at])
        pad = " " * (rooms[at] - cells(text))
        if line:
            line.append(("", " " * GAP))
        line += [("", pad), (role, text)] if columns[at].right else [(role, text), ("", pad)]
    return line
