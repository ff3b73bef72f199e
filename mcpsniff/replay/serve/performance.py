"""Play one scene for one client: say what the server said, in its order and spacing, and wait for the client's part.

Gaps are counted from the last thing that the client said (the cue, or what was awaited), and every moment is computed
from there, so that errors do not add up.
"""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from mcpsniff.protocol.message import REQUEST, Message
from mcpsniff.replay import spelling
from mcpsniff.replay.compare import compare_messages
from mcpsniff.replay.script import ENDLESS, Line, Scene, is_answer, is_answering, is_cancel
from mcpsniff.replay.serve import made_up
from mcpsniff.replay.serve.tally import KEPT, Answer

if TYPE_CHECKING:
    from mcpsniff.replay.serve.stage import Session

_NOTHING: Final = b""


class Outgoing(NamedTuple):
    """One thing that the server says now."""

    data: bytes
    """The message's JSON text with live ids; of a line of stderr its text; empty for a frame without a message."""
    line: Line | None
    """The recorded line; None for what is made up, such as the error for a request that was never recorded."""
    scene: Scene | None
    """The scene that it belongs to; None if there is none."""
    is_answer: bool
    """True if it answers the request that cued the scene: nothing more is owed for that."""
    live: Message | None = None
    """The client's message that cued the scene now."""
    due: float | None = None
    """Where pieces keep their recorded times (`Stage.in_pieces`): when its last byte is due, by the loop's clock; those
    before it are due as much earlier as they were, see `Stage.moment`. None: all of it now."""
    is_batch: bool = False
    """True if ``data`` is a whole batch, as recorded (``line.batch``): a JSON array, in which ``line`` is one."""


def joined(answers: list[Outgoing]) -> Outgoing:
    """The answers to a batch as one; a batch of answers that was recorded is one already."""
    if len(answers) == 1 and answers[0].is_batch:
        return answers[0]
    texts = [out.data.strip()[1:-1] if out.is_batch else out.data for out in answers]
    return Outgoing(b"[" + b",".join(texts) + b"]", None, None, is_answer=True)


class Port(Protocol):
    """Where what a server says in a scene goes."""

    async def send(self, out: Outgoing) -> None:
        """Pass it on. Raises ConnectionError when the client has gone."""

    async def end(self, line: Line) -> None:
        """The stream (``line.end``) or the server's process (``line.close``) ended here."""


class Asked:
    """A request of the server that a client is to answer."""

    def __init__(self, recorded: Message, token: str | None) -> None:
        self.recorded = recorded
        self.token = token
        """The live id as a JSON token."""
        self.answer: asyncio.Future[tuple[Message, float]] = asyncio.get_running_loop().create_future()
        """The client's answer, and when it came."""


