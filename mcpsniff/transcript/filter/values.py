"""Read the values of terms: patterns, words of a closed set, ids, and amounts with comparisons and ranges.

Everything raises BadValueError, with the place inside the value, when the value cannot be read.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from math import ceil, floor
from typing import Final, NamedTuple

from mcpsniff.protocol.ids import number_key
from mcpsniff.protocol.message import IdKey
from mcpsniff.transcript.filter.error import BadValueError, nearest
from mcpsniff.transcript.filter.lexer import Value

DURATIONS: Final = {
    "us": 1,
    "µs": 1,
    "μs": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "h": 3_600_000_000,
}
"""Microseconds of each unit; microseconds with the micro sign and with the Greek letter."""
SIZES: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}

_OPERATORS: Final = (">=", "<=", ">", "<")
_RANGE: Final = ".."
_DIGITS: Final = 18
"""Of an amount, before and after the point: more than any amount needs."""
_ID_DIGITS: Final = 1000
_BETWEEN: Final = re.compile(r"(?<=[a-zµμ])(?=\d)", re.ASCII | re.IGNORECASE)
"""Where the next of several amounts begins, as in ``1m20s``."""
_JSON_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?", re.ASCII)

type Pattern = Callable[[str], bool]
type Read = Callable[[str], Decimal | int]


class Interval(NamedTuple):
    """Whole numbers from ``low`` to ``high``, both included; None: without that end."""

    low: int | None
    high: int | None

    def holds(self, number: int) -> bool:
        """True if ``number`` lies in it."""
        return (self.low is None or number >= self.low) and (self.high is None or number <= self.high)


def pattern(value: Value) -> Pattern:
    """A test of names: ``*`` stands for any characters, also none; in quotes it is a star."""
    text = value.text
    if value.quoted or "*" not in text:
        return lambda name: name == text
    first, *inner, last = text.split("*")
    shortest = len(first) + len(last)

    def match(name: str) -> bool:
        if len(name) < shortest or not name.startswith(first) or not name.endswith(last):
            return False
        at, stop = len(first), len(name) - len(last)
        for piece in inner:
            # The leftmost place is always a right one, so nothing is tried twice.
            found = name.find(piece, at, stop)
            if found < 0:
                return False
            at = found + len(piece)
        return True

    return match


def choice(value: Value, known: Sequence[str], other_names: Mapping[str, str] | None = None) -> str:
    """One word of a closed set; ``other_names`` are what somebody may call them, for the suggestion."""
    word = value.text.lower()
    if word in known:
        return word
    meant = (other_names or {}).get(word) or nearest(word, list(known))
    raise BadValueError(f"{_short(value.text)} is none of {', '.join(known)}", 0, meant)


def id_key(value: Value) -> IdKey | None:
    """An id as pairing compares it: a number by value, anything else is a string; None for null, true and false."""
    text = value.text
    if value.quoted or not (text[0].isdigit() or text[0] == "-"):
        return None if text in ("null", "true", "false") and not value.quoted else text
    if len(text) > _ID_DIGITS:
        raise BadValueError(f"an id of more than {_ID_DIGITS} digits", 0)
    key = number_key(text) if _JSON_NUMBER.fullmatch(text) else None
    if key is None:
        raise BadValueError("a number or a string in quotes belongs here", 0, f'id:"{_short(text)}"')
    return key


def interval(value: Value, read: Read, example: str, *, exact: bool = True) -> Interval:
    """``>X``, ``>=X``, ``<X``, ``<=X``, ``X..Y`` (both included), and if ``exact`` also ``X``.

    ``read`` reads an X; ``example`` shows how it is meant.
    """
    text = value.text
    for operator in _OPERATORS:
        if text.startswith(operator):
            amount = _read(text[len(operator) :], len(operator), read, example)
            if operator == ">=":
                return Interval(ceil(amount), None)
            if operator == "<=":
                return Interval(None, floor(amount))
            return Interval(floor(amount) + 1, None) if operator == ">" else Interval(None, ceil(amount) - 1)
    low, dots, high = text.partition(_RANGE)
    if dots:
        start = _read(low, 0, read, example)
        stop = _read(high, len(low) + len(dots), read, example)
        if start > stop:
            raise BadValueError("the range begins behind its end", 0, f"{_short(high)}..{_short(low)}")
        return Interval(ceil(start), floor(stop))
    amount = _read(text, 0, read, example)
    if not exact:
        raise BadValueError("a comparison or a range belongs here", 0, f">{_short(text)}")
    return Interval(ceil(amount), floor(amount))


def _read(text: str, at: int, read: Read, example: str) -> Decimal | int:
    if not text:
        raise BadValueError(f"something is missing here, such as {example}", at)
    try:
        return read(text)
    except BadValueError as error:
        raise BadValueError(str(error), at + error.at, error.suggestion) from None


def whole(text: str) -> int:
    """A number without a unit."""
    if text.isascii() and text.isdigit() and len(text) <= _DIGITS:
        return int(text)
    long = text.isascii() and text.isdigit() and "is longer than any number here"
    raise BadValueError(f"{_short(text)} {long or 'is no whole number'}")


def amount(units: Mapping[str, int]) -> Read:
    """Read a number with one of ``units`` directly behind it."""

    def read(text: str) -> Decimal:
        stop = 0
        while stop < len(text) and (text[stop].isdigit() or text[stop] == "."):
            stop += 1
        unit = text[stop:].lower()
        number = _number(text[:stop], text)
        if unit in units:
            return number * units[unit]
        known = ", ".join(name for name in units if name and name.isascii())
        if unit:
            raise BadValueError(f"there is no unit {_short(unit)}, but {known}", stop, nearest(unit, list(units)))
        raise BadValueError(f"a unit belongs here: {known}", stop, f"{_short(text)}ms")

    return read


def _number(text: str, said: str) -> Decimal:
    before, point, after = text.partition(".")
    good = before.isdigit() and (after.isdigit() or not point) and text.isascii()
    if not good or len(before) > _DIGITS or len(after) > _DIGITS:
        long = good and "is longer than any amount here"
        raise BadValueError(f"{_short(said)} {long or 'does not begin with a number'}")
    return Decimal(text)


def moment(started: str | None) -> Read:
    """Read a moment as microseconds since ``started`` (RFC 3339).

    ``10s``, ``500ms``, ``1m20s``; ``12.345``, ``1:02.345`` and ``1:01:02`` as a transcript prints moments; and a time
    of day, ``10:32:05Z`` or ``10:32:05+02:00``, on the day of the start, or with its date, ``2026-11-29T10:32:05Z``.
    Without ``started`` a time of day cannot be placed and is taken for the start.
    """
    with_unit = amount(DURATIONS)

    def read(text: str) -> Decimal | int:
        if text[-1] in "zZ" or "+" in text or "T" in text:
            return _clock(text, started)
        if text[-1].isalpha():
            return _sum(text, with_unit)
        parts = text.split(":")
        if len(parts) > 3:
            raise BadValueError(f"{_short(text)} is no moment")
        total = _number(parts[-1], text)
        for factor, part in zip((60, 3600), reversed(parts[:-1]), strict=False):
            total += whole(part) * factor
        return total * 1_000_000

    return read


def _sum(text: str, read: Read) -> Decimal:
    """Several amounts one after the other, as in ``1m20s``."""
    total, at = Decimal(0), 0
    for piece in _BETWEEN.split(text):
        total += _read(piece, at, read, "10s")
        at += len(piece)
    return total


def _clock(text: str, started: str | None) -> int:
    try:
        begin = datetime.fromisoformat(started or "2000-01-01T00:00:00Z").astimezone(UTC)
        if "T" in text.lstrip("T"):
            at = datetime.fromisoformat(text)
        else:
            clock = time.fromisoformat(text)
            day: date = begin.astimezone(clock.tzinfo).date()
            at = datetime.combine(day, clock)
        if at.tzinfo is None:
            raise BadValueError(f"{_short(text)} does not say in which time zone", 0, f"{_short(text)}Z")
        return (at - begin) // timedelta(microseconds=1) if started else 0
    except BadValueError:
        raise
    except (ValueError, OverflowError):
        raise BadValueError(f"{_short(text)} is no time of day (10:32:05Z is one)") from None


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:39] + "…"
