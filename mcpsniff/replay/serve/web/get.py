"""What carries no message: the stream of a session, the end of one, a resumed stream, discovery, and odd requests."""

from typing import Final

from aiohttp import web as aio

from mcpsniff.protocol.http import LAST_EVENT_ID
from mcpsniff.replay.script import Web
from mcpsniff.replay.serve.web.clients import Client
from mcpsniff.replay.serve.web.heads import for_pages
from mcpsniff.replay.serve.web.house import Exchange
from mcpsniff.replay.serve.web.route import MCP, NONE, STREAMABLE
from mcpsniff.replay.serve.web.unspoken import is_own_stream

ALLOWED: Final = "GET, POST, DELETE"
MOST_PATHS: Final = 4
"""Of the paths at which it is served so many are named."""
_WELL_KNOWN: Final = "/.well-known/"
"""Where clients look without being told to (RFC 8615)."""


async def other(exchange: Exchange, client: Client | None) -> aio.StreamResponse:
    """Respond to a request that carries no message; ``client`` is the one that its session names."""
    house, request = exchange.house, exchange.request
    place = house.unspoken.place(request.path)
    if place == MCP and request.method == "GET":
        return await _get(exchange, client)
    recorded = house.unspoken.find(client, request.method, request.path_qs, exchange.route)
    if request.method == "DELETE" and place == MCP:
        return await _delete(exchange, client, recorded)
    if recorded is not None:
        return await exchange.respond(recorded, client)
    return nothing_recorded(exchange, is_endpoint=place == MCP)


def nothing_recorded(exchange: Exchange, *, is_endpoint: bool) -> aio.Response:
    """Respond to what the capture has nothing like."""
    request = exchange.request
    if request.method == "OPTIONS" and request.headers.get("origin") is not None and is_endpoint:
        return _preflight(request)
    if is_endpoint:
        return exchange.refuse(405, f"Method Not Allowed: {request.method}", Allow=ALLOWED)
    if not request.path.startswith(_WELL_KNOWN):
        exchange.house.stage.tally.elsewhere += 1
    urls = " and ".join(f"{exchange.origin}{path}" for path in exchange.house.paths[:MOST_PATHS])
    return exchange.refuse(404, f"Not Found: there is nothing like this in the capture; it is served at {urls}")


def _preflight(request: aio.Request) -> aio.Response:
    """Let a web page of this machine ask (Fetch, CORS-preflight request)."""
    headers = dict(for_pages(request.headers.get("origin"), "OPTIONS"))
    asked = request.headers.get("access-control-request-headers")
    return aio.Response(status=204, headers=headers | ({"Access-Control-Allow-Headers": asked} if asked else {}))


async def _get(exchange: Exchange, client: Client | None) -> aio.StreamResponse:
    house, request = exchange.house, exchange.request
    resumed = request.headers.get(LAST_EVENT_ID)
    place = None if resumed is None else house.writer.ids.place(resumed)
    if client is not None and place is not None and exchange.route.takes_events:
        log, position = place
        if log.owner is client:
            response = await exchange.begin_stream(_resumed_web(exchange, client), client)
            await exchange.follow(response, log, position + 1)
            return response
    recorded = house.unspoken.find(client, "GET", request.path_qs, exchange.route)
    if recorded is not None and not is_own_stream(recorded.http) and not recorded.http.resumed:
        return await exchange.respond(recorded, client)
    if client is None and exchange.route.session != NONE:
        return _no_session(exchange)
    if client is None and house.clients.has_sessions:
        return exchange.refuse(400, "Bad Request: Mcp-Session-Id header is required")
    if client is None or not _offers_stream(exchange, client):
        return exchange.refuse(405, "Method Not Allowed: no stream was recorded", Allow=ALLOWED)
    if not exchange.route.takes_events:
        return exchange.refuse(406, "Not Acceptable: the client must accept text/event-stream")
    return await stream(exchange, client)


async def stream(exchange: Exchange, client: Client, endpoint: bytes = b"") -> aio.StreamResponse:
    """Give a client the stream of its session: the next recorded one, or the last once more."""
    recorded = exchange.house.unspoken.streams(client)
    web = exchange.house.unspoken.next_stream(client)
    client.streams_given += 1
    response = await exchange.begin_stream(web, client)
    ends = web is not None and web is not recorded[-1] and web.http.is_over and web.http.ended_by != "client"
    client.stream.play(web, ends=ends, endpoint=endpoint)
    interludes = exchange.house.spawn(client.stream.say_interludes())
    try:
        await exchange.follow(response, client.stream.log)
    finally:
        interludes.cancel()
    return response


def _offers_stream(exchange: Exchange, client: Client) -> bool:
    """True if one was recorded, or if the recording was of a transport on which the server may always speak."""
    talk = client.talk
    if exchange.house.unspoken.streams(client):
        return True
    return talk is None or (talk.kind not in STREAMABLE and not talk.is_modern)


def _resumed_web(exchange: Exchange, client: Client) -> Web | None:
    """A recorded response with which a stream went on, for its head."""
    webs = exchange.house.stage.script.webs
    return next((web for web in webs if web.http.resumed and web.talk is client.talk), None)


async def _delete(exchange: Exchange, client: Client | None, recorded: Web | None) -> aio.StreamResponse:
    if recorded is None and (client is None or client.session is None):
        if exchange.route.session != NONE and exchange.house.clients.has_sessions:
            return _no_session(exchange)
        return nothing_recorded(exchange, is_endpoint=True)
    response = await exchange.respond(recorded, client)
    if client is not None and response.status < 400:
        exchange.house.clients.end(client)
    return response


def _no_session(exchange: Exchange) -> aio.Response:
    return exchange.refuse(404, "Session not found")
