"""Is it MCP? Judged by the bytes of one body, which come in pieces.

A judgement is True (it is), False (it is not), or None (not to be said yet).
"""

import re
from typing import Any, Final

import orjson

from mcpsniff.decoder.bodies import EventReader
from mcpsniff.protocol.revisions import META_PREFIX, METHODS
from mcpsniff.wire.body import BodyDecoder
from mcpsniff.wire.frames import Span
from mcpsniff.wire.http1_parts import Data
from mcpsniff.wire.ndjson import BYTE_ORDER_MARK, JSON_WHITE_SPACE

ENOUGH: Final = 48 << 10
"""Bytes of a body, its coding removed, after which a judgement is given in any case."""
ELEMENTS: Final = 64
"""Elements of a batch that are looked at."""
_FAMILIES: Final = tuple({f"{name.partition('/')[0]}/" for name in METHODS if "/" in name})
"""How the methods of MCP begin, later ones probably too."""
_ENDS: Final = (b"}", b"]")
_JSONRPC = re.compile(rb'"jsonrpc"\s*:\s*"2\.0"')
_METHOD = re.compile(rb'"method"\s*:\s*"([^"\\]{1,100})"')


def is_mcp(value: Any, *, lenient: bool) -> bool:
    """True if a JSON value is a message of MCP.

    JSON-RPC alone does not make it one: others speak that, too. A method of MCP or of one of its families does, and
    what no request is: a client that posts answers is one of MCP. With ``lenient`` there is a reason besides to take
    JSON-RPC for MCP, such as where it is sent, so that methods of extensions count.
    """
    if isinstance(value, list):
        return any(is_mcp(one, lenient=lenient) for one in value[:ELEMENTS] if isinstance(one, dict))
    if not isinstance(value, dict):
        return False
    method, params = value.get("method"), value.get("params")
    if "jsonrpc" not in value:
        return method == "initialize" and isinstance(params, dict) and "protocolVersion" in params
    if not isinstance(method, str):
        return "result" in value or "error" in value or (lenient and "id" in value)
    return lenient or _is_method(method) or _has_envelope(params)


def _is_method(method: str) -> bool:
    return method in METHODS or method.startswith(_FAMILIES)


def _has_envelope(params: Any) -> bool:
    """True if ``params`` carry what 2026-07-28 has in each request."""
    meta = params.get("_meta") if isinstance(params, dict) else None
    return isinstance(meta, dict) and any(key.startswith(META_PREFIX) for key in meta)


class JsonBody:
    """A body that may be a message of MCP."""

    def __init__(self, codings: str, *, lenient: bool) -> None:
        self._decoder = BodyDecoder(codings, limit=ENOUGH)
        self._text = bytearray()
        self._lenient = lenient

    def feed(self, data: bytes) -> bool | None:
        """Judge with the next bytes."""
        self._text += self._decoder.feed(data)
        text = bytes(self._text).removeprefix(BYTE_ORDER_MARK).strip(JSON_WHITE_SPACE)
        if text and not text.startswith((b"{", b"[")) and not BYTE_ORDER_MARK.startswith(text):
            return False
        if text.endswith(_ENDS):
            try:
                return is_mcp(orjson.loads(text), lenient=self._lenient)
            except orjson.JSONDecodeError:
                pass
        return self._guess(text) if len(text) >= ENOUGH else None

    def end(self) -> bool:
        """Judge what does not become more."""
        verdict = self.feed(self._decoder.finish())
        return self._guess(bytes(self._text)) if verdict is None else verdict

    def _guess(self, text: bytes) -> bool:
        """Judge by the beginning of a message, or by what is no JSON although it was to be."""
        if not _JSONRPC.search(text):
            return False
        method = _METHOD.search(text)
        return self._lenient or (method is not None and _is_method(method[1].decode("utf-8", "replace")))


class StreamBody:
    """An event stream that may carry MCP."""

    def __init__(self, codings: str, *, lenient: bool) -> None:
        self._reader = EventReader("s2c", codings, ENOUGH)
        self._size = 0
        self._lenient = lenient
        self.endpoint = ""
        """What an `endpoint` event of the legacy transport says, if one came."""

    def feed(self, data: bytes) -> bool | None:
        """Judge with the next bytes: by the first event that has data."""
        start, self._size = self._size, self._size + len(data)
        for frame in self._reader.feed(Data(data, Span(0, start, self._size), 0)):
            event = frame.sse
            if event is None or not event.dispatched or not frame.payload:
                continue
            if event.event == "endpoint":
                self.endpoint = bytes(frame.payload).decode("utf-8", "replace").strip()
                return True
            try:
                value = orjson.loads(bytes(frame.payload))
            except orjson.JSONDecodeError:
                return False
            return is_mcp(value, lenient=self._lenient)
        return False if self._size >= ENOUGH else None
