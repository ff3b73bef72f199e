"""Break points as an interceptor: what matches lies on the desk until somebody decides about it."""

import os
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, Final

from mcpsniff.capture.labels import shown
from mcpsniff.hooks.actions import HttpHead, Returned
from mcpsniff.hooks.editor import Lane
from mcpsniff.protocol.exchange import target_of
from mcpsniff.protocol.message import Message
from mcpsniff.proxy.breaks.desk import NAME, Desk
from mcpsniff.proxy.breaks.service import Service

_LONGEST: Final = 60
"""Characters of captured text in a line on stderr."""

type Point = tuple[str, Callable[[Message], bool]]
"""A filter expression, and the test that it means."""


class BreakPoints:
    """All break points of a session, and the desk where they hold messages."""

    name = NAME

    def __init__(self, points: Sequence[Point], desk: Desk, transport: str, say: Callable[[str], object]) -> None:
        self.desk = desk
        self.labels: list[str] = []
        """What the session's captures are called."""
        self.service: Service | None = None
        """By which others attach; None: nobody can."""
        self._points = list(points)
        self._transport = transport
        self._say = say
        self._matched = dict.fromkeys((expression for expression, _ in points), 0)
        self._is_told = self._has_begun = False
        self._lock = Lock()

    def edit(self, message: Message, lane: Lane) -> Returned:
        """Hold the message if a break point matches it."""
        try:
            return self._held(message, lane)
        except Exception as error:  # noqa: BLE001 - no means to wait, such as threads, or a bug: it passes
            self._say(f"a message passes that was to be held at a break point: {error!r}")
            return message

    def _held(self, message: Message, lane: Lane) -> Returned:
        for expression, matches in self._points:
            if matches(message):
                with self._lock:
                    self._matched[expression] += 1
                self._tell_how(message)
                return self.desk.hold(message, lane, expression)
        return message

    def edit_head(self, head: HttpHead) -> None:
        """Heads are not held."""

    def begin(self, remark: Callable[[str], object]) -> None:  # noqa: ARG002
        """Let those in who want to attach. Several captures may begin."""
        if not self._has_begun and self.service is not None:
            self._has_begun = True
            self.service.start()

    def end(self) -> Sequence[str]:
        """Let everything go; name the break points at which nothing was held."""
        self.desk.end()
        if self.service is not None:
            self.service.stop()
        return [f"--break {expression} held nothing" for expression, times in self._matched.items() if not times]

    def called(self, labels: Sequence[str]) -> None:
        """The session's captures are called so."""
        self.labels = list(labels)
        if self.service is not None:
            self.service.tell({"labels": self.labels})

    def describe(self) -> dict[str, Any]:
        """What those who attach are told first."""
        return {
            "pid": os.getpid(),
            "labels": self.labels,
            "transport": self._transport,
            "breaks": [expression for expression, _ in self._points],
            "timeout": self.desk.timeout,
        }

    def _tell_how(self, message: Message) -> None:
        """Say once how a held message is looked at, if nobody is attached."""
        if self._is_told or not self.desk.is_on or (self.service is not None and self.service.attached):
            return
        self._is_told = True
        link = message.link
        what = message.method or (f"the answer to {link.method}" if link is not None else f"a {message.kind}")
        target = target_of(message)
        what = shown(what if target is None else f"{what} {target}")
        cut = what if len(what) <= _LONGEST else what[: _LONGEST - 1] + "…"
        self._say(f"{cut} is held at a break point: mcpsniff attach {os.getpid()} lets you look at it")
