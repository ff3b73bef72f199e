"""Bytes that have arrived on a channel and have not left."""


class Raw:
    """A stretch of a channel, from `start` on."""

    def __init__(self) -> None:
        self.start = 0
        self._data = bytearray()

    @property
    def stop(self) -> int:
        """The place after it."""
        return self.start + len(self._data)

    def begins_with(self, data: bytes) -> bool:
        """True if these are the first bytes of it."""
        return self._data.startswith(data)

    def add(self, data: bytes) -> None:
        """More has arrived."""
        self._data += data

    def take(self, stop: int) -> bytes:
        """Take off what lies before the place ``stop``."""
        size = max(0, stop - self.start)
        data = bytes(self._data[:size])
        del self._data[:size]
        self.start += len(data)
        return data
