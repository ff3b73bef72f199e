"""Edit mode on pipes: a thread per direction that holds one line at a time.

What has been said of `mcpsniff.proxy.pump` is true here, too, but that a line goes on when it is whole: its very bytes
if nobody wants anything else, or what the editor has put in its place.
"""

from _thread import allocate_lock
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final

from mcpsniff.capture.records import CLIENT_TO_SERVER
from mcpsniff.hooks.actions import Paced
from mcpsniff.hooks.editor import SAME, Edit, Editor, Outgoing
from mcpsniff.hooks.talk import Talk
from mcpsniff.protocol.reading import JsonReader
from mcpsniff.proxy.pump import BROKEN, CUT, EOF, RESET, SETTLE_AT, Pump
from mcpsniff.proxy.recorder import CHUNK, OVERHEAD, Recorder
from mcpsniff.proxy.relay.edit_records import LIMIT, LONG_US, NOTABLE_US
from mcpsniff.proxy.relay.pipes_intake import Intake
from mcpsniff.proxy.relay.pipes_leaving import Leaving
from mcpsniff.proxy.relay.pipes_lines import Cutter, Piece
from mcpsniff.proxy.relay.pipes_sink import Sink
from mcpsniff.proxy.relay.pipes_told import Because, Told
from mcpsniff.wire.frames import Frame

BEHIND: Final = "it waited behind a message that was held"
LAST_LINE: Final = 1.0
"""Seconds that the end of a session waits for what is left of a line to go on."""


