"""The way to a server over Streamable HTTP, in all its revisions (MCP transports of 2025-03-26 to 2026-07-28)."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Final

import aiohttp

from mcpsniff.protocol.http import LAST_EVENT_ID, SESSION_HEADER, VERSION_HEADER
from mcpsniff.protocol.message import ERROR, RESPONSE, IdKey
from mcpsniff.protocol.reading import JsonReader
from mcpsniff.protocol.revisions import PROTOCOL_VERSION_KEY
from mcpsniff.replay.send.headers import (
    ACCEPT_STREAM,
    Headers,
    has,
    merged,
    recorded_headers,
    standard_headers,
    value_of,
)
from mcpsniff.replay.send.link import FRAME_LIMIT, Came, Ear, GoneError, Refusal, Sent, Tape, UnreachableError
from mcpsniff.replay.send.link import read_messages as messages_of
from mcpsniff.replay.send.reach import lost
from mcpsniff.replay.send.web import RETRY_MS, Response, Wire, first_of
from mcpsniff.wire.sse import EventSplitter

MOST_RESUMES: Final = 20
"""How often one stream is asked for again without anything new."""
LONGEST_RETRY: Final = 10.0
"""Seconds to wait before a stream is asked for again, however long the server says."""
ELSEWHERE: Final = 1.0
"""Seconds in which an answer may come on the server's own stream once that of its request has ended without it."""
NO_STREAM: Final = 405
"""The status by which a server says that it offers no stream of its own (MCP transports)."""
AT_ONCE: Final = 5.0
"""Seconds that a server has to say whether it has a stream of its own, and to end the session."""


