"""Faults on a stage: one line in, what leaves and why out."""

import json
from collections.abc import Sequence
from typing import Any

from mcpsniff.hooks.editor import Edit, Editor, Outgoing
from mcpsniff.protocol.reading import JsonReader
from mcpsniff.proxy.faults.reading import faults_from
from mcpsniff.wire.frames import Frame
from tests.rules.staging import FakeLane, call, request, result

__all__ = ["Faulty", "call", "notification", "options", "request", "result", "text"]


class Lane(FakeLane):
    """A lane that remembers what leaves late."""

    def __init__(self, transport: str = "stdio") -> None:
        super().__init__(transport)
        self.later: list[Outgoing] = []

    def late(self, out: Outgoing) -> None:
        self.later.append(out)


class Faulty:
    """An editor with faults; messages are given to it one by one, as the frames of two pipes or of bodies."""

    def __init__(
        self, *faults: str, seed: int | None = 1, again: Sequence[str] = (), transport: str = "stdio", framing: str = ""
    ) -> None:
        asked = options(*faults, seed=seed, again=again)
        self.told: list[str] = []
        self.remarks: list[str] = []
        self.editor = Editor(faults_from(asked, transport), self.told.append)
        self.editor.begin(self.remarks.append)
        self.framing = framing or ("line" if transport == "stdio" else "body")
        self.lanes = {"c2s": Lane(transport), "s2c": Lane(transport)}
        self.whys: list[str] = []
        self._t = 0

    def client(self, message: Any, talk: str = "one") -> Edit | None:
        return self.say("c2s", message, talk)

    def server(self, message: Any, talk: str = "one") -> Edit | None:
        return self.say("s2c", message, talk)

    def say(self, direction: str, message: Any, talk: str = "one") -> Edit | None:
        self._t += 10
        raw = message if isinstance(message, bytes) else text(message)
        frame = Frame(0, direction, self.framing, (), self._t, self._t, raw, len(raw))
        edit = self.editor.edit(frame, self.editor.talk(talk), self.lanes[direction], JsonReader())
        if edit is None or not edit.why:  # held for a moment on a busy machine
            return None
        self.whys.append(edit.why)
        return edit

    def left(self, direction: str, message: Any) -> list[Any]:
        """What leaves for one message, as values; as bytes where it is no JSON."""
        edit = self.say(direction, message)
        if edit is None:
            return [message]
        return [value(out.data) for out in edit.leaving]


def options(*faults: str, seed: int | None = None, again: Sequence[str] = ()) -> dict[str, Any]:
    given = None if seed is None or again or not faults else str(seed)
    return {"fault": list(faults), "fault_seed": given, "fault_from": list(again)}


def text(message: Any) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()


def value(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return data


def notification(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}
