"""Secrets among the members at the top of a JSON object, such as a token endpoint's answer (RFC 6749 section 5.1).

Only string values of telling names are masked, and only at the top: so the payload of a JSON-RPC message is never
touched, and a text with a member ``jsonrpc`` is left alone from there on. Works on whatever pieces the bytes come in.
"""

import json
import re
from typing import Final

from mcpsniff.proxy.mask_keys import NAME_LIMIT
from mcpsniff.proxy.mask_marks import Marks
from mcpsniff.proxy.mask_names import is_telling_member

_BEFORE, _WANT_KEY, _KEY, _COLON, _VALUE, _SECRET, _STRING, _AFTER, _NESTED, _DONE = range(10)
_IN_STRING: Final = frozenset([_KEY, _SECRET, _STRING])

_JSON_RPC: Final = frozenset(["jsonrpc", "method", "params", "result"])
_OBJECT = re.compile(rb"[{\[]")
_KEY_BEGINS = re.compile(rb'["}{\[]')
_COLON_OR_ELSE = re.compile(rb"[:,}]")
_NOT_SPACE = re.compile(rb"[^ \t\r\n]")
_VALUE_ENDS = re.compile(rb"[,}]")
_REST_OF_STRING = re.compile(rb'(?s:[^"\\]++|\\.)*+')
_FLAT = rb'[^"{}\[\]]++|"(?s:[^"\\]++|\\.)*+"'


def _nested(depth: int) -> bytes:
    """Return an expression for a container with at most ``depth`` levels of others in it."""
    inner = rb"|" + _nested(depth - 1) if depth else b""
    return rb"[{\[](?:" + _FLAT + inner + rb")*+[}\]]"


# Whole strings, whole containers with few levels in them, and what stands between: what needs no counting of brackets.
_SKIPPED = re.compile(rb"(?:" + _FLAT + rb"|" + _nested(3) + rb")*+")
_MESSAGE = re.compile(
    rb'\s*+\{\s*+(?:"(?:id|method|params|result|error)"\s*+:\s*+(?:[^"{}\[\],]++|"(?s:[^"\\]++|\\.)*+"|'
    + _nested(5)
    + rb')\s*+,\s*+)*+"jsonrpc"\s*+:'
)
"""A JSON-RPC message up to the member that says so: in most cases all of the decision, at once."""


class JsonScanner:
    """Finds the secrets of a JSON text."""

    def __init__(self, marks: Marks) -> None:
        self._marks = marks
        self._state = _BEFORE
        self._key = b""
        self._what = ""
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
            else:
                position = self._between(data, position, stop)

    def _between(self, data: bytes, position: int, stop: int) -> int:
        """Go on outside of strings and of what is nested."""
        state = self._state
        if state == _BEFORE:
            if _MESSAGE.match(data, position, stop):
                self._state, self.is_json_rpc = _DONE, True
                return stop
            found = _OBJECT.search(data, position, stop)
            if found:
                self._state = _WANT_KEY if found[0] == b"{" else _DONE
        elif state == _WANT_KEY:
            found = _KEY_BEGINS.search(data, position, stop)
            if found and found[0] == b'"':
                self._state, self._key = _KEY, b""
            elif found:
                self._leave_or_nest(found[0])
        elif state == _COLON:
            found = _COLON_OR_ELSE.search(data, position, stop)
            if found:
                self._state = {b":": _VALUE, b",": _WANT_KEY}.get(found[0], _BEFORE)
        elif state == _VALUE:
            found = _NOT_SPACE.search(data, position, stop)
            if found and found[0] == b'"':
                self._state = _SECRET if is_telling_member(self._what) else _STRING
            elif found and found[0] in b"{[":
                self._leave_or_nest(found[0])
            elif found:
                self._state = _AFTER
                return found.start()
        else:
            found = _VALUE_ENDS.search(data, position, stop)
            if found:
                self._state = _WANT_KEY if found[0] == b"," else _BEFORE
        return found.end() if found else stop

    def _leave_or_nest(self, bracket: bytes) -> None:
        """At ``}`` the object is over, and another text may follow; at another bracket something nested begins."""
        self._state, self._depth = (_BEFORE, 0) if bracket == b"}" else (_NESTED, 1)

    def _in_string(self, data: bytes, position: int, stop: int) -> int:
        """Go on in a key or in a value at the top, up to and with its closing quotation mark."""
        end, is_over = self._string_end(data, position, stop)
        if self._state == _SECRET:
            self._marks.hide(self._what, data, position, end - is_over)
            if is_over:
                self._marks.end()
        elif self._state == _KEY:
            self._key = (self._key + data[position : end - is_over])[-NAME_LIMIT:]
        if is_over and self._state == _KEY:
            self._what = _text(self._key)
            self.is_json_rpc = self.is_json_rpc or self._what in _JSON_RPC
            self._state = _DONE if self._what == "jsonrpc" else _COLON
        elif is_over:
            self._state = _AFTER
        return end

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
        if byte == 0x22:
            self._in_nested_string = True
        elif byte in b"{[":
            self._depth += 1
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
