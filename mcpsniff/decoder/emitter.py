"""Gives events their numbers and has them judged."""

from typing import Any

from mcpsniff.checks import Finding, Runner
from mcpsniff.protocol.conversation import Conversation
from mcpsniff.protocol.events import Close, Note, Stderr
from mcpsniff.protocol.exchanges import Exchange
from mcpsniff.protocol.http import Http
from mcpsniff.protocol.message import Message
from mcpsniff.wire.frames import Frame

type Event = Frame | Message | Exchange | Finding | Http | Stderr | Close | Note


class Emitter:
    """Appends events, numbered from 1, and the findings on them."""

    def __init__(self, runner: Runner) -> None:
        self.n = 0
        """The number of the latest event."""
        self.runner = runner

    def emit(self, out: list[Event], event: Stderr | Close | Note | Http | Exchange, t: int) -> None:
        """Number an event of the moment ``t`` (microseconds) and append it."""
        self.n += 1
        event.n = self.n
        event.t = t
        out.append(event)

    def judge(self, out: list[Event], item: Any, conversation: Conversation, at: int, t: int) -> None:
        """Append the findings on ``item``, which hang on event ``at``."""
        out.extend(self.runner.item(item, conversation, at, t))

    def tell(self, out: list[Event], event: Stderr | Close | Note | Http | Exchange, of: Conversation, t: int) -> None:
        """Number an event, append it and the findings on it."""
        self.emit(out, event, t)
        if isinstance(event, Http):
            out.extend(self.runner.http(event, of))
        else:
            self.judge(out, event, of, event.n, t)
