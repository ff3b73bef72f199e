"""The framing of a chunked body that leaves, where its content may differ from what arrived (RFC 9112 section 7.1).

As long as nobody changes anything every byte leaves as it came. The size of a chunk that has left already is a
promise: what takes the place of an event in its midst is spread over it and further chunks, or, if it is shorter,
followed by line feeds, which mean nothing between two events.
"""

import re
from typing import Final

_SIZE = re.compile(rb"([0-9A-Fa-f]{1,16})[ \t]*(?:;[^\n]*)?\r?\n\Z")
_END: Final = b"\r\n"


class Chunks:
    """Frames what leaves. Without ``is_chunked`` the end of the connection ends the body, and there is no framing."""

    def __init__(self, *, is_chunked: bool) -> None:
        self._is_chunked = is_chunked
        self.owes_end = False
        """The line end after the content of a chunk is still to leave."""
        self.owed = 0
        """Bytes that the chunk which has begun is still to hold."""

    def lead(self, lead: bytes) -> bytes:
        """What leaves for the framing bytes before a chunk; the chunk has begun then."""
        out = self.fitting(lead)
        self.owed, self.owes_end = size_in(lead), False
        return out

    def fitting(self, framing: bytes) -> bytes:
        """What leaves for framing bytes so that they follow what has left: with the end of a chunk if it is missing."""
        if not self._is_chunked:
            return framing
        bare = framing[2:] if framing.startswith(_END) else framing.removeprefix(b"\n")
        if self.owes_end:
            return framing if bare != framing else _END + framing
        return bare

    def close(self) -> bytes:
        """What leaves to end the chunk whose content has left."""
        if not self.owes_end:
            return b""
        self.owes_end = False
        return _END

    def put(self, data: bytes, upcoming: int = 0) -> tuple[bytes, bytes, bytes]:
        """What leaves for ``data``: content, framing, content.

        ``upcoming``: so many bytes follow it, without framing of their own.
        """
        if not self._is_chunked or not data:
            return data, b"", b""
        if len(data) <= self.owed:
            self.owed -= len(data)
            self.owes_end = not self.owed
            return data, b"", b""
        first, rest = data[: self.owed], data[self.owed :]
        framing = (_END if self.owed or self.owes_end else b"") + b"%x\r\n" % (len(rest) + upcoming)
        self.owed, self.owes_end = upcoming, not upcoming
        return first, framing, rest

    def insert(self, data: bytes) -> bytes:
        """What leaves for ``data`` that nothing in the stream stands for; a chunk of its own is whole, too."""
        is_own = not self.owed and not self.owes_end
        out = b"".join(self.put(data))
        return out + self.close() if is_own else out

    def pad(self, upcoming: int) -> bytes:
        """What leaves so that the chunk which has begun is to hold no more than what is ``upcoming`` of it."""
        if not self._is_chunked or self.owed <= upcoming:
            return b""
        missing, self.owed = self.owed - upcoming, upcoming
        self.owes_end = not upcoming
        return b"\n" * missing

    def end(self) -> bytes:
        """What leaves to end the body before its time."""
        return self.pad(0) + self.close() + b"0\r\n\r\n" if self._is_chunked else b""


def size_in(lead: bytes) -> int:
    """The size of the chunk that framing bytes begin."""
    found = _SIZE.search(lead)
    return int(found[1], 16) if found else 0
