"""A request and what came of it: its states, its members, and how ids and tokens compare."""

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final, NamedTuple

from mcpsniff.protocol.ids import number_key
from mcpsniff.protocol.message import RESPONSE, IdKey, Message
from mcpsniff.protocol.revisions import LEGACY, METHODS

OPEN: Final = "open"
ANSWERED: Final = "answered"
ERRORED: Final = "errored"
INPUT_REQUIRED: Final = "input-required"
CANCELLED: Final = "cancelled"
ABANDONED: Final = "abandoned"

STATES: Final = (OPEN, ANSWERED, ERRORED, INPUT_REQUIRED, CANCELLED, ABANDONED)

OTHER: Final = {"c2s": "s2c", "s2c": "c2s"}
"""The way back."""

CHANGED: Final = "changed"
DROPPED: Final = "dropped"
ADDED: Final = "added"
ANSWERED_BY: Final = "answered"
HELD: Final = "held"
GARBLED: Final = "garbled"
"""Something left that the receiver cannot take for the message."""

ASKED: Final = "request"
ANSWER: Final = "answer"
CANCEL: Final = "cancel"
PROGRESS: Final = "progress"

TOUCHES_LIMIT: Final = 20
"""Touches of one exchange that are remembered: the first ones."""


class Touch(NamedTuple):
    """What somebody did to a part of an exchange on its way (`mcpsniff.protocol.edits`)."""

    n: int
    """The number of the edit."""
    part: str
    """``request``, ``answer``, ``cancel`` or ``progress``."""
    change: str
    """``changed``, ``dropped``, ``garbled``, ``added``, ``answered`` or ``held``."""
    by: str
    """Who did it; captured text."""
    why: str = ""
    """Likewise."""
    is_quiet: bool = False
    """True if it is too little to be shown beside the exchange."""


@dataclass(slots=True, eq=False)
class Exchange:
    """A request and what came of it. It changes while it is open and never after the decoder has emitted it."""

    request: int
    """The number of the request message."""
    conversation: int
    direction: str
    """The direction of the request."""
    id: str
    """The id's own JSON token."""
    key: IdKey
    method: str
    target: str | None
    revision: str | None
    t_request: int
    state: str = OPEN
    response: int | None = None
    progress: list[int] = field(default_factory=list)
    """The numbers of its progress notifications."""
    cancel: int | None = None
    t_end: int | None = None
    token: IdKey | None = None
    """The progress token it offered."""
    t_alive: int = 0
    """The last sign of life: the request or its latest progress."""
    ambiguous: bool = False
    """True if another request could be meant by its id."""
    unseen: bool = False
    """True if bytes were lost while it was open: its answer or its cancel may have been among them."""
    lost: bool = False
    """True if it is unseen since the capture lacks bytes: whoever counts must not take it for unanswered."""
    late: int | None = None
    """The answer that came after the cancel."""
    predecessor: "Exchange | None" = None
    """A cancelled exchange with the same id, whose answer may still come."""
    http: int | None = None
    """Over HTTP: the number of the HTTP exchange that carried the request."""
    connection: int | None = None
    """Over HTTP: the connection that carried the request."""
    authority: str = ""
    """Over HTTP: the server behind it, see `mcpsniff.protocol.http.HttpExchange`."""
    status: int | None = None
    """Over HTTP: the status of the response to the request that carried it, once there is one."""
    by: str | None = None
    """Who made the request, where mcpsniff or an addon did, and not the peer; captured text."""
    answered_by: str | None = None
    """Who answered it, where that is not the peer that was asked; captured text."""
    held_us: int = 0
    """For how many microseconds mcpsniff held the request before it went on."""
    touches: tuple[Touch, ...] = ()
    """What was done to it on the way."""
    undelivered: Touch | None = None
    """What was done to its answer so that who asked has not got it; None: it went on, as far as is known."""
    gave_up: int | None = None
    """When who asked cancelled it though it was answered (microseconds): that answer had not arrived there."""
    n: int = 0
    t: int = 0

    @property
    def is_refused(self) -> bool:
        """True if HTTP refused the request that carried it: the peer behind it need not have seen the message."""
        return self.status is not None and self.status >= 400

    @property
    def may_be_answered(self) -> bool:
        """True if no answer was seen, and it may stand in what the capture lacks."""
        return self.lost and self.state in (OPEN, ABANDONED) and not self.is_refused

    @property
    def latency_us(self) -> int | None:
        """Microseconds from request to answer, without those for which mcpsniff held it; None without an answer.

        An answer that somebody gave in the peer's place says nothing of how quick the peer is: None, too.
        """
        if self.response is None or self.t_end is None or self.answered_by is not None:
            return None
        return max(self.t_end - self.t_request - self.held_us, 0) if self.held_us else self.t_end - self.t_request

    @property
    def is_kept_back(self) -> bool:
        """True if the request did not go on, or not so that it could be understood."""
        return self.was_kept_back(None)

    def was_kept_back(self, n: int | None) -> bool:
        """Likewise, as far as events up to the one with the number ``n`` tell; None: all of them."""
        for touch in reversed(self.touches):
            if touch.part == ASKED and touch.change in (ADDED, DROPPED, GARBLED) and (n is None or touch.n <= n):
                return touch.change != ADDED
        return False

    @property
    def cause(self) -> Touch | None:
        """What was done to its request, cancel or answer that may be why it came to what it came to."""
        for touch in self.touches:
            if touch.part != PROGRESS:
                return touch
        return None

    def touch(self, touch: Touch) -> None:
        """Note what was done to it."""
        if len(self.touches) < TOUCHES_LIMIT:
            self.touches += (touch,)


def token_key(value: Any) -> IdKey | None:
    """A progress token or a requestId as pairing compares it; None if it is neither a string nor a number."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, str | int):
        return value
    if isinstance(value, Decimal):
        return number_key(str(value))
    if isinstance(value, float):
        return number_key(repr(value))
    return None


def target_of(message: Message) -> str | None:
    """What the call is about, such as the tool's name or the resource's URI."""
    method = METHODS.get(message.method or "")
    if method is None or method.target is None:
        return None
    value = message.params.get(method.target)
    if isinstance(value, dict):
        value = value.get("name", value.get("uri"))
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def state_after(message: Message, exchange: Exchange) -> str:
    """What an exchange has come to with this answer."""
    if message.kind != RESPONSE:
        return ERRORED
    # Before 2026-07-28 a result may have a resultType of its own, which means nothing.
    if message.result.get("resultType") == "input_required" and exchange.revision not in LEGACY:
        return INPUT_REQUIRED
    return ANSWERED
