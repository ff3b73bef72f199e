"""The report of a capture that was served: what was asked and found, what was missed, what nobody asked for."""

from typing import Any, Final

from mcpsniff.protocol.exchange import target_of
from mcpsniff.protocol.message import Message
from mcpsniff.protocol.paths import path_text
from mcpsniff.replay.match import Miss
from mcpsniff.replay.script import Scene
from mcpsniff.replay.serve import made_up
from mcpsniff.replay.serve.stage import Stage
from mcpsniff.replay.serve.tally import Answer
from mcpsniff.transcript.safe import visible
from mcpsniff.transcript.units import count

MOST_TOLD: Final = 20
"""Of each kind so many are told one by one on stderr; the JSON report has all that were kept."""


def report(stage: Stage) -> dict[str, Any]:
    """The report as data, ready to be written as JSON."""
    tally, matcher = stage.tally, stage.matcher
    scenes = (scene for talk in matcher.talks for scene in talk.requests())
    recorded = [scene for scene in scenes if stage.where is None or stage.where(scene)]
    unasked = [scene for scene in recorded if scene not in matcher.played]
    return {
        "capture": stage.script.path,
        "recorded": len(recorded),
        "played": len(recorded) - len(unasked),
        "served": tally.served,
        "missed": matcher.missed,
        "misses": [_miss(one, stage) for one in matcher.misses],
        "answers": {
            "same": tally.answers_same,
            "other": tally.answers_other,
            "differences": [_answer(one) for one in tally.answers],
            "stray": tally.stray,
        },
        "never_asked": [_scene(scene) for scene in unasked],
        "not_cancelled": [_message(message) for message in tally.uncancelled],
        "cancelled_only_now": tally.stopped,
        "made_up": tally.made_up,
        "notifications_not_recorded": tally.unheard,
        "elsewhere": tally.elsewhere,
        "lacks": [{"text": lack.text, "n": lack.n} for lack in stage.script.lacks],
    }


def _miss(miss: Miss, stage: Stage) -> dict[str, Any]:
    found = made_up.differences(miss, stage.matcher.rules)
    line = _message(miss.asked)
    del line["n"]
    line["text"] = made_up.miss_text(miss, found, with_values=False)
    line["params"] = made_up.short(miss.asked.body.get("params"))
    line["nearest"] = None if miss.nearest is None else _scene(miss.nearest)
    line["differences"] = made_up.told(found)
    line["hint"] = made_up.remedies(miss, found) or None
    return line


def _answer(answer: Answer) -> dict[str, Any]:
    line: dict[str, Any] = {"asked": _message(answer.asked), "recorded": answer.recorded.n}
    line["came"] = answer.live is not None
    line["differences"] = made_up.told(answer.differences)
    return line


def _scene(scene: Scene) -> dict[str, Any]:
    assert scene.cue is not None
    return _message(scene.cue)


def _message(message: Message) -> dict[str, Any]:
    return {"n": message.n, "method": message.method, "target": target_of(message)}


def report_lines(stage: Stage) -> list[str]:
    """The report for people; captured text in it can do no harm."""
    told = report(stage)
    played, recorded = told["played"], told["recorded"]
    lines = [f"served {count(told['served'], 'request')}: {played:,} of the {recorded:,} recorded, {_missed(told)}"]
    misses, rules = stage.matcher.misses[:MOST_TOLD], stage.matcher.rules
    texts = [made_up.miss_text(one, made_up.differences(one, rules)) for one in misses]
    lines += _several("missed", texts, told["missed"])
    lines += _remedies(told["misses"])
    answers = [_answer_text(one) for one in stage.tally.answers]
    lines += _several("answered otherwise", answers, told["answers"]["other"])
    lines += _several("not cancelled", [_named(one) for one in told["not_cancelled"]])
    lines += _several("never asked", [_named(one) for one in told["never_asked"]])
    for number, noun, what in (
        (told["answers"]["stray"], "answer", "of the client to nothing that it was asked"),
        (told["cancelled_only_now"], "request", "cancelled by the client, but not in the recording"),
        (told["elsewhere"], "HTTP request", "to paths at which nothing is served"),
    ):
        if number:
            lines.append(f"  {count(number, noun)} {what}")
    return [f"mcpsniff: {visible(line)}" for line in lines]


def _missed(told: dict[str, Any]) -> str:
    if not told["missed"]:
        return "nothing missed"
    return f"{count(told['missed'], 'request')} that {'is' if told['missed'] == 1 else 'are'} not in the capture"


def _remedies(misses: list[dict[str, Any]]) -> list[str]:
    """What to do about misses, in one line."""
    if not misses:
        return []
    hints = list(dict.fromkeys(one["hint"] for one in misses if one["hint"]))
    again = "record again what is missed (mcpsniff stdio, mcpsniff http)"
    return [f"  {hints[0]}; or {again}" if hints else f"  {again}"]


def _named(message: dict[str, Any]) -> str:
    target = f" {message['target']}" if message["target"] else ""
    return f"#{message['n']} {message['method']}{target}"


def _answer_text(answer: Answer) -> str:
    named = _named(_message(answer.asked))
    if answer.live is None:
        return f"{named}: no answer in time"
    places = [path_text(one.path) for one in answer.differences]
    more = f" and {count(len(places) - 4, 'more place')}" if len(places) > 4 else ""
    return f"{named}: differs in {', '.join(places[:4])}{more}"


def _several(title: str, texts: list[str], number: int | None = None) -> list[str]:
    """One line for each, as far as they are few."""
    number = len(texts) if number is None else number
    lines = [f"  {title}: {text}" for text in texts[:MOST_TOLD]]
    if number > MOST_TOLD:
        lines.append(f"  {title}: {number - MOST_TOLD:,} more")
    return lines
