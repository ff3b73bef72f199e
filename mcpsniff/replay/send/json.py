"""What came of sending a capture again, for programs."""

from collections import Counter
from typing import Any

from mcpsniff.replay.compare_text import as_dict
from mcpsniff.replay.send.hide import Hider
from mcpsniff.replay.send.outcome import Outcome, TalkOutcome
from mcpsniff.replay.send.run import Run
from mcpsniff.replay.send.unasked import REPORTED


def report(run: Run) -> dict[str, Any]:
    """A run as plain JSON: every request with its state (a key of `send_outcome.STATES`) and what differs."""
    states = Counter(outcome.state for talk in run.outcomes for outcome in talk.outcomes)
    return {
        "capture": run.script.path,
        "differs": run.differs,
        "requests": sum(states.values()),
        "states": dict(states),
        "lacks": [lack.text for lack in run.script.lacks],
        "conversations": [_talk(talk, run.hider) for talk in run.outcomes],
        "names": run.pairs.notes,
    }


def _talk(talk: TalkOutcome, hider: Hider) -> dict[str, Any]:
    return {
        "n": talk.talk.messages[0].n,
        "recorded": talk.talk.kind,
        "transport": talk.transport,
        "requests": [_outcome(outcome) for outcome in talk.outcomes],
        "differences": talk.said,
        "unasked": [one.as_dict(hider) for one in talk.unasked[:REPORTED]],
        "notes": talk.notes,
        "stderr": talk.last_words,
    }


def _outcome(outcome: Outcome) -> dict[str, Any]:
    cue = outcome.scene.cue
    found: dict[str, Any] = {
        "n": outcome.n,
        "method": outcome.scene.method,
        "title": outcome.title,
        "id": None if cue is None else cue.id,
        "state": outcome.state,
        "why": outcome.why or None,
        "then_us": outcome.then_us,
        "now_us": outcome.now_us,
        "differences": [as_dict(difference) for difference in outcome.differences],
        "said": outcome.said,
        "notes": outcome.notes,
    }
    return {name: value for name, value in found.items() if value not in (None, [], "")}
