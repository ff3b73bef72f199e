"""What all rules have in common: they stand in line as addons do, act on what they match, and count it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Final

from mcpsniff.capture.records import AND
from mcpsniff.hooks.actions import HttpHead, Returned
from mcpsniff.hooks.editor import Lane
from mcpsniff.protocol.message import Message
from mcpsniff.proxy.rules.matching import Matcher
from mcpsniff.transcript.safe import visible

LONGEST_NAME: Final = 80
NAMED: Final = 5
"""Names that a reason has."""


@dataclass(frozen=True, slots=True)
class Turns:
    """Which of the messages that a rule could act on it does act on."""

    after: int = 0
    """So many are passed over first."""
    times: int | None = None
    """Then so many are acted on; None: all."""

    def has(self, number: int) -> bool:
        """True for the one with this number, from 0."""
        return number >= self.after and (self.times is None or number < self.after + self.times)


EVERY: Final = Turns()


class Rule(ABC):
    """A rule. See `mcpsniff.hooks.editor.Interceptor`; several threads may ask it at once."""

    acts_on = "messages"
    """What it can act on, in words."""
    unit = "message"
    """What is counted."""

    def __init__(self, name: str, holds: Matcher, *, turns: Turns = EVERY, why: str = "") -> None:
        """``why``: what records say instead of what the rule itself says."""
        text = visible(name).replace(AND, "+")
        self.name = text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - 1] + "…"
        self.holds = holds
        self.acted = 0
        """Messages that it has acted on."""
        self.unfit = 0
        """Messages that it matches and cannot act on."""
        self._turns = turns
        self._why = why
        self._number = 0
        self._lock = Lock()

    def edit(self, message: Message, lane: Lane) -> Returned:
        """Act on a message if it is one of those meant."""
        is_meant = self.wants(message)
        if is_meant is None:
            return message
        return self.act(message, lane) if self.counted(is_meant) else message

    def wants(self, message: Message) -> bool | None:
        """True if it would act on this message, False if it matches and cannot be acted on, None if neither."""
        return self.fits(message) if self.holds(message) else None

    def fits(self, message: Message) -> bool:  # noqa: ARG002
        """True if a message that matches is one that it can act on."""
        return True

    @abstractmethod
    def act(self, message: Message, lane: Lane) -> Returned:
        """Do it."""

    def counted(self, is_meant: bool) -> bool:
        """Count a message that matches; True if it is to be acted on."""
        with self._lock:
            if not is_meant:
                self.unfit += 1
                return False
            is_turn = self._turns.has(self._number)
            self._number += 1
            self.acted += is_turn
            return is_turn

    def reason(self, words: str) -> str:
        """What records say: the user's own words, or these."""
        return self._why or words

    def counts(self) -> "list[Count]":
        """What came of it, for the end."""
        if not self.acted and not self.unfit and self._number:
            return [Count(self.name, 0, f"its turn did not come: it matched {number_of(self._number, self.unit)}")]
        others = f"{self.unfit:,} other{'' if self.unfit == 1 else 's'}"
        hint = f"it acts on {self.acts_on}, and matched {others}" if self.unfit else ""
        return [Count(self.name, self.acted, hint, unit=self.unit)]

    def edit_head(self, head: HttpHead) -> None:  # noqa: B027 - few rules change heads
        """Heads of HTTP stay as they are."""

    def begin(self, remark: Callable[[str], object]) -> None:  # noqa: B027 - `Tally` tells of all rules together
        """Traffic begins."""

    def end(self) -> Sequence[str]:
        """`Tally` tells of all rules together."""
        return ()


@dataclass(frozen=True, slots=True)
class Count:
    """What came of a rule."""

    name: str
    acted: int
    hint: str = ""
    """Where nothing did: why, if that is known."""
    remark: str = ""
    """What else there is to be said."""
    unit: str = "message"


class Tally:
    """Stands behind all rules: the capture tells which there are, and the end how often each has acted."""

    name = "rules"

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = rules

    def edit(self, message: Message, lane: Lane) -> Returned:  # noqa: ARG002
        """Let it pass."""
        return message

    def edit_head(self, head: HttpHead) -> None:
        """Let it pass."""

    def begin(self, remark: Callable[[str], object]) -> None:
        """Traffic begins."""
        remark(f"rules: {'; '.join(count.name for rule in self._rules for count in rule.counts())}")

    def end(self) -> Sequence[str]:
        """How often each has acted, and each that has not."""
        counts = [count for rule in self._rules for count in rule.counts()]
        acted = [f"{count.name}: {number_of(count.acted, count.unit)}" for count in counts if count.acted]
        nothing = [
            f"the rule {count.name} {'did nothing: ' + count.hint if count.hint else 'matched nothing'}"
            for count in counts
            if not count.acted
        ]
        remarks = [f"the rule {count.name}: {count.remark}" for count in counts if count.remark]
        return [*([f"rules acted on {'; '.join(acted)}"] if acted else []), *nothing, *remarks]


def number_of(number: int, unit: str) -> str:
    """So many of them, in words."""
    return f"{number:,} {unit}{'' if number == 1 else 's'}"


def listed(names: Sequence[str]) -> str:
    """A few names for a reason; captured text is in it."""
    shown = ", ".join(name[:LONGEST_NAME] for name in names[:NAMED])
    return shown if len(names) <= NAMED else f"{shown} and {len(names) - NAMED} more"
