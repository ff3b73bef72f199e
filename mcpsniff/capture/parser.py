"""Blocks of bytes of one capture file in, records out: the one parser behind reader and follower.

It never fails on a line: what it cannot read is reported as Damage, and a ``gap`` record stands in the stream where
bytes of a channel may have been lost, so that whoever decodes judges nothing by what is missing. Only a first line
that is no header raises CaptureError.
"""

import re
from collections.abc import Callable
from typing import Final, NamedTuple

import orjson

from mcpsniff.capture.codec import LATEST, MalformedError, NewerVersionError, decode_header, decode_row, load
from mcpsniff.capture.foreign import IMPORTABLE, LOOK, looks_like
from mcpsniff.capture.labels import shown
from mcpsniff.capture.records import CHUNK, FORMAT_VERSION, GAP, Header, Record
from mcpsniff.errors import CaptureError

LONGEST_LINE: Final = 32 * 1024 * 1024
"""Bytes in a line; a longer one is skipped. A chunk is at most 64 KiB, an edited message may be larger."""

_BOM: Final = b"\xef\xbb\xbf"
_LONG: Final = 1024 * 1024
_LONG_SKELETON: Final = 256 * 1024
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_RECORD_START = re.compile(rb'\[\s*\d{1,19}\s*,\s*"([a-z-]{1,20})"\s*,\s*(\d{1,19}|null)\s*,')

DAMAGE: Final = "damage"
"""The ``why`` of a gap that the reader puts where it could not read; ``bytes`` is 0, for unknown."""


class Damage(NamedTuple):
    """One place where a capture could not be read as written; ``text`` says what is wrong in a few words."""

    path: str
    line: int
    """From 1."""
    offset: int
    """Byte of the file where that line begins."""
    text: str
    tail: Record | None = None
    """The whole record at the end of an unreadable line, when a torn line swallowed it (B106); not in the stream."""

    def __str__(self) -> str:
        return f"{shown(self.path)}, line {self.line} (byte {self.offset}): {self.text}"


type Report = Callable[[Damage], object]


class PartParser:
    """The parser of one file; ``path`` is for reports only.

    ``t`` is the time that no record may precede: 0, or that of the last record of the part before.
    """

    def __init__(self, path: str, report: Report, t: int = 0) -> None:
        self.path = path
        self.header: Header | None = None
        self.t = t
        self.offset = 0
        """Where the next line begins."""
        self.number = 0
        """Lines seen."""
        self._report = report
        self._held: list[bytes] = []
        self._held_size = 0
        self._overlong = False
        self._start = b""

    def feed(self, block: bytes) -> list[Record]:
        """Take the next bytes of the file and return the records that they complete.

        Raises CaptureError when the file is no capture, or of a newer version.
        """
        if self.header is None:
            self._start = (self._start + block[:LOOK])[:LOOK]
        lines = block.split(b"\n")
        rest = lines.pop()
        records: list[Record] = []
        if lines and self._held:
            self._hold(lines[0])
            records = self._take_held()
            del lines[0]
        if lines and self.header is None:
            self._begin(lines.pop(0))
        if lines:
            self._parse(lines, records)
        if rest:
            self._hold(rest)
        return records

    def finish(self) -> list[Record]:
        """The file has ended: return what its unfinished last line is worth, a whole record or a gap.

        Raises CaptureError when there was no header.
        """
        if not self._held:
            if self.header is None:
                raise CaptureError(f"{shown(self.path)}, line 1: empty capture, nothing was recorded")
            return []
        records: list[Record] = []
        line = b"".join(self._held)
        if self.header is None or self._overlong:
            return self._take_held()
        self._held = []
        try:
            load(_checked(line))
        except MalformedError:
            if line.strip():
                self._lost(line, "torn last line: the capture ends within it", records)
        else:
            self._parse([line], records)
        return records

    def _hold(self, piece: bytes) -> None:
        """Keep a piece of a line that is not complete; of an overlong line only its beginning."""
        self._held_size += len(piece)
        if self._held_size > LONGEST_LINE and not self._overlong:
            self._overlong = True
            self._held = [b"".join(self._held)[:LOOK] or piece[:LOOK]]
        if not self._overlong:
            self._held.append(piece)
        if self.header is None and not _may_be_header(self._start):
            raise CaptureError(_foreign(self.path, self._start))

    def _take_held(self) -> list[Record]:
        """Parse the held line, now complete."""
        line, size, overlong = b"".join(self._held), self._held_size, self._overlong
        self._held, self._held_size, self._overlong = [], 0, False
        records: list[Record] = []
        if self.header is None:
            self._begin(line)
        elif overlong:
            self._lost(line, f"unreadable line: it is longer than {LONGEST_LINE >> 20} MiB", records)
            self.number += 1
            self.offset += size + 1
        else:
            self._parse([line], records)
        return records

    def _begin(self, line: bytes) -> None:
        """Read the header."""
        self.header, notes = parse_header(self.path, line, self._start)
        for note in notes:
            self._report(Damage(self.path, 1, 0, note))
        self.number = 1
        self.offset = len(line) + 1

    def _parse(self, lines: list[bytes], records: list[Record]) -> None:
        """Append to ``records`` what complete lines hold. The loop is the decoder's first stage: chunks go straight."""
        loads, new, append = orjson.loads, tuple.__new__, records.append
        last, offset, number = self.t, self.offset, self.number
        for line in lines:
            number += 1
            if len(line) < _LONG:
                try:
                    t, kind, channel, body = loads(line)
                    if (
                        kind == CHUNK
                        and type(body) is str
                        and type(t) is int
                        and last <= t <= LATEST
                        and type(channel) is int
                        and channel >= 0
                    ):
                        append(new(Record, (t, CHUNK, channel, body.encode(), None)))
                        last = t
                        offset += len(line) + 1
                        continue
                except (ValueError, TypeError):
                    pass
            self.t, self.offset, self.number = last, offset, number - 1
            self._parse_slowly(line, records)
            last = self.t
            offset += len(line) + 1
        self.t, self.offset, self.number = last, offset, number

    def _parse_slowly(self, line: bytes, records: list[Record]) -> None:
        """Parse a line that is not a plain chunk, and say what is wrong with it."""
        if not line.strip():
            return
        notes: list[str] = []
        try:
            record = decode_row(load(_checked(line)), notes)
        except MalformedError as error:
            self._lost(line, f"unreadable line: {error}", records)
            return
        if record is None:
            return
        if not self.t <= record.t <= LATEST:
            notes.append(f"its time {record.t} is out of order, taken as {self.t}")
            record = record._replace(t=self.t)
        if record.at is not None and not 0 <= record.at <= record.t:
            notes.append(f"its earlier time {record.at} is none, passed over")
            record = record._replace(at=None)
        for note in notes:
            self._report(self._damage(note))
        self.t = record.t
        records.append(record)

    def _lost(self, line: bytes, text: str, records: list[Record]) -> None:
        """Report an unreadable line, and admit the loss on the channel that it was about (None: any channel)."""
        tail = _tail(line)
        self._report(self._damage(text, tail))
        found = _RECORD_START.match(line)
        if not found:
            records.append(gap(self.t, None))
            return
        lost = {int(found[2])} if found[1] == CHUNK.encode() and found[2] != b"null" else set()
        if tail and tail.kind == CHUNK and tail.channel is not None:
            lost.add(tail.channel)
        records.extend(gap(self.t, channel) for channel in sorted(lost))

    def _damage(self, text: str, tail: Record | None = None) -> Damage:
        return Damage(self.path, self.number + 1, self.offset, text, tail)


