"""What a comparison of two captures comes to, before it is shown in one form or another. Texts are as captured."""

from dataclasses import dataclass, field
from typing import Any, Final

from mcpsniff.replay.compare import Difference
from mcpsniff.replay.diff.facts import Facts

ADDED: Final = "added"
MISSING: Final = "missing"
CHANGED: Final = "changed"

MARKS: Final = {ADDED: "+", MISSING: "-", CHANGED: "~"}


@dataclass(slots=True)
class Entry:
    """One thing that is in one capture only, or not the same in both."""

    kind: str
    what: str
    """Such as ``tool``, ``request`` or ``finding``."""
    name: str
    remark: str = ""
    where: str = ""
    """The server, where there are several."""
    differences: list[Difference] = field(default_factory=list)
    beneath: int = 0
    """Steps at the beginning of each path that people need not see."""
    counts: bool = True
    """False if captures do not differ for it."""
    facts: dict[str, Any] = field(default_factory=dict)
    """More for programs, as plain JSON."""


@dataclass(slots=True)
class Section:
    """A part of a comparison."""

    name: str
    entries: list[Entry]
    matched: int = 0
    """Of exchanges: how many are in both captures."""

    @property
    def differences(self) -> int:
        """The entries for which captures differ."""
        return sum(entry.counts for entry in self.entries)

    def number(self, kind: str) -> int:
        """How many entries there are of a kind."""
        return sum(entry.kind == kind for entry in self.entries)


@dataclass(slots=True)
class Report:
    """A comparison of two captures."""

    a: Facts
    b: Facts
    sections: list[Section] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What else is worth knowing: what a capture lacks, names that stand for several."""

    @property
    def differences(self) -> int:
        """The entries for which the captures differ."""
        return sum(section.differences for section in self.sections)
