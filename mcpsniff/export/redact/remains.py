"""The second pass: reads what was written, and looks for anything that is left of the values that were removed."""

from collections.abc import Iterator, Sequence
from itertools import batched
from typing import Final

from mcpsniff.capture.reader import Capture
from mcpsniff.capture.records import CHUNK, Record
from mcpsniff.export.redact.documents import Document
from mcpsniff.export.redact.matcher import Matcher
from mcpsniff.export.redact.needles import forms_of, is_telling
from mcpsniff.export.redact.search import texts_in
from mcpsniff.export.redact.sieve import Sieve
from mcpsniff.export.redact.told import Told
from mcpsniff.export.redact.views import Edit, Interest
from mcpsniff.export.redact.walk import Walk

MOST: Final = 20
"""Places that are told."""
BLOCK: Final = 256 << 10
BATCH: Final = 20_000
"""Values of which all forms are kept at a time: some 6 KB each."""
FEW: Final = 5_000
"""Forms that are looked for by the rarest part of each, of which many have the same."""
LONGEST: Final = 64 << 10
"""Bytes that a form may lie across two blocks with."""


class Remains:
    """Looks for ``values``; ``found`` are the places, in words, without what is there."""

    def __init__(self, values: frozenset[bytes]) -> None:
        self._values = sorted(values)
        self._plain = Matcher(values)
        self._interest = Interest(self._plain.has)
        self.found: list[str] = []

    def look(self, capture: Capture) -> None:
        """Look into all of a capture: its documents, what its records tell, the bytes of its channels, its lines."""
        walk = Walk(capture.header, self._read)
        told = Told(self._read, lambda _name, _edit: None)
        told.header(capture.header)
        first, *more = batched(self._values, BATCH) if self._values else ((),)
        forms = _Forms(first)
        for index, record in enumerate(capture.records()):
            walk.record(record)
            if record.kind == CHUNK:
                forms.feed(record)
            else:
                told.body(index, record)
        walk.finish()
        self._end(forms, capture)
        for values in more:
            forms = _Forms(values)
            for record in capture.records():
                if record.kind == CHUNK:
                    forms.feed(record)
            self._end(forms, capture)

    def _end(self, forms: "_Forms", capture: Capture) -> None:
        forms.end()
        for part in capture.parts:
            forms.look_into_file(part.path)
        for place in forms.told():
            self._tell(place)

    def _read(self, document: Document) -> list[Edit]:
        for encoding, text in texts_in(document.data, self._plain.shortest, self._interest):
            if self._plain.first(text) is not None:
                self._tell(f"{document.where}{f' ({encoding})' if encoding else ''}")
        return []

    def _tell(self, place: str) -> None:
        if len(self.found) < MOST and place not in self.found:
            self.found.append(place)


class _Forms:
    """Looks for some values in all ways to write them, in bytes as they are."""

    def __init__(self, values: Sequence[bytes]) -> None:
        self._values = values
        forms = [form for value in values for _, form in forms_of(value) if is_telling(form, value)]
        self._forms = Sieve(forms) if len(forms) <= FEW else Matcher(forms)
        self._overlap = min(self._forms.longest, LONGEST)
        self._windows: dict[object, bytes] = {}
        self._offsets: dict[object, int] = {}
        self._found: dict[tuple[str, bytes], None] = {}
        """Where a form was found, by the first words of that, and which."""

    def feed(self, record: Record) -> None:
        """The next bytes of a channel."""
        channel = record.channel
        self._windows[channel] = self._windows.get(channel, b"") + record.body
        if len(self._windows[channel]) >= BLOCK + self._overlap:
            self._search(channel)

    def end(self) -> None:
        """Nothing more comes."""
        for channel in list(self._windows):
            self._search(channel)

    def look_into_file(self, path: str) -> None:
        """Look into the bytes of a file. Its records have numbers of their own."""
        kept, offset = b"", 0
        for block in _blocks(path):
            window = kept + block
            for start, _, form in self._forms.find(window, numbers=False):
                self._take(f"byte {offset + start} of the file", form)
            kept = self._kept(window)
            offset += len(window) - len(kept)

    def told(self) -> Iterator[str]:
        """The places, with the name of the way to write it."""
        if not self._found:
            return
        wanted = {form for _, form in self._found}
        names: dict[bytes, str] = {}
        for name, form in (pair for value in self._values for pair in forms_of(value)):
            if form in wanted:
                names.setdefault(form, name)
        yield from (f"{place} ({names[form]})" for place, form in self._found)

    def _search(self, channel: object) -> None:
        window, offset = self._windows[channel], self._offsets.get(channel, 0)
        for start, _, form in self._forms.find(window):
            self._take(f"channel {channel}, byte {offset + start}", form)
        kept = self._kept(window)
        self._offsets[channel] = offset + len(window) - len(kept)
        self._windows[channel] = kept

    def _kept(self, window: bytes) -> bytes:
        return window[max(0, len(window) - self._overlap + 1) :] if self._overlap else b""

    def _take(self, place: str, form: bytes) -> None:
        if len(self._found) < MOST:
            self._found[place, form] = None


def _blocks(path: str) -> Iterator[bytes]:
    with open(path, "rb") as file:
        while block := file.read(BLOCK):
            yield block
