"""What a live server says to a client that goes through a recording: each thing to where it belongs."""

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from mcpsniff.protocol.message import ERROR, NOTIFICATION, REQUEST, RESPONSE, IdKey, Message
from mcpsniff.replay.script import Talk, is_progress
from mcpsniff.replay.send.asked import Asked, Questions
from mcpsniff.replay.send.calls import Call, Calls
from mcpsniff.replay.send.link import Came, Refusal, Sent
from mcpsniff.replay.send.plan import questions_of

PATIENCE: Final = 3.0
"""Seconds beyond the recorded gap that what need not come (a notification, a question) is waited for."""
AFTERWARDS: Final = 0.3
"""The same once the request that it belongs to has been answered, and for what has failed to come before."""
MOST_KEPT: Final = 100_000
"""Notifications that are kept to be compared."""

LAST_WORDS: Final = 10
"""Lines of a server's stderr that are told when it has gone."""


class Hearing:
    """The ear of one conversation."""

    def __init__(
        self, talk: Talk, on_answer: Callable[[Call], None], on_question: Callable[[Asked | None, Message], None]
    ) -> None:
        self.calls = Calls()
        self.questions = Questions(questions_of(talk))
        self.notices: list[Message] = []
        """What the server told without having been asked, progress aside."""
        self.told: Counter[tuple[str, str]] = Counter()
        """How many of each kind."""
        self.signs = 0
        """How many messages have come: signs of life."""
        self.near: dict[int, int] = {}
        """By the identity of what came unasked: the number of the recorded request that had been sent last."""
        self.strays: list[Message] = []
        """Answers to nothing that was asked, and what is no message at all."""
        self.refused_others: list[Refusal] = []
        """Refusals of what asked for no answer."""
        self.gone: str | None = None
        """How the server has gone, in words as after "the server", if it has."""
        self.last_words: deque[str] = deque(maxlen=LAST_WORDS)
        """What it wrote to its stderr last."""
        self._own: dict[IdKey, asyncio.Future[Message | None]] = {}
        self._on_answer = on_answer
        self._on_question = on_question
        self._news = asyncio.Event()
        self._failed_to_come: set[str] = set()

    # -- the ear ---------------------------------------------------------------------------------------------------

    def heard(self, came: Came) -> None:
        """A message has come."""
        message = came.message
        self.signs += 1
        if message.method is not None and len(self.near) < MOST_KEPT and self.calls.all:
            self.near[id(message)] = self.calls.all[-1].outcome.n
        if message.kind in (RESPONSE, ERROR):
            self._answer(came)
        elif message.kind == REQUEST:
            self._on_question(self.questions.find(message), message)
        elif message.kind == NOTIFICATION:
            call = self.calls.of_progress(message) if is_progress(message) else None
            if call is not None:
                call.progress.append(message)
                call.alive_at = came.t
            elif len(self.notices) < MOST_KEPT:
                self.notices.append(message)
                self.told[kind_of(message)] += 1
        elif len(self.strays) < MOST_KEPT:
            self.strays.append(message)
        self._news.set()

    def _answer(self, came: Came) -> None:
        own = None if came.message.key is None else self._own.pop(came.message.key, None)
        if own is not None:
            if not own.done():
                own.set_result(came.message)
            return
        call = self.calls.of_answer(came)
        if call is None:
            self.strays.append(came.message)
            return
        call.answer = came
        if not call.late:
            self._on_answer(call)
        call.settled.set()

    def refused(self, refusal: Refusal) -> None:
        """A text was refused."""
        calls = self.calls.of_sent(refusal.sent)
        for call in calls:
            if call.is_open:
                call.refusal = refusal
                call.settled.set()
        for message in refusal.sent.messages:
            if message.key is not None and (own := self._own.pop(message.key, None)) is not None and not own.done():
                own.set_result(None)
        if not calls and not any(message.kind == REQUEST for message in refusal.sent.messages):
            self.refused_others.append(refusal)
        self._news.set()

    def accepted(self, sent: Sent, status: int) -> None:
        """A response has begun, which says nothing yet."""

    def wrote(self, text: str) -> None:
        """The server has written to its stderr, which is not compared."""
        self.last_words.append(text)

    def ended(self, why: str) -> None:
        """Nothing more will come."""
        if self.gone is None:
            self.gone = why
        for call in self.calls.all:
            call.settled.set()
        for own in self._own.values():
            if not own.done():
                own.set_result(None)
        self._own.clear()
        self._news.set()

    # -- waiting ---------------------------------------------------------------------------------------------------

    def own(self, key: IdKey) -> "asyncio.Future[Message | None]":
        """What will come in answer to a request of our own; None if nothing will."""
        future: asyncio.Future[Message | None] = asyncio.get_running_loop().create_future()
        self._own[key] = future
        return future

    def stir(self) -> None:
        """Something has happened that somebody may be waiting for."""
        self._news.set()

    async def patiently(self, what: str, is_there: Callable[[], bool], call: Call | None, most: float) -> None:
        """Wait for what need not come, which is called ``what``, at most so many seconds.

        Less if it has failed to come before, or is overdue: the request that it belongs to (``call``) was answered.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + (min(most, AFTERWARDS) if what in self._failed_to_come else most)
        while not is_there() and self.gone is None and (left := until - loop.time()) > 0:
            if call is not None and not call.is_open:
                until, call = min(until, loop.time() + AFTERWARDS), None
                continue
            self._news.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), left)
        if not is_there():
            self._failed_to_come.add(what)


def kind_of(message: Message) -> tuple[str, str]:
    """What a notification is, and which resource it is about."""
    return message.method or "", str(message.params.get("uri", ""))
