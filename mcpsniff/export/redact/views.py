"""What a text means once an encoding is removed, and which of its bytes each byte of that came from.

A view is made of every encoding that may be there at all: escapes of JSON, percent signs, references of HTML, base64 in
any alignment and alphabet, hexadecimal, UTF-16. Views have views: what was encoded twice is found in the second one.
"""

import re
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Final, Protocol

from mcpsniff.export.redact.folded import SHORTEST_LINE, Fold, folds
from mcpsniff.export.redact.pieces import (
    DATA_LINES,
    FORM,
    HTML,
    JOINED_LINES,
    JSON,
    PERCENT,
    Edit,
    Pieces,
    applied,
    settled,
    unescaped,
)

__all__ = ["DEPTH", "Edit", "Interest", "Pieces", "View", "applied", "is_binary", "settled", "unescaped", "views"]

DEPTH: Final = 3
"""Encodings within one another that are removed."""

_PERCENT = re.compile(rb"%[0-9A-Fa-f]{2}")
_REFERENCE = re.compile(rb"&(?:#[0-9]|#[xX][0-9A-Fa-f]|[A-Za-z]{2})")
_CONTROLS: Final = bytes(code for code in range(1, 0x20) if code not in b"\t\n\r\f\x1b") + b"\x7f"
_IN_FORM = re.compile(rb"[A-Za-z0-9_.\[\]]=[^\s\"'&+]{0,256}\+")
_ASCII = re.compile("[\x01-\x7f]")
_WORD: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-"
_NO_WORD = re.compile(rb"[^A-Za-z0-9+/_=-]")
_ONLY_WORDS: Final = bytes(code if code in _WORD else 0x20 for code in range(256))
_MASK: Final = bytes(0x61 if code in _WORD else 0x20 for code in range(256))
_LINE: Final = b"a" * SHORTEST_LINE
"""A line that is broken for its length, in a text in which all signs of words are one."""
_BLOCK: Final = 1 << 20
_SHORT: Final = 64
_REMEMBERED: Final = 200_000


class Interest:
    """Says which decoded bytes are worth a view: what may encode more, and what ``has`` something.

    Remembers words that are not.
    """

    def __init__(self, has: Callable[[bytes], bool]) -> None:
        self._has = has
        self._dull: set[bytes] = set()
        self.known: set[bytes] = set()
        """Words that need not be looked at again, since they are too short, or dull."""

    def in_word(self, word: bytes, views: Iterable["Coded"], least: int) -> Iterator["Coded"]:
        """Those of a word's ``views`` that are worth it, if a value has ``least`` bytes."""
        may_encode = _more(least).search
        is_dull = True
        for view in views:
            if may_encode(view.text) or self._has(view.text):
                is_dull = False
                yield view
        if is_dull and len(word) <= _SHORT and len(self._dull) < _REMEMBERED:
            self._dull.add(word)

    def is_dull(self, word: bytes) -> bool:
        """Say whether ``word`` is known to have none."""
        return word in self._dull


class View(Protocol):
    """A text without one encoding."""

    name: str
    text: bytes

    def outer(self, edits: list[Edit]) -> list[Edit]:
        """The edits of the encoded text that come to ``edits`` of `text`."""


class Coded:
    """A view of one run of characters that stands for bytes as a whole."""

    def __init__(self, name: str, start: int, stop: int, text: bytes, encode: Callable[[bytes], bytes]) -> None:
        self.name = name
        self.text = text
        self._start = start
        self._stop = stop
        self._encode = encode

    def outer(self, edits: list[Edit]) -> list[Edit]:
        """See `View`: the whole run is written anew."""
        if not edits:
            return []
        whats = ", ".join(dict.fromkeys(edit.what for edit in edits))
        return [Edit(self._start, self._stop, self._encode(applied(self.text, edits)), whats, edits[0].at)]


class Folded:
    """A view of what is broken into lines."""

    def __init__(self, fold: Fold, view: Coded) -> None:
        self.name = f"{view.name} in lines"
        self.text = view.text
        self._fold = fold
        self._view = view

    def outer(self, edits: list[Edit]) -> list[Edit]:
        """See `View`: all lines are written anew."""
        return self._fold.outer(self._view.outer(edits))


def is_binary(text: bytes) -> bool:
    """Say whether a longer text is none, by its control characters: then it is searched, but not for encodings."""
    return len(text) > _SHORT and (len(text) - len(text.translate(None, _CONTROLS))) * 50 > len(text)


