"""The values that are removed, and what stands for each of them."""

import hmac
import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from mcpsniff.export.redact.matcher import SHORTEST, Matcher

EVERYDAY: Final = 6
"""A value of fewer bytes is removed where a rule names it, and not looked for elsewhere."""
NUMBER: Final = "number"
EMAIL: Final = "email"
HOME: Final = "home"
ADDRESS: Final = "address"

PSEUDONYM = re.compile(rb"redacted-([a-z0-9-]{1,40}?)-?([0-9]{1,9}|[0-9a-f]{12})(?![0-9A-Za-z])")
_OURS = re.compile(
    rb"(?:redacted-[a-z0-9-]{1,60}(?:@example\.invalid)?|(?:/home/|/Users/|[A-Za-z]:\\Users\\)redacted-[a-z0-9-]{1,40}"
    rb"|-(?:home|Users)-redacted-[a-z0-9-]{1,40}|HTTP/[0-9](?:\.[0-9])?|9000[0-9]{6,}"
    rb"|198\.1[89]\.[0-9]{1,3}\.[0-9]{1,3}|2001:db8::[0-9a-f]+|\*+)"
)
_NUMERIC = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_LEAD = re.compile(rb"(?:.*[/\\]|-(?:home|Users)-)", re.DOTALL)
"""What precedes the name in a home folder, also in names of folders that are made of paths."""
_WORDS: Final = """
    jsonrpc method params result error message capabilities tools resources prompts logging sampling elicitation
    roots completions experimental serverInfo clientInfo protocolVersion initialize initialized notifications
    cancelled progress progressToken cursor nextCursor inputSchema outputSchema structuredContent arguments
    content description annotations properties required additionalProperties string number integer boolean
    object array enum default title format instructions listChanged subscribe updated contents mimeType template
    resourceTemplates uriTemplate completion complete level warning notice critical emergency assistant isError
    requestId reason code_challenge authorization_code client_credentials refresh_token access_token bearer
    basic digest negotiate application text/event-stream application/json keep-alive chunked no-cache session
    call list get read set create complete templates ping update updated list_changed
    subscribe unsubscribe subscriptions discover listen tasks cancel status acknowledged server
    localhost 127.0.0.1 example http://localhost https:// undefined unknown invalid missing optional secret
    password
"""
"""Words of the protocol and of every log: never looked for in other places, for nothing would be left of a capture."""
_PSEUDONYMS: Final = ("redacted-value-", "redacted-token-", "redacted-email-", "@example.invalid", "redacted-home-")
_VOCABULARY: Final = frozenset(_WORDS.split())


def is_everyday(value: bytes) -> bool:
    """Say whether a value is too short or too common to be looked for wherever it might be."""
    text = value.decode("utf-8", "replace")
    if len(value) < EVERYDAY or is_word(text):
        return True
    return len(value) < 8 and (text.isalpha() or text.isdigit())


def is_word(text: str) -> bool:
    """Say whether a text is a word of the protocol, or part of each pseudonym."""
    if any(text in word for word in _PSEUDONYMS) or text in _VOCABULARY or text.lower() in _VOCABULARY:
        return True
    return all(word in _VOCABULARY for word in text.split("/"))  # a method


def is_ours(value: bytes) -> bool:
    """Say whether a value is a pseudonym already, was masked by the recorder, or is the version of HTTP in a head."""
    return bool(_OURS.fullmatch(value))