class Performance:
    """One scene for one client."""

    def __init__(
        self, session: "Session", scene: Scene | None, live: Message | None, port: Port, made: bytes | None
    ) -> None:
        """``live`` is the message that cues it; ``made`` is an answer that is made up where there is no scene."""
        self.session = session
        self.scene = scene
        self.live = live
        self.port = port
        self.is_answered = False
        """True once the request that cued it has had its answer."""
        self.is_stopped = False
        """True if the client has cancelled what it had not cancelled in the recording."""
        self._made = made
        self._asked: dict[int, Asked] = {}
        """By the number of the recorded request."""
        self._cancel: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._cancel_at = None if scene is None else _cancel_in(scene)
        self._expects = True
        self._dropped: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done once nothing is expected from the client any more."""
        self._base = asyncio.get_running_loop().time()
        self._due = 0.0

    def begin(self) -> None:
        """Start to play; what is due at once is said when the event loop comes to it."""
        self.task = asyncio.get_running_loop().create_task(self._run())
        self.task.add_done_callback(self._over)

    @property
    def is_over(self) -> bool:
        """True once it has come to its end, however that was."""
        return self.task.done()

    @property
    def _is_endless(self) -> bool:
        """True for a subscription, which a client may also end by leaving."""
        return self.scene is not None and self.scene.method in ENDLESS

    async def wait(self) -> None:
        """Return when it has come to its end, however that was."""
        await asyncio.wait([self.task])

    def cancelled(self) -> None:
        """The client has cancelled the request that cued it."""
        if self._cancel.done():
            return
        self._cancel.set_result(asyncio.get_running_loop().time())
        if self._cancel_at is None and not self.is_answered:
            self.is_stopped = True
            self.session.stage.tally.stopped += 1
            self.task.cancel()

    def expect_nothing(self) -> None:
        """The client will say nothing more: whatever is awaited from it does not come."""
        self._expects = False
        if not self._dropped.done():
            self._dropped.set_result(None)
        for asked in self._asked.values():
            asked.answer.cancel()
        self._cancel.cancel()

    # -- playing ---------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        with suppress(ConnectionError):
            await self._play()

    def _over(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.session.stage.fail(error)
        self.session.over(self)

    async def _play(self) -> None:
        if self.scene is None:
            await self.say(self._made or _NOTHING, None, is_answer=True)
            return
        lines = self.scene.lines
        last = max((at for at, line in enumerate(lines) if not line.is_of_client), default=-1)
        for at, line in enumerate(lines):
            if self._is_skipped(at):
                continue
            if line.is_of_client:
                await self._await(line, is_last=at > last)
                continue
            await self._approach(line)
            if line.after is not None and not self._expects and not self.session.cued(line.after).done():
                break  # what led to it will not come any more
            if not self._is_skipped(at):
                await self._deliver(line)
        await self._settle()

    def _is_skipped(self, at: int) -> bool:
        """True for what was said before the recorded cancel, once the client has cancelled."""
        has_cancelled = self._cancel.done() and not self._cancel.cancelled()
        return has_cancelled and self._cancel_at is not None and at < self._cancel_at

    async def _approach(self, line: Line) -> None:
        """Wait until the line is due."""
        if line.after is not None:
            await self._await_cue(line.after)
        seconds = self.session.stage.tempo.seconds(line.gap_us)
        if seconds:
            self._due += seconds
        if self._due:
            # A wait may end early by the clock's resolution, never late by more than the loop is busy.
            due = self._base + self._due - self._lead(line)
            while (left := due - self._now()) > 0 and await self._wait(left):
                pass

    def _lead(self, line: Line) -> float:
        """How long before its end, in seconds, the first piece of a line is due."""
        return min(self.session.stage.tempo.seconds(line.lasted_us), self._due) if self._has_pieces(line) else 0.0

    def _has_pieces(self, line: Line) -> bool:
        """True if the line goes out in the pieces in which it was read."""
        return line.frame is not None and line.frame.framing in self.session.stage.in_pieces

    async def _deliver(self, line: Line) -> None:
        if line.end is not None or line.close is not None:
            await self.port.end(line)
        elif line.message is not None:
            await self._speak(line, line.message)
        else:
            await self.say((line.text or "").encode(errors="surrogateescape"), line)

    async def _speak(self, line: Line, message: Message) -> None:
        """Send a recorded message with the live ids in it."""
        assert self.scene is not None
        data = self._text(line, message)
        is_linked = message.link is not None and message.link is self.scene.exchange
        answers = is_linked and is_answering(message) and message.key is not None
        if line.batch is not None and not self._is_asked_alone(self.scene):
            await self.session.batches.say(self, line, data, is_answer=answers)
        elif data is not None:
            await self.say(data, line, is_answer=answers)

    def _is_asked_alone(self, scene: Scene) -> bool:
        """True if the request was in a batch when it was recorded, and is not now: its answer is no batch either."""
        return scene.cue is not None and scene.cue.batch is not None and (self.live is None or self.live.batch is None)

    def _text(self, line: Line, message: Message) -> bytes | None:
        """The text of a recorded message with the live ids in it; None if it must not be sent."""
        assert self.scene is not None
        stage = self.session.stage
        if self.scene.is_refused and message.key is None and is_answer(message) and not stage.over_http:
            return None  # the body of a refusal: see _settle
        if message.kind == REQUEST:
            asked = self._asked[message.n] = self.session.ask(message, self.scene)
            if not self._expects:
                asked.answer.cancel()
            tokens = {} if asked.token is None else {spelling.ID: asked.token}
            if asked.token != message.id and asked.token is not None:
                offered = stage.template(line).tokens.get(spelling.OFFERED_TOKEN)
                tokens |= {spelling.OFFERED_TOKEN: asked.token} if offered == message.id else {}
        else:
            ids = {number: asked.token for number, asked in self._asked.items() if asked.token is not None}
            found = self.session.ids.tokens(message, self.scene, self.live, ids)
            if found is None:
                return None
            tokens = dict(found)
        return stage.template(line).fill(tokens) if tokens else message.raw

    async def say(self, data: bytes, line: Line | None, *, is_answer: bool = False, is_batch: bool = False) -> None:
        """Pass something on to the client. Raises ConnectionError when it has gone."""
        self.is_answered = self.is_answered or is_answer
        due = self._base + self._due if self._due and line is not None and self._has_pieces(line) else None
        await self.port.send(Outgoing(data, line, self.scene, is_answer, self.live, due, is_batch))

    async def _settle(self) -> None:
        """Answer what the capture has no answer to, and the replay cannot leave open."""
        scene, live = self.scene, self.live
        if scene is None or live is None or not scene.is_request or self.is_answered:
            return
        if scene.is_cut:
            await self.say(made_up.cut_answer(scene, live.id), None, is_answer=True)
        elif scene.is_refused and not self.session.stage.over_http:
            await self.say(made_up.refused_answer(scene, live.id), None, is_answer=True)

    # -- waiting for the client ------------------------------------------------------------------------------------

    async def _await(self, line: Line, *, is_last: bool) -> None:
        """Wait for what the client said here; go on when it has not come in time.

        ``is_last`` says that the server said nothing after it.
        """
        message = line.message
        assert message is not None
        if is_cancel(message):
            if not is_last or not self.is_answered:
                await self._await_cancel()
        elif is_answering(message) and message.link is not None:
            asked = self._asked.get(message.link.request)
            if asked is not None:
                await self._await_answer(asked, message)

    async def _await_answer(self, asked: Asked, recorded: Message) -> None:
        stage = self.session.stage
        came = await self._within(asked.answer)
        if came is None:
            stage.tally.answer(Answer(asked.recorded, recorded, None))
            return
        live, when = came
        self._sync(when)
        differences = compare_messages(recorded, live, stage.rules)
        stage.tally.answer(Answer(asked.recorded, recorded, live, tuple(differences)))

    async def _await_cancel(self) -> None:
        came = await self._within(self._cancel)
        if came is not None:
            self._sync(came)
        elif self.scene is not None and self.scene.cue is not None and (self._expects or not self._is_endless):
            uncancelled = self.session.stage.tally.uncancelled
            if len(uncancelled) < KEPT:
                uncancelled.append(self.scene.cue)

    async def _await_cue(self, scene: Scene) -> None:
        """Wait until the client has cued the scene after which this was said."""
        cued = self.session.cued(scene)
        if not cued.done() and self._expects:
            await self._wait(self.session.stage.timeout, cued, self._dropped)
        if cued.done() and cued.result() > self._base + self._due:
            self._sync(cued.result())

    async def _within[T](self, future: "asyncio.Future[T]") -> T | None:
        """What the future gives, if it does so in time."""
        await self._wait(self.session.stage.timeout, future)
        return future.result() if future.done() and not future.cancelled() else None

    async def _wait(self, seconds: float, *futures: "asyncio.Future[Any]") -> bool:
        """Wait for one of these, or for the client to cancel, but not longer than that; False if it has cancelled."""
        if self._cancel.done():
            if futures:
                await asyncio.wait(futures, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            else:
                await asyncio.sleep(seconds)
            return True
        await asyncio.wait({*futures, self._cancel}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        return not self._cancel.done() or self._cancel.cancelled()

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _sync(self, when: float) -> None:
        """Count the gaps from this moment on."""
        self._base, self._due = when, 0.0


def _cancel_in(scene: Scene) -> int | None:
    """Where in the scene the client cancelled its request; None if it did not."""
    for at, line in enumerate(scene.lines):
        if line.is_of_client and line.message is not None and is_cancel(line.message):
            return at
    return None
