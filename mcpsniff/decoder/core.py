"""Records in, events out: what each record leads to, and what time alone leads to."""

from collections import OrderedDict
from typing import Any, Final

from mcpsniff import checks
from mcpsniff.capture.records import CHUNK, CLOSE, GAP, OPEN, REDACT, REWRITE, Header, Record
from mcpsniff.checks import Runner
from mcpsniff.decoder.channel import Channel, number_of
from mcpsniff.decoder.editing import Editing, made
from mcpsniff.decoder.emitter import Emitter, Event
from mcpsniff.decoder.left import starts_http
from mcpsniff.decoder.pipes import SLOW_EXIT_US, ErrorPipe, Pipe, Pipes
from mcpsniff.decoder.recorded import BodyChannel
from mcpsniff.decoder.speech import Speech
from mcpsniff.decoder.tcp import TcpChannel
from mcpsniff.decoder.web import KINDS, Web
from mcpsniff.protocol.conversation import Conversation
from mcpsniff.protocol.conversations import Conversations
from mcpsniff.protocol.events import Note, StillOpen
from mcpsniff.protocol.exchanges import OPEN_LIMIT, Exchanges, Watch
from mcpsniff.protocol.talk import Talk
from mcpsniff.wire.frames import DEFAULT_FRAME_LIMIT, Span

__all__ = ["SLOW_EXIT_US", "SLOW_REQUEST_US", "Decoder"]

CLOSED_LIMIT: Final = 50
"""Channels that are remembered when they have ended."""
SLOW_REQUEST_US: Final = 60_000_000
"""A request without an answer or progress for this long is slow (the time-out of the TypeScript SDK)."""


