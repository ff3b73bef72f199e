"""A value in all the ways in which it may still be in a capture, written out one by one."""

import base64
import html
import json
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import quote, quote_plus

SHORTEST: Final = 6
"""Bytes of the shortest form that says anything."""

_URL: Final = bytes.maketrans(b"+/", b"-_")


def forms_of(value: bytes) -> Iterator[tuple[str, bytes]]:
    """The value in each encoding, with the encoding's name."""
    yield "plain", value
    text = value.decode("utf-8", "replace")
    for name, escaped in _json(text):
        yield name, escaped
        yield f"{name} twice", json.dumps(escaped.decode(), ensure_ascii=False)[1:-1].encode()
    yield from _percent(value)
    yield "HTML", html.escape(text).encode()
    yield "HTML", html.escape(text, quote=False).encode()
    yield "HTML, by numbers", "".join(f"&#{ord(character)};" for character in text).encode()
    yield "HTML, by hexadecimal numbers", "".join(f"&#x{ord(character):x};" for character in text).encode()
    yield "hexadecimal", value.hex().encode()
    yield "hexadecimal", value.hex().upper().encode()
    for order in ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"):
        wide = text.encode(order, "replace")
        yield order.upper(), wide
        yield from _base64(wide, f"{order.upper()} in base64")
    for name, coded in _base64(value, "base64"):
        yield name, coded
        yield from _base64(coded, f"{name} twice")
    yield "backwards", value[::-1]


def needles_of(values: Iterable[bytes]) -> dict[bytes, str]:
    """All forms of all ``values``, with the name of the encoding, but for those that are too short to mean anything."""
    found: dict[bytes, str] = {}
    for value in values:
        for name, form in forms_of(value):
            if is_telling(form, value):
                found.setdefault(form, name)
    return found


def is_telling(form: bytes, value: bytes) -> bool:
    """Say whether a form of a value is long enough to mean anything."""
    return len(form) >= SHORTEST or form == value


def _json(text: str) -> Iterator[tuple[str, bytes]]:
    units = [text.encode("utf-16-be", "surrogatepass").hex()[at : at + 4] for at in range(0, 2 * _units(text) * 2, 4)]
    yield "JSON escapes", json.dumps(text)[1:-1].encode()
    yield "JSON escapes", json.dumps(text, ensure_ascii=False)[1:-1].encode()
    yield "JSON escapes", json.dumps(text)[1:-1].replace("/", "\\/").encode()
    yield "JSON escapes of all", "".join(f"\\u{unit}" for unit in units).encode()
    yield "JSON escapes of all", "".join(f"\\u{unit.upper()}" for unit in units).encode()


def _units(text: str) -> int:
    return len(text.encode("utf-16-be", "surrogatepass")) // 2


def _percent(value: bytes) -> Iterator[tuple[str, bytes]]:
    for once in {quote(value, safe=""), quote(value), quote_plus(value), quote(value, safe="/:@!$&'()*+,;=~")}:
        yield "percent encoding", once.encode()
        yield "percent encoding", _lower(once).encode()
        yield "percent encoding twice", quote(once, safe="").encode()
        yield "percent encoding twice", _lower(quote(_lower(once), safe="")).encode()
    yield "percent encoding of all", "".join(f"%{byte:02X}" for byte in value).encode()
    yield "percent encoding of all", "".join(f"%{byte:02x}" for byte in value).encode()


def _lower(quoted: str) -> str:
    """The same with small letters in its numbers."""
    head, *rest = quoted.split("%")
    return "%".join([head, *(piece[:2].lower() + piece[2:] for piece in rest)])


def _base64(value: bytes, name: str) -> Iterator[tuple[str, bytes]]:
    """What is the same in base64 whatever stands before and after the value, for each of the three alignments."""
    for skip in range(3):
        coded = base64.b64encode(b"\0" * skip + value)
        first = -(-skip * 8 // 6)
        last = (skip + len(value)) * 8 // 6
        core = coded[first:last]
        yield name, core
        if b"+" in core or b"/" in core:
            yield name, core.translate(_URL)
