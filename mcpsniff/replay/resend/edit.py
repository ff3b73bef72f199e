"""A message as a person edits it: laid out over lines, and taken back on one, with every token as it is spelt."""

import json
import re
from collections.abc import Iterator
from typing import Final

TOKEN: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}:,]|[^\s\[\]{}:,"]+', re.DOTALL)
_INDENT: Final = "  "


def laid_out(raw: bytes) -> str:
    """JSON over several lines. What is not JSON is given as it is."""
    text = raw.decode(errors="backslashreplace").removeprefix("\ufeff")
    if fault(text):
        return text
    return "".join(_laid_out(TOKEN.findall(text))) + "\n"


def _laid_out(tokens: list[str]) -> Iterator[str]:
    depth = 0
    for at, piece in enumerate(tokens):
        before = tokens[at - 1] if at else ""
        if piece in "]}":
            depth -= 1
            if before not in ("[", "{"):
                yield "\n" + _INDENT * depth
        elif before in ("[", "{", ","):
            yield "\n" + _INDENT * depth
        yield piece
        if piece in ("[", "{"):
            depth += 1
        elif piece == ":":
            yield " "


def on_one_line(text: str) -> bytes:
    """JSON without white space between its tokens, which stay as they are spelt."""
    return "".join(TOKEN.findall(text.removeprefix("\ufeff"))).encode(errors="surrogatepass")


def decoded(data: bytes) -> tuple[str, str]:
    """What an editor has saved as text, and why it is none; one of both is empty."""
    try:
        return data.decode(), ""
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return "", f"line {line} is not UTF-8 (byte 0x{data[error.start]:02x})"


def fault(text: str) -> str:
    """Why a text is not JSON, with the place; empty if it is."""
    try:
        json.loads(text.removeprefix("\ufeff"))
    except json.JSONDecodeError as error:
        return f"line {error.lineno}, column {error.colno}: {error.msg}"
    except (ValueError, RecursionError) as error:
        return str(error) or type(error).__name__
    return ""
