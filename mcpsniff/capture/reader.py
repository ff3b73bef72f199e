"""Read a capture: its header, its parts as one, its records as a stream in a few MiB of memory.

capture = open_capture("server-20261129T100000.123Z-4711.mcpcap")
for record in capture.records():
    ...
for damage in capture.damage:
    ...
"""

import os
import re
import stat
import tempfile
from collections.abc import Iterator
from io import FileIO
from itertools import pairwise
from typing import BinaryIO, Final, NamedTuple

from mcpsniff.capture.labels import shown
from mcpsniff.capture.parser import Damage, PartParser, gap
from mcpsniff.capture.records import Header, Record
from mcpsniff.capture.store import SUFFIX, part_path, reason, split_part
from mcpsniff.errors import CaptureError

__all__ = ["Capture", "Damage", "Part", "open_capture", "open_stream", "read_header"]

BLOCK: Final = 128 * 1024
MOST_DAMAGE: Final = 1000
"""Damages that are kept; further ones are counted only."""


class Part(NamedTuple):
    """One file of a capture."""

    path: str
    header: Header


class Capture:
    """A capture that can be read; made by `open_capture` and `open_stream`."""

    def __init__(self, parts: list[Part], found: list[Damage], stream: "_Started | None" = None) -> None:
        self.parts = parts
        self.header = parts[0].header
        self.path = parts[0].path
        self.joined_late = self.header.part > 1
        """The first parts are gone: what happened before is unknown; `header` tells the channels open at its start."""
        self.damage: list[Damage] = list(found)
        """What could not be read as written; complete when `records` is exhausted, at most MOST_DAMAGE entries."""
        self.damage_count = len(found)
        self._found = found
        self._stream = stream

    def records(self) -> Iterator[Record]:
        """Yield the records of all parts in order, times never decreasing; each call begins anew (not on a stream).

        Chunks hold bytes, and so does ``data`` of a rewrite. Records of unknown kinds are left out. Where bytes of a
        channel cannot be read there is a ``gap`` with why ``damage`` (channel None: any channel), and an entry in
        `damage`. Raises CaptureError when a part turned into something else since the capture was opened.
        """
        self.damage, self.damage_count = list(self._found), len(self._found)
        t = 0
        before: Part | None = None
        for part in self.parts:
            if before and missing_between(before.header, part.header):
                yield gap(t, None)
            parser = PartParser(part.path, self._report, t)
            yield from self._part_records(part, parser)
            t, before = parser.t, part

    @property
    def is_kept(self) -> bool:
        """True for a stream that `keep` has read."""
        return isinstance(self._stream, _Kept)

    @property
    def reads_once(self) -> bool:
        """True for a stream that can be read only once."""
        return self._stream is not None and not self.is_kept

    def keep(self) -> None:
        """Let `records` begin anew each time also on a stream, which is read to its end into a temporary file.

        Raises CaptureError when it cannot be read, or the temporary file not be written.
        """
        if self._stream is None:
            return
        try:
            with self._take_stream() as stream:
                file = tempfile.TemporaryFile()  # noqa: SIM115  closed with the capture
                while block := stream.read(BLOCK):
                    file.write(block)
        except OSError as error:
            raise CaptureError(f"cannot keep {shown(self.path)} for reading it twice: {reason(error)}") from None
        self._stream = _Kept(file)

    def _part_records(self, part: Part, parser: PartParser) -> Iterator[Record]:
        try:
            file = self._take_stream() if self._stream else open_regular(part.path)
        except OSError as error:
            self._report(Damage(part.path, 1, 0, f"this part cannot be read: {reason(error)}"))
            yield gap(parser.t, None)
            return
        with file:
            while True:
                try:
                    block = file.read(BLOCK)
                except OSError as error:
                    text = f"the rest cannot be read: {reason(error)}"
                    self._report(Damage(part.path, parser.number + 1, parser.offset, text))
                    yield gap(parser.t, None)
                    break
                if not block:
                    break
                yield from parser.feed(block)
        yield from parser.finish()

    def _take_stream(self) -> "_Started":
        stream = self._stream
        assert stream is not None
        if stream.taken:
            raise CaptureError(f"{shown(self.path)} can be read only once")
        stream.taken = True
        return stream

    def _report(self, damage: Damage) -> None:
        self.damage_count += 1
        if len(self.damage) < MOST_DAMAGE:
            self.damage.append(damage)


class _Started:
    """A stream whose first bytes were read already, to be read from its beginning once; ``owned``: then closed."""

    def __init__(self, start: bytes, stream: BinaryIO, *, owned: bool) -> None:
        self.taken = False
        self._start = start
        self._stream = stream
        self._owned = owned

    def read(self, size: int) -> bytes:
        """Return up to ``size`` bytes, none at the end."""
        if self._start:
            block, self._start = self._start, b""
            return block
        read = getattr(self._stream, "read1", self._stream.read)
        return bytes(read(size) or b"")

    def __enter__(self) -> "_Started":
        return self

    def __exit__(self, *_: object) -> None:
        if self._owned:
            self._stream.close()


