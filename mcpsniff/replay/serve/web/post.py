"""A POST: its messages cue their scenes, and what they lead to goes into its response as it did in the recording.

What the response is, is known from the scene of the first request in it: a body, an event stream, or a refusal. What a
scene says elsewhere (on the stream of a GET, or after its answer) goes to the stream of the client's session.
"""

import asyncio
from functools import partial
from typing import Final

from aiohttp import web as aio

from mcpsniff.protocol.http import COMPLETE
from mcpsniff.protocol.message import BATCH, ERROR, INVALID, REQUEST, Message
from mcpsniff.replay.script import Line, Piece, Scene, Web
from mcpsniff.replay.serve.made_up import INTERNAL_ERROR, METHOD_NOT_FOUND, error
from mcpsniff.replay.serve.performance import Outgoing, Performance, joined
from mcpsniff.replay.serve.web.clients import Client, gives_session
from mcpsniff.replay.serve.web.house import Exchange, House
from mcpsniff.replay.serve.web.log import StreamLog
from mcpsniff.replay.serve.web.route import OURS, STREAMABLE, Route
from mcpsniff.replay.serve.web.streams import is_broken_off, is_for_http, is_of_response

JSON: Final = "application/json"


class Reply:
    """The response to a POST, while it comes into being."""

    def __init__(self, house: House, client: Client, messages: list[Message]) -> None:
        self.house = house
        self.client = client
        self.is_batch = any(message.kind == BATCH for message in messages)
        self.log: StreamLog | None = None
        """Set where the response is an event stream."""
        self.said: list[Outgoing] = []
        """What belongs into a whole body."""
        self.performances: list[Performance] = []
        self.was_ended = False
        """True if the recorded stream has ended since something was last said on it."""
        self.is_broken = False
        """True if the recorded server, or its connection, ended here."""
        self.is_elsewhere = False
        """True if the response says nothing, and what is said comes on the stream of the session."""
        self.changed = asyncio.Event()

    @property
    def is_answered(self) -> bool:
        """True once nothing more is owed."""
        return all(one.is_answered for one in self.performances)

    @property
    def is_over(self) -> bool:
        """True once nothing more comes."""
        return all(one.task.done() for one in self.performances)

    async def say(self, out: Outgoing) -> None:
        """Say something in the response. Raises ConnectionError if the client is gone for good."""
        self.was_ended = False
        if self.log is not None:
            moment = None if out.due is None else partial(self.house.stage.moment, out)
            block = self.house.writer.block(out.line, out.data, is_batch=out.is_batch, moment=moment)
            await self.log.put(block)
        else:
            self.said.append(out)
        self.changed.set()

    def end(self, line: Line) -> None:
        """The recorded response ended here, though perhaps not for good."""
        self.was_ended = True
        if self.log is not None:
            self.log.pause(is_broken=line.close is not None or (line.end is not None and is_broken_off(line.end)))
        self.changed.set()

    def drop(self) -> None:
        """Say nothing of what has not begun yet."""
        for performance in self.performances:
            performance.task.cancel()
            self.client.play.over(performance)

    async def settle(self) -> None:
        """End the stream when all was said, or when the recorded one ended without all answers."""
        for performance in self.performances:
            await performance.wait()
        if self.log is not None and (
            self.is_answered or self.was_ended or any(p.is_stopped for p in self.performances)
        ):
            self.log.finish()
        self.changed.set()


