"""What mcpsniff itself changed, said or hid on the way, in words; what it does to every request is told once."""

import re
from collections import OrderedDict
from typing import Final

from mcpsniff.checks.words import said_by_us
from mcpsniff.decoder.edited_heads import unusual
from mcpsniff.protocol.edits import Edit
from mcpsniff.protocol.events import Note
from mcpsniff.transcript.wording import note_words

US: Final = "mcpsniff"
TOLD_LIMIT: Final = 1_000
"""Kinds of changes that are told apart; beyond, the one that was told longest ago may be told again."""
LONGEST: Final = 500
_UNREACHED: Final = re.compile(
    r"(the upstream \S+ is not trusted): "
    r"|(the upstream \S+ expects TLS): "
    r"|(TLS with the upstream \S+ failed: .*)\. (?:Check|Let|Use) "
    r"|(cannot reach the upstream \S+ \(.*\))\. ",
    re.DOTALL,
)
"""What of an answer stays on its row: MCP556 explains the rest once, with the fix."""

_SIZES: Final = re.compile(r"(?:\s*[0-9A-Fa-f]+)?\s*")
"""The size of a chunk of HTTP."""

type Words = tuple[str, str]
"""What to say, and what the capture says."""


class OwnChanges:
    """Gives each record of the recorder its words, or None where a row of its own would only repeat."""

    def __init__(self) -> None:
        self._told: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._answer: tuple[Note, Words] | None = None

    def words(self, note: Note) -> Words | None:
        """What to say of a record. Of an answer of our own nothing: the HTTP exchange says it (`take_answer`)."""
        if note.kind == "mask":
            return None  # stars stand in its place on the row of its exchange, and the summary counts them
        if note.kind != "rewrite" or note.fields.get("by") != US:
            return note_words(note)
        data = note.fields.get("data")
        text = data.decode("latin-1") if isinstance(data, bytes) else ""
        if note.fields.get("length") == 0 and text.startswith("HTTP/"):
            self._answer = note, ("mcpsniff answered in the server's place", _what_we_said(data))
            return None
        why = note.fields.get("why")
        if isinstance(why, str) and why:  # what edit mode does so that what was edited can be read
            said = "mcpsniff changed how this is sent (told once)", why
            return said if not _SIZES.fullmatch(text) and self._is_new("why", why) else None
        if text.startswith(("/", "?")) or "\n" in text or "\r" in text:
            address = text.splitlines()[0] if text else ""
            return "mcpsniff made the endpoint relative, so that the client does not go past it", address
        if text and not text.isspace() and " " not in text:
            title = "mcpsniff puts the upstream's own name into Host, as the upstream expects it (told once)"
            return (title, text) if self._is_new("host", text) else None
        return note_words(note)

    def is_new_head(self, edit: Edit) -> bool:
        """True if nobody has been told yet that somebody changes these headers: who does, does it to every request."""
        return self._is_new("head", " ".join((edit.direction, edit.by, *unusual(edit.members))))

    def take_answer(self) -> tuple[Note, Words] | None:
        """The answer of our own in the record that is being read, until it was asked for."""
        answer, self._answer = self._answer, None
        return answer

    def _is_new(self, kind: str, what: str) -> bool:
        key = kind, what[:LONGEST]
        if key in self._told:
            return False
        self._told[key] = None
        if len(self._told) > TOLD_LIMIT:
            self._told.popitem(last=False)
        return True


def _what_we_said(data: object) -> str:
    """The sentence in the body of an answer of ours (`mcpsniff.proxy.answers`)."""
    body = data.partition(b"\r\n\r\n")[2] if isinstance(data, bytes) else b""
    return _in_short(" ".join(said_by_us(body).split()))[:LONGEST]


def _in_short(text: str) -> str:
    """Leave out what MCP556 says, too, and what is said with each answer."""
    first, besides, more = text.partition(" Besides, ")
    found = _UNREACHED.match(first)
    if found is None:
        return text
    short = found[found.lastindex or 0]
    return f"{short}.{besides}{more}" if more else short
