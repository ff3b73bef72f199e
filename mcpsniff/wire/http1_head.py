"""Reading one head of HTTP/1.1: the start line, the header lines, and how the body is delimited."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from mcpsniff.wire.http1_parts import (
    BAD_HEADER,
    BAD_LENGTH,
    BAD_START_LINE,
    BAD_TRANSFER_ENCODING,
    BAD_VERSION,
    BARE_CR,
    BARE_LF,
    CHUNKED,
    CHUNKED_IN_HTTP10,
    CLOSE,
    CONFLICTING_FRAMING,
    CONFLICTING_LENGTH,
    CONTROL_CHARACTER,
    FOLDED_HEADER,
    LENGTH,
    LOWER_CASE_METHOD,
    NO_REASON_PHRASE,
    NONE,
    REPEATED_LENGTH,
    SPACE_BEFORE_COLON,
    TUNNEL,
)

type Fields = tuple[tuple[str, str], ...]

KNOWN: Final = 128
"""Start lines and heads whose meaning is remembered: a peer sends the same ones again and again."""
KNOWN_SIZE: Final = 2048
"""Bytes of the longest one that is remembered."""

_NAME: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]"  # RFC 9110 section 5.6.2
_IS_TOKEN = re.compile(f"{_NAME}+")
_IS_METHOD = re.compile(f"{_NAME}{{1,64}}".encode())
_IS_VERSION = re.compile(rb"HTTP/[0-9](?:\.[0-9])?", re.IGNORECASE)
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_FIELD = re.compile(f"({_NAME}+):([^\x00-\x08\x0a-\x1f\x7f]*)\r\n")
_WELL_FORMED = re.compile(f"(?:{_NAME}++:[^\x00-\x08\x0a-\x1f\x7f]*+\r\n)*+\r\n")
_CONTROL_IN_LINE = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_REQUEST_BEGINS = re.compile(f"{_NAME}{{1,64}}(?:[ \t][^\x00-\x08\x0a-\x0c\x0e-\x1f\x7f]*)?".encode())
_STATUS_BEGINS = re.compile(rb"HTTP/[^\x00-\x08\x0a-\x0c\x0e-\x1f\x7f]*", re.IGNORECASE)
_PROTOCOL: Final = b"HTTP/"
_PRI: Final = b"PRI * HTTP/2"
_KNOWN_VERSIONS: Final = frozenset(["HTTP/1.1", "HTTP/1.0"])


@dataclass(slots=True, frozen=True, eq=False)
class StartLine:
    """A start line in its pieces. Compared by identity, which makes it a quick key."""

    method: str | None
    target: str | None
    status: int | None
    reason: str
    version: str
    flaws: tuple[str, ...] = ()


def parse_start_line(line: bytes, *, request: bool) -> StartLine | None:
    """Return the pieces of the first line of a request or response, or None if ``line`` is no such line.

    It may be as sloppy as can be understood: any token for a method, any white space, a target with anything in it.
    Linear in the length of the line, which is why there is no one expression for it.
    """
    return (_start_line_again if len(line) <= KNOWN_SIZE else _start_line)(line, request)


def _start_line(line: bytes, request: bool) -> StartLine | None:
    line = line.removesuffix(b"\n").removesuffix(b"\r")
    if _CONTROL_IN_LINE.search(line) or line[:1] in (b" ", b"\t", b""):
        return None
    return _request_line(line) if request else _status_line(line)


_start_line_again = lru_cache(KNOWN)(_start_line)


def _request_line(line: bytes) -> StartLine | None:
    method, *rest = line.split(None, 1)
    words = rest[0].rsplit(None, 1) if rest else []
    if len(words) != 2 or not _IS_METHOD.fullmatch(method) or not _IS_VERSION.fullmatch(words[1]):
        return None
    target, version = words
    flaws = []
    if line != b" ".join((method, target, version)) or b" " in target or b"\t" in target:
        flaws.append(BAD_START_LINE)
    if method != method.upper():
        flaws.append(LOWER_CASE_METHOD)
    flaws += _version_flaws(version)
    texts = [piece.decode("latin-1") for piece in (method, target, version)]
    return StartLine(texts[0], texts[1], None, "", texts[2], tuple(flaws))


def _status_line(line: bytes) -> StartLine | None:
    version, *rest = line.split(None, 1)
    status, after = (rest[0][:3], rest[0][3:]) if rest else (b"", b"")
    if not _IS_VERSION.fullmatch(version) or not (len(status) == 3 and status.isdigit()):
        return None
    if after and after[:1] not in (b" ", b"\t"):
        return None
    flaws = []
    if line != version + b" " + rest[0]:
        flaws.append(BAD_START_LINE)
    if not after:
        flaws.append(NO_REASON_PHRASE)
    flaws += _version_flaws(version)
    reason = after.strip(b" \t").decode("latin-1")
    return StartLine(None, None, int(status), reason, version.decode("latin-1"), tuple(flaws))


def _version_flaws(version: bytes) -> list[str]:
    text = version.decode("latin-1")
    if text in _KNOWN_VERSIONS:
        return []
    return [BAD_START_LINE if text.upper() in _KNOWN_VERSIONS else BAD_VERSION]


def may_become_start_line(beginning: bytes, *, request: bool) -> bool:
    """Return False if no start line begins so; ``beginning`` is not empty and has no LF."""
    if request:
        return _REQUEST_BEGINS.fullmatch(beginning) is not None
    if len(beginning) <= len(_PROTOCOL):
        return _PROTOCOL.startswith(beginning.upper())
    return _STATUS_BEGINS.fullmatch(beginning) is not None


def is_http2_preface(line: bytes) -> bool:
    """Return whether this is the first line of HTTP/2's connection preface (RFC 9113 section 3.4)."""
    return line.startswith(_PRI)


