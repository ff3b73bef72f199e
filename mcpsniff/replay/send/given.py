"""What of the values that a user gives to a server is a secret, and how such a value may be spelt."""

import binascii
import json
import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import quote, quote_plus, unquote, urlsplit

from mcpsniff.proxy.mask_names import is_credential_header, is_telling

SHORTEST: Final = 4
"""Characters of a secret from which on it is looked for in what passes: shorter ones are everywhere."""
TELLING: Final = 8
"""The same for a value whose name does not say that it is a secret: ``true`` and ``info`` are none."""

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9-]*)\s+(\S.*)\Z", re.DOTALL)
_BETWEEN: Final = rb"(?:\\+[nrx]|[\s:,._%-]|%25|0x){0,3}"
"""What stands between the bytes of a value in hexadecimal: colons, white space, ``%``, ``\\x``."""
_PARAMETER: Final = re.compile(r"""[\w.%-]+\s*=\s*(?:"([^"]*)"|([^\s;,"]+))""")


def is_secret(name: str) -> bool:
    """True if the name of a variable or a header field says that its value is a secret."""
    return is_telling(name) or is_credential_header(name)


def secrets_of(given: Iterable[tuple[str, str]]) -> set[str]:
    """The values to be hidden, and the parts of them that are a secret by themselves.

    These are what follows the scheme (``Bearer X``), user and password of ``Basic`` (RFC 7617), the values of cookies
    and of parameters, and the password in a URL.
    """
    found: set[str] = set()
    for name, value in given:
        least = SHORTEST if is_secret(name) else TELLING
        found |= {text for text in (value, value.strip()) if len(text) >= least}
        if is_credential_header(name) or is_telling(name):
            found |= {text for text in _parts(value) if len(text) >= SHORTEST}
        found |= {text for text in _passwords(value) if len(text) >= SHORTEST}
    return found


def too_short(given: Iterable[tuple[str, str]]) -> list[str]:
    """The names of secrets that are too short to be looked for."""
    return [name for name, value in given if value and len(value) < SHORTEST and is_secret(name)]


def _parts(value: str) -> Iterator[str]:
    value = value.strip()
    scheme = _SCHEME.match(value)
    credentials = value if scheme is None else scheme[2].strip()
    if scheme is not None:
        yield credentials
        yield credentials.rstrip("=")
    if scheme is not None and scheme[1].lower() == "basic" and (pair := _decoded(credentials)):
        yield pair
        yield pair.partition(":")[2]
    for found in _PARAMETER.finditer(credentials):
        text = found[1] or found[2] or ""
        yield from (text, unquote(text))


def _decoded(text: str) -> str | None:
    try:
        return b64decode(text + "=" * (-len(text) % 4), validate=True).decode()
    except (binascii.Error, ValueError):
        return None


def _passwords(value: str) -> Iterator[str]:
    if "://" not in value:
        return
    try:
        password = urlsplit(value.strip()).password
    except ValueError:
        return
    if password:
        yield from (password, unquote(password))


def spellings_of(value: str) -> dict[bytes, bytes]:
    """A value as it may be spelt, each as bytes and as a regular expression for them."""
    raw = value.encode(errors="surrogatepass")
    texts = {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
    texts |= {json.dumps(text)[1:-1] for text in texts}
    texts |= {quote(raw, safe=""), quote(raw), quote_plus(raw)}
    forms = {text.encode(errors="surrogatepass") for text in (*texts, value[::-1])}
    forms |= {text.encode(errors="surrogatepass") for text in (value.upper(), value.lower())}
    found = {form: re.escape(form) for form in forms}
    pairs = [b"%02x" % byte for byte in raw]
    found[b"".join(pairs)] = b"(?i:" + _BETWEEN.join(pairs) + b")"
    for form in _in_base64(raw):
        found.setdefault(form, rb"(?:\s|\\+[rn])*".join(re.escape(bytes([byte])) for byte in form))
    return found


def _in_base64(raw: bytes) -> Iterator[bytes]:
    """What is in Base64 of it, which looks different behind one or two other bytes."""
    for shift in range(3):
        coded = b64encode(b"\0" * shift + raw)
        rest = (0, 3, 2)[(shift + len(raw)) % 3]  # what depends on the bytes behind it
        for inner in (coded[(0, 2, 3)[shift] : len(coded) - rest], coded[(0, 2, 3)[shift] :].rstrip(b"=")):
            if len(inner) >= SHORTEST:
                yield from (inner, inner.replace(b"+", b"-").replace(b"/", b"_"))
