"""What may differ between two runs without meaning anything: the normalisers, by name.

`NORMALISERS` is the table of them, `STOCK` those that `mcpsniff replay --to`, `mcpsniff diff` and the pytest plugin use
unless told otherwise. `rules_of` makes `Rules` of names and paths as a person writes them; `mcpsniff.replay.compare`
compares by them.

Whatever is chosen, what the protocol makes up anew in each run is never compared by value: see `VOLATILE`.
"""

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from difflib import get_close_matches
from typing import Any, Final, NamedTuple

from mcpsniff.errors import UsageError
from mcpsniff.protocol.paths import Path, Pattern, Places, Step, path_text
from mcpsniff.replay.normalise_text import NUMBER, PATH, PORT, TIME, UUID, Scanner, Token

__all__ = ["NORMALISERS", "SETS", "STOCK", "VOLATILE", "Pairs", "Path", "Pattern", "Rules", "path_text", "rules_of"]

ORDER: Final = "order"

NORMALISERS: Final = {
    UUID: "UUIDs, also those of version 4 without dashes; which one stands for which is kept, and told if it changes",
    TIME: "moments (ISO 8601, HTTP dates, clock times with seconds, seconds to nanoseconds since 1970) and durations",
    PORT: "the port behind localhost, 127.0.0.1, 0.0.0.0 and [::1]",
    PATH: "the home folder, temporary folders with what is random or numbered in them, UUIDs and long hex in paths",
    ORDER: "the order of lists that are sets, such as tools, resources, prompts, and required or enum in a schema",
    NUMBER: "numbers within a tolerance: number=0.001 by so much, number=1% by so much of the recorded one",
}
"""Name and what it takes for equal."""
STOCK: Final = (UUID, TIME, PORT, PATH, ORDER)
"""What is used unless something else is asked for. Not `number`: how much a number may differ, only the user knows."""


class Set(NamedTuple):
    """A list whose order means nothing."""

    place: str
    """A pattern of paths, from the message down."""
    key: str | None
    """The member by which its elements are told apart; None for plain values."""


_SCHEMAS: Final = ("inputSchema", "outputSchema", "requestedSchema")

SETS: Final = (
    Set("result.tools", "name"),
    Set("result.resources", "uri"),
    Set("result.resourceTemplates", "uriTemplate"),
    Set("result.prompts", "name"),
    Set("result.roots", "uri"),
    Set("result.supportedVersions", None),
    Set("**.annotations.audience", None),
    *(Set(f"**.{schema}.**.{name}", None) for schema in _SCHEMAS for name in ("required", "enum", "type")),
)
"""The lists for which the specification or JSON Schema gives no meaning to the order."""


class Volatile(NamedTuple):
    """A value that the protocol makes up anew in each run."""

    place: str
    is_identity: bool = False
    """True if it names something: then which one stands for which is kept, as with UUIDs."""
    optional: bool = False
    """True if it means nothing either whether there is one."""


VOLATILE: Final = (
    Volatile("id", optional=True),
    Volatile("params.requestId"),
    Volatile("params.progressToken"),
    Volatile("*._meta.progressToken", optional=True),
    Volatile("*._meta.traceparent", optional=True),
    Volatile("*._meta.tracestate", optional=True),
    Volatile("*._meta.baggage", optional=True),
    Volatile('*._meta["io.modelcontextprotocol/subscriptionId"]'),
    Volatile('*._meta["io.modelcontextprotocol/related-task"].taskId', is_identity=True),
    Volatile("params.cursor"),
    Volatile("result.nextCursor"),
    Volatile("*.requestState"),
    Volatile("*.sessionId", is_identity=True),
    Volatile("*.taskId", is_identity=True),
    Volatile("result.task.taskId", is_identity=True),
    Volatile("result.tasks[*].taskId", is_identity=True),
    Volatile("params.elicitationId", is_identity=True),
)
"""Ids, tokens, cursors, sessions and trace context, by the place that the specification gives them."""

_VOLATILE: Final = Places(Pattern(volatile.place) for volatile in VOLATILE)
_HOW: Final = {volatile.place: volatile for volatile in VOLATILE}
_SETS: Final = Places(Pattern(one.place) for one in SETS)
_KEYS: Final = {one.place: one.key for one in SETS}
_WATCHED: Final = _VOLATILE.last | _SETS.last

