"""What HTTP exchanges mean: conversations, sessions, streams that are resumed, and the messages in all of them."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, Final

from mcpsniff.decoder.bodies import is_like_a_message
from mcpsniff.decoder.channel import Channel
from mcpsniff.decoder.emitter import Emitter, Event
from mcpsniff.decoder.flow import Flow
from mcpsniff.decoder.recorded import BodyChannel
from mcpsniff.decoder.speech import Speech
from mcpsniff.decoder.tcp import TcpChannel, Wire, connection_of
from mcpsniff.protocol.authorizations import Authorizations
from mcpsniff.protocol.conversation import Conversation
from mcpsniff.protocol.conversations import Conversations
from mcpsniff.protocol.events import Close
from mcpsniff.protocol.exchange import Exchange
from mcpsniff.protocol.http import (
    EVENT_STREAM,
    GET,
    LOST,
    OPEN,
    POST,
    STREAMING,
    UNDECODED,
    Body,
    Http,
    HttpExchange,
    NamedEndpoint,
    NamedEvent,
    Stream,
    media_type,
)
from mcpsniff.protocol.message import ERROR, NOTIFICATION, RESPONSE, Fact, Message
from mcpsniff.protocol.reach import NotHere, Reach
from mcpsniff.protocol.talk import EventMark, WebTalk, content_of
from mcpsniff.wire.frames import UNTERMINATED, Frame, Span

KINDS: Final = frozenset({"tcp", "http-request", "http-response"})
"""The kinds of channels that carry HTTP."""


BODIES_LIMIT: Final = 10_000
"""Recorded bodies whose exchange is not over; beyond, the oldest exchange is taken to have no response."""


class Web:
    """All HTTP of a capture."""

    def __init__(self, emitter: Emitter, speech: Speech, talks: Conversations, limit: int) -> None:
        self.limit = limit
        """Bytes of one frame that are kept."""
        self._emitter = emitter
        self._speech = speech
        self._talks = talks
        self._outside = Conversation(0, joined_late=True, over_http=True)
        """In place of the conversation of an exchange that belongs to none."""
        self._reach = Reach()
        self._authorizations = Authorizations()
        self._endpoints: dict[int, NamedEndpoint] = {}
        """By channel: events of which the next record tells whether mcpsniff has changed them."""
        self._number = 0
        self._wires: dict[int, Wire] = {}
        self._bodies: dict[int, BodyChannel] = {}
        self._flows: dict[int, Flow] = {}
        """Those with channels that have not ended, by identity."""

    # -- channels --------------------------------------------------------------------------------------------------

    def open(self, out: list[Event], number: int, fields: dict[str, Any], t: int, offset: int = 0) -> Channel:
        """A channel begins, or goes on at ``offset`` from an earlier part."""
        if fields.get("kind") == "tcp":
            return TcpChannel(self, number, fields, offset)
        channel = BodyChannel(self, number, fields, offset)
        self._bodies[number] = channel
        if len(self._bodies) > BODIES_LIMIT:
            oldest = self._bodies.pop(next(iter(self._bodies)))
            self._flows.pop(id(oldest.flow), None)
            oldest.flow.finish(out, t)
        self._flows[id(channel.flow)] = channel.flow
        channel.begin(out, t)
        return channel

    def goes_on(self, out: list[Event], channel: int, t: int) -> None:
        """Something comes on a channel: a change of what came before it would have been recorded by now."""
        named = self._endpoints.pop(channel, None) if self._endpoints else None
        if named is not None:
            named.is_passed = True
            self._emitter.judge(out, named, self._conversation(named.exchange), named.frame.n, t)

    def changed(self, channel: int | None, spans: Iterable[Span]) -> None:
        """Something else than these bytes of a channel was passed on by mcpsniff."""
        named = self._endpoints.get(-1 if channel is None else channel)
        if named is not None and any(_overlap(one, other) for one in spans for other in named.frame.spans):
            del self._endpoints[named.frame.channel]

    def is_cut(self, connection: int) -> bool:
        """True if somebody let something be cut off on a connection."""
        return self._speech.editing.is_cut(connection)

    def wire_of(self, channel: TcpChannel, fields: dict[str, Any]) -> Wire:
        """The connection of a channel: the one that the other direction is on, or a new one."""
        connection = connection_of(channel.number, fields)
        wire = self._wires.get(connection)
        if wire is None or channel.direction in wire.channels:
            wire = self._wires[connection] = Wire(self, connection, fields)
            self._flows[id(wire.flow)] = wire.flow
        wire.channels[channel.direction] = channel
        return wire

    def body_channel(self, number: Any) -> BodyChannel | None:
        """The channel of a request's body, while its response is open."""
        return self._bodies.get(number) if isinstance(number, int) else None

    def closed(self, out: list[Event], channel: TcpChannel | BodyChannel, close: Close, t: int) -> None:
        """A channel has ended."""
        self._emitter.tell(out, close, self._outside, t)
        self._forget(channel)
        if self._talks.is_torn:
            self._settle()

    def _settle(self) -> None:
        self._talks.is_torn = any(flow.is_torn for flow in self._flows.values())

    def _forget(self, channel: TcpChannel | BodyChannel) -> None:
        self._endpoints.pop(channel.number, None)
        if isinstance(channel, TcpChannel):
            wire = channel.wire
            if wire.is_over and self._wires.get(wire.connection) is wire:
                del self._wires[wire.connection]
                self._talks.disconnect(wire.connection)
            if wire.is_over:
                self._flows.pop(id(wire.flow), None)
        elif channel.direction == "s2c" or not channel.flow.open:
            self._flows.pop(id(channel.flow), None)
            self._bodies.pop(channel.number, None)
            self._bodies.pop(-1 if channel.answers is None else channel.answers, None)

    def lose(self) -> None:
        """Bytes are missing: they may have been of any conversation, and what follows may be taken for another's."""
        self._talks.lose()
        self._reach.lose()
        self._authorizations.lose()
        self._endpoints.clear()
        self._settle()
        for talk in self._all_talks():
            for direction in ("c2s", "s2c"):
                talk.exchanges.lose(direction)
            talk.conversation.lose()

    def finish(self, out: list[Event], t: int) -> list[Exchange]:
        """Nothing more will come: tell of what is going on; returns the exchanges that are open."""
        going_on = sorted(self._going_on(), key=lambda http: http.number)
        for http in going_on:
            if http.state == OPEN:
                self._tell(out, http, OPEN, t)
        for refusal in self._reach.rest(self._wires.keys()):
            self._judge_refusal(out, refusal, t)
        found = {one.request: one for talk in self._all_talks() for one in talk.exchanges.still_open()}
        return [found[request] for request in sorted(found)]

    @property
    def deadline(self) -> int | None:
        """When the next finding comes that time alone leads to (microseconds)."""
        return self._reach.deadline

    def pass_deadline(self, out: list[Event]) -> None:
        """Time has come to `deadline`."""
        refusal = self._reach.due()
        self._judge_refusal(out, refusal, refusal.due)

    def _judge_refusal(self, out: list[Event], refusal: NotHere, t: int) -> None:
        self._emitter.judge(out, refusal, self._conversation(refusal.exchange), refusal.event.n, t)

    # -- what happens in an HTTP exchange (mcpsniff.decoder.flow.Listener) ------------------------------------------

    def next_number(self) -> int:
        """See `Listener`."""
        self._number += 1
        return self._number

    def is_place(self, http: HttpExchange) -> bool:
        """See `Listener`."""
        return self._talks.is_place(http)

    def requested(self, out: list[Event], http: HttpExchange) -> None:  # noqa: ARG002 - told when it is over
        """See `Listener`."""
        self._talks.arrive(http)
        self._reach.requested(http)
        self._speech.editing.head_came(http, of_request=True)

    def asked(self, out: list[Event], http: HttpExchange, frame: Frame) -> None:
        """See `Listener`."""
        messages = self._speech.read(frame)
        talk = self._talks.of_request(http, messages[0])
        http.asked.messages += len(messages)
        http.notices += sum(message.kind in (NOTIFICATION, RESPONSE, ERROR) for message in messages)
        if http.made_by is not None:  # the edit tells of them
            self._end(out, self._speech.editing.asked(http, talk), frame.t_last)
            return
        self._say(out, http, frame, messages, talk)

    def responded(self, out: list[Event], http: HttpExchange) -> None:
        """See `Listener`."""
        self._speech.editing.head_came(http, of_request=False)
        self._talks.respond(http)
        self._reach.responded(http)
        if media_type(http.says("content-type")) == EVENT_STREAM:
            self._begin_stream(http)
            self._reach.spoken(http)
            http.state = STREAMING
            self._authorizations.observe(http)
            self._tell(out, http, STREAMING, http.t_response or 0)

    def said(self, out: list[Event], http: HttpExchange, frame: Frame) -> None:
        """See `Listener`."""
        if http.stream is not None and frame.sse is not None:
            self._event(out, http, http.stream, frame)
            return
        messages = self._speech.read(frame)
        talk = self._talks.of_response(http)
        http.answered.messages += len(messages)
        self._say(out, http, frame, messages, talk)

    def over(self, out: list[Event], http: HttpExchange, t: int) -> None:
        """See `Listener`."""
        if http.stream is not None:
            http.stream.ended_at = None if http.state == LOST else t
        ended = self._talks.over(http, t)
        if http.stream is None:
            self._authorizations.observe(http)
        self._reach.ends(http)
        event = self._tell(out, http, http.state, t)
        self._reach.over(event, t)
        self._end(out, ended, t)

    def undecoded(self, out: list[Event], http: HttpExchange, t: int, why: str) -> None:
        """See `Listener`."""
        self._tell(out, http, UNDECODED, t, why)

    # -- streams ---------------------------------------------------------------------------------------------------

    def _begin_stream(self, http: HttpExchange) -> None:
        stream = http.resumes
        if stream is None:
            http.stream = Stream(http.number, POST if http.method == "POST" else GET, is_torn=http.is_torn)
            return
        stream.is_torn = http.is_torn = stream.is_torn or http.is_torn
        http.stream = stream
        http.resumed = True
        ended, wait = stream.ended_at, stream.retry_ms
        if ended is not None and wait is not None and http.t_request - ended < wait * 1000:
            http.tell("resumed-early", t=ended, text=str(wait))
        stream.ended_at = None

    def _event(self, out: list[Event], http: HttpExchange, stream: Stream, frame: Frame) -> None:
        """One event: a message, the endpoint, a resume point, a comment, or something of no protocol."""
        event = frame.sse
        assert event is not None
        if event.retry is not None:
            stream.retry_ms = event.retry
        known = None
        if event.id is not None and UNTERMINATED not in frame.flaws:
            stream.last_event_id = event.id
            known = None if http.talk is None or not event.id else http.talk.mark(event.id)
        if event.event == "endpoint" and event.dispatched and http.method != "POST":
            self._talks.endpoint(http, frame.payload.decode(errors="replace").strip())
        messages = self._messages_of(http, frame)
        stream.events += bool(event.dispatched and frame.payload)
        _count(http.answered, frame)
        if not messages:
            self._bare(out, http, frame)
            self._remember(http, stream, frame, None)
            return
        http.answered.messages += len(messages)
        talk = self._talks.of_response(http)
        if known is not None and http.last_event_id is not None and known.content == content_of(frame):
            self._say_again(out, http, frame, messages, known)
            return
        if known is not None:
            http.tell("event-id-repeated", known.frame, text=event.id or "")
        self._say(out, http, frame, messages, talk)
        self._remember(http, stream, frame, messages[0])

    def _messages_of(self, http: HttpExchange, frame: Frame) -> Sequence[Message]:
        """The messages of an event; none where its data is none, or it is named something else and is no JSON-RPC."""
        event = frame.sse
        if event is None or not event.dispatched or not frame.payload or event.event == "endpoint":
            return ()
        expected = event.event == "message" and http.talk is not None
        return self._speech.read(frame) if expected or is_like_a_message(frame.payload) else ()

    def _remember(self, http: HttpExchange, stream: Stream, frame: Frame, message: Message | None) -> None:
        event = frame.sse
        if event is None or not event.id or http.talk is None or UNTERMINATED in frame.flaws:
            return
        exchange = None if message is None else message.link
        mark = EventMark(stream, frame.n, None if message is None else message.n, content_of(frame), exchange)
        http.talk.remember(event.id, mark)

    # -- messages --------------------------------------------------------------------------------------------------

    def _say(
        self, out: list[Event], http: HttpExchange, frame: Frame, messages: Sequence[Message], talk: WebTalk
    ) -> None:
        """A frame that says something, in its conversation."""
        self._bare(out, http, frame)
        for message in messages:
            message.http = http
        self._speech.messages(out, messages, talk)
        self._speech.editing.came(frame, messages, talk, http)
        if frame.direction == "s2c":
            for message in messages:
                self._note_answer(http, message, talk)
        if self._talks.given_up:
            given_up, self._talks.given_up = self._talks.given_up, []
            self._end(out, given_up, frame.t_last)

    def _note_answer(self, http: HttpExchange, message: Message, talk: WebTalk) -> None:
        if message.kind == ERROR and isinstance(message.error.get("code"), int):
            http.error_code = message.error["code"]
        stream, link = http.stream, message.link
        if stream is not None and link is not None and link.response == message.n and link.http == stream.origin:
            stream.answered = message.n
        if message.kind == RESPONSE:
            self._talks.notice(talk.conversation)

    def _say_again(
        self, out: list[Event], http: HttpExchange, frame: Frame, messages: Sequence[Message], known: EventMark
    ) -> None:
        """An event that was delivered before: the same message, not another one."""
        self._bare(out, http, frame)
        for message in messages:
            message.http = http
            message.link = known.exchange if len(messages) == 1 else None
            message.facts = (Fact("redelivered", known.message),)
        assert http.talk is not None
        self._speech.repeat(out, messages, http.talk.conversation)

    def _bare(self, out: list[Event], http: HttpExchange, frame: Frame) -> None:
        frame.http = http.number
        self._speech.frame(out, frame, self._conversation(http))
        if frame.sse is not None and frame.sse.event != "message" and frame.sse.dispatched:
            self._emitter.judge(out, NamedEvent(frame, http), self._conversation(http), frame.n, frame.t_last)
            if frame.sse.event == "endpoint" and http.method != "POST":
                named = NamedEndpoint(frame, http)
                self._emitter.judge(out, named, self._conversation(http), frame.n, frame.t_last)
                self._endpoints[frame.channel] = named

    # -- small parts -----------------------------------------------------------------------------------------------

    def _conversation(self, http: HttpExchange) -> Conversation:
        return self._outside if http.talk is None else http.talk.conversation

    def _tell(self, out: list[Event], http: HttpExchange, state: str, t: int, why: str = "") -> Http:
        facts = tuple(http.facts[http.told :])
        is_first, http.told, http.is_told = not http.is_told, len(http.facts), True
        by_now = (http.stream_kind, http.conversation, http.ended_by)
        event = Http(http, state, http.asked.so_far(), http.answered.so_far(), facts, is_first, *by_now, why)
        self._emitter.tell(out, event, self._conversation(http), t)
        if http.auth is not None and is_first:
            http.auth.authorization.begin(event.n)
        return event

    def _end(self, out: list[Event], ended: Iterable[Exchange], t: int) -> None:
        for exchange in ended:
            self._speech.exchange(out, exchange, self._talks.conversation(exchange.conversation), t)

    def _going_on(self) -> Iterable[HttpExchange]:
        return chain.from_iterable(flow.open.values() for flow in self._flows.values())

    def _all_talks(self) -> list[WebTalk]:
        going_on = [http.talk for http in self._going_on() if http.talk is not None]
        return list({id(talk): talk for talk in (*self._talks.live(), *going_on)}.values())


def _overlap(one: Span, other: Span) -> bool:
    return one.channel == other.channel and one.start < other.stop and other.start < one.stop


def _count(body: Body, frame: Frame) -> None:
    event = frame.sse
    if event is None:
        return
    body.events += bool(event.dispatched and frame.payload)
    body.primings += event.id is not None and not frame.payload
    body.keep_alives += bool(event.comments) and event.id is None and not event.dispatched
