"""Secrets among the members of a JSON text, such as a token endpoint's answer (RFC 6749 section 5.1).

Only strings are masked: those with a telling name, and all within an object or a list that has one. At the top only,
until one is found there; at every level where credentials are handed over. The payload of a JSON-RPC message is never
touched: a text with a member ``jsonrpc`` is left alone from there on. Works on whatever pieces the bytes come in.
"""

import json
import re
from typing import Final

from mcpsniff.proxy.mask_keys import NAME_LIMIT, JsonUrlScanner
from mcpsniff.proxy.mask_marks import Marks
from mcpsniff.proxy.mask_names import KEY_TYPE, OTHER_PRIMES, PRIVATE_PARTS, is_of_oauth, is_telling_member

DEEPEST: Final = 512
"""Levels that are looked into. What goes deeper is hidden from there on: no reader of such a text would follow."""
TOO_DEEP: Final = "nested too deep"
MALFORMED: Final = "malformed JSON"
"""What the rest is called of a text that is looked into at every level, and turns out to be no JSON."""

_BEFORE, _WANT_KEY, _KEY, _COLON, _VALUE, _SECRET, _STRING, _AFTER, _NESTED, _REST, _DONE = range(11)
_IN_STRING: Final = frozenset([_KEY, _SECRET, _STRING])
_LIST: Final = ord("[")
_ERRORS: Final = frozenset(["error", "errors"])
_ERROR_CODES: Final = frozenset(["code"])
"""Within an error this says what went wrong, and is no authorization code."""

_KEYS: Final = ("jwk", "jwks", "key", "keys")
"""How members are named that hold a JSON Web Key or several, whose private parts are secrets."""

_JSON_RPC: Final = frozenset(["jsonrpc", "method", "params", "result"])
_OBJECT = re.compile(rb"[{\[]")
_KEY_BEGINS = re.compile(rb'["}{\[]')
_COLON_OR_ELSE = re.compile(rb"[:,}]")
_NOT_SPACE = re.compile(rb"[^ \t\r\n]")
_VALUE_ENDS = re.compile(rb"[,}]")
_ITEM_ENDS = re.compile(rb"[,\]]")
_WANTED: Final = {_WANT_KEY: _KEY_BEGINS, _COLON: _COLON_OR_ELSE, _VALUE: _NOT_SPACE, _AFTER: _VALUE_ENDS}
"""What is looked for in a state."""
_ODD: Final = {
    _WANT_KEY: re.compile(rb"[^ \t\r\n,]"),
    _COLON: re.compile(rb"[^ \t\r\n]"),
    _VALUE: _NOT_SPACE,
    _AFTER: re.compile(rb"[^ \t\r\n\w.+-]"),
}
"""What cannot stand before that in a JSON text: the next value without a comma, a name in other quotes or in none."""
_IN_QUOTES: Final = rb'[^"\\]*+(?:(?s:\\.)[^"\\]*+)*+'
_REST_OF_STRING = re.compile(_IN_QUOTES)
_STRING_OR_NOT: Final = rb'[^"{}\[\]]*+(?:"' + _IN_QUOTES + rb'"[^"{}\[\]]*+)*+'
"""Whole strings, and what stands between them but brackets. Written so that a match takes few steps for each."""


def _nested(depth: int) -> bytes:
    """Return an expression for a container with at most ``depth`` levels of others in it."""
    inner = rb"(?:" + _nested(depth - 1) + _STRING_OR_NOT + rb")*+" if depth else b""
    return rb"[{\[]" + _STRING_OR_NOT + inner + rb"[}\]]"


# Whole strings, whole containers with few levels in them, and what stands between: what needs no counting of brackets.
_SKIPPED = re.compile(_STRING_OR_NOT + rb"(?:" + _nested(5) + _STRING_OR_NOT + rb")*+")
_OPENED = re.compile(rb"(?:[{\[]++" + _STRING_OR_NOT + rb")++")
_WHOLE_STRING = re.compile(rb'"' + _IN_QUOTES + rb'"')
_MESSAGE = re.compile(
    rb'\s*+\{\s*+(?:"(?:id|method|params|result|error)"\s*+:\s*+(?:[^"{}\[\],]++|"(?s:[^"\\]++|\\.)*+"|'
    + _nested(5)
    + rb')\s*+,\s*+)*+"jsonrpc"\s*+:'
)
"""A JSON-RPC message up to the member that says so: in most cases all of the decision, at once."""