EPOCH: Final = (1_400_000_000, 2_000_000_000)
"""Seconds since 1970 (2014 to 2033) that a number is taken to be a moment in."""


class Tolerance(NamedTuple):
    """How much a number may differ."""

    by: Decimal
    relative: bool = False
    """True if ``by`` is a part of the recorded number."""

    def allows(self, recorded: Decimal, live: Decimal) -> bool:
        """True if the two are equal enough."""
        if not (recorded.is_finite() and live.is_finite()):
            return recorded == live
        try:
            return abs(recorded - live) <= (abs(recorded) * self.by if self.relative else self.by)
        except ArithmeticError:  # beyond the exponents of a Decimal
            return False


PAIRS: Final = 100_000
"""Names of which it is remembered which one stands for which."""


class Pairs:
    """Which made-up name of the one run stands for which of the other: for all that is compared in one run.

    The rule: a name stands for the one that is met first in its place. If later another stands there, or if two names
    come to stand for one, that is told once, as a note: the answers themselves are not counted as different for it.
    Texts that are equal on both sides are not looked at.
    """

    def __init__(self) -> None:
        self.notes: list[str] = []
        """What was odd; captured text, in the order in which it was met."""
        self._live: OrderedDict[str, str] = OrderedDict()
        self._recorded: OrderedDict[str, str] = OrderedDict()
        self._told: set[tuple[str, str]] = set()

    def live(self, recorded: str) -> str | None:
        """What stands for a recorded name in the other run; None if it has not been met."""
        return self._live.get(recorded)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """The recorded names and what stands for them."""
        return iter(self._live.items())

    def meet(self, recorded: str, live: str, path: Path) -> None:
        """Take note that ``live`` stands where ``recorded`` stood."""
        before = self._live.setdefault(recorded, live)
        if before != live:
            self._tell(recorded, live, f"{recorded} was {before} before, and is {live} at {path_text(path)}")
            return
        other = self._recorded.setdefault(live, recorded)
        if other != recorded:
            self._tell(recorded, live, f"{live} stands for {other}, and for {recorded} at {path_text(path)}")
        for table in (self._live, self._recorded):
            if len(table) > PAIRS:
                table.popitem(last=False)

    def _tell(self, recorded: str, live: str, text: str) -> None:
        if (recorded, live) not in self._told and len(self._told) < PAIRS:
            self._told.add((recorded, live))
            self.notes.append(text)


