"""The payload of a message as lines to show: which part of it, laid out how, folded where."""

from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from mcpsniff.protocol.http import Body
from mcpsniff.protocol.message import ERROR, INVALID, NOTIFICATION, RESPONSE, Message
from mcpsniff.protocol.outline import outline
from mcpsniff.protocol.reading import NOT_JSON
from mcpsniff.transcript.envelopes import without_envelope
from mcpsniff.transcript.layout import hanging, hard_wrapped, wrapped
from mcpsniff.transcript.pretty import NOTE, PLAIN, Line, pretty
from mcpsniff.transcript.safe import visible
from mcpsniff.transcript.units import count, size
from mcpsniff.wire.frames import INCOMPLETE, TRUNCATED, Frame

FOLD: Final = 12
"""Lines of a payload that are shown when it is folded."""
SPARED: Final = 3
"""So few lines more are not worth folding."""
BODY_FOLD: Final = 6
"""Lines of the body of a refusal that are shown when it is folded."""
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


HOW_TO_UNFOLD: Final = "--payload shows"


def payload_lines(
    message: Message, style: Style, width: int, how: str = HOW_TO_UNFOLD, *, has_envelope: bool = True
) -> Iterator[Line]:
    """The lines that show the payload of ``message``, about ``width`` cells wide; safe text only.

    ``has_envelope`` is False to leave out what `mcpsniff.transcript.envelopes` tells of, unless all is shown.

    ``how`` begins the words that tell a reader how to see what is folded away; empty where there is no way.
    """
    if not style.shown or (message.kind == "batch" and not style.whole and _has_elements(message)):
        return
    text = message.raw.decode(errors="backslashreplace").removeprefix("\ufeff")
    is_json = NOT_JSON not in message.flaws and INCOMPLETE.isdisjoint(message.flaws)
    if is_json and not style.whole:
        text = _part_that_matters(message, text)
        text = text if has_envelope or not text else without_envelope(text)
    if not text or text in ("{}", "[]"):
        return
    longest = None if style.whole else max(3 * width, 60)
    lines = pretty(text, width, longest) if is_json else _raw(text, width)
    if style.whole:
        yield from lines
    else:
        hint = _hint(len(text), how, in_part=TRUNCATED in message.frame.flaws)
        yield from _folded((piece for line in lines for piece in hanging(line, width)), hint, how, width + 2)
    if TRUNCATED in message.frame.flaws:
        yield from ([(NOTE, part)] for part in wrapped(_kept(message.frame), width + 2))


def body_lines(body: Body, style: Style, width: int, how: str = HOW_TO_UNFOLD) -> Iterator[Line]:
    """The lines that show the text of a refusal's body, without blank ones; ``how`` as in `payload_lines`."""
    if not style.shown:
        return
    lines = [line for text in body.text.expandtabs(4).splitlines() if text.strip() for line in _raw(text, width)]
    shown = lines if style.whole or len(lines) <= BODY_FOLD + 1 else lines[:BODY_FOLD]
    yield from shown
    if len(shown) < len(lines):
        hint = f"… {count(len(lines) - len(shown), 'more line')}{f'; {how} all' if how else ''}"
        yield from ([(NOTE, part)] for part in wrapped(hint, width))
    elif body.size > len(body.beginning):
        kept = f"… mcpsniff kept the first {len(body.beginning):,} of {body.size:,} bytes; the capture carries all"
        yield from ([(NOTE, part)] for part in wrapped(kept, width))


def _hint(characters: int, how: str, *, in_part: bool) -> str:
    """What stands below a folded payload; empty where the lines that are left are to be counted."""
    if in_part:
        return f"… {how} more of it" if how else "…"
    if characters <= COUNTED:
        return ""
    return f"… {size(characters)} in all{f'; {how} them' if how else ''}"


def _kept(frame: Frame) -> str:
    """What is not here because mcpsniff reads only so much of one frame, and that nobody lost it."""
    kept, whole = len(frame.payload), frame.size
    mebibytes, odd = divmod(kept, 1 << 20)
    if odd or not mebibytes:
        amount = f"{kept:,} of {whole:,} bytes"
    else:
        amount = f"{mebibytes} MiB of {whole / (1 << 20):.1f} MiB"
    return f"… mcpsniff kept the first {amount}; the wire and the capture carry all"


def _folded(lines: Iterator[Line], hint: str, how: str, width: int) -> Iterator[Line]:
    first = list(islice(lines, FOLD + SPARED + 1))
    if len(first) <= FOLD + SPARED:
        yield from first
        return
    yield from first[:FOLD]
    if not hint:
        more = count(len(first) - FOLD + sum(1 for _ in lines), "more line")
        hint = f"… {more}{f'; {how} all' if how else ''}"
    yield from ([(NOTE, part)] for part in wrapped(hint, width))


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
    for line in hard_wrapped(visible(text), width):
        yield [(PLAIN, line)]