def gap(t: int, channel: int | None) -> Record:
    """Return the record that stands where the reader could not read."""
    return Record(t, GAP, channel, {"bytes": 0, "why": DAMAGE})


def parse_header(path: str, line: bytes, start: bytes) -> tuple[Header, list[str]]:
    """Return the header in the first line of ``path``, and notes on what was passed over in it.

    ``start`` is the beginning of the file, to say what it is when it is no capture. Raises CaptureError.
    """
    line = line.removeprefix(_BOM)
    where = f"{shown(path)}, line 1"
    if b'"mcpcap"' not in line:
        raise CaptureError(_foreign(path, start))
    try:
        return decode_header(_checked(line))
    except NewerVersionError as error:
        raise CaptureError(
            f"{where}: {error} of the format; this mcpsniff reads up to {FORMAT_VERSION}, update it"
        ) from None
    except MalformedError as error:
        raise CaptureError(f"{where}: unreadable header, {error}") from None


def _may_be_header(start: bytes) -> bool:
    """Say whether a file that begins so can still turn out to be a capture."""
    return start in (_BOM[:1], _BOM[:2]) or start.removeprefix(_BOM).lstrip()[:1] in b"{"


def _checked(line: bytes) -> bytes:
    """Return the line unless decoding it takes memory out of all proportion (millions of empty lists)."""
    if len(line) >= _LONG and len(_STRING.sub(b'""', line)) > _LONG_SKELETON:
        raise MalformedError("it holds too many values")
    return line


def _foreign(path: str, start: bytes) -> str:
    kind = looks_like(start)
    hint = f"; mcpsniff import {shown(path)} makes a capture of it" if kind in IMPORTABLE else ""
    return f"{shown(path)}, line 1: not a capture, it looks like {kind}{hint}"


def _tail(line: bytes) -> Record | None:
    """Return the record that a torn line swallowed: in a valid record no string can hold the start of another one."""
    start = 0
    for found in _RECORD_START.finditer(line):
        start = found.start()
    if not start or len(line) - start > _LONG:
        return None
    try:
        return decode_row(load(line[start:]), [])
    except MalformedError:
        return None