class HttpLink:
    """A client's side of Streamable HTTP: a POST for each text, and streams, which are resumed where they are cut."""

    transport = "http"

    def __init__(
        self, url: str, ear: Ear, *, given: Headers | None = None, tape: Tape | None = None, timeout: float = 30.0
    ) -> None:
        """``given`` are header fields that go with everything and are never kept; ``timeout`` is in seconds."""
        self.wire = Wire(url, self._heard, given or [], tape, timeout)
        self._ear = ear
        self._timeout = timeout
        self.session_id: str | None = None
        self.version: str | None = None
        """The revision that the server agreed to in its answer to ``initialize``."""
        self.recorded_version: str | None = None
        """The one that the recorded conversation had agreed on: a recorded header of that value names the live one."""
        self.listening: int | None = None
        """The status with which the server answered when it was asked for its own stream; None: it was not."""
        self.ends_session = True
        """Whether `close` is to end the session (DELETE), as far as there is one."""
        self.was_streamable = True
        """False for what was recorded over HTTP+SSE, whose header fields say nothing of streams, sessions, versions."""
        self.is_over = False
        self._has_left = False
        self._open: dict[IdKey, Sent] = {}
        self._opening: set[IdKey] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._posts: dict[Sent, asyncio.Task[None]] = {}
        self._own: asyncio.Task[None] | None = None
        """What reads the server's own stream."""

    async def open(self) -> None:
        """Make ready; the first request reaches the server, or does not."""
        await self.wire.open()

    async def send(self, sent: Sent) -> None:
        """POST a text, and go on with the response elsewhere.

        Returns when a request has been written, and when anything else was accepted or refused, for what comes next
        must not overtake it. Raises UnreachableError, GoneError.
        """
        if self.is_over:
            raise GoneError
        written, begun = asyncio.Event(), asyncio.Event()
        keys = sent.open_keys
        self._open |= dict.fromkeys(keys, sent)
        if sent.is_opening:
            self._opening |= keys
        task = self._posts[sent] = self._start(self._post(sent, written, begun))
        task.add_done_callback(lambda _: self._posts.pop(sent, None))
        await first_of(written if keys else begun, task, self._timeout)
        if task.done() and not task.cancelled() and (error := task.exception()) is not None:
            raise error

    async def listen(self) -> None:
        """GET the server's own stream, unless it is there; waits until the server has said whether it has one."""
        if self._own is not None and (not self._own.done() or self.listening == NO_STREAM):
            return
        answered = asyncio.Event()
        self._own = self._start(self._own_stream(answered))
        await first_of(answered, self._own, min(self._timeout, AT_ONCE))

    async def drop(self, sent: Sent) -> bool:
        """Close the response to a text, by which 2026-07-28 cancels its request (transports, cancellation)."""
        task = self._posts.get(sent)
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        return True

    async def leave(self) -> None:
        """End the session if there is one (DELETE), once."""
        if self.session_id is None or self._has_left:
            return
        self._has_left = True
        with suppress(aiohttp.ClientError, UnreachableError, TimeoutError, OSError):
            async with asyncio.timeout(AT_ONCE), self.wire.ask("DELETE", self._session_headers()) as answer:
                await answer.read(1 << 16)

    async def close(self) -> None:
        """End the session if there is one, and close all connections."""
        self.is_over = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self.ends_session:
            await self.leave()
        await self.wire.close()

    def headers(self, sent: Sent) -> Headers:
        """The header fields for a text: as recorded, with what belongs to the live session in their place."""
        recorded = sent.headers if self.was_streamable else None
        headers = standard_headers(sent.messages) if recorded is None else recorded_headers(recorded)
        if recorded is None and sent.headers is not None:
            headers = merged(recorded_headers(sent.headers), headers)
        if sent.params:
            headers = merged(headers, dict(sent.params))
        is_modern = any(PROTOCOL_VERSION_KEY in message.meta for message in sent.messages)
        if is_modern or sent.is_opening:
            return headers
        if self.session_id is not None and (recorded is None or has(recorded, SESSION_HEADER)):
            headers = merged(headers, {"Mcp-Session-Id": self.session_id})
        if self.version is not None and self._names_version(recorded):
            headers = merged(headers, {"MCP-Protocol-Version": self.version})
        return headers

    def _names_version(self, recorded: tuple[tuple[str, str], ...] | None) -> bool:
        """True if the header for the revision is ours: not where the recorded client named another, or none."""
        if recorded is None:
            return True
        named = value_of(recorded, VERSION_HEADER)
        return named is not None and named in (self.recorded_version, self.version)

    def _session_headers(self) -> Headers:
        named = {"Mcp-Session-Id": self.session_id, "MCP-Protocol-Version": self.version}
        return [(name, value) for name, value in named.items() if value is not None]

    # -- what comes ------------------------------------------------------------------------------------------------

    def _heard(self, came: Came) -> None:
        message = came.message
        if message.kind in (RESPONSE, ERROR) and message.key is not None:
            self._open.pop(message.key, None)
            version = message.result.get("protocolVersion")
            if message.key in self._opening and isinstance(version, str):
                self._opening.discard(message.key)
                self.version = version
        self._ear.heard(came)

    def _start(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._over)
        return task

    def _over(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # whoever sent has been told, or has gone on

    async def _post(self, sent: Sent, written: asyncio.Event, begun: asyncio.Event) -> None:
        try:
            async with self.wire.ask("POST", self.headers(sent), sent.data, written=written) as answer:
                if sent.is_opening and (session := answer.says(SESSION_HEADER)) is not None:
                    self.session_id = session
                self._ear.accepted(sent, answer.status)
                begun.set()
                await self._answer(sent, answer)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            self._refuse(sent, None, lost(error, self.wire.url))

    async def _answer(self, sent: Sent, answer: Response) -> None:
        if answer.status >= 300:
            text = await self.wire.refusal(answer, sent)
            self._refuse(sent, answer.status, f"answered {answer.status}{f': {text}' if text else ''}")
        elif answer.is_stream:
            stream = _Stream()
            await self._read(stream, answer, sent)
            await self._resume(stream, sent)
            if self.listening == 200 and any(self._open.get(key) is sent for key in sent.open_keys):
                await asyncio.sleep(ELSEWHERE)
            self._unanswered(sent, answer.status, "ended the stream without an answer", is_certain=True)
        else:
            heard = await self.wire.messages(answer, sent)
            self._unanswered(sent, answer.status, f"gave {'another answer' if heard else 'no answer'}")

    def _refuse(self, sent: Sent, status: int | None, why: str) -> None:
        for key in sent.open_keys:
            if self._open.get(key) is sent:
                del self._open[key]
        self._ear.refused(Refusal(sent, status, why))

    def _unanswered(self, sent: Sent, status: int, why: str, *, is_certain: bool = False) -> None:
        """A response is over; what it did not answer may still be answered on the server's own stream.

        After an event stream it ``is_certain`` that it is not: answers come on the stream of their request.
        """
        if (is_certain or self.listening != 200) and any(self._open.get(key) is sent for key in sent.open_keys):
            self._refuse(sent, status, why)

    # -- streams ---------------------------------------------------------------------------------------------------

    async def _read(self, stream: "_Stream", answer: Response, sent: Sent | None) -> None:
        splitter, reader = EventSplitter(0, "s2c", limit=FRAME_LIMIT), JsonReader()
        with suppress(aiohttp.ClientPayloadError, ConnectionError):
            async for frame in answer.events(splitter):
                stream.last_id = splitter.last_event_id
                if splitter.reconnection_time is not None:
                    stream.retry_ms = splitter.reconnection_time
                if frame.sse is None or not frame.sse.dispatched or frame.sse.event != "message":
                    continue
                if frame.payload.strip():
                    stream.heard += 1
                    for message in messages_of(frame, reader):
                        self._heard(Came(message, frame.t_last, sent, answer.status))

    async def _resume(self, stream: "_Stream", sent: Sent) -> None:
        """Ask for the rest of a stream that was cut before it answered (2025-11-25 transports, resumability)."""
        idle = 0
        while stream.last_id and idle < MOST_RESUMES and any(self._open.get(key) is sent for key in sent.open_keys):
            await asyncio.sleep(min(stream.retry_ms / 1000, LONGEST_RETRY))
            before = stream.heard
            headers = [("Accept", ACCEPT_STREAM), *self._session_headers(), (LAST_EVENT_ID, stream.last_id)]
            async with self.wire.ask("GET", headers) as answer:
                if not answer.is_stream or answer.status != 200:
                    return
                await self._read(stream, answer, sent)
            idle = idle + 1 if stream.heard == before else 0

    async def _own_stream(self, answered: asyncio.Event) -> None:
        stream, idle = _Stream(), 0
        while idle <= MOST_RESUMES and not self.is_over:
            headers = [("Accept", ACCEPT_STREAM), *self._session_headers()]
            if stream.last_id:
                headers.append((LAST_EVENT_ID, stream.last_id))
            before = stream.heard
            try:
                async with self.wire.ask("GET", headers) as answer:
                    self.listening = answer.status if answer.is_stream or answer.status >= 300 else None
                    answered.set()
                    if not answer.is_stream or answer.status != 200:
                        return
                    await self._read(stream, answer, None)
            except (aiohttp.ClientError, OSError):
                self.listening = None
            answered.set()
            idle = idle + 1 if stream.heard == before else 0
            await asyncio.sleep(min(stream.retry_ms / 1000, LONGEST_RETRY))


class _Stream:
    """What is to be known of an event stream over all the responses that carry it."""

    def __init__(self) -> None:
        self.last_id = ""
        self.retry_ms: float = RETRY_MS
        self.heard = 0
