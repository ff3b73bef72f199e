"""How fast a recording is played: which of the recorded gaps are kept, and how long they are then."""

import re
from typing import Final, NamedTuple

from mcpsniff.errors import UsageError

ORIGINAL: Final = "original"
NONE: Final = "none"
_SPEED: Final = re.compile(r"x(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})", re.ASCII)
SLOWEST: Final = 0.001
FASTEST: Final = 1_000_000


class Tempo(NamedTuple):
    """What becomes of the recorded gaps."""

    factor: float = 0.0
    """What a recorded gap is multiplied with; 0 leaves all gaps out."""

    def seconds(self, gap_us: int) -> float:
        """How long a recorded gap of so many microseconds is to be."""
        return gap_us * self.factor / 1e6


AT_ONCE: Final = Tempo()


def read_tempo(text: str) -> Tempo:
    """Read ``original``, ``none`` or ``xN`` (N times as fast). Raises UsageError."""
    if text == ORIGINAL:
        return Tempo(1.0)
    if text == NONE:
        return AT_ONCE
    speed = float(text[1:]) if _SPEED.fullmatch(text) else 0.0
    if not SLOWEST <= speed <= FASTEST:
        raise UsageError(
            "--timing wants original, none, or a speed such as x2 or x0.5"
            f" (from x{SLOWEST} to x{FASTEST:,}), not {text!r}"
        )
    return Tempo(1.0 / speed)
