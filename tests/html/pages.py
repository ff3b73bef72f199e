"""Render records as the HTML page, and read such a page without a browser."""

from collections.abc import Sequence
from html.parser import HTMLParser
from io import BytesIO
from typing import Any

from mcpsniff.capture.records import Record
from mcpsniff.transcript.html import write_html
from mcpsniff.transcript.payload import FOLDED, Style
from mcpsniff.transcript.session import Session
from tests.transcript.rendering import capture


def html(records: Sequence[Record], *, style: Style = FOLDED, **header: Any) -> bytes:
    stream = BytesIO()
    write_html(Session(capture(records, **header)), stream, style)
    return stream.getvalue()


class Elements(HTMLParser):
    """All elements with their attributes, and the text of all that are neither script nor style."""

    def __init__(self, page: bytes) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.code: dict[str, list[str]] = {"script": [], "style": []}
        self._inside = ""
        self.feed(page.decode())
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag in self.code:
            self._inside = tag
            self.code[tag].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag == self._inside:
            self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.code[self._inside][-1] += data
        else:
            self.text += data
