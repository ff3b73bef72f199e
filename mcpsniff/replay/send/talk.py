"""Send one recorded conversation to a live server, in causal order."""

import asyncio
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from mcpsniff.protocol.exchange import CANCELLED, token_key
from mcpsniff.protocol.message import NOTIFICATION, REQUEST, Message
from mcpsniff.protocol.talk import BARE, LEGACY, MODERN
from mcpsniff.replay.script import PIPE, Scene, Talk, is_cancel
from mcpsniff.replay.send.asked import Asked, own_reply
from mcpsniff.replay.send.calls import Call
from mcpsniff.replay.send.clean import CALL
from mcpsniff.replay.send.guard import TOOLS, Tools
from mcpsniff.replay.send.hearing import PATIENCE, Hearing, kind_of
from mcpsniff.replay.send.link import GoneError, Link, Sent, now_us, said
from mcpsniff.replay.send.outcome import LEFT_OUT, UNSENT, Judge, Outcome, TalkOutcome
from mcpsniff.replay.send.own import cancel, initialize, list_tools
from mcpsniff.replay.send.plan import DROP, LEAVE, NOTICE, REPLY, SAY, Item, is_whole, items_of, lacks_handshake
from mcpsniff.replay.send.texts import Freshener, Text, text_of
from mcpsniff.replay.send.values import MissingValueError, Values
from mcpsniff.replay.send.verdict import conclude
from mcpsniff.replay.spelling import ID, respelt
from mcpsniff.replay.tempo import AT_ONCE, Tempo

CANCEL_GAP: Final = 1.0
"""Seconds of the recorded gap that are kept between a request and its cancel, however fast all else goes."""
FAREWELL: Final = 1.0
"""Seconds that a server that takes nothing more has to end, so that it can be told how."""
MOST_SILENT: Final = 3
"""Answers that fail to come in a row, without anything else that comes, after which less is waited for the others."""
IMPATIENT: Final = 1.0
"""Seconds that an answer has then."""
INITIALIZED: Final = "notifications/initialized"


@dataclass(frozen=True, slots=True)
class Way:
    """How a conversation is to be sent."""

    tempo: Tempo = AT_ONCE
    timeout: float = 30.0
    """Seconds that the server has for each step; progress begins them anew."""


