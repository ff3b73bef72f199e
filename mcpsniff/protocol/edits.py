"""What somebody changed on the way: what left in the place of what arrived, or besides it.

A capture holds what arrived; `rewrite` records say what left, `hold` records for how long something was held. Pairing
and checks go by what arrived. What an edit has to do with an exchange is noted on that (`Touch`), so that what follows
from it is not taken for a fault of a peer.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mcpsniff.capture.records import AND
from mcpsniff.protocol.events import Note
from mcpsniff.protocol.exchange import ADDED, ANSWERED_BY, CHANGED, DROPPED, HELD, Exchange, Touch
from mcpsniff.protocol.jsonrpc import ENVELOPE_FLAWS
from mcpsniff.protocol.message import INVALID, Message
from mcpsniff.wire.frames import INVALID_UTF8

if TYPE_CHECKING:
    from mcpsniff.protocol.http import HttpExchange

_HARMLESS: Final = ("unknown-member", "id-integral-float", "error-id-null", "error-id-absent")
"""Flaws of the envelope that peers live with."""
HEAD: Final = "head"
BYTES: Final = "bytes"

CHANGES: Final = {
    CHANGED: "something else left in the place of a message",
    DROPPED: "nothing left in its place",
    ADDED: "something left that had not arrived",
    ANSWERED_BY: "an answer left that its server, or client, did not give",
    HEAD: "the head of an HTTP request or response left changed",
    BYTES: "bytes left changed that are neither of a message nor of a head, such as the size of a chunk",
    HELD: "a message left as it came, but later",
}
"""What an edit may be, and what that means."""

__all__ = [
    "ADDED",
    "ANSWERED_BY",
    "BYTES",
    "CHANGED",
    "CHANGES",
    "DROPPED",
    "HEAD",
    "HELD",
    "Edit",
    "Touch",
    "spoilt",
]


@dataclass(slots=True)
class Edit(Note):
    """A record of what somebody else than the recorder did: a `rewrite`, or a `hold`."""

    change: str = CHANGED
    """A key of CHANGES."""
    direction: str = "s2c"
    """Where what left went: ``c2s`` to the server."""
    of: Message | None = None
    """The message in whose place it left, or that was held; of a batch, the batch. None: there is none, or it is no
    longer remembered."""
    left: tuple[Message, ...] = ()
    """What left, as far as it is messages, or was meant to be; a batch and its elements one by one. Their ``n`` is that
    of the edit."""
    link: Exchange | None = None
    """The exchange that it has to do with."""
    members: tuple[str, ...] = ()
    """Of a changed message or head: the members or headers that are not as they were; captured text."""
    lost: tuple[Exchange, ...] = ()
    """Those whose answer does not reach who asked, as far as this edit goes: it was dropped, cut, or is held."""
    found: tuple[Exchange, ...] = ()
    """Those whose answer did not before, and does with this edit."""
    http: "HttpExchange | None" = None
    """Over HTTP: the exchange that carries it."""
    conversation: int = 0
    is_quiet: bool = False
    """True for what only makes another edit true (lengths, chunk sizes, routing headers), and for a hold of less than
    `mcpsniff.capture.records.BRIEF_US` for which nobody gives a reason."""

    @property
    def by(self) -> str:
        """Who did it; captured text."""
        return _text(self.fields.get("by"))

    @property
    def names(self) -> tuple[str, ...]:
        """The same, one by one where it was several."""
        return tuple(filter(None, self.by.split(AND)))

    @property
    def why(self) -> str:
        """Why, in words; captured text, empty if there are none."""
        return _text(self.fields.get("why"))

    @property
    def is_fault(self) -> bool:
        """True if a fault is among it that was asked for (``--fault``)."""
        return any(one.startswith("fault ") for one in self.why.split("; "))

    @property
    def is_no_utf8(self) -> bool:
        """True if bytes left that are no UTF-8, and what came was."""
        came = () if self.of is None else self.of.frame.flaws
        return INVALID_UTF8 not in came and any(INVALID_UTF8 in one.frame.flaws for one in self.left)

    @property
    def held_us(self) -> int:
        """For how many microseconds what arrived was held before this left."""
        us = self.fields.get("us")
        return us if isinstance(us, int) and not isinstance(us, bool) and us > 0 else 0

    @property
    def message(self) -> Message | None:
        """What left, if it is one message, or one batch."""
        whole = [message for message in self.left if message.batch is None]
        return whole[0] if len(whole) == 1 else None


def spoilt(message: Message, of: Message | None) -> tuple[str, ...]:
    """What is wrong with the envelope of a message that left, and was not with the one in whose place it did.

    Only what no peer lives with: ``not-a-message``, or flaws of `mcpsniff.protocol.jsonrpc`.
    """
    if message.kind == INVALID:
        return () if of is not None and of.kind == INVALID else ("not-a-message",)
    before = () if of is None else of.flaws
    return tuple([flaw for flaw in message.flaws if flaw in ENVELOPE_FLAWS and flaw not in (*_HARMLESS, *before)])


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
