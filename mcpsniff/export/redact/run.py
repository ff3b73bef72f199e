"""All of it: read for what is to be removed, read for where it is, write, and read what was written."""

import os
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from mcpsniff import __version__
from mcpsniff.capture.reader import Capture, damage_of, open_capture
from mcpsniff.capture.records import REDACT, Record
from mcpsniff.capture.writer import CaptureWriter, Entry
from mcpsniff.errors import CaptureError
from mcpsniff.export.redact.discover import Discoverer
from mcpsniff.export.redact.documents import Document
from mcpsniff.export.redact.editor import Editor
from mcpsniff.export.redact.pattern import Patterns
from mcpsniff.export.redact.remains import Remains
from mcpsniff.export.redact.rewrite import Rewriter, write_records
from mcpsniff.export.redact.rules import Rules
from mcpsniff.export.redact.told import Told
from mcpsniff.export.redact.values import Values
from mcpsniff.export.redact.views import Edit
from mcpsniff.export.redact.walk import Walk


class Report(NamedTuple):
    """What was done."""

    kinds: dict[str, int]
    """How many values of each kind were replaced."""
    places: int
    everyday: int
    """Values replaced only where a rule names them."""
    unread: int
    """Bodies left out since they could not be read."""
    cut: int
    """Fields removed whole since a pattern took too long on them."""
    idle: tuple[str, ...] = ()
    """The rules of the user that matched nothing: ``--key x``, and of a value only its number."""
    damage: int = 0
    """Places of the capture that could not be read."""


class RemainsError(CaptureError):
    """Something of what was to be removed is still there; ``places`` says where, never what."""

    def __init__(self, places: list[str]) -> None:
        super().__init__("nothing was written: after redacting, something of what was to be removed was still there:")
        self.places = places

    @property
    def lines(self) -> tuple[str, ...]:
        """See `McpsniffError`."""
        hint = "name these places by --key or --path, or what is around them by --pattern (docs/redact.md)"
        return (str(self), *(f"  {place}" for place in self.places), hint)


def redact(capture: Capture, rules: Rules, path: str) -> Report:
    """Write what ``rules`` leave of ``capture`` to the file at ``path``, which is empty and ours.

    The capture is read four times and what was written once, in memory that grows with the places only. Raises
    RemainsError if a value is found in what was written, and CaptureError if it cannot be written; the file is then
    of no use.
    """
    values = Values(rules.seed)
    with Patterns(rules.patterns) as patterns:
        discoverer = Discoverer(rules, values, patterns if rules.patterns else None)
        count = _discover(capture, discoverer)
        cut = patterns.cut
    damage = damage_of(capture)
    values.seal()
    editor = Editor(values, discoverer.places)
    walk = Walk(capture.header, editor.read)
    for record in islice(capture.records(), count):
        walk.record(record)
    walk.finish()
    places = _write(capture, editor, walk, count, path, damage=damage)
    remains = Remains(values.everywhere)
    remains.look(open_capture(path))
    if remains.found:
        raise RemainsError(remains.found)
    return Report(values.kinds, places, values.everyday, walk.unread, cut, tuple(discoverer.idle()), damage)


def _discover(capture: Capture, discoverer: Discoverer) -> int:
    """Read all documents; return how many records there are: a capture that grows meanwhile is read up to there."""

    def read(document: Document) -> list[Edit]:
        discoverer.read(document)
        return []

    walk, told = Walk(capture.header, read), Told(read, lambda _name, _edit: None)
    told.header(capture.header)
    count = 0
    for record in capture.records():
        walk.record(record)
        if isinstance(record.body, dict):
            told.body(count, record)
        count += 1
    walk.finish()
    return count


def _write(capture: Capture, editor: Editor, walk: Walk, count: int, path: str, *, damage: int) -> int:
    """Write the capture to ``path``; return how many places were replaced, which its first line tells already."""
    counting = Rewriter(capture.header, editor, walk.edits)
    counting.count_edits()
    for index, record in enumerate(islice(capture.records(), count)):
        if isinstance(record.body, dict):
            for _ in counting.record(index, record):
                pass
    head = counting.head(editor.values.kinds, f"mcpsniff {__version__}", damage)
    rewriter = Rewriter(capture.header, editor, walk.edits)
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    writer = CaptureWriter(descriptor, path, head)
    try:
        write_records(writer, _entries(capture, rewriter, count))
    finally:
        writer.close()
    return rewriter.places


def _entries(capture: Capture, rewriter: Rewriter, count: int) -> Iterator[Entry]:
    """All records to be written, those that tell of the header first."""
    for what, where in rewriter.header_changes:
        yield Record(0, REDACT, None, {"what": what, "at": f"header: {where}"})
    for index, record in enumerate(islice(capture.records(), count)):
        yield from rewriter.record(index, record)
