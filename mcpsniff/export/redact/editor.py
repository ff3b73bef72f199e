"""Reads the documents of a capture for the second time: what is to stand where the values were."""

from collections.abc import Iterator

from mcpsniff.export.redact.discover import Place, fields_of, is_json_text
from mcpsniff.export.redact.documents import HEADER, SAID, Document
from mcpsniff.export.redact.search import edits_in, marked_json
from mcpsniff.export.redact.values import Values
from mcpsniff.export.redact.views import Edit, Interest, applied, settled

LONGEST_AT = 200
"""Characters of the words that say where something was."""


class Editor:
    """Gives the edits of each document; ``places`` are those of the first reading."""

    def __init__(self, values: Values, places: dict[object, list[Place]]) -> None:
        self.values = values
        self._interest = Interest(values.matcher.has)
        self._places = places

    def read(self, document: Document) -> list[Edit]:
        """The edits of a document, in order; they do not overlap."""
        values = self.values
        marked = marked_json(document.data) if is_json_text(document) else None
        edits = edits_in(document.data, values.matcher, self._interest, values.new, marked=marked)
        if own := self._places.get(document.key):
            for place in own:
                new, what = values.new(place.value)
                edits.append(Edit(place.start, place.stop, new, what))
            edits = settled(edits)
        if document.kind == SAID and not document.name:
            edits = [_with_lines(edit, document.data) for edit in edits]
        return list(self._located(document, edits)) if edits else edits

    def _located(self, document: Document, edits: list[Edit]) -> Iterator[Edit]:
        """``edits`` with the path or name of the place of each."""
        if document.kind == HEADER or document.name:
            yield from (edit._replace(at=document.name) for edit in edits)
            return
        fields = sorted((field.start, -field.stop, field.path) for field in fields_of(document) if field.path)
        at = 0
        around: list[tuple[int, tuple[str, ...]]] = []
        for edit in edits:
            while at < len(fields) and fields[at][0] <= edit.start:
                around.append((-fields[at][1], fields[at][2]))
                at += 1
            around = [(stop, path) for stop, path in around if stop > edit.start]
            path = min(around, key=lambda one: one[0], default=(0, ()))[1]
            yield edit._replace(at=self._words(path))

    def _words(self, path: tuple[str, ...]) -> str:
        """A path in words, in which there is no value either."""
        text = ".".join(path)[:LONGEST_AT].encode("utf-8", "replace")
        edits = edits_in(text, self.values.matcher, self._interest, self.values.new)
        return applied(text, edits).decode("utf-8", "replace")


def _with_lines(edit: Edit, text: bytes) -> Edit:
    """An edit in a log, after which there are as many lines as before: each is an event with a number."""
    missing = text.count(b"\n", edit.start, edit.stop) - edit.new.count(b"\n")
    return edit._replace(new=edit.new + b"\n" * missing) if missing > 0 else edit
