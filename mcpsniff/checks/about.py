"""What a finding is about: its message, its method, its place among the findings there."""

from typing import Any, Final

from mcpsniff.protocol.events import StillOpen, StillRunning
from mcpsniff.protocol.exchanges import Exchange
from mcpsniff.protocol.http import NamedEndpoint, NamedEvent
from mcpsniff.protocol.message import RESPONSE, Message
from mcpsniff.protocol.reach import NotHere
from mcpsniff.protocol.revisions import METHODS

TELLING_MEMBERS: Final = {"tools": "tools/list"}
"""A result whose request is not known, or has a method that is not, is judged by what it holds."""

_MOMENTS: Final = (StillOpen, StillRunning, NotHere)

LATER: Final = 1_000
"""``k`` of findings that time adds to an event which was judged already."""
BESIDE: Final = 100
"""``k`` of findings on a frame together with what carried it."""


def first_k(item: Any) -> int:
    """The ``k`` of the first finding on ``item`` that one run of the checks may give."""
    if isinstance(item, _MOMENTS) or (isinstance(item, NamedEndpoint) and item.is_passed):
        return LATER
    return {NamedEvent: BESIDE, NamedEndpoint: 2 * BESIDE}.get(type(item), 0)


def method_answered(message: Message) -> str | None:
    """The method that a message without one belongs to."""
    link = message.link
    if link is not None and link.method in METHODS:
        return link.method
    if message.kind == RESPONSE:
        for member, method in TELLING_MEMBERS.items():
            if member in message.result:
                return method
    return None


def message_of(item: Any) -> int | None:
    """The number of the message that a finding is about."""
    if isinstance(item, Message):
        return item.n
    if isinstance(item, StillOpen):
        item = item.exchange
    return item.request if isinstance(item, Exchange) else None
