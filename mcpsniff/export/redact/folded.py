"""Base64 and hexadecimal digits that are broken into lines of one length, as MIME, PEM and `xxd -p` do it."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from mcpsniff.export.redact.pieces import Edit

SHORTEST_LINE: Final = 32
"""Characters of a line that is broken there for its length."""

_ALPHABETS: Final = (rb"[A-Za-z0-9+/]", rb"[A-Za-z0-9_-]")
_FIRSTS: Final = tuple(
    (re.compile(rb"(?<!%b)%b{4,}+(\r?\n[ \t]{0,40}+)(?=%b)(?!--)" % (signs, signs, signs)), re.compile(signs + b"++"))
    for signs in _ALPHABETS
)
"""The first line of a text in lines, which may begin within a line, with what parts it from the next; any line."""
_PADDING = re.compile(rb"={0,2}")


class Fold(NamedTuple):
    """A word in lines: bytes ``start`` up to ``stop`` of the text."""

    start: int
    stop: int
    word: bytes
    """Without the line ends."""
    first: int
    """Characters in the first line."""
    width: int
    """Characters in every other one, but for the last."""
    end: bytes
    """What is between two lines."""

    def outer(self, edits: list[Edit]) -> list[Edit]:
        """The edits of the text that come to ``edits`` of the word."""
        return [
            edit._replace(
                start=self._place(edit.start),
                stop=self._place(edit.stop, is_stop=True),
                new=self._broken(edit.new, edit.start),
            )
            for edit in edits
        ]

    def _place(self, position: int, *, is_stop: bool = False) -> int:
        """Where a position of the word is in the text."""
        over = position - self.first - is_stop
        lines = 0 if over < 0 else 1 + over // self.width
        return self.start + position + lines * len(self.end)

    def _broken(self, new: bytes, column: int) -> bytes:
        """``new`` in lines, if its first character is in this column of the first line."""
        room = max(0, self.first - column) or self.width
        cuts = [0, *range(room, len(new), self.width), len(new)]
        return self.end.join(new[cuts[at] : cuts[at + 1]] for at in range(len(cuts) - 1))


def folds(text: bytes) -> Iterator[Fold]:
    """The words in ``text`` that are in lines."""
    if b"\n" not in text:
        return
    for first, line in _FIRSTS:
        done = 0
        for found in first.finditer(text):
            if found.start() >= done:
                fold = _fold(text, found, line)
                if fold is not None:
                    done = fold.stop
                    yield fold


def _fold(text: bytes, found: re.Match[bytes], line: re.Pattern[bytes]) -> Fold | None:
    """The word that begins with this line: all lines that follow in one length, and a shorter one at the end."""
    end = found[1]
    rows = [text[found.start() : found.start(1)]]
    width = 0
    stop = found.start(1)
    while text.startswith(end, stop) and (row := line.match(text, stop + len(end))) and not row[0].startswith(b"--"):
        if width and len(row[0]) > width:
            break
        rows.append(row[0])
        stop = row.end()
        if len(row[0]) < (width or SHORTEST_LINE):
            break  # the last one
        width = width or len(row[0])
    if len(rows) == 2 and len(rows[0]) >= len(rows[1]):
        width = len(rows[0])
    if width < SHORTEST_LINE or len(rows) < 2 or (len(rows) > 2 and len(rows[1]) != width):
        return None
    padding = _PADDING.match(text, stop)
    stop = padding.end() if padding else stop
    return Fold(found.start(), stop, b"".join(rows) + (padding[0] if padding else b""), len(rows[0]), width, end)
