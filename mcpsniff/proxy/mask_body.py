"""Secrets in the bodies of HTTP messages: which bodies are looked into, and how."""

import re
from typing import Final, Protocol

from mcpsniff.proxy.mask_head import AFTER_GAP
from mcpsniff.proxy.mask_json import JsonScanner
from mcpsniff.proxy.mask_keys import FormScanner
from mcpsniff.proxy.mask_marks import Marks

_NOT_SPACE = re.compile(rb"[^ \t\r\n\xef\xbb\xbf]")  # and no byte of a byte order mark
_NO_OBJECT: Final = b'["'
_EVENT_STREAM: Final = (b"data:", b"event:", b"id:", b"retry:", b":")
"""How an event stream begins, whatever type it is said to have."""
_TELLING: Final = max(map(len, _EVENT_STREAM))

_READABLE: Final = frozenset(["", "text/plain", "text/json", "application/x-www-form-urlencoded"])
_TYPE_ENDS = re.compile(r"[;,]")
_PLAIN: Final = frozenset(["", "identity", "chunked"])
_TOKEN_PATH = re.compile(
    r"(?:/(?:tokens?|access[_-]?token|refresh(?:[_-]?token)?|introspect(?:ion)?|revoke|revocation|par|oauth2?|oidc"
    r"|device(?:[_-]?(?:code|authorization))?|login|signin|sign[_-]in|reg|register|registration|clients?)(?:\.[a-z]{2,4})?"
    r"|/(?:reg|register|registration|(?:oauth2?|oidc|connect)(?:/v[0-9])?/clients?)/(?!(?:mcp|sse)/*$)[^/]+)/*$",
    re.IGNORECASE,
)
"""The end of a path at which credentials are handed over, as authorization servers commonly name it.

Clients that have registered may be asked for by their id (RFC 7592).
"""


class Scanner(Protocol):
    """What looks for secrets in a body that comes in pieces."""

    @property
    def is_done(self) -> bool:
        """Nothing more is looked for."""

    def scan(self, data: bytes, position: int, stop: int) -> None:
        """Go on with ``data[position:stop]``."""


class BodyScanner:
    """Looks at how a body begins, then for the secrets of a JSON object or of a form."""

    def __init__(self, marks: Marks) -> None:
        self._marks = marks
        self._scanner: Scanner | None = None
        self._beginning: bytes | None = b""
        """The first bytes, while they may become those of an event stream."""
        self._nothing = False
        self._everything = False

    @property
    def is_done(self) -> bool:
        """Nothing more is looked for."""
        return self._nothing

    def scan(self, data: bytes, position: int, stop: int) -> None:
        """Go on with ``data[position:stop]``."""
        if self._everything:
            self._marks.hide(AFTER_GAP, data, position, stop)
            return
        if self._scanner is None:
            found = _NOT_SPACE.search(data, position, stop)
            if not found:
                return
            self._nothing = found[0] in _NO_OBJECT
            if found[0] == b"{":
                self._scanner, self._beginning = JsonScanner(self._marks), None
            else:
                self._scanner = FormScanner(self._marks)
            position = found.start()
        if self._beginning is not None:
            self._look_for_events(data[position : min(position + _TELLING, stop)])
        if not self._nothing:
            self._scanner.scan(data, position, stop)
            self._nothing = self._scanner.is_done

    def _look_for_events(self, data: bytes) -> None:
        """Leave the body alone if it begins like an event stream: in those are messages."""
        beginning = (self._beginning or b"") + data
        self._nothing = self._nothing or beginning.startswith(_EVENT_STREAM)
        may_become = any(field.startswith(beginning) for field in _EVENT_STREAM)
        self._beginning = beginning if may_become else None

    def lose(self) -> None:
        """Bytes are missing here: hide the rest of the body, unless it is a JSON-RPC message or a list."""
        if isinstance(self._scanner, JsonScanner) and self._scanner.is_json_rpc:
            self._nothing = True
        elif not self._nothing:
            self._marks.end()
            self._everything = True


def is_readable(content_type: str) -> bool:
    """Say whether bodies of this type are looked into: JSON, forms, plain text, and those that do not say."""
    media = _TYPE_ENDS.split(content_type, maxsplit=1)[0].strip(" \t\"'").lower()
    return media in _READABLE or (media.startswith("application/") and "json" in media)


def is_coded(codings: list[str]) -> bool:
    """Say whether a body is compressed, by its ``Content-Encoding`` and ``Transfer-Encoding``."""
    return any(coding.strip().lower() not in _PLAIN for value in codings for coding in value.split(","))


def is_token_path(target: str) -> bool:
    """Say whether a request target looks like a place where credentials are handed over."""
    path = re.split(r"[?#;]", target, maxsplit=1)[0]
    return _TOKEN_PATH.search(path) is not None
