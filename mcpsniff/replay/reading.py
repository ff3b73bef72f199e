"""Make a script of a capture: decode it once, then place what was said, and say what the capture lacks for a replay."""

from collections.abc import Iterator
from typing import Final

from mcpsniff.capture.records import CHUNK, Record
from mcpsniff.checks import Runner
from mcpsniff.decoder import Decoder, Event
from mcpsniff.protocol.events import Close, Note, Stderr
from mcpsniff.protocol.http import OPEN, STREAMING, Http, HttpExchange
from mcpsniff.protocol.message import BATCH, Message
from mcpsniff.protocol.talk import MODERN
from mcpsniff.replay.causes import Causes, add
from mcpsniff.replay.edited import as_the_client_saw
from mcpsniff.replay.lacks import find_lacks
from mcpsniff.replay.script import PIPE, Line, Piece, Scene, Script, Talk, Web, is_empty_batch
from mcpsniff.transcript.session import Source
from mcpsniff.wire.frames import EMPTY_LINE, Frame

FRAME_LIMIT: Final = 256 * 1024 * 1024
"""Bytes of one message that are replayed; a longer one is said to be lacking."""


def read_script(source: Source, *, with_bytes: bool = False) -> Script:
    """Read a capture whole and make its script: where something was changed on the way, as the client saw it.

    ``with_bytes`` also keeps the recorded bytes as each read returned them (`Script.pieces`), which needs about as much
    memory as the capture is long. Raises CaptureError when a part of the capture turned into something else.
    """
    script = Script(source.path, source.header)
    reader = _Reader(script)
    for events in as_the_client_saw(_events(source, script, with_bytes=with_bytes)):
        reader.feed(events)
    reader.finish()
    find_lacks(script, source, reader.notes)
    return script


def _events(source: Source, script: Script, *, with_bytes: bool) -> Iterator[list[Event]]:
    decoder = Decoder(source.header, joined_late=source.joined_late, frame_limit=FRAME_LIMIT, runner=Runner(()))
    sizes = {int(number): _count(fields.get("offset")) for number, fields in (source.header.channels or {}).items()}
    for record in source.records():
        if with_bytes:
            _keep(script, sizes, record)
        if events := decoder.feed(record):
            yield events
    yield decoder.finish()


def _keep(script: Script, sizes: dict[int, int], record: Record) -> None:
    if record.channel is None or record.kind != CHUNK:
        return
    offset = sizes.get(record.channel, 0)
    script.chunks.setdefault(record.channel, []).append((offset, Piece(record.t, record.body)))
    sizes[record.channel] = offset + len(record.body)


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


