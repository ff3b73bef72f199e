"""Tells observing hooks what the decoder has found: event by event, each addon in its turn."""

import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from threading import current_thread, main_thread
from typing import Final

from mcpsniff.checks import Finding
from mcpsniff.decoder import Event
from mcpsniff.hooks.addon import Addon, Call
from mcpsniff.hooks.events import (
    Hook,
    McpClose,
    McpExchange,
    McpFinding,
    McpFrame,
    McpMessage,
    McpNotification,
    McpOpen,
    McpRequest,
    McpResponse,
    McpRewrite,
    McpStderr,
)
from mcpsniff.hooks.waiting import settled
from mcpsniff.protocol.conversation import Conversation
from mcpsniff.protocol.edits import Edit
from mcpsniff.protocol.events import Close, Stderr
from mcpsniff.protocol.exchange import Exchange
from mcpsniff.protocol.message import ERROR, NOTIFICATION, REQUEST, RESPONSE, Message
from mcpsniff.wire.frames import Frame

OF_KIND: Final[dict[str, type[McpRequest | McpResponse | McpNotification]]] = {
    REQUEST: McpRequest,
    RESPONSE: McpResponse,
    ERROR: McpResponse,
    NOTIFICATION: McpNotification,
}

type Find = Callable[[int], Conversation]
"""The conversation of a number."""


class Manager:
    """Has ``addons``, which are told of one capture after another, or of several at once."""

    def __init__(self, addons: Sequence[Addon]) -> None:
        self._addons = addons

    def running(self) -> None:
        """Something will be told."""
        for addon in self._addons:
            addon.begin()

    def done(self) -> list[str]:
        """Nothing more will be told. What is to be said."""
        return [sentence for addon in self._addons for sentence in addon.end()]

    def told_of(self, find: Find) -> "Told":
        """What tells of one capture, whose conversations ``find`` finds."""
        return Told(self._addons, find)


class Told:
    """Tells of the events of one capture."""

    def __init__(self, addons: Sequence[Addon], find: Find) -> None:
        self._addons = addons
        self._find = find
        self._open: set[int] = set()

    def feed(self, events: Iterable[Event]) -> None:
        """Call the hooks for these events."""
        with ExitStack() as stack:
            versions = [(addon, stack.enter_context(addon.version())) for addon in self._addons]
            for event in events:
                for hook in self._hooks(event):
                    arguments = hook.arguments()
                    for addon, version in versions:
                        for call in version.hooks.get(hook.name, ()):
                            _call(addon, hook.name, call, arguments)

    def _hooks(self, event: Event) -> Iterator[Hook]:
        if isinstance(event, Message):
            if event.conversation and event.conversation not in self._open:
                self._open.add(event.conversation)
                yield McpOpen(self._find(event.conversation))
            yield McpMessage(event)
            of_kind = OF_KIND.get(event.kind)
            if of_kind is not None:
                yield of_kind(event)
        elif isinstance(event, Frame):
            yield McpFrame(event)
        elif isinstance(event, Exchange):
            yield McpExchange(event)
        elif isinstance(event, Finding):
            yield McpFinding(event)
        elif isinstance(event, Edit):
            yield McpRewrite(event)
        elif isinstance(event, Stderr):
            yield McpStderr(event)
        elif isinstance(event, Close):
            yield McpClose(event)


def _call(addon: Addon, name: str, call: Call, arguments: Sequence[object]) -> None:
    try:
        settled(call(*arguments))
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and _is_interruptible():
            raise
        addon.complain(name, error)


def _is_interruptible() -> bool:
    """True where KeyboardInterrupt means that somebody has pressed Ctrl-C."""
    return current_thread() is main_thread() and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
