"""Send one recorded request to a live server, after its handshake, and judge the answer."""

from dataclasses import dataclass

from mcpsniff.protocol.exchange import CANCELLED
from mcpsniff.protocol.message import ERROR, Message
from mcpsniff.protocol.talk import LEGACY
from mcpsniff.replay.resend.talk import tool_headers
from mcpsniff.replay.script import Scene, Talk
from mcpsniff.replay.send.calls import Call
from mcpsniff.replay.send.guard import Tools
from mcpsniff.replay.send.links import link_to
from mcpsniff.replay.send.outcome import (
    DIFFERS,
    FAILED,
    LEFT_OUT,
    NO_ANSWER,
    UNCOMPARED,
    UNSENT,
    Judge,
    Outcome,
    TalkOutcome,
)
from mcpsniff.replay.send.run import Run, prepare
from mcpsniff.replay.send.talk import Sender


@dataclass(frozen=True, slots=True)
class Resent:
    """What came of a request that was sent again."""

    outcome: Outcome
    talk: TalkOutcome
    """What came of the whole little conversation."""
    failed_before: list[Outcome]
    """Of what had to come before it: what was not answered, or with an error that was not recorded."""
    answer: Message | None
    progress: list[Message]
    notices: list[Message]
    """What else the server told while it went on."""
    is_fine: bool
    """True if it was answered as recorded; if it was edited, with a result."""


def tools_of(run: Run, talk: Talk) -> Tools:
    """What the whole capture says of the tools of the server that ``talk`` was held with."""
    of_server = [one for one in run.script.talks if one.server == talk.server]
    tools = Tools(of_server, allow_writes=run.allow_writes)
    tools.headers.update(tool_headers(run.script, talk.server))
    return tools


async def resend(run: Run, talk: Talk, scene: Scene, *, is_edited: bool = False) -> Resent:
    """Hold the conversation ``talk`` for the sake of ``scene``, as ``run`` says. Raises UnreachableError.

    A tool that is not declared read-only, by the server or else in the whole capture, is called only where ``run``
    allows it. What came for a request that ``is_edited`` is not compared: it is the answer to another one.
    """
    sender = Sender(talk, tools_of(run, talk), Judge(run.rules), run.way)
    link = link_to(run.where, sender.hearing, timeout=run.way.timeout, prefers_sse=talk.kind == LEGACY)
    prepare(link, talk)
    told = await sender.run(link)
    call: Call | None = sender.calls.get(scene)
    answer = None if call is None or call.answer is None else call.answer.message
    progress = [] if call is None else call.progress
    failed = [
        outcome
        for one, outcome in sender.outcomes.items()
        if one is not scene and _failed(outcome, sender.calls.get(one))
    ]
    outcome = sender.outcomes[scene]
    exchange = scene.exchange
    is_cancelled = exchange is not None and exchange.state == CANCELLED
    if call is not None and call.answer is None and call.refusal is None and not is_cancelled:
        outcome.state, outcome.notes = NO_ANSWER, []
        outcome.why = outcome.why or f"no answer within {run.way.timeout:g} s"
    if is_edited and answer is not None:
        outcome.state, outcome.why, outcome.notes = UNCOMPARED, "it was edited", []
        outcome.differences.clear()
        outcome.said.clear()
        told.said.clear()
    is_fine = outcome.state not in FAILED and outcome.state != LEFT_OUT
    if is_edited:
        is_fine = is_fine and answer is not None and answer.kind != ERROR
    return Resent(outcome, told, failed, answer, progress, sender.hearing.notices, is_fine)


def _failed(outcome: Outcome, call: Call | None) -> bool:
    is_error = call is not None and call.answer is not None and call.answer.message.kind == ERROR
    return outcome.state in (NO_ANSWER, UNSENT, LEFT_OUT) or (is_error and outcome.state == DIFFERS)