class _Reader:
    """Takes the events of a capture and places them when all are there: which talk is of which kind is known late."""

    def __init__(self, script: Script) -> None:
        self.notes: list[Note] = []
        self._script = script
        self._items: list[Message | Frame | Stderr | Close | Http] = []
        self._spoken: set[int] = set()
        """The frames that have messages, by number."""
        self._batches: dict[int, tuple[Message, list[Message]]] = {}
        """The batches by number, with their elements."""
        self._talks: dict[tuple[str, object], Causes] = {}
        self._webs: dict[int, Web] = {}
        self._has_left = False

    def feed(self, events: list[Event]) -> None:
        """Take note of the events that a script is made of."""
        for event in events:
            if isinstance(event, Message):
                self._spoken.add(event.frame.n)
                if event.kind == BATCH and not is_empty_batch(event):
                    self._batches[event.n] = (event, [])
                elif event.fact("redelivered") is None:
                    self._items.append(event)
                    if event.batch is not None and event.batch in self._batches:
                        self._batches[event.batch][1].append(event)
            elif isinstance(event, Frame | Stderr | Close):
                self._items.append(event)
            elif isinstance(event, Http):
                self._items.append(event)
                self._web(event)
            elif isinstance(event, Note):
                self.notes.append(event)

    def finish(self) -> None:
        """Place everything, in order."""
        for item in self._items:
            if isinstance(item, Message):
                self._message(item)
            elif isinstance(item, Frame):
                self._frame(item)
            elif isinstance(item, Http):
                self._end(item)
            elif isinstance(item, Stderr):
                scene = self._pipe().current()
                add(scene, Line(item.n, item.t, text=item.text))
            else:
                self._close(item)
        self._script.webs = [self._webs[number] for number in sorted(self._webs)]
        self._script.talks = [causes.talk for causes in self._talks.values()]

    # -- talks -----------------------------------------------------------------------------------------------------

    def _message(self, message: Message) -> None:
        causes = self._causes(message)
        if message.batch is not None and message.direction == "s2c":
            whole, elements = self._batches.get(message.batch, (None, []))
            if whole is not None and elements[0] is message:
                causes.batch(whole, elements)
        line = causes.message(message)
        web = None if message.http is None else self._webs.get(message.http.number)
        if web is None:
            return
        self._claim(web, causes.talk)
        if line is None and causes.last is not None:
            causes.last.web = web
            web.scenes.append(causes.last)
        elif line is not None and message.direction == "s2c":
            web.lines.append(Line(line.n, line.t, message=message, frame=message.frame, batch=line.batch))

    def _causes(self, message: Message) -> Causes:
        """The talk that a message belongs to."""
        http = message.http
        if http is None:
            return self._pipe()
        kind = MODERN if http.talk is None else http.talk.kind
        key = (kind, http.authority) if kind == MODERN else (kind, message.conversation)
        causes = self._talks.get(key)
        if causes is None:
            causes = self._talks[key] = Causes(Talk(message.conversation, kind, http.authority))
            if http.talk is not None:
                causes.talk.session_id = http.talk.conversation.session_id
        return causes

    def _pipe(self) -> Causes:
        causes = self._talks.get((PIPE, 1))
        if causes is None:
            causes = self._talks[PIPE, 1] = Causes(Talk(1, PIPE, ""))
        return causes

    def _close(self, close: Close) -> None:
        """The client has closed the server's input; or the process ended of its own accord, or could not be started."""
        causes = self._talks.get((PIPE, 1))
        if causes is None:
            return
        if close.kind == "stdin":
            causes.leave()
            self._has_left = True
        elif close.ends_process and close.by is None and not close.sent and not self._has_left:
            add(causes.current(), Line(close.n, close.t, close=close))

    # -- HTTP ------------------------------------------------------------------------------------------------------

    def _web(self, event: Http) -> None:
        """Keep what the events of an HTTP exchange tell; each part of it is told once."""
        web = self._webs.get(event.exchange.number)
        if web is None:
            web = self._webs[event.exchange.number] = Web(event.exchange, event.state, event.asked, event.answered)
        else:
            kept = (web.asked.kept or event.asked.kept, web.answered.kept or event.answered.kept)
            web.state, web.asked, web.answered = event.state, event.asked, event.answered
            web.asked.kept, web.answered.kept = kept
        if event.exchange.is_over:
            web.ended_at = event.t

    def _claim(self, web: Web, talk: Talk) -> None:
        if web.talk is None:
            web.talk = talk
            talk.webs.append(web)

    def _frame(self, frame: Frame) -> None:
        """A frame without a message: a comment, an id, a reconnection time, an endpoint, an empty line."""
        if frame.n in self._spoken:
            return
        web = self._webs.get(frame.http or 0)
        if web is None and frame.direction == "s2c" and frame.http is None:
            add(self._pipe().current(), Line(frame.n, frame.t_last, frame=frame))
        if web is None or EMPTY_LINE in frame.flaws:
            return
        web.lines.append(Line(frame.n, frame.t_last, frame=frame))
        self._place(web.http, Line(frame.n, frame.t_last, frame=frame))

    def _end(self, event: Http) -> None:
        """An HTTP exchange is over; a stream that the client hung up on was not ended by what the server says."""
        http = event.exchange
        web = self._webs[http.number]
        if http.talk is not None and web.talk is None:
            causes = self._by_http(http)
            if causes is not None:
                self._claim(web, causes.talk)
        is_over = event.state not in (OPEN, STREAMING)
        if http.stream is not None and is_over and event.ended_by != "client":
            self._place(http, Line(event.n, event.t, end=web))

    def _place(self, http: HttpExchange, line: Line) -> None:
        """Put a line into the scene of the POST whose stream it is on."""
        causes = self._by_http(http)
        scene: Scene | None = None if causes is None else causes.of_http(http.origin)
        if scene is not None:
            add(scene, line)

    def _by_http(self, http: HttpExchange) -> Causes | None:
        if http.talk is None:
            return None
        kind, number = http.talk.kind, http.talk.conversation.number
        return self._talks.get((kind, http.authority) if kind == MODERN else (kind, number))
