"""Values that a server makes up and a client hands back: the live one in the place of the recorded one.

These are only those for which the specification says so: cursors (pagination), task ids (2025-11-25 tasks), and
``requestState`` (2026-07-28, multi round-trip requests). Sessions and event ids belong to the transport.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from mcpsniff.protocol.message import Message
from mcpsniff.protocol.revisions import META_PREFIX
from mcpsniff.replay.spelling import Path, value_at

CURSOR: Final[Path] = ("params", "cursor")
TASK: Final[Path] = ("params", "taskId")
STATE: Final[Path] = ("params", "requestState")
_RELATED: Final = ("_meta", META_PREFIX + "related-task", "taskId")
RELATED: Final[Path] = ("params", *_RELATED)
RELATED_RESULT: Final[Path] = ("result", *_RELATED)
SUBSCRIBED_TASKS: Final[Path] = ("params", "notifications", "taskIds")
INPUT: Final[Path] = ("params", "inputResponses")

_NAMES: Final = {"cursor": "the cursor", "task": "the task", "state": "the requestState"}

type _Kind = tuple[str, str]
"""What it is, and for a cursor of which list."""


class MissingValueError(Exception):
    """A message hands back what the live server has not given; the text says what."""


class Values:
    """What stands for what, in one conversation."""

    def __init__(self) -> None:
        self._live: dict[tuple[_Kind, str], str | None] = {}
        """By kind and recorded value: the live one; None if the live server gave none in its place."""
        self._inputs: dict[str, str] = {}
        """Names of requests for input, recorded and live, as far as they differ."""

    def learn(self, method: str, recorded: Message, live: Message) -> None:
        """Two answers to the same request have come: note what the live one has in the place of the recorded."""
        there = dict(given(method, recorded.result))
        here = dict(given(method, live.result))
        for place, value in there.items():
            key = (place[0], value)
            if key not in self._live or self._live[key] is None:
                self._live[key] = here.get(place)
        self._learn_inputs(recorded.result.get("inputRequests"), live.result.get("inputRequests"))

    def lose(self, method: str, recorded: Message) -> None:
        """There is no live answer to a request whose recorded answer has given something."""
        for place, value in given(method, recorded.result):
            self._live.setdefault((place[0], value), None)

    def _learn_inputs(self, recorded: Any, live: Any) -> None:
        """Requests for input are answered under the names that the server has chosen; the same ones in their order."""
        if not (isinstance(recorded, dict) and isinstance(live, dict)):
            return
        free = [name for name in live if name not in recorded]
        for name, asked in recorded.items():
            if name not in live:
                same = [other for other in free if _method(live[other]) == _method(asked)]
                if same:
                    self._inputs[name] = same[0]
                    free.remove(same[0])

    def tokens(self, message: Message) -> dict[Path, str]:
        """What is to stand in a message of the client, by place, as JSON tokens. Raises MissingValueError."""
        found: dict[Path, str] = {}
        if not self._live and not self._inputs:
            return found
        method = message.method or ""
        for path, kind in ((CURSOR, ("cursor", method)), (TASK, _TASK), (STATE, _STATE), (RELATED, _TASK)):
            self._replace(found, message, path, kind)
        self._replace(found, message, RELATED_RESULT, _TASK)
        tasks = value_at(message.body, SUBSCRIBED_TASKS)
        if isinstance(tasks, list) and any((_TASK, task) in self._live for task in tasks if isinstance(task, str)):
            live = [self._live.get((_TASK, task)) or task if isinstance(task, str) else task for task in tasks]
            found[SUBSCRIBED_TASKS] = orjson.dumps(live).decode()
        given = value_at(message.body, INPUT)
        if isinstance(given, dict) and any(name in self._inputs for name in given):
            renamed = {self._inputs.get(name, name): value for name, value in given.items()}
            found[INPUT] = orjson.dumps(renamed).decode()
        return found

    def _replace(self, found: dict[Path, str], message: Message, path: Path, kind: _Kind) -> None:
        value = value_at(message.body, path)
        if not isinstance(value, str) or (kind, value) not in self._live:
            return
        live = self._live[kind, value]
        if live is None:
            raise MissingValueError(f"it hands back {_NAMES[kind[0]]} of an earlier answer, and there is none now")
        if live != value:
            found[path] = orjson.dumps(live).decode()


_TASK: Final[_Kind] = ("task", "")
_STATE: Final[_Kind] = ("state", "")


def given(method: str, result: Mapping[str, Any]) -> Iterator[tuple[tuple[_Kind, int], str]]:
    """What an answer gives that a client may hand back, with its place."""
    task = result.get("task")
    candidates: list[tuple[tuple[_Kind, int], Any]] = [
        ((("cursor", method), 0), result.get("nextCursor")),
        ((_STATE, 0), result.get("requestState")),
        ((_TASK, 0), task.get("taskId") if isinstance(task, dict) else result.get("taskId")),
    ]
    tasks = result.get("tasks")
    if isinstance(tasks, list):
        candidates += [
            ((_TASK, at + 1), one.get("taskId")) for at, one in enumerate(tasks[:1000]) if isinstance(one, dict)
        ]
    return ((place, value) for place, value in candidates if isinstance(value, str))


def _method(asked: Any) -> Any:
    return asked.get("method") if isinstance(asked, dict) else None
