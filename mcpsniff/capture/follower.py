"""Follow a capture while it grows: the same records that the reader gives, as they are written.

By polling, which works on every file system: 20 ms between looks is far below what a person sees, and costs next to
nothing. Never half a line; parts are chained as they appear.
"""

import os
import time
from collections.abc import Callable, Iterator
from io import FileIO
from typing import Final

from mcpsniff.capture.labels import shown
from mcpsniff.capture.parser import Damage, PartParser, gap
from mcpsniff.capture.reader import BLOCK, MOST_DAMAGE, missing_between, open_regular, part_numbers, passed_over
from mcpsniff.capture.records import CLOSE, Header, Record
from mcpsniff.capture.store import part_path, reason, split_part
from mcpsniff.errors import CaptureError

INTERVAL: Final = 0.02
"""Seconds between two looks when nothing new was found."""

SETTLE: Final = 0.2
"""Seconds without anything new, after the process ended, that make the end of the capture."""

_LISTING_EVERY: Final = 50


class CaptureLost(CaptureError):  # noqa: N818  an event of the file, named as such
    """The file that was followed vanished, was replaced or was cut; all that could be read was given before."""


class Follower:
    """Follows one capture from its first record; ``path`` is its first part, or the part to join at.

    `poll` gives what is new and never waits; `follow` is the loop around it. ``sleep`` and ``clock`` are for tests.
    Raises CaptureError when there is no such file.
    """

    def __init__(
        self,
        path: str,
        *,
        sleep: Callable[[float], object] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        interval: float = INTERVAL,
    ) -> None:
        self.header: Header | None = None
        """That of the first part that was read; None until its first line is complete."""
        self.joined_late = False
        self.damage: list[Damage] = []
        self.damage_count = 0
        self.ended = False
        """The process has ended and everything was read."""
        self._sleep, self._clock, self._interval = sleep, clock, interval
        self._exit_seen = False
        self._quiet_since: float | None = None
        self._idle_polls = 0
        self._first, self._number = split_part(path)
        self._path = path
        self._others: set[int] = set()
        self._file = self._open(path)
        self._parser = PartParser(path, self._report)

    @property
    def path(self) -> str:
        """The part that is being read."""
        return self._path

    def poll(self) -> list[Record]:
        """Return the records written since the last call, a bounded number at a time; none when nothing is new.

        Raises CaptureLost when the file vanished, was replaced or cut, and CaptureError when it is no capture.
        """
        records = self._read()
        if not records and not self.ended:
            records = self._at_end()
        if records:
            self._quiet_since = None
            self._idle_polls = 0
        return records

    def follow(self, stop: Callable[[], bool] = lambda: False) -> Iterator[Record | None]:
        """Yield records as they come, and None whenever nothing is new, then wait a moment.

        Ends when the recorded process ended and everything was read, or when ``stop`` says so; in both cases what an
        unfinished last line is worth comes last. Raises as `poll` does.
        """
        try:
            while not self.ended:
                records = self.poll()
                if records:
                    yield from records
                    continue
                yield None
                if stop():
                    break
                if not self.ended:
                    self._sleep(self._interval)
            yield from self.finish()
        finally:
            self.close()

    def finish(self) -> list[Record]:
        """Nothing more will be written: return what the unfinished last line is worth, and close the file."""
        self.ended = True
        if self._file.closed:
            return []
        self._file.close()
        return self._parser.finish()

    def close(self) -> None:
        """Stop following."""
        self.ended = True
        self._file.close()

    def _read(self) -> list[Record]:
        """Return the records of the next blocks; an empty list at the end of the file as it is now."""
        if self._file.closed:
            return []
        while True:
            try:
                block = self._file.read(BLOCK)
            except OSError as error:
                raise CaptureLost(f"cannot read {shown(self._path)} any more: {reason(error)}") from None
            if not block:
                return []
            records = self._parser.feed(block)
            if self.header is None and self._parser.header is not None:
                self.header = self._parser.header
                self.joined_late = self.header.part > 1
            self._exit_seen = self._exit_seen or any(_is_exit(record) for record in records)
            if records:
                return records

    def _at_end(self) -> list[Record]:
        """Nothing new in this file: look for the next part, for a lost file, for the end."""
        self._idle_polls += 1
        following = self._following()
        if following:
            # The writer begins a part only when the one before is complete, so what is unread of that comes first.
            return self._read() or self._switch(following)
        self._check_file()
        now = self._clock()
        if self._quiet_since is None:
            self._quiet_since = now
        if self._exit_seen and now - self._quiet_since >= SETTLE:
            self.ended = True
        return []

    def _following(self) -> int | None:
        """Return the number of the next part if it is there; one that was pruned unseen is looked for now and then."""
        number = self._number + 1
        if number not in self._others and os.path.exists(part_path(self._first, number)):
            return number
        if self._idle_polls % _LISTING_EVERY and os.path.exists(self._path):
            return None
        later = (n for n in part_numbers(self._first) if n > self._number and n not in self._others)
        return min(later, default=None)

    def _switch(self, number: int) -> list[Record]:
        """Go on to the next part, if it belongs to this run and has its header already."""
        path = part_path(self._first, number)
        try:
            header = self._header_so_far(path)
            if header is None:
                return []
            if self.header is not None and header.run != self.header.run:
                self._others.add(number)
                return []
            file = self._open(path)
        except CaptureError as error:
            self._report(passed_over(path, error))
            self._others.add(number)
            return []
        records = self._parser.finish()
        missing = self._parser.header and missing_between(self._parser.header, header)
        if missing:
            self._report(Damage(path, 1, 0, missing))
            records.append(gap(self._parser.t, None))
        self._file.close()
        self._file, self._path, self._number = file, path, number
        self._parser = PartParser(path, self._report, self._parser.t)
        return records + self._read()

    def _header_so_far(self, path: str) -> Header | None:
        """Return the header of a part, None while it is being written. Raises CaptureError when it is no part."""
        parser = PartParser(path, report=lambda _damage: None)
        with self._open(path) as file:
            while parser.header is None:
                try:
                    block = file.read(BLOCK)
                except OSError as error:
                    raise CaptureError(f"cannot read {shown(path)}: {reason(error)}") from None
                if not block:
                    return None
                parser.feed(block)
        return parser.header

    def _check_file(self) -> None:
        """Raise CaptureLost unless the open file is still the one at the path, and as long as what was read."""
        try:
            now = os.stat(self._path)
        except OSError:
            raise CaptureLost(f"{shown(self._path)} vanished while it was followed") from None
        ours = os.fstat(self._file.fileno())
        if (now.st_dev, now.st_ino) != (ours.st_dev, ours.st_ino):
            raise CaptureLost(f"{shown(self._path)} was replaced by another file while it was followed")
        if ours.st_size < self._file.tell():
            raise CaptureLost(f"{shown(self._path)} was cut to {ours.st_size} bytes while it was followed")

    @staticmethod
    def _open(path: str) -> FileIO:
        try:
            return open_regular(path)
        except (OSError, ValueError) as error:
            raise CaptureError(f"cannot follow {shown(path)}: {reason(error)}") from None

    def _report(self, damage: Damage) -> None:
        self.damage_count += 1
        if len(self.damage) < MOST_DAMAGE:
            self.damage.append(damage)


def follow(path: str, stop: Callable[[], bool] = lambda: False) -> Iterator[Record | None]:
    """Follow the capture at ``path``: see `Follower.follow`."""
    return Follower(path).follow(stop)


def _is_exit(record: Record) -> bool:
    """Say whether the record tells that the wrapped process ended, or never began."""
    return record.kind == CLOSE and record.body["how"] in {"exit", "killed", "error"}
