"""What `--fault` says: NAME[=VALUE][,p=0.1][,if=EXPR][,after=N][,times=N]."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from mcpsniff.capture.labels import shown
from mcpsniff.errors import UsageError
from mcpsniff.protocol.message import INVALID, Message
from mcpsniff.proxy.faults import values
from mcpsniff.proxy.faults.kinds import KINDS, STATUS, Kind
from mcpsniff.proxy.rules.matching import Matcher, fields_of, matcher
from mcpsniff.proxy.rules.texts import RuleError, moved
from mcpsniff.transcript.filter.error import FilterError, nearest

KEYS: Final = ("p", "if", "after", "times")
HANDSHAKE: Final = frozenset({"initialize", "notifications/initialized", "server/discover"})
"""What opens a session: left alone unless ``if=`` says what is not."""
_LIST: Final = "mcpsniff addons --faults lists them"


@dataclass(frozen=True, slots=True)
class Value:
    """The value of a fault: as it is written, and what it means."""

    text: str
    means: Any

    def drawn(self, chance: float) -> "Value":
        """One of the values that it stands for."""
        if isinstance(self.means, values.Times) and self.means.low < self.means.high:
            return read_value(values.spelt(self.means.at(chance)), values.time)
        return self


@dataclass(frozen=True, slots=True)
class Spec:
    """A fault, and when it strikes."""

    text: str
    """As it was written."""
    kind: Kind
    value: Value
    probability: float = 1.0
    after: int = 0
    """So many messages that match are left alone first."""
    times: int | None = None
    """So many faults, and no more."""
    matches: Matcher | None = None
    is_any_kind: bool = False
    """True if the expression chooses among requests, answers and notifications."""

    def is_for(self, message: Message, transport: str) -> bool:
        """True if the fault may be done to a message, chance and counting aside."""
        if message.kind == INVALID or not self.kind.fits(message, transport, self.value.means):
            return False
        if not self.is_any_kind and message.kind not in self.kind.kinds:
            return False
        if self.matches is not None:
            return self.matches(message)
        return (message.method if message.link is None else message.link.method) not in HANDSHAKE


def read(text: str, transport: str) -> Spec:
    """Read the value of a ``--fault``. Raises UsageError."""
    try:
        spec = _read(text)
    except FilterError as error:
        raise RuleError(f"--fault: {error}") from None
    except ValueError as error:
        raise UsageError(f"--fault {shown(text)}: {shown(str(error))}") from None
    if spec.kind.name == STATUS and transport == "stdio":
        raise UsageError(f"--fault {shown(text)}: a status is one of HTTP, and pipes have none")
    return spec


def read_value(text: str, reading: Any) -> Value:
    """Raises ValueError."""
    return Value(text, reading(text))


def kind_of(name: str) -> Kind:
    """The fault of that name. Raises ValueError."""
    if name not in KINDS:
        near = nearest(name, list(KINDS))
        raise ValueError(
            f"there is no fault {name or 'without a name'}{f'; did you mean {near}?' if near else ''} ({_LIST})"
        )
    return KINDS[name]


def _read(text: str) -> Spec:
    pieces = list(_pieces(text))
    name, equals, said = pieces[0].partition("=")
    kind = kind_of(name.strip())
    said = _value_in(said, kind)
    if equals and not said:
        raise ValueError("a value is missing after =")
    value = read_value(said or kind.default, kind.read)
    given: dict[str, str] = {}
    place = 0
    for before, piece in pairwise(pieces):
        place += len(before) + 1
        key, equals, said = piece.partition("=")
        key = key.strip()
        if key not in KEYS or not equals:
            raise ValueError(f'{piece} is none of p=, if=, after=, times=; a text with a comma stands in quotes, "…"')
        if key in given:
            raise ValueError(f"{key}= is given twice")
        given[key] = said.strip()
        if key == "if":
            _check(given[key], text, place + len(piece) - len(said.lstrip()))
    expression = given.get("if")
    fields = frozenset() if expression is None else fields_of(expression)
    return Spec(
        text, kind, value,
        _probability(given.get("p", "1")),
        values.whole(given.get("after", "0")),
        values.whole(given["times"]) if "times" in given else None,
        None if expression is None else matcher(expression),
        "kind" in fields,
    )  # fmt: skip


def _check(expression: str, text: str, at: int) -> None:
    """Raise FilterError, which points at the place in ``text``, where the expression begins at ``at``."""
    try:
        fields_of(expression)
    except FilterError as error:
        raise moved(error, text, at) from None


def _probability(text: str) -> float:
    try:
        number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise ValueError(f"p={text} is no probability: 0 to 1, or 0% to 100%")
    return number


def _pieces(text: str) -> Iterator[str]:
    r"""Split at commas that do not stand in quotes, in which ``\"`` is a quote."""
    piece, is_quoted, is_escaped = "", False, False
    for character in text:
        if character == "," and not is_quoted:
            yield piece
            piece = ""
            continue
        piece += character
        if character == '"' and not is_escaped:
            is_quoted = not is_quoted
        is_escaped = is_quoted and character == "\\" and not is_escaped
    if is_quoted:
        raise ValueError('a quote does not end; in quotes \\" stands for one: "say \\"hi\\""')
    yield piece


def _value_in(said: str, kind: Kind) -> str:
    """A value without the quotes around it, or around its text after a code."""
    said = said.strip()
    code, colon, text = said.partition(":")
    return f"{code}:{_unquoted(text)}" if colon and kind.has_text and '"' not in code else _unquoted(said)


def _unquoted(text: str) -> str:
    text = text.strip()
    if len(text) < 2 or text[0] != '"' or text[-1] != '"':
        return text
    return text[1:-1].replace('\\"', '"').replace("\\\\", "\\")
