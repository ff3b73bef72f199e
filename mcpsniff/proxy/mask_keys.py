"""Secrets in ``key=value`` pairs: the query and fragment of a URL, and the fields of a form.

Works on whatever pieces the bytes come in: a key precedes its value, so nothing needs to be looked up ahead.
"""

import re
from typing import Final

from mcpsniff.proxy.mask_marks import Marks
from mcpsniff.proxy.mask_names import is_telling_key, is_telling_member

NAME_LIMIT: Final = 128
"""Bytes of a name that are kept: the end of it decides."""

_OUTSIDE, _KEY, _VALUE, _SECRET = range(4)
_BEGINS = re.compile(rb"[?&#;]")
_KEY_ENDS = re.compile(rb"[=?&#;\s]")
_URL_SECRET_ENDS = re.compile(rb"[&#\r\n]")
_TARGET_SECRET_ENDS = re.compile(rb"[&#\s]")
_FIELD_ENDS = re.compile(rb"[=&]")
_FORM_SECRET_ENDS = re.compile(rb"&")


class UrlScanner:
    """Finds the secrets of a URL within other text, such as a request line or a header's value."""

    def __init__(self, marks: Marks) -> None:
        self._marks = marks
        self._state = _OUTSIDE
        self._key = b""
        self._what = ""
        self._ends = _URL_SECRET_ENDS

    def reset(self, *, ends_at_space: bool) -> None:
        """Begin anew; ``ends_at_space`` where white space ends the URL (in a request line)."""
        self._state = _OUTSIDE
        self._ends = _TARGET_SECRET_ENDS if ends_at_space else _URL_SECRET_ENDS

    def scan(self, data: bytes, position: int, stop: int) -> None:
        """Go on with ``data[position:stop]``, which holds no line end."""
        while position < stop:
            if self._state == _SECRET:
                end = _place(self._ends, data, position, stop)
                self._marks.hide(self._what, data, position, end)
                if end < stop:
                    self._marks.end()
                    self._state = _OUTSIDE
                position = end
            elif self._state == _KEY:
                end = _place(_KEY_ENDS, data, position, stop)
                self._key = (self._key + data[position:end])[-NAME_LIMIT:]
                if end < stop:
                    self._what = _text(self._key)
                    is_secret = data[end] == 0x3D and is_telling_key(self._what)
                    self._state = _SECRET if is_secret else _OUTSIDE
                position = end + (self._state == _SECRET)
            else:
                position = _place(_BEGINS, data, position, stop) + 1
                if position <= stop:
                    self._state, self._key = _KEY, b""


class FormScanner:
    """Finds the secrets of a form (``application/x-www-form-urlencoded``)."""

    def __init__(self, marks: Marks) -> None:
        self._marks = marks
        self._state = _KEY
        self._key = b""
        self._what = ""

    is_done = False
    """Forms are looked through to their end."""

    def scan(self, data: bytes, position: int, stop: int) -> None:
        """Go on with ``data[position:stop]``."""
        while position < stop:
            if self._state == _KEY:
                end = _place(_FIELD_ENDS, data, position, stop)
                self._key = (self._key + data[position:end])[-NAME_LIMIT:]
                if end < stop:
                    self._what = _text(self._key)
                    self._key = b""
                    if data[end] == 0x3D:
                        self._state = _SECRET if is_telling_member(self._what) else _VALUE
            else:
                end = _place(_FORM_SECRET_ENDS, data, position, stop)
                if self._state == _SECRET:
                    self._marks.hide(self._what, data, position, end)
                if end < stop:
                    self._marks.end()
                    self._state = _KEY
            position = end + 1


def _place(wanted: re.Pattern[bytes], data: bytes, position: int, stop: int) -> int:
    """Return where ``wanted`` is met first, or ``stop``."""
    found = wanted.search(data, position, stop)
    return found.start() if found else stop


def _text(key: bytes) -> str:
    """Return a key as text: percent-decoded (WHATWG URL 5.1), without white space around it."""
    text = key.decode("utf-8", "replace")
    if "%" in text or "+" in text:
        from urllib.parse import unquote_plus

        text = unquote_plus(text)
    return text.strip()
