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
        self._has_begun = False
        self._owed = 0
        """Bytes that the chunk which has begun is still to hold."""

    def lead(self, lead: bytes) -> bytes:
        """What leaves for the framing bytes before a chunk; the chunk has begun then."""
        out = self.fitting(lead)
        self._has_begun, self._owed = True, size_in(lead)
        return out

    def fitting(self, framing: bytes) -> bytes:
        """What leaves for framing bytes so that they follow what has left: with the end of a chunk if one is there."""
        if not self._is_chunked:
            return framing
        bare = framing[2:] if framing.startswith(_END) else framing.removeprefix(b"\n")
        if self._has_begun:
            return framing if bare != framing else _END + framing
        return bare

    def put(self, data: bytes, upcoming: int = 0) -> tuple[bytes, bytes, bytes]:
        """What leaves for ``data``: content, framing, content.

        ``upcoming``: so many bytes follow it, without framing of their own.
        """
        if not self._is_chunked or len(data) <= self._owed:
            self._owed -= len(data)
            return data, b"", b""
        first, rest = data[: self._owed], data[self._owed :]
        framing = (_END if self._has_begun else b"") + b"%x\r\n" % (len(rest) + upcoming)
        self._has_begun, self._owed = True, upcoming
        return first, framing, rest

    def pad(self, upcoming: int) -> bytes:
        """What leaves so that the chunk which has begun is to hold no more than what is ``upcoming`` of it."""
        if not self._is_chunked or self._owed <= upcoming:
            return b""
        missing, self._owed = self._owed - upcoming, upcoming
        return b"\n" * missing

    def end(self) -> bytes:
        """What leaves to end the body before its time."""
        if not self._is_chunked:
            return b""
        return self.pad(0) + (_END if self._has_begun else b"") + b"0\r\n\r\n"


def size_in(lead: bytes) -> int:
    """The size of the chunk that framing bytes begin."""
    found = _SIZE.search(lead)
    return int(found[1], 16) if found else 0
