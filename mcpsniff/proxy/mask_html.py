"""Secrets in pages: the fields of a form that a browser is to send on (OAuth 2.0 Form Post Response Mode), and URLs.

Works on whatever pieces the bytes come in. A field's value may stand before its name: then it is hidden whatever the
name turns out to be. In XML, an element with a telling name has a secret for a text.
"""

import re
from typing import Final

from mcpsniff.proxy.mask_keys import NAME_LIMIT, UrlScanner, decoded_text, field_name
from mcpsniff.proxy.mask_marks import Marks
from mcpsniff.proxy.mask_names import is_telling_member

_TEXT, _OPEN, _TAG, _INSIDE, _ATTRIBUTE, _EQUALS, _VALUE, _QUOTED, _BARE = range(9)
_TAG_OPENS = re.compile(rb"<++")
_TAG_NAME_ENDS = re.compile(rb"[\s/>]")
_NOT_SPACE = re.compile(rb"[^\s/]")
_ATTRIBUTE_ENDS = re.compile(rb"[\s=/>]")
_BARE_ENDS = re.compile(rb"[\s>]")
_QUOTES: Final = {0x22: re.compile(rb'"'), 0x27: re.compile(rb"'")}
_RAW: Final = frozenset(["script", "style"])
"""Elements whose text holds no tags (HTML 13.1.2)."""
_FIELDS: Final = frozenset(["input", "button", "param"])
_SHOWN: Final = frozenset(["submit", "button", "reset", "image"])
"""Types of fields whose value is what the page shows on them."""


class HtmlScanner:
    """Finds the secrets of a page. ``has_telling_elements``: also those that are the text of elements, as in XML."""

    is_done = False
    """Pages are looked through to their end."""

    def __init__(self, marks: Marks, *, has_telling_elements: bool = False) -> None:
        self._marks = marks
        self._has_telling_elements = has_telling_elements
        self._url = UrlScanner(marks)
        self._state = _TEXT
        self._word = b""
        self._tag = ""
        self._is_closing = False
        self._raw = False
        self._element: str | None = None  # that is open and has a secret for a text
        self._field: str | None = None
        self._type = ""
        self._attribute = ""
        self._is_secret = False
        self._ends = _BARE_ENDS
        self._url.reset(ends_at_space=True, in_text=True)

    def scan(self, data: bytes, position: int, stop: int) -> None:
        """Go on with ``data[position:stop]``."""
        steps = (
            *(self._in_text, self._at_tag, self._in_tag_name, self._inside, self._in_attribute),
            *(self._at_equals, self._at_value, self._in_value, self._in_value),
        )
        while position < stop:
            position = steps[self._state](data, position, stop)

    def _in_text(self, data: bytes, position: int, stop: int) -> int:
        found = _TAG_OPENS.search(data, position, stop)
        end = found.start() if found else stop
        if self._element is not None:
            self._marks.hide(self._element, data, position, end)
        else:
            self._url.scan(data, position, end)
        if found:
            self._state = _OPEN
            return found.end()
        return stop

    def _at_tag(self, data: bytes, position: int, _stop: int) -> int:
        """Look at what follows ``<``: only a letter or a slash makes it a tag, within a script only a slash."""
        byte = data[position : position + 1]
        if byte == b"/" or (byte.isalpha() and not self._raw):
            self._marks.end()
            self._element = None
            self._raw = False
            self._state, self._word = _TAG, b""
            self._is_closing = byte == b"/"
            return position + self._is_closing
        self._state = _TEXT
        return position

    def _in_tag_name(self, data: bytes, position: int, stop: int) -> int:
        end = self._collect(_TAG_NAME_ENDS, data, position, stop)
        if end < stop:
            self._tag = self._word.rpartition(b":")[2].decode("latin-1").lower()
            self._field, self._type = None, ""
            self._state = _INSIDE
        return end

    def _inside(self, data: bytes, position: int, stop: int) -> int:
        """Go on between the attributes of a tag."""
        position = _place(_NOT_SPACE, data, position, stop)
        if position < stop and data[position] == 0x3E:
            return self._end_tag(position)
        if position < stop:
            self._state, self._word = _ATTRIBUTE, data[position : position + 1]
        return position + 1

    def _end_tag(self, position: int) -> int:
        self._state = _TEXT
        self._raw = self._tag in _RAW and not self._is_closing
        if self._has_telling_elements and not self._is_closing and is_telling_member(self._tag):
            self._element = self._tag
        self._url.reset(ends_at_space=True, in_text=True)
        return position + 1

    def _in_attribute(self, data: bytes, position: int, stop: int) -> int:
        end = self._collect(_ATTRIBUTE_ENDS, data, position, stop)
        if end < stop:
            self._attribute = self._word.decode("latin-1").lower()
            self._state = _EQUALS
        return end

    def _at_equals(self, data: bytes, position: int, stop: int) -> int:
        """Look whether the attribute has a value."""
        position = _place(_NOT_SPACE, data, position, stop)
        if position < stop and data[position] == 0x3D:
            self._state = _VALUE
            return position + 1
        if position < stop:
            self._state = _INSIDE
        return position

    def _at_value(self, data: bytes, position: int, _stop: int) -> int:
        byte = data[position]
        if byte in b" \t\r\n\f":
            return position + 1
        if byte == 0x3E:
            return self._end_tag(position)
        self._ends = _QUOTES.get(byte, _BARE_ENDS)
        self._state = _QUOTED if byte in _QUOTES else _BARE
        self._word = b""
        self._is_secret = self._attribute == "value" and self._tag in _FIELDS and self._is_telling()
        self._url.reset(ends_at_space=False)
        return position + (byte in _QUOTES)

    def _is_telling(self) -> bool:
        """Say whether the value of a field is to be hidden, by its name, or because that is not known yet."""
        return self._type not in _SHOWN if self._field is None else is_telling_member(self._field)

    def _in_value(self, data: bytes, position: int, stop: int) -> int:
        end = self._collect(self._ends, data, position, stop)
        if self._is_secret:
            self._marks.hide(self._field or "value", data, position, end)
        else:
            self._url.scan(data, position, end)
        if end == stop:
            return end
        self._marks.end()
        if self._attribute == "name":
            self._field = field_name(decoded_text(self._word))
        elif self._attribute == "type":
            self._type = self._word.decode("latin-1").strip().lower()
        is_quoted = self._state == _QUOTED
        self._state = _INSIDE
        return end + is_quoted

    def _collect(self, ends: re.Pattern[bytes], data: bytes, position: int, stop: int) -> int:
        """Keep the end of a word; return where it ends."""
        end = _place(ends, data, position, stop)
        self._word = (self._word + data[max(position, end - NAME_LIMIT) : end])[-NAME_LIMIT:]
        return end


def _place(wanted: re.Pattern[bytes], data: bytes, position: int, stop: int) -> int:
    """Return where ``wanted`` is met first, or ``stop``."""
    found = wanted.search(data, position, stop)
    return found.start() if found else stop
