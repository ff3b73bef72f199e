"""A capture of the live session, in which nothing that was given to the server stands.

The values of ``--header`` and ``--env`` are replaced wherever they appear, also where a server says them back: as they
are, as JSON and URLs spell them, in Base64 and in hexadecimal. Whatever else is a secret over HTTP is masked as usual.
"""

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Callable, Iterable
from typing import Any, Final
from urllib.parse import quote, quote_plus

from mcpsniff.capture.records import CHUNK, CLOSE, MASK, OPEN
from mcpsniff.proxy.mask_names import is_credential_header, is_telling
from mcpsniff.replay.send.link import now_us

type Entry = tuple[int, str, int | None, Any]
"""t in microseconds since the start, kind, channel, body: what `mcpsniff.capture.writer.CaptureWriter` takes."""

SHORTEST: Final = 4
"""Characters of a secret from which on it is looked for in what passes: shorter ones are everywhere."""
TELLING: Final = 8
"""The same for a value whose name does not say that it is a secret: ``true`` and ``info`` are none."""
GIVEN: Final = "given"


class Hider:
    """Puts asterisks in the place of given values."""

    def __init__(self, given: Iterable[tuple[str, str]], salt: Callable[[], bytes]) -> None:
        """``given`` are names and values; ``salt`` returns the secret of the store, for fingerprints."""
        values = {value for name, value in given if len(value) >= (SHORTEST if is_secret(name) else TELLING)}
        forms = {form: value for value in values for form in _forms(value)}
        longest_first = sorted(forms, key=len, reverse=True)
        self._forms = forms
        self._pattern = re.compile(b"|".join(map(re.escape, longest_first))) if forms else None
        self._salt = salt

    def hide(self, data: bytes) -> tuple[bytes, list[tuple[int, int, str]]]:
        """The bytes without the values, as many as before; and start, length and fingerprint of each place."""
        if self._pattern is None:
            return data, []
        places = [(found.start(), len(found[0]), self._mark(found[0])) for found in self._pattern.finditer(data)]
        return (self._pattern.sub(lambda found: b"*" * len(found[0]), data) if places else data), places

    def hide_text(self, text: str) -> str:
        """The same for a text."""
        return self.hide(text.encode(errors="surrogatepass"))[0].decode(errors="surrogatepass")

    def _mark(self, form: bytes) -> str:
        value = self._forms[form].encode(errors="surrogatepass")
        return hmac.new(self._salt(), value, hashlib.sha256).hexdigest()[:16]


def _forms(value: str) -> set[bytes]:
    raw = value.encode(errors="surrogatepass")
    texts = {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
    texts |= {json.dumps(text)[1:-1] for text in texts}
    texts |= {quote(raw, safe=""), quote(raw), quote_plus(raw)}
    forms = {text.encode(errors="surrogatepass") for text in texts} | {raw.hex().encode(), raw.hex().upper().encode()}
    for shift in range(3):  # in Base64 a value looks different behind one or two other bytes
        coded = base64.b64encode(b"\0" * shift + raw)
        rest = (0, 3, 2)[(shift + len(raw)) % 3]  # what depends on the bytes behind it
        for inner in (coded[(0, 2, 3)[shift] : len(coded) - rest], coded[(0, 2, 3)[shift] :].rstrip(b"=")):
            if len(inner) >= SHORTEST:
                forms |= {inner, inner.replace(b"+", b"-").replace(b"/", b"_")}
    return forms


def is_secret(name: str) -> bool:
    """True if the name of a variable or a header field says that its value is a secret."""
    return is_telling(name) or is_credential_header(name)


class CaptureTape:
    """Makes records of what passes over links (`mcpsniff.replay.send.link.Tape`)."""

    def __init__(self, append: Callable[[list[Entry]], None], hider: Hider) -> None:
        """``append`` takes records to be written; it is not to raise."""
        self._append = append
        self._hider = hider
        self._began = now_us()
        self._channels = 0
        self._connections = 0
        self._sizes: dict[int, int] = {}

    def open(self, body: dict[str, Any]) -> int:
        """A channel begins; gives its number."""
        number, self._channels = self._channels, self._channels + 1
        self._sizes[number] = 0
        meta = body.get("meta")
        hidden = body if meta is None else {**body, "meta": self._hidden(meta)}
        self._append([(self._t(), OPEN, number, hidden)])
        return number

    def chunk(self, channel: int, data: bytes) -> None:
        """Bytes of it."""
        hidden, places = self._hider.hide(data)
        t, start = self._t(), self._sizes.get(channel, 0)
        self._sizes[channel] = start + len(hidden)
        masks: list[Entry] = [
            (t, MASK, channel, {"start": start + at, "length": length, "what": GIVEN, "fp": mark})
            for at, length, mark in places
        ]
        self._append([(t, CHUNK, channel, hidden), *masks])

    def close(self, channel: int, body: dict[str, Any]) -> None:
        """Its end."""
        self._append([(self._t(), CLOSE, channel, body)])

    def connection(self) -> int:
        """The number of a new connection."""
        number, self._connections = self._connections, self._connections + 1
        return number

    def _hidden(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._hider.hide_text(value)
        if isinstance(value, list):
            return [self._hidden(item) for item in value]
        return {name: self._hidden(item) for name, item in value.items()} if isinstance(value, dict) else value

    def _t(self) -> int:
        return now_us() - self._began
