"""An engine in this process, in front of a scripted server, with what its tap has noted."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mcpsniff.proxy.mitm.engine import Engine
from mcpsniff.proxy.mitm.tap import Judge, Tap
from mcpsniff.proxy.recorder import Recorder
from tests.proxy.relayed import Peer, Upstream
from tests.proxy.wrapped import PATIENCE, wait_for


class Faulty(Recorder):
    """Fails at the chunks with these numbers, counted from 1, or at all from one on."""

    def __init__(self, faults: set[int], *, for_good: bool = False) -> None:
        super().__init__()
        self._faults = faults
        self._for_good = for_good
        self.count = 0

    def note(self, channel: int, data: bytes, at: int | None = None) -> int:
        self.count += 1
        if self.count in self._faults or (self._for_good and self.count >= min(self._faults)):
            raise MemoryError("no room for a note")
        return super().note(channel, data, at)


class Tapped:
    """A tap of an engine that clients can connect to."""

    def __init__(self, recorder: Recorder, judge: Judge | None = None) -> None:
        self.recorder = recorder
        self.tap = Tap(recorder, judge)
        self._records: list[tuple[int, str, int | None, Any]] = []
        self.port = 0

    @contextmanager
    def running(self, upstream: Upstream) -> Iterator["Tapped"]:
        engine = Engine([self.tap], modes=[f"reverse:http://127.0.0.1:{upstream.port}@127.0.0.1:0"])
        engine.start()
        self.port = engine.addresses[0][1]
        try:
            yield self
        finally:
            engine.stop()

    def connect(self) -> Peer:
        return Peer(socket.create_connection(("127.0.0.1", self.port), PATIENCE))

    def records(self, closes: int = 0) -> list[tuple[int, str, int | None, Any]]:
        """What was noted, once so many channels are closed."""

        def look() -> bool:
            self._records += self.recorder.take()[0]
            return sum([kind == "close" for _, kind, _, _ in self._records]) >= closes

        assert wait_for(look), self._records
        return self._records

    def body(self, channel: int) -> bytes:
        """The bytes of a channel, with ``?`` for each that is missing."""
        pieces = []
        for _, kind, number, what in self._records:
            if number == channel:
                pieces.append(what if kind == "chunk" else b"?" * what["bytes"] if kind == "gap" else b"")
        return b"".join(pieces)
