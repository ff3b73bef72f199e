"""What differs in texts from run to run: which pieces of a text are such, and how they read without it.

A piece that is found becomes a `Token`; two texts say the same if what stands between the tokens is equal and the
tokens are, each to its partner, by their ``form``. Every pattern takes time linear in the text (possessive
quantifiers, no nested repetition), whatever the text.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

UUID: Final = "uuid"
TIME: Final = "time"
PORT: Final = "port"
PATH: Final = "path"
NUMBER: Final = "number"

WINDOW: Final = 20_000
"""Characters up to which texts are looked at whole; of longer ones only what lies around their differences."""
AROUND: Final = 500
"""Characters on both sides of a difference that are looked at too: what differs may be the end of a time or a path."""

_DAY: Final = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6}"
_MONTH: Final = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_CLOCK: Final = r"\d{1,2}:\d{2}:\d{2}(?:[.,]\d{1,9})?+"
_ZONE: Final = r"(?: ?[Zz]| ?[+-]\d{2}:?\d{2})?+"
_YEAR: Final = r"\d{4}(?: [+-]\d{4})?+"
_HEX: Final = "[0-9a-fA-F]"

PATTERNS: Final = (
    ("uuid", UUID, rf"(?<!\w){_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}(?!\w)"),
    ("uuid_hex", UUID, r"(?<!\w)[0-9a-f]{12}4[0-9a-f]{3}[89ab][0-9a-f]{15}(?!\w)"),
    (
        "iso",
        TIME,
        rf"(?<!\d)\d{{4}}-\d{{2}}-\d{{2}}[Tt ]\d{{2}}:\d{{2}}(?::\d{{2}}(?:[.,]\d{{1,9}})?+)?+{_ZONE}",
    ),
    ("basic", TIME, r"(?<!\w)\d{8}T\d{6}(?:\.\d{1,9})?+Z?+(?!\w)"),
    ("http", TIME, rf"(?<!\w){_DAY},? \d{{1,2}}[ -]{_MONTH}[ -]\d{{2,4}} {_CLOCK}(?: (?:GMT|UTC|[+-]\d{{4}}))?+"),
    (
        "asctime",
        TIME,
        rf"(?<!\w){_DAY} {_MONTH} {{1,2}}\d{{1,2}} {_CLOCK}(?: [A-Z]{{2,5}})?+ {_YEAR}",
    ),
    ("locale", TIME, rf"(?<!\w)\d{{1,4}}[/.]\d{{1,2}}[/.]\d{{2,4}},? {_CLOCK}(?:[ \u202f][AaPp][Mm])?+(?!\w)"),
    ("clock", TIME, rf"(?<![\w:.]){_CLOCK}(?:[ \u202f][AaPp][Mm])?+(?![\w:])"),
    ("port", PORT, r"(?<![\w.])(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1?\]):\d{1,5}(?!\d)"),
    ("path", PATH, r"(?:(?<=file://)|(?<![\w/:.~]))/(?:[\w.@+%~=-]++/?)++"),
    ("duration", TIME, r"(?<![\w.])\d{1,9}(?:\.\d{1,9})?+ ?(?:ns|µs|μs|us|ms|milliseconds?|microseconds?)(?!\w)"),
    ("seconds", TIME, r"(?<![\w.])\d{1,9}\.\d{1,9} ?(?:s|secs?|seconds?)(?!\w)"),
    ("epoch", TIME, r"(?<![\w.])1[4-9]\d{8}(?:\.\d{1,9}|\d{3}|\d{6}|\d{9})?+(?![\w.])"),
    ("number", NUMBER, r"(?<![\w.])-?\d{1,40}+(?:\.\d{1,40}+)?+(?:[eE][+-]?\d{1,3}+)?+(?!\.?\d)"),
)
"""Name, the normaliser that it belongs to, and what is looked for; of those that fit at a place the first counts."""


_BEGINS: Final = r"(?=[\d/\[]|(?<!\w)[A-Fa-fMTWSl-])"
"""Where a token can begin: asked first, as it is quick, and most places are none."""
_NEEDED: Final = re.compile(r"[\d/]")
"""Every token has one of these."""


class Token(NamedTuple):
    """A piece of a text that may differ from run to run."""

    kind: str
    """The normaliser."""
    form: str
    """How it reads without what differs: two tokens that read the same are the same."""
    text: str


def _time(_: str) -> str:
    return "<time>"


def _duration(_: str) -> str:
    return "<duration>"


def _epoch(text: str) -> str:
    return f"<epoch {len(text.partition('.')[0])}>"


def _port(text: str) -> str:
    return text.rpartition(":")[0] + ":<port>"


_HOME: Final = re.compile(r"/(?:home|Users)/[^/]+(?=/|\Z)|/(?:var/)?root(?=/|\Z)")
_TEMP: Final = re.compile(
    r"(?:/private)?(?:/var/folders/[^/]+/[^/]+/[A-Z]|/var/tmp|/tmp|/dev/shm|/run/user/\d+)(?=/|\Z)"
)
_RUN: Final = re.compile(r"tmp\w{6,}+|[A-Za-z0-9]++")
_RANDOM: Final = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    r"|(?<![A-Za-z0-9])(?=[a-f]{0,64}\d)(?=\d{0,64}[a-f])[0-9a-f]{12,64}(?![A-Za-z0-9])"
)


def _path(text: str) -> str:
    """Home and temporary folders under one name each, and ``*`` for parts that look random."""
    temp = _TEMP.match(text)
    if temp is not None:
        first, slash, rest = text[temp.end() + 1 :].partition("/")
        return f"<temp>/{_RUN.sub(_made_up, first)}{slash}{_RUN.sub(_numbered, rest)}"
    home = _HOME.match(text)
    start, rest = ("<home>", text[home.end() :]) if home is not None else ("", text)
    return start + _RANDOM.sub("*", rest)


def _numbered(found: re.Match[str]) -> str:
    """Beneath a temporary folder: a word with digits in it is one of a count, or random."""
    word = found[0]
    return "*" if any(character.isdigit() for character in word) else word


def _made_up(found: re.Match[str]) -> str:
    """In the name of a temporary folder: also what ``mktemp`` and its kin append to a name."""
    word = found[0]
    if (word.startswith("tmp") and len(word) > 8) or (len(word) in (6, 8, 10) and word != word.lower() != word.upper()):
        return "*"
    return _numbered(found)


FORMS: Final[dict[str, Callable[[str], str]]] = {
    "uuid": lambda _: "<uuid>",
    "uuid_hex": lambda _: "<uuid>",
    "iso": _time,
    "basic": _time,
    "http": _time,
    "asctime": _time,
    "locale": _time,
    "clock": _time,
    "duration": _duration,
    "seconds": _duration,
    "epoch": _epoch,
    "port": _port,
    "path": _path,
    "number": lambda _: "<number>",
}
_KINDS: Final = {name: kind for name, kind, _ in PATTERNS}


class Scanner:
    """Finds the tokens of some normalisers in texts."""

    def __init__(self, kinds: Iterable[str]) -> None:
        wanted = set(kinds)
        found = [f"(?P<{name}>{pattern})" for name, kind, pattern in PATTERNS if kind in wanted]
        self._pattern = re.compile(f"{_BEGINS}(?:{'|'.join(found)})") if found else None

    def pieces(self, text: str) -> tuple[list[str], list[Token]]:
        """What stands between the tokens, one piece more than there are tokens, and the tokens."""
        if self._pattern is None or _NEEDED.search(text) is None:
            return [text], []
        between: list[str] = []
        tokens: list[Token] = []
        at = 0
        for found in self._pattern.finditer(text):
            name = found.lastgroup or ""
            between.append(text[at : found.start()])
            tokens.append(Token(_KINDS[name], FORMS[name](found[0]), found[0]))
            at = found.end()
        between.append(text[at:])
        return between, tokens

    def form(self, text: str) -> str:
        """The text with each token as it reads without what differs."""
        between, tokens = self.pieces(text)
        if not tokens:
            return text
        return "".join(map("".join, zip(between, [token.form for token in tokens] + [""], strict=True)))

    def pairs(self, one: str, other: str) -> Iterator[tuple[Token, Token]] | None:
        """The tokens of two texts, each with its partner; None if the texts differ in something else.

        Tokens that are numbers are partners whatever their values.
        """
        if self._pattern is None:
            return None
        one, other = around(one, other)
        between, tokens = self.pieces(one)
        between_too, others = self.pieces(other)
        if between != between_too or any(a[:2] != b[:2] for a, b in zip(tokens, others, strict=True)):
            return None
        return zip(tokens, others, strict=True)


def common(one: str, other: str) -> int:
    """How many characters two texts have in common at their beginning."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def common_end(one: str, other: str, most: int) -> int:
    """How many characters, at most ``most``, two texts have in common at their end."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if one[len(one) - middle : len(one) - low] == other[len(other) - middle : len(other) - low]:
            low = middle
        else:
            high = middle - 1
    return low


def around(one: str, other: str) -> tuple[str, str]:
    """Two long texts cut down to what lies between their common beginning and end, and AROUND characters of each."""
    if max(len(one), len(other)) <= WINDOW:
        return one, other
    start = common(one, other)
    end = common_end(one, other, min(len(one), len(other)) - start)
    start, end = max(start - AROUND, 0), max(end - AROUND, 0)
    return one[start : len(one) - end], other[start : len(other) - end]