class EditPump(Pump):
    """Carries lines from ``source`` to ``sink`` past the ``editor``. It is the `Lane` of its messages."""

    transport = "stdio"
    limit = LIMIT

    def __init__(
        self,
        source: int,
        sink: int,
        channel: int,
        recorder: Recorder,
        null: int,
        *,
        direction: str,
        editor: Editor,
        talk: Talk,
        read: Callable[[int, int], bytes] | None = None,
        tell: Callable[[int], object] | None = None,
    ) -> None:
        """See `Pump`; ``direction`` is ``c2s`` or ``s2c``. OSError if there are no descriptors left."""
        super().__init__(source, sink, channel, recorder, null, read=read, tell=tell)
        self.peer: EditPump
        """The pump of the other direction."""
        self.out = Sink(sink)
        self.told = Told(recorder, channel)
        self._intake = Intake(source, self._arrive, is_terminal=read is not None)
        self._cutter = Cutter(channel, direction, limit=self.limit)
        self._editor, self._talk, self._reader = editor, talk, JsonReader()
        self.stalled: Outgoing | None = None
        """What lets nothing go on any more."""
        self._is_released = False
        self._arrived = 0
        """When the last bytes came, by the recorder's clock."""
        self._held_until = 0
        self._holder = Edit("", "", [])
        """What has been held for long until then: lines that came before have waited behind it."""
        self._at_hand = 0
        """Bytes of the line that is being edited, which begins at `passed`."""
        self._was_held = False
        """True if somebody has waited with that on purpose."""
        self._held_by = ""
        """Who holds it, once that is told: what comes behind it is held, too."""
        self._telling = allocate_lock()
        self._told_to = 0
        """Up to where in the channel it is told that a hold has begun."""
        self._noted = 0
        """Bytes that are noted."""
        self._midway = False
        """A part of a line has gone on, and the lock of the sink is kept until the rest has."""
        self._over = allocate_lock()
        self._over.acquire()

    # -- the lane --------------------------------------------------------------------------------------------------

    def holding(self) -> AbstractContextManager[None]:
        """See `mcpsniff.hooks.editor.Lane`."""
        self._was_held = True
        return self._intake.holding()

    def held(self, by: str, why: str = "") -> None:
        """See `mcpsniff.hooks.editor.Lane`. What has come behind the line, or will, waits with it."""
        self._begun(self.passed, self.passed + self._at_hand, by, why)
        self._held_by = by
        self._begun(self.passed + self._at_hand, self._noted, by, BEHIND)

    @property
    def is_gone(self) -> bool:
        """True if nobody can get the message, or the answer to it, or if the session is being ended."""
        if self._is_released or self.out.is_shut or self.out.is_gone():
            return True
        return self._cutter.direction == CLIENT_TO_SERVER and self.peer.out.is_gone()

    def late(self, out: Outgoing) -> None:
        """Let something leave between two lines. For any thread."""
        with self.out.lock:
            self.insert(out.data + b"\n", out)

    def release(self) -> None:
        """Let whoever holds a message give up: the session is being ended. For other threads."""
        self._is_released = True

    @property
    def received(self) -> int:
        """Bytes that have arrived so far."""
        return self._intake.received

    def insert(self, data: bytes, out: Outgoing, us: int = 0) -> None:
        """Say something in this direction, between two lines. The caller holds the lock of `out`."""
        if self.out.is_shut or self.stalled is not None:
            return
        self.told.rewritten(self.passed, 0, data, out, us)
        if not self.out.put(data):
            self._lost()

    def tell_once(self, text: str) -> None:
        """Say something, unless it was said before."""
        self._editor.tell_once(text)

    def held_for(self, start: int, length: int, because: Because, us: int) -> None:
        """Tell for how long something was held that leaves as it came, if that is worth a word."""
        if us > LONG_US or (us > NOTABLE_US and self._was_held) or start < self._told_to:
            self.told.held(start, length, because, us)

    # -- the pump --------------------------------------------------------------------------------------------------

    def flow(self, rest: Callable[[], bool] | None = None) -> str | None:  # noqa: ARG002 - never lent to others
        """Read, note, hold, write on, again and again; return how it ended."""
        try:
            outcome = self._carry_lines()
        finally:
            if self._midway:
                self.out.lock.release()
            self._over.release()
        return CUT if self._cut else outcome

    def pending(self) -> int:
        """Return how many bytes are on their way. Those of a line that has not ended do not count: see `finish`."""
        return max(0, self._intake.received - self.passed - self._cutter.kept) + super().pending()

    def end(self, outcome: str) -> None:
        """End both descriptors, unless the stream stalls: then it does not end, either."""
        with self.out.lock:  # what the other direction says here is whole
            if self.outcome is not None:
                return
            self.out.is_shut = True
            self._keep_sink = self.stalled is not None
            super().end(outcome)

    def cut(self) -> None:
        """End this direction from another thread."""
        self.out.is_shut = True
        super().cut()
        self._intake.wake()

    def finish(self) -> None:
        """Let what is left of a line go on, then end this direction. For other threads."""
        self._intake.finish()
        if self._cutter.kept or self.passed < self.received:
            self._over.acquire(timeout=LAST_LINE)
        self.cut()

    def _lost(self) -> None:
        """The other direction has found out that nobody reads here any more; our own thread waits, perhaps for ever.

        The lock of `out` is held.
        """
        super().end(BROKEN)
        self._cut = True

    def _carry_lines(self) -> str:
        t = 0
        while not self._cut:
            # Only while there is a part of a line there is something for `finish` to do.
            arrived = self._intake.take(is_wakeable=self._cutter.kept > 0)
            if arrived is not None:
                self._arrived = arrived[0]
                t = (arrived[0] - self._recorder.zero_ns) // 1000
                for piece in self._cutter.feed(t, arrived[1]):
                    outcome = self._piece(piece)
                    if outcome is not None:
                        return outcome
                if self._due >= SETTLE_AT:
                    self._settle(bulk=True)
            elif self._intake.ended is not None or self._intake.is_to_finish:
                break
        between = b""
        for piece in self._cutter.finish(t):
            outcome = self._piece(piece)
            if outcome is not None:
                return outcome
            between = b"\n"  # the last line has no end
        for out in self._editor.flush(self):
            with self.out.lock:
                self.insert(between + out.data + b"\n", out)
            between = b""
        return RESET if self._intake.ended == RESET else EOF

    def _arrive(self) -> tuple[int, bytes]:
        """Read once, and note what has come."""
        data = self._take()
        t = self._recorder.clock()
        if not data:
            return t, data
        try:
            if self._recorder.alert:
                self._due += self._recorder.note(self._channel, data, t)
            else:
                self._recorder.append((t, CHUNK, self._channel, data))
                self._due += len(data) + OVERHEAD
        except MemoryError:
            self._forget()
        self._noted += len(data)
        if self._held_by:
            self._begun(self._noted - len(data), self._noted, self._held_by, BEHIND)
        return t, data

    def _begun(self, start: int, stop: int, by: str, why: str) -> None:
        """Tell that what has come there is held; for the thread that reads ahead, too."""
        if start < stop:
            with self._telling:
                self._told_to = max(self._told_to, stop)
            self.told.begun(start, stop - start, by, why)

    # -- one line --------------------------------------------------------------------------------------------------

    def _piece(self, piece: Piece) -> str | None:
        """Let a line go on, as it is or changed; return how the stream ended, if it did."""
        frame, data = piece.frame, piece.data
        if self.stalled is not None:
            self.told.rewritten(self.passed, len(data), b"", self.stalled)
            self.passed += len(data)
            return None
        if frame is None:
            return self._unheld(piece)
        began = self._arrived if self._arrived < self._held_until else self._recorder.clock()
        self._at_hand = len(data)
        self._was_held = False
        edit = self._edited(frame)
        if edit is None and began == self._arrived:
            by = self._holder.by
            edit = Edit(by, BEHIND, [Outgoing(SAME, by, BEHIND, frame.payload, None)])
        elif edit is None and self._held_by:
            edit = Edit(self._held_by, "", [Outgoing(SAME, self._held_by, "", frame.payload, None)])
        if edit is not None:
            return self._let_go(data, edit, began)
        with self.out.lock:
            is_there = self.out.put(data)
            self.passed += len(data)
        return None if is_there else BROKEN

    def _let_go(self, data: bytes, edit: Edit, began: int) -> str | None:
        """Do as the editor says with a line that has been held since ``began``."""
        us = (self._recorder.clock() - began) // 1000
        ended = Leaving(self, data, edit, us).go()
        if us > LONG_US or self._held_by or any(isinstance(out.action, Paced) for out in edit.leaving):
            self._held_until = self._recorder.clock()
            self._holder = self._holder if edit.why == BEHIND else edit
            self._held_by = ""
        return ended

    def _edited(self, frame: Frame) -> Edit | None:
        try:
            return self._editor.edit(frame, self._talk, self, self._reader)
        except Exception as error:  # noqa: BLE001 - no memory, or a bug of ours: the message passes
            self.tell_once(f"a message could not be edited, and passes as it is: {error!r}")
            return None

    def _unheld(self, piece: Piece) -> str | None:
        """Pass a piece of a line that is too long; nothing of others gets between its pieces."""
        if not self._midway:
            text = f"a message of more than {LIMIT >> 20} MiB passed unedited"
            self.tell_once(text)
            self.told.remark(text)
            self.out.lock.acquire()
            self._midway = True
        is_there = self.out.put(piece.data)
        self.passed += len(piece.data)
        if piece.ends_line:
            self._midway = False
            self.out.lock.release()
        return None if is_there else BROKEN
