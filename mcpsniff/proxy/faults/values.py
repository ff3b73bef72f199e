"""The values of faults: times, sizes, parts of a text, codes. What cannot be read raises ValueError with the reason."""

from decimal import Decimal
from http import HTTPStatus
from typing import Final, NamedTuple

from mcpsniff.transcript.filter.values import DURATIONS, SIZES, amount

LONGEST: Final = 24 * 3_600_000_000
"""Microseconds of the longest time."""
MOST_BYTES: Final = 1 << 30

_time = amount(DURATIONS)
_size = amount(SIZES)


class Times(NamedTuple):
    """A time in microseconds, or any between two."""

    low: int
    high: int

    def at(self, chance: float) -> int:
        """The time that ``chance`` (0 to 1) picks, in whole milliseconds where there is room for them."""
        picked = self.low + round((self.high - self.low) * chance)
        rounded = picked // 1000 * 1000
        return rounded if rounded >= self.low else picked


class Part(NamedTuple):
    """The first bytes of something: a number of them, or so many percent."""

    number: int
    is_percent: bool

    def of(self, size: int) -> int:
        """How many bytes of ``size``, and never all of them."""
        return max(0, min(size - 1, size * self.number // 100 if self.is_percent else self.number))


class Status(NamedTuple):
    """A status of HTTP, and what its header (`Retry-After`, `WWW-Authenticate`) says; empty: as usual."""

    code: int
    detail: str


class Code(NamedTuple):
    """An error of JSON-RPC."""

    code: int
    text: str


def nothing(text: str) -> None:
    """For faults without a value."""
    if text:
        raise ValueError("it takes no value")


def words(text: str) -> str:
    """Any text on one line."""
    if not text or "\n" in text or "\r" in text:
        raise ValueError("it takes one line of text")
    return text


def time(text: str) -> Times:
    """One time, such as 200ms."""
    return Times(_us(text), _us(text))


def times(text: str) -> Times:
    """One time or two, such as 100ms..2s."""
    low, dots, high = text.partition("..")
    if not dots:
        return time(text)
    found = Times(_us(low), _us(high))
    if found.low > found.high:
        raise ValueError(f"the range begins behind its end: {high}..{low}")
    return found


def spelt(us: int) -> str:
    """A time as `time` reads it."""
    return f"{us}us" if us % 1000 else f"{us // 1000}ms"


def part(text: str) -> Part:
    """A number of bytes, or of percent."""
    if text.endswith("%"):
        number = whole(text[:-1])
        if number > 99:
            raise ValueError(f"{text} is not a part of something: 0% to 99%")
        return Part(number, is_percent=True)
    return Part(size(text), is_percent=False)


def size(text: str) -> int:
    """A number of bytes; k, m and g count 1,024 each."""
    number = _size(text) if text else None
    if number is None or number > MOST_BYTES or number % 1:
        raise ValueError(f"{text or 'nothing'} is no number of bytes, such as 20 or 1k")
    return int(number)


def rate(text: str) -> int:
    """Bytes per second."""
    number = size(text)
    if not number:
        raise ValueError("at 0 bytes per second nothing goes on: that is the fault stall")
    return number


def whole(text: str) -> int:
    """A whole number."""
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise ValueError(f"{text or 'nothing'} is no whole number")
    return int(text)


def status(text: str) -> Status:
    """A status of HTTP that refuses, with what its header says after a colon."""
    code, _, detail = text.partition(":")
    if not (len(code) == 3 and code.isascii() and code.isdigit() and 400 <= int(code) <= 599):
        raise ValueError(f"{code or 'nothing'} is no status of HTTP that refuses: 400 to 599")
    if not (detail.isprintable() and detail.isascii()):
        raise ValueError("what a header says is printable ASCII")
    return Status(int(code), detail)


def phrase(code: int) -> str:
    """The words of a status."""
    try:
        return HTTPStatus(code).phrase
    except ValueError:
        return "Refused"


def code(text: str) -> Code:
    """A code of JSON-RPC, with the message of the error after a colon."""
    number, _, said = text.partition(":")
    digits = number.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 10):
        raise ValueError(f"{number or 'nothing'} is no code of an error, such as -32603")
    return Code(int(number), said or "Internal error")


def wrong_id(text: str) -> str:
    """How an id is wrong."""
    if text not in WRONG_IDS:
        raise ValueError(f"{text or 'nothing'} is none of {', '.join(WRONG_IDS)}")
    return text


WRONG_IDS: Final = ("type", "other", "null", "none")


def _us(text: str) -> int:
    number = _time(text) if text else Decimal(-1)
    if not 0 <= number <= LONGEST:
        raise ValueError(f"{text or 'nothing'} is no time up to 24 h, such as 200ms")
    return int(number)