class Sender:
    """The client of one conversation. Its ``hearing`` is the ear of the link that `run` is given."""

    def __init__(self, talk: Talk, tools: Tools, judge: Judge, way: Way) -> None:
        self.outcome = TalkOutcome(talk)
        self.outcomes: dict[Scene, Outcome] = {scene: Outcome(scene) for scene in talk.requests()}
        self.outcome.outcomes = list(self.outcomes.values())
        self.calls: dict[Scene, Call] = {}
        """What was sent of the recorded requests."""
        self.hearing = Hearing(talk, self._answered, self._questioned)
        self.judge = judge
        self.way = way
        self.talk = talk
        self.is_cut_short = False
        """True if the server had gone before everything was said."""
        self.was_impatient = False
        """True if a server that gave no sign of life was not given its whole time any more."""
        self._silent, self._signs = 0, 0
        """How many answers have failed to come in time in a row, and the signs of life before that."""
        self._is_modern = talk.is_modern
        self._tools = tools
        self._values = Values()
        self._items = items_of(talk)
        self._fresh = Freshener()
        self._awaited: Counter[tuple[str, str]] = Counter()
        """How many notifications of each kind the recorded client had seen by now."""
        self._replies: set[asyncio.Task[None]] = set()
        self._link: Link
        self._anchor = (self._items[0].t if self._items else 0, 0)
        """A moment of the recording and the same one of the live run: gaps are counted from there."""

    async def run(self, link: Link) -> TalkOutcome:
        """Go through the conversation over a link, and judge it. Raises UnreachableError if nobody was ever there."""
        self._link = link
        try:
            await link.open()
            self._anchor = (self._anchor[0], now_us())
            if lacks_handshake(self.talk):
                self.outcome.notes.append("the recording has no handshake: one of mcpsniff's own was made")
                await initialize(link, self.hearing, self.talk.revision, self.way.timeout)
                await link.listen()
            for item in self._items:
                await self._do(item)
            await self._settle()
        finally:
            for task in self._replies:
                task.cancel()
            await link.close()
        self.outcome.transport = link.transport
        if self.hearing.gone is not None:
            self.outcome.last_words = list(self.hearing.last_words)
        conclude(self)
        return self.outcome

    # -- waiting for what was seen -----------------------------------------------------------------------------------

    async def _do(self, item: Item) -> None:
        if item.kind == SAY:
            await self._say(item)
            return
        if item.kind == LEAVE:
            await self._pause(item, None)
            await self._link.leave()
            return
        call = None if item.scene is None else self.calls.get(item.scene)
        if self.hearing.gone is not None or (call is None and item.scene is not None and item.scene.is_request):
            return  # nothing of it will come
        if item.kind == DROP and call is not None:
            await self._drop(item, call)
        elif item.kind == REPLY:
            asked = self.hearing.questions.of_answer(item.messages[0])
            if asked is not None:
                what = f"question {asked.question.asked.method}"
                await self.hearing.patiently(what, asked.replied.is_set, call, self._patience(item))
        elif item.kind == NOTICE:
            answer = None if item.scene is None else item.scene.answer
            await self._told(item, call if answer is not None and item.messages[0].n < answer.n else None)
        elif call is not None:
            await self._settled(call)
        self._anchor = (item.t, now_us())

    async def _settled(self, call: Call) -> None:
        """Wait for the answer to a request, or until its time has run out."""
        while call.is_open:
            timeout = self._timeout()
            left = (call.alive_at - now_us()) / 1e6 + timeout
            if left <= 0:
                call.late, call.waited = True, timeout
                call.settled.set()
                self._silent = self._silent + 1 if self._signs == self.hearing.signs else 1
                self._signs = self.hearing.signs
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(call.settled.wait(), left)

    def _timeout(self) -> float:
        """Seconds for an answer: few for a server that gives no sign of life."""
        if self._silent < MOST_SILENT or self._signs != self.hearing.signs or self.way.timeout <= IMPATIENT:
            return self.way.timeout
        self.was_impatient = True
        return IMPATIENT

    def _patience(self, item: Item) -> float:
        return min((item.t - self._anchor[0]) / 1e6 + PATIENCE, self.way.timeout)

    async def _told(self, item: Item, call: Call | None) -> None:
        """Wait until as many notifications of this kind have come as had by then."""
        kind = kind_of(item.messages[0])
        self._awaited[kind] += 1
        so_far, told = self._awaited[kind], self.hearing.told
        await self.hearing.patiently(kind[0], lambda: told[kind] >= so_far, call, self._patience(item))

    async def _settle(self) -> None:
        """Wait a little for what the recording has after the client's last words, and for answers to them."""
        if self._replies:
            await asyncio.wait(list(self._replies), timeout=self.way.timeout)
        hearing, calls = self.hearing, list(self.calls.values())
        expected = sum(len(_told_of(scene)) for scene in self.talk.scenes if self.was_sent(scene))
        expected -= sum(max(0, number - hearing.told[kind]) for kind, number in self._awaited.items())
        await hearing.patiently(
            "the rest",
            lambda: (
                len(hearing.notices) + sum(len(call.progress) for call in calls) >= expected
                and not any(call.is_open and _may_end(call.outcome.scene) for call in calls)
            ),
            None,
            min(PATIENCE, self.way.timeout),
        )

    @property
    def is_elsewhere(self) -> bool:
        """True if it was recorded on another transport than it is sent on."""
        recorded = "stdio" if self.talk.kind == PIPE else "sse" if self.talk.kind == LEGACY else "http"
        return recorded != self.outcome.transport

    def was_sent(self, scene: Scene) -> bool:
        """True if what the scene holds can be expected to come."""
        if scene.is_request:
            return scene in self.calls
        return scene not in self.outcomes  # there it has been left out

    # -- speaking --------------------------------------------------------------------------------------------------

    async def _say(self, item: Item) -> None:
        """Send one text, but for the messages of it that cannot be sent."""
        if self.hearing.gone is not None:
            self.is_cut_short = True
            return
        texts = [text for message in item.messages if (text := await self._prepared(message, item)) is not None]
        if not texts:
            return
        cancelled = self._cancelled_by(item)
        await self._pause(item, cancelled)
        if cancelled is not None and self._is_modern and await self._link.drop(cancelled.sent):
            return
        sent = text_of(texts, item.messages, self._tools.headers)
        if why := self._tools.why_not_text(sent.data, sent.messages):
            for text in texts:
                self._withhold(text.message, self._scene_of(text.message, item), LEFT_OUT, why)
            return
        for text in texts:
            if text.scene is not None:
                self._call(text, text.scene, sent)
        is_ready = any(message.method == INITIALIZED for message in sent.messages) and self._listens()
        if is_ready:  # first, for many servers speak as soon as they hear it, and drop what no stream is there for
            await self._link.listen()
        try:
            await self._link.send(sent)
        except GoneError:
            self.is_cut_short = True
            await self.hearing.patiently("the end of the server", lambda: False, None, FAREWELL)
            self.hearing.ended("takes nothing more")
            return
        if is_ready:  # again, for servers that let nobody listen before it
            await self._link.listen()

    async def _drop(self, item: Item, call: Call) -> None:
        """Cancel a request of 2026-07-28: by hanging up where the transport has a response for each, else in words."""
        await self._pause(item, call)
        if not await self._link.drop(call.sent):
            await cancel(self._link, call.id)

    def _cancelled_by(self, item: Item) -> Call | None:
        """What a cancel of the client is about, if it was sent."""
        return None if item.scene is None or not is_cancel(item.messages[0]) else self.calls.get(item.scene)

    async def _prepared(self, message: Message, item: Item) -> Text | None:
        """A message as it is to be sent; None if it is not, which its outcome says."""
        scene = self._scene_of(message, item)
        if not is_whole(message):
            self._withhold(message, scene, UNSENT, "the capture has only a part of it")
            return None
        if is_cancel(message) and scene is not None and scene.is_request and scene not in self.calls:
            return None  # what it cancels was not sent
        try:
            tokens = self._values.tokens(message)
        except MissingValueError as error:
            self._withhold(message, scene, UNSENT, str(error))
            return None
        if message.method == CALL and (why := await self._forbidden(message)):
            self._withhold(message, scene, LEFT_OUT, why)
            return None
        is_shared = self.talk.kind in (MODERN, BARE)
        tokens |= self._fresh.tokens(message, is_taken=is_shared and self.hearing.calls.is_taken(message.key))
        return Text(message, tokens, scene if message.kind == REQUEST else None)

    def _withhold(self, message: Message, scene: Scene | None, state: str, why: str) -> None:
        """Note that a message is not sent; a row is there for each request, and for what may call a tool."""
        outcome = None if scene is None or scene.cue is not message else self.outcomes.get(scene)
        if outcome is None and (state != LEFT_OUT or scene is None or scene.cue is not message):
            self.outcome.notes.append(f"#{message.n} {message.method or message.kind} was not sent: {why}")
            return
        if outcome is None and scene is not None:
            outcome = self.outcomes[scene] = Outcome(scene)
            self.outcome.outcomes.append(outcome)
            self.outcome.outcomes.sort(key=lambda one: one.n)
        if outcome is not None:
            outcome.state, outcome.why = state, why

    def _scene_of(self, message: Message, item: Item) -> Scene | None:
        if item.scene is not None and (item.scene.cue is message or len(item.messages) == 1):
            return item.scene
        return next((scene for scene in self.talk.scenes if scene.cue is message), None)

    async def _forbidden(self, call: Message) -> str | None:
        """Why a tool is not to be called; asks the live server for its tools if it has not told of them."""
        if self._tools.must_ask(call):
            await list_tools(self._link, self.hearing, self._tools, call, self._timeout())
        return self._tools.why_not(call)

    def _call(self, text: Text, scene: Scene, sent: Sent) -> None:
        live = next((one for one in sent.messages if one.kind == REQUEST and one.raw == text.raw), text.message)
        token = token_key(live.meta.get("progressToken"))
        now = now_us()
        call = Call(self.outcomes[scene], live.key, live.id or "null", token, sent, now, now)
        self.hearing.calls.add(call)
        self.calls[scene] = call

    async def _pause(self, item: Item, cancelled: Call | None) -> None:
        """Keep the recorded gap, as far as it is to be kept; ``cancelled`` is what will be cancelled after it."""
        recorded, live = self._anchor
        until = live / 1e6 + self.way.tempo.seconds(item.t - recorded)
        if cancelled is not None and (cue := cancelled.outcome.scene.cue) is not None:
            until = max(until, cancelled.sent_at / 1e6 + min((item.t - cue.t) / 1e6, CANCEL_GAP))
        if (left := until - now_us() / 1e6) > 0:
            await asyncio.sleep(left)

    def _listens(self) -> bool:
        """True if the recorded client had asked for the server's own stream, or had no need to on its transport."""
        if self.talk.kind in (PIPE, LEGACY):
            return True
        return any(web.http.method == "GET" for web in self.talk.webs)

    # -- hearing ---------------------------------------------------------------------------------------------------

    def _answered(self, call: Call) -> None:
        assert call.answer is not None
        scene, live = call.outcome.scene, call.answer.message
        call.outcome.now_us = call.answer.t - call.sent_at
        if scene.method == TOOLS:
            self._tools.learn(live)
        if (recorded := scene.answer) is not None:
            self._values.learn(scene.method, recorded, live)

    def _questioned(self, asked: Asked | None, live: Message) -> None:
        task = asyncio.create_task(self._reply(asked, live))
        self._replies.add(task)
        task.add_done_callback(self._replies.discard)

    async def _reply(self, asked: Asked | None, live: Message) -> None:
        """Answer a question of the server as it was answered, under its live id."""
        headers: tuple[tuple[str, str], ...] | None = None
        if asked is None:
            data = own_reply(live)
        else:
            answer = asked.question.answer
            if answer is None:
                return
            await asyncio.sleep(self.way.tempo.seconds(answer.t - asked.question.asked.t))
            try:
                tokens = self._values.tokens(answer)
            except MissingValueError:
                tokens = {}
            data = respelt(answer.raw, {**tokens, ID: live.id or "null"})
            if answer.http is not None and answer.http.request is not None:
                headers = answer.http.request.headers
        with suppress(GoneError):
            for text in (*(() if asked is None else asked.progress()), data):
                sent = Sent(text, said(text), headers if text is data else None)
                if why := self._tools.why_not_text(sent.data, sent.messages):
                    self.outcome.notes.append(f"what was said in answer to {live.method} was not sent: {why}")
                else:
                    await self._link.send(sent)
        if asked is not None:
            asked.replied.set()
        self.hearing.stir()


def _may_end(scene: Scene) -> bool:
    """True if something may come of a request for which nothing was recorded."""
    return not scene.is_cut and (scene.exchange is None or scene.exchange.state != CANCELLED)


def _told_of(scene: Scene) -> list[Message]:
    return [message for message in scene.messages("s2c") if message.kind == NOTIFICATION]
