"""Puts asterisks in the place of what a user has given to a server, wherever and however it is said back."""

import hashlib
import hmac
import re
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from mcpsniff.export.redact.matcher import Matcher
from mcpsniff.export.redact.needles import needles_of
from mcpsniff.export.redact.search import edits_in
from mcpsniff.export.redact.views import Interest
from mcpsniff.replay.send.given import SHORTEST, secrets_of, spellings_of

ROUNDS: Final = 4
"""How often a text is searched for what the round before has left."""
_LARGEST: Final = 4_000
"""Bits of a number that is looked at."""
_LETTERS: Final = re.compile(rb"[^\r\n]")


class Hidden(NamedTuple):
    """One place: where it starts, how many bytes, and the fingerprint of what was there."""

    start: int
    length: int
    mark: str


class Hider:
    """Hides given values: as they are, and in all that they may be encoded in, encodings of encodings included."""

    def __init__(self, given: Iterable[tuple[str, str]], salt: Callable[[], bytes]) -> None:
        """``given`` are names and values; ``salt`` returns the secret of the store, for fingerprints."""
        spelt = {value: spellings_of(value) for value in secrets_of(given)}
        by_form = {form: (value, pattern) for value, forms in spelt.items() for form, pattern in forms.items()}
        self._value_of = {form: value for form, (value, _) in by_form.items()}
        self._exact = Matcher(form for form in by_form if len(form) >= SHORTEST and not form.isdigit())
        self._numbers = [(re.compile(re.escape(form)), by_form[form][0]) for form in by_form if form.isdigit()]
        spread = {form: found for form, found in by_form.items() if found[1] != re.escape(form)}
        self._squeezed = Matcher(form for form in spread if not form.isdigit())
        self._spread = [(re.compile(pattern), value) for value, pattern in spread.values()]
        self._has_spread_number = any(form.isdigit() for form in spread)
        self._is_idle = not spelt
        values = [value.encode(errors="surrogatepass") for value in spelt]
        self._matcher = Matcher(values)
        self._left = Matcher(needles_of(values))
        self._interest = Interest(self._matcher.has)
        self._salt = salt
        self.withheld = 0
        """Texts in which a value is spelt so that it cannot be hidden by itself: nothing was left of them."""

    def hide(self, data: bytes) -> tuple[bytes, list[Hidden]]:
        """The bytes without the values, as many as before, and where something was hidden."""
        if self._is_idle or not data:
            return data, []
        places: list[Hidden] = []
        for _ in range(ROUNDS):
            found = self._found(data)
            if not found and not self._left.has(data):
                return data, _joined(places)
            places += found
            data = _starred(data, found)
        self.withheld += 1
        return _LETTERS.sub(b"*", data), [Hidden(0, len(data), self._mark("") if not places else places[0].mark)]

    def hide_text(self, text: str) -> str:
        """The same for a text."""
        if self._is_idle:
            return text
        return self.hide(text.encode(errors="surrogatepass"))[0].decode(errors="replace")

    def hide_all(self, value: Any) -> Any:
        """The same for every text in plain JSON, names of members included, however deep it is."""
        if self._is_idle:
            return value
        root: list[Any] = [value]
        stack: list[tuple[Any, Any]] = [(root, 0)]
        while stack:
            holder, key = stack.pop()
            node = holder[key]
            if isinstance(node, str):
                holder[key] = self.hide_text(node)
            elif isinstance(node, list):
                holder[key] = copy = list(node)
                stack += ((copy, at) for at in range(len(copy)))
            elif isinstance(node, dict):
                holder[key] = renamed = {self.hide_text(str(name)): below for name, below in node.items()}
                stack += ((renamed, name) for name in renamed)
            elif type(node) is int and node.bit_length() < _LARGEST and (text := str(node)) != self.hide_text(text):
                holder[key] = self.hide_text(text)
        return root[0]

    def _found(self, data: bytes) -> list[Hidden]:
        found = [
            Hidden(start, stop - start, self._mark(self._value_of[form]))
            for start, stop, form in self._exact.find(data)
        ]
        slowly = self._numbers + (self._spread if self._may_be_spread(data) else [])
        for pattern, value in slowly:
            found += [Hidden(one.start(), len(one[0]), self._mark(value)) for one in pattern.finditer(data)]
        edits = edits_in(data, self._matcher, self._interest, lambda value: (b"*" * len(value), self._mark_of(value)))
        found += [Hidden(edit.start, edit.stop - edit.start, edit.what.partition(",")[0]) for edit in edits]
        return _joined([one for one in found if one.length])

    def _may_be_spread(self, data: bytes) -> bool:
        """Say whether a value may be there in pairs of digits, or in base64 on several lines."""
        if self._has_spread_number:
            return True
        while b"\\\\" in data:
            data = data.replace(b"\\\\", b"\\")
        for escape in (b"\\n", b"\\r", b"\\x"):
            data = data.replace(escape, b"")
        data = data.translate(None, b" \t\r\n")
        digits = data.replace(b"%25", b"").replace(b"0x", b"").translate(None, b":,._%-").lower()
        return self._squeezed.has(data) or self._squeezed.has(digits)

    def _mark(self, value: str) -> str:
        return self._mark_of(value.encode(errors="surrogatepass"))

    def _mark_of(self, value: bytes) -> str:
        return hmac.new(self._salt(), value, hashlib.sha256).hexdigest()[:16]


def _joined(places: list[Hidden]) -> list[Hidden]:
    """Places in order; those that overlap as one."""
    kept: list[Hidden] = []
    for one in sorted(places):
        if kept and one.start < kept[-1].start + kept[-1].length:
            stop = max(one.start + one.length, kept[-1].start + kept[-1].length)
            kept[-1] = kept[-1]._replace(length=stop - kept[-1].start)
        else:
            kept.append(one)
    return kept


def _starred(data: bytes, places: list[Hidden]) -> bytes:
    parts, done = [], 0
    for start, length, _ in places:
        parts += [data[done:start], _LETTERS.sub(b"*", data[start : start + length])]
        done = start + length
    return b"".join([*parts, data[done:]])
