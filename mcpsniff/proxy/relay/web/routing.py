"""Headers that repeat what a request says, made true for a changed one (2026-07-28, `Mcp-Method`, `Mcp-Name`, ...)."""

import base64
import re
from collections import OrderedDict
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

from mcpsniff.protocol.exchange import target_of
from mcpsniff.protocol.message import Message
from mcpsniff.protocol.param_headers import PREFIX, ParamHeader, argument, says
from mcpsniff.proxy.relay.web.heads import Pairs, set_header

_PLAIN: Final = re.compile(r"[!-~](?:[ -~]*[!-~])?\Z")
_MOST: Final = 10_000
"""Arguments that are looked at."""


def encoded(value: Any) -> str | None:
    """A value as such a header has it; None if it has none."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | Decimal):
        return str(value)
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    if not isinstance(value, str):
        return None
    if _PLAIN.match(value) and not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    return f"=?base64?{base64.b64encode(value.encode(errors='surrogatepass')).decode('ascii')}?="


def made_true(headers: Pairs, was: Any, message: Message, known: OrderedDict[str, tuple[ParamHeader, ...]]) -> None:
    """Let ``headers`` say what ``message`` says. ``was`` is the body that they were true for.

    ``known``: the headers that tools ask for, as far as the server has told. A header that was not there is added only
    if a tool asks for it, or if it names what is called, and ``Mcp-Method`` is there: the client's revision knows them.
    """
    names = {name.lower() for name, _ in headers}
    is_known = "mcp-method" in names
    if is_known:
        set_header(headers, "Mcp-Method", message.method)
    target = target_of(message)
    if "mcp-name" in names or (is_known and target is not None):
        set_header(headers, "Mcp-Name", encoded(target))
    params = message.params
    arguments = params.get("arguments")
    before = (was.get("params") or {}) if isinstance(was, dict) else {}
    had = before.get("arguments") if isinstance(before, dict) else None
    asked = known.get(target or "", ()) if message.method == "tools/call" else ()
    paths = {header.name: header.path for header in asked}
    for name, value in list(headers):
        low = name.lower()
        if low.startswith(PREFIX):
            path = paths.pop(low, None) or _path(had, low.removeprefix(PREFIX), value)
            if path is not None:
                set_header(headers, name, encoded(argument(arguments, path)))
    for low, path in paths.items() if is_known else ():
        value_now = encoded(argument(arguments, path))
        if value_now is not None:
            set_header(headers, "Mcp-Param-" + low.removeprefix(PREFIX), value_now)


def _path(arguments: Any, suffix: str, value: str) -> tuple[str, ...] | None:
    """Which argument a header repeats, as far as its name or its value tells."""
    saying = [path for path, leaf in _leaves(arguments) if says(value, leaf)]
    named = [path for path in saying if path[-1].lower() == suffix]
    return named[0] if named else saying[0] if len(saying) == 1 else None


def _leaves(arguments: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    waiting: list[tuple[tuple[str, ...], Any]] = [((), arguments)]
    looked_at = 0
    while waiting and looked_at < _MOST:
        path, value = waiting.pop()
        looked_at += 1
        if isinstance(value, dict):
            waiting += [((*path, str(name)), inner) for name, inner in value.items()]
        elif path:
            yield path, value
