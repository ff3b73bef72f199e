"""Ages as people write them, such as ``7d``."""

import re
from typing import Final

from mcpsniff.capture.labels import shown
from mcpsniff.errors import UsageError

UNITS: Final = {"s": 1, "min": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
LONGEST: Final = 100 * 366 * 86400
_NAMES: Final = {
    "s": "s sec secs second seconds",
    "min": "min mins minute minutes",
    "h": "h hr hrs hour hours",
    "d": "d day days",
    "w": "w week weeks",
}
_AGE: Final = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*([^\W\d_]*)", re.ASCII)
_EXAMPLES: Final = "ages are written like 12h, 7d or 2w (s, min, h, d, w)"


def seconds(text: str) -> float:
    """Return the age that ``text`` means, in seconds. Raises UsageError with what may have been meant."""
    number, unit = (found[1], found[2]) if (found := _AGE.fullmatch(text.strip())) else ("", "")
    if unit in UNITS:
        value = float(number) * UNITS[unit]
        if value <= LONGEST:
            return value
        raise UsageError(f"{shown(text)} is longer than a hundred years")
    raise UsageError(f"{shown(text) or 'nothing'} is no age{_suggestion(number, unit)}; {_EXAMPLES}")


def _suggestion(number: str, unit: str) -> str:
    if not number:
        return ""
    if not unit:
        return f": did you mean {number}d?"
    word = unit.casefold()
    for name, words in _NAMES.items():
        if word in words.split():
            return f": did you mean {number}{name}?"
    if word == "m":
        return f": did you mean {number}min, or months ({float(number) * 30:g}d)?"
    if word.startswith("mo"):
        return f": did you mean {float(number) * 30:g}d?"
    if word.startswith("y"):
        return f": did you mean {float(number) * 365:g}d?"
    return ""
