"""Read one JSON text without losing what a fast parser hides.

orjson is quick and strict, but the last of two equal names wins in silence, integers beyond 64 bits become floats,
and nesting ends near 1,024. So a text is first read by orjson and written again: if the very same bytes come out,
nothing was hidden. Otherwise the standard library reads it again with hooks that watch each name and number.
"""

import json
import re
from contextlib import suppress
from decimal import Decimal
from typing import Any, Final, NamedTuple

import orjson

from mcpsniff.protocol.outline import Outline, name_of, outline
from mcpsniff.wire.frames import BOM, INCOMPLETE, INVALID_UTF8

MAX_DEPTH: Final = 200
"""Nesting beyond this is flagged: peers' parsers break between 126 and some thousands."""
MAX_SAFE_INTEGER: Final = 2**53 - 1

NOT_JSON: Final = "not-json"
TRAILING_DATA: Final = "trailing-data"
NOT_UTF8: Final = "not-utf8"
DUPLICATE_KEY: Final = "duplicate-key"
NAN_OR_INFINITY: Final = "nan-or-infinity"
UNSAFE_INTEGER: Final = "unsafe-integer"
NUMBER_OVERFLOW: Final = "number-overflow"
LONE_SURROGATE: Final = "lone-surrogate"
TOO_DEEP: Final = "too-deep"

TEXT_FLAWS: Final = {
    NOT_JSON: "the text is not RFC 8259 JSON",
    TRAILING_DATA: "more text follows the first JSON value",
    NOT_UTF8: "the text is in another encoding than UTF-8",
    DUPLICATE_KEY: "one object names a member twice, so readers disagree on which one counts",
    NAN_OR_INFINITY: "NaN or Infinity is not JSON",
    UNSAFE_INTEGER: "an integer lies beyond 2^53-1 in magnitude, where doubles lose digits",
    NUMBER_OVERFLOW: "a number lies beyond the range of a double",
    LONE_SURROGATE: "an escape names half of a surrogate pair",
    TOO_DEEP: f"nesting is deeper than {MAX_DEPTH}",
}


class Reading(NamedTuple):
    """What one text says: its value, its flaws, and (only where they had to be looked up) its text and places."""

    value: Any
    flaws: tuple[str, ...] = ()
    text: str | None = None
    places: Outline | None = None


class Unread:
    """Marks a value that stands in the text but was not read (too deep, or cut by the observer)."""

    __slots__ = ()


class UnreadObject(Unread, dict[str, Any]):
    """An object whose members were not read, but for some that hold no others."""

    __slots__ = ()


class UnreadArray(Unread, list[Any]):
    """An array whose elements were not read."""

    __slots__ = ()


# A value wrapped in this many arrays passes orjson's limit of 254 exactly when it is at most MAX_DEPTH deep.
_WRAPS: Final = 254 - MAX_DEPTH
_STRICT: Final = orjson.OPT_STRICT_INTEGER


