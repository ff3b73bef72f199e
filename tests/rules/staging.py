"""A client and a server with an editor between them, in one process: what either says, and what the other gets."""

import json
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from mcpsniff.capture.records import Record
from mcpsniff.hooks.actions import HttpHead, Returned
from mcpsniff.hooks.editor import ADDED, BACK, CHANGED, SAME, Edit, Editor, Interceptor, Outgoing
from mcpsniff.protocol.message import Message
from mcpsniff.protocol.reading import JsonReader
from mcpsniff.wire.ndjson import LineSplitter

OTHER = {"c2s": "s2c", "s2c": "c2s"}


@dataclass
class FakeLane:
    """A direction in which nobody leaves, unless told so."""

    transport: str = "stdio"
    is_gone: bool = False
    holds: int = 0
    told: list[tuple[str, str]] = field(default_factory=list)

    def holding(self) -> AbstractContextManager[object]:
        self.holds += 1
        return nullcontext()

    def held(self, by: str, why: str = "") -> None:
        self.told.append((by, why))


@dataclass
class Watcher:
    """An interceptor that lets everything pass and remembers it."""

    name: str = "watcher"
    seen: list[Message] = field(default_factory=list)

    def edit(self, message: Message, lane: FakeLane) -> Returned:
        self.seen.append(message)
        return message

    def edit_head(self, head: HttpHead) -> None:
        """Nothing."""

    def begin(self, remark: object) -> None:
        """Nothing."""

    def end(self) -> Sequence[str]:
        return ()


class Stage:
    """What a relay does with an editor, without threads and pipes."""

    def __init__(self, interceptors: Iterable[Interceptor], transport: str = "stdio") -> None:
        self.told: list[str] = []
        self.remarks: list[str] = []
        self.editor = Editor(list(interceptors), self.told.append)
        self.editor.begin(self.remarks.append)
        self.talk = self.editor.talk("only")
        self.lane = FakeLane(transport)
        self.outs: list[Outgoing] = []
        self.whys: list[str] = []
        """Of each frame that did not just pass."""
        self._reader = JsonReader()
        self._splitters = {"c2s": LineSplitter(0, "c2s"), "s2c": LineSplitter(1, "s2c")}
        self._got: dict[str, list[bytes]] = {"c2s": [], "s2c": []}
        self._t = 0

    def client(self, said: Any) -> None:
        """The client says this: a value, or the text itself."""
        self.say("c2s", said)

    def server(self, said: Any) -> None:
        """The server says this."""
        self.say("s2c", said)

    def say(self, direction: str, said: Any) -> None:
        raw = said if isinstance(said, bytes) else json.dumps(said, separators=(",", ":")).encode()
        self._t += 1000
        self.feed(direction, self._t, raw + b"\n")

    def feed(self, direction: str, t: int, data: bytes) -> None:
        for frame in self._splitters[direction].feed(t, data):
            edit = self.editor.edit(frame, self.talk, self.lane, self._reader)
            if edit is None or _only_took_long(edit):
                self._got[direction].append(frame.payload)
                continue
            self.whys.append(f"{edit.by}: {edit.why}" if edit.why else edit.by)
            for out in edit.leaving:
                self.outs.append(out)
                assert out.what in (SAME, CHANGED, ADDED, BACK)
                self._got[OTHER[direction] if out.what == BACK else direction].append(out.data)

    def play(self, records: Iterable[Record]) -> None:
        """Say what a capture of pipes has."""
        for record in records:
            if record.kind == "chunk" and record.channel in (0, 1):
                self.feed(("c2s", "s2c")[record.channel], record.t, record.body)

    def to_server(self) -> list[bytes]:
        """What the server got since it was asked last, as texts."""
        return self._taken("c2s")

    def to_client(self) -> list[bytes]:
        """What the client got since it was asked last, as texts."""
        return self._taken("s2c")

    def at_server(self) -> Any:
        """The one message that the server got, as a value."""
        (text,) = self.to_server()
        return json.loads(text)

    def at_client(self) -> Any:
        """The one message that the client got, as a value."""
        (text,) = self.to_client()
        return json.loads(text)

    def _taken(self, direction: str) -> list[bytes]:
        got, self._got[direction] = self._got[direction], []
        return got


def request(number: Any, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def call(number: Any, tool: str, **arguments: Any) -> dict[str, Any]:
    return request(number, "tools/call", name=tool, arguments=arguments)


def result(number: Any, **members: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "result": members}


def _only_took_long(edit: Edit) -> bool:
    """True if nothing was wanted, on a machine that was busy."""
    return [(out.what, out.why, dict(out.headers)) for out in edit.leaving] == [(SAME, "", {})]
