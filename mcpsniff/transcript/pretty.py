r"""Show JSON from its own text: white space is made anew, every number and string keeps its spelling.

A value that was parsed and written again would lose digits of large integers, ``1.0``, ``-0`` and ``\/``, so the
tokens themselves are laid out, one after another and without recursion: no nesting can hurt. What fits on a line
stands on one line. Texts inside a tool's content that are JSON themselves are laid out as JSON too.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import orjson

from mcpsniff.transcript.safe import cells, visible_json

type Segment = tuple[str, str]
"""A role (how it is to look) and a piece of text that is safe to show."""
type Line = list[Segment]

PUNCTUATION: Final = "punctuation"
NAME: Final = "name"
STRING: Final = "string"
SCALAR: Final = "scalar"
NOTE: Final = "folded"
PLAIN: Final = "plain"

INDENT: Final = 2
DEEPEST: Final = 32
"""Containers nested deeper stand on one line, however long."""
EMBEDDED_LIMIT: Final = 1_000_000
"""Characters of a string up to which it is looked at for being JSON."""
_SHORT: Final = 1000

_TOKEN: Final = re.compile(
    r"[ \t\r\n]*+"
    r"(?:(?P<open>[{\[])|(?P<close>[}\]])|(?P<comma>,)|(?P<colon>:)"
    r'|(?P<string>"[^"\\]*+(?:\\.[^"\\]*+)*+")'
    r"|(?P<scalar>[-+.\w]++))",
    re.DOTALL,
)
_TEXT_NAME: Final = '"text"'
_JSON_START: Final = re.compile(r'"(?:\\[nrt]|\s)*[{\[]')


def pretty(text: str, width: int, longest: int | None = None) -> Iterator[Line]:
    """Lay out a JSON text in lines of about ``width`` terminal cells.

    Strings longer than ``longest`` characters are cut, and what was left out is counted behind them. Text that is no
    JSON token ends the layout: the rest is given as it is, on one line. Never raises, whatever the text.
    """
    return _Layout(text, width, longest).lines()


@dataclass(slots=True)
class _Source:
    """A text that is being laid out: the message, or a string in it that is JSON itself."""

    text: str
    position: int = 0
    stack: list[str] = field(default_factory=list)


class _Layout:
    def __init__(self, text: str, width: int, longest: int | None) -> None:
        self._source = _Source(text)
        self._outer: list[_Source] = []
        self._width = width
        self._longest = longest
        self._line: Line = []
        self._used = 0
        self._depth = 0
        self._name = ""
        self._named = False

    def lines(self) -> Iterator[Line]:
        while True:
            token = _TOKEN.match(self._source.text, self._source.position)
            if token is None:
                if self._rest() or not self._outer:
                    break
                self._source = self._outer.pop()
                continue
            yield from self._take(token)
        if self._line:
            yield self._line

    def _take(self, token: re.Match[str]) -> Iterator[Line]:
        """Add one token to the line; yield the line when it is full."""
        source = self._source
        kind = token.lastgroup or ""
        start, source.position = token.start(kind), token.end()
        if self._line and not source.stack and not self._outer:
            self._add(PUNCTUATION, " ")  # more follows the first value: that is no JSON, and is shown all the same
        if kind == "open":
            if not self._on_one_line(source, start):
                source.stack.append(token[kind])
                self._depth += 1
                self._add(PUNCTUATION, token[kind])
                yield self._break()
        elif kind == "close":
            if source.stack:
                source.stack.pop()
                self._depth -= 1
                if self._line and self._line[-1][0] != "indent":
                    yield self._break()
                else:
                    self._line = self._indented()
            self._add(PUNCTUATION, token[kind])
        elif kind == "comma":
            self._add(PUNCTUATION, ",")
            yield self._break()
        elif kind == "colon":
            self._add(PUNCTUATION, ": ")
            self._named = True
        else:
            self._value(source, kind, token[kind])
        if kind not in ("colon", "string"):
            self._named = False

    def _value(self, source: _Source, kind: str, token: str) -> None:
        """Add a string (a name or a value) or a scalar."""
        if kind == "scalar":
            self._add(SCALAR, visible_json(token))
        elif not self._named and source.stack and source.stack[-1] == "{":
            self._name = token
            self._add(NAME, visible_json(token))
        else:
            inner = embedded_json(token) if self._name == _TEXT_NAME and self._named and not self._outer else None
            if inner is None:
                self._string(token)
            else:
                self._add(NOTE, "(JSON in a string) ")
                self._outer.append(source)
                self._source = _Source(inner)
            self._named = False

    def _string(self, token: str) -> None:
        left_out = 0 if self._longest is None else len(token) - self._longest
        if left_out > 12:
            self._add(STRING, visible_json(_without_half_escape(token[: self._longest])))
            self._add(NOTE, f"… {left_out:,} more characters")
        else:
            self._add(STRING, visible_json(token))

    def _on_one_line(self, source: _Source, start: int) -> bool:
        """Add the container that starts here on this line, if it fits; return False if it does not."""
        deep = self._depth >= DEEPEST
        room = None if deep else max(self._width - self._used, 2)
        found = _inline(source.text, start, room, not self._outer)
        if found is None:
            return False
        segments, source.position = found
        for role, piece in segments:
            self._add(role, piece)
        return True

    def _rest(self) -> bool:
        """At something that is no token: give the rest of the text as it is, if there is any."""
        rest = self._source.text[self._source.position :].strip(" \t\r\n")
        self._source.position = len(self._source.text)
        if rest:
            self._add(PLAIN, (" " if self._line else "") + visible_json(rest))
        return bool(rest)

    def _add(self, role: str, piece: str) -> None:
        self._line.append((role, piece))
        self._used += _extent(piece)

    def _break(self) -> Line:
        line, self._line = self._line, self._indented()
        return line

    def _indented(self) -> Line:
        self._used = INDENT * self._depth
        return [("indent", " " * self._used)] if self._used else []


def _inline(text: str, start: int, room: int | None, look_inside: bool) -> tuple[Line, int] | None:
    """The container at ``start`` on one line and where it ends; None if it takes more than ``room`` cells.

    Without a limit the rest of a text that ends inside the container is its end.
    """
    segments: Line = []
    depth = used = 0
    position = start
    after_name = ""
    while (token := _TOKEN.match(text, position)) is not None:
        kind = token.lastgroup or ""
        word = token[kind]
        position = token.end()
        if kind == "string":
            if look_inside and after_name == _TEXT_NAME and room is not None and embedded_json(word) is not None:
                return None
            after_name = word
        elif kind != "colon":
            after_name = ""
        piece = word + " " if kind in ("comma", "colon") else visible_json(word)
        segments.append((_role(text, kind, position), piece))
        used += _extent(piece)
        if room is not None and used > room:
            return None
        depth += (kind == "open") - (kind == "close")
        if depth == 0:
            return segments, position
    return (segments, position) if room is None else None


def _extent(piece: str) -> int:
    """Cells that a piece takes; of a long one its characters, since it fits on no line either way."""
    return cells(piece) if len(piece) <= _SHORT else len(piece)


def _role(text: str, kind: str, position: int) -> str:
    if kind != "string":
        return SCALAR if kind == "scalar" else PUNCTUATION
    following = _TOKEN.match(text, position)
    return NAME if following is not None and following.lastgroup == "colon" else STRING


def embedded_json(token: str) -> str | None:
    """The text that a string token holds, if that is a JSON object or array; else None."""
    if not _JSON_START.match(token) or len(token) > EMBEDDED_LIMIT:
        return None
    try:
        text = json.loads(token, strict=False)
        orjson.loads(text)
    except ValueError:
        return None
    return text if isinstance(text, str) else None


def _without_half_escape(piece: str) -> str:
    """A string token cut at any place, without an escape that was cut in two."""
    return re.sub(r"(?<!\\)((?:\\\\)*)\\(?:u[0-9a-fA-F]{0,3})?\Z", r"\1", piece)
