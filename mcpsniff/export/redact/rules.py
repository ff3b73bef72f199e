"""What is to be removed: as the user says it, and as it is applied."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from mcpsniff.errors import UsageError
from mcpsniff.export.redact.fields import SCHEMA_PARENTS, is_definition
from mcpsniff.export.redact.matcher import SHORTEST
from mcpsniff.export.redact.presets import DEFAULT, EVERY, NONE, PRESETS, Form
from mcpsniff.export.redact.values import is_word

type Telling = Callable[[str], bool]

ANY: Final = "*"
ANY_DEPTH: Final = "**"


def _nothing(_name: str) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Names:
    """Which names announce a secret, by what they are names of. Given, so that it is the same as for the recorder."""

    member: Telling = _nothing
    """A member of a JSON-RPC message, or what free text says."""
    credential: Telling = _nothing
    """A member of any other JSON text, or a field of a form."""
    header: Telling = _nothing
    key: Telling = _nothing
    """A key in the query or fragment of a URL."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What is to be removed."""

    keys: frozenset[str] = frozenset()
    paths: tuple[tuple[str, ...], ...] = ()
    values: tuple[bytes, ...] = ()
    patterns: tuple[str, ...] = ()
    presets: tuple[str, ...] = DEFAULT
    names: Names = field(default_factory=Names)
    seed: str | None = None
    words: tuple[tuple[str, str], ...] = ()
    """Keys, as `keys` has them, and as they were said."""

    @property
    def forms(self) -> tuple[Form, ...]:
        """The forms of the presets."""
        return tuple(form for name in self.presets for form in PRESETS[name])

    @property
    def by_name(self) -> bool:
        """Whether telling names count."""
        return "names" in self.presets

    def is_key(self, name: str) -> bool:
        """Say whether the user named this key."""
        return joined(name) in self.keys

    def key_of(self, path: tuple[str, ...]) -> str | None:
        """The innermost name in ``path`` that the user named, unless there is its definition in a schema."""
        if not self.keys:
            return None
        for at in range(len(path) - 1, -1, -1):
            if self.is_key(path[at]) and not is_definition(path, at, values=True):
                return path[at]
        return None

    def paths_to(self, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        """The rules that name ``path``, or what it lies within."""
        if not self.paths:
            return
        alone = path[1:] if path and path[0].isdigit() else None  # an element of a batch
        is_schema = any(is_definition(path, at, values=True) for at in range(1, len(path)))
        for rule in self.paths:
            if is_schema and ANY_DEPTH in rule and SCHEMA_PARENTS.isdisjoint(rule):
                continue  # `**.city` is the values of that name, not what the schema of a tool says of it
            if _fits(rule, path) or (alone is not None and _fits(rule, alone)):
                yield rule


def make_rules(
    *,
    keys: tuple[str, ...] = (),
    paths: tuple[str, ...] = (),
    values: tuple[str, ...] = (),
    patterns: tuple[str, ...] = (),
    presets: tuple[str, ...] = (),
    names: Names | None = None,
    seed: str | None = None,
) -> Rules:
    """Return the rules that these words ask for. Raises UsageError where one cannot be applied."""
    for word, what in ((keys, "--key"), (paths, "--path"), (values, "--value"), (patterns, "--pattern")):
        if not all(word):
            raise UsageError(f"{what} is empty, which would be everywhere")
    for value in values:
        if len(value.encode()) < SHORTEST:
            raise UsageError(f"--value needs at least {SHORTEST} bytes, as shorter ones are in everything; use --key")
        if is_word(value):
            raise UsageError("--value is a word of the protocol, or of what stands for values; use --path or --key")
    for pattern in patterns:
        try:
            re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as error:
            raise UsageError(f"--pattern is no regular expression: {error}") from None
    return Rules(
        frozenset(map(joined, keys)),
        tuple(_steps(path) for path in paths),
        tuple(value.encode("utf-8", "surrogateescape") for value in values),
        patterns,
        _presets(presets),
        names or Names(),
        seed,
        tuple((joined(key), key) for key in keys),
    )


def joined(name: str) -> str:
    """A name without what spells it in one way or the other: ``X-Api-Key`` and ``x_api_key`` are one."""
    return name.lower().replace("-", "").replace("_", "").replace(".", "")


def _presets(words: tuple[str, ...]) -> tuple[str, ...]:
    if not words:
        return DEFAULT
    chosen = tuple(part.strip() for word in words for part in word.split(",") if part.strip())
    if NONE in chosen:
        if len(chosen) > 1:
            raise UsageError("--preset none is no preset at all, and cannot be with others")
        return ()
    for name in chosen:
        if name not in PRESETS and name != EVERY:
            raise UsageError(f"no such preset: {name}; there are {', '.join([*PRESETS, EVERY, NONE])}")
    return tuple(PRESETS) if EVERY in chosen else tuple(dict.fromkeys(chosen))


def _steps(path: str) -> tuple[str, ...]:
    steps = tuple(path.removeprefix("$.").replace("[", ".").replace("]", "").split("."))
    if not all(steps) or steps.count(ANY_DEPTH) > 4:
        raise UsageError("--path is names with dots between them, such as params.arguments.key, or params.*.key")
    return steps


def _fits(rule: tuple[str, ...], path: tuple[str, ...]) -> bool:
    """Say whether ``path`` is one that ``rule`` names, or lies below it."""
    if not rule:
        return True
    if rule[0] == ANY_DEPTH:
        return any(_fits(rule[1:], path[start:]) for start in range(len(path) + 1))
    return bool(path) and rule[0] in (ANY, path[0]) and _fits(rule[1:], path[1:])
