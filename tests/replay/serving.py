"""A dialogue served over HTTP in this process, and a client that sees heads, events and bytes as they come."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from mcpsniff.replay.match import Matcher, Rules
from mcpsniff.replay.script import Script
from mcpsniff.replay.serve.stage import Stage
from mcpsniff.replay.serve.web.server import Server
from mcpsniff.replay.tempo import read_tempo
from mcpsniff.wire.sse import EventSplitter
from tests.replay.staging import script_of

PATIENCE = 20
BOTH = "application/json, text/event-stream"
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "live", "version": "1"}},
}


@dataclass
class Event:
    """A block of an event stream."""

    data: bytes | None
    """None if it has none."""
    name: str
    id: str | None
    retry: int | None
    comments: tuple[str, ...]

    @property
    def message(self) -> Any:
        return json.loads(self.data or b"null")


class Answer:
    """A response, as far as it has come."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer
        self.status = 0
        self.headers: dict[str, str] = {}
        self.reads: list[bytes] = []
        """The chunks of its body, as they were sent."""
        self._events: list[Event] = []
        self._splitter = EventSplitter(0, "s2c")
        self._seen = 0

    async def head(self) -> "Answer":
        lines = (await self._within(self._reader.readuntil(b"\r\n\r\n"))).decode("latin-1").split("\r\n")
        self.status = int(lines[0].split()[1])
        for line in lines[1:-2]:
            name, _, value = line.partition(":")
            self.headers[name.lower()] = value.strip()
        return self

    async def body(self) -> bytes:
        """All of it."""
        if "content-length" in self.headers:
            return await self._within(self._reader.readexactly(int(self.headers["content-length"])))
        if self.headers.get("transfer-encoding") == "chunked":
            while await self.chunk():
                pass
        return b"".join(self.reads)

    async def json(self) -> Any:
        return json.loads(await self.body())

    async def chunk(self) -> bytes:
        """The next chunk; empty at the end. Raises EOFError if the connection ends before it."""
        size = int((await self._within(self._reader.readuntil(b"\r\n"))).strip(), 16)
        data = (await self._within(self._reader.readexactly(size + 2)))[:-2]
        self.reads += [data] * bool(data)
        return data

    async def event(self) -> Event | None:
        """The next block; None when the stream has ended."""
        while not self._events:
            data = await self.chunk()
            if not data:
                return None
            for frame in self._splitter.feed(0, data, ()):
                assert frame.sse is not None
                has_data = frame.sse.dispatched
                fields = (frame.sse.event, frame.sse.id, frame.sse.retry, frame.sse.comments)
                self._events.append(Event(frame.payload if has_data else None, *fields))
        return self._events.pop(0)

    async def events(self) -> list[Event]:
        """All that are left."""
        found = []
        while (event := await self.event()) is not None:
            found.append(event)
        return found

    async def is_idle(self) -> bool:
        """True if nothing comes for a moment."""
        with suppress(TimeoutError):
            async with asyncio.timeout(0.1):
                await self.event()
                return False
        return True

    async def has_anything(self) -> bool:
        """True if something comes within a moment, or the end."""
        with suppress(TimeoutError):
            async with asyncio.timeout(0.1):
                await self._reader.read(1)
                return True
        return False

    async def is_broken_off(self) -> bool:
        """True if the connection ends without a response."""
        try:
            return await self._within(self._reader.read(1)) == b""
        except ConnectionError:
            return True

    async def until_end(self) -> bytes:
        """What comes until the connection ends."""
        return await self._within(self._reader.read())

    def stall(self) -> None:
        """Read no more, as a client that is busy."""
        self.writer.transport.pause_reading()  # type: ignore[attr-defined]

    def go_on(self) -> None:
        self.writer.transport.resume_reading()  # type: ignore[attr-defined]

    def close(self) -> None:
        self.writer.close()

    async def _within(self, coming: Awaitable[bytes]) -> bytes:
        async with asyncio.timeout(PATIENCE):
            return await coming


class Client:
    """A client of the server; each request has a connection of its own unless one is given."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.stage = server.house.stage
        self.headers: dict[str, str] = {"Accept": BOTH}
        self.path = "/sse" if server.house.over_sse else "/mcp"
        self._answers: list[Answer] = []

    async def ask(
        self, method: str, path: str = "", body: bytes = b"", /, *, on: Answer | None = None, **headers: str
    ) -> Answer:
        """Send a request; what comes back is not awaited. A header ``X_Y="z"`` is X-Y, ``X_Y=""`` leaves it out."""
        host, port = self.server.origin.removeprefix("http://").rsplit(":", 1)
        if on is None:
            reader, writer = await asyncio.open_connection(host, int(port), limit=2**26)
            answer = Answer(reader, writer)
        else:
            answer = Answer(on._reader, on.writer)
        self._answers.append(answer)
        fields = {
            "Host": f"{host}:{port}",
            **self.headers,
            **{key.replace("_", "-"): value for key, value in headers.items()},
        }
        lines = [
            f"{method} {path or self.path} HTTP/1.1",
            *(f"{key}: {value}" for key, value in fields.items() if value),
        ]
        if body:
            lines += [f"Content-Length: {len(body)}"] + ["Content-Type: application/json"] * (
                "Content-Type" not in fields
            )
        answer.writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
        return answer

    async def request(self, method: str, path: str = "", body: bytes = b"", /, **more: Any) -> Answer:
        """Send a request and wait for the head of its response."""
        return await (await self.ask(method, path, body, **more)).head()

    async def post(self, said: Any, path: str = "", /, **more: Any) -> Answer:
        return await self.request("POST", path, said if isinstance(said, bytes) else json.dumps(said).encode(), **more)

    async def open(self, number: Any = 0) -> Any:
        """Shake hands; return the answer to initialize."""
        answer = await self.post({**INITIALIZE, "id": number})
        first = await answer.json() if "json" in answer.headers["content-type"] else (await answer.events())[-1].message
        if "mcp-session-id" in answer.headers:
            self.headers["Mcp-Session-Id"] = answer.headers["mcp-session-id"]
        assert (await self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})).status == 202
        return first

    def close(self) -> None:
        for answer in self._answers:
            answer.close()


def over_http(
    script: Script | str,
    act: Callable[[Client], Awaitable[None]],
    *,
    over_sse: bool = False,
    raw: bool = False,
    timing: str = "none",
    rules: Rules | None = None,
    **options: Any,
) -> Stage:
    """Serve a script to one client, which does what ``act`` says; return the stage when all is over."""
    script = script_of(script, with_bytes=raw) if isinstance(script, str) else script
    stage = Stage(script, Matcher(script.talks, rules or Rules()), tempo=read_tempo(timing), over_http=True, **options)

    async def run() -> None:
        server = Server(stage, over_sse=over_sse, raw=raw)
        await server.start("127.0.0.1", 0)
        client = Client(server)
        try:
            await act(client)
        finally:
            client.close()
            await server.stop()

    asyncio.run(run())
    if stage.bug is not None:
        raise stage.bug
    return stage
