"""A live event stream, one event held at a time; others may let their messages leave between two events."""

from collections import deque
from dataclasses import dataclass
from threading import get_ident
from typing import TYPE_CHECKING, Final

from mcpsniff.decoder.bodies import is_like_a_message
from mcpsniff.hooks.actions import Cut, Disconnect, HttpAnswer, Raw, Stall
from mcpsniff.hooks.editor import ADDED, BACK, SAME, Edit, Outgoing
from mcpsniff.protocol.reading import JsonReader
from mcpsniff.proxy.ends import RESPONSES
from mcpsniff.proxy.relay.edit_records import LIMIT
from mcpsniff.proxy.relay.web.chunks import Chunks, size_in
from mcpsniff.proxy.relay.web.events import line_end_of, made, with_data
from mcpsniff.proxy.relay.web.held import Errand
from mcpsniff.proxy.relay.web.output import GoneError, pace_of, us_of_pace
from mcpsniff.proxy.relay.web.pushes import Pushes
from mcpsniff.proxy.relay.web.replies import tell_lost, unedited
from mcpsniff.wire.frames import TRUNCATED, Frame
from mcpsniff.wire.http1_parts import CHUNKED, Data, Head
from mcpsniff.wire.sse import EventSplitter

if TYPE_CHECKING:
    from mcpsniff.proxy.relay.web.carrier import WebCarrier

OURS: Final = "mcpsniff"
FRAMING: Final = "the sizes of chunks made true"
ENDPOINT: Final = "the client would have gone past mcpsniff"
ENDED: Final = "the stream was ended before this"


class BrokenOffError(Exception):
    """The connection is to be broken off, as ``by`` wants it."""

    def __init__(self, by: str) -> None:
        super().__init__(by)
        self.by = by


class StalledError(Exception):
    """Nothing leaves any more, and it does not end; ``args`` are who wants it so, and why."""


@dataclass(slots=True)
class _Run:
    """Bytes of the body that arrived together and have not left."""

    start: int
    lead: bytes
    data: bytes
    left: int
    """Bytes of the same chunk after them."""
    at: int = 0
    """How many of ``data`` have left."""


