"""An event stream that a stock mitmproxy passes on: one event held at a time, in a callback that cannot wait."""

from collections import deque
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from mcpsniff.decoder.bodies import is_like_a_message
from mcpsniff.hooks.actions import Raw, Text
from mcpsniff.hooks.editor import ADDED, BACK, SAME, Edit, Outgoing
from mcpsniff.hooks.talk import Talk
from mcpsniff.hooks.waiting import GoneError
from mcpsniff.protocol.reading import JsonReader
from mcpsniff.proxy.relay import edit_records
from mcpsniff.proxy.relay.edit_records import LIMIT
from mcpsniff.proxy.relay.web.events import line_end_of, made, with_data
from mcpsniff.wire.frames import Frame, Span
from mcpsniff.wire.sse import EventSplitter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcpsniff.hooks.editor import Editor

NO_WAIT: Final = (
    "under mitmproxy nothing can be held in an event stream: an event passes as it was where a hook waits for something"
)
NOT_HERE: Final = "under mitmproxy that cannot be done with an event of a stream, which passes as it was"
NO_BACK: Final = "under mitmproxy nothing can be said to the server in answer to an event of a stream; it is not said"

type Records = Callable[[dict[str, Any]], object]
type Noted = Callable[[bytes], object]


class StreamLane:
    """See `mcpsniff.hooks.editor.Lane`."""

    transport = "http"

    def __init__(self, editor: "Editor", is_gone: Callable[[], bool], late: Callable[[Outgoing], object]) -> None:
        self.late = late
        self.is_over = False
        """Nobody is to wait for anything any more."""
        self._editor = editor
        self._is_gone = is_gone

    @contextmanager
    def holding(self) -> "Iterator[None]":
        """Nobody can wait here: mitmproxy itself would."""
        self._editor.tell_once(NO_WAIT)
        raise GoneError
        yield

    def held(self, by: str, why: str = "") -> None:
        """See `Lane`: it does not come to that."""

    @property
    def is_gone(self) -> bool:
        """See `Lane`."""
        return self.is_over or self._is_gone()


