"""What a text means once an encoding is removed, and which of its bytes each byte of that came from.

A view is made of every encoding that may be there at all: escapes of JSON, percent signs, references of HTML, base64 in
any alignment and alphabet, hexadecimal, UTF-16. Views have views: what was encoded twice is found in the second one.
"""

import html
import re
from base64 import b64decode, urlsafe_b64encode
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple, Protocol

DEPTH: Final = 3
"""Encodings within one another that are removed."""

_ESCAPE = re.compile(
    rb"\\(?:[uU]([dD][89abAB][0-9A-Fa-f]{2})\\[uU]([dD][c-fC-F][0-9A-Fa-f]{2})|[uU]([0-9A-Fa-f]{4})"
    rb"|x([0-9A-Fa-f]{2})|(.))",
    re.DOTALL,
)
_PERCENT = re.compile(rb"%([0-9A-Fa-f]{2})")
_FORM = re.compile(rb"%([0-9A-Fa-f]{2})|\+")
_REFERENCE = re.compile(rb"&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,8});?")
_DATA_LINES = re.compile(rb"(?:\r\n|\n|\r)data: ?")
_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{6,}+={0,2}")
_HEX = re.compile(rb"[0-9A-Fa-f]{8,}+")
_CONTROLS: Final = bytes(code for code in range(1, 0x20) if code not in b"\t\n\r\f\x1b") + b"\x7f"
_NOT_PRINTED: Final = bytes(code for code in range(256) if not 0x20 <= code < 0x7F and code not in b"\t\n\r")
_IN_FORM = re.compile(rb"[A-Za-z0-9_.\[\]]=[^\s\"'&+]{0,256}\+")
_SHORT: Final = 64
_REMEMBERED: Final = 200_000
_SIMPLE: Final = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"f": b"\f", b"0": b"\0"}
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


class Interest:
    """Says which decoded bytes are worth a view: text, and what ``has`` something. Remembers words that are not."""

    def __init__(self, has: Callable[[bytes], bool]) -> None:
        self._has = has
        self._dull: set[bytes] = set()

    def in_word(self, word: bytes, views: Iterable["Coded"]) -> Iterator["Coded"]:
        """Those of a word's ``views`` that are worth it."""
        if word in self._dull:
            return
        is_dull = True
        for view in views:
            if _is_text(view.text) or self._has(view.text):
                is_dull = False
                yield view
        if is_dull and len(word) <= _SHORT and len(self._dull) < _REMEMBERED:
            self._dull.add(word)


class View(Protocol):
    """A text without one encoding."""

    name: str
    text: bytes

    def outer(self, edits: list[Edit]) -> list[Edit]:
        """The edits of the encoded text that come to ``edits`` of `text`."""


class Pieces:
    """A view in which some stretches stand for others; everything else is as it is."""

    def __init__(
        self,
        name: str,
        source: bytes,
        pattern: re.Pattern[bytes],
        meaning: Callable[[re.Match[bytes]], bytes | None],
        encode: Callable[[bytes], bytes],
    ) -> None:
        self.name = name
        self._encode = encode
        self._inner: list[int] = []
        self._outer: list[tuple[int, int]] = []
        parts: list[bytes] = []
        done = size = 0
        for found in pattern.finditer(source):
            means = meaning(found)
            if means is None:
                continue
            parts += (source[done : found.start()], means)
            size += found.start() - done
            self._inner += (size, size + len(means))
            self._outer += ((found.start(), found.end()), (found.end(), found.end()))
            size += len(means)
            done = found.end()
        parts.append(source[done:])
        self.text = b"".join(parts)

    def outer(self, edits: list[Edit]) -> list[Edit]:
        """See `View`."""
        return [
            edit._replace(
                start=self.place(edit.start), stop=self.place(edit.stop, is_stop=True), new=self._encode(edit.new)
            )
            for edit in edits
        ]

    def changes(self, start: int, stop: int) -> bool:
        """Say whether anything between these places of `text` stands for something else."""
        at = bisect_left(self._inner, start)
        return at < len(self._inner) and self._inner[at] <= stop

    def place(self, position: int, *, is_stop: bool = False) -> int:
        """Where a position of `text` is in the source; within what stands for others, its beginning or its end."""
        at = bisect_right(self._inner, position - is_stop) - 1
        if at < 0:
            return position
        start, stop = self._outer[at]
        if start == stop:
            return start + position - self._inner[at]
        return stop if is_stop else start


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