class Values:
    """What was found so far. Equal values have one pseudonym, which is known once `seal` was called.

    With a ``seed`` it does not depend on the capture: equal values have equal pseudonyms in all files redacted with
    that seed. Without, they are numbered in the order in which they were found.
    """

    def __init__(self, seed: str | None = None) -> None:
        self._key = None if seed is None else seed.encode()
        self._kinds: dict[bytes, str] = {}
        self._everywhere: set[bytes] = set()
        self._named: dict[bytes, bytes] = {}
        self._same: dict[bytes, bytes] = {}
        """Of another way to write a value: the value."""
        self._taken: Counter[str] = Counter()
        self._people: dict[bytes, bytes] = {}
        """Of a name in a home folder: what stands for it."""
        self.places: Counter[bytes] = Counter()
        """How often each value was replaced."""
        self.matcher = Matcher(())
        """Finds the values that are looked for everywhere."""

    def add(self, value: bytes, kind: str, *, everywhere: bool | None = None) -> None:
        """A value is to be removed. ``everywhere``: wherever it is; None: unless it is an everyday word."""
        if not value or is_ours(value):
            return
        self._kinds.setdefault(value, re.sub(r"[^a-z0-9]+", " ", kind.lower()).strip()[:40] or "value")
        if len(value) < SHORTEST:
            return
        if everywhere or (everywhere is None and not is_everyday(value)):
            self._everywhere.add(value)

    def take_note(self, text: bytes) -> None:
        """Numbers that pseudonyms in ``text`` have already are not given again."""
        if b"redacted-" not in text:
            return
        for kind, number in PSEUDONYM.findall(text):
            if len(number) < 10 and number.isdigit():
                name = kind.decode()
                self._taken[name] = max(self._taken[name], int(number))

    def seal(self) -> None:
        """Nothing more is added: give the pseudonyms."""
        for value, kind in self._kinds.items():
            self._named[value] = self._pseudonym(value, kind)
        alike: dict[bytes, bytes] = {}
        for value in self._everywhere:
            for other in _alike(value):
                alike[other] = self._named[value]
                self._kinds.setdefault(other, self._kinds[value])
                self._same[other] = value
        self._named = {**alike, **self._named}
        self.matcher = Matcher([*self._everywhere, *(other for other in alike if other not in self._everywhere)])

    def new(self, value: bytes) -> tuple[bytes, str]:
        """What stands for ``value``, and what it was; this counts as a place."""
        self.places[self._same.get(value, value)] += 1
        return self._named[value], self._kinds[value]

    def knows(self, value: bytes) -> bool:
        """Say whether ``value`` is to be removed."""
        return value in self._named

    @property
    def kinds(self) -> dict[str, int]:
        """How many values of each kind were replaced."""
        return dict(Counter(self._kinds[value] for value in self.places))

    @property
    def everyday(self) -> int:
        """How many were replaced only where a rule named them."""
        return sum(value not in self._everywhere for value in self.places)

    @property
    def everywhere(self) -> frozenset[bytes]:
        """The values of which nothing may remain."""
        return frozenset(self._everywhere)

    def _pseudonym(self, value: bytes, kind: str) -> bytes:
        if kind == NUMBER or _NUMERIC.fullmatch(value):  # it may stand where no text may stand
            name, digits = NUMBER, self._name(value, NUMBER)
            return b"9000" + (b"%012d" % int(digits, 16) if self._key else b"%06d" % int(digits))
        if b"@" in value and kind == EMAIL:
            return b"redacted-email-%b@example.invalid" % self._name(value, EMAIL)
        if kind == HOME:
            found = _LEAD.match(value)
            lead = found[0] if found else b""
            who = value[len(lead) :]
            if who not in self._people:
                self._people[who] = b"redacted-home-" + self._name(who, HOME)
            return lead + self._people[who]
        if kind == ADDRESS:
            return self._address(value)
        name = kind.replace(" ", "-")
        if self._key is not None:
            return b"redacted-" + self._name(value, "value")
        return f"redacted-{name}-".encode() + self._name(value, name)

    def _address(self, value: bytes) -> bytes:
        number = int(self._name(value, ADDRESS), 16 if self._key else 10)
        if b":" in value:
            return b"2001:db8::%x" % (number % 0xFFFF)
        return b"198.%d.%d.%d" % (18 + (number >> 16) % 2, number >> 8 & 255, number & 255)

    def _name(self, value: bytes, kind: str) -> bytes:
        """What tells values of one kind apart: a number, or with a seed a fingerprint."""
        if self._key is not None:
            return hmac.digest(self._key, value, "sha256").hex()[:12].encode()
        self._taken[kind] += 1
        return b"%d" % self._taken[kind]


def _alike(value: bytes) -> Iterator[bytes]:
    """The value as ISO 8859-1 has it, as headers may, and as forms have it, with ``+`` for spaces."""
    try:
        other = value.decode().encode("latin-1")
    except UnicodeError:
        other = value
    if other != value:
        yield other
    if b" " in value:
        yield value.replace(b" ", b"+")
