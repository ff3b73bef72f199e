"""Secrets in the fields of a form that is sent as ``multipart/form-data`` (RFC 7578).

Works on whatever pieces the bytes come in. The delimiter is the first line that begins with two hyphens; what comes
before may be a form of the other kind, sent with the wrong type. In parts line ends are never masked, nor is what a
secret's line shares with the beginning of the delimiter, which is no secret.
"""

import re
from typing import Final

from mcpsniff.proxy.mask_keys import FormScanner, UrlScanner, decoded_text, field_name
from mcpsniff.proxy.mask_marks import Marks
from mcpsniff.proxy.mask_names import is_of_oauth, is_telling_member

LINE_LIMIT: Final = 1024
"""Bytes of a line that are kept. A part whose name may come later than that is hidden."""
LONG_HEAD: Final = "a part with a long head"

_SEEK, _HEAD, _VALUE = range(3)
_LINE_END = re.compile(rb"\n")
_LINE_ENDS = re.compile(rb"[\r\n]")
_NAME = re.compile(rb"""(?:^|[;,\s])name\*?\s*=\s*(?:"([^"]*)"?|([^;\s]*))""", re.IGNORECASE)


class MultipartScanner:
    """Finds the secrets of a form whose fields are parts."""

    is_done = False
    """Parts are looked through to the end."""

    def __init__(self, marks: Marks) -> None:
        self._marks = marks
        self._url = UrlScanner(marks)
        self._form = FormScanner(marks)
        self._state = _SEEK
        self._delimiter = b""
        self._line = b""
        self._is_long = False
        self._what: str | None = None
        self._is_secret = False
        self._matched = -1
        """Bytes of a line that are so far those of the delimiter; -1: it is another line."""

    def scan(self, data: bytes, position: int, stop: int) -> None:
        """Go on with ``data[position:stop]``."""
        while position < stop:
            step = self._in_value if self._state == _VALUE else self._in_line
            position = step(data, position, stop)

    def _in_line(self, data: bytes, position: int, stop: int) -> int:
        """Collect a line of a part's head, or one that comes before."""
        found = _LINE_END.search(data, position, stop)
        end = found.start() if found else stop
        room = LINE_LIMIT - len(self._line)
        self._line += data[position : min(end, position + room)]
        self._is_long = self._is_long or end - position > room
        if not self._delimiter and not self._line.startswith(b"-"):
            self._form.scan(data, position, min(end + 1, stop))
        if not found:
            return stop
        line, self._line = self._line, b""
        if self._state == _SEEK:
            self._seek(line)
        elif line.strip():
            self._look_for_name(line)
        else:
            self._begin_value()
        return end + 1

    def _seek(self, line: bytes) -> None:
        """Outside of parts: the first delimiter tells what the others are, each of them is followed by a head."""
        if not self._delimiter and line.startswith(b"--"):
            self._marks.end()
            self._delimiter = line.rstrip()
        if self._delimiter:
            self._state, self._what, self._is_long = _HEAD, None, False

    def _look_for_name(self, line: bytes) -> None:
        found = _NAME.search(line)
        if found and self._what is None:
            text = decoded_text(found[1] if found[1] is not None else found[2])
            self._what = field_name(text.rpartition("'")[2])

    def _begin_value(self) -> None:
        """The head of a part is over."""
        if self._what is None and self._is_long:
            self._what, self._is_secret = LONG_HEAD, True
        else:
            self._is_secret = self._what is not None and is_telling_member(self._what)
            self._marks.found = self._marks.found or (self._what is not None and is_of_oauth(self._what))
        self._url.reset(ends_at_space=False)
        self._state, self._matched = _VALUE, 0

    def _in_value(self, data: bytes, position: int, stop: int) -> int:
        """Go on in what a part says, up to the next delimiter."""
        if self._matched >= 0:
            position = self._match(data, position, stop)
            if position == stop or self._state != _VALUE:
                return position
        found = _LINE_ENDS.search(data, position, stop)
        end = found.start() if found else stop
        if self._is_secret:
            self._marks.hide(self._what or "", data, position, end)
        else:
            self._url.scan(data, position, end)
        if not found:
            return stop
        if found[0] == b"\n":
            self._matched = 0
        return end + 1

    def _match(self, data: bytes, position: int, stop: int) -> int:
        """Compare the beginning of a line with the delimiter."""
        delimiter = self._delimiter
        while position < stop and data[position] == delimiter[self._matched]:
            position += 1
            self._matched += 1
            if self._matched == len(delimiter):
                self._marks.end()
                self._state, self._matched = _SEEK, -1
                return position
        if position < stop:
            self._matched = -1
        return position
