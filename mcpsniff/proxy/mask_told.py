"""Secrets in what is told about the traffic: errors of HTTP libraries quote the line that they could not read."""

import re
from typing import Any

_LINE = re.compile(r"""\bb(?:'(?:[^'\\]|\\.)*(?:'|$)|"(?:[^"\\]|\\.)*(?:"|$))""", re.DOTALL)
_FIRST_WORD = re.compile(r"b['\"](?:[\w!#$%&*+.^`|~-]{1,32}(?![\w!#$%&*+.^`|~-]))?")
"""A method, or the name of a header; longer ones may be something else."""


def without_lines(text: str) -> str:
    """Return ``text`` with `*` in lines that it quotes as Python writes bytes, but for their first words."""
    return _LINE.sub(_hidden, text) if "b'" in text or 'b"' in text else text


def told_without_lines(body: Any, name: str) -> Any:
    """Return the body of a record without such lines in its text called ``name``, if it has one; else the same."""
    text = body.get(name) if isinstance(body, dict) else None
    if not isinstance(text, str) or (masked := without_lines(text)) == text:
        return body
    return {**body, name: masked}


def _hidden(found: re.Match[str]) -> str:
    line = found[0]
    word = _FIRST_WORD.match(line)
    kept = word[0] if word else ""
    quote = line[1] if len(line) > len(kept) and line.endswith(line[1]) else ""
    return kept + "*" * (len(line) - len(kept) - len(quote)) + quote
