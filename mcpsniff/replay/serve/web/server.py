"""Serve a script over HTTP: Streamable HTTP in all its revisions, or HTTP+SSE, to any number of clients.

    request ──▶ is it let in? ──▶ messages ──▶ whose? ──▶ http_post / http_sse ──▶ stage
                                  none ──────▶ http_get / http_sse: found by method, place and routing headers

It is served at ``/mcp`` or ``/sse``, and at the path that was recorded.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

from aiohttp import web as aio

from mcpsniff.capture.labels import shown
from mcpsniff.errors import UsageError
from mcpsniff.protocol.message import BATCH, INVALID, Message
from mcpsniff.protocol.reading import JsonReader
from mcpsniff.proxy.address import authority, is_loopback, parse_listen
from mcpsniff.proxy.say import say
from mcpsniff.replay.serve.ends import ENDS
from mcpsniff.replay.serve.heard import live_messages
from mcpsniff.replay.serve.made_up import INVALID_REQUEST
from mcpsniff.replay.serve.stage import Stage
from mcpsniff.replay.serve.web import get as http_get
from mcpsniff.replay.serve.web import post as http_post
from mcpsniff.replay.serve.web.clients import Client
from mcpsniff.replay.serve.web.house import Exchange, House
from mcpsniff.replay.serve.web.route import (
    DISCOVER,
    ENDPOINT,
    MCP,
    NONE,
    STREAM,
    Route,
    is_foreign,
    is_modern_message,
    names_loopback,
)
from mcpsniff.replay.serve.web.sse import Legacy
from mcpsniff.replay.serve.web.streams import count_noise
from mcpsniff.transcript.safe import visible
from mcpsniff.transcript.units import count
from mcpsniff.wire.frames import INVALID_UTF8
from mcpsniff.wire.ndjson import is_utf8

LARGEST_BODY: Final = 256 * 1024 * 1024
"""Bytes of one request body that are read; what is longer is refused with 413."""
LAST_SECONDS: Final = 0.5
"""What clients have to read what is on its way when the replay ends."""
GONE_SECONDS: Final = 1.0
"""Clients that have ended their sessions, and have had no connection for so long, have left."""
BACKLOG: Final = 512
MOST_TOLD: Final = 20
"""Of what is lacking so much is told one by one."""
_ALL_ADDRESSES: Final = {"*": "0.0.0.0"}  # noqa: S104 - who writes it wants it
_REACHED_AT: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - said, not listened at


def serve_http(
    stage: Stage,
    transport: str,
    *,
    listen: str | None = None,
    once: bool = False,
    raw: bool = False,
    asked_to_end: Callable[[], bool] = lambda: False,
) -> None:
    """Serve clients over ``transport`` (``http`` or ``sse``) until a signal asks for the end, as one may have already.

    ``listen`` is ``[HOST:]PORT``; ``once`` ends it when the first client has left; ``raw`` sends recorded bytes as they
    were (the script was read with them). What a client needs goes to stderr first. Faults of ours are in ``stage.bug``
    at the end. Raises UsageError, also where nobody can listen.
    """
    host, port = ("127.0.0.1", 0) if listen is None else parse_listen(listen)
    host = _ALL_ADDRESSES.get(host, host)
    asyncio.run(_serve(stage, transport, host, port, once=once, raw=raw, asked_to_end=asked_to_end))


async def _serve(
    stage: Stage, transport: str, host: str, port: int, *, once: bool, raw: bool, asked_to_end: Callable[[], bool]
) -> None:
    server = Server(stage, over_sse=transport == "sse", raw=raw, is_local=is_loopback(host))
    await server.start(host, port)
    server.tell()
    try:
        await server.until_over(once=once, asked_to_end=asked_to_end)
    finally:
        await server.stop()
    if dropped := server.house.writer.ids.dropped:
        say(f"{count(dropped, 'event')} were dropped: nobody opened the stream on which they waited")


class Server:
    """Lets requests in and finds out whose they are."""

    def __init__(self, stage: Stage, *, over_sse: bool = False, raw: bool = False, is_local: bool = True) -> None:
        """``is_local`` says that only this machine is served, so that a request that names another host is refused."""
        self.house = House(stage, over_sse=over_sse, raw=raw)
        self._legacy = Legacy(self.house)
        stage.on_bug = self._say_bug
        self._is_local = is_local
        self._reader = JsonReader()
        logger = logging.getLogger("mcpsniff.replay.http")
        logger.addHandler(logging.NullHandler())
        logger.propagate = False
        app = aio.Application(client_max_size=LARGEST_BODY)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = aio.AppRunner(
            app,
            access_log=None,
            handle_signals=False,
            handler_cancellation=True,
            shutdown_timeout=LAST_SECONDS,
            logger=logger,
        )
        self._over = asyncio.Event()
        self.origin = ""
        """Where it listens, as clients on this machine name it."""

    # -- from start to end -----------------------------------------------------------------------------------------

    async def start(self, host: str, port: int) -> None:
        """Listen. Raises UsageError."""
        await self._runner.setup()
        try:
            await aio.TCPSite(self._runner, host, port, backlog=BACKLOG, reuse_address=True).start()
        except OSError as error:
            from mcpsniff.proxy.portowner import cannot_listen

            await self._runner.cleanup()
            raise UsageError(cannot_listen(host, port, error)) from None
        self.origin = f"http://{authority(_REACHED_AT.get(host, host), self._runner.addresses[0][1])}"

    def tell(self) -> None:
        """Say where clients find it, and what HTTP leaves out."""
        path, *others = self.house.paths
        say(f"serving the capture at {self.origin}{path}")
        for other in others:
            say(f"and at {self.origin}{shown(other)}, as recorded")
        if not self._is_local:
            say("warning: whoever reaches this machine is told what is in the capture")
        for lack in self.house.lacks[:MOST_TOLD]:
            say(visible(lack.text))
        if ours := self.house.ours:
            say(f"{count(ours, 'response')} that mcpsniff itself had given {'is' if ours == 1 else 'are'} left out")
        if noise := count_noise(self.house.stage.matcher.talks):
            say(f"{count(noise, 'line')} of the server's stdout that are no messages are left out: HTTP carries none")

    async def until_over(self, *, once: bool, asked_to_end: Callable[[], bool] = lambda: False) -> None:
        """Return when a signal asks for the end (``asked_to_end``: one has), or, ``once``, when a client has left."""
        loop = asyncio.get_running_loop()
        for number in ENDS:
            loop.add_signal_handler(number, self._over.set)
        if asked_to_end():
            return
        if once:
            self.house.spawn(self._watch())
        await self._over.wait()

    async def stop(self) -> None:
        """End all streams and connections."""
        self.house.close()
        await self._runner.cleanup()

    async def _watch(self) -> None:
        """Set the end when clients were there and have left.

        Who has a session, or was given none that could be ended, may come again: for as long as a client is waited for.
        """
        last = time.monotonic()
        clients = self.house.clients
        while True:
            await asyncio.sleep(0.1)
            server = self._runner.server
            is_there = server is not None and bool(server.connections)
            patience = GONE_SECONDS if clients.have_left else self.house.stage.timeout
            if is_there or not clients.served:
                last = time.monotonic()
            elif time.monotonic() - last > patience:
                self._over.set()
                return

    def _say_bug(self) -> None:
        bug = self.house.stage.bug
        what = visible(f"{type(bug).__name__}: {bug}")[:500]
        say(f"this is a bug in mcpsniff, please report it: {what} (one client is affected; serving goes on)")

    # -- requests --------------------------------------------------------------------------------------------------

    async def _handle(self, request: aio.Request) -> aio.StreamResponse:
        """Respond to a request; what goes wrong in here is our bug, and the client is told no more than that."""
        try:
            exchange = Exchange(self.house, request)
            return self._keep_out(exchange) or await self._answer(exchange)
        except (aio.HTTPException, ConnectionError):
            raise
        except Exception as error:  # noqa: BLE001 - told on stderr, and raised when all clients have left
            self.house.stage.fail(error)
            return aio.Response(status=500, text="mcpsniff: this is a bug; see its standard error")

    def _keep_out(self, exchange: Exchange) -> aio.Response | None:
        """Refuse what comes from a page elsewhere, or names another host (MCP transports, security warning)."""
        headers = exchange.request.headers
        if self._is_local and not names_loopback(exchange.request.host):
            return exchange.refuse(403, f"Forbidden: the request's Host names {shown(exchange.request.host)[:200]}")
        if is_foreign(headers.get("origin"), headers.get("host")):
            return exchange.refuse(403, "Forbidden: the request comes from a page elsewhere (Origin)")
        return None

    async def _answer(self, exchange: Exchange) -> aio.StreamResponse:
        request = exchange.request
        place = self.house.unspoken.place(request.path)
        is_legacy = place in (STREAM, ENDPOINT) or self._legacy.client_of(request) is not None
        if request.method == "POST" and (place == MCP or is_legacy):
            try:
                body = await request.read()
            except aio.RequestPayloadError:
                return _unreadable(exchange)
            messages = self._messages(body)
            if all(message.kind == BATCH for message in messages):
                return exchange.refuse(400, "the batch is empty", code=INVALID_REQUEST)
            if place == MCP:
                return await self._post(exchange, messages)
            return await self._legacy.post(exchange, messages, exchange.route)
        if self.house.over_sse:
            return await self._legacy.other(exchange)
        client = self._client(exchange, None)
        return await http_get.other(exchange, client)

    async def _post(self, exchange: Exchange, messages: list[Message]) -> aio.StreamResponse:
        first = messages[0]
        route = exchange.route._replace(mirrored=exchange.mirrored(first))
        client = self._client(exchange, first)
        if client is not None:
            return await http_post.post(exchange, client, messages, route)
        return await self._strange(exchange, messages, route)

    def _client(self, exchange: Exchange, message: Message | None) -> Client | None:
        """Whose request it is; None if it names no session that there is."""
        clients = self.house.clients
        if exchange.session is not None:
            found = clients.named(exchange.session)
            if found is not None:
                return found
        if message is not None and message.method == "initialize" and exchange.session is None:
            return clients.nameless(exchange.who, message)
        modern = message is not None and is_modern_message(message, exchange.route.version)
        if message is not None and message.method == DISCOVER and clients.discovers:
            return clients.nameless(exchange.who, message)
        if clients.is_modern and (modern or (message is None and exchange.route.version == "modern")):
            return clients.nameless(exchange.who, message)
        if not clients.has_sessions and not modern:
            return clients.nameless(exchange.who, message)
        return None

    async def _strange(self, exchange: Exchange, messages: list[Message], route: Route) -> aio.StreamResponse:
        """A message of nobody: as the recording has it, else as MCP demands."""
        if self.house.recorded.was_refused(messages[0], route):
            return await http_post.post(exchange, self.house.clients.nameless(exchange.who, None), messages, route)
        if messages[0].kind == INVALID and route.session == NONE:
            return await http_post.post(exchange, self.house.clients.nameless(exchange.who, None), messages, route)
        if route.session != NONE:
            return exchange.refuse(404, "Session not found")
        if route.version == "modern" or is_modern_message(messages[0], route.version):
            return exchange.refuse(400, "Bad Request: nothing of this revision was recorded; use initialize")
        return exchange.refuse(400, "Bad Request: Mcp-Session-Id header is required")

    def _messages(self, body: bytes) -> list[Message]:
        flaws = () if is_utf8(body, cut=False) else (INVALID_UTF8,)
        return live_messages(body, self._reader, "body", flaws)


def _unreadable(exchange: Exchange) -> aio.Response:
    """Refuse a body whose coding or framing is not what its headers say (RFC 9110 section 15.5.16 for the coding)."""
    coding = exchange.request.headers.get("content-encoding")
    if coding is None:
        return exchange.refuse(400, "Bad Request: the body cannot be read")
    return exchange.refuse(415, f"Unsupported Media Type: no body of content coding {shown(coding)[:50]} can be read")