class Decoder:
    """Decodes the records of one capture. See the package for how it is used."""

    def __init__(
        self,
        header: Header | None = None,
        *,
        frame_limit: int = DEFAULT_FRAME_LIMIT,
        runner: Runner | None = None,
        joined_late: bool = False,
        open_limit: int = OPEN_LIMIT,
    ) -> None:
        """``open_limit``: how many open requests of each direction of a wrapped server are remembered."""
        checks.load()
        self._limit = frame_limit
        self._t = 0
        self._is_http = header is not None and header.transport in ("http", "forward")
        self._emitter = Emitter(Runner() if runner is None else runner)
        self._editing = Editing(self._emitter)
        self._speech = Speech(self._emitter, self._editing)
        self._channels: dict[int, Channel] = {}
        self._closed: OrderedDict[int, Channel] = OrderedDict()
        """Those that have ended last: what came on them may be held still, and leave as something else."""
        self._watch: Watch = OrderedDict()
        first = Conversation(1, joined_late=joined_late)
        self._talks = Conversations(first, self._watch)
        exchanges = Exchanges(joined_late=joined_late, open_limit=open_limit, watch=self._watch)
        self._pipes = Pipes(self._emitter, self._speech, Talk(first, exchanges))
        self._web = Web(self._emitter, self._speech, self._talks, frame_limit)
        self._early: list[Event] = []
        """What the channels that go on from an earlier part have led to; told with the first record."""
        for number, fields in ((header.channels if header else None) or {}).items():
            self._resume(number, fields)

    @property
    def conversation(self) -> Conversation:
        """What the capture is about: the conversation of a wrapped server, or over HTTP the first one with a result."""
        return self._talks.main

    def conversation_of(self, number: int) -> Conversation:
        """The conversation that a message names by its number."""
        return self._talks.conversation(number)

    # -- what the world tells the decoder --------------------------------------------------------------------------

    def feed(self, record: Record) -> list[Event]:
        """The events that ``record`` leads to, deadlines that passed before it included, in order."""
        out = self.advance(record.t) if self._is_due(record.t) else []
        if self._early:
            out, self._early = self._early + out, []
        self._t = record.t
        if record.at is not None:  # written late: what it tells was then, and deadlines that passed since have passed
            record = record._replace(t=record.at)
        number = record.channel
        if record.kind == CHUNK:
            channel = self._channels.get(number) if number is not None else None
            if channel is None:
                channel = self._unannounced(out, number or 0, record.t)
            channel.feed(out, record.t, record.body)
        elif record.kind == OPEN and number is not None:
            self._channels[number] = self._open(out, number, record.body, record.t)
        elif record.kind == CLOSE and number is not None:
            self._close(out, number, record)
        elif record.kind not in (OPEN, REDACT):  # no event: the numbers stay as they were
            self._note(out, record)
        return out

    def advance(self, t: int) -> list[Event]:
        """The events of all deadlines up to ``t`` (microseconds since the capture started)."""
        out: list[Event] = []
        while (due := self._next_deadline()) is not None and due <= t:
            if self._pipes.deadline == due:
                self._pipes.pass_deadline(out)
            elif self._web.deadline == due:
                self._web.pass_deadline(out)
            else:
                _, exchange = self._watch.popitem(last=False)
                moment = StillOpen(exchange, due, SLOW_REQUEST_US)
                conversation = self._talks.conversation(exchange.conversation)
                self._emitter.judge(out, moment, conversation, exchange.request, due)
        return out

    def finish(self) -> list[Event]:
        """Nothing more will come: lines held back are judged and open exchanges are emitted as they are."""
        out, self._early = self._early, []
        self._speech.release(out, self._pipes.talk.conversation)
        still_open = self._web.finish(out, self._t) + self._pipes.talk.exchanges.still_open()
        for exchange in still_open:
            conversation = self._talks.conversation(exchange.conversation)
            self._speech.exchange(out, exchange, conversation, exchange.t_alive)
        return out

    # -- records ---------------------------------------------------------------------------------------------------

    def _open(self, out: list[Event], number: int, fields: dict[str, Any], t: int, offset: int = 0) -> Channel:
        kind = fields.get("kind")
        if isinstance(kind, str) and kind in KINDS:
            return self._web.open(out, number, fields, t, offset)
        if kind == "stderr":
            return ErrorPipe(self._pipes, number, fields, self._limit, offset)
        return Pipe(self._pipes, number, fields, self._limit, offset)

    def _close(self, out: list[Event], number: int, record: Record) -> None:
        channel = self._channels.get(number) or self._unannounced(out, number, record.t)
        channel.close(out, record)
        if channel.kind in KINDS:  # there are many of them; a pipe may close once more, when the process has ended
            self._closed[number] = self._channels.pop(number)
            if len(self._closed) > CLOSED_LIMIT:
                self._closed.popitem(last=False)

    def _note(self, out: list[Event], record: Record) -> None:
        fields = record.body if isinstance(record.body, dict) else {}
        channel = self._channels.get(record.channel) if record.channel is not None else None
        where = "" if channel is None else channel.where()
        was = channel if record.channel is None else channel or self._closed.get(record.channel)
        if record.kind == GAP:
            self._lose(record.channel, number_of(fields.get("bytes")) or 0, str(fields.get("why")))
        spans = _note_spans(record.channel, fields)
        note = Note(record.kind, record.channel, fields, spans, where)
        if was is not None and self._editing.is_edit(record.kind, fields, was):
            note = made(record.kind, was.number, fields, spans, where)
            talk = self._pipes.talk if isinstance(was, Pipe) else None
            self._editing.note(out, note, was, talk, self._talks.main, record.t)
        else:
            self._emitter.tell(out, note, self._talks.main, record.t)
        self._apply(out, record, fields, spans, channel)

    def _apply(
        self,
        out: list[Event],
        record: Record,
        fields: dict[str, Any],
        spans: tuple[Span, ...],
        channel: Channel | None,
    ) -> None:
        """What a rewrite does to HTTP."""
        if record.kind == REWRITE:
            self._web.changed(record.channel, spans)
        data = fields.get("data")
        is_insertion = record.kind == REWRITE and fields.get("length") == 0
        if not is_insertion or not isinstance(data, bytes) or not starts_http(data):
            return
        if isinstance(channel, TcpChannel | BodyChannel):
            channel.inject(out, record.t, data, str(fields.get("by")))

    def _lose(self, number: int | None, size: int, why: str) -> None:
        """Bytes of a channel (None: of any) are missing: whatever they said is not known."""
        for channel in self._channels.values():
            if number in (None, channel.number):
                channel.gap(size, why)

    # -- small parts -----------------------------------------------------------------------------------------------

    def _is_due(self, t: int) -> bool:
        due = self._next_deadline()
        return due is not None and due <= t

    def _next_deadline(self) -> int | None:
        slow = next((exchange.t_alive + SLOW_REQUEST_US for exchange in self._watch.values()), None)
        all_due = (slow, self._pipes.deadline, self._web.deadline)
        return min((due for due in all_due if due is not None), default=None)

    def _unannounced(self, out: list[Event], number: int, t: int) -> Channel:
        """A channel whose open record was lost.

        Channel 0 of a wrapped server is its input, the rest its output; over HTTP every other one carries requests.
        """
        fields: dict[str, Any] = {"kind": {0: "stdin", 1: "stdout", 2: "stderr"}.get(number, "")}
        fields["dir"] = "c2s" if number == 0 else "s2c"
        if self._is_http:
            fields = {"kind": "tcp", "dir": "s2c" if number % 2 else "c2s", "conn": number // 2}
        channel = self._channels[number] = self._open(out, number, fields, t)
        return channel

    def _resume(self, number: Any, fields: Any) -> None:
        """A channel that was open when this part began; the line it was in the middle of is not whole."""
        if isinstance(fields, dict) and str(number).isdecimal():
            offset = number_of(fields.get("offset")) or 0
            channel = self._open(self._early, int(number), fields, 0, offset)
            channel.resume()
            self._channels[int(number)] = channel


def _note_spans(channel: int | None, fields: dict[str, Any]) -> tuple[Span, ...]:
    start, length = number_of(fields.get("start")), number_of(fields.get("length"))
    if channel is None or start is None or length is None:
        return ()
    return (Span(channel, start, start + length),)
