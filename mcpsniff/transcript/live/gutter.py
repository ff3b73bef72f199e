"""Several sessions in one column of text: which line belongs to which."""

from typing import Final

from mcpsniff.transcript.layout import cells, middle_cut
from mcpsniff.transcript.pretty import Line, Segment
from mcpsniff.transcript.safe import visible
from mcpsniff.transcript.text import NARROW, Print

LONGEST: Final = 20
SHORTEST: Final = 6
COLOURS: Final = 6
"""How many roles ``who-0`` … there are."""


def distinct(label: str, taken: list[str]) -> str:
    """``label``, or where it is taken the first of ``label-2``, ``label-3`` … that is not."""
    label = label or "session"
    if label not in taken:
        return label
    return next(name for k in range(2, len(taken) + 3) if (name := f"{label}-{k}") not in taken)


class Gutter:
    """Puts the label before each line; where there is no room for that, above the lines when the session changes."""

    def __init__(self, print_line: Print, width: int) -> None:
        self._print = print_line
        self.width = width
        """Of the terminal."""
        self.labels: list[str] = []
        self._latest = ""

    @property
    def column(self) -> int:
        """Cells of the widest label that is shown; 0 where labels stand above."""
        room = min(LONGEST, self.width - NARROW - 2)
        return min(room, max((cells(visible(label)) for label in self.labels), default=0)) if room >= SHORTEST else 0

    @property
    def room(self) -> int:
        """Cells that are left for the line."""
        column = self.column
        return self.width - column - 2 if column else self.width

    def join(self, label: str) -> str:
        """Give a new session its label: the one it has, unless another session has it."""
        label = distinct(label, self.labels)
        self.labels.append(label)
        return label

    def print(self, label: str, line: Line) -> None:
        """Print a line of that session; an empty one is left out."""
        if not any(text.strip() for _, text in line):
            return
        column = self.column
        if column:
            name = middle_cut(visible(label), column)
            role = self.named(label, column)[0]
            self._print([(role, name + " " * (column - cells(name))), ("lane", "│ "), *line])
            return
        if label != self._latest:
            self._print([self.named(label, self.width)])
        self._latest = label
        self._print(line)

    def named(self, label: str, room: int) -> Segment:
        """A label as it stands in a line."""
        number = self.labels.index(label) if label in self.labels else 0
        return f"who-{number % COLOURS}", middle_cut(visible(label), room)
