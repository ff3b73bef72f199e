"""Texts in which some stretches stand for others: escapes of JSON, percent signs, references of HTML, lines of events.

`Pieces` is such a text without them. Which bytes of it came from where it finds out when it is asked: then it keeps
eight bytes for each run of stretches, and looks into a run for a place within it.
"""

import html
import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from functools import cached_property
from typing import Final, NamedTuple

RUN: Final = 64
"""Stretches side by side that are taken together."""

_SIMPLE: Final = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"f": b"\f", b"0": b"\0"}
_USUAL: Final = ((b'\\"', b'"'), (b"\\n", b"\n"), (b"\\/", b"/"), (b"\\t", b"\t"), (b"\\r", b"\r"))
_NEVER: Final = b"\xff"
"""A byte that is in no text of UTF-8."""
_PLAIN_BYTES: Final = (
    frozenset(b"-_.~") | frozenset(range(0x30, 0x3A)) | frozenset(range(0x41, 0x5B)) | frozenset(range(0x61, 0x7B))
)


class Edit(NamedTuple):
    """The bytes from ``start`` up to ``stop`` are to be ``new``."""

    start: int
    stop: int
    new: bytes
    what: str = ""
    """What was there, in a word."""
    at: str = ""
    """Where in the message or head that is."""
    is_gap: bool = False
    """Nothing is put in its place, and that is admitted as a gap."""


class Coding:
    """An encoding of stretches: what one is, what it means, and how what stands for a value is written in it.

    ``run`` and ``whole`` are quicker ways to decode stretches side by side, and a text with other things between them;
    they may give up, and return None.
    """

    def __init__(
        self,
        name: str,
        stretch: bytes,
        meaning: Callable[[re.Match[bytes]], bytes | None],
        encode: Callable[[bytes], bytes],
        *,
        run: Callable[[bytes], bytes | None] = lambda _: None,
        whole: Callable[[bytes], bytes | None] = lambda _: None,
    ) -> None:
        self.name = name
        self.encode = encode
        self.stretch = re.compile(stretch, re.DOTALL)
        self.runs = re.compile(rb"(?:%b){1,%d}+" % (re.sub(rb"\((?!\?)", b"(?:", stretch), RUN), re.DOTALL)
        self._meaning = meaning
        self._run = run
        self._whole = whole

    def means(self, found: re.Match[bytes]) -> bytes:
        """What one stretch means; one that stands for nothing else means itself."""
        means = self._meaning(found)
        return found[0] if means is None else means

    def run(self, run: bytes) -> bytes:
        """What stretches side by side mean."""
        means = self._run(run)
        return self.stretch.sub(self.means, run) if means is None else means

    def decoded(self, text: bytes) -> bytes:
        """What a text means in which there are stretches."""
        means = self._whole(text)
        return self.runs.sub(lambda found: self.run(found[0]), text) if means is None else means


class Pieces:
    """A view in which some stretches stand for others; everything else is as it is."""

    def __init__(self, coding: Coding, source: bytes) -> None:
        self.name = coding.name
        self.text = coding.decoded(source)
        self._coding = coding
        self._source = source

    @cached_property
    def _begins(self) -> tuple["array[int]", "array[int]"]:
        """Where each run begins, in `text` and in the source."""
        inner, outer = array("I"), array("I")
        moved = 0
        decoded, is_json = self._coding.run, self._coding is JSON
        for found in self._coding.runs.finditer(self._source):
            start, stop = found.span()
            inner.append(start + moved)
            outer.append(start)
            if stop - start == 2 and is_json:
                moved -= 1
            else:
                moved += len(decoded(found[0])) - stop + start
        return inner, outer

    def _run(self, number: int) -> tuple[int, int, int, int]:
        """Where a run begins and ends, in `text` and in the source."""
        inner, outer = self._begins
        start, begin = outer[number], inner[number]
        if self._coding is JSON and _ALONE.match(self._source, start):
            return begin, begin + 1, start, start + 2
        found = self._coding.runs.match(self._source, start)
        assert found is not None
        return begin, begin + len(self._coding.run(found[0])), start, found.end()

    def outer(self, edits: list[Edit]) -> list[Edit]:
        """See `View`."""
        encode = self._coding.encode
        return [
            edit._replace(start=self.place(edit.start), stop=self.place(edit.stop, is_stop=True), new=encode(edit.new))
            for edit in edits
        ]

    def changes(self, start: int, stop: int) -> bool:
        """Say whether anything between these places of `text` stands for something else."""
        inner, _ = self._begins
        at = bisect_left(inner, start)
        return (at < len(inner) and inner[at] <= stop) or (at > 0 and self._run(at - 1)[1] >= start)

    def place(self, position: int, *, is_stop: bool = False) -> int:
        """Where a position of `text` is in the source; within what stands for others, its beginning or its end."""
        at = bisect_right(self._begins[0], position - is_stop) - 1
        if at < 0:
            return position
        begin, end, start, stop = self._run(at)
        if position - is_stop >= end:
            return stop + position - end
        return self._within(start, stop, position - begin, is_stop=is_stop)

    def _within(self, start: int, stop: int, position: int, *, is_stop: bool) -> int:
        """A place in the run of stretches from ``start`` to ``stop``."""
        size = 0
        for found in self._coding.stretch.finditer(self._source, start, stop):
            means = self._coding.means(found)
            if position - is_stop < size + len(means):
                if means == found[0]:
                    return found.start() + position - size
                return found.end() if is_stop else found.start()
            size += len(means)
        return stop