class EventStream:
    """Carries the body that follows ``head``, whose own bytes have left, to the client."""

    def __init__(self, carrier: "WebCarrier", errand: Errand, head: Head) -> None:
        self._carrier = carrier
        self._hub = carrier.hub
        self._errand = errand
        self._output = carrier.outputs[RESPONSES]
        self._is_chunked = head.framing == CHUNKED
        self._chunks = Chunks(is_chunked=self._is_chunked)
        self._splitter = EventSplitter(self._output.channel, "s2c", limit=LIMIT)
        self._reader = JsonReader()
        self._runs: deque[_Run] = deque()
        self._held = 0
        self._left = -1
        """Bytes to come of the chunk that has begun to arrive; -1: none has, or its end has left."""
        self._like = b"\n"
        self._is_torn = self._is_over = False
        self._thread = get_ident()
        self._pushes = Pushes(self._let_out)
        self.lane = carrier.lane(RESPONSES, self._late)

    # -- what arrives ----------------------------------------------------------------------------------------------

    def data(self, part: Data, raw: bytes) -> None:
        """The next bytes of the body; ``raw`` are these with the framing before them. Raises GoneError and others."""
        lead = raw[: len(raw) - len(part.data)]
        if lead:
            self._left = size_in(lead)
        self._left -= len(part.data)
        start = part.span.stop - len(raw)
        self._runs.append(_Run(start, lead, part.data, self._left))
        self._held += len(raw)
        for frame in self._splitter.feed(part.t, part.data, (part.span,)):
            self._frame(frame, frame.spans[-1].stop)
        if not self._splitter.is_inside:
            self._pass(part.span.stop)
        elif self._is_torn or self._held > LIMIT:
            self._tear()
            self._pass(part.span.stop)

    @property
    def awaits_end_of_chunk(self) -> bool:
        """True if all of a chunk has left but for the line end after it, which must not be waited for any longer."""
        return self._is_chunked and self._left == 0 and not self._runs

    def end_of_chunk(self, raw: bytes, start: int) -> None:
        """That line end is ``raw``, at ``start`` of the channel."""
        with self._output.lock:
            self._left = -1
            out = self._chunks.close()
            if out != raw:
                self._output.rewrite(start, len(raw), out, OURS, FRAMING)
            self._output.passed = start + len(raw)
            self._output.write(out)

    def end(self, raw: bytes, start: int) -> None:
        """The body is over; ``raw`` is the framing that ends it, which is at ``start`` of the channel."""
        self._end(start)
        with self._output.lock:
            framing = self._chunks.fitting(raw) if raw else b""
            if framing != raw:
                self._output.rewrite(start, len(raw), framing, OURS, FRAMING)
            self._output.passed = start + len(raw)
            self._output.write(framing)

    def cut_off(self, start: int) -> None:
        """The body has broken off before ``start``: what there is of it passes, and what was kept back for later."""
        self._end(start)

    def _end(self, start: int) -> None:
        """Let all leave that is still to leave, where nothing more arrives."""
        for out in self._hub.editor.flush(self.lane):
            self.push(out)
        with self._output.lock:
            self._let_out()
            self._pass_rest(start)
            self.close()

    def push(self, out: Outgoing) -> bool:
        """Let a message of somebody else leave between two events, from any thread, without waiting for its reader.

        False if the stream is over, or too much waits for its reader already.
        """
        if self._is_over:
            return False
        if get_ident() != self._thread:
            return self._pushes.put(out) or self._is_unread()
        with self._output.lock:
            self._let_out()
            if self._is_torn:
                return self._pushes.put(out) or self._is_unread()
            try:
                self._insert(self._text_of(out), out.by, out.why)
            except GoneError:
                return False
            return True

    def close(self) -> None:
        """The stream is over: nothing leaves on it any more."""
        self._is_over = True
        tell_lost(self._hub, self._pushes.close())

    def _is_unread(self) -> bool:
        """There is no room for a message to the client: say so. Always False."""
        if not self._is_over:
            self._hub.editor.tell_once("a client does not read its stream: messages of hooks to it wait, up to 4 MiB")
        return False

    def _let_out(self) -> bool:
        """Let leave what was pushed; False if that cannot be now."""
        with self._output.lock:
            try:
                while not self._is_torn and not self._is_over:
                    out = self._pushes.take()
                    if out is None:
                        return True
                    self._insert(self._text_of(out), out.by, out.why)
            except GoneError:  # the stream's own thread finds out
                self._pushes.close()
            return False

    def _late(self, out: Outgoing) -> None:
        """A message that was kept back; see `mcpsniff.hooks.editor.Lane`."""
        if not self.push(out) and not self._errand.session.push(out):
            tell_lost(self._hub, [out])

    def _tear(self) -> None:
        """The event at hand is too large to be held."""
        if not self._is_torn:
            self._is_torn = True
            unedited(self._hub, self._output.channel, f"an event of more than {LIMIT >> 20} MiB")

    # -- events ----------------------------------------------------------------------------------------------------

    def _frame(self, frame: Frame, stop: int) -> None:
        """An event is complete; it ends at ``stop`` of the channel."""
        with self._output.lock:
            stop = self._with_line_feed(stop)
            if TRUNCATED in frame.flaws:
                self._tear()
            if self._is_torn:
                self._pass(stop)
                self._is_torn = False
                self._let_out()
                return
        sse = frame.sse
        if sse is None or not sse.dispatched or not frame.payload:
            self._pass(stop)
        elif sse.event == "endpoint" and self._errand.head.method == "GET":
            self._endpoint(frame, stop)
        elif is_like_a_message(frame.payload):
            self._message(frame, stop)
        else:
            self._pass(stop)

    def _message(self, frame: Frame, stop: int) -> None:
        clock = self._carrier.recorder.clock
        began = clock()
        self._at_hand(stop)
        edit = self._hub.editor.edit(frame, self._errand.session.talk, self.lane, self._reader)
        us = (clock() - began) // 1000
        with self._output.lock:
            if edit is None:
                self._hold(self._at, stop, us, self._hub.editors)
                self._pass(stop)
            else:
                self._leave(edit, stop, us)

    def _leave(self, edit: Edit, stop: int, us: int) -> None:
        """Let leave what an edit has made of the event that ends at ``stop``."""
        start = self._at
        for out in edit.leaving:
            if out.headers:
                self._hub.editor.tell_once(f"{out.by}: an event has no headers of its own; they are left as they are")
            if out.what == BACK:
                self._carrier.give_back(self._errand.session, out)
            elif out.action is not None:
                self._act(out, stop, us)
            elif out.what == ADDED:
                self._insert(self._text_of(out), out.by, out.why)
            elif out.what == SAME:
                self._hold(start, stop, us, out.by, out.why)
                self._pass(stop)
            else:
                self._replace(stop, with_data(self._event(stop), out.data), out.by, out.why, us)
        if self._at < stop:
            self._replace(stop, b"", edit.by, edit.why, us)

    def _act(self, out: Outgoing, stop: int, us: int) -> None:
        action = out.action
        text = self._text_of(out)
        if isinstance(action, Raw) and out.what == ADDED:
            self._insert(action.data, out.by, out.why)
        elif isinstance(action, Raw):
            self._replace(stop, action.data, out.by, out.why, us)
        elif isinstance(action, Stall):
            self._replace(stop, b"", out.by, out.why, us)
            self._is_over = True
            raise StalledError(out.by, out.why)
        elif isinstance(action, Disconnect):
            self._replace(stop, b"", out.by, out.why, us)
            self._is_over = True
            raise BrokenOffError(out.by)
        elif isinstance(action, Cut):
            self._is_over = True
            whole = with_data(self._event(stop), out.data) if out.what != ADDED else text
            self._replace(stop, whole[: max(0, action.keep)], out.by, out.why, us, is_last=True)
            raise BrokenOffError(out.by)
        elif isinstance(action, HttpAnswer):
            self._hub.editor.tell_once(f"{out.by}: the response has begun, its status cannot be changed any more")
            self._pass(stop)
        elif out.what == ADDED:
            self._insert(text, out.by, out.why, pace_of(out))
        else:
            whole = with_data(self._event(stop), out.data)
            if whole == self._event(stop):
                self._hold(self._at, stop, us + us_of_pace(out, whole), out.by, out.why, is_meant=True)
                self._pass(stop, pace_of(out))
            else:
                self._replace(stop, whole, out.by, out.why, us, paced=pace_of(out))

    def _endpoint(self, frame: Frame, stop: int) -> None:
        """The event that names the endpoint of HTTP+SSE: one at the upstream's own address would lead past us."""
        relative = self._hub.listener.origins.relative(frame.payload)
        named = frame.payload if relative is None else relative
        self._hub.endpoint(self._errand.session, self._errand.head, named.decode("utf-8", "replace"))
        with self._output.lock:
            if relative is None:
                self._pass(stop)
            else:
                self._replace(stop, with_data(self._event(stop), relative), OURS, ENDPOINT, 0)

    def _text_of(self, out: Outgoing) -> bytes:
        return out.action.data if isinstance(out.action, Raw) else made(out.data, self._like)

    @property
    def _at(self) -> int:
        """The place up to which all has left."""
        return self._output.passed

    def _at_hand(self, stop: int) -> None:
        """The event that ends at ``stop`` is about to be edited."""
        self.lane.at_hand(self._at, stop - self._at)

    def _hold(self, start: int, stop: int, us: int, by: str, why: str = "", *, is_meant: bool = False) -> None:
        self._output.hold(start, stop - start, us, by, why, on_purpose=is_meant or self.lane.was_held)

    # -- what leaves; the lock is held, or nobody else knows of the stream ------------------------------------------

    def _pass(self, stop: int, paced: float = 0.0) -> None:
        """Let what arrived before ``stop`` leave as it came."""
        with self._output.lock:
            pieces: list[bytes] = []
            while self._runs and self._runs[0].start < stop:
                run = self._runs[0]
                if run.lead:
                    pieces.append(self._fitted(run))
                data = run.data[run.at : run.at + stop - run.start]
                after = len(run.data) - run.at - len(data)
                first, framing, rest = self._chunks.put(data, run.left + after)
                self._output.rewrite(run.start + len(first), 0, framing, OURS, FRAMING)
                pieces += [first, framing, rest]
                self._shorten(run, len(data), after)
            self._output.passed = max(self._output.passed, stop)
            self._output.write(b"".join(pieces), paced)

    def _pass_rest(self, stop: int) -> None:
        """Let all leave that arrived before ``stop``, where the body is over."""
        self._pass(stop)

    def _fitted(self, run: _Run) -> bytes:
        """What leaves for the framing before a chunk, which is off the run then."""
        lead = self._chunks.lead(run.lead)
        if lead != run.lead:
            self._output.rewrite(run.start, len(run.lead), lead, OURS, FRAMING)
        self._held -= len(run.lead)
        run.start += len(run.lead)
        run.lead = b""
        return lead

    def _shorten(self, run: _Run, size: int, after: int) -> None:
        run.at += size
        run.start += size
        self._held -= size
        if not after:
            self._runs.popleft()

    def _replace(
        self,
        stop: int,
        data: bytes,
        by: str,
        why: str,
        us: int,
        *,
        paced: float = 0.0,
        is_last: bool = False,
    ) -> None:
        """Let ``data`` leave where stood what arrived before ``stop``; ``is_last``: the body breaks off after it."""
        left = 0
        start = self._output.passed
        while self._runs and self._runs[0].start < stop:
            run = self._runs[0]
            self._held -= len(run.lead)
            run.start += len(run.lead)
            run.lead = b""
            size = min(len(run.data) - run.at, stop - run.start)
            after = len(run.data) - run.at - size
            left = run.left + after
            self._shorten(run, size, after)
        out = b"".join(self._chunks.put(data))
        out += b"" if is_last else self._chunks.pad(left) + (self._chunks.close() if left else b"")
        self._output.rewrite(start, max(stop - start, 0), out, by, why, us=us)
        self._output.passed = max(start, stop)
        self._output.write(out, paced)

    def _insert(self, data: bytes, by: str, why: str, paced: float = 0.0) -> None:
        """Let ``data`` leave besides what arrives, here."""
        out = self._chunks.insert(data)
        self._output.rewrite(self._output.passed, 0, out, by, why)
        self._output.write(out, paced)

    def _event(self, stop: int) -> bytes:
        """The text of the event that ends at ``stop``, without the framing of chunks."""
        pieces = []
        for run in self._runs:
            begin = run.start + len(run.lead)
            if begin >= stop:
                break
            pieces.append(run.data[run.at : run.at + stop - begin])
        event = b"".join(pieces)
        self._like = line_end_of(event, self._like)
        return event

    def _with_line_feed(self, stop: int) -> int:
        """A CR that ends an event may have an LF after it, which is part of its line end."""
        for run in self._runs:
            at = run.at + stop - run.start - len(run.lead)
            if run.at < at < len(run.data):
                return stop + (run.data[at - 1 : at + 1] == b"\r\n")
        return stop
