"""Keeps secrets out of the recorded command line; of a wrapped server nothing else is masked.

A name precedes its secret (``--token X``, ``API_KEY=X``, ``Authorization: X``), so one scan from left to right finds
both.
"""

import re
from collections.abc import Sequence
from typing import Final

from mcpsniff.proxy.mask_names import is_telling, is_telling_key

MASK: Final = "***"

_NAMED = re.compile(r"""(?<![\w.-])([\w.-]{1,100})(["']?\s*[=:]\s*|\s+)(?=\S)""")
_SCHEME = re.compile(r"(?:(?:Bearer|Basic|Digest|Token)\s+)?", re.IGNORECASE)
_VALUE = re.compile(
    r"""(?:"[^"]*"|'[^']*')(?=[\s&#;,})\]:]|\Z)|(?:[^\s"'&#;,}]|"[^"]*+"|'[^']*+'|["'](?=[^\s"'&#;,})\]:]))+"""
)
"""Quoted as a whole, or a word in which quoted pieces and single quotes may stand, as shells and secrets have them."""
_USERINFO = re.compile(r"(?<=://)[^/?#\s@]+(?=@)")
_WELL_KNOWN = re.compile(
    r"\b(?:sk-[\w-]{16,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abposr]-[\w-]{10,}|AKIA[0-9A-Z]{16}"
    r"|AIza[\w-]{30,}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)"
)


def mask_argv(argv: Sequence[str]) -> list[str]:
    """Return a command line with its secrets replaced by ``***``.

    Masked are: the value of an option or variable with a telling name (``--api-key X``, ``--token=X``, ``MY_TOKEN=X``,
    also within a longer word such as a shell's ``-c`` script or a JSON text), credential headers (the scheme stays),
    user information and telling query keys in URLs, and words that have the form of well-known keys.
    """
    masked = []
    is_value = False
    for word in argv:
        is_option = word.startswith("-") and is_telling(word)
        if is_value and not is_option:
            masked.append(_keep_scheme(word))
        else:
            masked.append(_within(word))
        is_value = is_option
    return masked


def _keep_scheme(value: str) -> str:
    """Mask a value, but not the authentication scheme before it."""
    scheme = _SCHEME.match(value)
    return (scheme[0] if scheme else "") + MASK


def _within(word: str) -> str:
    """Mask the secrets that a word contains."""
    word = _USERINFO.sub(MASK, word)
    pieces = []
    done = 0
    while found := _NAMED.search(word, done):
        pieces.append(word[done : found.end()])
        done = found.end()
        if not _announces(word, found):
            continue
        if found.start() == 0 and ":" in found[2]:  # a header of its own: all of it
            return "".join(pieces) + _keep_scheme(word[done:])
        scheme = _SCHEME.match(word, done)
        value = _VALUE.match(word, scheme.end() if scheme else done)
        if value:
            quote = value[0][0] if value[0][0] in "\"'" else ""
            pieces.append(f"{word[done : value.start()]}{quote}{MASK}{quote}")
            done = value.end()
    return _WELL_KNOWN.sub(MASK, "".join(pieces) + word[done:])


def _announces(word: str, found: re.Match[str]) -> bool:
    """Say whether a secret follows a name: an option, a variable, a header, or a key of a URL's query."""
    name, separator = found.groups()
    if separator.isspace():
        return name.startswith("-") and is_telling(name)
    in_query = found.start() > 0 and word[found.start() - 1] in "?&#;"
    return is_telling(name) or (in_query and is_telling_key(name))
