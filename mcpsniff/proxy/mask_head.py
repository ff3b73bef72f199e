"""Secrets in the head of an HTTP message: credential headers, and URLs in the request line and in some headers.

Works line by line on whatever pieces the bytes come in, and also on what only might be a head: it needs no framing.
Line ends and the white space before a value are never masked, so that what is left is read as it was before.
"""

import re
from typing import Final

from mcpsniff.proxy.mask_keys import NAME_LIMIT, UrlScanner
from mcpsniff.proxy.mask_marks import Marks
from mcpsniff.proxy.mask_names import (
    has_scheme,
    is_credential_header,
    is_telling_member,
    is_url_header,
)

AFTER_GAP: Final = "after a gap"
"""What a masked stretch is called that nothing is known of but that a secret may go on in it."""

_LINE, _NAME, _OTHER, _URL, _SPACE, _SCHEME, _SECRET, _CR = range(8)
_NAME_ENDS = re.compile(rb"[:?#\r\n]")
_LINE_ENDS = re.compile(rb"[\r\n]")
_NOT_SPACE = re.compile(rb"[^ \t]")
_WORD_ENDS = re.compile(rb"[ \t\r\n]")
_DULL = re.compile(
    rb"(?:[A-Z]{3,8} /[!\"$%'-9<->@-~]*+ HTTP/1\.[01]\r\n|HTTP/1\.[01] [0-9]{3}[ A-Za-z]*+\r\n"
    rb"|(?i:accept(?:-[a-z]{1,9})?|cache-control|connection|content-(?:encoding|length|type)|date|host|keep-alive|origin"
    rb"|last-event-id|mcp-[a-z-]{1,32}|sec-fetch-[a-z]{1,9}|server|transfer-encoding|user-agent|vary):[^\r\n]*+\r\n)*+"
)
"""Whole lines without secrets: a start line without a query, and the usual headers. Passed over at once for speed."""
_IS_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_NO_TEXT: Final = bytes([*range(0x21), 0x7F, *range(0x80, 0x100)])
"""What may stand before a name by mistake: some server behind may read over it."""
_AROUND_NAME: Final = (
    b" \t\"'{,"  # a member of a JSON text that lost its head is no header, but has a name all the same
)

SCHEMES: Final = (
    *(
        b"bearer",
        b"basic",
        b"digest",
        b"dpop",
        b"negotiate",
        b"ntlm",
        b"token",
        b"apikey",
        b"api-key",
        b"key",
        b"oauth",
    ),
    *(b"hawk", b"aws4-hmac-sha256"),
    b"mcp",  # in Sec-WebSocket-Protocol
)
"""Words before a credential that stay. When a read ends within such a word, it is let through as far as it is there."""


class HeadScanner:
    """Finds the secrets in the lines of a head or of trailers."""

    def __init__(self, marks: Marks) -> None:
        self.is_loose = False
        """The lines might be anything: URLs are looked for in all of them."""
        self._marks = marks
        self._url = UrlScanner(marks)
        self._state = _LINE
        self._name = b""
        self._what = ""
        self._kind = _OTHER  # of the last header: a folded line goes on with it
        self._word = b""
        self._scheme = False

    def begin(self) -> None:
        """A line begins here, and it goes on with none before it."""
        self._marks.end()
        self._state, self._kind = _LINE, _OTHER

    def lose(self) -> None:
        """Bytes are missing here: a secret may go on up to the end of the line."""
        self._marks.end()
        self._state, self._kind, self._what = _SECRET, _OTHER, AFTER_GAP

    def scan(self, data: bytes, position: int, stop: int) -> None:
        """Go on with ``data[position:stop]``."""
        while position < stop:
            state = self._state
            if state == _LINE:
                position = self._at_line(data, position, stop)
            elif state == _NAME:
                position = self._in_name(data, position, stop)
            elif state in {_OTHER, _URL}:
                end = _place(_LINE_ENDS, data, position, stop)
                if state == _URL:
                    self._url.scan(data, position, end)
                if end < stop:
                    self._marks.end()
                    self._state = _LINE
                position = end
            elif state == _SPACE:
                position = _place(_NOT_SPACE, data, position, stop)
                if position < stop:
                    self._state = _SCHEME if self._scheme else _SECRET
                    self._word = b""
            elif state == _SCHEME:
                position = self._in_scheme(data, position, stop)
            else:
                position = self._in_secret(data, position, stop)

    def _at_line(self, data: bytes, position: int, stop: int) -> int:
        """Look at the first byte of a line, after the lines that are nothing to look at."""
        dull = None if self.is_loose else _DULL.match(data, position, stop)
        if dull and dull.end() > position:
            position = dull.end()
            self._kind = _OTHER
            if position == stop:
                return position
        byte = data[position]
        if byte in b"\r\n":
            return position + 1
        if byte in b" \t" and self._kind != _OTHER:  # folded: RFC 9112 section 5.2
            self._state, self._scheme = self._kind, False
            return position
        self._state, self._name = _NAME, b""
        return position

    def _in_name(self, data: bytes, position: int, stop: int) -> int:
        end = _place(_NAME_ENDS, data, position, stop)
        self._name = (self._name + data[position:end])[-NAME_LIMIT:]
        if end == stop:
            return end
        if data[end] in b"\r\n":
            self._state, self._kind = _LINE, _OTHER
            return end
        if data[end] in b"?#":
            self._begin_url(is_header=False)
            return end
        self._judge(self._name.strip(_NO_TEXT))
        return end + 1

    def _judge(self, name: bytes) -> None:
        """Decide what follows the colon after ``name``."""
        text = name.decode("latin-1")
        self._kind = _OTHER
        if not _IS_TOKEN.fullmatch(name):
            text = name.strip(_AROUND_NAME).decode("latin-1")
            if not is_telling_member(text):
                self._begin_url(is_header=False)
                return
            self._kind, self._scheme = _SPACE, False
        elif is_credential_header(text):
            self._kind, self._scheme = _SPACE, has_scheme(text)
        elif self.is_loose or is_url_header(text):
            self._begin_url(is_header=is_url_header(text))
            self._kind = _URL
        self._what = text
        self._state = self._kind

    def _begin_url(self, *, is_header: bool) -> None:
        self._url.reset(ends_at_space=not is_header)
        self._state, self._kind = _URL, _OTHER

    def _in_scheme(self, data: bytes, position: int, stop: int) -> int:
        """Go on in the first word of a value, which may be the name of a scheme, and then stays."""
        end = _place(_WORD_ENDS, data, position, stop)
        word = (self._word + data[position:end]).lower()
        if word in SCHEMES if end < stop else any(scheme.startswith(word) for scheme in SCHEMES):
            self._word = word
            if end < stop:
                self._state, self._scheme = _SPACE, False
            return end
        self._state = _SECRET
        return position

    def _in_secret(self, data: bytes, position: int, stop: int) -> int:
        """Hide all up to the line's end. A CR alone ends no line here: some peer may read on."""
        byte = data[position]
        if byte == 0x0D:
            self._marks.end()
            self._state = _CR
            return position + 1
        if byte == 0x0A:
            self._marks.end()
            self._state = _LINE
            return position + 1
        self._state = _SECRET
        end = _place(_LINE_ENDS, data, position, stop)
        self._marks.hide(self._what, data, position, end)
        return end


def _place(wanted: re.Pattern[bytes], data: bytes, position: int, stop: int) -> int:
    """Return where ``wanted`` is met first, or ``stop``."""
    found = wanted.search(data, position, stop)
    return found.start() if found else stop
