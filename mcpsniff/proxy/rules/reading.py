"""Rules, from the options and the files that state them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from mcpsniff.errors import UsageError
from mcpsniff.hooks.editor import Interceptor
from mcpsniff.protocol.paths import Pattern, path_text
from mcpsniff.proxy.rules import texts
from mcpsniff.proxy.rules.blocking import Block, Respond
from mcpsniff.proxy.rules.changing import HeaderOfAll, Setting
from mcpsniff.proxy.rules.file import LeftOut, Renamed, rules_in
from mcpsniff.proxy.rules.matching import fields_of, matcher, quoted
from mcpsniff.proxy.rules.renaming import Renaming
from mcpsniff.proxy.rules.rule import Rule, Tally
from mcpsniff.proxy.rules.texts import RuleError
from mcpsniff.transcript.filter.error import FilterError
from mcpsniff.transcript.safe import visible


def rules_from(
    options: Mapping[str, Any], transport: str, say: Callable[[str], object] = lambda _: None
) -> list[Interceptor]:
    """The rules that ``options`` ask for: names of tools first, then files in their order, then the other options.

    So all rules call a tool as the client does. ``transport`` is stdio, http or forward; ``say`` is told which
    rules of files are left out there. Raises UsageError.
    """
    stated = list(
        chain(
            chain.from_iterable(rules_in(name, transport) for name in options["rules"]),
            _each("--map-tool", options["map_tool"], _map_tool),
            _each("--block", options["block"], _block),
            _each("--respond", options["respond"], _respond),
            _each("--set-argument", options["set_argument"], _set_argument),
            _each("--set-header", options["set_header"], lambda text: _set_header(text, transport)),
        )
    )
    renamed = [one for one in stated if isinstance(one, Renamed)]
    rules = [one for one in stated if isinstance(one, Rule)]
    left_out = [one.name for one in stated if isinstance(one, LeftOut)]
    if left_out:
        say(f"rules about headers are left out, since pipes have none: {'; '.join(left_out)}")
    if renamed:
        rules.insert(0, _renaming(renamed))
    return [*rules, Tally(rules)] if rules else []


def _each(option: str, values: Sequence[str], read: Callable[[str], Rule | Renamed]) -> Iterator[Rule | Renamed]:
    for value in values:
        try:
            yield read(value)
        except UsageError as error:
            raise RuleError(f"{option}: {error}") from None


def _block(text: str) -> Rule:
    expression = texts.expression(text)
    _no_latency(expression)
    return Block(f"--block {text}", expression)


def _respond(text: str) -> Rule:
    what, value = _answer_in(text)
    expression = texts.expression(what)
    _no_latency(expression)
    return Respond(f"--respond {what}", expression, texts.answering(value))


def _answer_in(text: str) -> tuple[str, Any]:
    """What is answered, and the answer: both may have ``=`` in them."""
    at, is_quoted, first = 0, False, -1
    while at < len(text):
        character = text[at]
        if is_quoted and character == "\\":
            at += 1
        elif character == '"':
            is_quoted = not is_quoted
        elif character == "=" and not is_quoted and text[at - 1 : at] not in (">", "<"):
            first = at
            break
        at += 1
    if first < 1:
        raise UsageError(f"{text[:40]} has no answer: tool:NAME={{...}} is one, or tool:NAME=@FILE")
    value = text[first + 1 :]
    return text[:first], texts.json_file(value[1:]) if value.startswith("@") else texts.json_value(value)


def _no_latency(expression: str) -> None:
    if "latency" in fields_of(expression):
        raise UsageError("only answers have a latency, and this is about requests")


def _map_tool(text: str) -> Renamed:
    name, equals, other = text.partition("=")
    if not name or not other:
        missing = "has no other name" if not equals or not other else "has no name"
        raise UsageError(f"{text[:40]} {missing}: NAME=OTHER")
    return Renamed(name, other, visible(f"--map-tool {name}={other}"))


def _renaming(renamed: list[Renamed]) -> Renaming:
    names: dict[str, str] = {}
    for one in renamed:
        if one.name in names:
            raise UsageError(f"{one.said}: the tool {one.name} has another name already, {names[one.name]}")
        if one.other in names.values():
            raise UsageError(f"{one.said}: another tool is called {one.other} already")
        names[one.name] = one.other
    return Renaming(names, {one.name: one.said for one in renamed})


def _set_argument(text: str) -> Rule:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(f"{text[:40]} has no value: [TOOL.]NAME=JSON")
    tool, dot, argument = name.rpartition(".")
    if (dot and not tool) or not argument:
        raise UsageError(f"{name[:40]} is no argument of a tool: [TOOL.]NAME=JSON")
    called = f" tool:{quoted(tool)}" if tool else ""
    place = Pattern(path_text(("params", "arguments", argument)))
    try:
        holds = matcher(f"kind:request method:tools/call{called}")
    except FilterError:
        raise UsageError(f"{tool[:40]}… is longer than any name of a tool") from None
    return Setting(f"--set-argument {name}", holds, [(place, texts.json_value(value, may_be_text=True))])


def _set_header(text: str, transport: str) -> Rule:
    if transport == "stdio":
        raise UsageError("pipes have no headers")
    name, _, value = text.partition("=")
    name, given = texts.header(name.strip(), value or None)
    return HeaderOfAll(f"--set-header {name}", {name: given})
