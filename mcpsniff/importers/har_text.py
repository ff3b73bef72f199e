"""The bytes behind a text in a HAR file, which whoever wrote it had decoded, sometimes with the wrong charset.

An event stream is UTF-8 whatever its headers say (WHATWG HTML 9.2.5), and JSON is, too (RFC 8259 section 8.1).
mitmproxy takes an event stream without a charset for Latin-1; others take such bodies for windows-1252.
"""

from collections.abc import Collection
from typing import Final

_WITHOUT: Final = frozenset((0x81, 0x8D, 0x8F, 0x90, 0x9D))
_WINDOWS: Final = {ord(bytes((byte,)).decode("cp1252")): byte for byte in range(0x80, 0xA0) if byte not in _WITHOUT}
"""What windows-1252 makes of bytes that Latin-1 takes for control characters."""


def in_bytes(text: str, kind: str, sizes: Collection[int]) -> tuple[bytes, bool]:
    """Return the bytes of a body of media type ``kind``, and whether the text was decoded with the wrong charset.

    It was if it consists of nothing but UTF-8 read as Latin-1 or windows-1252, unless of ``sizes``, how long the file
    says that the body was, one fits the text as it is, and none fits what it would have been.
    """
    plain = _encoded(text)
    if text.isascii() or not is_always_utf_8(kind):
        return plain, False
    try:
        meant = text.translate(_WINDOWS).encode("latin-1")
        meant.decode()
    except UnicodeError:
        return plain, False
    if len(plain) in sizes and len(meant) not in sizes:
        return plain, False
    return meant, True


def is_always_utf_8(kind: str) -> bool:
    """True for media types whose charset is no matter of choice."""
    kind = kind.partition(";")[0].strip().lower()
    return kind in ("text/event-stream", "application/json") or kind.endswith("+json")


def _encoded(text: str) -> bytes:
    """The text as UTF-8; bytes that were none stand in it as Python's surrogates, other half surrogates stay ones."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
