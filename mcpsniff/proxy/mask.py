"""Keeps secrets out of what is recorded.

Of a wrapped server only the command line is masked; what passes on its pipes is left alone. A name precedes its secret
(``--token X``, ``API_KEY=X``, ``Authorization: X``), so one scan from left to right finds both.
"""

import re
from collections.abc import Sequence
from typing import Final

MASK: Final = "***"

_ENDINGS: Final = (
    "apikey",
    "accesskey",
    "accesskeyid",
    "secretkey",
    "privatekey",
    "authkey",
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "connectionstring",
)
"""A name that ends so, written in any way (``--api-key``, ``MY_API_KEY``, ``apiKey``), has a secret for a value."""
_WORDS: Final = frozenset(
    ["pass", "pwd", "pat", "auth", "authorization", "bearer", "credential", "credentials", "cookie"]
)
"""Likewise a name whose last word is one of these."""
_QUERY_KEYS: Final = frozenset(["key", "code", "sig", "signature", "code_verifier", "assertion"])
"""And these in the query or fragment of a URL."""

_NAMED = re.compile(r"""(?<![\w.-])([\w.-]{1,100})(["']?\s*[=:]\s*|\s+)(?=\S)""")
_SCHEME = re.compile(r"(?:(?:Bearer|Basic|Digest|Token)\s+)?", re.IGNORECASE)
_VALUE = re.compile(r""""[^"]*"|'[^']*'|[^\s"'&#;,}]+""")
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
        is_option = word.startswith("-") and _is_telling(word)
        if is_value and not is_option:
            masked.append(_keep_scheme(word))
        else:
            masked.append(_within(word))
        is_value = is_option
    return masked


def _is_telling(name: str) -> bool:
    """Say whether a name's value is a secret. The end decides: ``max-tokens`` and ``token-limit`` say nothing."""
    words = name.lower().lstrip("-").replace(".", "-").replace("_", "-").split("-")
    return words[0] != "no" and (words[-1] in _WORDS or "".join(words).endswith(_ENDINGS))


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
        return name.startswith("-") and _is_telling(name)
    in_query = found.start() > 0 and word[found.start() - 1] in "?&#;"
    return _is_telling(name) or (in_query and name.lower() in _QUERY_KEYS)
