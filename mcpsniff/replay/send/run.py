"""Send a whole capture to a live server: its conversations, each over a link of its own, side by side as recorded."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from mcpsniff.errors import UsageError
from mcpsniff.protocol.talk import BARE, LEGACY, SESSION
from mcpsniff.replay.normalise import Pairs, Rules
from mcpsniff.replay.script import Script, Talk
from mcpsniff.replay.send.clean import CALL
from mcpsniff.replay.send.guard import Tools
from mcpsniff.replay.send.hide import Hider
from mcpsniff.replay.send.link import Link, Tape, UnreachableError
from mcpsniff.replay.send.links import EitherLink, Where, link_to
from mcpsniff.replay.send.outcome import LEFT_OUT, Judge, TalkOutcome, hidden
from mcpsniff.replay.send.talk import Sender, Way

AT_ONCE: Final = 32
"""Conversations that are held at the same time."""


@dataclass(slots=True)
class Run:
    """What is to be done, and what came of it."""

    script: Script
    where: Where
    rules: Rules
    way: Way = field(default_factory=Way)
    allow_writes: bool = False
    talks: list[Talk] = field(default_factory=list)
    """What is sent, in the order in which it began."""
    outcomes: list[TalkOutcome] = field(default_factory=list)
    """In the same order."""
    pairs: Pairs = field(default_factory=Pairs)
    """Which made-up names of the recording stand for which of the run."""
    hider: Hider = field(default_factory=lambda: Hider([], lambda: b""))
    """Hides what was given to the server in all that is told."""

    @property
    def differs(self) -> bool:
        """True if anything is not as recorded, or if no tool was called where there was one to be called."""
        return any(outcome.differs for outcome in self.outcomes) or self.calls_nothing

    @property
    def calls_nothing(self) -> bool:
        """True if all calls of tools were left out: then nothing of what matters most was tried."""
        calls = [one for talk in self.outcomes for one in talk.outcomes if one.scene.method == CALL]
        return bool(calls) and all(one.state == LEFT_OUT for one in calls)


def talks_of(script: Script, server: str | None) -> list[Talk]:
    """The conversations that can be sent to one server: those with whose address ``server`` is a part of.

    Raises UsageError where there is none, or where there are those of several servers and none was chosen.
    """
    talks = [talk for talk in script.talks if any(message.direction == "c2s" for message in talk.messages)]
    if not talks:
        raise UsageError("the capture has nothing that a client said in MCP, so there is nothing to send")
    servers = list(dict.fromkeys(talk.server for talk in talks))
    chosen = servers if server is None else [one for one in servers if server in one]
    known = ", ".join(filter(None, servers)) or "a command"
    if not chosen:
        raise UsageError(f"no server of the capture has {server!r} in its address; there is {known}")
    if len(chosen) > 1:
        raise UsageError(f"the capture has several servers: {', '.join(chosen)}; choose one with --server")
    return sorted((talk for talk in talks if talk.server == chosen[0]), key=lambda talk: talk.messages[0].t)


type MakeTape = Callable[[Talk], Tape | None]


async def send_again(run: Run, tape: MakeTape, told: Callable[[TalkOutcome], None]) -> None:
    """Hold all conversations; ``told`` hears of each, in order. Raises UnreachableError if nobody was ever reached."""
    judge, tools = Judge(run.rules, run.pairs, run.hider), Tools(run.talks, allow_writes=run.allow_writes)
    room = asyncio.Semaphore(AT_ONCE)
    tasks: list[asyncio.Task[TalkOutcome]] = []

    async def hold(talk: Talk, before: list[asyncio.Task[TalkOutcome]]) -> TalkOutcome:
        if before:
            await asyncio.wait(before)
        async with room:
            sender = Sender(talk, tools, judge, run.way)
            link = link_to(
                run.where, sender.hearing, timeout=run.way.timeout, tape=tape(talk), prefers_sse=talk.kind == LEGACY
            )
            prepare(link, talk)
            return await sender.run(link)

    for at, talk in enumerate(run.talks):
        before = [tasks[i] for i in range(at) if run.talks[i].messages[-1].t <= talk.messages[0].t]
        tasks.append(asyncio.create_task(hold(talk, before)))
    try:
        for task in tasks:
            outcome = hidden(await task, run.hider)
            run.outcomes.append(outcome)
            told(outcome)
    finally:
        for task in tasks:
            if not task.cancelling():  # one that is leaving already is to leave in order
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def prepare(link: Link, talk: Talk) -> None:
    """Tell a link over HTTP what the recorded client did about its session."""
    if not isinstance(link, EitherLink):
        return
    opening = talk.opening
    agreed = None if opening is None or opening.answer is None else opening.answer.result.get("protocolVersion")
    link.recorded_version = agreed if isinstance(agreed, str) else None
    link.was_streamable = talk.kind != LEGACY
    if talk.kind in (SESSION, BARE):
        link.ends_session = any(web.http.method == "DELETE" for web in talk.webs)


__all__ = ["Run", "UnreachableError", "prepare", "send_again", "talks_of"]
