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

_KEY_BEGIN: Final = rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_KEY_WHOLE: Final = rb"(?:(?!-----)[^\"]|\"[ \t\r\n]{0,40}+,[ \t\r\n]{0,40}+\"){0,65536}+-----END [A-Z0-9 ]{0,60}+-----"
"""Up to its end, also over the strings of a list, one for each line, but over no other border of a string."""
_KEY_HEADER: Final = rb"[A-Z][A-Za-z-]{1,40}+: [^\r\n\\\"]{0,200}+"
_KEY_CUT: Final = (
    rb"(?:(?:\\[nr]|[\r\n]){1,8}+[ \t]{0,40}+(?:" + _KEY_HEADER + rb"|[A-Za-z0-9+/=]{1,1024}+)"
    rb"|[ \t]{1,40}+[A-Za-z0-9+/=]{40,65536}+"
    rb"|(?:\"[ \t\r\n]{0,40}+,[ \t\r\n]{0,40}+\"){1,3}+(?:" + _KEY_HEADER + rb"|[A-Za-z0-9+/=]{16,1024}+)){0,2000}+"
)
"""A key whose end is not there: the headers of an encrypted one (RFC 1421), and all lines of base64."""

API_KEYS: Final = (
    _form("api key", _B + rb"(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,512}+", b"sk-", b"sk_", b"pk_", b"pk-", b"rk_", b"rk-"),
    _form("api key", _B + rb"(?:gh[pousr]_|github_pat_)[A-Za-z0-9_]{20,512}+", b"gh", b"github_pat_"),
    _form("api key", _B + rb"glpat-[A-Za-z0-9_-]{16,512}+", b"glpat-"),
    _form("api key", _B + rb"xox[abeposr]-[A-Za-z0-9-]{10,512}+", b"xox"),
    _form("api key", _B + rb"(?:AKIA|ASIA)[0-9A-Z]{16}(?![0-9A-Z])", b"AKIA", b"ASIA"),
    _form("api key", _B + rb"AIza[A-Za-z0-9_-]{30,512}+", b"AIza"),
    _form("api key", _B + rb"(?:hf|npm)_[A-Za-z0-9]{20,512}+", b"hf_", b"npm_"),
    _form("api key", _B + rb"(?:pypi-|SG\.)[A-Za-z0-9_.-]{20,512}+", b"pypi-", b"SG."),
    _form("private key", _KEY_BEGIN + b"(?:" + _KEY_WHOLE + b"|" + _KEY_CUT + b")", b"PRIVATE KEY"),
)
TOKENS: Final = (
    _form("token", _B + rb"eyJ[A-Za-z0-9_-]{8,8192}+\.[A-Za-z0-9_-]{8,8192}+(?:\.[A-Za-z0-9_-]{0,8192}+)?+", b"eyJ"),
    _form(
        "token",
        rb"(?<![A-Za-z0-9_/.-])(?:[Bb]earer|BEARER|[Bb]asic|[Tt]oken) {1,4}+(?!HTTP/[0-9])"  # `POST /token HTTP/1.1`
        rb"((?=[A-Za-z._~+/-]{0,64}[0-9])[A-Za-z0-9._~+/-]{8,8192}+={0,2})",
        b"earer ",
        b"BEARER ",
        b"asic ",
        b"oken ",
    ),
    _form("user and password", rb"(?<=://)([^/?#\s@\"'<>\\:]{0,256}+:[^/?#\s@\"'<>\\]{1,256}+)@", b"://"),
)
_LETTER: Final = rb"[\xc3-\xdf][\x80-\xbf]"
"""In UTF-8, of a script beside Latin that has spaces between its words: U+00C0 to U+07FF."""
_SIGN: Final = rb"(?:[\xe0\xe1\xe4-\xed][\x80-\xbf]{2}|\xe3[\x81-\xbf][\x80-\xbf])"
"""Of a script without spaces, or one of Asia; punctuation is none."""

EMAILS: Final = (
    _form(
        EMAIL,
        rb"(?:(?<![A-Za-z0-9._%+-])(?<!" + _LETTER + rb")(?:[A-Za-z0-9]|" + _LETTER + rb")"
        rb"(?:[A-Za-z0-9._%+-]|" + _LETTER + rb"){0,63}+|" + _SIGN + rb"{1,16}+)@"
        rb"(?:(?:[A-Za-z0-9]|"
        + _LETTER
        + b"|"
        + _SIGN
        + rb")(?:[A-Za-z0-9-]|"
        + _LETTER
        + b"|"
        + _SIGN
        + rb"){0,62}+\.)"
        rb"{1,8}(?<=\.)(?:xn--[A-Za-z0-9-]{2,59}+|(?:[A-Za-z]|" + _LETTER + b"){2,24}+|" + _SIGN + rb"{1,24}+)"
        rb"(?![A-Za-z0-9-])",
        b"@",
    ),
)
_NAME: Final = rb"[^\\/\s\"'`:;,<>()\[\]{}|*?&%#]"
HOMES: Final = (
    _form(
        HOME,
        rb"(?<![A-Za-z0-9_.-])/(?:home|Users)/(?!Shared\b|runner\b)" + _NAME + rb"{1,64}+",
        b"/home/",
        b"/Users/",
    ),
    _form(
        HOME,
        rb"(?<![A-Za-z0-9])[A-Za-z]:[\\/]Users[\\/](?!Public\b|Default\b)"
        + _NAME
        + rb"{1,64}+(?:(?: "
        + _NAME
        + rb"{1,32}+){1,3}+(?=[\\/])|(?: [A-Z\xc3]"
        + _NAME
        + rb"{1,32}+){1,3}+(?=[\"']))?+",
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
