"""Where the parts of a JSON text stand: top-level members, batch elements, repeated names, depth.

A parser answers what a text means; an observer also has to say where it says so, how it spells it, and what a parser
throws away (an earlier duplicate, the digits of 1.0, everything beyond the depth it can follow). This reader walks the
tokens without recursion, so no nesting can hurt it, and stops where the text stops being JSON.
"""

import json
import re
import sys
from dataclasses import dataclass, field
from typing import Final

PATH_DEPTH: Final = 200
"""Deeper than this, names are neither remembered nor compared."""

_TOKEN: Final = re.compile(
    r"[ \t\r\n]*+"
    r"(?:(?P<punct>[{}\[\],:])"
    r'|(?P<string>"[^"\\]*+(?:\\.[^"\\]*+)*+")'
    r"|(?P<scalar>[-+.\w]++))",
    re.DOTALL,
)
_PLAIN_NAME: Final = re.compile(r"[A-Za-z_]\w*\Z")


@dataclass(slots=True)
class Outline:
    """The places found in one JSON text; all positions are indexes into it."""

    members: list[tuple[str, int, int]] = field(default_factory=list)
    """Top-level members in order: the name's own JSON token, and the start and stop of the value."""
    elements: list[tuple[int, int]] = field(default_factory=list)
    """Start and stop of each element, when the text is an array."""
    duplicates: list[str] = field(default_factory=list)
    """Paths of names that repeat inside one object, such as ``$.params.name``."""
    depth: int = 0
    complete: bool = False
    """True when every bracket was closed and nothing but white space follows."""
    unfinished: tuple[str, int] | None = None
    """Where the text ends inside a top-level object or array: the member's name, as above, and the value's start."""


@dataclass(slots=True)
class _Container:
    is_object: bool
    names: set[str] | None
    name: str | None = None
    index: int = 0
    expects_name: bool = False


def outline(text: str, most_elements: int = sys.maxsize) -> Outline:
    """Walk ``text`` as far as it is made of JSON tokens, or until a top-level array has had ``most_elements``."""
    found = Outline()
    stack: list[_Container] = []
    value_start = 0
    position = 0
    while (token := _TOKEN.match(text, position)) is not None:
        position = token.end()
        kind = token.lastgroup or ""
        start, word = token.start(kind), token[kind]
        if not stack and found.complete:
            found.complete = False
            break
        if kind == "string" and stack and stack[-1].expects_name:
            _enter_name(stack, word, found)
            continue
        if kind != "punct":
            if len(stack) == 1:
                _note_value(stack[0], start, position, found)
            found.complete = not stack
            continue
        if word in "{[":
            if len(stack) == 1:
                value_start = start
            deep = len(stack) >= PATH_DEPTH
            stack.append(_Container(word == "{", None if deep or word == "[" else set(), expects_name=word == "{"))
            found.depth = max(found.depth, len(stack))
        elif word in "}]":
            if not stack or stack[-1].is_object != (word == "}"):
                break
            stack.pop()
            if len(stack) == 1:
                _note_value(stack[0], value_start, position, found)
            found.complete = not stack
        elif word == "," and stack:
            if len(found.elements) >= most_elements:
                return found
            stack[-1].index += 1
            stack[-1].expects_name = stack[-1].is_object
    if position < len(text.rstrip(" \t\r\n")):
        found.complete = False
    if len(stack) > 1 and stack[0].is_object and stack[0].name is not None:
        found.unfinished = (stack[0].name, value_start)
    return found


def name_of(token: str) -> str:
    """The name that a member's own JSON token spells; the token's inside where it spells none."""
    if "\\" not in token and token.isascii():
        return token[1:-1]
    try:
        # Bytes that are no UTF-8 are read as readers read them.
        name = json.loads(token.encode(errors="surrogateescape").decode(errors="replace"), strict=False)
    except ValueError:
        return token[1:-1]
    return name if isinstance(name, str) else token[1:-1]


def _enter_name(stack: list[_Container], word: str, found: Outline) -> None:
    top = stack[-1]
    top.expects_name = False
    top.name = word
    if top.names is not None:
        if word in top.names:
            found.duplicates.append(_path(stack))
        top.names.add(word)


def _note_value(top: _Container, start: int, stop: int, found: Outline) -> None:
    if not top.is_object:
        found.elements.append((start, stop))
    elif top.name is not None:
        found.members.append((top.name, start, stop))


def _path(stack: list[_Container]) -> str:
    parts = ["$"]
    for container in stack:
        if not container.is_object:
            parts.append(f"[{container.index}]")
        elif container.name is not None:
            name = container.name[1:-1]
            parts.append(f".{name}" if _PLAIN_NAME.match(name) else f"[{container.name}]")
    return "".join(parts)
