"""Writes the redacted capture: every record with its edits done, and after each a record that tells of them."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from mcpsniff.capture.records import CHUNK, GAP, HEADER_FIELDS, HOLD, MASK, OPEN, REDACT, REWRITE, Header, Record
from mcpsniff.capture.writer import CaptureWriter, Entry, new_run_id
from mcpsniff.errors import CaptureError
from mcpsniff.export.redact.editor import Editor
from mcpsniff.export.redact.edits import ChannelEdits, Gap
from mcpsniff.export.redact.edits import Told as Done
from mcpsniff.export.redact.told import Told
from mcpsniff.export.redact.views import Edit

SLICE: Final = 4 << 20
"""Bytes of chunks that are written at a time."""
_KIND = re.compile("[a-z0-9 ]{1,40}")


class Rewriter:
    """Makes of each record of a capture what is written of it."""

    def __init__(self, header: Header, editor: Editor, edits: dict[int, ChannelEdits]) -> None:
        self._told = Told(editor.read, self._changed)
        self._edits = edits
        self._offsets: dict[int | None, int] = {}
        self._changes: list[tuple[str, str]] = []
        self.kinds: Counter[str] = Counter()
        """How many places there are, by what they held."""
        self.header = self._told.header(header)
        self.header_changes = self._taken()
        for number, fields in (header.channels or {}).items():
            if str(number).isdecimal() and isinstance(fields, dict) and type(fields.get("offset")) is int:
                self._offsets[int(number)] = fields["offset"]

    @property
    def places(self) -> int:
        """How many places were replaced so far."""
        return self.kinds.total()

    def count_edits(self) -> None:
        """Count the places in the bytes of all channels, without writing any."""
        for edits in self._edits.values():
            self.kinds.update(edits.whats())

    def head(self, kinds: dict[str, int], by: str, damage: int = 0) -> dict[str, Any]:
        """The header to be written, which tells what was done: ``kinds`` of values, at so many places.

        What was removed from the capture before that counts, too. ``damage``: places of it that could not be read.
        """
        names = [field.name for field in HEADER_FIELDS]
        known = {name: getattr(self.header, name) for name in names if name not in ("mcpcap", "redacted")}
        shown = {name: value for name, value in known.items() if value not in (None, ())}
        before = self.header.redacted or {}
        all_kinds = _kinds(before.get("kinds"))
        all_kinds.update(kinds)
        redacted = {
            "by": by,
            "values": sum(kinds.values()) + _count(before.get("values")),
            "places": self.places + _count(before.get("places")),
            "kinds": dict(all_kinds),
        }
        if damage:
            redacted["damage"] = damage
        return {**shown, "run": new_run_id(), "redacted": redacted, **(self.header.extra or {})}

    def record(self, index: int, record: Record) -> Iterator[Entry]:
        """What is written of a record."""
        t, kind, channel, body, at = record
        if kind == CHUNK:
            yield from self._chunk(record)
            return
        body = self._told.body(index, record)
        edits = None if channel is None else self._edits.get(channel)
        if edits is not None and kind == OPEN:
            body = _lengthened(body, edits.growth)
        if edits is not None and kind in (REWRITE, HOLD, MASK, REDACT):
            body = _moved(body, edits)
        if kind == REWRITE:
            body = {**body, "data": _data(body["data"])}
        yield Record(t, kind, channel, body, at)
        for what, where in self._taken():
            yield Record(t, REDACT, channel, {"what": what, "at": f"{kind}: {where}"}, at)

    def _chunk(self, record: Record) -> Iterator[Entry]:
        t, _, channel, data, at = record
        base = self._offsets.get(channel, 0)
        self._offsets[channel] = base + len(data)
        edits = None if channel is None else self._edits.get(channel)
        if edits is None:
            yield record
            return
        for piece in edits.chunk(base, data):
            if isinstance(piece, bytes):
                yield Record(t, CHUNK, channel, piece, at)
            elif isinstance(piece, Gap):
                yield Record(t, GAP, channel, {"bytes": piece.size, "why": "secret"}, at)
            else:
                yield Record(t, REDACT, channel, self._done(piece), at)

    def _done(self, done: Done) -> dict[str, Any]:
        self.kinds[done.what] += 1
        told: dict[str, Any] = {"what": done.what, "start": done.start, "length": done.length}
        return {**told, "at": done.at} if done.at else told

    def _changed(self, name: str, edit: Edit) -> None:
        if edit.what:
            self._changes.append((edit.what, name or edit.at))

    def _taken(self) -> list[tuple[str, str]]:
        taken, self._changes = self._changes, []
        self.kinds.update(what for what, _ in taken)
        return taken


def _count(told: Any) -> int:
    """A number that a header tells, which anyone may have written."""
    return told if type(told) is int and 0 <= told < 1 << 53 else 0


def _kinds(told: Any) -> Counter[str]:
    items = told.items() if isinstance(told, dict) else ()
    return +Counter({kind: _count(number) for kind, number in items if _KIND.fullmatch(kind)})


def write_records(writer: CaptureWriter, entries: Iterator[Entry]) -> None:
    """Append ``entries``, some at a time. Raises CaptureError when the disk refuses."""
    held: list[Entry] = []
    size = 0
    for entry in entries:
        held.append(entry)
        size += len(entry[3]) if entry[1] == CHUNK else 100
        if size >= SLICE:
            _append(writer, held)
            held, size = [], 0
    _append(writer, held)


def _append(writer: CaptureWriter, entries: list[Entry]) -> None:
    if writer.append(entries) < len(entries):
        failure = writer.failure
        raise CaptureError(f"cannot write the redacted capture: {getattr(failure, 'strerror', None) or failure}")


def _moved(body: dict[str, Any], edits: ChannelEdits) -> dict[str, Any]:
    """A record that names a place, with where that is now."""
    start, length = body.get("start"), body.get("length")
    if type(start) is not int or type(length) is not int:
        return body
    first = edits.moved_start(start)
    return {**body, "start": first, "length": max(0, edits.moved_stop(start + length) - first) if length else 0}


def _lengthened(body: dict[str, Any], growth: int) -> dict[str, Any]:
    """The head of a body's channel with the length that the body has now."""
    meta = body.get("meta")
    if not growth or not isinstance(meta, dict) or not isinstance(meta.get("headers"), list):
        return body
    headers = [_lengthened_header(pair, growth) for pair in meta["headers"]]
    return {**body, "meta": {**meta, "headers": headers}}


def _lengthened_header(pair: Any, growth: int) -> Any:
    is_pair = isinstance(pair, list) and len(pair) == 2
    if not is_pair or str(pair[0]).lower() != "content-length" or not re.fullmatch(r"[0-9]{1,18}", str(pair[1])):
        return pair
    return [pair[0], str(max(0, int(pair[1]) + growth))]


def _data(data: bytes) -> Any:
    from binascii import b2a_base64

    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"b64": b2a_base64(data, newline=False).decode("ascii")}
