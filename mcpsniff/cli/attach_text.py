"""What was edited, laid out over lines, as the least change of the text that came."""

from difflib import SequenceMatcher
from itertools import pairwise
from typing import Final

from mcpsniff.replay.resend.edit import TOKEN, on_one_line

_MOST: Final = 2000
"""Tokens between the first and the last that differ up to which it is looked for those that are the same."""


def least_change(raw: bytes, text: str) -> bytes:
    """The tokens of ``text``, on one line, with the white space of ``raw`` around those that stand there, too.

    What is new has the white space that ``raw`` has after a comma and after a colon.
    """
    plain = on_one_line(text)
    was = raw.decode(errors="surrogateescape")
    found = list(TOKEN.finditer(was))
    gaps = [was[before.end() : after.start()] for before, after in pairwise(found)]
    if not found or "\n" in was or "\r" in was or not any(gaps):
        return plain
    tokens, now = [match[0] for match in found], TOKEN.findall(text.removeprefix("\ufeff"))
    usual = {mark: next((gap for token, gap in zip(tokens, gaps, strict=False) if token == mark), "") for mark in ",:"}
    places = _places(tokens, now)
    pieces = [was[: found[0].start()]]
    for at, token in enumerate(now):
        if at:
            before, here = places[at - 1], places[at]
            if before is not None and before < len(gaps):
                pieces.append(gaps[before])
            elif now[at - 1] in usual or not here:
                pieces.append(usual.get(now[at - 1], ""))
            else:
                pieces.append(gaps[here - 1])
        pieces.append(token)
    pieces.append(was[found[-1].end() :])
    return "".join(pieces).encode(errors="surrogateescape")


def _places(was: list[str], now: list[str]) -> list[int | None]:
    """For each token its place among those that there were; None if it is new."""
    shorter = min(len(was), len(now))
    start = next((at for at in range(shorter) if was[at] != now[at]), shorter)
    most = shorter - start
    end = next((at for at in range(most) if was[-1 - at] != now[-1 - at]), most)
    middle = len(now) - start - end
    places: list[int | None] = [*range(start), *[None] * middle, *range(len(was) - end, len(was))]
    left = was[start : len(was) - end]
    if max(len(left), middle) <= _MOST:
        for one, other, size in SequenceMatcher(
            None, left, now[start : start + middle], autojunk=False
        ).get_matching_blocks():
            for step in range(size):
                places[start + other + step] = start + one + step
    return places
