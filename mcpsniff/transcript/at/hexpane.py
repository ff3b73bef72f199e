"""Bytes as they are: offset, hexadecimal, and what of it is printable ASCII, as `hexdump -C` shows them."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from mcpsniff.transcript.pretty import Line

LINES_SHOWN: Final = 48
"""Lines of a pane that shows only what is not text."""
LONGEST: Final = 1 << 20
"""Bytes that a pane shows at most."""

_ROOMS: Final = ((16, 78), (8, 45), (4, 29))
"""Bytes on a line, and the cells that it takes; two have no printable form beside them."""

_ODD: Final = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xef\xbb\xbf")
"""Control characters but TAB and LF, and the byte order mark."""
_NOT_UTF8: Final = re.compile("[\udc80-\udcff]")
_CR: Final = 0x0D
_NOT_SHOWN: Final = re.compile(rb"[^\x20-\x7e]")


def odd_places(data: bytes, *, has_cr: bool = False) -> list[int]:
    """Where bytes stand that are no text: not UTF-8, control characters but TAB and LF, a byte order mark.

    ``has_cr`` says that lines may end with CR, or CR and LF, as in HTTP and in its event streams.
    """
    places = {place for found in _ODD.finditer(data) for place in range(*found.span())}
    if has_cr:
        places -= {place for place in places if data[place] == _CR}
    text = data.decode(errors="surrogateescape")
    at = seen = 0
    for found in _NOT_UTF8.finditer(text):
        at += len(text[seen : found.start()].encode(errors="surrogateescape"))
        places.add(at)
        seen = found.start()
    return sorted(places)


def hex_lines(data: bytes, offset: int, width: int, *, everything: bool, has_cr: bool = False) -> Iterator[Line]:
    """The lines that show ``data``, which stands at ``offset`` of its channel, in ``width`` cells.

    Unless ``everything`` is to be shown, only what is not text, with a line before and after it; nothing where all is
    text. ``has_cr`` as for `odd_places`.
    """
    size = next((size for size, room in _ROOMS if width >= room), 2)
    data_shown = data[:LONGEST]
    odd = set(odd_places(data_shown, has_cr=has_cr))
    starts = range(0, len(data_shown), size)
    if not everything:
        near = {line for place in odd for line in range(place // size - 1, place // size + 2)}
        starts_near = [line * size for line in sorted(near) if 0 <= line * size < len(data_shown)]
        yield from _lines(data, offset, size, odd, starts_near[:LINES_SHOWN])
        return
    yield from _lines(data, offset, size, odd, starts)


def _lines(data: bytes, offset: int, size: int, odd: set[int], starts: Iterable[int]) -> Iterator[Line]:
    """The lines that begin at these places; what is left out between them, and behind them, is an ellipsis."""
    before = -size
    for start in starts:
        if start != before + size:
            yield [("remark", "…")]
        yield _line(
            data[start : start + size], offset + start, size, {place for place in range(size) if start + place in odd}
        )
        before = start
    if before >= 0 and before + size < len(data):
        yield [("remark", "…")]


def _line(piece: bytes, offset: int, size: int, odd: set[int]) -> Line:
    """One line; bytes that are not text stand out."""
    line: Line = [("number", f"{offset:08x} ")]
    for place in range(size):
        gap = "  " if place == 8 else " "
        text = f"{piece[place]:02x}" if place < len(piece) else "  "
        line.append(("bad" if place in odd else "plain", gap + text))
    if size == 2:
        return line
    printable = _NOT_SHOWN.sub(b".", piece).decode("ascii")
    return [*line, ("label", f"  |{printable}|")]
