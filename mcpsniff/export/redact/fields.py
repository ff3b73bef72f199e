"""The named values in a text: members of JSON, headers, fields of forms, keys of URLs, what a log says."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from mcpsniff.export.redact.views import Pieces, unescaped

NESTED: Final = 4
"""Texts of JSON within strings of JSON that are looked into."""

DEEPEST: Final = 64
"""Levels of a JSON text that a path names."""

_TOKEN = re.compile(rb'"((?:[^"\\]++|\\.)*+)"?|([{}\[\],:])|([^\s{}\[\],:"]++)', re.DOTALL)
_JSON_BEGIN = re.compile(
    rb"\s*+(?:\{\s*+[\"}]|\[\s*+(?:[{\[\"\]]|(?:-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null)\s*+[,\]]))"
)
_COLON = re.compile(rb"\s*+:")
_LINE = re.compile(rb"([^\r\n:]{1,256}?)[ \t]*:[ \t]*([^\r\n]*(?:\r?\n[ \t]+[^\r\n]*)*)\r?\n?")
_PAIR = re.compile(rb"(?:(?<=[?&;#])|\A)([A-Za-z0-9_.\[\]%-]{1,64})=([^&;#\s\"'<>\\]{1,8192}+)")
_SAID = re.compile(
    rb"(?<![A-Za-z0-9_.-])([A-Za-z0-9_.-]{1,64}+)[\"']?[ \t]*[=:][ \t]*[\"']?([^\s\"',;&(){}\[\]<>]{1,8192}+)"
)
_OPTION = re.compile(rb"(?<!\S)--?([A-Za-z][A-Za-z0-9_-]{0,63}+)[ \t]+([^\s\"',;-][^\s\"',;]{0,8191}+)")


class Field(NamedTuple):
    """A value with its name: bytes ``start`` up to ``stop`` of the text."""

    start: int
    stop: int
    value: bytes
    """What it means, its escapes removed."""
    path: tuple[str, ...]
    """The names that lead to it; elements of lists have their number."""
    how: str
    """``string``, ``number``, ``header``, ``pair`` (of a form or URL), ``said`` (in free text)."""

    @property
    def name(self) -> str:
        """The nearest name; elements of a list have that of the list."""
        return next((step for step in reversed(self.path) if not step.isdigit()), "")


def json_fields(text: bytes, path: tuple[str, ...] = (), depth: int = NESTED) -> Iterator[Field]:
    """The scalars of a JSON text, however broken it is; also those of JSON texts within its strings."""
    stack: list[list[str | int]] = []
    name = ""
    for found in _TOKEN.finditer(text):
        raw, mark, word = found.groups()
        if mark is not None:
            name = _step(mark, stack, name)
            continue
        if raw is None:
            if word[0] in b"-0123456789":
                yield Field(found.start(), found.end(), word, _path(path, stack, name), "number")
            continue
        if stack and stack[-1][0] == "{" and not name and _COLON.match(text, found.end()):
            name = unescaped(raw).text.decode("utf-8", "replace")[:256] or " "
            continue
        at = _path(path, stack, name)
        start = found.start() + 1
        view = unescaped(raw) if b"\\" in raw else None
        value = raw if view is None else view.text
        yield Field(start, start + len(raw), value, at, "string")
        if depth and value.lstrip()[:1] in (b"{", b"[") and len(value) > 4:
            yield from _moved(json_fields(value, at, depth - 1), start, view)


def _moved(fields: Iterator[Field], start: int, view: Pieces | None) -> Iterator[Field]:
    """``fields`` of what a string means, at their places in the text around it."""
    for field in fields:
        if view is None:
            yield field._replace(start=field.start + start, stop=field.stop + start)
        else:
            first, last = view.place(field.start), view.place(field.stop, is_stop=True)
            yield field._replace(start=first + start, stop=last + start)


def _step(mark: bytes, stack: list[list[str | int]], name: str) -> str:
    """Follow a mark of JSON; return the name of the member that is open."""
    if mark in (b"{", b"["):
        stack.append([mark.decode(), 0, name])
        return ""
    if mark in (b"}", b"]"):
        if stack:
            stack.pop()
        return ""
    if mark == b",":
        if stack:
            stack[-1][1] = int(stack[-1][1]) + 1
        return ""
    return name


def _path(path: tuple[str, ...], stack: list[list[str | int]], name: str) -> tuple[str, ...]:
    steps = list(path)
    for kind, number, before in stack[:DEEPEST]:
        if before:
            steps.append(str(before))
        if kind == "[":
            steps.append(str(number))
    if stack and stack[-1][0] == "{" and name:
        steps.append(name)
    return tuple(steps)


def head_fields(text: bytes) -> Iterator[Field]:
    """The headers of a head, cookies one by one, and the keys in its request target."""
    first = text.find(b"\n") + 1
    yield from pair_fields(text[:first])
    for found in _LINE.finditer(text, first):
        name = found[1].decode("latin-1")
        value = found[2].rstrip()
        start = found.start(2)
        yield from header_fields(name, value, start)


def header_fields(name: str, value: bytes, start: int = 0) -> Iterator[Field]:
    """The value of one header, without the word of an authentication scheme; of cookies each."""
    lowered = name.lower()
    if lowered in ("cookie", "set-cookie", "set-cookie2"):
        for number, piece in enumerate(re.finditer(rb"([^;=]+)=([^;]*)", value)):
            if number and lowered != "cookie":
                return
            yield Field(start + piece.start(2), start + piece.end(2), piece[2], (name,), "header")
        return
    scheme = re.match(rb"(?i)(?:bearer|basic|digest|token|dpop|negotiate|apikey)[ \t]+(?=\S)", value)
    skip = scheme.end() if scheme else 0
    yield Field(start + skip, start + len(value), value[skip:], (name,), "header")
    yield from pair_fields(value, start)


def pair_fields(text: bytes, start: int = 0) -> Iterator[Field]:
    """Keys and values of URLs, and of a text that is a form."""
    if b"=" not in text:
        return
    for found in _PAIR.finditer(text):
        yield Field(start + found.start(2), start + found.end(2), found[2], (_name(found[1]),), "pair")


def said_fields(text: bytes, start: int = 0) -> Iterator[Field]:
    """What free text says: ``name=value``, ``name: value``, ``--name value``."""
    for pattern in (_SAID, _OPTION):
        for found in pattern.finditer(text):
            yield Field(start + found.start(2), start + found.end(2), found[2], (_name(found[1]),), "said")


def _name(raw: bytes) -> str:
    return raw.decode("latin-1")


def looks_like_json(text: bytes) -> bool:
    """Say whether a text is to be read as JSON."""
    return text.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[", b'"')


def is_json(text: bytes) -> bool:
    """Say whether a text is JSON by its beginning and its end, and no line of a log such as ``[12:30] [x]``."""
    end = text.rstrip(b" \t\r\n")[-1:]
    return end in (b"}", b"]") and _JSON_BEGIN.match(text.removeprefix(b"\xef\xbb\xbf")) is not None


SCHEMA_PARENTS: Final = frozenset(
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependentRequired"]
)
"""Members of a JSON Schema whose members have names of properties, and what defines these."""
SCHEMA_VALUES: Final = frozenset(["default", "const", "enum", "examples", "example"])
"""Members of a definition that have values of the property."""
_SCHEMA_WORDS: Final = frozenset(
    [
        *("type", "title", "description", "format", "pattern", "properties", "patternProperties", "propertyNames"),
        *("additionalProperties", "required", "items", "prefixItems", "contains", "additionalItems", "nullable"),
        *("unevaluatedItems", "unevaluatedProperties", "allOf", "anyOf", "oneOf", "not", "if", "then", "else"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength"),
        *("minItems", "maxItems", "uniqueItems", "minContains", "maxContains", "minProperties", "maxProperties"),
        *("dependentRequired", "dependentSchemas", "dependencies", "definitions", "readOnly", "writeOnly"),
        *("deprecated", "enumNames", "contentEncoding", "contentMediaType", "contentSchema", "discriminator"),
    ]
)
"""Other members of a definition: JSON Schema 2020-12 and draft 7, OpenAPI, and the schemas of elicitation in MCP."""


def is_definition(path: tuple[str, ...], at: int, *, values: bool) -> bool:
    """Say whether what is at ``path`` defines the property named at ``path[at]``, and is no value of it.

    ``values``: what a schema has as a value of the property (``default``, ``enum``) counts as a value.
    """
    if at == 0 or path[at - 1] not in SCHEMA_PARENTS or at + 1 == len(path):
        return False
    word = path[at + 1]
    if values and not SCHEMA_VALUES.isdisjoint(path[at + 1 :]):
        return False
    return (
        word in _SCHEMA_WORDS
        or word in SCHEMA_VALUES
        or word.startswith(("$", "x-"))
        or path[at - 1] == "dependentRequired"
    )
