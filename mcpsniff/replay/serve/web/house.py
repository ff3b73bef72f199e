"""What all handlers of a replay over HTTP share, and how a response is sent."""

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import aclosing
from typing import Any, Final

from aiohttp import web as aio

from mcpsniff.protocol.http import EVENT_STREAM, is_json_type, media_type
from mcpsniff.protocol.message import Message
from mcpsniff.replay.script import Lack, Web
from mcpsniff.replay.serve.made_up import error
from mcpsniff.replay.serve.stage import Stage
from mcpsniff.replay.serve.web.blocks import Bytes
from mcpsniff.replay.serve.web.clients import Client, Clients
from mcpsniff.replay.serve.web.heads import Head, Headers, Origins, for_pages, head_of
from mcpsniff.replay.serve.web.log import EventIds, StreamLog
from mcpsniff.replay.serve.web.route import OURS, Recorded, Route, mirror_headers, mirrored, route
from mcpsniff.replay.serve.web.streams import EventWriter, is_broken_off
from mcpsniff.replay.serve.web.unspoken import Unspoken
from mcpsniff.transcript.units import count
from mcpsniff.wire.http1_parts import LENGTH

STREAM_HEADERS: Final[Headers] = [("Content-Type", EVENT_STREAM), ("Cache-Control", "no-cache, no-transform")]
REFUSED: Final = -32000
"""The code of our JSON-RPC errors that say that HTTP refuses a request: of those that are free for servers."""
_LARGE: Final = 1024 * 1024
"""Bytes of a body that are written at once."""
_FLUSH_SECONDS: Final = 5.0
"""How long a connection that is to be broken off has to take what was written."""
_SPACING: Final = 0.002
_SPACING_AT_MOST: Final = 0.25
"""Seconds between the recorded pieces of one event, and at most for all of them: they are to stay apart on the way."""


