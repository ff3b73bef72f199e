"""The second pass: reads what was written, and looks for anything that is left of the values that were removed."""

from collections.abc import Iterator
from typing import Final

from mcpsniff.capture.reader import Capture
from mcpsniff.capture.records import CHUNK, Record
from mcpsniff.export.redact.documents import Document
from mcpsniff.export.redact.matcher import Matcher
from mcpsniff.export.redact.needles import needles_of
from mcpsniff.export.redact.search import texts_in
from mcpsniff.export.redact.told import Told
from mcpsniff.export.redact.views import Edit, Interest
from mcpsniff.export.redact.walk import Walk

MOST: Final = 20
"""Places that are told."""
BLOCK: Final = 256 << 10
LONGEST: Final = 64 << 10
"""Bytes that a form may lie across two blocks with."""


class Remains:
    """Looks for ``values``; ``found`` are the places, in words, without what is there."""

    def __init__(self, values: frozenset[bytes]) -> None:
        self._plain = Matcher(values)
        self._interest = Interest(self._plain.has)
        self._names = needles_of(values)
        self._forms = Matcher(self._names)
        self._in_lines = Matcher(
            form for form in self._names if not form.isdigit()
        )  # records have numbers of their own
        self._overlap = min(self._forms.longest, LONGEST)
        self.found: list[str] = []
        self._windows: dict[object, bytes] = {}
        self._offsets: dict[object, int] = {}

    def look(self, capture: Capture) -> None:
        """Look into all of a capture: its documents, the bytes of its channels, what its records tell, its lines."""
        walk = Walk(capture.header, self._read)
        told = Told(self._read, lambda _name, _edit: None)
        told.header(capture.header)
        for index, record in enumerate(capture.records()):
            walk.record(record)
            if record.kind == CHUNK:
                self._feed(record)
            else:
                told.body(index, record)
        walk.finish()
        for channel in list(self._windows):
            self._search(channel)
        for part in capture.parts:
            self._look_into_file(part.path)

    def _read(self, document: Document) -> list[Edit]:
        for encoding, text in texts_in(document.data, self._plain.shortest, self._interest):
            if self._plain.first(text) is not None:
                self._tell(f"{document.where}{f' ({encoding})' if encoding else ''}")
        return []

    def _feed(self, record: Record) -> None:
        channel = record.channel
        self._windows[channel] = self._windows.get(channel, b"") + record.body
        if len(self._windows[channel]) >= BLOCK + self._overlap:
            self._search(channel)

    def _search(self, channel: object) -> None:
        window, offset = self._windows[channel], self._offsets.get(channel, 0)
        for start, _, form in self._forms.find(window):
            self._tell(f"channel {channel}, byte {offset + start} ({self._names[form]})")
        kept = window[max(0, len(window) - self._overlap + 1) :] if self._overlap else b""
        self._offsets[channel] = offset + len(window) - len(kept)
        self._windows[channel] = kept

    def _look_into_file(self, path: str) -> None:
        kept, offset = b"", 0
        for block in _blocks(path):
            window = kept + block
            for start, _, form in self._in_lines.find(window):
                self._tell(f"byte {offset + start} of the file ({self._names[form]})")
            kept = window[max(0, len(window) - self._overlap + 1) :] if self._overlap else b""
            offset += len(window) - len(kept)

    def _tell(self, place: str) -> None:
        if len(self.found) < MOST and place not in self.found:
            self.found.append(place)


def _blocks(path: str) -> Iterator[bytes]:
    with open(path, "rb") as file:
        while block := file.read(BLOCK):
            yield block
