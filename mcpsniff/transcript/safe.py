r"""Captured text is hostile: make it harmless before it reaches a terminal or a page.

Control characters can set the clipboard, move the cursor or make a terminal type answers; bidi marks and invisible
characters make text read differently from what it is; markup makes a page of it. Whatever does not show as itself is
shown as a visible escape, ``\x1b`` or ``\u202e``.
"""

import re
import unicodedata
from collections.abc import Callable
from typing import Final

# Printable by the tables of Unicode, and yet invisible: fillers, joiners and the selectors that smuggle data.
_INVISIBLE: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
# What Unicode calls Extended_Pictographic (emoji-data.txt), in as few ranges as tell it from text.
_PICTOGRAPH: Final = re.compile(
    "[\xa9\xae\u203c\u2049\u2122\u2139\u2194-\u2199\u21a9\u21aa\u231a\u231b\u2328\u23cf\u23e9-\u23f3\u23f8-\u23fa"
    "\u24c2\u25aa\u25ab\u25b6\u25c0\u25fb-\u25fe\u2600-\u27bf\u2934\u2935\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001f1e5\U0001f200-\U0001f3fa\U0001f400-\U0001faff]"
)
_JOINER: Final = "\u200d"
_AS_PICTURE: Final = "\ufe0f"
_SKIN: Final = re.compile("[\U0001f3fb-\U0001f3ff]")
_BEYOND_ASCII: Final = re.compile(r"[^\x20-\x7e]")
_IN_A_STRING: Final = re.compile(r"[^\t\n\x20-\x7e]")
_SHORT: Final = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}
_MARKUP: Final = re.compile(r"([\\`*_{}\[\]<>#|~&!$@])")
_BACKTICKS: Final = re.compile(r"`+")


def visible(text: str) -> str:
    r"""``text`` on one line, with everything that does not show as itself spelt as an escape such as ``\x1b``."""
    return _escaped(text, _python_escape)


def visible_json(text: str) -> str:
    r"""The same for a piece of JSON text: escapes are spelt as JSON has them, ``\u001b``."""
    return _escaped(text, _json_escape)


def visible_json_lines(lines: bytes) -> bytes:
    """Lines of strict JSON that mean the same, with the escapes of `visible_json` in their strings.

    Beyond ASCII, and for DEL, there is nothing but strings in JSON; other control characters are escaped there already.
    """
    if lines.isascii() and b"\x7f" not in lines:
        return lines
    return _IN_A_STRING.sub(_json_escape, lines.decode(errors="replace")).encode()


def cells(text: str) -> int:
    """Columns that ``text`` takes on a terminal; East Asian characters and emoji take two."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def shortened(text: str, limit: int) -> str:
    """``text`` cut to ``limit`` characters; where it is cut stands an ellipsis."""
    return text if len(text) <= limit else text[: max(limit - 1, 1)] + "…"


def markdown_code(text: str) -> str:
    """Captured text as an inline code span, in which Markdown and HTML interpret nothing."""
    text = visible(text)
    if not text:
        return "(empty)"
    if not text.strip(" "):
        return f"({len(text)} spaces)"
    runs = {len(run) for run in _BACKTICKS.findall(text)}
    fence = "`" * next(length for length in range(1, len(runs) + 2) if length not in runs)
    pad = " " if text[0] in "` " or text[-1] in "` " else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def markdown_text(text: str) -> str:
    """Text of our own as Markdown: characters that could be markup are escaped. Not for captured text."""
    return _MARKUP.sub(r"\\\1", visible(text))


def markdown_fence(lines: list[str], language: str = "") -> list[str]:
    """Lines that are visible already as a fenced block; its fence is longer than any run of backticks inside."""
    longest = max((len(run) for line in lines for run in _BACKTICKS.findall(line)), default=0)
    fence = "`" * max(3, longest + 1)
    return [fence + language, *lines, fence]


def _escaped(text: str, escape: Callable[[re.Match[str]], str]) -> str:
    if text.isprintable() and (text.isascii() or not _INVISIBLE.search(text)):
        return text
    return _BEYOND_ASCII.sub(escape, text)


def _shows(character: str) -> bool:
    if character.isprintable():
        return not _INVISIBLE.match(character)
    return unicodedata.category(character) == "Zs"


def _is_part_of_a_picture(match: re.Match[str]) -> bool:
    """True for what makes one picture of several: a joiner between two, the selector after one (Unicode TS 51)."""
    text, at = match.string, match.start()
    if at == 0 or text[at] not in (_JOINER, _AS_PICTURE):
        return False
    before = at - 1
    if text[at] == _AS_PICTURE:
        return bool(_PICTOGRAPH.match(text, before))
    if before and (text[before] == _AS_PICTURE or _SKIN.match(text, before)):
        before -= 1
    return bool(_PICTOGRAPH.match(text, before) and _PICTOGRAPH.match(text, at + 1))


def _python_escape(match: re.Match[str]) -> str:
    character = match[0]
    if _shows(character) or _is_part_of_a_picture(match):
        return character
    code = ord(character)
    if character in _SHORT:
        return _SHORT[character]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_escape(match: re.Match[str]) -> str:
    character = match[0]
    if _shows(character) or _is_part_of_a_picture(match):
        return character
    if character in _SHORT:
        return _SHORT[character]
    code = ord(character)
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
