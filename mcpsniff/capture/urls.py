"""How a URL is named in words: without what may be a secret in it."""

import re
from typing import Final

LONGEST: Final = 200
"""Characters of a name."""
_TAIL = re.compile(r"[?#]")
_AUTHORITY = re.compile(r"((?:[a-z][a-z0-9+.-]*:)?//)?[^/\\]*@", re.IGNORECASE)
_NO_PORT = re.compile(r"((?:[a-z][a-z0-9+.-]*:)?//)?[^/\\@\[\]:]*:(?![0-9]*[/\\])[^@]*@", re.IGNORECASE)
"""A password with a slash in it, which ends the authority before there is an ``@``."""
_CUT = re.compile(r"((?:[a-z][a-z0-9+.-]*:)?//)[^/\\@\[\]:]*:(?![0-9]*(?:[/\\]|$)).*", re.IGNORECASE | re.DOTALL)
"""A password with a question mark in it."""


def named_url(url: str) -> str:
    """Return a URL without user information, query and fragment (RFC 3986 section 3), cut at 200 characters.

    What is no URL is cut at the first ``?`` or ``#``, too.
    """
    text = _TAIL.split(url, maxsplit=1)[0]
    for before_host in (_AUTHORITY, _NO_PORT, _CUT):
        text = before_host.sub(r"\1", text, count=1) if before_host.match(text) else text
    return text[:LONGEST]
