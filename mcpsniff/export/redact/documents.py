"""A text of a capture that is read as a whole, and how it is gathered from the pieces in which it was recorded."""

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from mcpsniff.export.redact.edits import ChannelEdits
from mcpsniff.export.redact.views import Edit

LINE: Final = "line"
EVENT: Final = "event"
BODY: Final = "body"
FORM: Final = "form"
HEAD: Final = "head"
HEADER: Final = "header"
SAID: Final = "said"

LONGEST: Final = 64 << 20
"""Bytes of a document; a longer text is read in several."""
BLOCK: Final = 64 << 10
"""Bytes of free text that are read at a time."""

MOST_BLOCKS: Final = 16
"""Of free text without a line end, so many blocks are read at a time."""

MOST_CODED: Final = 2000
"""Lines of base64 that are kept together."""

_BLANK_LINE = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")
_CODED_LINE = re.compile(rb"[^\n]{0,200}?[A-Za-z0-9+/_-]{32,}+={0,2}[ \t]*+\r?\n")
_LINE_END = re.compile(rb"\n")


class Document(NamedTuple):
    """One text."""

    kind: str
    """A line of a pipe, an event of a stream, a body, a form, a head, the value of one header, or what is said."""
    data: bytes
    key: object
    """The same for the same text whenever the capture is read."""
    where: str
    name: str = ""
    """Of a header, and of a member of a record: its name."""


type Consume = Callable[[Document], list[Edit]]
"""Takes a document, and returns its edits, in order."""


class Account:
    """Hands documents over, and numbers them."""

    def __init__(self, consume: Consume) -> None:
        self._consume = consume
        self._number = 0

    def read(self, kind: str, data: bytes, where: str) -> list[Edit]:
        """Hand over the next document."""
        self._number += 1
        return self._consume(Document(kind, data, self._number, where))


class Gatherer:
    """Gathers the bytes of one stream into documents, and puts their edits where the bytes came from.

    ``kind`` says what ends one: a line, a blank line (of an event stream), or nothing but the end of a body.
    """

    def __init__(self, account: Account, edits: ChannelEdits, kind: str, where: str) -> None:
        self._account = account
        self._edits = edits
        self._kind = kind
        self._where = where
        self._data = bytearray()
        self._searched = 0
        self._due = BLOCK
        """Bytes of free text at which it is to be cut."""
        self._runs: list[tuple[int, int]] = []
        """Where each contiguous run begins: in the text at hand, and in the channel."""
        self._next = -1

    def feed(self, data: bytes, offset: int) -> None:
        """The next bytes, which are at ``offset`` of the channel."""
        if offset != self._next:
            self._runs.append((len(self._data), offset))
        self._next = offset + len(data)
        self._data += data
        if self._kind == SAID and len(self._data) >= self._due:
            self._cut(_between(self._data) or (len(self._data) if len(self._data) >= MOST_BLOCKS * BLOCK else 0))
            self._due = max(BLOCK, len(self._data) + BLOCK // 2)
        elif self._kind in (LINE, EVENT):
            self._whole_ones(_LINE_END if self._kind == LINE else _BLANK_LINE)
        if len(self._data) >= LONGEST:
            self._cut(len(self._data))

    def end(self) -> None:
        """Nothing more comes, or what comes next does not follow."""
        self._cut(len(self._data))
        self._runs, self._next, self._searched = [], -1, 0

    def _whole_ones(self, ends: re.Pattern[bytes]) -> None:
        stops = [found.end() for found in ends.finditer(self._data, max(0, self._searched - 3))]
        done = 0
        runs, data = self._runs, bytes(self._data) if stops else b""
        for stop in stops:
            self._read(data[done:stop], done, runs)
            done = stop
        if done:
            del self._data[:done]
            self._runs = _later(runs, done)
        self._searched = len(self._data)

    def _cut(self, stop: int) -> None:
        if not stop:
            return
        self._read(bytes(self._data[:stop]), 0, self._runs)
        del self._data[:stop]
        self._runs = _later(self._runs, stop)
        self._searched = 0

    def _read(self, data: bytes, base: int, runs: list[tuple[int, int]]) -> None:
        for edit in self._account.read(self._kind, data, self._where):
            for part in placed(edit._replace(start=edit.start + base, stop=edit.stop + base), runs):
                self._edits.add(part)


def _between(text: bytearray) -> int:
    """Where a text may be cut: after a line, but within no key, and not between lines of base64. 0: nowhere."""
    stop = text.rfind(b"\n") + 1
    begin = text.rfind(b"-----BEGIN ", 0, stop)
    if begin >= 0 and text.find(b"-----END ", begin, stop) < 0:
        stop = text.rfind(b"\n", 0, begin) + 1
    cut = stop
    for _ in range(MOST_CODED):
        last = text.rfind(b"\n", 0, max(0, cut - 1)) + 1
        if not cut or not _CODED_LINE.fullmatch(text, last, cut):
            return cut
        cut = last
    return stop


def placed(edit: Edit, runs: list[tuple[int, int]]) -> list[Edit]:
    """An edit of a text at its place in the channel; over several runs, its bytes are shared among them."""
    if len(runs) == 1:
        moved = runs[0][1] - runs[0][0]
        return [edit._replace(start=edit.start + moved, stop=edit.stop + moved)]
    parts = []
    size, whole = len(edit.new), edit.stop - edit.start
    for number, (begin, offset) in enumerate(runs):
        end = runs[number + 1][0] if number + 1 < len(runs) else edit.stop
        first, last = max(edit.start, begin), min(edit.stop, end)
        if first >= last:
            continue
        share = edit.new[-(-size * (first - edit.start) // whole) : -(-size * (last - edit.start) // whole)]
        what = edit.what if first == edit.start else ""  # told once
        parts.append(Edit(first - begin + offset, last - begin + offset, share, what, edit.at))
    return parts


def _later(runs: list[tuple[int, int]], stop: int) -> list[tuple[int, int]]:
    """``runs`` without the first ``stop`` bytes of the text."""
    later = [(begin - stop, offset) for begin, offset in runs]
    while len(later) > 1 and later[1][0] <= 0:
        del later[0]
    if later and later[0][0] < 0:
        later[0] = (0, later[0][1] - later[0][0])
    return later
