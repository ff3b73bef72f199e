"""What came of sending a capture again, for people: a line for each request, what differs, and a sum."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from mcpsniff.replay.compare_text import MOST, difference_lines
from mcpsniff.replay.send.outcome import (
    DIFFERS,
    FAILED,
    LEFT_OUT,
    NO_ANSWER,
    SAME,
    UNCOMPARED,
    UNSENT,
    Outcome,
    TalkOutcome,
)
from mcpsniff.replay.send.run import Run
from mcpsniff.transcript.pretty import Line
from mcpsniff.transcript.safe import cells, shortened, visible
from mcpsniff.transcript.units import count, duration

TITLE: Final = 40
"""Columns for a method and what it is about."""
LATENCY: Final = 20
INDENT: Final = 9

WORDS: Final = {
    SAME: "same",
    DIFFERS: "differ",
    NO_ANSWER: "no answer",
    LEFT_OUT: "not called",
    UNSENT: "not sent",
    UNCOMPARED: "not compared",
}


def talk_lines(outcome: TalkOutcome, width: int, *, of_several: bool = False) -> Iterator[Line]:
    """The lines about one conversation."""
    if of_several:
        first = outcome.talk.messages[0].n
        yield [("remark", f"the conversation that begins with #{first}, over {outcome.transport}:")]
    for one in outcome.outcomes:
        yield from outcome_lines(one, width)
    yield from ([("changed", f"≠ {visible(text)}")] for text in outcome.said)
    yield from ([("remark", f"· {visible(text)}")] for text in outcome.notes)
    yield from ([("stderr", "  stderr "), ("stderr-text", visible(text))] for text in outcome.last_words)


def outcome_lines(outcome: Outcome, width: int) -> Iterator[Line]:
    """The lines about one request: how long it took then and now, and what differs."""
    title = shortened(visible(outcome.title), TITLE)
    pad = " " * max(1, TITLE + 1 - cells(title))
    differs = outcome.state in FAILED
    mark = "≠" if differs else "=" if outcome.state == SAME else "·"
    role = "changed" if differs else "plain" if outcome.state == SAME else "remark"
    head = f"{mark} {f'#{outcome.n}':<{INDENT - 3}} {title}{pad}{_latency(outcome):<{LATENCY}} "
    yield [("plain", head), (role, _verdict(outcome))]
    yield from difference_lines(outcome.differences, width, indent=INDENT, most=MOST)
    yield from ([("changed", " " * INDENT + visible(text))] for text in outcome.said)


def _verdict(outcome: Outcome) -> str:
    word = WORDS[outcome.state]
    if outcome.state == DIFFERS:
        word = count(len(outcome.differences) + len(outcome.said), "difference")
    why = outcome.why or "; ".join(outcome.notes)
    return f"{word}: {visible(why)}" if why else word


def _latency(outcome: Outcome) -> str:
    if outcome.then_us is None and outcome.now_us is None:
        return ""
    then, now = ("-" if us is None else duration(us) for us in (outcome.then_us, outcome.now_us))
    return f"{then} → {now}"


def summary_lines(run: Run) -> Iterator[Line]:
    """The sum of a run, and what is worth knowing of it as a whole."""
    outcomes = [outcome for talk in run.outcomes for outcome in talk.outcomes]
    states = Counter(outcome.state for outcome in outcomes)
    parts = [f"{states[state]:,} {WORDS[state]}" for state in WORDS if states[state]]
    if others := sum(len(talk.said) for talk in run.outcomes):
        parts.append(count(others, "other difference"))
    yield [("plain", f"{count(len(outcomes), 'request')}: {', '.join(parts) or 'nothing was sent'}")]
    if run.calls_nothing:
        text = (
            "no tool was called, which counts as a difference: --allow-writes calls those not declared read-only, too"
        )
        yield [("changed", text)]
    elif states[LEFT_OUT]:
        yield [("remark", "tools that are not declared read-only are called with --allow-writes only")]
    yield from ([("remark", f"· {visible(note)}")] for note in run.pairs.notes[:MOST])
