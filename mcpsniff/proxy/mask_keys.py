"""Secrets in ``key=value`` pairs: the query and fragment of a URL, and the fields of a form.

Works on whatever pieces the bytes come in: a key precedes its value, so nothing needs to be looked up ahead.
"""

import re
from typing import Final

from mcpsniff.proxy.mask_marks import Marks
from mcpsniff.proxy.mask_names import is_of_oauth, is_telling_key, is_telling_member

NAME_LIMIT: Final = 128
"""Bytes of a name that are kept: the end of it decides."""

_OUTSIDE, _KEY, _VALUE, _SECRET, _ESCAPE = range(5)
_BEGINS = re.compile(rb"[?&#;](?=[^=?&#;\s%]*+(?:[=%]|\Z))|%(?=(?:25)*+(?:3[BFbf]|2[36]|[23]?\Z))")
"""What a key may begin at: it has an equals sign behind it, or an escape that may be one, or nothing more has come."""
_KEY_ENDS = re.compile(rb"[=?&#;\s%]")
_DIGITS: Final = b"0123456789abcdefABCDEF"
_ESCAPE_LIMIT: Final = 16
_PERCENT, _EQUALS = b"25", b"3d"
_ESCAPED_BEGINS: Final = frozenset([b"3f", b"26", b"23", b"3b"])
_HEX_DIGITS: Final = 4
_ESCAPED: Final = dict.fromkeys((b"n", b"r", b"t", b"b", b"f"), 0x20)
"""Escapes of a JSON text that stand for white space, or for what may count as such."""
_INDEX = re.compile(r"\[([^\[\]]*)\]$")
_URL_SECRET_ENDS = re.compile(rb"[&#\r\n]")
_TARGET_SECRET_ENDS = re.compile(rb"[&#\s]")
_TEXT_SECRET_ENDS = re.compile(rb"[&#\s\"'`<>]")


class UrlScanner:
    """Finds the secrets of a URL within other text, such as a request line or a header's value.

    Also those of another URL that it carries percent-encoded (``?next=%2Fcb%3Fcode%3D…``): there all is hidden up to
    the end of the outer value.
    """

    def __init__(self, marks: Marks) -> None:
        self._marks = marks
        self._state = _OUTSIDE
        self._key = b""
        self.what = ""
        """What the last secret is called."""
        self._ends = _URL_SECRET_ENDS
        self._escape = b""
        self._around = _OUTSIDE  # of the escape

    @property
    def is_hiding(self) -> bool:
        """What follows belongs to a secret, as far as it goes."""
        return self._state == _SECRET

    def reset(self, *, ends_at_space: bool, in_text: bool = False) -> None:
        """Begin anew; ``ends_at_space`` where white space ends the URL (in a request line), ``in_text`` quotes too."""
        self._state = _OUTSIDE
        self._ends = _TARGET_SECRET_ENDS if ends_at_space else _URL_SECRET_ENDS
        if in_text:
            self._ends = _TEXT_SECRET_ENDS

    def scan(self, data: bytes, position: int, stop: int) -> None:
        """Go on with ``data[position:stop]``, which holds no line end, but in a text."""
        while position < stop:
            if self._state == _SECRET:
                end = _place(self._ends, data, position, stop)
                self._marks.hide(self.what, data, position, end)
                if end < stop:
                    self._marks.end()
                    self._state = _OUTSIDE
                position = end
            elif self._state == _KEY:
                position = self._in_key(data, position, stop)
            elif self._state == _ESCAPE:
                position = self._in_escape(data, position)
            else:
                position = _place(_BEGINS, data, position, stop) + 1
                if position <= stop:
                    self._begin(data[position - 1])

    def _begin(self, byte: int) -> None:
        """Begin a key, or what may be one percent-encoded."""
        if byte == 0x25:
            self._around, self._state, self._escape = self._state, _ESCAPE, b""
        else:
            self._state, self._key = _KEY, b""

    def _in_key(self, data: bytes, position: int, stop: int) -> int:
        end = _place(_KEY_ENDS, data, position, stop)
        self._key = (self._key + data[position:end])[-NAME_LIMIT:]
        if end == stop:
            return end
        if data[end] == 0x25:
            self._begin(data[end])
            return end + 1
        if data[end] == 0x3D:
            self._judge()
            return end + 1
        self._state = _OUTSIDE
        return end

    def _judge(self) -> None:
        """An equals sign follows the key."""
        self.what = decoded_text(self._key)
        self._state = _SECRET if is_telling_key(field_name(self.what)) else _OUTSIDE

    def _in_escape(self, data: bytes, position: int) -> int:
        """Take one digit of an escape, which may itself be escaped any number of times (``%253F``)."""
        if data[position] not in _DIGITS or len(self._escape) == _ESCAPE_LIMIT:
            self._pass_escape()
            return position
        self._escape += data[position : position + 1]
        said = self._escape[-2:].lower()
        if len(self._escape) % 2 or said == _PERCENT:
            return position + 1
        if said in _ESCAPED_BEGINS:
            self._state, self._key = _KEY, b""
        elif said == _EQUALS and self._around == _KEY:
            self._judge()
        else:
            self._pass_escape()
        return position + 1

    def _pass_escape(self) -> None:
        """The escape was nothing to look at; in a key it is part of it."""
        self._state = self._around
        if self._state == _KEY:
            self._key = (self._key + b"%" + self._escape)[-NAME_LIMIT:]


