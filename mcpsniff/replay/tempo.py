"""How fast a recording is played: which of the recorded gaps are kept, and how long they are then."""

from typing import Final, NamedTuple

from mcpsniff.errors import UsageError

ORIGINAL: Final = "original"
NONE: Final = "none"
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
    try:
        speed = float(text.removeprefix("x")) if text.startswith("x") else 0.0
    except ValueError:
        speed = 0.0
    if not SLOWEST <= speed <= FASTEST:  # not a number compares false, too
        raise UsageError(f"--timing wants original, none, or a speed such as x2 or x0.5, not {text!r}")
    return Tempo(1.0 / speed)
