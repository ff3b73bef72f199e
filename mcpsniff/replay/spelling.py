"""Change a few values in a JSON text and leave every other byte as it was.

A replayed message carries another id, another progress token, another request id to cancel; whatever else stands in it
(the order of names, white space, 1.0 that is not 1, a name that stands there twice) is what somebody may be after.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Final

from mcpsniff.protocol.message import ERROR, INVALID, NOTIFICATION, REQUEST, RESPONSE, Message
from mcpsniff.protocol.outline import name_of, outline
from mcpsniff.protocol.revisions import META_PREFIX

type Path = tuple[str, ...]
"""Member names from the top down to a value."""

ID: Final[Path] = ("id",)
TOKEN: Final[Path] = ("params", "progressToken")
"""The token that a progress notification names."""
OFFERED_TOKEN: Final[Path] = ("params", "_meta", "progressToken")
"""The token that a request offers."""
CANCELLED_ID: Final[Path] = ("params", "requestId")
SUBSCRIPTION: Final[Path] = ("params", "_meta", META_PREFIX + "subscriptionId")
SUBSCRIPTION_RESULT: Final[Path] = ("result", "_meta", META_PREFIX + "subscriptionId")


class Template:
    """A message's text with holes at some of its values, to be filled again and again."""

    def __init__(self, raw: bytes, paths: Iterable[Path], *, is_plain: bool = False) -> None:
        """``raw`` is one JSON text; a path that leads nowhere has no hole. Bytes that are no UTF-8 stay as they are.

        Where a name stands several times the last one counts, as in every SDK, and so do others that say the same.
        ``is_plain`` says that it is a JSON object in which no name does; then an id is found without reading it all.
        """
        text = raw.decode(errors="surrogateescape")
        wanted = [path for path in dict.fromkeys(paths) if _may_have(text, path)]
        if is_plain and wanted == [ID] and (place := _outer_id(text)) is not None:
            found = [place]
        else:
            found = sorted(place for path in wanted for place in _alike(text, _places(text, path)))
        self._pieces: list[str] = []
        self._holes: list[tuple[Path, str]] = []
        position = 0
        for start, stop, path in found:
            self._pieces.append(text[position:start])
            self._holes.append((path, text[start:stop]))
            position = stop
        self._rest = text[position:]

    @property
    def tokens(self) -> dict[Path, str]:
        """What stands in the holes: JSON tokens as they are spelt."""
        return dict(self._holes)

    def fill(self, tokens: Mapping[Path, str]) -> bytes:
        """The text with these JSON tokens in its holes; a hole for which there is none keeps what it had."""
        parts: list[str] = []
        for piece, (path, recorded) in zip(self._pieces, self._holes, strict=True):
            parts += (piece, tokens.get(path, recorded))
        return "".join((*parts, self._rest)).encode(errors="surrogateescape")


def respelt(raw: bytes, tokens: Mapping[Path, str]) -> bytes:
    """The JSON text ``raw`` with other JSON tokens at these paths; a path that leads nowhere changes nothing."""
    return Template(raw, tokens).fill(tokens)


def paths_of(message: Message) -> tuple[Path, ...]:
    """The places in a message that differ from one run to the next: its id, tokens, the id it cancels."""
    if message.kind in (RESPONSE, ERROR, INVALID):
        return (ID, SUBSCRIPTION_RESULT) if message.meta else (ID,)
    paths: tuple[Path, ...] = (ID, OFFERED_TOKEN) if message.kind == REQUEST else ()
    if message.kind == NOTIFICATION and message.method == "notifications/progress":
        paths += (TOKEN,)
    elif message.kind == NOTIFICATION and message.method == "notifications/cancelled":
        paths += (CANCELLED_ID,)
    return (*paths, SUBSCRIPTION) if message.kind == NOTIFICATION and message.meta else paths


def value_at(value: object, path: Path) -> object:
    """The value at a path of a parsed JSON text; None if the path leads nowhere."""
    for name in path:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def token_of(raw: bytes, path: Path) -> str | None:
    """The JSON token at a path of a JSON text as it is spelt; None if the path leads nowhere."""
    return Template(raw, (path,)).tokens.get(path)


def _places(text: str, path: Path) -> list[tuple[int, int, Path]]:
    """Where the value stands; more than once if a name on the way does."""
    places = [(0, len(text))]
    for name in path:
        inner: list[tuple[int, int]] = []
        for start, stop in places:
            part = text[start:stop]
            if part.lstrip(" \t\r\n\ufeff")[:1] != "{":
                continue
            lead = len(part) - len(part.lstrip("\ufeff"))
            members = outline(part[lead:]).members
            inner += [(start + lead + a, start + lead + b) for token, a, b in members if name_of(token) == name]
        places = inner
    return [(start, stop, path) for start, stop in places]


def _may_have(text: str, path: Path) -> bool:
    return "\\u" in text or all(f'"{name}"' in text or json.dumps(name) != f'"{name}"' for name in path)


_AT_START: Final = re.compile(r'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*("[^"\\]*+"|[-+.\w]++)\s*[,}]')
_AT_END: Final = re.compile(r'[,{]\s*"id"\s*:\s*("[^"\\]*+"|[-+.\w]++)\s*\}\s*\Z')
_END: Final = 1_000


def _outer_id(text: str) -> tuple[int, int, Path] | None:
    """Where the id of a JSON object stands, if it is at its beginning or its end, as almost everybody has it."""
    found = _AT_START.match(text) or _AT_END.search(text, max(0, len(text) - _END))
    return None if found is None else (*found.span(1), ID)


def _alike(text: str, places: list[tuple[int, int, Path]]) -> list[tuple[int, int, Path]]:
    """The last of these places, and those with the same text."""
    if not places:
        return []
    start, stop, _ = places[-1]
    return [place for place in places if text[place[0] : place[1]] == text[start:stop]]
