"""What the authorizations of a session over HTTP come to."""

from collections.abc import Iterator
from typing import Final

from mcpsniff.protocol.oauth import AUTHORIZED, REFRESH, TOKEN, Step
from mcpsniff.transcript.units import count

LIMIT: Final = 10_000
"""Authorizations of which it is remembered how far they came, the latest."""
ACCEPTED: Final = "with a token that was accepted"
GRANTED: Final = "with a token that was not seen in use"
WITHOUT: Final = "without a token"


class AuthCounts:
    """Feed it the steps of authorizations, each once, then read its lines."""

    def __init__(self) -> None:
        self.steps = self.vain = 0
        """Steps of authorizations; looks for metadata from which none came."""
        self.ends = {ACCEPTED: 0, GRANTED: 0, WITHOUT: 0}
        """How far the authorizations came."""
        self._known: dict[int, str] = {}

    def feed(self, step: Step) -> None:
        """Count a step."""
        if not step.number:
            self.vain += 1
            return
        self.steps += 1
        before = self._known.get(step.number)
        after = WITHOUT if before is None else before
        if step.name == AUTHORIZED:
            after = ACCEPTED
        elif step.name in (TOKEN, REFRESH) and step.succeeded and after == WITHOUT:
            after = GRANTED
        if after == before:
            return
        if before is not None:
            self.ends[before] -= 1
        self.ends[after] += 1
        self._known[step.number] = after
        if len(self._known) > LIMIT:
            del self._known[next(iter(self._known))]

    def lines(self) -> Iterator[str]:
        """What it all comes to; nothing if there was none."""
        total = sum(self.ends.values())
        if total:
            ends = ", ".join(f"{number:,} {end}" for end, number in self.ends.items() if number)
            yield f"OAuth: {count(total, 'authorization')}, {ends}; {count(self.steps, 'step')}"
        if self.vain:
            yield f"OAuth: {count(self.vain, 'look')} for metadata found none"
