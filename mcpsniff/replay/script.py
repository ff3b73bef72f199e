"""A capture as a script that can be played again: who cued whom, and what followed, in order.

    Script ─▶ Talk (one conversation) ─▶ Scene (what one message of the client led to) ─▶ Line (said in it)
         └──▶ Web (one HTTP exchange, with or without messages)

A server speaks on cue: what it says belongs to the scene of the message that made it say so. A scene also has what the
client says in it, namely its answers to the server's requests, and the cancel of its own; so a script can be played by
either side. `mcpsniff.replay.reading` makes a script of a capture, `mcpsniff.replay.causes` finds the cues.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from mcpsniff.capture.records import Header
from mcpsniff.protocol.events import Close
from mcpsniff.protocol.exchange import CANCELLED, OPEN, Exchange
from mcpsniff.protocol.http import Body, HttpExchange
from mcpsniff.protocol.message import BATCH, ERROR, INVALID, NOTIFICATION, REQUEST, RESPONSE, Message
from mcpsniff.protocol.revisions import is_modern
from mcpsniff.protocol.talk import BARE, LEGACY, MODERN, SESSION
from mcpsniff.wire.frames import Frame, Span

PIPE: Final = "pipe"
TALK_KINDS: Final = (PIPE, BARE, SESSION, LEGACY, MODERN)
"""How a conversation is carried: over the pipes of a wrapped server, or over HTTP as `protocol.talk` has them."""


ENDLESS: Final = ("subscriptions/listen",)
"""Requests that stay open for as long as the client wants: that they have no answer is nothing that is lacking."""


@dataclass(slots=True, eq=False)
class Line:
    """One thing that was said, or happened, in a scene.

    It is about exactly one of: ``message`` (with its frame), ``frame`` alone, ``text``, ``end``, ``close``.
    """

    n: int
    """The number of its event."""
    t: int
    """When, in microseconds since the capture began."""
    gap_us: int = 0
    """Microseconds since what came before it in the scene: the line before, or the cue."""
    message: Message | None = None
    frame: Frame | None = None
    """The frame of the message; alone: a block of an event stream without a message (comment, id, retry, endpoint)."""
    text: str | None = None
    """What the server wrote to its stderr."""
    end: "Web | None" = None
    """The HTTP exchange that ended here, as a stream that was ended before everything had been said."""
    close: Close | None = None
    """The end of the server's process, where it came before the client had left."""
    after: "Scene | None" = None
    """In a subscription: the scene that the client had cued last when this was said, and that may have led to it."""
    batch: "Batch | None" = None
    """The batch of which its message is an element; ``frame`` is that of the whole batch."""

    @property
    def is_of_client(self) -> bool:
        """True for what the client said: to a player of the server a line to wait for."""
        return self.message is not None and self.message.direction == "c2s"

    @property
    def lasted_us(self) -> int:
        """Microseconds from its first byte to its last, by which ``t`` and ``gap_us`` go."""
        return 0 if self.frame is None or self.text is not None else max(0, self.t - self.frame.t_first)


@dataclass(slots=True, eq=False)
class Batch:
    """What the server said at once, in one JSON array."""

    message: Message
    """The array; its ``raw`` has the elements with what stands between them."""
    lines: list[tuple["Scene", Line]] = field(default_factory=list)
    """Its elements in order, each with the scene that it belongs to: those of one batch may answer several requests."""


@dataclass(slots=True, eq=False)
class Web:
    """One HTTP exchange, whole."""

    http: HttpExchange
    state: str
    """A key of `mcpsniff.protocol.http.HTTP_STATES`: how it ended, as far as the capture has it."""
    asked: Body
    answered: Body
    """Their ``kept`` is the body where it carries no message."""
    ended_at: int | None = None
    """When its end was told, in microseconds; None if the capture has none."""
    lines: list[Line] = field(default_factory=list)
    """All frames of its response in order, those with messages and those without; times as in the capture."""
    scenes: list["Scene"] = field(default_factory=list)
    """The scenes that the messages in its request cued."""
    talk: "Talk | None" = None

    @property
    def number(self) -> int:
        """Its running number among the HTTP exchanges of the capture."""
        return self.http.number


@dataclass(slots=True, eq=False)
class Scene:
    """What one message of the client led to."""

    number: int
    """Its place among the scenes of its talk, from 0."""
    talk: "Talk"
    cue: Message | None
    """The client's message; None for what the server said before the client had said anything."""
    lines: list[Line] = field(default_factory=list)
    web: Web | None = None
    """Over HTTP: the exchange whose request carried the cue."""

    @property
    def method(self) -> str:
        """The method of the cue; empty if it has none."""
        return "" if self.cue is None else self.cue.method or ""

    @property
    def is_request(self) -> bool:
        """True if the cue is a request that can be answered."""
        return self.cue is not None and self.cue.kind == REQUEST

    @property
    def exchange(self) -> Exchange | None:
        """The exchange that the cue began."""
        return self.cue.link if self.cue is not None and self.is_request else None

    @property
    def answer(self) -> Message | None:
        """The message that answered the cue, a late one included; None if there is none."""
        exchange = self.exchange
        wanted = None if exchange is None else exchange.response or exchange.late
        return next((m for m in self.messages("s2c") if m.n == wanted and wanted is not None), None)

    @property
    def is_refused(self) -> bool:
        """True if HTTP refused the request that carried the cue."""
        return self.web is not None and self.web.http.is_refused

    @property
    def is_cut(self) -> bool:
        """True if the answer may stand in what the capture lacks: the request is open at its end, or bytes are lost."""
        exchange = self.exchange
        if exchange is None or self.answer is not None:
            return False
        return exchange.may_be_answered or (exchange.state == OPEN and self.method not in ENDLESS)

    @property
    def is_silent(self) -> bool:
        """True if the server never answered, which the capture proves: neither cut nor cancelled nor refused."""
        exchange = self.exchange
        if exchange is None or self.answer is not None or self.is_cut or self.is_refused:
            return False
        return exchange.state != CANCELLED

    def messages(self, direction: str | None = None) -> Iterator[Message]:
        """The messages in it, the cue aside; only those of ``direction`` (``c2s`` or ``s2c``) if it is given."""
        for line in self.lines:
            if line.message is not None and direction in (None, line.message.direction):
                yield line.message


