"""Read a file of rules: TOML, a table ``[[rule]]`` for each. docs/rules.md is the reference."""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from mcpsniff.errors import UsageError
from mcpsniff.proxy.rules import texts
from mcpsniff.proxy.rules.blocking import Block, Dropping, Respond
from mcpsniff.proxy.rules.changing import Delaying, HeaderOfAll, HeaderOfMessages, Removing, Replacing, Setting
from mcpsniff.proxy.rules.matching import fields_of, matcher
from mcpsniff.proxy.rules.rule import Rule, Turns
from mcpsniff.proxy.rules.texts import RuleError
from mcpsniff.transcript.filter.error import nearest
from mcpsniff.transcript.safe import visible

_RULE: Final = "rule"
_MAP: Final = "map"
_HEADER: Final = "header"
_WITHOUT_WHEN: Final = (_MAP, _HEADER)
_BESIDES: Final = ("name", "when", "why", "times", "after")
_LONG_STRING: Final = re.compile(
    r'''"""(?:\\.|[^\\])*?"""(?!")|'{3}.*?'{3}(?!')|"(?:\\.|[^"\\\n])*"|'[^'\n]*'|\#[^\n]*''', re.DOTALL
)
"""A comment, or a string: what a string of several lines says is no rule."""
_NO_NEWLINE: Final = re.compile(r"[^\n]")
_HEAD: Final = re.compile(r"^[ \t]*\[\[[ \t]*(?:rule|\"rule\"|'rule')[ \t]*\]\]", re.MULTILINE)
_LARGEST: Final = 16 * 1024 * 1024


class Renamed(NamedTuple):
    """A tool that the client knows by another name."""

    name: str
    other: str
    said: str
    """What this is called in records and at the end."""


class LeftOut(NamedTuple):
    """A rule that has nothing to act on where there is no HTTP."""

    name: str


@dataclass(frozen=True, slots=True)
class Stated:
    """A rule as it is stated: what all of them may have, and the value of its action."""

    name: str
    when: str
    value: Any
    turns: Turns
    why: str
    folder: Path
    """Where the names of files begin."""


