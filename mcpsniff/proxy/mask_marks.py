"""What is to be masked of one channel: ranges of the chunk at hand, and the records that tell about whole secrets."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import hmac

FINGERPRINT: Final = 16
"""Hexadecimal digits of a fingerprint: 64 bits."""
PIECES: Final = 256
"""Pieces of one secret that are kept; a secret in more (each chunk of a body gives one) is told of in several parts."""


class Marks:
    """Collects the secrets of one channel while its bytes go by. A secret may go on over any number of chunks.

    ``salt`` is asked for when the first secret is met.
    """

    def __init__(self, salt: Callable[[], bytes]) -> None:
        self.ranges: list[tuple[int, int]] = []
        """Where secrets stand in the chunk at hand."""
        self.records: list[dict[str, Any]] = []
        """Bodies of ``mask`` records, one for each contiguous piece of a secret that has ended."""
        self.base = 0
        """Recorded offset of the first byte of the chunk at hand, as far as nothing is left out of it."""
        self.found = False
        """A secret has been met since this was last set to False."""
        self._salt = salt
        self._digest: hmac.HMAC | None = None
        self._what = ""
        self._pieces: list[tuple[int, int]] = []

    def hide(self, what: str, data: bytes, start: int, stop: int) -> None:
        """``data[start:stop]`` belongs to a secret: to the one that is open, or to a new one called ``what``."""
        if start >= stop:
            return
        if self._digest is None:
            import hmac  # 4 MiB with what it loads: only where there is a secret

            self._digest, self._what = hmac.new(self._salt(), digestmod="sha256"), what
            self.found = True
        self._digest.update(data[start:stop])
        self.ranges.append((start, stop))
        first, last = self.base + start, self.base + stop
        if self._pieces and self._pieces[-1][1] == first:
            self._pieces[-1] = (self._pieces[-1][0], last)
        elif len(self._pieces) < PIECES:
            self._pieces.append((first, last))
        else:
            self.end()
            self.hide(what, data, start, stop)

    def end(self) -> None:
        """The open secret, if there is one, is over."""
        if self._digest is None:
            return
        fingerprint = self._digest.hexdigest()[:FINGERPRINT]
        self.records += [
            {"start": start, "length": stop - start, "what": self._what, "fp": fingerprint}
            for start, stop in self._pieces
        ]
        self._digest, self._pieces = None, []

    def masked(self, data: bytes) -> bytes:
        """Return the chunk at hand with ``*`` for each byte of a secret; the same object if it has none."""
        if not self.ranges:
            return data
        masked = bytearray(data)
        for start, stop in self.ranges:
            masked[start:stop] = b"*" * (stop - start)
        self.ranges = []
        return bytes(masked)

    def take_records(self) -> list[dict[str, Any]]:
        """Return the records of secrets that have ended, once."""
        records, self.records = self.records, []
        return records
