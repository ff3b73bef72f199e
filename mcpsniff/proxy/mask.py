"""Keeps secrets that pass over HTTP out of the capture: entries in, entries with `*` in the place of secrets out.

Runs in the thread that stores, before the writer: what passes on the wire has left by then and is never touched.
Masked are credential headers (the word of the scheme stays), keys in the query and fragment of request targets and of
URLs in headers, and the fields of forms and top members of JSON objects that OAuth uses. Never touched are the payload
of JSON-RPC messages, event streams, and session ids, which pairing needs. A name precedes its secret, so every chunk
comes out at once, however the reads cut it. A ``mask`` record follows the chunk in which a secret ends.
"""

import binascii
from collections.abc import Sequence
from typing import Any, Final

from mcpsniff.proxy.mask_head import HeadScanner
from mcpsniff.proxy.mask_http import ChannelMask, ConnectionMask, ConnectionSide, Entry, Salt
from mcpsniff.proxy.mask_marks import Marks
from mcpsniff.proxy.mask_told import told_without_secrets
from mcpsniff.wire.frames import Span
from mcpsniff.wire.http1 import Head

OPEN_REQUESTS: Final = 4096
"""Requests that are remembered until their response begins, where each body has a channel of its own."""

_TOLD: Final = {"comment": "text", "close": "error", "rewrite": "data"}
"""Where records tell about the traffic in words."""
_OURS: Final = "mcpsniff"
"""Who answers in our own words, which may quote an error; messages that others have changed are no words of ours."""


class Masker:
    """Masks the entries of one run. ``salt`` returns the secret of the store, which makes fingerprints comparable.

    Never raises: a channel that it fails on is left out of the capture from there on, as a gap for the secrets' sake.
    """

    def __init__(self, salt: Salt) -> None:
        self._salt = _once(salt)
        self._t = 0
        self._channels: dict[int, ChannelMask] = {}
        self._connections: dict[int, ConnectionMask] = {}
        self._requests: dict[int, _Request] = {}
        self._failed: set[int] = set()

    def __call__(self, entries: Sequence[Entry]) -> list[Entry]:
        """Return what is to be recorded instead of ``entries``: the same, in the same order, without secrets."""
        out: list[Entry] = []
        for entry in entries:
            try:
                out += self._entry(entry)
            except Exception:  # noqa: BLE001 - a bug of ours must neither leak a secret nor end the recording
                out += self._after_failure(entry)
        return out

    def finish(self) -> list[Entry]:
        """Return what is still to be recorded when nothing more comes."""
        return [told for channel, mask in self._channels.items() for told in mask.finish(self._t, channel)]

    def _entry(self, entry: Entry) -> Sequence[Entry]:
        t, kind, channel, body = entry
        self._t = t
        if kind == "open" and channel is not None:
            return [(t, kind, channel, self._open(channel, body))]
        if kind in _TOLD and (kind != "rewrite" or body.get("by") == _OURS):
            entry = (t, kind, channel, told_without_secrets(body, _TOLD[kind], lines_only=kind == "rewrite"))
        if channel in self._failed:
            return self._left_out(entry)
        mask = self._channels.get(channel) if channel is not None else None
        if mask is None or channel is None:
            return [entry]
        if kind == "chunk":
            return mask.chunk(t, channel, body)
        if kind == "gap":
            mask.gap(body["bytes"])
        elif kind == "rewrite":
            return [(t, kind, channel, _rewritten(entry[3], mask.removed))]
        elif kind == "close":
            told = mask.finish(t, channel)
            self._close(channel)
            return [*told, entry]
        return [entry]

    def _open(self, channel: int, body: dict[str, Any]) -> dict[str, Any]:
        """Begin to mask a channel; return what is to be recorded of its beginning."""
        kind, direction = body.get("kind"), int(body.get("dir") == "s2c")
        if kind == "tcp":
            number = body["conn"]
            connection = self._connections.get(number)
            if connection is None:
                connection = self._connections[number] = ConnectionMask(self._salt)
            self._channels[channel] = connection.sides[direction]
        elif kind in {"http-request", "http-response"} and isinstance(body.get("meta"), dict):
            return {**body, "meta": self._open_body(channel, body, direction)}
        return body

    def _open_body(self, channel: int, body: dict[str, Any], direction: int) -> dict[str, Any]:
        """Begin to mask a channel that carries one body; return its ``meta`` without secrets."""
        meta = body["meta"]
        mask = self._channels[channel] = ChannelMask(self._salt)
        headers = tuple((str(name), str(value)) for name, value in meta.get("headers") or ())
        request = self._requests.pop(body.get("of", -1), None) if direction else None
        if request is None:
            words = str(meta.get("start", "")).split(" ")
            request = _Request(words[1] if len(words) > 1 and not direction else "")
        if direction == 0:
            self._requests[channel] = request
            if len(self._requests) > OPEN_REQUESTS:
                del self._requests[next(iter(self._requests))]
            request.mask = mask
        asked = request.mask.understood() if direction == 1 and request.mask is not None else None
        mask.begin_body(_head(headers), request.target, asked)
        return _masked_meta(meta, headers, self._salt)

    def _close(self, channel: int) -> None:
        """Forget a channel, and a connection when both of its channels are closed."""
        mask = self._channels.pop(channel)
        if isinstance(mask, ConnectionSide):
            connection = mask.connection
            connection.open -= 1
            if not connection.open:
                self._connections = {n: other for n, other in self._connections.items() if other is not connection}

    def _after_failure(self, entry: Entry) -> Sequence[Entry]:
        channel = entry[2]
        if channel is not None:
            self._failed.add(channel)
        return self._left_out(entry)

    def _left_out(self, entry: Entry) -> Sequence[Entry]:
        """Return what may be recorded of a channel that cannot be masked: ends and losses."""
        t, kind, channel, body = entry
        if kind == "chunk":
            return [(t, "gap", channel, {"bytes": len(body), "why": "secret"})]
        if kind == "open":
            return [(t, kind, channel, {key: value for key, value in body.items() if key != "meta"})]
        return [entry] if kind in {"gap", "close", "comment"} else []


