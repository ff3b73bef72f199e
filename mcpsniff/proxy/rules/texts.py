"""Read what options and files say of rules: headers, JSON, amounts of time, places.

All of it raises UsageError, which says what is wrong; where it stands is up to the caller.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from mcpsniff.errors import UsageError
from mcpsniff.protocol.patch import text_of
from mcpsniff.protocol.paths import DEEP, Pattern, Wild
from mcpsniff.protocol.reading import JsonReader
from mcpsniff.transcript.filter.error import BadValueError
from mcpsniff.transcript.filter.values import DURATIONS, amount

LONGEST_DELAY: Final = 3_600_000_000
"""Microseconds for which a rule may hold a message."""
LONGEST_SHOWN: Final = 40
_HEADER_NAME: Final = re.compile(r"[-!#$%&'*+.^_`|~0-9A-Za-z]+")
_FRAMING: Final = frozenset({"content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "expect"})
"""Headers that say how the bytes travel: mcpsniff makes them true."""
_RESOURCE: Final = "resource:"


def expression(text: str) -> str:
    """A filter expression; ``resource:URI`` alone is what filters call ``uri:URI``."""
    is_resource = text.lower().startswith(_RESOURCE)
    return f"uri:{text[len(_RESOURCE) :]}" if is_resource else text


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
    value = JsonReader().read(text.encode(errors="surrogateescape")).value
    if value is None and text.strip() != "null":
        quoted = json.dumps(text, ensure_ascii=False)
        meant = f"; did you mean {quoted}?" if may_be_text and len(text) <= LONGEST_SHOWN else ""
        raise UsageError(f"{_short(text) or 'nothing'} is not JSON{meant}")
    return sayable(value)


def sayable(value: Any) -> Any:
    """A value that JSON can say."""
    try:
        text_of(value)
    except (TypeError, ValueError) as error:
        raise UsageError(f"JSON cannot say this: {error}") from None
    return value


def json_file(name: str, folder: Path | None = None) -> Any:
    """What a file with JSON says; ``folder`` is where a relative name begins."""
    path = Path(name).expanduser() if folder is None else folder / Path(name).expanduser()
    try:
        raw = path.read_bytes()
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    value = JsonReader().read(raw.strip()).value
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


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"
