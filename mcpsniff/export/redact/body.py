"""The body of an HTTP message: read without its content coding, and written anew in it where something was removed."""

from collections.abc import Iterable
from typing import Final

from mcpsniff.export.redact.documents import BODY, EVENT, FORM, Account, Gatherer
from mcpsniff.export.redact.edits import ChannelEdits, Gap
from mcpsniff.export.redact.recode import coder_of
from mcpsniff.export.redact.views import Edit
from mcpsniff.protocol.http import EVENT_STREAM, media_type
from mcpsniff.wire.body import BodyDecoder
from mcpsniff.wire.frames import (
    CODING_CUT,
    CODING_DAMAGED,
    CODING_MISMATCH,
    CODING_TRAILING,
    CODING_UNKNOWN,
    DECODE_CAP,
)

LONGEST: Final = 64 << 20
"""Bytes that a coded body may come to; of a longer one nothing is kept."""
UNREADABLE: Final = "unreadable body"
TRAILING: Final = b"redacted-trailing-bytes"
"""What follows the end of a coded body that was written anew, if anything did: nobody reads that."""

_UNREAD: Final = frozenset({CODING_UNKNOWN, CODING_DAMAGED, DECODE_CAP})
_FORM: Final = "application/x-www-form-urlencoded"

type Headers = Iterable[tuple[str, str]]


def values_of(headers: Headers, name: str) -> list[str]:
    """The values of all headers of this name, which is in lower case."""
    return [value for key, value in headers if key.lower() == name]


class Body:
    """One body. `feed` takes its bytes, `end` hands over what is left."""

    def __init__(self, account: Account, edits: ChannelEdits, headers: Headers, where: str) -> None:
        headers = list(headers)
        kind = media_type(next(iter(values_of(headers, "content-type")), None))
        codings = ", ".join(values_of(headers, "content-encoding"))
        decoder = BodyDecoder(codings, limit=LONGEST, stream=kind == EVENT_STREAM) if codings else None
        self._edits = edits
        self._coded = None if decoder is None or decoder.coding is None else _Coded(decoder, edits)
        inner = edits if self._coded is None else self._coded.edits
        what = EVENT if kind == EVENT_STREAM else FORM if kind == _FORM else BODY
        self._gatherer = Gatherer(account, inner, what, where)

    def feed(self, data: bytes, offset: int) -> None:
        """The next bytes, which are at ``offset`` of the channel."""
        if self._coded is None:
            self._gatherer.feed(data, offset)
        elif plain := self._coded.feed(data, offset):
            self._gatherer.feed(plain, self._coded.size - len(plain))

    def gap(self) -> None:
        """Bytes are missing here."""
        if self._coded is None:
            self._gatherer.end()
        else:
            self._coded.gap()

    def end(self) -> bool:
        """It is over; returns whether all of it was read."""
        if self._coded is None:
            self._gatherer.end()
            return True
        if rest := self._coded.rest():
            self._gatherer.feed(rest, self._coded.size - len(rest))
        self._gatherer.end()
        return self._coded.end()


class _Coded:
    """A body with a content coding, which is kept until its end."""

    def __init__(self, decoder: BodyDecoder, edits: ChannelEdits) -> None:
        self.edits = ChannelEdits()
        """In the text without its coding."""
        self.size = 0
        self._decoder = decoder
        self._channel = edits
        self._pieces: list[tuple[int, int, bytes]] = []
        """Of each piece: its offset, its size, and what it came to."""
        self._beginning = b""
        self._is_lost = False

    def feed(self, data: bytes, offset: int) -> bytes:
        """The next coded bytes; returns what they come to."""
        if len(self._beginning) < 2:
            self._beginning += data[:2]
        plain = b"" if self._is_lost else self._take(self._decoder.feed(data))
        self._pieces.append((offset, len(data), plain))
        return plain

    def gap(self) -> None:
        """Coded bytes are missing: what follows cannot be read."""
        self._is_lost = True

    def rest(self) -> bytes:
        """What the end brings."""
        plain = b"" if self._is_lost else self._take(self._decoder.finish())
        if plain and self._pieces:
            offset, size, before = self._pieces[-1]
            self._pieces[-1] = (offset, size, before + plain)
        return plain

    def end(self) -> bool:
        """Write it anew if that is needed; returns False if it had to be left out."""
        flaws = self._decoder.flaws
        if self._is_lost or not _UNREAD.isdisjoint(flaws) or (self.size > LONGEST):
            return self._leave_out()
        if not len(self.edits):
            return True
        self.edits.seal()
        coder = None
        if CODING_MISMATCH not in flaws:
            coder = coder_of(self._decoder.coding or "", self._beginning)
            if coder is None:
                return self._leave_out()
        position = 0
        for number, (offset, size, plain) in enumerate(self._pieces):
            new, what, at = b"", "", ""
            for part in self.edits.chunk(position, plain):
                if isinstance(part, bytes):
                    new += part
                elif not isinstance(part, Gap):
                    what, at = what or part.what, at or part.at
            position += len(plain)
            coded = new if coder is None else coder.flush(new) if new or not number else b""
            if number == len(self._pieces) - 1 and coder is not None and CODING_CUT not in flaws:
                coded += coder.finish()
                if CODING_TRAILING in flaws:
                    coded += TRAILING
            self._channel.add(Edit(offset, offset + size, coded, what, at))
        return True

    def _leave_out(self) -> bool:
        for offset, size, _ in self._pieces:
            self._channel.add(Edit(offset, offset + size, b"", UNREADABLE, "body", is_gap=True))
        return not self._pieces

    def _take(self, plain: bytes) -> bytes:
        self.size += len(plain)
        if self.size > LONGEST:
            self._is_lost = True
            self._pieces = [(offset, size, b"") for offset, size, _ in self._pieces]
        return plain
