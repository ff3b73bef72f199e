"""Captured text as the content of an element. Nothing captured may reach a page in any other way."""

import re
from collections.abc import Iterable
from html import escape
from typing import Final

from mcpsniff.transcript.safe import visible, visible_json

_LINE_BREAKS: Final = str.maketrans("\t\r\n", "   ")
_NUMBER: Final = re.compile("#([0-9]+)")
_REFERENCE: Final = re.compile(r"(?:[a-z][a-z -]* )?#([0-9]+)")


def content(text: str) -> str:
    """``text`` as element content, on one line: invisible characters are spelt out, markup is escaped."""
    return escape(visible(text), quote=False)


def json_content(text: str) -> str:
    """A JSON text as element content. It stays the same JSON: white space between tokens becomes spaces.

    What JSON does not allow raw inside a string is spelt as an escape, as everything invisible is.
    """
    return escape(visible_json(text.translate(_LINE_BREAKS)), quote=False)


def lines_content(text: str) -> str:
    """Any other text as element content; its lines stay lines."""
    return escape("\n".join(map(visible, text.split("\n"))), quote=False)


def escaped_lines(lines: Iterable[str]) -> str:
    """Lines that are visible already as element content."""
    return escape("\n".join(lines), quote=False)


def link(n: int, text: str = "") -> str:
    """A link to the row of event ``n``; ``text`` is our own."""
    return f"<a href=#n{n}>{escape(text or f'#{n}', quote=False)}</a>"


def own_words(words: str) -> str:
    """Words of our own, in which numbers of rows become links."""
    return _NUMBER.sub(r"<a href=#n\1>#\1</a>", content(words))


def linked(words: str) -> str:
    """Words of our own such as ``answers #8``, as a link to the row they name; empty where they name none."""
    match = _REFERENCE.fullmatch(words)
    return link(int(match[1]), words) if match else ""
