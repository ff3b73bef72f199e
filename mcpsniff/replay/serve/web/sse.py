"""HTTP+SSE (2024-11-05): one stream for everything that the server says, and an endpoint to which the client posts.

The stream is the session: it names the endpoint, which is fresh for each client and otherwise spelt as recorded.
"""

import re
import secrets
from typing import Final
from urllib.parse import urlsplit

from aiohttp import web as aio

from mcpsniff.protocol.message import BATCH, Message
from mcpsniff.protocol.talk import LEGACY
from mcpsniff.replay.script import Scene, Web
from mcpsniff.replay.serve.performance import Outgoing
from mcpsniff.replay.serve.web.blocks import block
from mcpsniff.replay.serve.web.clients import Client
from mcpsniff.replay.serve.web.get import nothing_recorded, stream
from mcpsniff.replay.serve.web.house import Exchange, House
from mcpsniff.replay.serve.web.log import Block
from mcpsniff.replay.serve.web.post import is_ours, not_of_server
from mcpsniff.replay.serve.web.route import ENDPOINT, STREAM, Route, query_values
from mcpsniff.replay.serve.web.streams import ENDPOINT_EVENT
from mcpsniff.wire.frames import ServerSentEvent

ENDPOINT_PATH: Final = "/messages"
_VALUE: Final = re.compile(r"((?:^|[?&])[^=&]*(?:session|sid|id)[^=&]*=)[^&]*", re.IGNORECASE)


class Legacy:
    """The sessions of HTTP+SSE."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._sessions: dict[str, Client] = {}

    def client_of(self, request: aio.Request) -> Client | None:
        """The client whose endpoint a request is for."""
        values = [*query_values(request.query_string), *request.path.split("/")]
        return next((self._sessions[value] for value in values if value in self._sessions), None)

    async def other(self, exchange: Exchange) -> aio.StreamResponse:
        """Respond to what carries no message: a client that wants its stream, or anything else."""
        house, request = self._house, exchange.request
        place = house.unspoken.place(request.path)
        recorded = house.unspoken.find(None, request.method, request.path_qs, exchange.route)
        if place == STREAM and request.method == "GET":
            refused = recorded is not None and recorded.http.stream is None and not house.unspoken.streams(None)
            return await exchange.respond(recorded) if refused else await self._stream(exchange)
        if recorded is not None and recorded.http.stream is None:
            return await exchange.respond(recorded)
        return nothing_recorded(exchange, is_endpoint=place in (STREAM, ENDPOINT))

    async def post(self, exchange: Exchange, messages: list[Message], route: Route) -> aio.StreamResponse:
        """Let a client say something at its endpoint; what follows from it comes on its stream."""
        client = self.client_of(exchange.request)
        if client is None:
            recorded = self._house.unspoken.find(None, "POST", exchange.request.path_qs, route)
            if recorded is not None:
                return await exchange.respond(recorded)
            if self._house.unspoken.place(exchange.request.path) == STREAM:
                return nothing_recorded(exchange, is_endpoint=True)
            return exchange.refuse(404, "Session not found: this endpoint was not named on a stream that is open")
        scenes: list[Scene] = []
        is_left_out = False
        for message in messages:
            if message.kind == BATCH:
                continue
            chooses = self._house.recorded.chooses(message, route)
            performance = client.play.heard(message, client.port, where=chooses)
            if performance is not None and is_ours(performance):
                performance.task.cancel()
                client.play.over(performance)  # it has not begun
                is_left_out = True
                await client.port.send(Outgoing(not_of_server(performance), None, None, is_answer=True))
            elif performance is not None and performance.scene is not None:
                scenes.append(performance.scene)
        web = next((scene.web for scene in scenes if scene.web is not None and scene.talk.kind == LEGACY), None)
        web = web or next((scene.web for scene in scenes if scene.is_refused and scene.answer is None), None)
        web = web or (None if scenes or is_left_out else self._house.unspoken.of_answers(client))
        if web is not None and web.http.status is None:
            web = None
        return await exchange.respond(web, status=202, body=(b"Accepted",) if web is None else None, kind="text/plain")

    async def _stream(self, exchange: Exchange) -> aio.StreamResponse:
        name = secrets.token_hex(16)
        recorded = self._house.unspoken.streams(None)
        web = recorded[min(self._house.clients.served, len(recorded) - 1)] if recorded else None
        client = self._house.clients.begin()
        client.streams_given = 0 if web is None else recorded.index(web)
        self._sessions[name] = client
        endpoint = endpoint_of(web, name, exchange.origin).encode()
        if web is None or web.http.endpoint is None:
            await client.stream.log.put(Block((block(ServerSentEvent(ENDPOINT_EVENT), endpoint, None),)))
        try:
            return await stream(exchange, client, endpoint)
        finally:
            del self._sessions[name]
            self._house.clients.end(client)


def endpoint_of(web: Web | None, name: str, origin: str) -> str:
    """The endpoint of a session: the recorded one with this name in the place of its own."""
    recorded = None if web is None else web.http.endpoint
    if recorded is None:
        return f"{ENDPOINT_PATH}?sessionId={name}"
    parts = urlsplit(recorded)
    query, found = _VALUE.subn(lambda match: f"{match[1]}{name}", parts.query, count=1)
    if not found:
        query = f"{query}&sessionId={name}" if query else f"sessionId={name}"
    base = origin if parts.netloc else ""
    return f"{base}{parts.path}?{query}"
