"""Puts content codings back onto a body piece by piece, so that each piece can be read when it arrives."""

import zlib
from typing import Any, Protocol

from mcpsniff.wire.codings import zstd_module


class Coder(Protocol):
    """Applies one coding."""

    def flush(self, data: bytes) -> bytes:
        """The coded bytes from which ``data`` can be read at once."""

    def finish(self) -> bytes:
        """The end of the body."""


class _Deflate:
    def __init__(self, window_bits: int) -> None:
        self._deflate = zlib.compressobj(6, zlib.DEFLATED, window_bits)

    def flush(self, data: bytes) -> bytes:
        return self._deflate.compress(data) + self._deflate.flush(zlib.Z_SYNC_FLUSH)

    def finish(self) -> bytes:
        return self._deflate.flush()


class _Brotli:
    def __init__(self) -> None:
        import brotli  # type: ignore[import-untyped]

        self._brotli: Any = brotli.Compressor(quality=5)

    def flush(self, data: bytes) -> bytes:
        coded: bytes = self._brotli.process(data) + self._brotli.flush()
        return coded

    def finish(self) -> bytes:
        coded: bytes = self._brotli.finish()
        return coded


class _Zstd:
    def __init__(self) -> None:
        zstd = zstd_module()
        self._zstd: Any = zstd.ZstdCompressor()

    def flush(self, data: bytes) -> bytes:
        coded: bytes = self._zstd.compress(data, self._zstd.FLUSH_BLOCK)
        return coded

    def finish(self) -> bytes:
        coded: bytes = self._zstd.flush(self._zstd.FLUSH_FRAME)
        return coded


class _Chain:
    """Several codings, in the order in which they are applied."""

    def __init__(self, coders: list[Coder]) -> None:
        self._coders = coders

    def flush(self, data: bytes) -> bytes:
        for coder in self._coders:
            data = coder.flush(data)
        return data

    def finish(self) -> bytes:
        rest = b""
        for coder in self._coders:
            rest = (coder.flush(rest) if rest else b"") + coder.finish()
        return rest


def coder_of(codings: str, beginning: bytes) -> Coder | None:
    """What applies ``codings`` (as `BodyDecoder.coding` has them); None if one of them cannot be applied.

    ``beginning`` are the first bytes of the coded body: some call deflate what has no zlib header.
    """
    coders: list[Coder] = []
    names = codings.split(", ")
    for name in names:
        if name in ("gzip", "x-gzip"):
            coders.append(_Deflate(31))
        elif name == "deflate":
            has_header = len(names) > 1 or (
                len(beginning) > 1 and beginning[0] & 15 == 8 and int.from_bytes(beginning[:2]) % 31 == 0
            )
            coders.append(_Deflate(15 if has_header else -15))
        elif name in ("br", "zstd"):
            try:
                coders.append(_Brotli() if name == "br" else _Zstd())
            except ImportError:
                return None
        else:
            return None
    return _Chain(coders)