def views(text: bytes, least: int, interest: Interest, before: View | None = None) -> Iterator[View]:
    """All views of ``text`` that may show something else than it does, of at least ``least`` bytes.

    Of what any word might be (base64), only those of ``interest``. ``before`` is the view that ``text``
    is: what it has in common with what it was made of is not looked at again.
    """
    if b"\\" in text:
        yield Pieces(JSON, text)
    if b"%" in text and _PERCENT.search(text):
        yield Pieces(PERCENT, text)
    if b"+" in text and _IN_FORM.search(text):
        yield Pieces(FORM, text)
    if b"&" in text and _REFERENCE.search(text):
        view = Pieces(HTML, text)
        if view.text != text:
            yield view
    if b"\ndata:" in text or b"\rdata:" in text:
        yield Pieces(DATA_LINES, text)
        yield Pieces(JOINED_LINES, text)
    yield from _runs(text, least, interest, before if isinstance(before, Pieces) else None)
    yield from _folded(text, least, interest, before if isinstance(before, Pieces) else None)
    if b"\0" in text:
        yield from _wide(text)


@lru_cache(maxsize=64)
def _more(least: int) -> re.Pattern[bytes]:
    """What is in all bytes that encode a value of ``least`` bytes once more, but seldom in noise.

    However it is encoded, that is a run of text or of UTF-16, as long as the value at least.
    """
    size = min(max(least, 4), 64)
    text = rb"(?:[\t\n\r -~]|[\xc2-\xf4](?=[\x80-\xbf])|(?<=[\x80-\xf4])[\x80-\xbf]){%d}" % size
    return re.compile(rb"%b|(?:\0.|.\0){%d}" % (text, size // 2), re.DOTALL)


def _in_base64(least: int) -> int:
    """Characters of base64 for so many bytes."""
    return max(6, -(-least * 4 // 3))


def _in_hex(least: int) -> int:
    return max(8, 2 * least)


@lru_cache(maxsize=64)
def _words(least: int) -> re.Pattern[bytes]:
    """Words that may be base64 of ``least`` bytes or more.

    It has capitals, but for one in thousands of short ones, or is digits alone.
    """
    return re.compile(
        rb"(?<![A-Za-z0-9+/_-])(?=[a-z0-9+/_-]*+[A-Z]|[0-9+/_-]++(?![a-z]))[A-Za-z0-9+/_-]{%d,}+={0,2}"
        % _in_base64(least)
    )


@lru_cache(maxsize=64)
def _digits(least: int) -> re.Pattern[bytes]:
    """Runs of hexadecimal digits that stand for ``least`` bytes or more."""
    return re.compile(rb"(?<![0-9A-Fa-f])[0-9A-Fa-f]{%d,}+" % _in_hex(least))


def _runs(text: bytes, least: int, interest: Interest, before: Pieces | None) -> Iterator[View]:
    for start, stop in _blocks(text):
        is_base64, is_hex = _looks_coded(text[start:stop], least, interest)
        if is_base64:
            for found in _words(least).finditer(text, start, stop):
                word = found[0]
                core = word.rstrip(b"=")
                if not interest.is_dull(core) and (len(word) <= _SHORT or _is_new(found, before)):
                    for view in interest.in_word(core, _alignments(word, found.start()), least):
                        if not _is_new(found, before):
                            break
                        yield view
        if is_hex:
            for found in _digits(least).finditer(text, start, stop):
                word = b"hex " + found[0]
                if not interest.is_dull(word) and _is_new(found, before):
                    yield from interest.in_word(word, _nibbles(found[0], found.start()), least)


def _folded(text: bytes, least: int, interest: Interest, before: Pieces | None) -> Iterator[View]:
    """Views of what is broken into lines."""
    if b"\n" not in text or _LINE not in text.translate(_MASK):
        return
    for fold in folds(text):
        word, core = fold.word, fold.word.rstrip(b"=")
        if before is not None and not before.changes(fold.start, fold.stop):
            continue
        if len(core) >= _in_base64(least) and not core.islower() and not interest.is_dull(core):
            yield from (Folded(fold, view) for view in interest.in_word(core, _alignments(word, 0), least))
        if _digits(least).fullmatch(core) and not interest.is_dull(b"hex " + core):
            yield from (Folded(fold, view) for view in interest.in_word(b"hex " + core, _nibbles(core, 0), least))


def _blocks(text: bytes) -> Iterator[tuple[int, int]]:
    """Stretches of ``text`` that no word lies across."""
    start = 0
    while start < len(text):
        found = _NO_WORD.search(text, start + _BLOCK)
        stop = len(text) if found is None else found.end()
        yield start, stop
        start = stop


def _looks_coded(text: bytes, least: int, interest: Interest) -> tuple[bool, bool]:
    """Say whether there are words that may be base64, and such that may be hexadecimal, which are not known yet."""
    known, is_dull = interest.known, interest.is_dull
    in_base64, in_hex, digits = _in_base64(least), _in_hex(least), _digits(least)
    is_base64 = is_hex = False
    for word in {*text.translate(_ONLY_WORDS).split()}.difference(known):
        coded = len(word) >= in_base64 and not word.islower() and not is_dull(word)
        hexes = len(word) >= in_hex and any(not is_dull(b"hex " + run) for run in digits.findall(word))
        if not coded and not hexes and len(word) <= _SHORT and len(known) < _REMEMBERED:
            known.add(word)
        is_base64, is_hex = is_base64 or coded, is_hex or hexes
    return is_base64, is_hex


def _is_new(found: re.Match[bytes], before: Pieces | None) -> bool:
    """Say whether a word is not the same in what the text was made of, where it was looked at."""
    return before is None or before.changes(found.start(), found.end())


def _nibbles(word: bytes, at: int) -> Iterator[Coded]:
    """The views of a run of hexadecimal digits."""
    encode = _to_upper_hex if not any(letter in word for letter in b"abcdef") else _to_hex
    for skip in range(2):
        stop = len(word) - (len(word) - skip) % 2
        yield Coded("hexadecimal", at + skip, at + stop, bytes.fromhex(word[skip:stop].decode()), encode)


def _alignments(word: bytes, at: int) -> Iterator[Coded]:
    """The views of a run of base64, which may begin within another word."""
    run = word.rstrip(b"=")
    padding = word[len(run) :]
    is_url = b"-" in run or b"_" in run
    plain = run.replace(b"-", b"+").replace(b"_", b"/") if is_url else run
    for skip in range(4):
        if view := _base64(plain, at, skip, padding, is_url=is_url):
            yield view


def _base64(run: bytes, start: int, skip: int, padding: bytes, *, is_url: bool) -> Coded | None:
    """The view of a run of base64 that begins ``skip`` characters late."""
    size = len(run) - skip
    if size % 4 == 1:
        size -= 1
    if size < 6:
        return None
    decoded = b64decode(run[skip : skip + size] + b"=" * (-size % 4))
    ends_run = skip + size == len(run)
    stop = start + skip + size + (len(padding) if ends_run else 0)
    is_padded = ends_run and bool(padding or (skip == 0 and len(run) % 4 == 0 and not is_url))
    leftover = decoded if ends_run else decoded[: size * 3 // 4]

    def encode(new: bytes) -> bytes:
        coded = urlsafe_b64encode(new)
        if not is_url:
            coded = coded.replace(b"-", b"+").replace(b"_", b"/")
        return coded if is_padded else coded.rstrip(b"=")

    return Coded("base64", start + skip, stop, leftover, encode)


def _wide(text: bytes) -> Iterator[View]:
    """Views of UTF-16 in both byte orders and alignments."""
    for order in ("utf-16-le", "utf-16-be"):
        for skip in range(2):
            stop = len(text) - (len(text) - skip) % 2
            decoded = text[skip:stop].decode(order, "surrogatepass")
            if _ASCII.search(decoded):
                yield _Wide(order, skip, decoded)


class _Wide:
    """A view of UTF-16 text; what is no text in it becomes replacement characters."""

    def __init__(self, order: str, skip: int, decoded: str) -> None:
        self.name = "UTF-16"
        self._order = order
        self._skip = skip
        self._decoded = decoded
        self.text = decoded.encode("utf-8", "replace")

    def outer(self, edits: list[Edit]) -> list[Edit]:
        """See `View`."""
        if not edits:
            return []
        starts: dict[int, int] = {}
        inner, outer = 0, self._skip
        wanted = {place for edit in edits for place in (edit.start, edit.stop)}
        for character in self._decoded:
            if inner in wanted:
                starts[inner] = outer
            inner += len(character.encode("utf-8", "replace"))
            outer += 4 if character > "\uffff" else 2
        starts[inner] = outer
        return [
            edit._replace(start=starts[edit.start], stop=starts[edit.stop], new=edit.new.decode().encode(self._order))
            for edit in edits
            if edit.start in starts and edit.stop in starts
        ]


def _to_hex(new: bytes) -> bytes:
    return new.hex().encode()


def _to_upper_hex(new: bytes) -> bytes:
    return new.hex().upper().encode()
