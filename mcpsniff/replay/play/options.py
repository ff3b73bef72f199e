"""Read how fast a recording is to be played, and how long a gap is waited for."""

import math
import re
from typing import Final

from mcpsniff.errors import UsageError
from mcpsniff.replay.play.clock import NO_WAITING
from mcpsniff.transcript.filter.error import BadValueError
from mcpsniff.transcript.filter.values import DURATIONS, amount

_NUMBER: Final = re.compile(r"\d+(?:\.\d*)?|\.\d+", re.ASCII)
_FASTEST: Final = 1_000_000
_SLOWEST: Final = 0.001


def read_speed(text: str) -> float:
    """``2``, ``x2``, ``0.5``; ``max`` and ``0``: without waiting (`NO_WAITING`). Raises UsageError."""
    said = text.strip().lower()
    number = said.removeprefix("x").removesuffix("x")
    if said == "max":
        return NO_WAITING
    if not _NUMBER.fullmatch(number) or len(number) > 30:
        raise UsageError(f"--speed needs a number such as 2 or 0.5, or max, not {text!r}")
    speed = float(number)
    if speed and not _SLOWEST <= speed <= _FASTEST:
        raise UsageError(f"--speed goes from {_SLOWEST} to {_FASTEST:,}, and max waits for nothing")
    return speed or NO_WAITING


def read_idle(text: str) -> int | None:
    """Seconds, or a duration such as ``500ms``, as microseconds; None for ``none``: no limit. Raises UsageError."""
    said = text.strip().lower()
    if said == "none":
        return None
    try:
        us = amount(DURATIONS)(f"{said}s" if _NUMBER.fullmatch(said) else said)
    except BadValueError:
        raise UsageError(f"--idle-limit needs seconds or a duration such as 500ms, or none, not {text!r}") from None
    return math.ceil(us)
