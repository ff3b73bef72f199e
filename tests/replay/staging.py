"""Serve a dialogue to a scripted client on a clock of its own: nothing waits, and every moment can be foretold."""

import asyncio
import json
import selectors
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from mcpsniff.capture.reader import Damage
from mcpsniff.capture.records import Header, Record
from mcpsniff.protocol.jsonrpc import classify
from mcpsniff.protocol.message import Message
from mcpsniff.protocol.reading import JsonReader
from mcpsniff.replay.match import Matcher, Rules
from mcpsniff.replay.reading import read_script
from mcpsniff.replay.script import Line, Script
from mcpsniff.replay.serve.performance import Outgoing, Performance
from mcpsniff.replay.serve.stage import Stage
from mcpsniff.replay.tempo import read_tempo
from mcpsniff.wire.frames import Frame
from tests.dialogue import play

MOMENT = 1e-5
"""Seconds after which everything has happened that needs no time."""


@dataclass
class Kept:
    """A capture that is in no file."""

    said: list[Record]
    transport: str
    joined_late: bool = False
    path: str = "kept.mcpcap"
    damage: list[Damage] = field(default_factory=list)

    @property
    def header(self) -> Header:
        return Header("01J", 1, "2026-11-29T10:00:00.000000Z", self.transport)

    def records(self) -> Iterator[Record]:
        return iter(self.said)


def script_of(dialogue: str, *, with_bytes: bool = False) -> Script:
    """The script of what a dialogue says (tests/dialogue.py)."""
    is_http = dialogue.lstrip().startswith("@http")
    kept = Kept(play(dialogue.strip()).records, "http" if is_http else "stdio", "@late" in dialogue)
    return read_script(kept, with_bytes=with_bytes)


def message_of(said: Any) -> Message:
    """A client's message: a value, or a JSON text that is to be as it is."""
    return messages_of(said)[0]


def messages_of(said: Any) -> list[Message]:
    raw = said if isinstance(said, bytes) else said.encode() if isinstance(said, str) else json.dumps(said).encode()
    return classify(Frame(0, "c2s", "line", (), 0, 0, raw, len(raw)), JsonReader())


def request(number: Any, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def call(number: Any, name: str = "t", **arguments: Any) -> dict[str, Any]:
    return request(number, "tools/call", name=name, arguments=arguments)


def note(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": f"notifications/{method}", "params": params}


def answer(number: Any, **result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "result": result}


class Client:
    """A client of a stage, which remembers what it is told and when."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.session = stage.session()
        self.out: list[Outgoing] = []
        self.times: list[float] = []
        """Seconds since the client came."""
        self.ended: list[Line] = []
        self.is_gone = False
        self._began = asyncio.get_running_loop().time()

    @property
    def raw(self) -> list[bytes]:
        """The texts that came."""
        return [out.data for out in self.out]

    @property
    def said(self) -> list[Any]:
        """What came, parsed."""
        return [json.loads(out.data) for out in self.out]

    def take(self) -> list[Any]:
        """What has come since it was asked last."""
        said = self.said
        self.out.clear()
        return said

    async def send(self, out: Outgoing) -> None:
        if self.is_gone:
            raise ConnectionError
        self.out.append(out)
        self.times.append(round(asyncio.get_running_loop().time() - self._began, 4))

    async def end(self, line: Line) -> None:
        self.ended.append(line)

    def hear(self, said: Any) -> Performance | None:
        """Say something without waiting for what follows."""
        return self.session.heard(message_of(said), self)

    async def say(self, *said: Any) -> list[Any]:
        """Say something; return what came by the time that nothing more comes without time passing."""
        for one in said:
            self.hear(one)
            await asyncio.sleep(MOMENT)
        return self.take()


class Clock(asyncio.SelectorEventLoop):
    """An event loop whose time goes on only when nothing else is to be done, and then at once."""

    def __init__(self) -> None:
        super().__init__(_Impatient(self))
        self.now = 0.0

    def time(self) -> float:
        return self.now


class _Impatient(selectors.DefaultSelector):
    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            raise AssertionError("nothing is left that could happen")
        self._clock.now += max(0.0, timeout)
        return super().select(0)


def on_stage(
    script: Script | str,
    act: Callable[[Client], Awaitable[None]],
    *,
    timing: str = "none",
    rules: Rules | None = None,
    **options: Any,
) -> Stage:
    """Serve a script to one client, which does what ``act`` says; return the stage when it has left."""
    script = script_of(script) if isinstance(script, str) else script
    stage = Stage(script, Matcher(script.talks, rules or Rules()), tempo=read_tempo(timing), **options)

    async def run() -> None:
        await act(Client(stage))

    with asyncio.Runner(loop_factory=Clock) as runner:
        runner.run(run())
    if stage.bug is not None:
        raise stage.bug
    return stage


def told(script: Script | str, said: Iterable[Any], **options: Any) -> list[Any]:
    """What a client is told that says one thing after the other."""
    came: list[Any] = []

    async def act(client: Client) -> None:
        came.extend(await client.say(*said))

    on_stage(script, act, **options)
    return came
