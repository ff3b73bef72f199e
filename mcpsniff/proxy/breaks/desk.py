"""The desk: where messages lie that are held at break points, each with a thread that waits for a decision.

It knows no sockets: whoever shows what lies here looks on, and is told of what comes and goes.
"""

import time
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any, Final

from mcpsniff.hooks.actions import Returned
from mcpsniff.hooks.editor import Lane
from mcpsniff.protocol.message import Message
from mcpsniff.proxy.breaks.held import Decision, Held
from mcpsniff.proxy.breaks.orders import PASSED, OrderError, decision, passed

NAME: Final = "break"
"""What break points are called in records."""
LOOK: Final = 0.2
"""Seconds between two looks whether anybody is still there to whom a held message could go."""

type Fact = Mapping[str, Any]


class Desk:
    """What is held, by number. May be used by many threads at once."""

    def __init__(self, timeout: float | None = None) -> None:
        """``timeout``: seconds after which a message passes unchanged; None: never."""
        self.timeout = timeout
        self.is_on = True
        """False while nothing more is held."""
        self._held: dict[int, Held] = {}
        self._numbers = 0
        self._is_over = False
        self._lock = Lock()
        self._onlooker: Callable[[Fact], object] = lambda _fact: None

    def look_on(self, onlooker: Callable[[Fact], object]) -> None:
        """Let ``onlooker`` be told, in any thread, of each message that is held or is not any more."""
        self._onlooker = onlooker

    def hold(self, message: Message, lane: Lane, expression: str) -> Returned:
        """Hold a message until somebody decides, or nobody can any more, and return what an edit hook returns."""
        held = self._enter(message, lane, expression)
        if held is None:
            return message
        chosen = None
        try:
            with lane.holding():
                lane.held(NAME, f"at --break {expression}")
                chosen = self._wait(held)
        finally:
            self._leave(held, chosen)
        return chosen.returned

    def held(self) -> list[Held]:
        """What is held now, the oldest first."""
        with self._lock:
            return list(self._held.values())

    def text(self, number: int) -> bytes:
        """The JSON text of a held message. Raises OrderError."""
        return self._find(number).message.raw

    def decide(self, number: int, order: Fact) -> str:
        """Carry out an order about a held message; return what was done. Raises OrderError."""
        held = self._find(number)
        chosen = decision(held, order)
        if not self._settle(held, chosen):
            raise OrderError(_GONE.format(number))
        return chosen.how

    def pass_all(self, why: str = "") -> int:
        """Let everything go that is held; return how many that were."""
        return sum([self._settle(held, passed(held, why)) for held in self.held()])

    def end(self) -> None:
        """Let everything go, and hold nothing any more."""
        with self._lock:
            self._is_over = True
        self.pass_all("passed at the end of the session")

    def _enter(self, message: Message, lane: Lane, expression: str) -> Held | None:
        with self._lock:
            if self._is_over or not self.is_on:
                return None
            self._numbers += 1
            until = None if self.timeout is None else time.monotonic() + self.timeout
            held = self._held[self._numbers] = Held(self._numbers, message, lane, expression, until)
        self._onlooker(held.facts())
        return held

    def _wait(self, held: Held) -> Decision:
        while held.decision is None:
            left = LOOK if held.until is None else min(LOOK, max(held.until - time.monotonic(), 0.0))
            if held.decided.wait(left):
                continue
            if held.lane.is_gone:
                self._settle(held, passed(held, "given up, as its connection is gone"))
            elif held.until is not None and time.monotonic() >= held.until:
                self._settle(held, passed(held, "passed by --break-timeout"))
        return held.decision

    def _leave(self, held: Held, chosen: Decision | None) -> None:
        with self._lock:
            self._held.pop(held.number, None)
        self._onlooker({"gone": held.number, "how": PASSED if chosen is None else chosen.how})

    def _find(self, number: int) -> Held:
        with self._lock:
            held = self._held.get(number)
        if held is None or held.decision is not None:
            raise OrderError(_GONE.format(number))
        return held

    def _settle(self, held: Held, chosen: Decision) -> bool:
        """Decide about a message, unless that was done already."""
        with self._lock:
            if held.decision is not None:
                return False
            held.decision = chosen
        held.decided.set()
        return True


_GONE: Final = "{} is not held, or not any more"
