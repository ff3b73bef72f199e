"""What is written down of one HTTP exchange: a channel for the body of the request, and one for that of the response.

While a judge has not decided whether the exchange is to be recorded at all, its records wait here, with their times.
"""

from typing import Any, Final, Protocol

from mcpsniff.proxy.recorder import CHUNK, Recorder

REQUEST, RESPONSE = range(2)
"""The two bodies."""
DIRECTIONS: Final = ("c2s", "s2c")
KINDS: Final = ("http-request", "http-response")
BULK: Final = 32 << 10
"""Bytes of a piece that is one of many, for which the disk is waited for."""


class Numbers(Protocol):
    """Gives out the numbers of channels."""

    def next_channel(self) -> int:
        """The next one of this run."""


class Records:
    """The records of one exchange on connection ``conn``: written down, held while ``holds``, or dropped.

    With ``defers`` they are held, too, until something of the response is there, or `leave` is called.
    """

    __slots__ = (
        "_channels", "_conn", "_held", "_numbers", "_recorder", "closed", "defers", "holds", "is_dropped",
        "is_elsewhere", "size",
    )  # fmt: skip

    def __init__(self, recorder: Recorder, numbers: Numbers, conn: int, *, holds: bool, defers: bool = False) -> None:
        self.holds = holds
        """True while it is not known whether anything is to be written down."""
        self.defers = defers
        """True while somebody else may write it down."""
        self.is_elsewhere = False
        """True once somebody else writes this down."""
        self.is_dropped = False
        """True once nothing of this is ever written down."""
        self.size = 0
        """Bytes that are held."""
        self.closed = [False, False]
        self._recorder = recorder
        self._numbers = numbers
        self._conn = conn
        self._channels: list[int | None] = [None, None]
        self._held: list[tuple[int, str, int, Any]] = []

    def is_open(self, body: int) -> bool:
        """True if the channel of this body was opened, or would have been."""
        return self._channels[body] is not None

    def open(self, body: int, meta: dict[str, Any]) -> None:
        """A head is there."""
        if body == RESPONSE:
            self._stay()
        if self.holds or self.defers or self.is_elsewhere:
            self._channels[body] = -1
        self.put("open", body, meta)

    def put(self, kind: str, body: int, what: Any) -> None:
        """Write a record down that is no chunk, or hold it."""
        if self.is_dropped or self.is_elsewhere:
            return
        if self.holds or self.defers:
            self._held.append((self._recorder.clock(), kind, body, what))
            self.size += _room(what)
            return
        self._write(None, kind, body, what)

    def note(self, body: int, data: bytes) -> None:
        """Note a piece of a body that has arrived."""
        recorder = self._recorder
        if self.is_dropped or self.is_elsewhere:
            return
        if self.holds or self.defers:
            self._held.append((recorder.clock(), CHUNK, body, data))
            self.size += len(data)
            return
        channel = self._channels[body]
        if channel is None:
            return
        if len(data) >= BULK:  # the pieces before have been passed on by now
            recorder.settle(0, bulk=True)
        recorder.settle(recorder.note(channel, data), bulk=False)

    def close(self, body: int, how: str, why: str = "") -> None:
        """A body is over: ``eof``, ``reset`` or ``aborted``."""
        if self.closed[body] or not (self.is_dropped or self.is_open(body)):
            return
        self.closed[body] = True
        self.put("close", body, {"how": how, "error": why} if why else {"how": how})

    def keep(self) -> None:
        """Write down what was held, as if it had been written at its time, and all that follows."""
        self.holds = False
        if self.defers:
            return
        held, self._held = self._held, []
        for t, kind, body, what in held:
            self._write(t, kind, body, what)

    def drop(self) -> None:
        """Forget all of it."""
        self.is_dropped, self.holds = True, False
        self._held = []

    def leave(self) -> None:
        """Somebody else writes this down."""
        self.defers, self.is_elsewhere = False, True
        self._held = []

    def _stay(self) -> None:
        """Nobody else writes this down."""
        if self.defers:
            self.defers = False
            if not (self.holds or self.is_dropped):
                self.keep()

    def _write(self, t: int | None, kind: str, body: int, what: Any) -> None:
        recorder = self._recorder
        if kind == "open":
            channel = self._channels[body] = self._numbers.next_channel()
            opened = {"kind": KINDS[body], "dir": DIRECTIONS[body], "conn": self._conn, "meta": what}
            if body == RESPONSE:
                opened["of"] = self._channels[REQUEST]
            recorder.mark("open", channel, opened, t)
            return
        written = self._channels[body]
        if written is None:
            return
        if kind == CHUNK:
            recorder.settle(recorder.note(written, what, t), bulk=False)
        else:
            recorder.mark(kind, written, what, t)


def _room(what: Any) -> int:
    """Return about how many bytes a record takes."""
    headers = what.get("headers") if isinstance(what, dict) else None
    return 64 + sum([len(name) + len(value) for name, value in headers or ()])
