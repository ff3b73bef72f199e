"""Secrets in what is told about the traffic in words: errors quote lines, headers and URLs, whoever wrote them.

What is hidden is as long as what it hides.
"""

import re
from typing import Any, Final

from mcpsniff.proxy.mask_head import SCHEMES
from mcpsniff.proxy.mask_keys import UrlScanner
from mcpsniff.proxy.mask_marks import Marks
from mcpsniff.proxy.mask_names import is_credential_header, is_telling

_LINE = re.compile(r"""(?<!["'])\bb(?:'(?:[^'\\]|\\.)*(?:'|$)|"(?:[^"\\]|\\.)*(?:"|$))""", re.DOTALL)
_FIRST_WORD = re.compile(r"b['\"](?:[\w!#$%&*+.^`|~-]{1,32}(?![\w!#$%&*+.^`|~-]))?")
"""A method, or the name of a header; longer ones may be something else."""
_USER = re.compile(r"(?<=://)[^\s/?#\"'<>@]+(?=@)")
_HEADER = re.compile(
    r"""(?<![\w-])((?:authorization|cookie2?|dpop)|[a-z0-9_]+(?:-[a-z0-9_]+)+)(["']?\s*[:=]\s*["']?)([^\r\n"']+)""",
    re.IGNORECASE,
)
"""A line of a head: single words are names only of headers that mean nothing else."""
_PAIR = re.compile(r"(?<![\w.-])([A-Za-z_][\w.-]{1,63})(=[\"']?)([^\s&;,\"'<>`]+)")
_SCHEME: Final = "|".join(scheme.decode() for scheme in SCHEMES)
_SCHEME_OF_VALUE = re.compile(rf"(?:{_SCHEME})\s+", re.IGNORECASE)
_CREDENTIAL = re.compile(r"\b((?:bearer|basic|dpop)\s+)(?=[^\s\"',;]*[0-9])([^\s\"',;]{8,})", re.IGNORECASE)
"""With a digit: otherwise it may be prose about the scheme."""


def without_lines(text: str) -> str:
    """Return ``text`` with `*` in lines that it quotes as Python writes bytes, but for their first words."""
    return _LINE.sub(_hidden, text) if "b'" in text or 'b"' in text else text


def without_secrets(text: str) -> str:
    """Return ``text`` with `*` in quoted lines, and in the place of credentials in headers and URLs."""
    text = without_lines(text)
    if "://" in text:
        text = _USER.sub(lambda found: "*" * len(found[0]), text)
    if "?" in text or "#" in text or "&" in text:
        text = _without_keys(text)
    if ":" in text or "=" in text:
        text = _HEADER.sub(_without_value, text)
        text = _PAIR.sub(_without_pair, text)
    return _CREDENTIAL.sub(lambda found: found[1] + "*" * len(found[2]), text)


def told_without_secrets(body: Any, name: str, *, lines_only: bool = False) -> Any:
    """Return the body of a record without secrets in its text called ``name``, if it has one; else the same."""
    text = body.get(name) if isinstance(body, dict) else None
    if not isinstance(text, str):
        return body
    masked = without_lines(text) if lines_only else without_secrets(text)
    return body if masked == text else {**body, name: masked}


def _without_keys(text: str) -> str:
    """Hide the telling keys of URLs."""
    data = text.encode("utf-8", "surrogatepass")
    marks = Marks(lambda: b"")
    scanner = UrlScanner(marks)
    scanner.reset(ends_at_space=True, in_text=True)
    scanner.scan(data, 0, len(data))
    return marks.masked(data).decode("utf-8", "surrogatepass")


def _without_value(found: re.Match[str]) -> str:
    """Hide the value of a credential header, but for the word of the scheme."""
    if not is_credential_header(found[1]):
        return found[0]
    scheme = _SCHEME_OF_VALUE.match(found[3])
    kept = scheme[0] if scheme else ""
    return found[1] + found[2] + kept + "*" * (len(found[3]) - len(kept))


def _without_pair(found: re.Match[str]) -> str:
    """Hide the value of ``token=…``, which need not be in a URL."""
    return found[1] + found[2] + "*" * len(found[3]) if is_telling(found[1]) else found[0]


def _hidden(found: re.Match[str]) -> str:
    line = found[0]
    word = _FIRST_WORD.match(line)
    kept = word[0] if word else ""
    quote = line[1] if len(line) > len(kept) and line.endswith(line[1]) else ""
    return kept + "*" * (len(line) - len(kept) - len(quote)) + quote