def rules_in(name: str, transport: str) -> Iterator[Rule | Renamed | LeftOut]:
    """The rules in a file, in order. Raises RuleError, which names file and line."""
    path = texts.file_at(name)
    try:
        with path.open("rb") as file:
            raw = file.read(_LARGEST + 1)
        text = raw.decode("utf-8-sig") if len(raw) <= _LARGEST else ""
    except UnicodeDecodeError as error:
        raise RuleError(f"{name} is not UTF-8, at byte {error.start + 1}") from None
    except (OSError, ValueError) as error:
        raise RuleError(f"{name} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(raw) > _LARGEST:
        raise RuleError(f"{name} is larger than any file of rules")
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RuleError(f"{name} is not TOML: {error}") from None
    except ValueError:  # the standard library reads integers of 4,300 digits at most
        raise RuleError(f"{name} has a number with more digits than can be read, which are 4,300") from None
    except RecursionError:
        raise RuleError(f"{name} is nested too deeply") from None
    text = _LONG_STRING.sub(_blank, text)
    stated = document.pop(_RULE, [])
    for other in document:
        raise RuleError(
            f"{_place(name, text, 0, other)}: a file of rules has no {visible(other)}; a rule begins with [[rule]]"
        )
    if not isinstance(stated, list) or not all(isinstance(table, dict) for table in stated):
        raise RuleError(f"{_place(name, text, 0, _RULE)}: a rule is a table that begins with [[rule]]")
    if not stated:
        raise RuleError(f"{name} has no rules; one begins with [[rule]]")
    for number, table in enumerate(stated, 1):
        yield from _rules(table, path, partial(_place, name, text, number), number, transport)


def _rules(
    table: dict[str, Any], path: Path, place: Callable[[str], str], number: int, transport: str
) -> Iterator[Rule | Renamed | LeftOut]:
    actions = [key for key in table if key in ACTIONS or key == _MAP]
    known = [*ACTIONS, _MAP, *_BESIDES]
    for key in table:
        if key not in known:
            meant = nearest(key, known)
            raise RuleError(f"{place(key)}: a rule has no {visible(key)}" + f"; did you mean {meant}?" * bool(meant))
    if len(actions) != 1:
        what = f"{actions[0]} and {actions[1]}: a rule does one thing" if actions else "the rule does nothing"
        raise RuleError(f"{place(actions[1] if actions else '')}: {what}; it is one of {', '.join((*ACTIONS, _MAP))}")
    (action,) = actions
    name = _text(table, "name", place) or f"{path.name} #{number}"
    if action == _MAP:
        yield from _renamed(table, name, place)
        return
    if "when" not in table and action not in _WITHOUT_WHEN:
        raise RuleError(f'{place(action)}: the rule does not say when: a filter expression such as when = "tool:echo"')
    when = _text(table, "when", place)
    with _at(place("when")):
        if "when" in table:
            when = texts.expression(when)
            fields = fields_of(when)
            if "latency" in fields and action in ("block", "respond"):
                raise UsageError(f"{action} acts on requests, and only answers have a latency")
    turns = Turns(_whole(table, "after", 0, place) or 0, _whole(table, "times", 1, place))
    stated = Stated(name, when, table[action], turns, _text(table, "why", place), path.parent)
    with _at(place(action)):
        rule = ACTIONS[action](stated)
        yield LeftOut(rule.name) if action == _HEADER and transport == "stdio" else rule


# -- actions -----------------------------------------------------------------------------------------------------------


def _block(stated: Stated) -> Rule:
    if stated.value is not True and not (isinstance(stated.value, str) and stated.value):
        raise UsageError("block is true, or a text for whoever asks")
    text = "" if stated.value is True else stated.value
    return Block(stated.name, stated.when, text=text, turns=stated.turns, why=stated.why)


def _drop(stated: Stated) -> Rule:
    if stated.value is not True:
        raise UsageError("drop is true")
    return Dropping(stated.name, matcher(stated.when), turns=stated.turns, why=stated.why)


def _respond(stated: Stated) -> Rule:
    value = stated.value
    if isinstance(value, str) and value.startswith("@"):
        value = texts.json_file(value[1:], stated.folder)
    _as_json(value)
    return Respond(stated.name, stated.when, texts.answering(value), turns=stated.turns, why=stated.why)


def _set(stated: Stated) -> Rule:
    table = _table(stated.value, "set", '{ "params.arguments.city" = "Paris" }')
    values = [(texts.place(place), _as_json(value)) for place, value in _flat(table)]
    return Setting(stated.name, matcher(stated.when), values, turns=stated.turns, why=stated.why)


def _remove(stated: Stated) -> Rule:
    places = [stated.value] if isinstance(stated.value, str) else stated.value
    if not isinstance(places, list) or not places:
        raise UsageError('remove is a place such as "params.arguments.city", or a list of them')
    patterns = [texts.place(place) for place in places]
    return Removing(stated.name, matcher(stated.when), patterns, turns=stated.turns, why=stated.why)


def _replace(stated: Stated) -> Rule:
    table = _table(stated.value, "replace", '{ "old text" = "new text" }')
    if not all(old and isinstance(new, str) for old, new in table.items()):
        raise UsageError('replace has texts: { "old text" = "new text" }')
    return Replacing(stated.name, matcher(stated.when), table, turns=stated.turns, why=stated.why)


def _delay(stated: Stated) -> Rule:
    us = texts.microseconds(stated.value)
    return Delaying(stated.name, matcher(stated.when), us, turns=stated.turns, why=stated.why)


def _header(stated: Stated) -> Rule:
    table = _table(stated.value, "header", '{ X-Name = "value", Other = false }')
    headers = dict(texts.header(name, value) for name, value in table.items())
    if stated.when:
        return HeaderOfMessages(stated.name, matcher(stated.when), headers, turns=stated.turns, why=stated.why)
    return HeaderOfAll(stated.name, headers, turns=stated.turns)


ACTIONS: Final[Mapping[str, Callable[[Stated], Rule]]] = {
    "block": _block,
    "drop": _drop,
    "respond": _respond,
    "set": _set,
    "remove": _remove,
    "replace": _replace,
    "delay": _delay,
    _HEADER: _header,
}
"""What a rule may do, besides ``map``; by the key that says so."""


def _renamed(table: dict[str, Any], name: str, place: Callable[[str], str]) -> Iterator[Renamed]:
    for key in ("when", "after", "times", "why"):
        if key in table:
            raise RuleError(f"{place(key)}: map is for all calls and lists; there is no {key} to it")
    with _at(place(_MAP)):
        names = _table(table[_MAP], _MAP, '{ echo = "say" }')
        for own, other in names.items():
            if not own or not isinstance(other, str) or not other:
                raise UsageError('map has names of tools: { echo = "say" }')
            yield Renamed(own, other, name if len(names) == 1 else f"{name} {own}={other}")


# -- values ------------------------------------------------------------------------------------------------------------


def _table(value: Any, what: str, example: str) -> dict[str, Any]:
    if not isinstance(value, dict) or not value:
        raise UsageError(f"{what} is a table such as {example}")
    return value


def _flat(table: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Places and values. Without quotes TOML reads ``params.arguments.city = 1`` as tables in tables."""
    for place, value in table.items():
        if place in ("params", "result", "error") and isinstance(value, dict):
            raise UsageError(f'put the place in quotes: "{place}.{next(iter(value), "…")}" = …')
        yield place, value


def _as_json(value: Any) -> Any:
    if any(hasattr(one, "isoformat") for one in texts.all_in(value)):
        raise UsageError("JSON has no dates and times; put it in quotes")
    return texts.sayable(value)


def _text(table: dict[str, Any], key: str, place: Callable[[str], str]) -> str:
    value = table.get(key, "")
    if not isinstance(value, str) or (key in table and not value.strip()):
        raise RuleError(f"{place(key)}: {key} is a text")
    return value


def _whole(table: dict[str, Any], key: str, least: int, place: Callable[[str], str]) -> int | None:
    value = table.get(key)
    if value is None:
        return None
    if type(value) is not int or value < least:
        raise RuleError(f"{place(key)}: {key} is a whole number, at least {least}")
    return value


# -- places of faults --------------------------------------------------------------------------------------------------


@contextmanager
def _at(place: str) -> Iterator[None]:
    """Say of what is wrong where it stands."""
    try:
        yield
    except RuleError:
        raise
    except UsageError as error:
        raise RuleError(f"{place}: {error}") from None


def _blank(found: re.Match[str]) -> str:
    """A string of several lines without what it says, which may look like a rule; all else as it is."""
    text = found[0]
    return _NO_NEWLINE.sub(" ", text) if text.startswith(('"""', "'''")) else text


def _place(name: str, text: str, number: int, key: str) -> str:
    """File and line of a key of the rule with this number (0: of the file); of the rule where the key is not found."""
    heads = [found.start() for found in _HEAD.finditer(text)]
    start = 0 if number == 0 else heads[number - 1] if number <= len(heads) else len(text)
    stop = heads[number] if 0 < number < len(heads) else len(text)
    if start == len(text):
        return f"{name}, rule {number}"
    spelt = re.escape(key)
    found = re.compile(rf"^[ \t]*(?:\[+[ \t]*(?:rule\.)?)?[\"']?{spelt}[\"']?[ \t]*[=.\]]", re.MULTILINE).search(
        text, start, stop
    )
    at = start if found is None or not key else found.start()
    return f"{name}, line {text.count('\n', 0, at) + 1}"