def is_binary(text: bytes) -> bool:
    """Say whether a longer text is none, by its control characters: then it is searched, but not for encodings."""
    return len(text) > _SHORT and (len(text) - len(text.translate(None, _CONTROLS))) * 50 > len(text)


def views(text: bytes, least: int, interest: Interest, before: View | None = None) -> Iterator[View]:
    """All views of ``text`` that may show something else than it does, of at least ``least`` bytes.

    Of what any word might be (base64), only those of ``interest``. ``before`` is the view that ``text``
    is: what it has in common with what it was made of is not looked at again.
    """
    if b"\\" in text:
        yield Pieces("JSON escapes", text, _ESCAPE, _unescaped, _escape)
    if b"%" in text and _PERCENT.search(text):
        yield Pieces("percent encoding", text, _PERCENT, lambda found: bytes([int(found[1], 16)]), _as_percent)
    if b"+" in text and _IN_FORM.search(text):
        yield Pieces("form encoding", text, _FORM, _unformed, _as_percent)
    if b"&" in text and _REFERENCE.search(text):
        view = Pieces("HTML", text, _REFERENCE, _dereferenced, lambda new: html.escape(new.decode()).encode())
        if view.text != text:
            yield view
    if b"\ndata:" in text or b"\rdata:" in text:
        yield Pieces("data lines", text, _DATA_LINES, lambda _: b"\n", lambda new: new)
        yield Pieces("joined data lines", text, _DATA_LINES, lambda _: b"", lambda new: new)
    yield from _runs(text, least, interest, before if isinstance(before, Pieces) else None)
    if b"\0" in text:
        yield from _wide(text)


def _is_text(decoded: bytes) -> bool:
    """Say whether decoded bytes look like text, or like UTF-16: words decode to noise."""
    size = len(decoded)
    if size > _SHORT and decoded.count(0) * 4 > size:
        return True
    if decoded.count(0) * 3 > size:
        return True
    return len(decoded.translate(None, _NOT_PRINTED)) * 5 >= size * 3 and not is_binary(decoded)


def _runs(text: bytes, least: int, interest: Interest, before: Pieces | None) -> Iterator[View]:
    for found in _BASE64.finditer(text):
        word = found[0]
        if len(word) * 3 < least * 4 or word.islower():  # base64 has capitals, but for one in thousands of short ones
            continue
        if before is None or before.changes(found.start(), found.end()):
            yield from interest.in_word(word, _alignments(word, found.start()))
    for found in _HEX.finditer(text):
        if found.end() - found.start() < 2 * least:
            continue
        if before is None or before.changes(found.start(), found.end()):
            yield from interest.in_word(b"hex " + found[0], _nibbles(found[0], found.start()))


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
    leftover = decoded if ends_run else decoded[: size * 3 // 4]

    def encode(new: bytes) -> bytes:
        coded = urlsafe_b64encode(new)
        if not is_url:
            coded = coded.replace(b"-", b"+").replace(b"_", b"/")
        return coded if ends_run and padding else coded.rstrip(b"=")

    return Coded("base64", start + skip, stop, leftover, encode)


def _wide(text: bytes) -> Iterator[View]:
    """Views of UTF-16 in both byte orders and alignments."""
    for order in ("utf-16-le", "utf-16-be"):
        for skip in range(2):
            stop = len(text) - (len(text) - skip) % 2
            decoded = text[skip:stop].decode(order, "surrogatepass")
            if any(character < "\x80" for character in decoded):
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


def unescaped(text: bytes) -> Pieces:
    """The view of the inside of a JSON string."""
    return Pieces("JSON escapes", text, _ESCAPE, _unescaped, _escape)


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


def _escape(new: bytes) -> bytes:
    return new.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n").replace(b"\r", b"\\r")


def _unformed(found: re.Match[bytes]) -> bytes:
    return b" " if found[1] is None else bytes([int(found[1], 16)])


def _as_percent(new: bytes) -> bytes:
    return b"".join(bytes([one]) if one in _PLAIN_BYTES else b"%%%02X" % one for one in new)


def _dereferenced(found: re.Match[bytes]) -> bytes | None:
    text = found[0].decode()
    means = html.unescape(text)
    return None if means == text else means.encode("utf-8", "replace")


def _to_hex(new: bytes) -> bytes:
    return new.hex().encode()


def _to_upper_hex(new: bytes) -> bytes:
    return new.hex().upper().encode()
