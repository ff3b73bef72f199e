"""Headers that repeat what a request says (2026-07-28, Streamable HTTP, request metadata).

A client names the method and the tool, prompt or resource in ``Mcp-Method`` and ``Mcp-Name``, so that what stands in
between can route without reading bodies. A tool may ask for more: a property of its inputSchema with ``x-mcp-header``
is repeated in ``Mcp-Param-<that name>``.
"""

import base64
import binascii
import re
from collections import OrderedDict
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final, NamedTuple

from mcpsniff.protocol.reading import Unread

PREFIX: Final = "mcp-param-"
TOOLS_LIMIT: Final = 1_000
"""Tools of one server whose headers are remembered."""
MOST_HEADERS: Final = 100
"""Headers of one tool that are looked for."""
MOST_PROPERTIES: Final = 10_000
"""Properties of one schema that are looked at."""

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_NUMBER: Final = re.compile(r"-?[0-9]{1,40}(?:\.[0-9]{1,40})?\Z")
_TYPES: Final = frozenset({"string", "integer", "boolean"})
_SENTINEL_START: Final = "=?base64?"
_SENTINEL_END: Final = "?="


class ParamHeader(NamedTuple):
    """An argument that is repeated in a header."""

    name: str
    """Of the header, in lower case."""
    path: tuple[str, ...]
    """From the arguments to the value."""


def param_headers(tool: Mapping[str, Any]) -> tuple[ParamHeader, ...]:
    """The headers that a tool asks for; none if its definition breaks the rules, since clients have to drop it then."""
    found: list[ParamHeader] = []
    waiting: list[tuple[tuple[str, ...], Any]] = [((), tool.get("inputSchema"))]
    looked_at = 0
    while waiting:
        path, schema = waiting.pop()
        properties = schema.get("properties") if isinstance(schema, dict) else None
        if not isinstance(properties, dict) or isinstance(properties, Unread):
            continue
        for name, inner in properties.items():
            looked_at += 1
            if looked_at > MOST_PROPERTIES:
                return ()
            here = (*path, name)
            if isinstance(inner, dict) and "x-mcp-header" in inner:
                asked = inner["x-mcp-header"]
                if not isinstance(asked, str) or not _TOKEN.match(asked) or inner.get("type") not in _TYPES:
                    return ()
                found.append(ParamHeader(PREFIX + asked.lower(), here))
            waiting.append((here, inner))
    names = {header.name for header in found}
    return tuple(found) if len(names) == len(found) <= MOST_HEADERS else ()


def learn(known: OrderedDict[str, tuple[ParamHeader, ...]], tools: Any) -> None:
    """Note in ``known``, by tool, what a list of tools says; at most TOOLS_LIMIT, the oldest going first."""
    for tool in tools if isinstance(tools, list) else ():
        name = tool.get("name") if isinstance(tool, dict) else None
        if isinstance(name, str):
            known.pop(name, None)
            headers = param_headers(tool)
            if headers:
                known[name] = headers
    while len(known) > TOOLS_LIMIT:
        known.popitem(last=False)


def argument(arguments: Any, path: tuple[str, ...]) -> Any:
    """The value at ``path``; None if there is none."""
    for name in path:
        if not isinstance(arguments, dict):
            return None
        arguments = arguments.get(name)
    return None if isinstance(arguments, Unread) else arguments


def decoded(header: str) -> str | None:
    """What a header's value says, its Base64 form undone; None if that cannot be read."""
    text = header.strip(" \t")
    if not (text.startswith(_SENTINEL_START) and text.endswith(_SENTINEL_END)):
        return text
    try:
        coded = text[len(_SENTINEL_START) : -len(_SENTINEL_END)]
        return base64.b64decode(coded, validate=True).decode()
    except (binascii.Error, ValueError):
        return None


def says(header: str, value: Any) -> bool:
    """True if the value of a header says ``value``; integers are compared as numbers."""
    said = decoded(header)
    if said is None:
        return False
    if isinstance(value, bool):
        return said == ("true" if value else "false")
    if isinstance(value, int | Decimal | float):
        return _NUMBER.match(said) is not None and Decimal(said) == Decimal(str(value))
    return bool(said == value)