@dataclass(slots=True, eq=False)
class Talk:
    """One conversation; over HTTP in 2026-07-28 all requests to one server."""

    number: int
    """The number of the (first) conversation it is."""
    kind: str
    """One of TALK_KINDS."""
    server: str
    """Over HTTP: the server behind it, as `mcpsniff.protocol.origins` spells it."""
    scenes: list[Scene] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    """Everything said in it, in order, batches by their elements, redelivered events left out."""
    webs: list[Web] = field(default_factory=list)
    session_id: str | None = None
    farewell: Scene | None = None
    """Over pipes: what the server said after the client had closed its input, a scene without a cue."""

    @property
    def opening(self) -> Scene | None:
        """The scene of the first ``initialize`` that was answered with a result, or else of the first one."""
        found = [scene for scene in self.scenes if scene.method == "initialize" and scene.is_request]
        return next(
            (scene for scene in found if scene.answer and scene.answer.kind == RESPONSE), next(iter(found), None)
        )

    @property
    def revision(self) -> str | None:
        """The revision that governed it last; None if nothing settled it."""
        return next((m.revision for m in reversed(self.messages) if m.revision is not None), None)

    @property
    def has_handshake(self) -> bool:
        """True if it needs none, or if its ``initialize`` was answered."""
        opening = self.opening
        return self.kind == MODERN or self.is_modern or (opening is not None and opening.answer is not None)

    @property
    def is_modern(self) -> bool:
        """True if it was held without ``initialize``, as in 2026-07-28."""
        return self.opening is None and is_modern(self.revision)

    def requests(self) -> Iterator[Scene]:
        """The scenes that a request cued."""
        return (scene for scene in self.scenes if scene.is_request)


class Lack(NamedTuple):
    """Something that a replay cannot give back, because the capture does not have it."""

    text: str
    """A sentence without capital and full stop."""
    n: int | None = None
    """The event it is about."""


class Piece(NamedTuple):
    """Recorded bytes as one read returned them, or the part of them that is asked for."""

    t: int
    data: bytes


@dataclass(slots=True, eq=False)
class Script:
    """Everything that a capture says, ready to be played."""

    path: str
    header: Header
    talks: list[Talk] = field(default_factory=list)
    webs: list[Web] = field(default_factory=list)
    """All HTTP exchanges in order of their requests, those of no conversation included; none over pipes."""
    lacks: list[Lack] = field(default_factory=list)
    chunks: dict[int, list[tuple[int, Piece]]] = field(default_factory=dict)
    """By channel: offset and piece of each read; only where bytes were asked for."""

    @property
    def is_http(self) -> bool:
        """True if it was recorded over HTTP."""
        return bool(self.webs) or self.header.transport in ("http", "forward")

    @property
    def servers(self) -> list[str]:
        """Over HTTP: the servers that MCP was spoken with, in order of appearance."""
        return list(dict.fromkeys(talk.server for talk in self.talks if talk.kind != PIPE))

    def pieces(self, spans: tuple[Span, ...]) -> list[Piece]:
        """The recorded bytes of ``spans``, cut where the reads were cut; none unless the script was read with them."""
        found: list[Piece] = []
        for span in spans:
            reads = self.chunks.get(span.channel, [])
            at = max(0, bisect_right(reads, span.start, key=lambda read: read[0]) - 1)
            for offset, (t, data) in reads[at:]:
                if offset >= span.stop:
                    break
                part = data[max(0, span.start - offset) : span.stop - offset]
                if part:
                    found.append(Piece(t, part))
        return found


def is_answer(message: Message) -> bool:
    """True for a response or an error."""
    return message.kind in (RESPONSE, ERROR)


def is_answering(message: Message) -> bool:
    """True for an answer, and for what is none but ended a request: with result and error together, or with neither."""
    if is_answer(message):
        return True
    named = message.link is not None or message.fact("id-type-differs") is not None
    return message.kind == INVALID and named


def is_empty_batch(message: Message) -> bool:
    """True for an array without elements."""
    return message.kind == BATCH and not message.body


def is_cancel(message: Message) -> bool:
    """True for a notification that cancels a request."""
    return message.kind == NOTIFICATION and message.method == "notifications/cancelled"


def is_progress(message: Message) -> bool:
    """True for a progress notification."""
    return message.kind == NOTIFICATION and message.method == "notifications/progress"