@dataclass(slots=True, frozen=True)
class HeadLines:
    """What a head says; see `mcpsniff.wire.http1_parts.Head`."""

    start_line: bytes
    fields: Fields
    flaws: tuple[str, ...]
    framing: str
    length: int | None


def parse_head(block: bytes, start: StartLine, asked: str) -> HeadLines:
    """Return what the lines of a head say.

    ``block`` holds all of them, with their ends, and ``start`` is what the first one says. ``asked`` is the method of
    the request that a response answers.
    """
    return (_head_again if len(block) <= KNOWN_SIZE else _head)(block, start, asked)


def _head(block: bytes, start: StartLine, asked: str) -> HeadLines:
    first, _, rest = block.partition(b"\n")
    flaws = [*start.flaws, *line_end_flaws(block)]
    fields = parse_fields(rest.decode("latin-1"), flaws)
    framing, length = body_framing(start, fields, asked, flaws)
    return HeadLines(first.removesuffix(b"\r"), fields, tuple(dict.fromkeys(flaws)), framing, length)


_head_again = lru_cache(KNOWN)(_head)


def parse_fields(text: str, flaws: list[str]) -> Fields:
    """Return the header or trailer fields in ``text`` (latin-1, lines with their ends); add what is odd to ``flaws``.

    A line without a colon is no field and is left out; it is a flaw.
    """
    if _WELL_FORMED.fullmatch(text):
        return tuple([(name, value.strip(" \t")) for name, value in _FIELD.findall(text)])
    odd: set[str] = set()
    fields: list[tuple[str, list[str]]] = []
    for line in text.split("\n"):
        content = line.removesuffix("\r")
        if not content:
            continue
        if content[0] in " \t" and fields:  # obs-fold: a space stands for the line end (RFC 9112 section 5.2)
            odd.add(FOLDED_HEADER)
            fields[-1][1].append(content.strip(" \t"))
            continue
        name, colon, value = content.partition(":")
        spelt = name.strip(" \t")
        if not colon or not spelt:
            odd.add(BAD_HEADER)
            continue
        if name[-1] in " \t":
            odd.add(SPACE_BEFORE_COLON)
        if name[0] in " \t" or not _IS_TOKEN.fullmatch(spelt):
            odd.add(BAD_HEADER)
        fields.append((spelt, [value.strip(" \t")]))
    if _CONTROL.search(text):
        odd.add(CONTROL_CHARACTER)
    flaws.extend(sorted(odd))
    return tuple([(name, lines[0] if len(lines) == 1 else " ".join(filter(None, lines))) for name, lines in fields])


def line_end_flaws(block: bytes) -> list[str]:
    """Return what is wrong with the line ends in ``block``."""
    both = block.count(b"\r\n")
    flaws = [BARE_LF] if block.count(b"\n") > both else []
    return [*flaws, BARE_CR] if block.count(b"\r") > both else flaws


def body_framing(start: StartLine, fields: Fields, asked: str, flaws: list[str]) -> tuple[str, int | None]:
    """Return how the body is delimited, and its length if that is given: the rules of RFC 9112 section 6.3, in order.

    ``asked`` is the method of the request that a response answers. What is contradictory goes to ``flaws``.
    """
    status = start.status
    if status is not None:
        if status == 101 or (asked == "CONNECT" and 200 <= status < 300):
            return TUNNEL, None
        if asked == "HEAD" or status < 200 or status in {204, 304}:
            return NONE, None
    codings: list[str] | None = None
    lengths: list[str] | None = None
    for name, value in fields:
        size = len(name)  # so that few names need to be compared
        if size == 17 and name.lower() == "transfer-encoding":
            codings = [] if codings is None else codings
            codings += [coding.partition(";")[0].strip(" \t").lower() for coding in value.split(",")]
        elif size == 14 and name.lower() == "content-length":
            lengths = [] if lengths is None else lengths
            lengths += [length.strip(" \t") for length in value.split(",")]
    otherwise = NONE if status is None else CLOSE
    if codings is not None:
        if lengths is not None:
            flaws.append(CONFLICTING_FRAMING)
        if start.version.upper() == "HTTP/1.0":
            flaws.append(CHUNKED_IN_HTTP10)
        if codings.count("chunked") != 1 or codings[-1] != "chunked":
            flaws.append(BAD_TRANSFER_ENCODING)
        if codings[-1] == "chunked":
            return CHUNKED, None
        if any(coding not in {"", "identity"} for coding in codings):
            return CLOSE, None
    if lengths is None:
        return otherwise, None
    length = _length(lengths, flaws)
    return (otherwise, None) if length is None else (LENGTH, length)


def _length(values: list[str], flaws: list[str]) -> int | None:
    """Return the length that Content-Length gives, or None if it gives none."""
    numbers = [int(value) for value in values if value.isascii() and value.isdigit() and len(value) <= 19]
    if len(numbers) < len(values):
        flaws.append(BAD_LENGTH)
    elif len(values) > 1:
        flaws.append(REPEATED_LENGTH if len(set(numbers)) == 1 else CONFLICTING_LENGTH)
    return numbers[0] if numbers else None