def _once(salt: Salt) -> Salt:
    """Return ``salt`` as a function that asks for it at most once."""
    known: list[bytes] = []

    def ask() -> bytes:
        if not known:
            known.append(salt())
        return known[0]

    return ask


class _Request:
    """What a response channel needs to know of its request."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.mask: ChannelMask | None = None


def _head(headers: tuple[tuple[str, str], ...]) -> Head:
    """Return a head with these headers, for `ChannelMask.begin_body`."""
    return Head("c2s", b"", None, None, None, "", "", headers, (Span(0, 0, 0),), 0, 0, (), "none", None)


def _masked_meta(meta: dict[str, Any], headers: tuple[tuple[str, str], ...], salt: Salt) -> dict[str, Any]:
    """Return ``meta`` of a body's channel without secrets; ``masked`` tells what there was, as `mask` records do."""
    marks = Marks(salt)
    masked = dict(meta)
    if "start" in meta:
        masked["start"] = _masked_lines(marks, str(meta["start"]))
    if headers:
        lines = [_masked_lines(marks, f"{name}: {value}") for name, value in headers]
        masked["headers"] = [[name, line[len(name) + 2 :]] for (name, _), line in zip(headers, lines, strict=True)]
    told = [{"what": record["what"], "fp": record["fp"]} for record in marks.take_records()]
    return {**masked, "masked": told} if told else masked


def _masked_lines(marks: Marks, text: str) -> str:
    return _hide_lines(marks, text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")


def _hide_lines(marks: Marks, data: bytes) -> bytes:
    """Return header lines without secrets."""
    HeadScanner(marks).scan(data, 0, len(data))
    marks.end()
    return marks.masked(data)


def _rewritten(body: dict[str, Any], removed: int) -> dict[str, Any]:
    """Return the body of a rewrite record with its place among the bytes that are recorded, and without secrets."""
    text = body.get("data", "")
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else binascii.a2b_base64(text.get("b64", ""))
    is_message = data[:1] in (b"{", b"[")  # a head begins with a word
    masked = data if is_message else _hide_lines(Marks(lambda: b""), data)
    shown: Any = text
    if masked != data:
        shown = (
            masked.decode()
            if isinstance(text, str)
            else {"b64": binascii.b2a_base64(masked, newline=False).decode("ascii")}
        )
    return {**body, "start": max(0, body.get("start", 0) - removed), "data": shown}
