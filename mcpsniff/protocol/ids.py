"""Ids and tokens that are numbers, compared by exact value: 1.0 is 1, and 2^65 is not its neighbour."""

from decimal import Decimal, InvalidOperation
from typing import Final, NamedTuple

from mcpsniff.protocol.message import IdKey

LONGEST_INTEGER: Final = 1000
"""Digits of an integer id that is compared as an integer; longer ones are compared by their digits."""


class Exact(NamedTuple):
    """A number as it is written without trailing zeros: ``digits`` times ten to the ``power``."""

    negative: int
    digits: str
    power: int


def number_key(token: str) -> IdKey | None:
    """The key by which a number pairs, from its JSON token; None if it is not finite."""
    try:
        number = Decimal(token)
    except InvalidOperation:
        return ("number", token)  # an exponent beyond all bounds: equal only to itself
    if not number.is_finite():
        return None
    # Not normalize(): arithmetic rounds to the context's precision and overflows beyond its exponents.
    sign, digits, exponent = number.as_tuple()
    text = "".join(map(str, digits)).lstrip("0")
    significant = text.rstrip("0")
    exact = Exact(sign, significant, int(exponent) + len(text) - len(significant)) if significant else Exact(0, "", 0)
    if exact.power < 0 or len(significant) + exact.power > LONGEST_INTEGER:
        return ("number", exact)
    value: int = int(significant or "0") * 10**exact.power
    return -value if sign else value


def is_fraction(key: IdKey | None) -> bool:
    """True if the number behind a key has a fractional part."""
    return isinstance(key, tuple) and isinstance(key[1], Exact) and key[1].power < 0
