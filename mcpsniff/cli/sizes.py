"""Sizes as people write them, such as ``64M``."""

import re
from typing import Final

from mcpsniff.capture.labels import shown
from mcpsniff.errors import UsageError

UNITS: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
SMALLEST: Final = 64 << 10
"""Bytes of the smallest size but 0: what one read returns should fit."""
_SIZE: Final = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?)\s*([kmgt]?)(?:i?b)?", re.ASCII | re.IGNORECASE)


def in_bytes(text: str) -> int:
    """Return the size that ``text`` means: a number with k, M, G or T (of 1024), or bytes. Raises UsageError."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"{shown(text) or 'nothing'} is no size; sizes are written like 500k, 64M or 1G (0: no limit)")
    value = int(float(found[1]) * UNITS[found[2].lower()])
    if 0 < value < SMALLEST:
        hint = f"; did you mean {found[1]}M?" if not found[2] else ""
        raise UsageError(f"{shown(text)} is too small for a capture, the least is 64k{hint}")
    return value
