"""The texts in the header and in the bodies of records: each a document, and put back when it was read."""

import re
from collections.abc import Callable
from typing import Any, Final

from mcpsniff.capture.records import HOLD, REWRITE, Header, Record
from mcpsniff.export.redact.connection import Connection, Unread
from mcpsniff.export.redact.documents import BODY, HEADER, SAID, Account, Consume, Document
from mcpsniff.export.redact.edits import ChannelEdits
from mcpsniff.export.redact.views import Edit, applied

HEADER_TEXTS: Final = ("label", "cwd", "by", "upstream", "listen", "imported", "kept_by")

_OURS: Final = frozenset({"kind", "dir", "how", "why", "fp", "scheme"})
"""Members whose values are words of the format."""
_HTTP = re.compile(rb"(?:HTTP/1\.[01] [0-9]|[A-Z]{3,16} \S+ HTTP/1)")
_OPTION = re.compile(r"--?([A-Za-z][A-Za-z0-9_-]*)")

type Changed = Callable[[str, Edit], object]
"""Is told of each edit, with the name of the member."""


class Told:
    """Reads what a capture tells besides the bytes of its channels. ``changed`` hears of what is replaced."""

    def __init__(self, consume: Consume, changed: Changed) -> None:
        self._consume = consume
        self._changed = changed
        self._record: object = None
        self._number = 0

    def header(self, header: Header) -> Header:
        """The header with what stands for its values."""
        self._record, self._number = "header", 0
        texts: dict[str, Any] = {
            name: self._text(name, getattr(header, name)) for name in HEADER_TEXTS if getattr(header, name)
        }
        return header._replace(
            **texts,
            argv=tuple(self._words(header.argv)),
            channels=self._value("channels", header.channels),
            extra=self._value("extra", header.extra),
        )

    def body(self, index: int, record: Record) -> Any:
        """The body of a record that is no chunk, with what stands for its values."""
        self._record, self._number = index, 0
        body = self._value(record.kind, record.body)
        if record.kind in (REWRITE, HOLD) and isinstance(why := record.body.get("why"), str):
            body["why"] = self._text("why", why)  # what an addon gave for a reason, not a word of the format
        if isinstance(data := record.body.get("data"), bytes):
            body["data"] = self._sent(data)
        return body

    def _value(self, name: str, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(name, value)
        if isinstance(value, dict):
            return {key: one if key in _OURS else self._value(key, one) for key, one in value.items()}
        if name == "headers" and isinstance(value, list):
            return [self._pair(pair) for pair in value]
        if isinstance(value, list):
            return [self._value(name, one) for one in value]
        return value

    def _pair(self, pair: Any) -> Any:
        """A header, as ``meta`` has it."""
        if isinstance(pair, list) and len(pair) == 2 and all(isinstance(one, str) for one in pair):
            return [pair[0], self._text(pair[0], pair[1], HEADER)]
        return self._value("header", pair)

    def _words(self, argv: tuple[str, ...]) -> list[str]:
        """The words of a command line; an option is the name of the word after it."""
        words, option = [], ""
        for word in argv:
            words.append(self._text(option or "argv", word))
            found = _OPTION.fullmatch(word)
            option = found[1] if found else ""
        return words

    def _text(self, name: str, text: str, kind: str = SAID) -> str:
        data = text.encode("utf-8", "surrogatepass")
        edits = self._read(kind, data, name)
        return applied(data, edits).decode("utf-8", "surrogatepass") if edits else text

    def _read(self, kind: str, data: bytes, name: str) -> list[Edit]:
        self._number += 1
        edits = self._consume(Document(kind, data, (self._record, self._number), f"`{name}` of a record", name))
        for edit in edits:
            self._changed(name, edit)
        return edits

    def _sent(self, data: bytes) -> bytes:
        """What left instead of recorded bytes: a message of HTTP/1, or whatever it is."""
        if not _HTTP.match(data):
            return applied(data, self._read(BODY, data, ""))
        edits = ChannelEdits()
        account = Account(lambda document: self._read(document.kind, document.data, document.name))
        side = Connection(account, Unread()).side(0, "s2c" if data.startswith(b"HTTP/") else "c2s", edits, 0)
        side.feed(0, data)
        side.close(0)
        edits.seal()
        return b"".join(piece for piece in edits.chunk(0, data) if isinstance(piece, bytes))
