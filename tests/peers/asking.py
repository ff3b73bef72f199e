"""A client without an SDK that asks a replayed server for all that was recorded, but in its own way.

It asks in another order than the recorded client, under ids and progress tokens that are strings, and two at a time.
What came of that is in an `Asker`; `Recorded` says what should have.
"""

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urljoin

import aiohttp

AT_ONCE = 2
PATIENCE = 20.0
CANCELLED = "notifications/cancelled"
PROGRESS = "notifications/progress"

type Message = dict[str, Any]
type Send = Callable[[Message], Coroutine[Any, Any, None]]


def text_of(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def call_of(message: Message) -> str:
    """What a request or notification is, without its id and its tokens."""
    params = {name: value for name, value in message.get("params", {}).items() if name != "progressToken"}
    meta = {name: value for name, value in params.pop("_meta", {}).items() if name != "progressToken"}
    return text_of([message["method"], params, meta])


def answer_of(message: Message) -> str:
    return text_of({name: value for name, value in message.items() if name in ("result", "error")})


class Recorded:
    """A session out of a capture: its messages, each with its direction, in the order of each direction."""

    def __init__(self, messages: Iterable[tuple[str, Message]]) -> None:
        every = list(messages)
        ours = [message for way, message in every if way == "c2s"]
        theirs = [message for way, message in every if way == "s2c"]
        self.requests = [message for message in ours if "method" in message and "id" in message]
        self.notifications = [message for message in ours if "id" not in message]
        self.answers = {message["id"]: message for message in theirs if "method" not in message}
        self.asked = [message for message in theirs if "method" in message and "id" in message]
        self.told = [message for message in theirs if "id" not in message]
        given = {message["id"]: message for message in ours if "method" not in message}
        self.given = {call_of(message): given[message["id"]] for message in self.asked}

    def progress(self, token: Any) -> list[str]:
        """The progress of a request, in order."""
        found = [one for one in self.told if one["method"] == PROGRESS and one["params"]["progressToken"] == token]
        return [call_of(one) for one in found]


@dataclass
class Asker:
    """One session of the client."""

    recorded: Recorded
    send: Send
    arrived: asyncio.Queue[Message]
    """All messages of the server, whichever way they come."""
    listen: Callable[[], Coroutine[Any, Any, None]]
    """To be called when the handshake is over."""
    wrong: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    """What was asked, and what came of it."""
    asked: list[Message] = field(default_factory=list)
    told: list[Message] = field(default_factory=list)
    tokens: dict[Any, Any] = field(default_factory=dict)
    """The tokens of the recorded requests by those that are offered instead."""
    _waiting: dict[str, asyncio.Future[Message]] = field(default_factory=dict)

    async def hold(self) -> None:
        """Ask for everything; return when all answers and all notifications have come."""
        hearing = asyncio.create_task(self._hear())
        try:
            first, *others = self.recorded.requests
            await self.ask(first)
            for notification in self.recorded.notifications:
                if notification["method"] == "notifications/initialized":
                    await self.send(notification)
            await self.listen()
            places = asyncio.Semaphore(AT_ONCE)
            await asyncio.gather(*(self._in_turn(places, request) for request in reversed(others)))
            await self._until_all_came()
        finally:
            hearing.cancel()
            await asyncio.gather(hearing, return_exceptions=True)

    async def _in_turn(self, places: asyncio.Semaphore, request: Message) -> None:
        async with places:
            await self.ask(request)

    async def ask(self, request: Message) -> None:
        """Ask for what was recorded, and wait for the answer if there was one."""
        number = f"again-{request['id']}"
        asking = {**json.loads(json.dumps(request)), "id": number}
        meta = asking.get("params", {}).get("_meta", {})
        if "progressToken" in meta:
            self.tokens[f"token-{number}"] = meta["progressToken"]
            meta["progressToken"] = f"token-{number}"
        coming = self._waiting[number] = asyncio.get_running_loop().create_future()
        await self.send(asking)
        if request["id"] not in self.recorded.answers:
            await self.send({"jsonrpc": "2.0", "method": CANCELLED, "params": {"requestId": number}})
            return
        self.answers.append(f"{call_of(request)} {answer_of(await asyncio.wait_for(coming, PATIENCE))}")

    async def _hear(self) -> None:
        while True:
            message = await self.arrived.get()
            if "method" not in message:
                waiting = self._waiting.get(message["id"])
                if waiting is None or waiting.done():
                    self.wrong.append(f"nothing was asked under that id: {message}")
                else:
                    waiting.set_result(message)
            elif "id" in message:
                self.asked.append(message)
                given = self.recorded.given[call_of(message)]
                await self.send({**given, "id": message["id"]})
            else:
                self.told.append(message)

    async def _until_all_came(self) -> None:
        """Wait for what the server says on its own account: that is not tied to the answers."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                while len(self.told) < len(self.recorded.told) or len(self.asked) < len(self.recorded.asked):
                    await asyncio.sleep(0.02)

    def differences(self) -> list[str]:
        """Everything that is not as it was recorded."""
        found, said = list(self.wrong), self.recorded
        # Of equal requests that are on their way together it is not known which came first.
        answers = [
            f"{call_of(one)} {answer_of(said.answers[one['id']])}" for one in said.requests if one["id"] in said.answers
        ]
        asked, told = [list(map(call_of, each)) for each in (self.asked, self.told)]
        recorded = (answers, [call_of(one) for one in said.asked], [call_of(one) for one in said.told])
        for ours, theirs in zip((self.answers, asked, told), recorded, strict=True):
            came, wanted = Counter(ours), Counter(theirs)
            found += [f"too often: {each}" for each in (came - wanted).elements()]
            found += [f"missing: {each}" for each in (wanted - came).elements()]
        for token, theirs in self.tokens.items():
            of_it = [one for one in self.told if one["method"] == PROGRESS and one["params"]["progressToken"] == token]
            if [call_of(one) for one in of_it] != said.progress(theirs):
                found.append(f"progress of {token}: {of_it}")
        return found


@contextlib.asynccontextmanager
async def pipes(recorded: Recorded, target: list[str]) -> AsyncIterator[Asker]:
    """Start a server and talk to it on its standard streams."""
    server = await asyncio.create_subprocess_exec(
        *target, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=1 << 26
    )
    stdin, stdout = server.stdin, server.stdout
    assert stdin is not None
    assert stdout is not None
    arrived: asyncio.Queue[Message] = asyncio.Queue()

    async def send(message: Message) -> None:
        stdin.write(json.dumps(message).encode() + b"\n")
        await stdin.drain()

    async def read() -> None:
        async for line in stdout:
            arrived.put_nowait(json.loads(line))

    async def listen() -> None:
        pass

    reading = asyncio.create_task(read())
    try:
        yield Asker(recorded, send, arrived, listen)
        stdin.close()
        await asyncio.wait_for(reading, PATIENCE)
        await asyncio.wait_for(server.wait(), PATIENCE)
    finally:
        reading.cancel()
        if server.returncode is None:
            server.kill()
            await server.wait()


async def events(response: aiohttp.ClientResponse) -> AsyncIterator[tuple[str, str]]:
    """The kinds and the data of the events of a stream that have any, as the HTML standard has them; lines of it end
    with LF or CR LF."""
    kind, data = "message", []
    async for raw in response.content:
        name, _, value = raw.decode().rstrip("\r\n").partition(":")
        if name == "event":
            kind = value.removeprefix(" ")
        elif name == "data":
            data.append(value.removeprefix(" "))
        elif not name and not value and not raw.startswith(b":"):
            if any(data):
                yield kind, "\n".join(data)
            kind, data = "message", []


@contextlib.asynccontextmanager
async def streamable(recorded: Recorded, target: str) -> AsyncIterator[Asker]:
    """Talk to a server on Streamable HTTP, each request in a POST of its own."""
    arrived: asyncio.Queue[Message] = asyncio.Queue()
    headers = {"Accept": "application/json, text/event-stream"}

    async def read(response: aiohttp.ClientResponse) -> None:
        async with response:
            if response.content_type == "application/json":
                arrived.put_nowait(await response.json())
            else:
                async for _, data in events(response):
                    arrived.put_nowait(json.loads(data))

    async with aiohttp.ClientSession(read_bufsize=1 << 24) as web, asyncio.TaskGroup() as tasks:

        async def send(message: Message) -> None:
            response = await web.post(target, json=message, headers=headers)
            if response.status == 202:
                response.release()
                return
            assert response.status == 200, (response.status, await response.text())
            if "Mcp-Session-Id" in response.headers:
                headers["Mcp-Session-Id"] = response.headers["Mcp-Session-Id"]
            reading.append(tasks.create_task(read(response)))

        async def listen() -> None:
            response = await web.get(target, headers={**headers, "Accept": "text/event-stream"})
            if response.status == 405:
                response.release()
                return
            assert response.status == 200, (response.status, await response.text())
            reading.append(tasks.create_task(read(response)))

        reading: list[asyncio.Task[None]] = []
        yield Asker(recorded, send, arrived, listen)
        for task in reading:
            task.cancel()


@contextlib.asynccontextmanager
async def legacy(recorded: Recorded, target: str) -> AsyncIterator[Asker]:
    """Talk to a server on HTTP+SSE: one stream, and an endpoint to send to."""
    arrived: asyncio.Queue[Message] = asyncio.Queue()
    endpoint: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def read(response: aiohttp.ClientResponse) -> None:
        async for kind, data in events(response):
            if kind == "endpoint":
                endpoint.set_result(urljoin(target, data))
            else:
                arrived.put_nowait(json.loads(data))

    async def listen() -> None:
        pass

    async with (
        aiohttp.ClientSession(read_bufsize=1 << 24) as web,
        web.get(target, headers={"Accept": "text/event-stream"}) as stream,
    ):
        assert stream.status == 200, (stream.status, await stream.text())
        reading = asyncio.create_task(read(stream))
        address = await asyncio.wait_for(endpoint, PATIENCE)

        async def send(message: Message) -> None:
            async with web.post(address, json=message) as response:
                assert response.status == 202, (response.status, await response.text())

        try:
            yield Asker(recorded, send, arrived, listen)
        finally:
            reading.cancel()


WAYS: dict[str, Callable[..., contextlib.AbstractAsyncContextManager[Asker]]] = {
    "stdio": pipes,
    "http": streamable,
    "sse": legacy,
}


async def differences(recorded: Recorded, way: str, target: str | list[str]) -> list[str]:
    """Hold one session in the client's own way; what was not as recorded."""
    async with WAYS[way](recorded, target) as asker:
        await asker.hold()
    return asker.differences()
