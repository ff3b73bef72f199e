"""Judge a conversation that was sent again, once everything has come that will."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from mcpsniff.protocol.exchange import CANCELLED
from mcpsniff.protocol.message import NOTIFICATION, Message
from mcpsniff.protocol.talk import BARE, SESSION
from mcpsniff.replay.script import PIPE, Scene, is_answer, is_progress
from mcpsniff.replay.send.calls import Call
from mcpsniff.replay.send.outcome import NO_ANSWER, SAME, UNCOMPARED, UNSENT, Outcome, TalkOutcome
from mcpsniff.replay.send.pages import regroup
from mcpsniff.replay.send.unasked import CHANGED, MISSING, NEW, Unasked, alike, compared, sentences

if TYPE_CHECKING:
    from mcpsniff.replay.send.talk import Sender


_OPENING: Final = ("initialize", "notifications/initialized")
NOT_HERE: Final = frozenset([404, 405, 410])
"""HTTP statuses of a place at which there is no such thing."""


def conclude(sender: "Sender") -> None:
    """Judge every request, what the server asked and told, and how it ended."""
    for scene, outcome in sender.outcomes.items():
        call = sender.calls.get(scene)
        if call is not None:
            _judge(sender, call, outcome)
        elif outcome.state == UNCOMPARED and not outcome.why:
            outcome.state, outcome.why = UNSENT, _why_unsent(sender)
    regroup(sender)
    _questions(sender)
    _told(sender)
    _strays(sender)
    _ending(sender)
    _wrong_place(sender)
    if sender.was_impatient:
        sender.outcome.notes.append(
            "the server gave no sign of life while several answers were waited for: the others had 1 s each"
        )


def _wrong_place(sender: "Sender") -> None:
    """Say what may be wrong where every request was refused as no such thing."""
    statuses = {None if call.refusal is None else call.refusal.status for call in sender.calls.values()}
    if len(statuses) == 1 and statuses <= NOT_HERE:
        sender.outcome.notes.append(
            f"all requests were answered with {statuses.pop()}: the URL's path is probably not that of the server,"
            " which is often /mcp, or /sse where HTTP+SSE is spoken"
        )


def _why_unsent(sender: "Sender") -> str:
    return f"the server {sender.hearing.gone} before" if sender.hearing.gone is not None else "it could not be sent"


def _judge(sender: "Sender", call: Call, outcome: Outcome) -> None:
    scene, recorded = call.outcome.scene, call.outcome.scene.answer
    if scene.is_refused and sender.is_elsewhere:
        outcome.why = f"HTTP refused it when it was recorded ({_status(scene)}), and this is another transport"
    elif call.answer is not None and not call.late:
        _answered(sender, call, outcome, recorded)
    elif scene.is_refused and recorded is None and call.refusal is not None:
        outcome.state = SAME
        if call.refusal.status != _status(scene):
            outcome.differ(f"HTTP refused it with {call.refusal.status}, and with {_status(scene)} when recorded")
    elif scene.exchange is not None and scene.exchange.state == CANCELLED:
        outcome.state = SAME
        outcome.notes.append("cancelled, as recorded")
    elif recorded is None:
        outcome.state = UNCOMPARED if scene.is_cut else SAME
        outcome.why = "the capture does not have its answer" if scene.is_cut else ""
        outcome.notes += [] if scene.is_cut else ["no answer, as recorded"]
    else:
        outcome.state, outcome.why = NO_ANSWER, _why_none(sender, call)
    if call.answer is not None and not scene.is_cut and scene.exchange is not None:
        recorded_progress = [m for m in scene.messages("s2c") if m.kind == NOTIFICATION and is_progress(m)]
        if scene.exchange.state != CANCELLED:
            sender.judge.progress(outcome, recorded_progress, call.progress)


def _answered(sender: "Sender", call: Call, outcome: Outcome, recorded: Message | None) -> None:
    assert call.answer is not None
    scene = outcome.scene
    _status_of(sender, scene, outcome, call.answer.status)
    live, cue = call.answer.message, scene.cue
    was_twin = recorded is not None and cue is not None and recorded.key is not None and recorded.key != cue.key
    if live.key is not None and live.key != call.key and not was_twin:
        outcome.differ(f"the answer has the id {live.id}, which is of another type than {call.id}, that of the request")
    if recorded is not None:
        sender.judge.answer(outcome, recorded, call.answer.message)
    elif scene.is_cut:
        outcome.why = "the capture does not have its answer"
    elif scene.exchange is not None and scene.exchange.state == CANCELLED:
        outcome.why = "it was cancelled when recorded, and is answered now before that"
    elif scene.is_refused:
        outcome.differ(f"HTTP refused it with {_status(scene)} when recorded, and it is answered now")
    else:
        outcome.differ("it was not answered when recorded, and is answered now")


def _status_of(sender: "Sender", scene: Scene, outcome: Outcome, status: int | None) -> None:
    """Tell of an answer that came with an HTTP status that refuses."""
    then = _status(scene)
    if status is None or status < 400 or status == then:
        return
    if then is None or sender.is_elsewhere:
        outcome.notes.append(f"with HTTP status {status}")
    else:
        outcome.differ(f"the HTTP status is {status}, and was {then} when recorded")


def _why_none(sender: "Sender", call: Call) -> str:
    if call.refusal is not None:
        return f"the server {call.refusal.why}"
    if call.late or sender.hearing.gone is None:
        late = " in time, but later" if call.answer is not None else ""
        return f"no answer{late or f' within {call.waited or sender.way.timeout:g} s'}"
    return f"the server {sender.hearing.gone}"


def _status(scene: Scene) -> int | None:
    return None if scene.web is None else scene.web.http.status


def _questions(sender: "Sender") -> None:
    """What the server asked: of the request that it belongs to, or of the conversation."""
    hider, near = sender.judge.hider, sender.hearing.near
    for asked in sender.hearing.questions.asked:
        scene = asked.question.scene
        recorded = asked.question.asked
        if scene is not None and not sender.was_sent(scene):
            continue
        if asked.live is None:
            one = Unasked(MISSING, recorded, None)
            _say(sender, scene, f"the server asked {one.method} when recorded, and does not now: {one.words(hider)}")
        elif sender.judge.compare(recorded, asked.live):
            one = Unasked(CHANGED, recorded, asked.live, near.get(id(asked.live)))
            _say(sender, scene, f"the server asks something else with {one.method}: {one.words(hider)}")
        else:
            continue
        sender.outcome.unasked.append(one)
    for one in alike([Unasked(NEW, None, live, near.get(id(live))) for live in sender.hearing.questions.unrecorded]):
        sender.outcome.unasked.append(one)
        sender.outcome.said.append(
            f"the server asked {one.method}, which it did not when recorded, and was answered with an error:"
            f" {one.words(hider)}"
        )


def _say(sender: "Sender", scene: Scene | None, text: str) -> None:
    outcome = None if scene is None else sender.outcomes.get(scene)
    if outcome is None:
        sender.outcome.said.append(text)
    else:
        outcome.differ(text)


def _told(sender: "Sender") -> None:
    recorded: list[Message] = []
    early: set[int] = set()
    for scene in _scenes(sender):
        if sender.was_sent(scene):
            said = [m for m in scene.messages("s2c") if m.kind == NOTIFICATION and not is_progress(m)]
            recorded += said
            early |= {m.n for m in said} if scene.method in _OPENING else set()
    live = [message for message in sender.hearing.notices if not is_progress(message)]
    found: list[str] = []
    for unasked, number in compared(recorded, live, sender.judge.differs, sender.hearing.near):
        sender.outcome.unasked += unasked
        crossed = [one for one in unasked if _has_crossed(sender, one, early)]
        sender.outcome.notes += sentences(crossed, number, sender.judge.hider)
        found += sentences([one for one in unasked if one not in crossed], number, sender.judge.hider)
    if sender.is_elsewhere:  # what reaches a client unasked depends on the streams that there are
        sender.outcome.notes += found
    else:
        sender.outcome.said += found


def _has_crossed(sender: "Sender", one: Unasked, early: set[int]) -> bool:
    """True if it may have been said before there was a stream for it, then or now, and was dropped.

    Over Streamable HTTP a client asks for the server's own stream while the server hears that it is ready, and servers
    send the changes of their lists at once; which of the two comes first is chance.
    """
    opening = None if sender.talk.opening is None else sender.talk.opening.cue
    if sender.talk.kind not in (SESSION, BARE) or not one.method.endswith("/list_changed") or one.kind == CHANGED:
        return False
    if one.recorded is not None:
        return one.recorded.n in early
    return opening is not None and one.near == opening.n


def _scenes(sender: "Sender") -> list[Scene]:
    """All scenes, that which came once the client had left included."""
    farewell = sender.talk.farewell
    return [*sender.talk.scenes, *([] if farewell is None else [farewell])]


def _strays(sender: "Sender") -> None:
    """What answers nothing, or is no message."""
    answers = {scene.answer.n for scene in sender.talk.scenes if scene.answer is not None}
    recorded = [
        m
        for scene in _scenes(sender)
        if sender.was_sent(scene)
        for m in scene.messages("s2c")
        if not m.method and m.n not in answers and not (is_answer(m) and m.link is not None)
    ]
    for kind, text in ((True, "answers to nothing that was asked"), (False, "lines that are no message")):
        there, here = _count(recorded, answers=kind), _count(sender.hearing.strays, answers=kind)
        if there != here:
            sender.outcome.said.append(f"{text}: {there} when recorded, {here} now")


def _count(messages: Iterable[Message], *, answers: bool) -> int:
    return sum(is_answer(message) == answers for message in messages)


def _ending(sender: "Sender") -> None:
    outcome: TalkOutcome = sender.outcome
    recorded = any(line.close is not None for scene in sender.talk.scenes for line in scene.lines)
    gone = sender.hearing.gone
    if gone is not None and sender.is_cut_short:
        outcome.said.append(f"the server {gone} before everything had been sent")
    elif gone is not None and not recorded:
        outcome.said.append(f"the server {gone}, and did not when recorded")
    elif gone is not None:
        outcome.notes.append(f"the server {gone}, as recorded")
    elif recorded and sender.talk.kind == PIPE and outcome.transport == "stdio":
        outcome.said.append("the server ended by itself when recorded, and does not now")
    for refusal in sender.hearing.refused_others:
        what = ", ".join(m.method or m.kind for m in refusal.sent.messages)
        if not _was_refused(sender, refusal.sent.messages):
            outcome.said.append(f"{what}: the server {refusal.why}")


def _was_refused(sender: "Sender", messages: tuple[Message, ...]) -> bool:
    raws = {message.raw for message in messages}
    return any(scene.is_refused and scene.cue is not None and scene.cue.raw in raws for scene in sender.talk.scenes)
