"""Send a dialogue to a server that is a function, on a clock that goes on only when nothing else is to be done."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from mcpsniff.protocol.message import Message
from mcpsniff.protocol.reading import JsonReader
from mcpsniff.replay.normalise import rules_of
from mcpsniff.replay.script import Script, Talk
from mcpsniff.replay.send.guard import Tools
from mcpsniff.replay.send.link import Came, Ear, GoneError, Refusal, Sent, now_us, read_messages, text_frame
from mcpsniff.replay.send.outcome import Judge, Outcome, TalkOutcome
from mcpsniff.replay.send.talk import Sender, Way
from mcpsniff.replay.tempo import read_tempo
from tests.replay.staging import Clock, script_of

type React = Callable[["Server", Message], None]


class Server:
    """A live server, and the link to it: ``react`` is called with every message that it is sent."""

    def __init__(self, react: React, transport: str = "stdio") -> None:
        self.react = react
        self.transport = transport
        self.sent: list[Sent] = []
        self.times: list[float] = []
        """When each text came, in seconds."""
        self.listened_after: list[int] = []
        """How many texts had been sent each time it was asked for its own stream."""
        self.dropped: list[Sent] = []
        self.is_closed = False
        self.left_after: int | None = None
        """How many texts had been sent when the session was ended, if that was before the end of all."""
        self.is_gone = False
        self._ear: Ear

    @property
    def raw(self) -> list[bytes]:
        return [sent.data for sent in self.sent]

    @property
    def asked(self) -> list[Any]:
        """What it was sent, parsed."""
        return [json.loads(sent.data) for sent in self.sent]

    @property
    def methods(self) -> list[Any]:
        return [message.method or message.kind for sent in self.sent for message in sent.messages]

    def heard_by(self, ear: Ear) -> None:
        self._ear = ear

    async def open(self) -> None:
        pass

    async def send(self, sent: Sent) -> None:
        if self.is_gone:
            raise GoneError
        self.sent.append(sent)
        self.times.append(round(asyncio.get_running_loop().time(), 4))
        for message in sent.messages:
            self.react(self, message)

    async def listen(self) -> None:
        self.listened_after.append(len(self.sent))

    async def drop(self, sent: Sent) -> bool:
        self.dropped.append(sent)
        return self.transport == "http"

    async def leave(self) -> None:
        self.left_after = len(self.sent)

    async def close(self) -> None:
        self.is_closed = True

    def say(self, message: Any, after: float = 0.0, **where: Any) -> None:
        """Say something after so many seconds."""
        data = message if isinstance(message, bytes) else json.dumps(message).encode()

        def tell() -> None:
            for one in read_messages(text_frame(data, "s2c"), JsonReader()):
                self._ear.heard(Came(one, now_us(), **where))

        asyncio.get_running_loop().call_later(after, tell)

    def answer(self, message: Message, result: Any = None, after: float = 0.0) -> None:
        """Answer a request with a result."""
        token = json.loads(message.id or "null")
        self.say({"jsonrpc": "2.0", "id": token, "result": {} if result is None else result}, after)

    def refuse(self, sent: Sent, status: int) -> None:
        self._ear.refused(Refusal(sent, status, f"answered {status}"))

    def end(self, why: str = "ended with status 1") -> None:
        self.is_gone = True
        self._ear.ended(why)


def as_recorded(script: Script) -> React:
    """A server that answers what it was recorded to answer, by id, and says nothing else."""
    answers = {
        scene.cue.key: scene.answer.body
        for talk in script.talks
        for scene in talk.requests()
        if scene.cue is not None and scene.answer is not None
    }

    def react(server: Server, message: Message) -> None:
        if message.key in answers and message.method is not None:
            server.say(answers[message.key])

    return react


def send(
    dialogue: str | Script,
    react: React | None = None,
    *,
    transport: str = "stdio",
    timing: str = "none",
    timeout: float = 30.0,
    allow_writes: bool = True,
    ignore: tuple[str, ...] = (),
    number: int = 0,
) -> tuple[TalkOutcome, Server]:
    """Send one conversation of a dialogue, by default to a server that answers as recorded."""
    script = script_of(dialogue) if isinstance(dialogue, str) else dialogue
    talk: Talk = script.talks[number]
    server = Server(react or as_recorded(script), transport)
    sender = Sender(
        talk,
        Tools(script.talks, allow_writes=allow_writes),
        Judge(rules_of(None, ignore)),
        Way(read_tempo(timing), timeout),
    )
    server.heard_by(sender.hearing)

    async def run() -> TalkOutcome:
        return await sender.run(server)

    with asyncio.Runner(loop_factory=Clock) as runner:
        outcome = runner.run(run())
    assert server.is_closed
    return outcome, server


def states(outcome: TalkOutcome) -> list[str]:
    return [one.state for one in outcome.outcomes]


def of(outcome: TalkOutcome, method: str) -> Outcome:
    """The first outcome of that method."""
    return next(one for one in outcome.outcomes if one.scene.method == method)
