"""A message that is held at a break point, and what is decided about it."""

import time
from dataclasses import dataclass, field
from threading import Event
from typing import Any

from mcpsniff.hooks.actions import Returned
from mcpsniff.hooks.editor import Lane
from mcpsniff.protocol.exchange import target_of
from mcpsniff.protocol.message import Message


@dataclass(slots=True, frozen=True)
class Decision:
    """What becomes of a held message."""

    how: str
    """In a few words, for those who look on: ``passed``, ``dropped``, ``answered``, ``changed``, ``passed by …``."""
    returned: Returned


@dataclass(slots=True, eq=False)
class Held:
    """A message, the thread of whose direction waits until ``decided`` is set."""

    number: int
    message: Message
    lane: Lane
    expression: str
    """That of the break point."""
    until: float | None
    """When it passes by itself, on the monotonic clock; None: never."""
    since: float = field(default_factory=time.monotonic)
    decision: Decision | None = None
    decided: Event = field(default_factory=Event)

    def facts(self) -> dict[str, Any]:
        """What those who look on are told of it. All of it is captured text."""
        message, now = self.message, time.monotonic()
        asked = message.link
        return {
            "held": self.number,
            "dir": message.direction,
            "kind": message.kind,
            "method": message.method or (asked.method if asked is not None else None),
            "target": target_of(message) or (asked.target if asked is not None else None),
            "id": message.id,
            "bytes": len(message.raw),
            "conversation": message.conversation,
            "break": self.expression,
            "age": round(now - self.since, 3),
            "left": None if self.until is None else round(max(self.until - now, 0.0), 3),
        }