class EditedStream:
    """A streaming callback for the body of an event stream.

    Each piece is told to ``noted`` first, which decides whether this is MCP: ``is_ours`` says None as long as that is
    not known. ``put`` is given the bodies of rewrite records; ``endpoint`` what an event of that name says.
    """

    def __init__(
        self,
        editor: "Editor",
        talk: Talk,
        noted: Noted,
        *,
        is_ours: Callable[[], bool | None],
        is_gone: Callable[[], bool],
        put: Records,
        endpoint: Callable[[str], object],
    ) -> None:
        self._editor = editor
        self._talk = talk
        self._noted = noted
        self._is_ours = is_ours
        self._put = put
        self._endpoint = endpoint
        self._lane = StreamLane(editor, is_gone, self._late_ones)
        self._splitter: EventSplitter | None = EventSplitter(0, "s2c", limit=LIMIT)
        self._reader = JsonReader()
        self._frames: list[Frame] = []
        self._text = bytearray()
        """What came and has not left."""
        self._at = self._came = 0
        """Where in the body that begins and ends."""
        self._like = b"\n"
        self._is_torn = False
        self._torn_by = ""
        """Who has changed the event before, if that ended with the CR of what may be a CR LF."""
        self._late: deque[Outgoing] = deque()

    def __call__(self, data: bytes) -> Iterable[bytes]:
        """Take a piece, or the end if it is empty; return what is to be sent on. An empty piece would end the body."""
        self._noted(data)
        try:
            out = self._passed(data)
        except Exception as error:  # noqa: BLE001 - a bug of ours: the client gets what the server said
            self._splitter = None
            self._editor.tell_once(f"internal error while editing: {error!r}; the stream goes on unedited")
            out = [self._take(self._came)]
        return [piece for piece in out if piece]

    def _passed(self, data: bytes) -> list[bytes]:
        start, self._came = self._came, self._came + len(data)
        self._text += data
        is_ours = self._is_ours()
        if self._splitter is None or is_ours is False:
            self._splitter = None
            return [self._take(self._came)]
        if data:
            self._frames += self._splitter.feed(0, data, (Span(0, start, self._came),))
        out: list[bytes] = []
        if data.startswith(b"\n") and self._torn_by:  # the end of a line whose beginning has left
            self._put(edit_records.rewrite(self._at, 1, b"", self._torn_by))
            self._take(self._at + 1)
        self._torn_by = "" if data else self._torn_by
        if is_ours:
            frames, self._frames = self._frames, []
            for frame in frames:
                out += self._event(frame)
        if not data:
            self._lane.is_over = True
            late = self._editor.flush(self._lane) if is_ours else []
            out += [self._take(self._came), *[self._added(one) for one in (*self._drained(), *late)]]
        elif is_ours and (not self._splitter.is_inside or self._is_torn or len(self._text) > LIMIT):
            self._is_torn = self._splitter.is_inside
            out.append(self._take(self._came))
        if is_ours and data and not self._is_torn and not self._text:
            out += [self._added(one) for one in self._drained()]
        return out

    def _event(self, frame: Frame) -> list[bytes]:
        """What leaves for an event that is complete."""
        stop = frame.spans[-1].stop
        place = stop - self._at
        if self._text[place - 1 : place + 1] == b"\r\n":  # its line end goes on
            stop += 1
        if self._is_torn:
            self._is_torn = False
            return [self._take(stop)]
        if frame.sse is not None and frame.sse.event == "endpoint" and frame.sse.dispatched:
            self._endpoint(bytes(frame.payload).decode("utf-8", "replace").strip())
        elif is_like_a_message(frame.payload):
            edit = self._editor.edit(frame, self._talk, self._lane, self._reader)
            if edit is not None:
                return self._left(edit, stop)
        return [self._take(stop)]

    def _left(self, edit: Edit, stop: int) -> list[bytes]:
        """What leaves for the event that ends at ``stop``, and the records of that."""
        out: list[bytes] = []
        start = self._at
        event = bytes(self._text[: stop - start])
        self._like = line_end_of(event, self._like)
        has_left = False
        for one in edit.leaving:
            if one.what == BACK:
                self._editor.tell_once(f"{one.by}: {NO_BACK}")
            elif one.what == ADDED:
                out.append(self._added(one, stop if has_left else start))
            else:
                has_left = True
                data = event if one.what == SAME else self._changed(event, one)
                if data != event:
                    self._record(start, len(event), data, one)
                out.append(data)
        if not has_left:
            self._put(edit_records.rewrite(start, len(event), b"", edit.by, edit.why))
        self._take(stop)
        self._torn_by = edit.by if event.endswith(b"\r") and not self._text else ""
        return out

    def _changed(self, event: bytes, out: Outgoing) -> bytes:
        """The event as it leaves."""
        if isinstance(out.action, Raw):
            return out.action.data
        if isinstance(out.action, Text):
            return with_data(event, out.action.data)
        if out.action is not None:
            self._editor.tell_once(f"{out.by}: {NOT_HERE} ({type(out.action).__name__})")
            return event
        return with_data(event, out.data)

    def _added(self, out: Outgoing, at: int | None = None) -> bytes:
        """A message that leaves besides what arrives, at a place of the body."""
        if out.action is None:
            data = made(out.data, self._like)
        elif isinstance(out.action, Raw):
            data = out.action.data
        elif isinstance(out.action, Text):
            data = made(out.action.data, self._like)
        else:
            self._editor.tell_once(f"{out.by}: {NOT_HERE} ({type(out.action).__name__})")
            return b""
        self._record(self._at if at is None else at, 0, data, out)
        return data

    def _record(self, start: int, length: int, data: bytes, out: Outgoing) -> None:
        self._put(edit_records.rewrite(start, length, data, out.by, out.why))

    def _take(self, stop: int) -> bytes:
        """Take off what arrived before ``stop``, which leaves."""
        size = max(0, stop - self._at)
        data = bytes(self._text[:size])
        del self._text[:size]
        self._at += len(data)
        return data

    def _late_ones(self, out: Outgoing) -> None:
        """See `Lane`; it leaves with the next piece, or at the end."""
        self._late.append(out)

    def _drained(self) -> "list[Outgoing]":
        out = []
        while self._late:
            out.append(self._late.popleft())
        return out
