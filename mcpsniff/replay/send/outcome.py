"""What came of sending a recorded conversation again: for each of its requests, and for the conversation."""

from dataclasses import dataclass, field, replace
from typing import Final

from mcpsniff.protocol.exchange import target_of
from mcpsniff.protocol.message import Message
from mcpsniff.replay.compare import Difference, compare_messages
from mcpsniff.replay.normalise import Pairs, Rules
from mcpsniff.replay.script import Scene, Talk
from mcpsniff.replay.send.hide import Hider
from mcpsniff.replay.send.unasked import Unasked

SAME: Final = "same"
DIFFERS: Final = "differs"
NO_ANSWER: Final = "no-answer"
LEFT_OUT: Final = "left-out"
UNSENT: Final = "unsent"
UNCOMPARED: Final = "uncompared"

STATES: Final = {
    SAME: "the same answer as recorded, as far as it counts",
    DIFFERS: "another answer, or something else that the server said with it",
    NO_ANSWER: "no answer where one was recorded: none in time, or the server refused the request or has gone",
    LEFT_OUT: "a tool that is not declared read-only was not called",
    UNSENT: "it could not be sent: what it needs is not there",
    UNCOMPARED: "there is no recorded answer to compare with",
}
"""What may come of a request."""

FAILED: Final = frozenset({DIFFERS, NO_ANSWER, UNSENT})
"""States that make the run one with differences."""


@dataclass(slots=True, eq=False)
class Outcome:
    """What came of one request."""

    scene: Scene
    state: str = UNCOMPARED
    """A key of STATES."""
    why: str = ""
    """For what is neither `same` nor `differs`: why, in words. Captured text may be in it."""
    differences: list[Difference] = field(default_factory=list)
    """Of the answer."""
    said: list[str] = field(default_factory=list)
    """What else differs, in sentences with captured text in them."""
    notes: list[str] = field(default_factory=list)
    """What is worth a word and no difference."""
    now_us: int | None = None
    """Microseconds from the request to its answer, in the live run."""

    @property
    def n(self) -> int:
        """The number of the recorded request."""
        return 0 if self.scene.cue is None else self.scene.cue.n

    @property
    def title(self) -> str:
        """Its method and what it is about; captured text."""
        cue = self.scene.cue
        target = None if cue is None else target_of(cue)
        name = self.scene.method or ("" if cue is None else cue.kind)
        return f"{name} {target}" if target else name

    @property
    def then_us(self) -> int | None:
        """The same in the recording."""
        return None if self.scene.exchange is None else self.scene.exchange.latency_us

    def differ(self, text: str) -> None:
        """Note a difference that is none within an answer."""
        self.said.append(text)
        if self.state not in FAILED:
            self.state = DIFFERS


@dataclass(slots=True, eq=False)
class TalkOutcome:
    """What came of one conversation."""

    talk: Talk
    transport: str = ""
    outcomes: list[Outcome] = field(default_factory=list)
    """Of its requests, in the recorded order."""
    said: list[str] = field(default_factory=list)
    """Differences that belong to no request."""
    notes: list[str] = field(default_factory=list)
    unasked: list[Unasked] = field(default_factory=list)
    """What else the server told or asked that is not as it was."""
    last_words: list[str] = field(default_factory=list)
    """The last lines of the server's stderr, where it has gone before its time; captured text."""

    @property
    def differs(self) -> bool:
        """True if anything is not as recorded."""
        return bool(self.said) or any(outcome.state in FAILED for outcome in self.outcomes)


def hidden(talk: TalkOutcome, hider: Hider) -> TalkOutcome:
    """A conversation's outcome without what was given to the server: it is not to be shown, whole or in part."""
    for one in talk.outcomes:
        one.differences = [_hidden(difference, hider) for difference in one.differences]
        one.why, one.said, one.notes = hider.hide_text(one.why), hider.hide_all(one.said), hider.hide_all(one.notes)
    talk.said, talk.notes = hider.hide_all(talk.said), hider.hide_all(talk.notes)
    talk.last_words = hider.hide_all(talk.last_words)
    return talk


def _hidden(difference: Difference, hider: Hider) -> Difference:
    return replace(
        difference,
        path=tuple(hider.hide_all(list(difference.path))),
        live_path=tuple(hider.hide_all(list(difference.live_path))),
        recorded=hider.hide_all(difference.recorded),
        live=hider.hide_all(difference.live),
    )


class Judge:
    """Compares what came with what was recorded, by the same rules and names for a whole run."""

    def __init__(self, rules: Rules, pairs: Pairs | None = None, hider: Hider | None = None) -> None:
        self.rules = rules
        self.hider = hider or Hider([], lambda: b"")
        self.pairs = pairs or Pairs()

    def compare(self, recorded: Message, live: Message) -> list[Difference]:
        """How a live message differs from the recorded one."""
        return compare_messages(recorded, live, self.rules, self.pairs)

    def answer(self, outcome: Outcome, recorded: Message, live: Message) -> None:
        """Judge an answer."""
        outcome.differences = self.compare(recorded, live)
        if outcome.state not in FAILED:
            outcome.state = DIFFERS if outcome.differences else SAME

    def progress(self, outcome: Outcome, recorded: list[Message], live: list[Message]) -> None:
        """Judge the progress that was told of a request."""
        if len(recorded) != len(live):
            outcome.differ(f"{len(live)} progress notifications came, {len(recorded)} were recorded")
            return
        for number, (one, other) in enumerate(zip(recorded, live, strict=True), 1):
            if self.compare(one, other):
                outcome.differ(f"progress notification {number} of {len(live)} says something else")

    def differs(self, recorded: Message, live: Message) -> bool:
        """True if a live message is another than the recorded one, and no name is to be learnt from it."""
        return bool(compare_messages(recorded, live, self.rules))
