"""A connection of which it is not known yet whether it is MCP: nothing of it is written down or changed until it is."""

import time
from collections.abc import Callable
from threading import Lock
from typing import Any

from mcpsniff.hooks.actions import HttpHead
from mcpsniff.hooks.editor import Edit, Editor
from mcpsniff.proxy.mitm.tap import Verdict
from mcpsniff.proxy.recorder import CHUNK, Recorder


class Trial:
    """Stands between the relay and its recorder and editor, until `decide` has the verdict."""

    def __init__(self, recorder: Recorder, editor: Editor) -> None:
        self.verdict = Verdict.WAIT
        self.recorder = HeldRecorder(recorder)
        self.editor = TriedEditor(editor, self)

    def decide(self, verdict: Verdict) -> None:
        """KEEP or DROP, once and for all; WAIT changes nothing."""
        if self.verdict is not Verdict.WAIT or verdict is Verdict.WAIT:
            return
        self.verdict = verdict
        if verdict is Verdict.KEEP:
            self.recorder.keep()
        else:
            self.recorder.drop()


class HeldRecorder:
    """As a `Recorder` for those who note. What they note waits, with its times, until it is kept or dropped."""

    def __init__(self, recorder: Recorder) -> None:
        self.clock = time.monotonic_ns
        self.zero_ns = recorder.zero_ns
        self.alert = True
        """Whoever notes has to call `note`."""
        self._recorder = recorder
        self._lock = Lock()
        self._held: list[Callable[[], object]] | None = []
        self._is_kept = False

    def note(self, channel: int, data: bytes, at: int | None = None) -> int:
        """See `Recorder`; what is held takes no room there yet."""
        now = self.clock() if at is None else at
        with self._lock:
            if self._held is not None:
                self._held.append(lambda: self._recorder.settle(self._recorder.note(channel, data, now), bulk=False))
                return 0
        return self._recorder.note(channel, data, now) if self._is_kept else 0

    def mark(self, kind: str, channel: int | None, body: dict[str, Any], at: int | None = None) -> None:
        """See `Recorder`."""
        now = self.clock() if at is None else at
        with self._lock:
            if self._held is not None:
                self._held.append(lambda: self._recorder.mark(kind, channel, body, now))
                return
        if self._is_kept:
            self._recorder.mark(kind, channel, body, now)

    def settle(self, room: int, *, bulk: bool) -> None:
        """See `Recorder`."""
        if self._is_kept:
            self._recorder.settle(room, bulk=bulk)

    def append(self, entry: tuple[int, str, int | None, Any]) -> None:
        """See `Recorder`."""
        at, kind, channel, what = entry
        if kind == CHUNK and channel is not None:
            self.note(channel, what, at)
        else:
            self.mark(kind, channel, what, at)

    def keep(self) -> None:
        """Write down what was held, and all that follows."""
        with self._lock:
            held, self._held = self._held or [], None
            self._is_kept = True
            for write in held:
                write()

    def drop(self) -> None:
        """Forget all of it."""
        with self._lock:
            self._held = None


class TriedEditor:
    """As an `Editor`: lets everything pass until it is known to be MCP."""

    def __init__(self, editor: Editor, trial: Trial) -> None:
        self._editor = editor
        self._trial = trial

    def edit(self, *arguments: Any) -> Edit | None:
        """See `Editor`."""
        return self._editor.edit(*arguments) if self._trial.verdict is Verdict.KEEP else None

    def edit_head(self, head: HttpHead) -> str:
        """See `Editor`."""
        return self._editor.edit_head(head) if self._trial.verdict is Verdict.KEEP else ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._editor, name)
