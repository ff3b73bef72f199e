"""When a recording ends, read from the end of its file, so that nothing waits for the whole of it."""

import os
import re
from collections.abc import Iterator
from itertools import takewhile
from typing import Final

from mcpsniff.capture.parser import Damage
from mcpsniff.capture.reader import Capture, open_regular
from mcpsniff.capture.records import Record

TAIL: Final = 1024 * 1024
"""Bytes at the end that are looked at; a record of an ordinary read is shorter."""
_RECORD: Final = re.compile(rb"^\[\s*(\d{1,19})\s*,", re.MULTILINE)


def last_moment(path: str) -> int | None:
    """The time of the last record of a file, in microseconds since the session started.

    None where it cannot be told: no regular file, not readable, a last record that is longer than TAIL. What else
    could be read there, a torn line included, does not matter: the number only tells how far there is to go.
    """
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            start = max(size - TAIL, 0)
            file.seek(start)
            tail = file.read(TAIL) or b""
    except (OSError, ValueError):
        return None
    lines = tail.partition(b"\n")[2]  # the first may be a piece of a line, and is the header in a short file
    found = _RECORD.findall(lines)
    return int(found[-1]) if found else None


class Until:
    """A capture that grows, as far as it had come: up to ``t``. A `mcpsniff.transcript.session.Source`.

    It is read bit by bit while it is played, and what is recorded meanwhile would make the end a matter of chance.
    """

    def __init__(self, capture: Capture, t: int) -> None:
        self._capture = capture
        self._t = t
        self.header, self.path, self.joined_late = capture.header, capture.path, capture.joined_late
        self.parts = capture.parts

    @property
    def damage(self) -> list[Damage]:
        """What could not be read as written, so far."""
        return self._capture.damage

    @damage.setter
    def damage(self, _: list[Damage]) -> None:
        """Only the capture knows."""

    def records(self) -> Iterator[Record]:
        """The records, in order."""
        return takewhile(lambda record: record.t <= self._t, self._capture.records())
