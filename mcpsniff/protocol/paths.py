"""Places in a message: how a path is written, and patterns that name many places at once.

A path is a tuple of member names and indices, from the message down: ``("result", "content", 0, "text")`` is written
``result.content[0].text``. In a pattern ``*`` (or ``[*]``) stands for any one step and ``**`` for any number of steps;
a name that holds dots or brackets is written ``["io.modelcontextprotocol/serverInfo"]``.
"""

import json
import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from mcpsniff.errors import UsageError

type Step = str | int
type Path = tuple[Step, ...]

ANY: Final = "*"
DEEP: Final = "**"
_PLAIN: Final = re.compile(r"[^\W\d][\w$/-]*+")
_STEP: Final = re.compile(
    r"""\[(?:(?P<index>\d{1,9})|(?P<each>\*)|(?P<quoted>"(?:[^"\\]|\\.)*+"))\]|(?P<deep>\*\*)|(?P<any>\*)|(?P<name>[^.\[\]*"]++)"""
)


class Wild(NamedTuple):
    """A step of a pattern that stands for other steps: ``*`` or ``**``."""

    text: str


def path_text(path: Path) -> str:
    """A path as people write it; ``$`` for the message itself. Captured names are in it as they are."""
    pieces: list[str] = []
    for step in path:
        if isinstance(step, int):
            pieces.append(f"[{step}]")
        elif _PLAIN.fullmatch(step):
            pieces.append(f".{step}" if pieces else step)
        else:
            pieces.append(f"[{json.dumps(step, ensure_ascii=False)}]")
    return "".join(pieces) or "$"


class Pattern:
    """Some places, named by a pattern. Raises UsageError where ``text`` is none."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.steps = _steps(text)
        last = self.steps[-1]
        self.last: Step | None = None if isinstance(last, Wild) else last
        """The last step, if it is a name or an index."""

    def is_at(self, path: Path) -> bool:
        """True if ``path`` is one of the places."""
        return len(self.steps) in self._reached(path, stop=False)

    def covers(self, path: Path) -> bool:
        """True if ``path`` is one of the places, or lies beneath one."""
        return len(self.steps) in self._reached(path, stop=True)

    def _reached(self, path: Path, *, stop: bool) -> set[int]:
        """How many steps of the pattern may have been taken at the end of ``path``, or where all have been before."""
        steps, end = self.steps, len(self.steps)
        states = self._skipped({0})
        for step in path:
            if stop and end in states:
                return states
            states = self._skipped({at for state in states if state < end for at in _take(steps[state], step, state)})
            if not states:
                break
        return states

    def _skipped(self, states: set[int]) -> set[int]:
        """With the states that are reached when a ``**`` stands for nothing."""
        found = set(states)
        for first in states:
            state = first
            while state < len(self.steps) and self.steps[state] == Wild(DEEP):
                state += 1
                found.add(state)
        return found


def _take(wanted: Step | Wild, step: Step, state: int) -> tuple[int, ...]:
    if isinstance(wanted, Wild):
        return (state,) if wanted.text == DEEP else (state + 1,)
    return (state + 1,) if wanted == step and type(wanted) is type(step) else ()


def _steps(text: str) -> tuple[Step | Wild, ...]:
    rest = text.strip()
    at = 1 if rest.startswith("$") and rest[1:2] in ("", ".", "[") else 0
    steps: list[Step | Wild] = []
    while at < len(rest):
        dot = rest[at] == "."
        found = _STEP.match(rest, at + dot)
        if found is None or (dot and rest[at + 1 : at + 2] == "[") or (not dot and steps and rest[at] != "["):
            raise UsageError(f"{text}: not a path (at character {at + 1}); write it as in result.content[*].text")
        at = found.end()
        if found["index"] is not None:
            steps.append(int(found["index"]))
        elif found["quoted"] is not None:
            steps.append(_unquoted(found["quoted"], text))
        elif found["name"] is not None:
            steps.append(found["name"])
        else:
            steps.append(Wild(DEEP if found["deep"] else ANY))
    if not steps:
        raise UsageError("a path that is empty would ignore everything; write it as in result.content[*].text")
    return tuple(steps)


def _unquoted(token: str, text: str) -> str:
    try:
        return str(json.loads(token))
    except ValueError:
        raise UsageError(f"{text}: {token} is not a JSON string") from None


class Places:
    """Patterns that are asked together; what a path ends with decides first which of them are looked at."""

    def __init__(self, patterns: Iterable[Pattern]) -> None:
        self._by_last: dict[Step | None, list[Pattern]] = {}
        for pattern in patterns:
            self._by_last.setdefault(pattern.last, []).append(pattern)
        self._wild = self._by_last.get(None, [])
        self.has_wild = bool(self._wild)
        """True if a pattern ends with ``*`` or ``**``."""
        self.last = frozenset(last for last in self._by_last if last is not None)
        """What the other patterns end with."""

    def __bool__(self) -> bool:
        """True if there are any."""
        return bool(self._by_last)

    def at(self, path: Path) -> Pattern | None:
        """The first pattern that names exactly this path."""
        if not path:
            return None
        for pattern in self._by_last.get(path[-1], ()):
            if pattern.is_at(path):
                return pattern
        return next((pattern for pattern in self._wild if pattern.is_at(path)), None)

    def cover(self, path: Path) -> bool:
        """True if a pattern names this path or one above it."""
        return any(pattern.covers(path) for patterns in self._by_last.values() for pattern in patterns)
