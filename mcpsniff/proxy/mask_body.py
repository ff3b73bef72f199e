"""Secrets in the bodies of HTTP messages: which bodies are looked into, and how.

What a body is, its first byte tells rather than its type: JSON is sent as text, and forms without any type.
"""

import re
from functools import lru_cache
from typing import Final, Protocol

from mcpsniff.proxy.mask_head import AFTER_GAP
from mcpsniff.proxy.mask_html import HtmlScanner
from mcpsniff.proxy.mask_json import JsonScanner
from mcpsniff.proxy.mask_keys import FormScanner
from mcpsniff.proxy.mask_marks import Marks
from mcpsniff.proxy.mask_multipart import MultipartScanner

WHOLE: Final = "whole body"
"""What a masked body is called in which nothing can be told from the rest."""
EVENT_STREAM: Final = "text/event-stream"

_NOT_SPACE = re.compile(rb"[^ \t\r\n\xef\xbb\xbf]")  # and no byte of a byte order mark
_TEXT_BEGINS = re.compile(rb"[!-~]")
_NO_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
TEXT_BEGINS_WITHIN: Final = 64
"""Bytes in which a body that is no text shows it."""
_EVENT_STREAM: Final = (b"data:", b"event:", b"id:", b"retry:", b":")
"""How an event stream begins, whatever type it is said to have."""
_TELLING: Final = max(map(len, _EVENT_STREAM))

_MULTIPART: Final = "multipart/form-data"
_FORMS: Final = frozenset(["application/x-www-form-urlencoded", _MULTIPART])
_PAGES: Final = frozenset(["text/html", "application/xhtml+xml"])
_READABLE: Final = frozenset(["", "text/plain", "text/json", *_FORMS, *_PAGES])
_TOKENS: Final = ("/jwt", "+jwt")
"""How types end whose bodies are a signed token and nothing else (RFC 7519 section 10.3, RFC 8725 section 3.11)."""
_TYPE_ENDS = re.compile(r"[;,]")
_PLAIN: Final = frozenset(["", "identity", "chunked"])
_TOKEN_PATH = re.compile(
    r"(?:/(?:tokens?|(?:access|request|exchange|revoke)[_-]?token|refresh(?:[_-]?token)?|introspect(?:ion)?"
    r"|token[_-]?(?:exchange|introspection|revocation)|token/(?:exchange|refresh)|revoke|revocation"
    r"|par|par/request|pushed[_-]?authorization(?:[_-]?requests?)?|bc-authorize|oauth2?|oidc"
    r"|oauth(?:\.v[0-9])?(?:\.user)?\.(?:access|exchange|token)|openid\.connect\.token"
    r"|device(?:[_-]?(?:code|auth|authorization|authorize))?|device/(?:auth|authorize|code|token)"
    r"|login|signin|sign[_-]in|reg|register|registration|clients?)(?:\.[a-z]{2,4})?"
    r"|/(?:reg|register|registration|(?:oauth2?|oidc|connect)(?:/v[0-9])?/clients?)/(?!(?:mcp|sse)/*$)[^/]+"
    r"|/clients-registrations/[^/]+(?:/[^/]+)?)/*$",
    re.IGNORECASE,
)
"""The end of a path at which credentials are handed over, as authorization servers commonly name it: RFC 6749, 7009,
7591, 7662, 8628, 8693, 9126, CIBA. Clients that have registered may be asked for by their id (RFC 7592).
"""
_FORM_POST = re.compile(r"[?&]response_mode=form_post(?:\.jwt)?(?:[&#]|$)", re.IGNORECASE)
"""The answer is a page with a code in it (OAuth 2.0 Form Post Response Mode)."""


_remembered = lru_cache(maxsize=64)  # most messages go to the same few places, and have the same few types


class Scanner(Protocol):
    """What looks for secrets in a body that comes in pieces."""

    @property
    def is_done(self) -> bool:
        """Nothing more is looked for."""

    def scan(self, data: bytes, position: int, stop: int) -> None:
        """Go on with ``data[position:stop]``."""


class TextScanner:
    """Looks for the secrets of a form, or of JSON after something else: a guard (``)]}'``), or a function's name."""

    def __init__(self, marks: Marks) -> None:
        self._form = FormScanner(marks)
        self._json = JsonScanner(marks, is_deep=True)
        self._is_json = False

    @property
    def is_done(self) -> bool:
        """Nothing more is looked for."""
        return self._is_json and self._json.is_done

    def scan(self, data: bytes, position: int, stop: int) -> None:
        """Go on with ``data[position:stop]``."""
        while position < stop and not self._is_json:
            found = data.find(b"{", position, stop)
            end = stop if found < 0 else found
            self._form.scan(data, position, end)
            self._is_json = found >= 0 and self._form.may_be_other
            if found >= 0 and not self._is_json:
                self._form.scan(data, found, found + 1)
                end += 1
            position = end
        if self._is_json:
            self._json.scan(data, position, stop)