@dataclass(frozen=True)
class Rules:
    """What is taken for equal. Made by `rules_of`; without arguments nothing is but what is `VOLATILE`."""

    names: frozenset[str] = frozenset()
    """The normalisers that are in force."""
    tolerance: Tolerance | None = None
    ignored: tuple[Pattern, ...] = ()
    """What is not looked at."""
    _scanner: Scanner = field(init=False, repr=False, compare=False)
    _places: Places = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Prepare what is asked often."""
        kinds = self.names | ({NUMBER} if self.tolerance is not None else set())
        object.__setattr__(self, "_scanner", Scanner(kinds))
        object.__setattr__(self, "_places", Places(self.ignored))

    def ignores(self, path: Path) -> bool:
        """True if what stands at ``path`` is not to be looked at."""
        return bool(self._places) and self._places.cover(path)

    def watches(self, step: Step) -> bool:
        """False if `is_hidden` and `is_set` are known to be false for every path that ends with ``step``."""
        return step in _WATCHED or step in self._places.last or self._places.has_wild

    def is_hidden(self, path: Path) -> bool:
        """True if the value at ``path``, of which nothing above is ignored, is not compared as such."""
        return self._places.at(path) is not None or self._volatile(path) is not None

    def may_lack(self, path: Path) -> bool:
        """True if it means nothing whether something stands at ``path``."""
        if self.ignores(path):
            return True
        found = _VOLATILE.at(path)
        return found is not None and _HOW[found.text].optional

    def is_set(self, path: Path) -> bool:
        """True if the order of the list at ``path`` means nothing."""
        return ORDER in self.names and _SETS.at(path) is not None

    def key_of(self, path: Path) -> str | None:
        """The member by which the elements of the set at ``path`` are told apart; None for a set of plain values."""
        found = _SETS.at(path)
        return None if found is None else _KEYS[found.text]

    def same_text(self, recorded: str, live: str, path: Path, pairs: Pairs) -> bool:
        """True if two texts that differ say the same by these rules."""
        if (volatile := self._volatile(path)) is not None:
            if volatile.is_identity:
                pairs.meet(recorded, live, path)
            return True
        found = self._scanner.pairs(recorded, live)
        if found is None:
            return False
        tokens = list(found)
        if not all(self._same_token(*both) for both in tokens):
            return False
        for one, other in tokens:
            if one.kind == UUID and one.text != other.text:
                pairs.meet(one.text.lower(), other.text.lower(), path)
        return True

    def same_number(self, recorded: Any, live: Any, path: Path) -> bool:
        """True if two numbers that differ (as such, or as 1 and 1.0 do) say the same by these rules."""
        if self._volatile(path) is not None:
            return True
        if TIME in self.names and (unit := _epoch_unit(recorded)) and unit == _epoch_unit(live):
            return True
        return self.tolerance is not None and self.tolerance.allows(Decimal(recorded), Decimal(live))

    def same_kinds(self, path: Path) -> bool:
        """True if at ``path`` any value will do, of whatever type."""
        return self.ignores(path) or self._volatile(path) is not None

    def text_form(self, text: str) -> str:
        """The text without what may differ in it; equal forms do not prove equality where numbers have a tolerance."""
        return self._scanner.form(text)

    def number_form(self, value: Any) -> object:
        """The same for a number: something to compare and hash."""
        if self.tolerance is not None:
            return "<number>"
        if TIME in self.names and (unit := _epoch_unit(value)):
            return f"<epoch {unit}>"
        return value

    def _volatile(self, path: Path) -> Volatile | None:
        found = _VOLATILE.at(path)
        return None if found is None else _HOW[found.text]

    def _same_token(self, one: Token, other: Token) -> bool:
        if one.kind != NUMBER or one.text == other.text:
            return True
        return self.tolerance is not None and self.tolerance.allows(Decimal(one.text), Decimal(other.text))


def _epoch_unit(number: Any) -> int:
    """1, 1,000, 1,000,000 or 1,000,000,000 to the second, if the number is a moment of our days; else 0."""
    first, last = EPOCH
    return next((unit for unit in (1, 10**3, 10**6, 10**9) if first * unit <= number < last * unit), 0)


_TOLERANCE: Final = re.compile(r"(\d{1,20}(?:\.\d{1,20})?|\.\d{1,20})(?:[eE](-?\d{1,2}))?(%?)")


def rules_of(names: Sequence[str] | None = None, ignore: Iterable[str] = ()) -> Rules:
    """The rules that a person asks for.

    ``names`` are normalisers as `NORMALISERS` has them, each may hold several with commas between; None means the stock
    set, an empty sequence none. ``number`` needs its tolerance, ``number=0.5`` or ``number=1%``; ``stock`` stands for
    the stock set, so that something can be added to it. ``ignore`` are patterns of paths (`mcpsniff.protocol.paths`).
    Raises UsageError where a name is unknown, a tolerance is none, or a path cannot be read.
    """
    chosen: set[str] = set(STOCK) if names is None else set()
    tolerance: Tolerance | None = None
    for entry in (part.strip() for name in names or () for part in name.split(",")):
        name, equals, value = entry.partition("=")
        if name == NUMBER:
            tolerance = _tolerance(value)
        elif equals or name not in (*NORMALISERS, "stock"):
            raise UsageError(_unknown(entry, name))
        else:
            chosen |= set(STOCK) if name == "stock" else {name}
    return Rules(frozenset(chosen), tolerance, tuple(Pattern(path) for path in ignore))


def _tolerance(text: str) -> Tolerance:
    found = _TOLERANCE.fullmatch(text.strip())
    if found is None:
        raise UsageError("number needs to know by how much: number=0.001, or number=1% of the recorded number")
    by = Decimal(found[1]).scaleb(int(found[2] or 0))
    return Tolerance(by / 100, relative=True) if found[3] else Tolerance(by)


def _unknown(entry: str, name: str) -> str:
    if name in NORMALISERS:
        return f"{entry}: only number takes a value"
    near = get_close_matches(name, [*NORMALISERS, "stock"], n=1)
    meant = f"; did you mean {near[0]}?" if near else ""
    return f"no such normaliser: {name or '(empty)'}{meant} There are {', '.join(NORMALISERS)}, and stock"
