"""Which of the messages that left stands for which of those that came."""

from collections.abc import Sequence

from mcpsniff.protocol.exchange import ANSWER, ASKED, CANCEL, PROGRESS, Exchange
from mcpsniff.protocol.message import ERROR, NOTIFICATION, REQUEST, RESPONSE, Message

_ANSWERS = (RESPONSE, ERROR)


def twins(
    arrived: Sequence[Message], left: Sequence[Message]
) -> tuple[list[tuple[Message, Message | None]], list[Message]]:
    """Each message that came, with the one that left for it or None; and what left besides.

    Calls and answers are known by their ids, notifications by their methods; one that is left over is taken for the one
    of its kind that is left over on the other side: somebody may have changed an id.
    """
    rest = list(left)
    found: list[tuple[Message, Message | None]] = []
    for message in arrived:
        twin = next((one for one in rest if _is_like(message, one) and _name(message) == _name(one)), None)
        if twin is not None:
            rest.remove(twin)
        found.append((message, twin))
    lone = [place for place, (_, twin) in enumerate(found) if twin is None]
    if len(lone) == 1:
        message = found[lone[0]][0]
        twin = next((one for one in rest if _is_like(message, one)), None)
        if twin is not None:
            rest.remove(twin)
            found[lone[0]] = (message, twin)
    return found, rest


def part_of(message: Message, link: Exchange) -> str:
    """What a message is in its exchange."""
    if message.kind == REQUEST:
        return ASKED
    if message.kind == NOTIFICATION:
        return CANCEL if message.method == "notifications/cancelled" else PROGRESS
    return ANSWER if message.direction != link.direction else ASKED


def is_answer(message: Message, link: Exchange) -> bool:
    """True if a message is the answer with which its exchange has ended."""
    return message.n == link.response


def _is_like(message: Message, other: Message) -> bool:
    return message.kind == other.kind or (message.kind in _ANSWERS and other.kind in _ANSWERS)


def _name(message: Message) -> object:
    return message.method if message.kind == NOTIFICATION else message.key
