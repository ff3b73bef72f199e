"""The one decoder: records in, events out, for a live session and for a saved one alike.

    records ─▶ frames ─▶ messages ─▶ exchanges       each numbered in order of appearance (``n``)
                 └───────────┴───────────┴─▶ checks ─▶ findings (``at`` the event they hang on)

`Decoder.feed` takes one record and returns the events it leads to; `Decoder.advance` tells it the time, so that a
deadline fires at its own moment even when nothing arrives; `Decoder.finish` says that no more will come. There is no
I/O and no clock in here, and no input raises an exception.
"""

from collections.abc import Iterable
from typing import Any, Final

from mcpsniff import checks
from mcpsniff.capture.records import CHUNK, CLOSE, GAP, OPEN, Header, Record
from mcpsniff.checks import Finding, Runner
from mcpsniff.protocol.by_revision import revision_flaws
from mcpsniff.protocol.conversation import Conversation
from mcpsniff.protocol.events import Close, Note, Stderr, StillOpen, StillRunning
from mcpsniff.protocol.exchanges import OTHER, Exchange, Exchanges
from mcpsniff.protocol.fragments import FragmentWatch
from mcpsniff.protocol.jsonrpc import BATCH_CUT, classify
from mcpsniff.protocol.message import INVALID, Message
from mcpsniff.protocol.reading import JsonReader
from mcpsniff.wire.frames import DEFAULT_FRAME_LIMIT, EMPTY_LINE, INCOMPLETE, Frame, Span
from mcpsniff.wire.ndjson import LineSplitter

SLOW_REQUEST_US: Final = 60_000_000
"""A request without an answer or progress for this long is slow (the time-out of the TypeScript SDK)."""
SLOW_EXIT_US: Final = 2_000_000
"""A server that lives on for this long after its input ended exits slowly (both SDK families then signal it)."""

type Event = Frame | Message | Exchange | Finding | Stderr | Close | Note


class Channel:
    """One direction of one stream, as its ``open`` record describes it."""

    def __init__(self, number: int, fields: dict[str, Any], limit: int, offset: int = 0) -> None:
        self.number = number
        self.kind = _text(fields.get("kind"))
        self.direction = "c2s" if fields.get("dir") == "c2s" else "s2c"
        self.connection = fields.get("conn", 0)
        self.splitter = LineSplitter(number, self.direction, limit=limit, offset=offset)
        self.closed = False


