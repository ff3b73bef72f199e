"""A capture as documents: what its channels carry, record after record, and the edits of each channel."""

from typing import Any, Final

from mcpsniff.capture.records import CHUNK, CLOSE, GAP, OPEN, Header, Record
from mcpsniff.export.redact.body import Body
from mcpsniff.export.redact.connection import Connection, Side, Unread
from mcpsniff.export.redact.documents import LINE, SAID, Account, Consume, Gatherer
from mcpsniff.export.redact.edits import ChannelEdits

_PIPES: Final = {0: "stdin", 1: "stdout", 2: "stderr"}


class _Pipe:
    """A pipe: lines of JSON, or what a server logs."""

    def __init__(self, account: Account, edits: ChannelEdits, kind: str, offset: int) -> None:
        what = SAID if kind == "stderr" else LINE
        self._gatherer = Gatherer(account, edits, what, kind or "a channel of no known kind")
        self._offset = offset

    def feed(self, _t: int, data: bytes) -> None:
        self._gatherer.feed(data, self._offset)
        self._offset += len(data)

    def gap(self, _size: int) -> None:
        self._gatherer.end()

    def close(self, _t: int) -> None:
        self._gatherer.end()

    def resume(self) -> None:
        pass


class _BodyChannel:
    """A channel that carries one body; its head is in the record that opened it."""

    def __init__(
        self, account: Account, edits: ChannelEdits, fields: dict[str, Any], offset: int, unread: Unread
    ) -> None:
        meta = fields.get("meta")
        listed = meta.get("headers") if isinstance(meta, dict) else None
        pairs = [pair for pair in listed if _is_pair(pair)] if isinstance(listed, list) else []
        start = str(meta.get("start", ""))[:200] if isinstance(meta, dict) else ""
        name = start.partition("?")[0] if fields.get("kind") == "http-request" else "a response"
        self._body = Body(account, edits, [(name, value) for name, value in pairs], f"the body of {name}")
        self._offset = offset
        self._unread = unread
        self._is_over = False

    def feed(self, _t: int, data: bytes) -> None:
        self._body.feed(data, self._offset)
        self._offset += len(data)

    def gap(self, _size: int) -> None:
        self._body.gap()

    def close(self, _t: int) -> None:
        if not self._is_over and not self._body.end():
            self._unread.bodies += 1
        self._is_over = True

    def resume(self) -> None:
        self._body.gap()


class Walk:
    """Reads records, hands the documents in them to ``consume``, and keeps what that makes of them by channel."""

    def __init__(self, header: Header, consume: Consume) -> None:
        self._account = Account(consume)
        self._is_http = header.transport in ("http", "forward")
        self._channels: dict[int, _Pipe | _BodyChannel | Side] = {}
        self._connections: dict[int, Connection] = {}
        self._unread = Unread()
        self.edits: dict[int, ChannelEdits] = {}
        for number, fields in (header.channels or {}).items():
            if isinstance(fields, dict) and str(number).isdecimal():
                offset = fields.get("offset")
                self._open(int(number), fields, offset if type(offset) is int and offset >= 0 else 0).resume()

    @property
    def unread(self) -> int:
        """How many bodies were left out since they could not be read."""
        return self._unread.bodies

    def record(self, record: Record) -> None:
        """The next record."""
        number = record.channel
        if record.kind == OPEN and number is not None:
            self._open(number, record.body, 0)
        elif record.kind == CHUNK and number is not None:
            self._channel(number).feed(record.t, record.body)
        elif record.kind == CLOSE and number is not None and number in self._channels:
            self._close(number, record.t)
        elif record.kind == GAP:
            for one, channel in self._channels.items():
                if number in (None, one):
                    size = record.body.get("bytes")
                    channel.gap(size if type(size) is int else 0)

    def finish(self) -> None:
        """Nothing more comes."""
        for channel in self._channels.values():
            channel.close(0)
        for edits in self.edits.values():
            edits.seal()

    def _close(self, number: int, t: int) -> None:
        channel = self._channels[number]
        channel.close(t)
        if isinstance(channel, _Pipe):  # it may close once more, when the process has ended
            return
        del self._channels[number]
        if isinstance(channel, Side) and channel.connection.is_over:
            self._connections = {n: one for n, one in self._connections.items() if one is not channel.connection}

    def _open(self, number: int, fields: dict[str, Any], offset: int) -> "_Pipe | _BodyChannel | Side":
        if number in self._channels:
            self._channels[number].close(0)
        edits = self.edits.setdefault(number, ChannelEdits())
        kind = str(fields.get("kind"))
        channel: _Pipe | _BodyChannel | Side
        if kind == "tcp":
            conn = fields.get("conn")
            connection = self._connections.setdefault(
                conn if type(conn) is int else -1 - number, Connection(self._account, self._unread)
            )
            direction = "c2s" if fields.get("dir") == "c2s" else "s2c"
            channel = connection.side(number, direction, edits, offset)
        elif kind in ("http-request", "http-response"):
            channel = _BodyChannel(self._account, edits, fields, offset, self._unread)
        else:
            channel = _Pipe(self._account, edits, kind, offset)
        self._channels[number] = channel
        return channel

    def _channel(self, number: int) -> "_Pipe | _BodyChannel | Side":
        """The channel, also one whose open record was lost; read as the decoder reads it."""
        if number not in self._channels:
            fields: dict[str, Any] = {"kind": _PIPES.get(number, ""), "dir": "c2s" if number == 0 else "s2c"}
            if self._is_http:
                fields = {"kind": "tcp", "dir": "s2c" if number % 2 else "c2s", "conn": number // 2}
            return self._open(number, fields, 0)
        return self._channels[number]


def _is_pair(pair: Any) -> bool:
    return isinstance(pair, list) and len(pair) == 2 and all(isinstance(text, str) for text in pair)
