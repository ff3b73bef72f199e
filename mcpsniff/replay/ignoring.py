"""What of a request does not count when a recorded one is looked for: the places that ``--ignore`` names.

They are written as everywhere (`mcpsniff.protocol.paths`). A path begins below the message if it begins with params,
result, error or ``**``, else below params, where requests have what they ask for.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from mcpsniff.errors import UsageError
from mcpsniff.protocol.paths import DEEP, Path, Pattern, Places, Wild, path_text
from mcpsniff.replay.script import Talk, is_answer

PARAMS: Final = "params"
_TOPS: Final = (PARAMS, "result", "error")
NODES: Final = 200_000
"""Values that are looked at to find out what a path names."""
_FEW: Final = 3


def ignore_path(text: str) -> Pattern:
    """Read what an ``--ignore`` of a served capture says, as a pattern below the message. Raises UsageError."""
    try:
        pattern = Pattern(text)
    except UsageError as error:
        raise UsageError(f"--ignore wants a path below params such as arguments.when: {error}") from None
    first = pattern.steps[0]
    if isinstance(first, int):
        raise UsageError(f"--ignore wants a path below params such as arguments.when, not {text!r}: params has names")
    if len(pattern.steps) == 1 and first in (*_TOPS, Wild(DEEP)):
        raise UsageError(f"--ignore wants a path below params such as arguments.when, not {text!r}: see --match")
    if first in _TOPS or first == Wild(DEEP):
        return pattern
    below = text.strip().removeprefix("$").removeprefix(".")
    return Pattern(f"{PARAMS}{'' if below.startswith('[') else '.'}{below}")


def without(params: dict[str, Any], ignored: Places) -> dict[str, Any]:
    """The params without what is ignored."""
    kept: dict[str, Any] = {}
    stack: list[tuple[Any, Any, Path]] = [(params, kept, (PARAMS,))]
    while stack:
        source, target, above = stack.pop()
        for step, item in source.items() if isinstance(source, dict) else enumerate(source):
            path = (*above, step)
            if ignored.at(path) is not None:
                continue
            value = item
            if isinstance(item, dict | list):
                value = {} if isinstance(item, dict) else []
                stack.append((item, value, path))
            if isinstance(target, dict):
                target[step] = value
            else:
                target.append(value)
    return kept


def unmatched(
    patterns: Iterable[Pattern], talks: Iterable[Talk], directions: tuple[str, ...] = ("c2s",)
) -> list[tuple[Pattern, list[str]]]:
    """The patterns that name nothing that was said in these directions, with places that may have been meant.

    In very long captures only the beginning is looked at; then what was not found there is not told.
    """
    left = {pattern: dict[str, None]() for pattern in patterns}
    for looked_at, path in enumerate(_places(talks, directions) if left else ()):
        if looked_at >= NODES:
            return []
        for pattern in [one for one in left if one.is_at(path)]:
            del left[pattern]
        for pattern, meant in left.items():
            if pattern.last == path[-1] and len(meant) < _FEW:
                meant[path_text(path)] = None
        if not left:
            break
    return [(pattern, list(meant)) for pattern, meant in left.items()]


def _places(talks: Iterable[Talk], directions: tuple[str, ...]) -> Iterator[Path]:
    """The places in what was asked and answered."""
    for talk in talks:
        for message in talk.messages:
            is_said = message.direction in directions and isinstance(message.body, dict)
            if is_said and (message.method or is_answer(message)):
                yield from _inside({top: message.body[top] for top in _TOPS if top in message.body})


def _inside(value: Any) -> Iterator[Path]:
    stack: list[tuple[Any, Path]] = [(value, ())]
    while stack:
        item, above = stack.pop()
        if isinstance(item, dict | list):
            for step, inner in item.items() if isinstance(item, dict) else enumerate(item):
                yield (*above, step)
                stack.append((inner, (*above, step)))