class BodyScanner:
    """Looks at how a body begins, then for the secrets of JSON, a form or a page.

    ``media`` is the type that it is said to have. ``is_sensitive`` where credentials are handed over: there all levels
    of it are looked into, and what cannot be read is hidden.
    """

    def __init__(self, marks: Marks, media: str = "", *, is_sensitive: bool = False) -> None:
        self._marks = marks
        self._media = media
        self.is_sensitive = is_sensitive
        self._scanner: Scanner | None = None
        self._beginning: bytes | None = b""
        """The first bytes, while they may become those of an event stream."""
        self._nothing = False
        self._unsure = 0
        """Bytes in which may still show that the body is no text."""
        self._everything = ""
        """What all of the rest is called, if that is hidden."""

    @property
    def is_done(self) -> bool:
        """Nothing more is looked for."""
        return self._nothing

    @property
    def is_message(self) -> bool:
        """It is a JSON-RPC message."""
        return isinstance(self._scanner, JsonScanner) and self._scanner.is_json_rpc

    def scan(self, data: bytes, position: int, stop: int) -> None:
        """Go on with ``data[position:stop]``."""
        if self._scanner is None and not self._everything:
            found = _NOT_SPACE.search(data, position, stop)
            if not found:
                return
            position = found.start()
            self._begin(found[0])
        if self._beginning is not None:
            self._look_for_events(data[position : min(position + _TELLING, stop)])
        if self._nothing:
            return
        if self._everything:
            self._marks.hide(self._everything, data, position, stop)
        elif self._scanner is not None:
            if self._unsure:
                position = self._look_for_text(self._scanner, data, position, stop)
            if not self._nothing:
                self._scanner.scan(data, position, stop)
                self._nothing = self._scanner.is_done

    def _begin(self, byte: bytes) -> None:
        """Decide how to go on from the first byte."""
        is_sensitive = self.is_sensitive
        if byte == b"{" or (byte == b"[" and is_sensitive):
            self._scanner = JsonScanner(self._marks, is_deep=is_sensitive)
            self._beginning = None
        elif byte in b'["':
            self._nothing = True
        elif is_sensitive and (self._media.endswith(_TOKENS) or not _TEXT_BEGINS.match(byte)):
            self._everything = WHOLE
        elif byte == b"<" or (self._media in _PAGES and not is_sensitive):
            self._scanner = HtmlScanner(self._marks, has_telling_elements=is_sensitive)
        elif byte == b"-" or self._media == _MULTIPART:
            self._scanner = MultipartScanner(self._marks)
        elif is_sensitive:
            self._scanner = TextScanner(self._marks)
        else:
            self._scanner = FormScanner(self._marks)
            self._unsure = 0 if is_form(self._media) else TEXT_BEGINS_WITHIN

    def _look_for_text(self, scanner: Scanner, data: bytes, position: int, stop: int) -> int:
        """Leave the body alone from where it shows that it is no text, but for a secret; return how far that is known.

        Forms and JSON texts have none of these bytes, whatever their encoding, but in UTF-16, which has no name that
        could be read here.
        """
        end = min(position + self._unsure, stop)
        self._unsure -= end - position
        while position < end:
            found = _NO_TEXT.search(data, position, end)
            upto = found.start() if found else end
            scanner.scan(data, position, upto)
            if not found:
                return end
            if not (isinstance(scanner, FormScanner) and scanner.is_hiding):
                self._nothing = True
                self._marks.end()
                return end
            scanner.scan(data, upto, upto + 1)
            position = upto + 1
        return end

    def _look_for_events(self, data: bytes) -> None:
        """Leave the body alone if it begins like an event stream: in those are messages."""
        beginning = (self._beginning or b"") + data
        self._nothing = self._nothing or beginning.startswith(_EVENT_STREAM)
        may_become = any(field.startswith(beginning) for field in _EVENT_STREAM)
        self._beginning = beginning if may_become else None

    def lose(self) -> None:
        """Bytes are missing here: hide the rest of the body, unless it is a JSON-RPC message or a list."""
        if self.is_message:
            self._nothing = True
        elif not self._nothing:
            self._marks.end()
            self._everything = AFTER_GAP


@_remembered
def media_type(content_type: str) -> str:
    """Return the type and subtype that a ``Content-Type`` names, in small letters."""
    return _TYPE_ENDS.split(content_type, maxsplit=1)[0].strip(" \t\"'").lower()


def is_readable(media: str) -> bool:
    """Say whether bodies of this type are looked into wherever they go: JSON, forms, pages, plain text, and none."""
    return media in _READABLE or (media.startswith("application/") and "json" in media)


def is_form(media: str) -> bool:
    """Say whether bodies of this type are forms, of which none belongs to MCP."""
    return media in _FORMS


def is_coded(codings: list[str]) -> bool:
    """Say whether a body is compressed, by its ``Content-Encoding`` and ``Transfer-Encoding``."""
    return any(coding.strip().lower() not in _PLAIN for value in codings for coding in value.split(","))


@_remembered
def is_token_path(target: str) -> bool:
    """Say whether a request target looks like a place where credentials are handed over."""
    path = re.split(r"[?#;]", target, maxsplit=1)[0]
    return _TOKEN_PATH.search(path) is not None or _FORM_POST.search(target) is not None
