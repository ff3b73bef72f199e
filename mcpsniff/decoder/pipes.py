"""The pipes of a wrapped server: lines on stdin and stdout, text on stderr, and the end of the process."""

from typing import Any, Final

from mcpsniff.capture.records import Record
from mcpsniff.decoder.channel import Channel, close_event
from mcpsniff.decoder.emitter import Emitter, Event
from mcpsniff.decoder.speech import Speech
from mcpsniff.protocol.events import Close, Stderr, StillRunning
from mcpsniff.protocol.exchanges import OTHER, Exchanges
from mcpsniff.protocol.talk import Talk
from mcpsniff.wire.frames import Frame
from mcpsniff.wire.ndjson import LineSplitter

SLOW_EXIT_US: Final = 2_000_000
"""A server that lives on for this long after its input ended exits slowly (both SDK families then signal it)."""


class Pipes:
    """What the pipes of one server have in common."""

    def __init__(self, emitter: Emitter, speech: Speech, talk: Talk[Exchanges]) -> None:
        self.emitter = emitter
        self.speech = speech
        self.talk = talk
        self.deadline: int | None = None
        """When the server is to have ended, in microseconds; None if nobody waits for it."""
        self._left: Close | None = None
        self._unanswered = 0

    def pass_deadline(self, out: list[Event]) -> None:
        """The server still runs."""
        if self.deadline is not None and self._left is not None:
            due, close = self.deadline, self._left
            self.deadline = None
            moment = StillRunning(close, due, SLOW_EXIT_US)
            self.emitter.judge(out, moment, self.talk.conversation, close.n, due)

    def close(self, out: list[Event], close: Close, *, again: bool, t: int) -> None:
        """A pipe has ended, or the process; ``again`` if that pipe had ended before."""
        conversation, exchanges = self.talk.conversation, self.talk.exchanges
        ended = close.direction
        if close.ends_process:
            close.open_requests = self._unanswered + exchanges.open_requests("c2s")
        elif not again:
            close.open_requests = exchanges.open_requests(OTHER[ended])
            self._unanswered += close.open_requests if ended == "s2c" else 0
        self.emitter.emit(out, close, t)
        conversation.end(close)
        self._watch_the_exit(close)
        abandoned = exchanges.abandon(t, OTHER[ended])
        if close.ends_process:
            abandoned += exchanges.abandon(t, ended)
        self.emitter.judge(out, close, conversation, close.n, t)
        for exchange in abandoned:
            exchange.unseen = exchange.unseen or conversation.is_broken_off
            self.speech.exchange(out, exchange, conversation, t)

    def lose(self, direction: str) -> None:
        """Bytes of that direction are missing."""
        self.talk.exchanges.lose(direction)
        self.talk.conversation.lose()

    def _watch_the_exit(self, close: Close) -> None:
        is_kept_back = self.talk.conversation.is_kept_back
        if close.kind == "stdin" and close.how == "eof" and self._left is None and not is_kept_back:
            self._left = close
            self.deadline = close.t + SLOW_EXIT_US
        elif close.ends_process or (close.kind == "stdout" and close.how == "error"):
            self.deadline = None


class Pipe(Channel):
    """stdin or stdout: a message per line."""

    def __init__(self, pipes: Pipes, number: int, fields: dict[str, Any], limit: int, offset: int = 0) -> None:
        super().__init__(number, fields)
        self._pipes = pipes
        self._speech, self._talk = pipes.speech, pipes.talk
        self._splitter = LineSplitter(number, self.direction, limit=limit, offset=offset)
        self._closed = False

    def feed(self, out: list[Event], t: int, data: bytes) -> None:
        """See `Channel`."""
        for frame in self._splitter.feed(t, data):
            self._speech.line(out, frame, self._talk)

    def close(self, out: list[Event], record: Record) -> None:
        """See `Channel`."""
        for frame in self._splitter.finish(record.t):
            self._speech.line(out, frame, self._talk)
        close = close_event(self, record)
        self._speech.release(out, self._talk.conversation, self.number)
        self._pipes.close(out, close, again=self._closed, t=record.t)
        self._closed = True

    def gap(self, size: int, why: str) -> None:  # noqa: ARG002 - a line is torn wherever bytes are missing
        """See `Channel`."""
        self._splitter.gap()
        self._pipes.lose(self.direction)

    def resume(self) -> None:
        """See `Channel`."""
        self._splitter.gap()


class ErrorPipe(Channel):
    """stderr: any text."""

    def __init__(self, pipes: Pipes, number: int, fields: dict[str, Any], limit: int, offset: int = 0) -> None:
        super().__init__(number, fields)
        self._emitter, self._conversation = pipes.emitter, pipes.talk.conversation
        self._splitter = LineSplitter(number, self.direction, limit=limit, offset=offset)

    def feed(self, out: list[Event], t: int, data: bytes) -> None:
        """See `Channel`."""
        for frame in self._splitter.feed(t, data):
            self._line(out, frame)

    def close(self, out: list[Event], record: Record) -> None:
        """See `Channel`."""
        for frame in self._splitter.finish(record.t):
            self._line(out, frame)
        self._emitter.emit(out, close_event(self, record), record.t)

    def gap(self, size: int, why: str) -> None:  # noqa: ARG002
        """See `Channel`."""
        self._splitter.gap()

    def resume(self) -> None:
        """See `Channel`."""
        self._splitter.gap()

    def _line(self, out: list[Event], frame: Frame) -> None:
        text = frame.payload.decode(errors="replace").removesuffix("\r")
        line = Stderr(frame.channel, text, frame.spans, frame.flaws)
        self._emitter.emit(out, line, frame.t_last)
        if frame.flaws:
            self._emitter.judge(out, line, self._conversation, line.n, frame.t_last)
            self._conversation.frame_flaws.update((frame.channel, flaw) for flaw in frame.flaws)
