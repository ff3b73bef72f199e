"""The payload of a message as lines to show: which part of it, laid out how, folded where."""

from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from mcpsniff.protocol.message import ERROR, INVALID, NOTIFICATION, RESPONSE, Message
from mcpsniff.protocol.outline import outline
from mcpsniff.protocol.reading import NOT_JSON
from mcpsniff.transcript.layout import hanging
from mcpsniff.transcript.pretty import NOTE, PLAIN, Line, pretty
from mcpsniff.transcript.safe import visible
from mcpsniff.transcript.units import count, size
from mcpsniff.wire.frames import INCOMPLETE

FOLD: Final = 12
"""Lines of a payload that are shown when it is folded."""
SPARED: Final = 3
"""So few lines more are not worth folding."""
COUNTED: Final = 256 * 1024
"""Characters up to which the lines that are folded away are counted."""


SAID_ON_THE_ROW: Final = frozenset({"notifications/progress", "notifications/cancelled"})
"""Notifications whose row says all that is in them."""


class Style(NamedTuple):
    """How much of the payloads to show."""

    shown: bool = True
    whole: bool = False
    """Everything, the envelope of JSON-RPC too; else the part that matters, folded."""


FOLDED: Final = Style()
WHOLE: Final = Style(whole=True)
NONE: Final = Style(shown=False)


def payload_lines(message: Message, style: Style, width: int) -> Iterator[Line]:
    """The lines that show the payload of ``message``, about ``width`` characters wide; safe text only."""
    if not style.shown or (message.kind == "batch" and not style.whole and _has_elements(message)):
        return
    text = message.raw.decode(errors="backslashreplace").removeprefix("\ufeff")
    is_json = NOT_JSON not in message.flaws and INCOMPLETE.isdisjoint(message.flaws)
    if is_json and not style.whole:
        text = _part_that_matters(message, text)
    if not text or text in ("{}", "[]"):
        return
    longest = None if style.whole else max(3 * width, 60)
    lines = pretty(text, width, longest) if is_json else _raw(text, width)
    if style.whole:
        yield from lines
        return
    yield from _folded((piece for line in lines for piece in hanging(line, width)), len(text))


def _folded(lines: Iterator[Line], characters: int) -> Iterator[Line]:
    first = list(islice(lines, FOLD + SPARED + 1))
    if len(first) <= FOLD + SPARED:
        yield from first
        return
    yield from first[:FOLD]
    if characters <= COUNTED:
        more = count(len(first) - FOLD + sum(1 for _ in lines), "more line")
        yield [(NOTE, f"… {more}; --payload shows all")]
    else:
        yield [(NOTE, f"… {size(characters)} in all; --payload shows them")]


def _part_that_matters(message: Message, text: str) -> str:
    """Params, result or error; all of a message that is odd, since what is odd may be anywhere in it."""
    if message.flaws or message.kind == INVALID:
        return text
    if message.method in SAID_ON_THE_ROW and message.kind == NOTIFICATION:
        return ""
    wanted = '"result"' if message.kind == RESPONSE else '"error"' if message.kind == ERROR else '"params"'
    for name, start, stop in outline(text).members:
        if name == wanted:
            return text[start:stop]
    return ""


def _has_elements(message: Message) -> bool:
    return isinstance(message.body, list) and bool(message.body)


def _raw(text: str, width: int) -> Iterator[Line]:
    """Text that is no JSON, as it is but visible, in pieces of the width."""
    text = visible(text)
    for start in range(0, len(text), max(width, 20)):
        yield [(PLAIN, text[start : start + max(width, 20)])]
