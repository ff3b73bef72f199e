"""Event streams of a replay: what a scene says becomes a block in the log of the stream that it belongs to."""

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from mcpsniff.protocol.http import ABORTED, HttpExchange
from mcpsniff.protocol.message import BATCH, INVALID, Message
from mcpsniff.replay.script import PIPE, Line, Piece, Scene, Talk, Web, is_answer, is_answering
from mcpsniff.replay.serve.performance import Outgoing
from mcpsniff.replay.serve.stage import Stage
from mcpsniff.replay.serve.web.blocks import Bytes, block, block_of
from mcpsniff.replay.serve.web.log import Block, EventIds, StreamLog
from mcpsniff.replay.serve.web.route import STREAMABLE
from mcpsniff.replay.spelling import ID, respelt
from mcpsniff.replay.tempo import Tempo

ENDPOINT_EVENT: Final = "endpoint"

type Moment = Callable[[int], float | None]
"""When, by the loop's clock, what was read at a recorded moment is due; None: now."""


class EventWriter:
    """Makes blocks of what is said."""

    def __init__(self, ids: EventIds, recorded: Bytes | None) -> None:
        """``recorded`` are the bytes of the capture, if they are to be sent as they were."""
        self.ids = ids
        self._recorded = recorded

    def block(self, line: Line | None, data: bytes, *, is_batch: bool = False, moment: Moment | None = None) -> Block:
        """A message, or a block without one whose data are those that were recorded, unless ``data`` has others.

        ``is_batch`` says that it is the whole batch of which the line is an element; ``moment`` tells when a piece is
        due, if recorded moments are kept.
        """
        frame = None if line is None else line.frame
        if line is None or frame is None or frame.sse is None:
            return Block((block(None, data, None),))
        live_id = None if frame.sse.id is None else self.ids.fresh(frame.sse.id)
        if line.message is None:
            data = data or frame.payload
        pieces: tuple[Piece, ...] = ()
        is_changed = line.message is None and data != frame.payload
        if self._recorded is not None and not is_changed:
            pieces = self._recorded.event(line, data, live_id, is_batch=is_batch)
        if not pieces:
            return Block((block_of(frame, data, live_id),), live_id)
        dues = () if moment is None else tuple(moment(piece.t) for piece in pieces)
        return Block(tuple(piece.data for piece in pieces), live_id, dues)


class Interludes:
    """What a recorded stream that belongs to no request says between its messages: comments, ids, times to wait."""

    def __init__(self, web: Web | None) -> None:
        self._lines = [] if web is None else web.lines
        self._start = 0 if web is None else web.http.t_response or web.http.t_request
        self._at = 0
        self._places = {line.n: at for at, line in enumerate(self._lines) if line.message is not None}

    @property
    def is_over(self) -> bool:
        """True once everything on it was said, and there was something."""
        return bool(self._lines) and self._at == len(self._lines)

    def upcoming(self) -> Line | None:
        """The next block, if no message comes before it."""
        line = self._lines[self._at] if self._at < len(self._lines) else None
        return line if line is not None and line.message is None else None

    def due_us(self, line: Line) -> int:
        """When it was said, in microseconds since the stream began."""
        return max(0, line.t - self._start)

    def passed(self) -> None:
        """The upcoming block was said."""
        self._at += 1

    def before(self, line: Line) -> list[Line]:
        """The blocks that were said before this message and not yet now; those of other streams change nothing."""
        place = self._places.get(line.n, -1)
        if place < self._at:
            return []
        found = [one for one in self._lines[self._at : place] if one.message is None]
        self._at = place + 1
        return found


