"""The content codings of HTTP (RFC 9110 section 8.4.1, RFC 7932, RFC 8878), each as a decoder of one member.

A member is what ends by itself: a gzip member, a zlib or raw deflate stream, a brotli stream, a zstd frame.
"""

import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

PROOF: Final = 16
"""So many bytes of printable text in a row are no deflate or brotli stream, which have nothing else to be known by."""
_ZSTD_WINDOW_LOG: Final = 25
"""32 MiB: four times what RFC 9659 allows on HTTP. A decoder needs as much memory as a frame's window has."""

_GZIP_MAGIC: Final = b"\x1f\x8b"
_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_ZSTD_SKIPPABLE: Final = b"\x2a\x4d\x18"
_PRINTABLE: Final = frozenset(b"\t\n\r") | frozenset(range(0x20, 0x7F))


class DamagedError(Exception):
    """The coded bytes are not what the coding allows."""


class TooLargeError(Exception):
    """Decoding would need more memory than the observer gives."""


class Member(Protocol):
    """Decodes one member."""

    ended: bool
    """True once its last byte was taken."""
    more: bool
    """True if there is more output for the input so far; ask with an empty ``data``."""
    unused: bytes
    """What was fed beyond its end."""

    def decode(self, data: bytes, room: int) -> bytes:
        """Output for ``data``, about ``room`` bytes at most. Raises DamagedError and TooLargeError."""


class _Deflate:
    def __init__(self, window_bits: int) -> None:
        self._inflate = zlib.decompressobj(window_bits)
        self.ended = self.more = False
        self.unused = b""

    def decode(self, data: bytes, room: int) -> bytes:
        inflate = self._inflate
        try:
            out = inflate.decompress(inflate.unconsumed_tail + data, room)
        except zlib.error as error:
            raise DamagedError from error
        self.ended, self.unused = inflate.eof, inflate.unused_data
        self.more = not self.ended and (len(out) >= room or bool(inflate.unconsumed_tail))
        return out


class _Brotli:
    """Has no way to tell what follows its end: bytes fed with the last ones of the stream raise DamagedError."""

    unused = b""

    def __init__(self) -> None:
        import brotli  # type: ignore[import-untyped]

        self._error: type[Exception] = brotli.error
        self._brotli: Any = brotli.Decompressor()
        self.ended = self.more = False

    def decode(self, data: bytes, room: int) -> bytes:
        try:
            out: bytes = self._brotli.process(data, output_buffer_limit=room)
        except self._error as error:
            raise DamagedError from error
        self.ended = self._brotli.is_finished()
        # It can accept more as soon as it has taken all input, also while it holds output back.
        self.more = not self.ended and (bool(out) or not self._brotli.can_accept_more_data())
        return out


class _Zstd:
    def __init__(self) -> None:
        zstd = zstd_module()
        self._error: type[Exception] = zstd.ZstdError
        self._zstd: Any = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: _ZSTD_WINDOW_LOG})
        self.ended = self.more = False
        self.unused = b""

    def decode(self, data: bytes, room: int) -> bytes:
        try:
            out: bytes = self._zstd.decompress(data, room)
        except self._error as error:
            raise (TooLargeError if "memory" in str(error) else DamagedError) from error
        self.ended, self.unused = self._zstd.eof, self._zstd.unused_data
        self.more = not self.ended and not self._zstd.needs_input
        return out


def zstd_module() -> Any:
    """The zstd module: of the standard library from Python 3.14 on. Raises ImportError if there is none."""
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd


def _is_gzip(head: bytes, *, final: bool = False) -> bool | None:
    return _begins(head, _GZIP_MAGIC, final=final)


def _is_zstd(head: bytes, *, final: bool = False) -> bool | None:
    if head and head[0] & 0xF0 == 0x50:
        return _begins(head, head[:1] + _ZSTD_SKIPPABLE, final=final)
    return _begins(head, _ZSTD_MAGIC, final=final)


def _is_deflate(head: bytes, *, final: bool = False) -> bool | None:
    if head and head[0] & 0x0F == 8 and len(head) < 2 and not final:
        return None
    return _has_zlib_header(head) or _is_no_text(head, final=final)


def _has_zlib_header(head: bytes) -> bool:
    """Servers send both what RFC 9110 calls deflate (zlib, RFC 1950) and a raw deflate stream (RFC 1951)."""
    return len(head) >= 2 and head[0] & 0x0F == 8 and head[0] >> 4 <= 7 and int.from_bytes(head[:2]) % 31 == 0


def _is_no_text(head: bytes, *, final: bool = False) -> bool | None:
    if not _PRINTABLE.issuperset(head[:PROOF]):
        return True
    return False if final or len(head) >= PROOF else None


def _begins(head: bytes, magic: bytes, *, final: bool) -> bool | None:
    """Whether ``head`` begins with ``magic``; None while that cannot be said. Half of it at the end is a cut one."""
    if len(head) < len(magic) and magic.startswith(head):
        return not _PRINTABLE.issuperset(head) if final else None
    return head.startswith(magic)


class Recogniser(Protocol):
    """Says whether ``head`` begins a member; None while that cannot be said, which is never if it is ``final``."""

    def __call__(self, head: bytes, *, final: bool = False) -> bool | None:
        """See the class."""


@dataclass(frozen=True, slots=True)
class Coding:
    """One coding: how a member of it is known, opened, and whether several may follow one another."""

    is_member: Recogniser
    open: Callable[[bytes], Member]
    """Makes a decoder for the member with this head. Raises ImportError if its package is not there."""
    is_certain: Callable[[bytes], bool]
    """True if what begins like this can be nothing else: then an error is damage, not plain bytes."""
    joins: bool = False


_GZIP: Final = Coding(_is_gzip, lambda _: _Deflate(31), lambda _: True, joins=True)
_ZSTANDARD: Final = Coding(_is_zstd, lambda _: _Zstd(), lambda _: True, joins=True)

CODINGS: Final = {
    "gzip": _GZIP,
    "x-gzip": _GZIP,
    "deflate": Coding(_is_deflate, lambda head: _Deflate(15 if _has_zlib_header(head) else -15), _has_zlib_header),
    "br": Coding(_is_no_text, lambda _: _Brotli(), lambda _: False),
    "zstd": _ZSTANDARD,
}
"""The codings that can be removed, by their names in Content-Encoding."""