def unescaped(text: bytes) -> Pieces:
    """The view of the inside of a JSON string."""
    return Pieces(JSON, text)


def applied(text: bytes, edits: list[Edit]) -> bytes:
    """``text`` with ``edits``, which are in order and do not overlap."""
    parts: list[bytes] = []
    done = 0
    for edit in edits:
        parts += (text[done : edit.start], edit.new)
        done = edit.stop
    parts.append(text[done:])
    return b"".join(parts)


def settled(edits: list[Edit]) -> list[Edit]:
    """``edits`` in order; of those that overlap, the one that begins first, and of these the longest."""
    kept: list[Edit] = []
    for edit in sorted(edits, key=lambda one: (one.start, -one.stop)):
        if not kept or edit.start >= kept[-1].stop:
            kept.append(edit)
    return kept


def _unescaped(found: re.Match[bytes]) -> bytes:
    high, low, unit, byte, letter = found.groups()
    if high is not None:
        code = 0x10000 + ((int(high, 16) & 0x3FF) << 10) + (int(low, 16) & 0x3FF)
        return chr(code).encode()
    if unit is not None:
        return chr(int(unit, 16)).encode("utf-8", "replace")
    if byte is not None:
        return bytes([int(byte, 16)])
    return _SIMPLE.get(letter, letter)


def _unescaped_run(run: bytes) -> bytes | None:
    """What escapes mean, if they are characters by number only, and no half of a pair is alone; or there is one."""
    if len(run) == 2:
        return _SIMPLE.get(run[1:], run[1:])
    units = run.count(b"\\u")
    if units * 6 != len(run):
        return None
    try:
        return bytes.fromhex(run.replace(b"\\u", b"").decode()).decode("utf-16-be").encode()
    except ValueError:
        return None


def _unescaped_text(text: bytes) -> bytes | None:
    """What a text of UTF-8 with escapes means: the usual ones go at once, all of a kind."""
    if b"\\" not in text:
        return text
    if _NEVER in text:
        return None
    text = text.replace(b"\\\\", _NEVER)  # a backslash by itself: any other that is left begins an escape
    for letter, means in _USUAL:
        text = text.replace(letter, means)
    if b"\\" in text:
        text = JSON.runs.sub(lambda found: JSON.run(found[0]), text)
    return text.replace(_NEVER, b"\\")


def _escape(new: bytes) -> bytes:
    return new.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n").replace(b"\r", b"\\r")


def _unformed(found: re.Match[bytes]) -> bytes:
    return b" " if found[1] is None else bytes([int(found[1], 16)])


def _percent_run(run: bytes) -> bytes:
    return bytes.fromhex(run.replace(b"+", b"%20").replace(b"%", b"").decode())


def _as_percent(new: bytes) -> bytes:
    return b"".join(bytes([one]) if one in _PLAIN_BYTES else b"%%%02X" % one for one in new)


def _dereferenced(found: re.Match[bytes]) -> bytes | None:
    text = found[0].decode()
    means = html.unescape(text)
    return None if means == text else means.encode("utf-8", "replace")


_ALONE = re.compile(rb"\\[^uUx](?!\\)", re.DOTALL)
"""One of the escapes that mean one byte, and no other after it."""
JSON: Final = Coding(
    "JSON escapes",
    rb"\\(?:[uU]([dD][89abAB][0-9A-Fa-f]{2})\\[uU]([dD][c-fC-F][0-9A-Fa-f]{2})|[uU]([0-9A-Fa-f]{4})"
    rb"|x([0-9A-Fa-f]{2})|(.))",
    _unescaped,
    _escape,
    run=_unescaped_run,
    whole=_unescaped_text,
)
PERCENT: Final = Coding(
    "percent encoding", rb"%([0-9A-Fa-f]{2})", lambda found: bytes([int(found[1], 16)]), _as_percent, run=_percent_run
)
FORM: Final = Coding("form encoding", rb"%([0-9A-Fa-f]{2})|\+", _unformed, _as_percent, run=_percent_run)
HTML: Final = Coding(
    "HTML",
    rb"&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,8});?",
    _dereferenced,
    lambda new: html.escape(new.decode()).encode(),
)
DATA_LINES: Final = Coding(
    "data lines", rb"(?:\r\n|\n|\r)data: ?", lambda _: b"\n", lambda new: new.replace(b"\n", b"\ndata: ")
)
JOINED_LINES: Final = Coding("joined data lines", rb"(?:\r\n|\n|\r)data: ?", lambda _: b"", lambda new: new)