class JsonUrlScanner:
    """Finds the secrets of a URL in a string of a JSON text, where any character may be written as an escape."""

    def __init__(self, marks: Marks) -> None:
        self._marks = marks
        self._url = UrlScanner(marks)
        self._escape: bytes | None = None
        self._hides_rest = False

    def reset(self) -> None:
        """A string begins."""
        self._url.reset(ends_at_space=False)
        self._escape, self._hides_rest = None, False

    def scan(self, data: bytes, position: int, stop: int) -> None:
        """Go on with ``data[position:stop]``, which is all within the string."""
        while position < stop:
            if self._hides_rest:
                self._marks.hide(self._url.what, data, position, stop)
                return
            if self._escape is not None:
                self._take(data[position : position + 1])
                position += 1
                continue
            found = data.find(b"\\", position, stop)
            end = stop if found < 0 else found
            self._url.scan(data, position, end)
            position = end
            if found >= 0 and self._url.is_hiding:
                self._hides_rest = True  # an escape in a secret: where that ends is not worth a guess
            elif found >= 0:
                self._escape = b""
                position += 1

    def _take(self, byte: bytes) -> None:
        """Take one byte of an escape; when it is complete, let the character it stands for be looked at."""
        escape = self._escape = (self._escape or b"") + byte
        if escape[:1] == b"u" and len(escape) <= _HEX_DIGITS:
            return
        self._escape = None
        try:
            character = int(escape[1:], 16) if escape[:1] == b"u" else _ESCAPED.get(escape, escape[0])
        except ValueError:
            character = 0x20
        self._url.scan(bytes([min(character, 0x80)]), 0, 1)


class FormScanner:
    """Finds the secrets of a form (``application/x-www-form-urlencoded``)."""

    def __init__(self, marks: Marks) -> None:
        self._marks = marks
        self._state = _KEY
        self._key = b""
        self._what = ""
        self._is_blank = True
        self._url = UrlScanner(marks)

    is_done = False
    """Forms are looked through to their end."""

    @property
    def is_hiding(self) -> bool:
        """What follows belongs to a secret, as far as it goes."""
        return self._state == _SECRET or self._url.is_hiding

    @property
    def may_be_other(self) -> bool:
        """So far there is no value here: it may be the beginning of something else."""
        return self._state == _KEY or (self._state == _VALUE and self._is_blank)

    def scan(self, data: bytes, position: int, stop: int) -> None:
        """Go on with ``data[position:stop]``."""
        while position < stop:
            if self._state == _KEY:
                end = _find(b"=", data, position, stop)
                name_at = data.rfind(b"&", position, end) + 1  # names without a value say nothing
                if name_at:
                    position, self._key = name_at, b""
                self._key = (self._key + data[max(position, end - NAME_LIMIT) : end])[-NAME_LIMIT:]
                if end < stop:
                    self._begin_value()
            else:
                end = _find(b"&", data, position, stop)
                if self._state == _SECRET:
                    self._marks.hide(self._what, data, position, end)
                else:
                    self._url.scan(data, position, end)
                    self._is_blank = self._is_blank and data[position:end].isspace()
                if end < stop:
                    self._marks.end()
                    self._state = _KEY
            position = end + 1

    def _begin_value(self) -> None:
        self._what = decoded_text(self._key)
        self._key = b""
        name = field_name(self._what)
        self._state = _SECRET if is_telling_member(name) else _VALUE
        self._marks.found = self._marks.found or is_of_oauth(name)
        self._url.reset(ends_at_space=False)
        self._is_blank = True


def _find(byte: bytes, data: bytes, position: int, stop: int) -> int:
    """Return where ``byte`` is met first, or ``stop``."""
    found = data.find(byte, position, stop)
    return stop if found < 0 else found


def _place(wanted: re.Pattern[bytes], data: bytes, position: int, stop: int) -> int:
    """Return where ``wanted`` is met first, or ``stop``."""
    found = wanted.search(data, position, stop)
    return found.start() if found else stop


def decoded_text(key: bytes) -> str:
    """Return a key as text: percent-decoded (WHATWG URL 5.1), even twice, and without white space around it."""
    text = key.decode("utf-8", "replace")
    if "%" in text or "+" in text:
        from urllib.parse import unquote, unquote_plus

        text = unquote(unquote_plus(text))
    return text.strip()


def field_name(text: str) -> str:
    """Return what a key is named by: of ``token[]`` and ``user[password]``, as frameworks read them, the last name."""
    while found := _INDEX.search(text):
        if found[1] and not found[1].isdecimal():
            return found[1]
        text = text[: found.start()]
    return text
