"""The way to a server over HTTP+SSE (MCP transports of 2024-11-05): one stream, and an endpoint for what is sent."""

import asyncio
from contextlib import suppress
from typing import Final
from urllib.parse import urljoin, urlsplit

import aiohttp

from mcpsniff.protocol.reading import JsonReader
from mcpsniff.replay.send.headers import ACCEPT_STREAM, Headers, merged, recorded_headers
from mcpsniff.replay.send.link import FRAME_LIMIT, Came, Ear, GoneError, Refusal, Sent, Tape, UnreachableError
from mcpsniff.replay.send.link import read_messages as messages_of
from mcpsniff.replay.send.reach import lost, named
from mcpsniff.replay.send.web import Response, Wire, first_of
from mcpsniff.wire.sse import EventSplitter

_STREAMABLE_ONLY: Final = {"mcp-session-id": None, "mcp-protocol-version": None, "accept": None}


class SseLink:
    """A client's side of HTTP+SSE: the stream is the session, and ends it."""

    transport = "sse"

    def __init__(
        self, url: str, ear: Ear, *, given: Headers | None = None, tape: Tape | None = None, timeout: float = 30.0
    ) -> None:
        """``given`` are header fields that go with everything and are never kept; ``timeout`` is in seconds."""
        self._ear = ear
        self._url = url
        self._timeout = timeout
        self.wire = Wire(url, ear.heard, given or [], tape, timeout)
        self.endpoint: str | None = None
        """Where texts are sent; the server names it."""
        self._named = asyncio.Event()
        self._status: int | None = None
        self._stream: asyncio.Task[None] | None = None
        self._posts: set[asyncio.Task[None]] = set()
        self._is_closing = False

    async def open(self) -> None:
        """Open the stream and wait for the endpoint. Raises UnreachableError if there is none."""
        await self.wire.open()
        self._stream = asyncio.create_task(self._read())
        await first_of(self._named, self._stream, self._timeout)
        if self.endpoint is None:
            error = self._stream.exception() if self._stream.done() and not self._stream.cancelled() else None
            if isinstance(error, UnreachableError):
                raise error
            raise UnreachableError(f"{named(self._url)} names no endpoint of HTTP+SSE{self._instead()}")

    def _instead(self) -> str:
        return "" if self._status in (None, 200) else f": it answers {self._status}"

    async def send(self, sent: Sent) -> None:
        """POST a text to the endpoint; returns when it was accepted. Raises GoneError."""
        if self.endpoint is None or self._is_closing or (self._stream is not None and self._stream.done()):
            raise GoneError
        begun = asyncio.Event()
        task = asyncio.create_task(self._post(sent, begun))
        self._posts.add(task)
        task.add_done_callback(self._over)
        await first_of(begun, task, self._timeout)

    def _over(self, task: asyncio.Task[None]) -> None:
        self._posts.discard(task)
        if not task.cancelled():
            task.exception()

    async def drop(self, sent: Sent) -> bool:  # noqa: ARG002
        """False: a request is cancelled by a notification here."""
        return False

    async def listen(self) -> None:
        """Nothing: there is one stream for everything."""

    async def leave(self) -> None:
        """Nothing: the session ends with the link."""

    async def close(self) -> None:
        """Leave: close the stream, which ends the session."""
        self._is_closing = True
        tasks = [*self._posts, *([self._stream] if self._stream is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.wire.close()

    async def _post(self, sent: Sent, begun: asyncio.Event) -> None:
        headers: Headers = [("Content-Type", "application/json")]
        if sent.headers is not None:
            headers = merged(recorded_headers(sent.headers), _STREAMABLE_ONLY)
        try:
            async with self.wire.ask("POST", headers, sent.data, url=self.endpoint) as answer:
                self._ear.accepted(sent, answer.status)
                if answer.status >= 300:
                    text = await self.wire.refusal(answer, sent)
                    why = f"answered {answer.status}{f': {text}' if text else ''}"
                    self._ear.refused(Refusal(sent, answer.status, why))
                begun.set()
                await answer.read(1 << 16)
        except (aiohttp.ClientError, OSError, TimeoutError, UnreachableError) as error:
            why = lost(error, self.wire.url)
            self._ear.refused(Refusal(sent, None, why))

    async def _read(self) -> None:
        with suppress(aiohttp.ClientError, OSError):
            async with self.wire.ask("GET", [("Accept", ACCEPT_STREAM), ("Cache-Control", "no-store")]) as answer:
                self._status = answer.status
                if answer.is_stream and answer.status == 200:
                    await self._events(answer)
        if self.endpoint is not None and not self._is_closing:
            self._ear.ended("ended the stream, and with it the session")

    async def _events(self, answer: Response) -> None:
        splitter, reader = EventSplitter(0, "s2c", limit=FRAME_LIMIT), JsonReader()
        async for frame in answer.events(splitter):
            if frame.sse is None or not frame.sse.dispatched:
                continue
            if frame.sse.event == "endpoint" and self.endpoint is None:
                self._name(frame.payload.decode(errors="replace").strip())
            elif frame.sse.event == "message" and frame.payload.strip():
                for message in messages_of(frame, reader):
                    self._ear.heard(Came(message, frame.t_last, None, answer.status))

    def _name(self, endpoint: str) -> None:
        """Take the endpoint that the server names, unless it leads to another server: what is sent is for this one."""
        try:
            target = urljoin(self.wire.url, endpoint)
            one, other = urlsplit(self.wire.url), urlsplit(target)
        except ValueError:
            return
        if (one.scheme, one.netloc) == (other.scheme, other.netloc):
            self.endpoint = target
            self._named.set()
