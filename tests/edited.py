"""Make captures of edited sessions by hand: what came, and what left in its place."""

import json
from typing import Any

from mcpsniff.capture.records import Record
from mcpsniff.decoder import Decoder, Event
from mcpsniff.protocol.edits import Edit
from tests.sessions import OPENS, decode, end, line

PIPES = {"c2s": 0, "s2c": 1}


class Session:
    """The records of a wrapped server's session. Each step is 1 ms after the one before."""

    def __init__(self) -> None:
        self.records: list[Record] = list(OPENS)
        self.t = 0
        self._sizes = {0: 0, 1: 0}
        self._latest = (0, 0, 0)

    def say(self, direction: str, message: object) -> "Session":
        """A message comes; bytes come as they are."""
        channel, data = PIPES[direction], message if isinstance(message, bytes) else line(message)
        self._latest = channel, self._sizes[channel], len(data)
        self._sizes[channel] += len(data)
        return self._put("chunk", channel, data)

    def ask(self, number: object, method: str = "tools/call", direction: str = "c2s", **params: Any) -> "Session":
        """A request comes."""
        return self.say(direction, {"jsonrpc": "2.0", "id": number, "method": method, "params": params})

    def answer(self, number: object, direction: str = "s2c", **result: Any) -> "Session":
        """A result comes."""
        return self.say(direction, {"jsonrpc": "2.0", "id": number, "result": result})

    def change(self, message: object, by: str = "addon", **more: Any) -> "Session":
        """Something else left in the place of the latest message; None: nothing did."""
        channel, start, length = self._latest
        data = b"" if message is None else message if isinstance(message, bytes) else line(message)
        return self._rewrite(channel, start, length, data, by, more)

    def add(self, direction: str, message: object, by: str = "addon", **more: Any) -> "Session":
        """Something left that had not come."""
        channel = PIPES[direction]
        data = message if isinstance(message, bytes) else line(message)
        return self._rewrite(channel, self._sizes[channel], 0, data, by, more)

    def hold(self, us: int, by: str = "addon", **more: Any) -> "Session":
        """The latest message left as it was, but later; time passes meanwhile."""
        channel, start, length = self._latest
        self.t += us
        return self._put("hold", channel, {"start": start, "length": length, "us": us, "by": by, **more})

    def wait(self, us: int) -> "Session":
        """Time passes."""
        self.t += us
        return self

    def end(self) -> "Session":
        """The client leaves, and the server ends."""
        self.records += end(self.t + 1000)
        return self

    def decode(self, decoder: Decoder | None = None) -> list[Event]:
        """The events."""
        return decode(self.records, decoder=decoder)

    def left(self) -> dict[int, bytes]:
        """What left on each pipe, by the law of the format: the chunks with the rewrites applied."""
        return left_of(self.records)

    def _rewrite(  # noqa: PLR0917
        self, channel: int, start: int, length: int, data: bytes, by: str, more: dict[str, Any]
    ) -> "Session":
        fields = {"start": start, "length": length, "data": data, "by": by, **more}
        return self._put("rewrite", channel, fields)

    def _put(self, kind: str, channel: int, body: Any) -> "Session":
        self.t += 1000
        self.records.append(Record(self.t, kind, channel, body))
        return self


def left_of(records: list[Record]) -> dict[int, bytes]:
    """What left on each channel."""
    came: dict[int, bytes] = {}
    rewrites: dict[int, list[tuple[int, int, bytes]]] = {}
    for record in records:
        if record.kind == "chunk" and record.channel is not None:
            came[record.channel] = came.get(record.channel, b"") + record.body
        elif record.kind == "rewrite" and record.channel is not None:
            body = record.body
            rewrites.setdefault(record.channel, []).append((body["start"], body["length"], body["data"]))
    left = {}
    for channel, data in came.items():
        out, position = b"", 0
        for start, length, new in sorted(rewrites.get(channel, []), key=lambda one: (one[0], one[1])):
            out += data[position:start] + new
            position = max(position, start + length)
        left[channel] = out + data[position:]
    return left


def edits(events: list[Event]) -> list[Edit]:
    return [event for event in events if isinstance(event, Edit)]


def text(message: object) -> str:
    return json.dumps(message, separators=(",", ":"))
