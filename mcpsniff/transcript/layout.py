"""Lines of (role, text) pieces, and how they are cut, wrapped and flowed into a width."""

import textwrap
from collections.abc import Iterable, Iterator

from mcpsniff.transcript.pretty import Line


def cells(text: str) -> int:
    """Columns that ``text`` takes on a terminal; East Asian characters and emoji take two."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def length(line: Line) -> int:
    """Columns that a line takes."""
    return sum(cells(text) for _, text in line)


def cut(line: Line, room: int) -> Line:
    """The line in at most ``room`` columns; where it was cut stands an ellipsis."""
    if length(line) <= room:
        return line
    kept: Line = []
    left = max(room - 1, 1)
    for role, text in line:
        if cells(text) > left:
            kept.append((role, _start(text, left) + "…"))
            break
        kept.append((role, text))
        left -= cells(text)
    return kept


def _start(text: str, room: int) -> str:
    """The beginning of ``text`` that takes at most ``room`` columns."""
    while text and cells(text) > room:
        text = text[: max(0, min(len(text) - 1, room))]
    return text


def wrapped(text: str, width: int) -> list[str]:
    """``text`` in lines of at most ``width`` characters, broken between words where there are any."""
    return textwrap.wrap(text, max(width, 20), break_on_hyphens=False) or [""]


def flowed(pieces: Iterable[Line], width: int, indent: int, separator: str = "") -> Iterator[Line]:
    """Pieces one after another; one that does not fit begins a new line, and only one longer than that is cut."""
    line: Line = []
    first = indent
    for piece in pieces:
        joined = [*line, ("remark", separator), *piece] if line and separator else [*line, *piece]
        if line and indent + length(joined) > width:
            yield [("", " " * indent), *line]
            indent = first + 2
            joined = [(piece[0][0], piece[0][1].lstrip(" ,")), *piece[1:]]
        line = cut(joined, width - indent)
    if line:
        yield [("", " " * indent), *line]


def hanging(line: Line, width: int) -> Iterator[Line]:
    """A line longer than the width goes on below, further in, so that a long string hides nothing behind it."""
    if sum(len(text) for _, text in line) <= width + 2:
        yield line
        return
    margin = len(line[0][1]) + 4 if line[0][0] == "indent" else 4
    room = max(width, margin + 20)
    piece: Line = []
    used = 0
    for role, text in line:
        rest = text
        if used + len(rest) > room >= margin + len(rest) and len(rest) > 2:
            yield piece
            piece, used = [("indent", " " * margin)], margin
        while used + len(rest) > room + 2:
            piece.append((role, rest[: room - used]))
            yield piece
            rest = rest[room - used :]
            piece, used = [("indent", " " * margin)], margin
        if rest:
            piece.append((role, rest))
            used += len(rest)
    if used > margin or not piece:
        yield piece