class Decoder:
    """Decodes the records of one capture. See the module for how it is used."""

    def __init__(
        self,
        header: Header | None = None,
        *,
        frame_limit: int = DEFAULT_FRAME_LIMIT,
        runner: Runner | None = None,
        joined_late: bool = False,
    ) -> None:
        checks.load()
        self._n = 0
        self._limit = frame_limit
        self._runner = Runner() if runner is None else runner
        self._reader = JsonReader()
        self._channels: dict[int, Channel] = {}
        self._lingering: tuple[int, Close] | None = None
        self._client_eof: int | None = None
        self._unanswered = 0
        self.conversation = Conversation(1, joined_late=joined_late)
        self.exchanges = Exchanges(joined_late=joined_late)
        self._fragments = FragmentWatch()
        for number, fields in ((header.channels if header else None) or {}).items():
            self._resume(number, fields)

    # -- what the world tells the decoder --------------------------------------------------------------------------

    def feed(self, record: Record) -> list[Event]:
        """The events that ``record`` leads to, deadlines that passed before it included, in order."""
        out = self.advance(record.t) if self._is_due(record.t) else []
        if record.kind == CHUNK:
            self._chunk(out, record)
        elif record.kind == OPEN and record.channel is not None:
            self._channels[record.channel] = Channel(record.channel, record.body, self._limit)
        elif record.kind == CLOSE and record.channel is not None:
            self._close(out, record)
        elif record.kind != OPEN:
            self._note(out, record)
        return out

    def advance(self, t: int) -> list[Event]:
        """The events of all deadlines up to ``t`` (microseconds since the capture started)."""
        out: list[Event] = []
        while (due := self._next_deadline()) is not None and due <= t:
            if self._lingering is not None and self._lingering[0] == due:
                close = self._lingering[1]
                self._lingering = None
                self._judge(out, StillRunning(close, due, SLOW_EXIT_US), close.n, due)
            else:
                exchange = self.exchanges.pop_silent()
                self._judge(out, StillOpen(exchange, due, SLOW_REQUEST_US), exchange.request, due)
        return out

    def finish(self) -> list[Event]:
        """Nothing more will come: lines held back are judged and open exchanges are emitted as they are."""
        out: list[Event] = []
        self._judge_messages(out, self._fragments.release_all())
        for exchange in self.exchanges.still_open():
            self._emit_exchange(out, exchange, exchange.t_alive)
        return out

    # -- records ---------------------------------------------------------------------------------------------------

    def _chunk(self, out: list[Event], record: Record) -> None:
        channel = self._channels.get(record.channel) if record.channel is not None else None
        if channel is None:
            channel = self._unannounced(record.channel or 0)
        for frame in channel.splitter.feed(record.t, record.body):
            self._frame(out, channel, frame)

    def _close(self, out: list[Event], record: Record) -> None:
        channel = self._channels.get(record.channel or 0) or self._unannounced(record.channel or 0)
        for frame in channel.splitter.finish(record.t):
            self._frame(out, channel, frame)
        close = _close_event(channel, record)
        if channel.kind == "stderr":
            self._emit(out, close, record.t)
            return
        released = self._fragments.release(channel.number)
        self._judge_messages(out, released)
        ended = channel.direction
        if close.ends_process:
            close.open_requests = self._unanswered + self.exchanges.open_requests("c2s")
        elif not channel.closed:
            close.open_requests = self.exchanges.open_requests(OTHER[ended])
            self._unanswered += close.open_requests if ended == "s2c" else 0
        channel.closed = True
        self._emit(out, close, record.t)
        self.conversation.end(close)
        self._watch_the_exit(close)
        abandoned = self.exchanges.abandon(record.t, OTHER[ended])
        if close.ends_process:
            abandoned += self.exchanges.abandon(record.t, ended)
        self._judge(out, close, close.n, record.t)
        for exchange in abandoned:
            self._emit_exchange(out, exchange, record.t)

    def _watch_the_exit(self, close: Close) -> None:
        if close.kind == "stdin" and close.how == "eof" and self._client_eof is None:
            self._client_eof = close.t
            self._lingering = (close.t + SLOW_EXIT_US, close)
        elif close.ends_process or (close.kind == "stdout" and close.how == "error"):
            self._lingering = None

    def _note(self, out: list[Event], record: Record) -> None:
        if record.kind == GAP:
            self._lose(record.channel)
        fields = record.body if isinstance(record.body, dict) else {}
        note = Note(record.kind, record.channel, fields, _note_spans(record.channel, fields))
        self._emit(out, note, record.t)
        self._judge(out, note, note.n, record.t)

    def _lose(self, number: int | None) -> None:
        """Bytes of a channel (None: of any) are missing: whatever they said is not known."""
        for channel in self._channels.values():
            if number in (None, channel.number):
                channel.splitter.gap()
                if channel.kind != "stderr":
                    self._forget(channel.direction)

    def _forget(self, direction: str) -> None:
        self.exchanges.lose(direction)
        self.conversation.lose()

    # -- frames and messages ---------------------------------------------------------------------------------------

    def _frame(self, out: list[Event], channel: Channel, frame: Frame) -> None:
        if channel.kind == "stderr":
            self._stderr(out, frame)
            return
        self._n += 1
        frame.n = self._n
        out.append(frame)
        out.extend(self._runner.frame(frame, self.conversation))
        if frame.flaws:
            self._remember_flaws(frame)
            if EMPTY_LINE in frame.flaws:
                return
        whole = None
        for message in classify(frame, self._reader):
            if message.batch is not None and whole is not None:
                message.batch = whole.n
            else:
                whole = message
            self._message(out, message)

    def _message(self, out: list[Event], message: Message) -> None:
        self._n += 1
        message.n = self._n
        message.t = message.frame.t_last
        message.conversation = self.conversation.number
        message.revision = self.conversation.govern(message)
        message.facts = self.conversation.place(message)
        ended = self.exchanges.observe(message)
        asked = message.link if message.link is not None and message.link.response == message.n else None
        if asked is not None:
            message.revision = self.conversation.govern(message)
        if message.revision is not None:
            message.flaws += revision_flaws(message, message.revision)
        if message.flaws and _is_partly_unknown(message):
            self._forget(message.direction)
        out.append(message)
        for exchange in ended:
            self._emit_exchange(out, exchange, message.t)
        if message.flaws or self._fragments.watching:
            self._judge_messages(out, self._fragments.observe(message))
        else:
            out.extend(self._runner.message(message, self.conversation))
        self.conversation.observe(message, asked)

    def _judge_messages(self, out: list[Event], messages: Iterable[Message]) -> None:
        for message in messages:
            out.extend(self._runner.message(message, self.conversation))

    def _stderr(self, out: list[Event], frame: Frame) -> None:
        text = frame.payload.decode(errors="replace").removesuffix("\r")
        line = Stderr(frame.channel, text, frame.spans, frame.flaws)
        self._emit(out, line, frame.t_last)
        if frame.flaws:
            self._judge(out, line, line.n, frame.t_last)
            self._remember_flaws(frame)

    def _remember_flaws(self, frame: Frame) -> None:
        self.conversation.frame_flaws.update((frame.channel, flaw) for flaw in frame.flaws)

    # -- small parts -----------------------------------------------------------------------------------------------

    def _emit(self, out: list[Event], event: Stderr | Close | Note, t: int) -> None:
        self._n += 1
        event.n = self._n
        event.t = t
        out.append(event)

    def _emit_exchange(self, out: list[Event], exchange: Exchange, t: int) -> None:
        self._n += 1
        exchange.n = self._n
        exchange.t = t
        out.append(exchange)
        self._judge(out, exchange, exchange.n, t)

    def _judge(self, out: list[Event], item: Any, at: int, t: int) -> None:
        out.extend(self._runner.item(item, self.conversation, at, t))

    def _is_due(self, t: int) -> bool:
        due = self._next_deadline()
        return due is not None and due <= t

    def _next_deadline(self) -> int | None:
        silent = self.exchanges.oldest_sign_of_life()
        slow = None if silent is None else silent + SLOW_REQUEST_US
        if self._lingering is None:
            return slow
        return self._lingering[0] if slow is None else min(slow, self._lingering[0])

    def _unannounced(self, number: int) -> Channel:
        """A channel whose open record was lost: channel 0 of a wrapped server is its input, the rest its output."""
        kind = {0: "stdin", 1: "stdout", 2: "stderr"}.get(number, "")
        channel = Channel(number, {"kind": kind, "dir": "c2s" if number == 0 else "s2c"}, self._limit)
        self._channels[number] = channel
        return channel

    def _resume(self, number: Any, fields: Any) -> None:
        """A channel that was open when this part began; the line it was in the middle of is not whole."""
        if isinstance(fields, dict) and str(number).isdecimal():
            offset = fields.get("offset")
            channel = Channel(int(number), fields, self._limit, offset if isinstance(offset, int) else 0)
            channel.splitter.gap()
            self._channels[int(number)] = channel


def _is_partly_unknown(message: Message) -> bool:
    """True if it said something, and the observer does not know what: kept in part, or too long a batch."""
    return BATCH_CUT in message.flaws or (message.kind == INVALID and not INCOMPLETE.isdisjoint(message.flaws))


def _close_event(channel: Channel, record: Record) -> Close:
    fields = record.body if isinstance(record.body, dict) else {}
    sent = fields.get("sent")
    return Close(
        channel.number,
        channel.kind,
        channel.direction,
        _text(fields.get("how")),
        _number(fields.get("status")),
        _number(fields.get("signal")),
        _text(fields.get("error")) or None,
        _text(fields.get("by")) or None,
        tuple(str(name) for name in sent) if isinstance(sent, list) else (),
    )


def _note_spans(channel: int | None, fields: dict[str, Any]) -> tuple[Span, ...]:
    start, length = _number(fields.get("start")), _number(fields.get("length"))
    if channel is None or start is None or length is None:
        return ()
    return (Span(channel, start, start + length),)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