class JsonReader:
    """Reads JSON texts one after another. Not for use by two threads at once."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._decoder = json.JSONDecoder(
            object_pairs_hook=self._object,
            parse_int=self._integer,
            parse_float=self._float,
            parse_constant=self._constant,
        )
        self._slot: list[Any] = [None]
        self._wrapped = self._slot
        for _ in range(_WRAPS - 1):
            self._wrapped = [self._wrapped]

    def read(self, payload: bytes, frame_flaws: tuple[str, ...] = ()) -> Reading:
        """Read a frame's payload. Never raises; a text that is no JSON has the value None and the flaw not-json."""
        try:
            value = orjson.loads(payload)
            if self._written(value, payload) == payload:
                return Reading(value)
        except (orjson.JSONDecodeError, orjson.JSONEncodeError):
            pass
        return self._read_closely(payload, frame_flaws)

    def _written(self, value: Any, payload: bytes) -> bytes:
        if payload.count(b"[") + payload.count(b"{") <= MAX_DEPTH:
            return orjson.dumps(value, option=_STRICT)
        self._slot[0] = value
        try:
            return orjson.dumps(self._wrapped, option=_STRICT)[_WRAPS:-_WRAPS]
        finally:
            self._slot[0] = None

    def _is_flat(self, value: Any) -> bool:
        """True if a value is certain to be at most MAX_DEPTH deep; walking its text would take far longer."""
        self._slot[0] = value
        try:
            orjson.dumps(self._wrapped)
        except orjson.JSONEncodeError:
            return False
        finally:
            self._slot[0] = None
        return True

    def _read_closely(self, payload: bytes, frame_flaws: tuple[str, ...]) -> Reading:
        text = payload.decode(errors="replace")
        if BOM in frame_flaws or text.startswith("\ufeff"):
            text = text.removeprefix("\ufeff")
        if not INCOMPLETE.isdisjoint(frame_flaws):
            return self._partial(text, ())
        self._seen = seen = set()
        try:
            value = self._decoder.decode(text)
        except RecursionError:
            return self._partial(text, (TOO_DEEP,))
        except ValueError as error:
            return Reading(None, self._why_not_json(text, payload, error), text)
        places = None
        may_be_deep = payload.count(b"[") + payload.count(b"{") > MAX_DEPTH and not self._is_flat(value)
        if may_be_deep or DUPLICATE_KEY in seen:
            places = outline(text)
            if places.depth > MAX_DEPTH:
                seen.add(TOO_DEEP)
        if ("\\ud" in text or "\\uD" in text) and _has_lone_surrogate(text):
            seen.add(LONE_SURROGATE)
        return Reading(value, tuple(sorted(seen)), text, places)

    def _why_not_json(self, text: str, payload: bytes, error: ValueError) -> tuple[str, ...]:
        flaws = [NOT_JSON]
        if isinstance(error, json.JSONDecodeError) and error.msg == "Extra data" and text[:1] in "{[ \t\r\n":
            flaws.append(TRAILING_DATA)
        if payload[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in payload[:2]:
            flaws.append(NOT_UTF8)
        return tuple(flaws)

    def _partial(self, text: str, flaws: tuple[str, ...]) -> Reading:
        """Read the top level only: what stands there can be known whatever lies beneath or is missing."""
        places = outline(text)
        if flaws and not places.complete:
            return Reading(None, (*flaws, NOT_JSON), text, places)
        if not text.lstrip(" \t\r\n").startswith("{"):
            return Reading(UnreadArray() if text.lstrip(" \t\r\n").startswith("[") else None, flaws, text, places)
        value = UnreadObject()
        for name, start, stop in places.members:
            value[name_of(name)] = self._member(text[start:stop])
        if places.unfinished is not None:
            name, start = places.unfinished
            value[name_of(name)] = UnreadObject() if text[start] == "{" else UnreadArray()
        return Reading(value, flaws, text, places)

    def _member(self, text: str) -> Any:
        if text[:1] not in "{[" or len(text) <= 4096:
            try:
                return self._decoder.decode(text)
            except (RecursionError, ValueError):
                pass
        return self._names_of(text) if text.startswith("{") else UnreadArray() if text.startswith("[") else None

    def _names_of(self, text: str) -> UnreadObject:
        """An object of which only members are read that hold no others: which tool is called does not depend on how."""
        found = UnreadObject()
        for name, start, stop in outline(text).members:
            if text[start] not in "{[":
                with suppress(ValueError):
                    found[name_of(name)] = self._decoder.decode(text[start:stop])
        return found

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) != len(pairs):
            self._seen.add(DUPLICATE_KEY)
        return members

    def _integer(self, digits: str) -> int | Decimal:
        if len(digits) < 16:
            return int(digits)
        # int() refuses more than 4,300 digits; Decimal keeps any number exactly.
        number = int(digits) if len(digits) < 4000 else Decimal(digits)
        if not -MAX_SAFE_INTEGER <= number <= MAX_SAFE_INTEGER:
            self._seen.add(UNSAFE_INTEGER)
        return number

    def _float(self, digits: str) -> float:
        number = float(digits)
        if number in (float("inf"), float("-inf")):
            self._seen.add(NUMBER_OVERFLOW)
        return number

    def _constant(self, word: str) -> float:
        self._seen.add(NAN_OR_INFINITY)
        return float(word.replace("Infinity", "inf"))


# One match per escape, so that the second half of "\\\\ud800" (an escaped backslash, then text) is not taken for one.
_ESCAPE: Final = re.compile(
    r"\\(?:u(?P<high>[dD][89abAB][0-9a-fA-F]{2})(?P<pair>\\u[dD][c-fC-F][0-9a-fA-F]{2})?"
    r"|u(?P<low>[dD][c-fC-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


def _has_lone_surrogate(text: str) -> bool:
    return any(m["low"] or (m["high"] and not m["pair"]) for m in _ESCAPE.finditer(text))


def is_strict(flaws: tuple[str, ...]) -> bool:
    """True if the text may be spliced into a JSON document as it stands: plain JSON, at most MAX_DEPTH deep."""
    return not (_NOT_SPLICEABLE & set(flaws)) if flaws else True


_NOT_SPLICEABLE: Final = (
    frozenset({NOT_JSON, TRAILING_DATA, NAN_OR_INFINITY, LONE_SURROGATE, TOO_DEEP, INVALID_UTF8, NOT_UTF8}) | INCOMPLETE
)
