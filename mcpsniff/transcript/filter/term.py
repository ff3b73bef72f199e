"""A term of the filter language, compiled: one test for each type of event of which it can be true."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from mcpsniff.checks import Finding
from mcpsniff.decoder import Event
from mcpsniff.transcript.filter.texts import Texts

type Test = Callable[[Any], bool]
type Tests = dict[type[Event], Test]


class Context(NamedTuple):
    """What terms of one expression share."""

    alone: bool
    """True if messages are judged one by one, not exchanges as a whole."""
    started: str | None
    texts: Texts


@dataclass(frozen=True, slots=True)
class Term:
    """A compiled term."""

    tests: Tests
    late: bool = True
    """True if a part that follows the request can make it true of an exchange."""
    inherited: bool = True
    """True if what holds for a batch holds for each of its elements."""
    of_http_alone: bool = False
    """True if what holds for an HTTP exchange does not hold for the request that it carried."""

    @property
    def on_findings(self) -> bool:
        """True if a finding can make it true."""
        return Finding in self.tests