class ReplyPort:
    """Says what a scene has: in the response to the POST, or on the stream of the session."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self._is_answered = False

    async def send(self, out: Outgoing) -> None:
        """Pass it on to where it belongs."""
        if not is_for_http(out):
            return
        if self._belongs(out):
            out = _as_on_http(out)
            self._is_answered = self._is_answered or out.is_answer
            await self._reply.say(out)
        elif self._reply.is_elsewhere or (out.line is not None and out.line.message is not None):
            await self._reply.client.port.send(out)

    async def end(self, line: Line) -> None:
        """The response ended here in the recording, or the whole server."""
        if line.close is not None:
            self._reply.is_broken = True
        self._reply.end(line)

    def _belongs(self, out: Outgoing) -> bool:
        if self._reply.is_elsewhere:
            return False
        if out.line is None or out.scene is None:
            return True
        was_there = is_of_response(out.line, out.scene)
        if was_there is None:
            return not self._is_answered and (self._reply.log is not None or out.is_answer)
        return was_there


def _as_on_http(out: Outgoing) -> Outgoing:
    """An error without an id keeps none, since the response shows what it answers; elsewhere it needs one."""
    line, scene = out.line, out.scene
    if line is None or scene is None or line.message is None or is_of_response(line, scene) is None:
        return out
    return out._replace(data=line.message.raw) if is_nameless(line.message) else out


def is_nameless(message: Message) -> bool:
    """True for an error that names no request."""
    return message.kind == ERROR and message.id in (None, "null")


async def post(exchange: Exchange, client: Client, messages: list[Message], route: Route) -> aio.StreamResponse:
    """Let a client say what is in its POST, and respond as recorded."""
    house = exchange.house
    reply = Reply(house, client, messages)
    performances: list[Performance] = []
    for message in messages:
        if message.kind == BATCH:
            continue
        port = ReplyPort(reply) if message.kind in (REQUEST, INVALID) else client.port
        chooses = house.recorded.chooses(message, route)
        performance = client.play.heard(message, port, where=chooses)
        if performance is not None:
            performances.append(performance)
            if message.kind in (REQUEST, INVALID) or _is_refused(performance):
                performance.port = port if isinstance(port, ReplyPort) else ReplyPort(reply)
                reply.performances.append(performance)
    if not reply.performances:
        return await _accepted(exchange, client, performances)
    lead = reply.performances[0]
    if gives_session(lead, house.clients):
        house.clients.name(client, lead)
    if is_ours(lead):
        reply.drop()
        return await exchange.respond(None, client, body=[not_of_server(lead)], kind=JSON)
    accepted = _web_of(lead.scene)
    if accepted is not None and _says_nothing(accepted):
        reply.is_elsewhere = True
        return await exchange.respond(accepted, client)
    refusal = _not_acceptable(reply, route)
    if refusal is not None:
        reply.drop()
        return exchange.refuse(406, refusal)
    try:
        if not _is_refused(lead) and _wants_stream(reply, route):
            return await _stream(exchange, reply)
        return await _body(exchange, reply)
    except asyncio.CancelledError:
        _client_left(reply, route)
        raise


async def _accepted(exchange: Exchange, client: Client, performances: list[Performance]) -> aio.StreamResponse:
    """Respond to what is not answered: 202, unless the recorded server said something else."""
    scene = performances[0].scene if performances else None
    web = None if scene is None else scene.web
    if web is None or web.http.method != "POST":
        web = exchange.house.unspoken.of_answers(client)
    return await exchange.respond(web, client, status=202)


async def _body(exchange: Exchange, reply: Reply) -> aio.StreamResponse:
    """A whole body, sent when it is there."""
    settling = exchange.house.spawn(reply.settle())
    while not (reply.is_answered or settling.done()):
        reply.changed.clear()
        await reply.changed.wait()
    await asyncio.sleep(0)
    if _is_refused(reply.performances[0]):
        await settling
    scene = reply.performances[0].scene
    web = _web_of(scene)
    if web is not None and web.http.stream is None and is_broken_off(web):
        return await exchange.tear(web, reply.client, b"".join(out.data for out in reply.said if out.line is not None))
    if not reply.said:
        if _is_refused(reply.performances[0]):
            return await exchange.respond(web, reply.client, status=400)
        return await _nothing(exchange, reply, web)
    data = joined(reply.said).data if reply.is_batch else reply.said[0].data
    if web is not None and web.http.stream is not None and not _is_refused(reply.performances[0]):
        web = None  # a stream was recorded, and a body is all that the client accepts
    status = _status(reply, web, exchange.route)
    out = reply.said[0]
    pieces: tuple[Piece, ...] = ()
    if web is not None and exchange.house.bytes is not None and out.line is not None and len(reply.said) == 1:
        pieces = exchange.house.bytes.body(out.line, data, is_batch=out.is_batch)
    body = [piece.data for piece in pieces] or [data]
    dues = [exchange.house.stage.moment(out, piece.t) for piece in pieces]
    return await exchange.respond(web, reply.client, status=status, body=body, dues=dues, kind=JSON)


async def _nothing(exchange: Exchange, reply: Reply, web: Web | None) -> aio.StreamResponse:
    """No answer came: as in the recording the connection ends, or the client waits for one."""
    http = None if web is None else web.http
    if any(one.is_stopped for one in reply.performances):
        return await exchange.respond(None, reply.client, status=202)
    if http is not None and http.status is not None and http.stream is None and web is not None and web.lines == []:
        return await exchange.respond(web, reply.client, status=202)
    if reply.is_broken or (http is not None and http.ended_by in ("server", "mcpsniff")):
        return await exchange.break_off()
    await asyncio.Event().wait()
    raise AssertionError


async def _stream(exchange: Exchange, reply: Reply) -> aio.StreamResponse:
    """An event stream, which may end and be resumed before all was said."""
    reply.log = StreamLog(exchange.house.writer.ids, reply.client)
    exchange.house.spawn(reply.settle())
    scene = next((one.scene for one in reply.performances if one.scene is not None), None)
    web = _web_of(scene)
    if web is not None and web.http.stream is None:
        web = None
    try:
        response = await exchange.begin_stream(web, reply.client)
        await exchange.follow(response, reply.log)
    finally:
        reply.log.abandon()
    return response


def _client_left(reply: Reply, route: Route) -> None:
    """The client has closed the connection: in 2026-07-28 that cancels what it asked for, before that it does not."""
    if route.version == "modern":
        for performance in reply.performances:
            web = None if performance.scene is None else performance.scene.web
            if web is not None and web.http.ended_by == "client":
                performance.task.cancel()  # as in the recording
            else:
                performance.cancelled()


def _not_acceptable(reply: Reply, route: Route) -> str | None:
    """Why the client takes neither of what the response could be; None if it takes it."""
    if _is_refused(reply.performances[0]):
        return None
    if not (route.takes_json or route.takes_events):
        return "Not Acceptable: the client must accept application/json and text/event-stream"
    if not route.takes_events and _needs_stream(reply):
        return "Not Acceptable: the client must accept text/event-stream"
    return None


def _wants_stream(reply: Reply, route: Route) -> bool:
    """Whether the response is an event stream: as recorded, as far as the client takes it."""
    if not route.takes_json or not route.takes_events:
        return route.takes_events
    webs = [_web_of(one.scene) for one in reply.performances]
    http = next((web.http for web in webs if web is not None), None)
    if http is not None:
        return http.stream is not None
    return _needs_stream(reply)


def _needs_stream(reply: Reply) -> bool:
    """True if there is more to say in the response than one answer for each request."""
    return any(_has_more(one.scene) for one in reply.performances if one.scene is not None)


def _has_more(scene: Scene) -> bool:
    answer = scene.answer
    for line in scene.lines:
        if answer is not None and line.n == answer.n:
            return False
        was_there = is_of_response(line, scene)
        message = line.message
        if message is not None and message.direction == "s2c" and was_there is not False:
            return True
    return scene.is_request and answer is None and not scene.is_refused


def _web_of(scene: Scene | None) -> Web | None:
    """The recorded exchange that a response is made after; none where the recording was of another transport."""
    if scene is None or scene.web is None:
        return None
    if scene.is_refused or scene.talk.kind in STREAMABLE:
        return scene.web
    return None


def is_ours(performance: Performance) -> bool:
    """True if mcpsniff itself gave the response that was recorded."""
    scene = performance.scene
    return scene is not None and scene.web is not None and scene.web.http.by == OURS


def not_of_server(performance: Performance) -> bytes:
    """The answer to what mcpsniff itself had refused, or could not get an answer to, when it was recorded."""
    scene, live = performance.scene, performance.live
    assert scene is not None
    status = None if scene.web is None else scene.web.http.status
    text = f"no server has answered the recorded {scene.method}: mcpsniff itself gave status {status}"
    return error(None if live is None else live.id, INTERNAL_ERROR, text)


def _says_nothing(web: Web) -> bool:
    """True for the response to a request that only takes it: the answer came elsewhere, or never."""
    http, status = web.http, web.http.status
    is_taken = status is not None and 200 <= status < 300 and web.state == COMPLETE
    return is_taken and http.stream is None and not web.lines and not web.answered.size


def _is_refused(performance: Performance) -> bool:
    return performance.scene is not None and performance.scene.is_refused


def _status(reply: Reply, web: Web | None, route: Route) -> int:
    """The status where none was recorded (MCP transports, status codes)."""
    out = reply.said[0]
    if web is None and out.line is None and (out.scene is None or not out.scene.is_request):
        if reply.performances[0].live is not None and reply.performances[0].live.kind == INVALID:
            return 400
        if route.version == "modern" and b'"code":%d' % METHOD_NOT_FOUND in out.data[:200]:
            return 404
    return 200