class Stream:
    """The stream of a client's session: that of the GET in Streamable HTTP, the only one in HTTP+SSE."""

    def __init__(self, writer: EventWriter, tempo: Tempo, owner: object, expected: Callable[[], Web | None]) -> None:
        """``expected`` gives the recorded stream that it will be when the client asks for it."""
        self.log = StreamLog(writer.ids, owner, waits=True)
        self._expected = expected
        self._web: Web | None = None
        self._is_given = True
        self._writer = writer
        self._tempo = tempo
        self._interludes = Interludes(None)
        self._endpoint = b""
        self._ends = False
        self._lock = asyncio.Lock()

    def play(self, web: Web | None, *, ends: bool = False, endpoint: bytes = b"") -> None:
        """What follows was on this recorded stream; ``endpoint`` is what its endpoint event is to say.

        ``ends`` says that the response ends when all that the recorded stream had was said.
        """
        if web is None or web is not self._web or self._is_given:
            self._web, self._interludes = web, Interludes(web)
        self._is_given = True
        self._ends = ends
        self._endpoint = endpoint

    def _expect(self) -> None:
        """Something is said before the client has asked for the stream: it is of the one that will be."""
        web = self._expected()
        if web is not None and web is not self._web:
            self._web, self._interludes, self._is_given = web, Interludes(web), False

    async def say(
        self, line: Line | None, data: bytes, *, is_batch: bool = False, moment: Moment | None = None
    ) -> None:
        """Say something, after what stood before it on its recorded stream; see `EventWriter.block`."""
        async with self._lock:
            if not self.log.is_read:
                self._expect()
            for one in () if line is None else self._interludes.before(line):
                await self._put(one)
            await self.log.put(self._writer.block(line, data, is_batch=is_batch, moment=moment))
            if not self._tempo.factor:
                await self._say_upcoming()
            else:
                self._end_if_over()

    async def say_interludes(self) -> None:
        """Say what comes before the next message: at once, or when it is due if recorded gaps are kept."""
        started = asyncio.get_running_loop().time()
        while self._tempo.factor:
            line = self._interludes.upcoming()
            if line is None:
                await asyncio.sleep(_LOOKS_SECONDS)
                continue
            due = started + self._tempo.seconds(self._interludes.due_us(line))
            await asyncio.sleep(max(0.0, due - asyncio.get_running_loop().time()))
            async with self._lock:
                if self._interludes.upcoming() is line:
                    self._interludes.passed()
                    await self._put(line)
                    self._end_if_over()
        async with self._lock:
            await self._say_upcoming()

    async def _say_upcoming(self) -> None:
        while (line := self._interludes.upcoming()) is not None:
            self._interludes.passed()
            await self._put(line)
        self._end_if_over()

    def _end_if_over(self) -> None:
        if self._ends and self._interludes.is_over:
            self._ends = False
            self.log.pause(is_broken=self._web is not None and is_broken_off(self._web))

    async def _put(self, line: Line) -> None:
        is_endpoint = line.frame is not None and line.frame.sse is not None and line.frame.sse.event == ENDPOINT_EVENT
        await self.log.put(self._writer.block(line, self._endpoint if is_endpoint else b""))


_LOOKS_SECONDS: Final = 0.2
"""How often it is looked whether a message has made room for what follows it."""


class StreamPort:
    """Says what belongs to no response of its own on the stream of the session."""

    def __init__(self, stream: Stream, stage: Stage) -> None:
        self._stream = stream
        self._stage = stage

    async def send(self, out: Outgoing) -> None:
        """Pass it on, unless it is nothing that HTTP carries."""
        if is_for_http(out) and not _is_priming(out):
            moment = None if out.due is None else partial(self._stage.moment, out)
            await self._stream.say(out.line, _under_its_id(out), is_batch=out.is_batch, moment=moment)

    async def end(self, line: Line) -> None:
        """Nothing: the session's stream ends by its own rules."""


def _under_its_id(out: Outgoing) -> bytes:
    """What HTTP refused without naming the request is an answer on a stream only if it names it."""
    message, live = None if out.line is None else out.line.message, out.live
    if message is None or live is None or live.id is None or out.scene is None or not out.scene.is_refused:
        return out.data
    return respelt(out.data, {ID: live.id}) if is_answer(message) and message.key is None else out.data


def _is_priming(out: Outgoing) -> bool:
    """True for an event without data that made a stream of Streamable HTTP one that can be resumed.

    The stream of a session is another one; and clients of HTTP+SSE take each event for a message.
    """
    line, scene = out.line, out.scene
    if line is None or line.message is not None or line.frame is None or scene is None:
        return False
    sse = line.frame.sse
    return scene.talk.kind in STREAMABLE and sse is not None and sse.dispatched and not line.frame.payload


def is_broken_off(web: Web) -> bool:
    """True if the recorded server's side broke a response off before it was whole."""
    return web.state == ABORTED and web.http.ended_by != "client"


def is_for_http(out: Outgoing) -> bool:
    """False for what a pipe carries and HTTP does not: stderr, and noise between the messages."""
    line = out.line
    if line is None:
        return True
    return line.text is None and not is_noise(line.message, out.scene)


def count_noise(talks: Iterable[Talk]) -> int:
    """How many lines a pipe carried that are no messages, and are left out over HTTP."""
    lines = ((line, scene) for talk in talks for scene in talk.scenes for line in scene.lines)
    return sum(not line.is_of_client and is_noise(line.message, scene) for line, scene in lines)


def is_noise(message: Message | None, scene: Scene | None) -> bool:
    """True for what a server wrote to its pipe that is no message: alone, and no answer to anything."""
    if message is None or scene is None or scene.talk.kind != PIPE or message.batch is not None:
        return False
    return message.kind in (INVALID, BATCH) and not is_answering(message)


def is_of_response(line: Line, scene: Scene) -> bool | None:
    """Whether a line was on the response to the POST of its scene; None where the recording was of another kind."""
    if scene.web is None or scene.talk.kind not in STREAMABLE:
        return None
    http: HttpExchange | None = None if line.message is None else line.message.http
    if http is None:
        return True  # a block without a message is in the scene since it was on that response
    return http.origin == scene.web.number or http.method == "POST"