class House:
    """A replay over HTTP: what was recorded, and who is there."""

    def __init__(self, stage: Stage, *, over_sse: bool, raw: bool) -> None:
        """``over_sse``: HTTP+SSE is served; ``raw``: recorded bytes are sent as they were (they are in the script)."""
        self.stage = stage
        sent_as_read = {"sse"} if over_sse else {"sse", "body"}
        stage.in_pieces = frozenset(sent_as_read) if raw else frozenset()
        self.over_sse = over_sse
        servers = {talk.server for talk in stage.matcher.talks if talk.server}
        others = set(stage.script.servers) - servers
        found = [web for web in stage.script.webs if web.http.authority not in others]
        webs = [web for web in found if web.http.by != OURS]
        self.ours = len(found) - len(webs)
        """Recorded responses that mcpsniff itself had given, and that are no server's."""
        self.lacks = list(_cut_bodies(webs))
        stage.script.lacks.extend(self.lacks)
        self.bytes = Bytes(stage.script) if raw else None
        self.writer = EventWriter(EventIds(), self.bytes)
        self.recorded = Recorded(webs)
        self.unspoken = Unspoken(webs, self.recorded, over_sse=over_sse)
        self.origins = Origins(webs, servers)
        self.clients = Clients(stage, self.writer, self.unspoken.next_stream)
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def paths(self) -> list[str]:
        """Where clients find it: the usual path, and those that were recorded."""
        usual = "/sse" if self.over_sse else "/mcp"
        recorded = self.recorded.stream_paths if self.over_sse else self.recorded.mcp_paths
        return [usual, *sorted(recorded - {usual})]

    def spawn(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Let something go on by itself."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def close(self) -> None:
        """End everything that goes on."""
        self.clients.end_all()
        for task in list(self._tasks):
            task.cancel()

    def _done(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.stage.fail(error)


def _cut_bodies(webs: Sequence[Web]) -> Iterator[Lack]:
    """Bodies without messages of which no more than the beginning is in the script."""
    for web in webs:
        body, http = web.answered, web.http
        if body.is_cut and not body.messages and http.stream is None and not web.lines:
            what = f"HTTP exchange {web.number} ({http.method} {http.path})"
            yield Lack(f"of the response of {what} no more than the first {count(len(body.kept), 'byte')} are served")


class Exchange:
    """One live request, and the ways to respond to it."""

    def __init__(self, house: House, request: aio.Request) -> None:
        self.house = house
        self.request = request
        self.session = request.headers.get("mcp-session-id")
        self.route = self.route_of(house.clients.state(self.session))
        self.origin = f"http://{request.host}"

    def route_of(self, state: str) -> Route:
        """Its route, if its session is in this state."""
        return route(self.request.headers.get, state)

    def mirrored(self, message: Message) -> tuple[str, ...]:
        """What its headers that repeat the message say of it, see `Route`."""
        return mirrored(self.request.headers.get, message, mirror_headers(self.request.headers.items()))

    @property
    def who(self) -> tuple[str, str]:
        """From where it comes, and what the client calls itself."""
        return self.request.remote or "", self.request.headers.get("user-agent", "")

    # -- responding ------------------------------------------------------------------------------------------------

    async def respond(
        self,
        web: Web | None,
        client: Client | None = None,
        *,
        status: int = 200,
        body: Sequence[bytes] | None = None,
        dues: Sequence[float | None] = (),
        kind: str = "",
    ) -> aio.StreamResponse:
        """The recorded response, with ``body`` in the place of its own; without a recorded one this status and type.

        ``dues`` are the moments for the pieces of the body, see `Block`.
        """
        if web is not None and body is None:
            await self._until_due(web)
        target = self.request.path_qs
        head = head_of(web, self.house.origins, self.origin, session=self._session(client), target=target)
        if web is not None and head is None and body is None:
            return await self.break_off()
        if web is not None and body is None and is_broken_off(web):
            return await self.tear(web, client)
        if head is None:
            head = Head(status, None, [("Content-Type", kind)] if body is not None and kind else [])
            head.headers.extend(self._session_header(client))
        pieces = self._recorded_body(web, head) if body is None else body
        headers = [*head.headers, *self._cors(head)]
        data = b"".join(pieces) if head.has_body else b""
        if len(pieces) == 1 and len(data) > _LARGE:
            pieces = [data[at : at + _LARGE] for at in range(0, len(data), _LARGE)]
        if len(pieces) > 1 and head.has_body:
            return await self._send_pieces(web, head, headers, pieces, dues)
        response = aio.Response(status=head.status, reason=head.reason, body=data, headers=headers)
        if not data and head.get("content-type") is None:
            response.headers.popall("Content-Type", None)
        return response

    async def begin_stream(self, web: Web | None, client: Client | None) -> aio.StreamResponse:
        """The head of an event stream, as recorded."""
        head = head_of(web, self.house.origins, self.origin, session=self._session(client))
        if head is None:
            head = Head(200, None, [*STREAM_HEADERS, *self._session_header(client)])
        headers = [*head.headers, *self._cors(head)]
        response = aio.StreamResponse(status=head.status, reason=head.reason, headers=headers)
        await response.prepare(self.request)
        return response

    async def follow(self, response: aio.StreamResponse, log: StreamLog, position: int | None = None) -> None:
        """Pass on what is said on a stream, until it ends or the client leaves."""
        if self.request.method == "HEAD":
            return
        async with aclosing(log.follow(position)) as blocks:
            async for block in blocks:
                if block.breaks:
                    await self.break_off()
                    return
                try:
                    await self._write(response, block.pieces, block.dues)
                except ConnectionError:
                    return

    def refuse(self, status: int, text: str, *, code: int = REFUSED, **headers: str) -> aio.Response:
        """Our own refusal, as a JSON-RPC error without an id, which MCP allows with each status that refuses."""
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        more |= dict(self._cors(Head(status, None, [])))
        if self.request.method == "HEAD":
            return aio.Response(status=status, headers=more)
        said = error(None, code, text)
        return aio.Response(status=status, body=said, headers={"Content-Type": "application/json", **more})

    async def break_off(self) -> aio.Response:
        """End the connection without a word, as the recorded one ended; what was said before gets there."""
        transport = self.request.transport
        if transport is not None:
            until = asyncio.get_running_loop().time() + _FLUSH_SECONDS
            while transport.get_write_buffer_size() and asyncio.get_running_loop().time() < until:
                await asyncio.sleep(_SPACING)
            transport.abort()
        return aio.Response(status=500)

    async def tear(self, web: Web, client: Client | None, said: bytes = b"") -> aio.StreamResponse:
        """The recorded response as far as it came, or as far as ``said``, and then the end of the connection."""
        said = said or web.answered.kept
        head = head_of(web, self.house.origins, self.origin, session=self._session(client))
        if head is not None and self.request.method != "HEAD":
            headers = [*head.headers, *self._cors(head)]
            response = aio.StreamResponse(status=head.status, reason=head.reason, headers=headers)
            length = web.http.says("content-length") or ""
            if length.isascii() and length.isdecimal() and int(length) > len(said):
                response.content_length = int(length)
            await response.prepare(self.request)
            await response.write(said)
        return await self.break_off()

    # -- parts of a response ---------------------------------------------------------------------------------------

    async def _write(
        self, response: aio.StreamResponse, pieces: Sequence[bytes], dues: Sequence[float | None] = ()
    ) -> None:
        """Write pieces one after the other, when they are due, and so that they stay apart on their way."""
        loop = asyncio.get_running_loop()
        pause = min(_SPACING, _SPACING_AT_MOST / max(1, len(pieces)))
        for at, piece in enumerate(pieces):
            due = dues[at] if dues else None
            seconds = max(pause if at else 0.0, 0.0 if due is None else due - loop.time())
            if seconds:
                await asyncio.sleep(seconds)
            await response.write(piece)

    async def _send_pieces(
        self,
        web: Web | None,
        head: Head,
        headers: Headers,
        pieces: Sequence[bytes],
        dues: Sequence[float | None],
    ) -> aio.StreamResponse:
        response = aio.StreamResponse(status=head.status, reason=head.reason, headers=headers)
        recorded = None if web is None else web.http.response
        if recorded is None or recorded.framing == LENGTH:
            response.content_length = sum(map(len, pieces))
        await response.prepare(self.request)
        if self.request.method != "HEAD":
            await self._write(response, pieces, dues)
        return response

    def _recorded_body(self, web: Web | None, head: Head) -> tuple[bytes, ...]:
        if web is None:
            return (b"",)
        kept = web.answered.kept
        if is_json_type(media_type(head.get("content-type"))):
            kept = self.house.origins.live_body(kept, self.origin)
        return (kept,)

    def _session(self, client: Client | None) -> str | None:
        return None if client is None else client.session

    def _session_header(self, client: Client | None) -> Headers:
        return [] if client is None or client.session is None else [(client.header, client.session)]

    def _cors(self, head: Head) -> Headers:
        if self.house.recorded.has_origins or head.get("access-control-allow-origin") is not None:
            return []
        return for_pages(self.request.headers.get("origin"), self.request.method)

    async def _until_due(self, web: Web) -> None:
        http = web.http
        if http.t_response is not None:
            seconds = self.house.stage.tempo.seconds(max(0, http.t_response - http.t_request))
            if seconds:
                await asyncio.sleep(seconds)