class JsonScanner:
    """Finds the secrets of a JSON text. With ``is_deep`` all levels are looked at, and lists at the top too."""

    def __init__(self, marks: Marks, *, is_deep: bool = False) -> None:
        self._marks = marks
        self._is_deep = is_deep
        self._urls: JsonUrlScanner | None = None  # of most texts nothing needs to be known but that they are messages
        self._state = _BEFORE
        self._key = b""
        self._what = ""
        self._label = ""
        self._open = bytearray()
        """The brackets of what is open, where it is looked into."""
        self._secret_from = 0
        """Brackets that are open where all strings are secret; 0: nowhere."""
        self._error_from = 0
        self._key_from = 0
        """Likewise within a member that holds a JSON Web Key, or in an object that has said to be one."""
        self._depth = 0
        self._in_nested_string = False
        self._escaped = False
        self.is_json_rpc = False
        """A member of a JSON-RPC message has been seen at the top."""

    @property
    def is_done(self) -> bool:
        """Nothing more is looked for."""
        return self._state == _DONE

    def scan(self, data: bytes, position: int, stop: int) -> None:
        """Go on with ``data[position:stop]``."""
        while position < stop and self._state != _DONE:
            if self._state in _IN_STRING:
                position = self._in_string(data, position, stop)
            elif self._state == _NESTED:
                position = self._in_nested(data, position, stop)
            elif self._state == _REST:
                self._marks.hide(self._label, data, position, stop)
                return
            else:
                position = self._between(data, position, stop)

    def _between(self, data: bytes, position: int, stop: int) -> int:
        """Go on outside of strings and of what is nested."""
        state = self._state
        if state == _BEFORE:
            return self._before(data, position, stop)
        is_list = state == _AFTER and self._open[-1] == _LIST
        found = (_ITEM_ENDS if is_list else _WANTED[state]).search(data, position, stop)
        odd = _ODD[state].search(data, position, found.start() if found else stop) if self._is_deep else None
        if odd:
            self._hide_rest(MALFORMED)
            return odd.start()
        if not found:
            return stop
        byte = found[0]
        if state == _VALUE:
            return self._at_value(byte, found.start())
        if state == _WANT_KEY and byte == b'"':
            self._state, self._key = _KEY, b""
        elif state == _WANT_KEY:
            self._begin_or_end(byte)
        elif byte == b":":
            self._state = _VALUE
        elif byte == b",":
            self._state = _VALUE if is_list else _WANT_KEY
        else:
            self._end()
        return found.end()

    def _before(self, data: bytes, position: int, stop: int) -> int:
        """Look for where a text begins."""
        if not self._is_deep and _MESSAGE.match(data, position, stop):
            self._state, self.is_json_rpc = _DONE, True
            return stop
        found = _OBJECT.search(data, position, stop)
        if not found:
            return stop
        if self._is_deep or found[0] == b"{":
            self._begin(found[0])
        else:
            self._state = _DONE
        return found.end()

    def _at_value(self, byte: bytes, position: int) -> int:
        """A value begins with ``byte`` at ``position``."""
        if byte == b'"':
            self._begin_string()
        elif byte in b"{[":
            self._begin_or_end(byte)
        else:
            self._state = _AFTER
            return position
        return position + 1

    def _hide_rest(self, why: str) -> None:
        """Nothing here can be told from the rest any more."""
        self._state, self._label = _REST, why

    def _begin_or_end(self, bracket: bytes) -> None:
        """At ``}`` an object is over; at another bracket something nested begins."""
        if bracket == b"}":
            self._end()
        elif not self._is_deep or (self._what == "params" and self._is_at_message()):
            self._state, self._depth = _NESTED, 1
        elif len(self._open) == DEEPEST:
            self._hide_rest(TOO_DEEP)
        else:
            self._begin(bracket)

    def _begin(self, bracket: bytes) -> None:
        """An object or a list begins that is looked into."""
        is_named = bool(self._open) and self._open[-1] != _LIST
        self._open += bracket
        if is_named and not self._secret_from and is_telling_member(self._what):
            self._secret_from, self._label = len(self._open), self._what
        if is_named and not self._error_from and self._what in _ERRORS:
            self._error_from = len(self._open)
        if is_named and self._key_from and not self._secret_from and self._what == OTHER_PRIMES:
            self._secret_from, self._label = len(self._open), self._what
        if is_named and not self._key_from and self._what.lower().endswith(_KEYS):
            self._key_from = len(self._open)
        self._state = _WANT_KEY if bracket == b"{" else _VALUE

    def _end(self) -> None:
        """An object or a list is over; after that at the top, another text may follow."""
        self._open.pop()
        if len(self._open) < self._secret_from:
            self._secret_from = 0
        if len(self._open) < self._error_from:
            self._error_from = 0
        if len(self._open) < self._key_from:
            self._key_from = 0
        self._state = _AFTER if self._open else _BEFORE

    def _is_at_message(self) -> bool:
        """Say whether the innermost object stands where JSON-RPC messages do: at the top, or in a list there."""
        return len(self._open) == 1 or self._open == b"[{"

    def _begin_string(self) -> None:
        """A string begins that is a value."""
        is_named = self._open[-1] != _LIST
        is_secret = is_named and is_telling_member(self._what) and not (self._error_from and self._what in _ERROR_CODES)
        is_secret = is_secret or (is_named and self._key_from > 0 and self._what in PRIVATE_PARTS)
        if is_secret and not self._secret_from:
            self._label = self._what
        self._state = _SECRET if is_secret or self._secret_from else _STRING
        if self._is_deep:
            self._urls = self._urls or JsonUrlScanner(self._marks)
            self._urls.reset()
        if is_secret and not self.is_json_rpc:
            self._is_deep = True  # what says so much may say more further down

    def _in_string(self, data: bytes, position: int, stop: int) -> int:
        """Go on in a key or in a value, up to and with its closing quotation mark."""
        end, is_over = self._string_end(data, position, stop)
        if self._state == _SECRET:
            self._marks.hide(self._label, data, position, end - is_over)
        elif self._state == _KEY:
            self._key = (self._key + data[position : end - is_over])[-NAME_LIMIT:]
        elif self._urls is not None:
            self._urls.scan(data, position, end - is_over)
        if is_over and self._state == _KEY:
            self._judge(_text(self._key))
        elif is_over:
            self._marks.end()
            self._state = _AFTER
        return end

    def _judge(self, what: str) -> None:
        """A key is complete."""
        self._what = what
        self._state = _COLON
        if what == KEY_TYPE and self._is_deep and not self._key_from:
            self._key_from = len(self._open)
        if not self._is_at_message():
            return
        if what == "jsonrpc":
            self._state, self.is_json_rpc = _DONE, True
        elif what in _JSON_RPC:
            self.is_json_rpc = self.is_json_rpc or not (self._is_deep and what == "result")
        elif is_of_oauth(what):
            self._marks.found = True

    def _string_end(self, data: bytes, position: int, stop: int) -> tuple[int, bool]:
        """Return where the string that goes on at ``position`` ends, or ``stop``, and whether it is over there."""
        if self._escaped:
            self._escaped = False
            position += 1
        quote = data.find(b'"', position, stop)
        if data.find(b"\\", position, stop if quote < 0 else quote) < 0:  # most strings; many times as fast
            return (stop, False) if quote < 0 else (quote + 1, True)
        found = _REST_OF_STRING.match(data, position, stop)
        end = found.end() if found else position
        if end < stop and data[end] == 0x22:
            return end + 1, True
        self._escaped = end < stop
        return stop, False

    def _in_nested(self, data: bytes, position: int, stop: int) -> int:
        """Skip what is nested in a member's value: nothing in it is ever masked."""
        if self._in_nested_string:
            position, is_over = self._string_end(data, position, stop)
            self._in_nested_string = not is_over
            return position
        found = _SKIPPED.match(data, position, stop)
        position = found.end() if found else position
        if position == stop:
            return position
        byte = data[position]
        opened = _OPENED.match(data, position, stop) if byte in b"{[" else None
        if opened:  # so deep that it is not in what is skipped: down to the next end at once
            brackets = _WHOLE_STRING.sub(b"", opened[0])
            self._depth += brackets.count(b"{") + brackets.count(b"[")
            return opened.end()
        if byte == 0x22:
            self._in_nested_string = True
        else:
            self._depth -= 1
            if not self._depth:
                self._state = _AFTER
        return position + 1


def _text(key: bytes) -> str:
    """Return what a key says, its escapes undone."""
    if b"\\" not in key:
        return key.decode("utf-8", "replace")
    try:
        return str(json.loads(b'"' + key + b'"', strict=False))
    except ValueError:
        return key.decode("utf-8", "replace")