class _Kept(_Started):
    """A stream in a temporary file, to be read as often as needed."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(b"", file, owned=False)

    def __enter__(self) -> "_Kept":
        self.taken = False
        self._stream.seek(0)
        return self


def open_capture(path: str) -> Capture:
    """Open the capture at ``path``, which may be any of its parts, and read its header.

    All parts of the same run beside it belong to the capture. Raises CaptureError, with the file and line in its
    text, when the path leads to nothing readable, to something that is no capture, or to one of a newer version.
    """
    path = os.fspath(path)
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        later = [number for number in part_numbers(path) if number > 1]
        if not later:
            raise CaptureError(f"no such capture: {shown(path)}") from None
        return _chain(Part(part_path(path, later[0]), read_header(part_path(path, later[0]))))
    except (OSError, ValueError) as error:
        raise CaptureError(f"cannot read {shown(path)}: {reason(error)}") from None
    if stat.S_ISREG(mode):
        return _chain(Part(path, read_header(path)))
    if stat.S_ISDIR(mode):
        raise CaptureError(f"{shown(path)} is a folder, not a capture")
    try:
        stream = open(path, "rb", buffering=0)  # noqa: SIM115  a pipe: closed when it was read
    except OSError as error:
        raise CaptureError(f"cannot read {shown(path)}: {reason(error)}") from None
    try:
        return open_stream(stream, path, owned=True)
    except CaptureError:
        stream.close()
        raise


def open_stream(stream: BinaryIO, name: str = "standard input", *, owned: bool = False) -> Capture:
    """Open the capture that ``stream`` holds, for one reading, after which an ``owned`` stream is closed.

    ``name`` stands for its path. Raises CaptureError.
    """
    blocks: list[bytes] = []
    try:
        header = _first_line(stream, name, blocks)
    except OSError as error:
        raise CaptureError(f"cannot read {shown(name)}: {reason(error)}") from None
    part = Part(name, header)
    return Capture([part], list(_of_source(part)), _Started(b"".join(blocks), stream, owned=owned))


def read_header(path: str) -> Header:
    """Return the header of one capture file; raises CaptureError."""
    try:
        with open_regular(path) as file:
            return _first_line(file, path, [])
    except (OSError, ValueError) as error:
        raise CaptureError(f"cannot read {shown(path)}: {reason(error)}") from None


def open_regular(path: str) -> FileIO:
    """Open a file for reading; raises OSError, also for a pipe or device, at which opening or reading may wait."""
    file = FileIO(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK))
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(f"{shown(path)} is not a regular file")
    return file


def _first_line(stream: BinaryIO, path: str, blocks: list[bytes]) -> Header:
    """Read until the header is complete; what was read is appended to ``blocks``."""
    parser = PartParser(path, report=lambda _damage: None)
    while parser.header is None:
        block = getattr(stream, "read1", stream.read)(16 * 1024)
        if not block:
            parser.finish()
            break
        blocks.append(block)
        parser.feed(block)
    assert parser.header is not None
    return parser.header


def _chain(named: Part) -> Capture:
    """Return the capture that the part that was named belongs to."""
    first, number = (named.path, 1) if named.header.part == 1 else split_part(named.path)
    parts: list[Part] = []
    found: list[Damage] = []
    for other in sorted({number, *part_numbers(first)}):
        path = part_path(first, other)
        if other == number:
            parts.append(named)
            continue
        try:
            part = Part(path, read_header(path))
        except CaptureError as error:
            found.append(passed_over(path, error))
            continue
        if part.header.run == named.header.run:
            parts.append(part)
    for before, after in pairwise(parts):
        missing = missing_between(before.header, after.header)
        if missing:
            found.append(Damage(after.path, 1, 0, missing))
    return Capture(parts, [*_of_source(parts[0]), *found])


def _of_source(part: Part) -> Iterator[Damage]:
    """What the capture lacks that this one was redacted from."""
    if number := _told_damage(part.header):
        places = "1 place" if number == 1 else f"{number:,} places"
        yield Damage(part.path, 1, 0, f"{places} of the capture that was redacted could not be read")


def _told_damage(header: Header) -> int:
    told = (header.redacted or {}).get("damage")
    return told if type(told) is int and 0 < told < 1 << 53 else 0


def damage_of(capture: Capture) -> int:
    """How many places of ``capture``, whose records were read to the end, could not be read, or of what it is made."""
    told = _told_damage(capture.header)
    return capture.damage_count + told - bool(told)


def missing_between(before: Header, after: Header) -> str:
    """Say which parts are missing between two that follow each other; empty when none is."""
    first, last = before.part + 1, after.part - 1
    if first > last:
        return ""
    which = f"part {first} of this run is" if first == last else f"parts {first} to {last} of this run are"
    return f"{which} missing before this one"


def passed_over(path: str, error: CaptureError) -> Damage:
    """Return the report of a part that cannot be opened."""
    return Damage(path, 1, 0, f"this part is passed over: {str(error).removeprefix(f'{shown(path)}, line 1: ')}")


def part_numbers(first: str) -> list[int]:
    """Return the numbers of the parts that lie at and beside ``first``, sorted; empty when there are none."""
    folder, name = os.path.split(first)
    root = name.removesuffix(SUFFIX)
    pattern = re.compile(re.escape(root) + r"\.([0-9]{4,9})" + re.escape(name[len(root) :]))
    try:
        names = os.listdir(folder or ".")
    except (OSError, ValueError):
        names = []
    matches = (int(match[1]) for other in names if (match := pattern.fullmatch(other)))
    numbers = {number for number in matches if number > 1 and part_path(name, number) in names}
    if name in names:
        numbers.add(1)
    return sorted(numbers)
