"""Where playing begins and ends: a moment, or the number of an event, as in a filter with ``t:`` and ``n:``."""

from typing import NamedTuple

from mcpsniff.errors import UsageError
from mcpsniff.replay.play.reel import Item
from mcpsniff.transcript.filter.error import BadValueError
from mcpsniff.transcript.filter.values import moment, whole
from mcpsniff.transcript.units import moment as told


class Bound(NamedTuple):
    """A moment (microseconds since the start) or the number of an event; one of them is None."""

    t: int | None = None
    n: int | None = None

    def is_reached(self, item: Item) -> bool:
        """True if ``item`` lies there or behind."""
        return item.t >= self.t if self.t is not None else item.row.n >= (self.n or 0)

    def is_passed(self, item: Item) -> bool:
        """True if ``item`` lies behind it."""
        return item.t > self.t if self.t is not None else item.row.n > (self.n or 0)

    def __str__(self) -> str:
        return told(self.t) if self.t is not None else f"#{self.n}"


def read_bound(text: str | None, started: str | None, option: str) -> Bound | None:
    """Read what an option says; ``started`` (RFC 3339) is when the session began, if known. Raises UsageError.

    ``10s``, ``1m20s``, ``1:02.345`` and ``10:32:05Z`` are moments, ``#12`` is a number; ``t:`` and ``n:`` may stand
    before them as in a filter (a shell takes ``#12`` after a space for a comment).
    """
    if text is None:
        return None
    said = text.strip()
    try:
        if said.startswith(("#", "n:")):
            return Bound(n=whole(said.removeprefix("n:").removeprefix("#")))
        said = said.removeprefix("t:")
        if not said:
            raise BadValueError("nothing is said")
        return Bound(t=int(moment(started)(said)))
    except BadValueError as error:
        meant = f"; did you mean {error.suggestion}?" if error.suggestion else ""
        ways = "a moment such as 10s or 1:02.345, or a number such as '#12'"
        raise UsageError(f"{option} needs {ways}: {error}{meant}") from None


def check_order(first: Bound | None, last: Bound | None) -> None:
    """Raise UsageError where the end is known to lie before the beginning."""
    if first is None or last is None:
        return
    for begin, end in ((first.t, last.t), (first.n, last.n)):
        if begin is not None and end is not None and begin > end:
            raise UsageError(f"--to {last} lies before --from {first}")
