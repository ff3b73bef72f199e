"""Read what options and files say of rules: headers, JSON, amounts of time, places.

All of it raises UsageError, which says what is wrong; where it stands is up to the caller.
"""

import json
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from math import isinf
from pathlib import Path
from typing import Any, Final

from mcpsniff.errors import UsageError
from mcpsniff.protocol.patch import text_of
from mcpsniff.protocol.paths import DEEP, Pattern, Wild
from mcpsniff.protocol.reading import MAX_DEPTH, TOO_DEEP, JsonReader
from mcpsniff.proxy.rules.matching import fields_of
from mcpsniff.transcript.filter.error import BadValueError, FilterError
from mcpsniff.transcript.filter.values import DURATIONS, amount

LONGEST_DELAY: Final = 3_600_000_000
"""Microseconds for which a rule may hold a message."""
LONGEST_SHOWN: Final = 40
_HEADER_NAME: Final = re.compile(r"[-!#$%&'*+.^_`|~0-9A-Za-z]+")
_FRAMING: Final = frozenset({"content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "expect"})
"""Headers that say how the bytes travel: mcpsniff makes them true."""
_RESOURCE: Final = "resource:"
_URI: Final = "uri:"
_DEEP: Final = f"this is nested deeper than {MAX_DEPTH} levels"
_LONGEST_NUMBER: Final = 10**4000
"""Integers from here on are not read as such: `mcpsniff.protocol.reading`."""


class RuleError(UsageError):
    """A rule that is none. Where a filter expression is wrong there are two lines more, which point at the place."""

    @property
    def lines(self) -> tuple[str, ...]:
        """The text by lines."""
        return tuple(str(self).split("\n"))


def expression(text: str) -> str:
    """A filter expression for held messages; ``resource:URI`` alone is what filters call ``uri:URI``.

    Raises FilterError, which points at the place in ``text``.
    """
    if not text.lower().startswith(_RESOURCE):
        fields_of(text)
        return text
    meant = _URI + text[len(_RESOURCE) :]
    try:
        fields_of(meant)
    except FilterError as error:
        raise moved(error, text, len(_RESOURCE) - len(_URI)) from None
    return meant


def moved(error: FilterError, text: str, by: int) -> FilterError:
    """The same fault, pointed at in ``text``, where the expression stands, ``by`` characters further on."""
    sentence = error.lines[0].partition(": ")[2]
    if sentence.startswith(_URI) and text.lower().startswith(_RESOURCE):
        sentence = _RESOURCE + sentence[len(_URI) :]
    return FilterError(sentence, text, max(error.column - 1 + by, 0))


def file_at(name: str) -> Path:
    """Where a file is; ``~`` is somebody's home. Raises UsageError: nobody's."""
    try:
        return Path(name).expanduser()
    except RuntimeError:
        raise UsageError(f"{name} cannot be read: there is no such user") from None


def header(name: str, value: object) -> tuple[str, str | None]:
    """A header to be set, or removed where ``value`` is None or False."""
    if not _HEADER_NAME.fullmatch(name):
        raise UsageError(f"{_short(name)} is no name of a header")
    if name.lower() in _FRAMING:
        raise UsageError(f"{name} says how the bytes travel, which mcpsniff makes true")
    if value is None or value is False:
        return name, None
    if not isinstance(value, str):
        raise UsageError(f"the header {name} is a text, or false to remove it")
    if any((ord(character) < 32 and character != "\t") or ord(character) == 127 for character in value):
        raise UsageError(f"the header {name} has a control character in it")
    try:
        value.encode("latin-1")
    except UnicodeEncodeError:
        raise UsageError(f"the header {name} has a character that HTTP cannot carry") from None
    return name, value.strip(" \t")


def json_value(text: str, *, may_be_text: bool = False) -> Any:
    """What a JSON text says; ``may_be_text``: somebody may have meant a string, and left out its quotes."""
    value, flaws, *_ = JsonReader().read(text.encode(errors="surrogateescape"))
    if TOO_DEEP in flaws:
        raise UsageError(_DEEP)
    if value is None and text.strip() != "null":
        quoted = json.dumps(text, ensure_ascii=False)
        meant = f"; did you mean {quoted}?" if may_be_text and len(text) <= LONGEST_SHOWN else ""
        raise UsageError(f"{_short(text) or 'nothing'} is not JSON{meant}")
    return sayable(value)


def sayable(value: Any) -> Any:
    """A value that can stand in a message."""
    if _is_deep(value):
        raise UsageError(_DEEP)
    for one in all_in(value):
        if isinstance(one, Decimal) or (isinstance(one, int) and abs(one) >= _LONGEST_NUMBER):
            raise UsageError("a number has more digits than can be passed on, which are 4,000")
        if isinstance(one, float) and isinf(one):
            raise UsageError("a number is infinite, or beyond what a double holds, which is 1.8e308")
    try:
        text_of(value)
    except (TypeError, ValueError) as error:
        raise UsageError(f"JSON cannot say this: {error}") from None
    return value


def json_file(name: str, folder: Path | None = None) -> Any:
    """What a file with JSON says; ``folder`` is where a relative name begins."""
    path = file_at(name) if folder is None else folder / file_at(name)
    try:
        raw = path.read_bytes()
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    value, flaws, *_ = JsonReader().read(raw.strip())
    if TOO_DEEP in flaws:
        raise UsageError(f"{path}: {_DEEP}")
    if value is None:
        raise UsageError(f"{path} is not JSON")
    return sayable(value)


def answering(value: Any) -> Mapping[str, Any]:
    """A result, which is an object, or an object with an error of JSON-RPC."""
    if not isinstance(value, dict):
        raise UsageError(
            'an answer is an object: a result, or an error such as {"error": {"code": -32000, "message": "no"}}'
        )
    return value


def microseconds(text: object) -> int:
    """A time such as ``500ms``."""
    if not isinstance(text, str) or not text:
        raise UsageError('a time is a text such as "500ms"')
    try:
        us = int(amount(DURATIONS)(text.strip()))
    except BadValueError as error:
        raise UsageError(
            f"{_short(text)} is no time: {error}" + f"; did you mean {error.suggestion}?" * bool(error.suggestion)
        ) from None
    if us > LONGEST_DELAY:
        raise UsageError(f"{_short(text)} is more than an hour")
    return us


def place(text: object) -> Pattern:
    """The pattern of a place in a message, such as ``params.arguments.city``."""
    if not isinstance(text, str):
        raise UsageError("a place is a text such as params.arguments.city")
    pattern = Pattern(text)
    if pattern.steps[-1] == Wild(DEEP):
        raise UsageError(f"{_short(text)}: a place ends with a name, a number or *")
    if not isinstance(pattern.steps[0], (str, Wild)):
        raise UsageError(f"{_short(text)}: a message has names, such as params.arguments.city")
    return pattern


def _inner(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        yield from value.values() if isinstance(value, dict) else value


def _is_deep(value: Any) -> bool:
    """True if copying it, or writing it, might take more levels than there are."""
    layer = [value]
    for _ in range(MAX_DEPTH + 1):
        layer = [one for outer in layer for one in _inner(outer)]
        if not layer:
            return False
    return True


def all_in(value: Any) -> Iterator[Any]:
    """A value and all that is in it, however deep."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        waiting += _inner(one)
        yield one


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"
