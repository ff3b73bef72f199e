"""Keeps secrets out of what is recorded.

Of a wrapped server only the command line is masked; what passes on its pipes is left alone.
"""

import re
from collections.abc import Sequence
from typing import Final

MASK: Final = "***"

_NAME: Final = (
    r"(?:[\w.-]*[_.-])?"
    r"(?:api[_-]?key|access[_-]?key(?:[_-]?id)?|secret[_-]?key|private[_-]?key|auth[_-]?key|apikey|authkey"
    r"|(?:\w*)(?:token|secret|password|passphrase)|passwd|pwd|pass|pat|auth|authorization|bearer|credentials?|cookie"
    r"|connection[_-]?string)"
)
"""A name whose value is a secret. The last word decides: ``max-tokens`` and ``token-limit`` are none."""

_OPTION = re.compile(rf"--?(?!-|no-){_NAME}", re.IGNORECASE)

_SCHEME: Final = r"(?:(?:Bearer|Basic|Digest|Token)\s+)?"
_VALUE: Final = r"""(?:"[^"]*"|'[^']*'|[^\s"'&;,}]+)"""
_NAMED = re.compile(rf"""(?<![\w.-])((?:--?)?["']?{_NAME}["']?\s*[=:]\s*{_SCHEME})({_VALUE})""", re.IGNORECASE)
_OPTION_INSIDE = re.compile(rf"(?<!\S)(--?(?!-|no-){_NAME}\s+)({_VALUE})", re.IGNORECASE)
_AUTHORIZATION = re.compile(rf"((?:Proxy-)?Authorization\s*[=:]\s*{_SCHEME})(\S.*)", re.IGNORECASE | re.DOTALL)
_COOKIE = re.compile(r"((?:Set-)?Cookie\s*[=:]\s*)(\S.*)", re.IGNORECASE | re.DOTALL)
_QUERY = re.compile(rf"([?&#;](?:{_NAME}|key|code|sig|signature|code_verifier|assertion)=)([^&#\s\"']+)", re.IGNORECASE)
_USERINFO = re.compile(r"([a-z][a-z0-9+.-]*://)([^/?#\s@]+)(?=@)", re.IGNORECASE)
_SCHEME_VALUE = re.compile(r"\b((?:Bearer|Basic)\s+)([\w.~+/=-]{8,})", re.IGNORECASE)
_LOOKS_SECRET = re.compile(
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
    follows_secret = False
    for word in argv:
        if follows_secret and not (word.startswith("-") and _OPTION.fullmatch(word)):
            masked.append(_whole(word))
            follows_secret = False
            continue
        follows_secret = bool(_OPTION.fullmatch(word))
        masked.append(_within(word))
    return masked


def _whole(word: str) -> str:
    """Mask a word that is a secret; a scheme before it stays."""
    scheme = re.match(_SCHEME, word, re.IGNORECASE)
    return (scheme[0] if scheme else "") + MASK


def _keep_quotes(found: re.Match[str]) -> str:
    """Replace the second group of a match, but not the quotes around it."""
    quote = found[2][0] if found[2][0] in "\"'" else ""
    return f"{found[1]}{quote}{MASK}{quote}"


def _within(word: str) -> str:
    """Mask the secrets that a word contains."""
    for pattern in (_AUTHORIZATION, _COOKIE):
        if pattern.match(word):  # a header of its own: all of it
            return pattern.sub(rf"\1{MASK}", word)
    word = _USERINFO.sub(rf"\1{MASK}", word)
    for pattern in (_QUERY, _NAMED, _OPTION_INSIDE, _SCHEME_VALUE):
        word = pattern.sub(_keep_quotes, word)
    return _LOOKS_SECRET.sub(MASK, word)
