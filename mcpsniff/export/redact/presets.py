"""Forms by which secrets are known wherever they stand. All are read in time that grows with the text alone.

That is since each begins at a place that cannot be within another candidate (what precedes it is looked at first), and
runs over a bounded number of characters without going back.
"""

import re
from typing import Final, NamedTuple

from mcpsniff.export.redact.values import ADDRESS, EMAIL, HOME


class Form(NamedTuple):
    """One form: group 1 of the pattern is the value, if there is one, else all of it."""

    what: str
    pattern: re.Pattern[bytes]
    hints: tuple[bytes, ...]
    """One of these is in every text that has the form."""


def _form(what: str, pattern: bytes, *hints: bytes) -> Form:
    return Form(what, re.compile(pattern), hints)


_B: Final = rb"(?<![A-Za-z0-9_-])"

API_KEYS: Final = (
    _form("api key", _B + rb"(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,512}+", b"sk-", b"sk_", b"pk_", b"pk-", b"rk_", b"rk-"),
    _form("api key", _B + rb"(?:gh[pousr]_|github_pat_)[A-Za-z0-9_]{20,512}+", b"gh", b"github_pat_"),
    _form("api key", _B + rb"glpat-[A-Za-z0-9_-]{16,512}+", b"glpat-"),
    _form("api key", _B + rb"xox[abeposr]-[A-Za-z0-9-]{10,512}+", b"xox"),
    _form("api key", _B + rb"(?:AKIA|ASIA)[0-9A-Z]{16}(?![0-9A-Z])", b"AKIA", b"ASIA"),
    _form("api key", _B + rb"AIza[A-Za-z0-9_-]{30,512}+", b"AIza"),
    _form("api key", _B + rb"(?:hf|npm)_[A-Za-z0-9]{20,512}+", b"hf_", b"npm_"),
    _form("api key", _B + rb"(?:pypi-|SG\.)[A-Za-z0-9_.-]{20,512}+", b"pypi-", b"SG."),
    _form(
        "private key",
        rb"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----(?:[^-]{0,16384}+-----END [A-Z ]{0,40}PRIVATE KEY-----)?+",
        b"PRIVATE KEY-----",
    ),
)
TOKENS: Final = (
    _form("token", _B + rb"eyJ[A-Za-z0-9_-]{8,8192}+\.[A-Za-z0-9_-]{8,8192}+(?:\.[A-Za-z0-9_-]{0,8192}+)?+", b"eyJ"),
    _form(
        "token",
        rb"(?<![A-Za-z])(?:[Bb]earer|BEARER|[Bb]asic|[Tt]oken) {1,4}+"
        rb"((?=[A-Za-z._~+/-]{0,64}[0-9])[A-Za-z0-9._~+/-]{8,8192}+={0,2})",
        b"earer ",
        b"BEARER ",
        b"asic ",
        b"oken ",
    ),
    _form("user and password", rb"(?<=://)([^/?#\s@\"'<>\\:]{0,256}+:[^/?#\s@\"'<>\\]{1,256}+)@", b"://"),
)
EMAILS: Final = (
    _form(
        EMAIL,
        rb"(?<![A-Za-z0-9._%+-])[A-Za-z0-9](?:[A-Za-z0-9._%+-]{0,63}+)@"
        rb"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,62}+)\.){1,8}(?<=\.)[A-Za-z]{2,24}+(?![A-Za-z0-9-])",
        b"@",
    ),
)
HOMES: Final = (
    _form(
        HOME,
        rb"(?<![A-Za-z0-9_.-])/(?:home|Users)/(?!Shared\b|runner\b)[^/\s\"'\\:;,<>()*?&%#]{1,64}+",
        b"/home/",
        b"/Users/",
    ),
    _form(
        HOME,
        rb"(?<![A-Za-z0-9])[A-Za-z]:[\\/]Users[\\/](?!Public\b|Default\b)[^\\/\s\"':;,<>()*?&%#]{1,64}+",
        b":\\Users\\",
        b":/Users/",
    ),
)
_OCTET: Final = rb"(?:25[0-5]|2[0-4][0-9]|1?[0-9]{1,2})"
ADDRESSES: Final = (
    _form(
        ADDRESS,
        rb"(?<![0-9A-Za-z.])(?!127\.|0\.0\.0\.0)" + rb"\.".join([_OCTET] * 4) + rb"(?![0-9A-Za-z]|\.[0-9])",
        b".",
    ),
    _form(
        ADDRESS,
        rb"(?<![0-9A-Fa-f:.])(?=[0-9A-Fa-f]{1,4}:)(?:[0-9A-Fa-f]{1,4}:{1,2}){2,7}[0-9A-Fa-f]{1,4}(?![0-9A-Za-z:.])",
        b":",
    ),
)

PRESETS: Final[dict[str, tuple[Form, ...]]] = {
    "api-keys": API_KEYS,
    "tokens": TOKENS,
    "email": EMAILS,
    "home": HOMES,
    "addresses": ADDRESSES,
    "names": (),
}
"""By name. ``names`` has no form: it is what stands beside a telling name, such as ``password``."""
DEFAULT: Final = ("api-keys", "tokens", "email", "home", "names")
"""What is on when nothing is asked for."""
EVERY: Final = "all"
NONE: Final = "none"
