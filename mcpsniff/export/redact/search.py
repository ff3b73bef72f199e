"""Looks for known values in a text as it stands, and in everything that it may encode."""

import re
from collections.abc import Callable, Iterator

from mcpsniff.export.redact.matcher import Matcher
from mcpsniff.export.redact.views import DEPTH, Edit, Interest, View, is_binary, settled, views

_ESCAPED = re.compile(rb"(?:\\(?:[uU][0-9A-Fa-f]{0,3})?|%[0-9A-Fa-f]?|&(?:#[xX]?[0-9A-Fa-f]{0,6}|[A-Za-z]{0,7}))\Z")

_MARKS = bytes.maketrans(b'"\\', b"\xff\xff")


def edits_in(
    text: bytes,
    matcher: Matcher,
    interest: Interest,
    new: Callable[[bytes], tuple[bytes, str]],
    *,
    depth: int = DEPTH,
    before: View | None = None,
    marked: bytes | None = None,
) -> list[Edit]:
    """The edits that put ``new`` (what stands for a value, and what the value is) in the place of each value found.

    They are in order and do not overlap. Values are found in encodings of encodings, ``depth`` of them.
    ``marked`` is ``text`` in which nothing is to be found over a border of its strings: they are marked there.
    """
    edits = [
        Edit(_beginning(text, start), stop, *new(value))
        for start, stop, value in matcher.find(text if marked is None else marked)
    ]
    if depth and not is_binary(text):
        for view in views(text, matcher.shortest, interest, before):
            if inner := edits_in(view.text, matcher, interest, new, depth=depth - 1, before=view):
                edits += view.outer(inner)
    return settled(edits) if len(edits) > 1 else edits


def marked_json(text: bytes) -> bytes:
    """A JSON text in which no value has what ends a string or begins an escape: with these it has another meaning."""
    return text.translate(_MARKS)


def _beginning(text: bytes, start: int) -> int:
    """Where an edit begins: before an escape that a value begins within, for half of one would mean something else."""
    if start == 0 or (found := _ESCAPED.search(text, max(0, start - 9), start)) is None:
        return start
    at = found.start()
    if text[at : at + 1] == b"\\":
        before = text[max(0, at - 64) : at]
        if (len(before) - len(before.rstrip(b"\\"))) % 2:  # a backslash that is itself escaped
            return start
    return at


def texts_in(
    text: bytes, least: int, interest: Interest, depth: int = DEPTH, before: View | None = None
) -> Iterator[tuple[str, bytes]]:
    """``text`` and what it may encode, with the names of the encodings."""
    yield "", text
    if depth and not is_binary(text):
        for view in views(text, least, interest, before):
            for name, inner in texts_in(view.text, least, interest, depth - 1, view):
                yield f"{view.name}, {name}" if name else view.name, inner
