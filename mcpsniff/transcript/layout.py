"""Lines of (role, text) pieces, and how they are cut, wrapped and flowed into a width, counted in terminal cells."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from mcpsniff.transcript.pretty import Line
from mcpsniff.transcript.safe import cells

__all__ = ["cells", "clipped", "cut", "fitted", "flowed", "hanging", "hard_wrapped", "length", "split", "wrapped"]

NARROWEST: Final = 4
"""Cells that are the least to wrap into: less would not hold a wide character and an ellipsis."""

_WORDS: Final = re.compile(" +|[^ ]+")
_STICKS: Final = frozenset("\u200d\ufe0f")


def length(line: Line) -> int:
    """Cells that a line takes."""
    return sum(cells(text) for _, text in line)


def _window(room: int) -> int:
    """Characters that are looked at to fill ``room`` cells, so that no text is too long to be laid out."""
    return 4 * room + 8


def split(text: str, room: int) -> tuple[str, str]:
    """The longest beginning of ``text`` that takes at most ``room`` cells, and the rest."""
    window = text[: _window(room)]
    low, high = 0, len(window)
    if cells(window) <= room:
        low = high
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if cells(window[:middle]) <= room else (low, middle - 1)
    at = low
    while 1 < at < len(text) and (text[at] in _STICKS or text[at - 1] == "\u200d"):
        at -= 1
    at = at if at > 1 else low
    return text[:at], text[at:]


def fitted(text: str, room: int) -> str:
    """``text`` in at most ``room`` cells; where it is cut stands an ellipsis."""
    return text if not split(text, room)[1] else split(text, max(room - 1, 0))[0] + "…"


def middle_cut(text: str, room: int) -> str:
    """``text`` in at most so many cells, cut in its middle: beginnings and ends tell names apart."""
    if cells(text) <= room:
        return text
    end = split(text[::-1], (room - 1) // 2)[0][::-1]
    return f"{split(text, room - 1 - cells(end))[0]}…{end}"


def cut(line: Line, room: int) -> Line:
    """The line in at most ``room`` cells; where it was cut stands an ellipsis."""
    if length(line) <= room:
        return line
    kept: Line = []
    left = max(room - 1, 0)
    for role, text in line:
        if cells(text) > left:
            kept.append((role, split(text, left)[0] + "…"))
            break
        kept.append((role, text))
        left -= cells(text)
    return kept


def hard_wrapped(text: str, width: int) -> Iterator[str]:
    """``text`` in lines of at most ``width`` cells, broken wherever a line is full."""
    width = max(width, NARROWEST)
    at = 0
    while at < len(text) or not at:
        line = split(text[at : at + _window(width)], width)[0] or text[at : at + 1]
        yield line
        at += max(len(line), 1)


def wrapped(text: str, width: int) -> list[str]:
    """``text`` in lines of at most ``width`` cells, broken between words where there are any."""
    width = max(width, NARROWEST)
    if cells(text) <= width:
        return [text]
    lines: list[str] = []
    line, used = "", 0
    for word in _WORDS.findall(text):
        long = cells(word)
        if used + long <= width:
            line, used = line + word, used + long
            continue
        if word[0] == " ":
            if not lines and not line:
                line, used = word[:width], width
            continue
        if line.strip(" "):
            lines.append(line.rstrip(" "))
        *full, line = hard_wrapped(word, width)
        lines += full
        used = cells(line)
    return [*lines, line.rstrip(" ")] if line.strip(" ") or not lines else lines


def clipped(text: str, width: int, lines: int) -> list[str]:
    """The beginning of ``text``, at most so many ``lines``; where more follows stands an ellipsis, after a word."""
    width = max(width, NARROWEST)
    shown = wrapped(text[: 4 * width * lines], width)
    if len(shown) <= lines:
        return shown
    last = shown[lines - 1]
    if cells(last) >= width:
        beginning, _, _ = split(last, width - 1)[0].rpartition(" ")
        last = beginning or split(last, width - 1)[0]
    return [*shown[: lines - 1], last.rstrip(" ,;:") + "…"]


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
    if sum(_measured(text, width) for _, text in line) <= width + 2:
        yield line
        return
    margin = len(line[0][1]) + 4 if line[0][0] == "indent" else 4
    if margin + 10 > width:
        margin = 4
    room = max(width, margin + NARROWEST)
    piece: Line = []
    used = 0
    for role, text in line:
        whole = _measured(text, room)
        if used + whole > room >= margin + whole and whole > 2:
            yield piece
            piece, used = [("indent", " " * margin)], margin
        at = 0
        while used + _measured(text[at : at + _window(room) + 1], room) > room + 2:
            start = split(text[at : at + _window(room)], max(room - used, 0))[0]
            if start:
                piece.append((role, start))
                at += len(start)
            yield piece
            piece, used = [("indent", " " * margin)], margin
        if text[at:]:
            piece.append((role, text[at:]))
            used += cells(text[at:])
    if not piece or piece[-1][0] != "indent":
        yield piece


def _measured(text: str, room: int) -> int:
    """Cells that a text takes; of one that is too long for ``room`` in any case, only that."""
    return cells(text) if len(text) <= _window(room) else _window(room)
