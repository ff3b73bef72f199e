"""A message on its way through the interceptors: what each of them has put in its place, for those that have it next.

Objects of an addon's are never sent or written to: what it has made is copied when it leaves it, and gets its
direction then, and a request its id. An interceptor that fails inside is passed over, alone.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic_ns
from typing import TYPE_CHECKING, Any, Final

from mcpsniff.hooks import together
from mcpsniff.hooks.actions import Action, Back, Drop, Headed, HttpAnswer, Returned, Text, Told, is_made
from mcpsniff.hooks.faults import described
from mcpsniff.hooks.talk import own_id
from mcpsniff.protocol.exchange import OTHER
from mcpsniff.protocol.message import BATCH, ERROR, REQUEST, RESPONSE, Message

if TYPE_CHECKING:
    from mcpsniff.hooks.editor import Interceptor, Lane

NOTABLE: Final = 1_000_000
"""Nanoseconds for which a message may be held without a word about it."""
PIPE: Final = "pipe"
KEPT: Final = "the answer to a request that it had made"


@dataclass(slots=True)
class Item:
    """Something on its way through the interceptors."""

    what: Message | Action
    by: str = ""
    why: str = ""
    headers: dict[str, str | None] = field(default_factory=dict)
    text: bytes | None = None
    """Its JSON text, if that is known."""


class Passage:
    """Leads messages past ``interceptors``, in their order."""

    def __init__(self, interceptors: "Sequence[Interceptor]", tell_once: Callable[[str], object]) -> None:
        self._interceptors = interceptors
        self._tell_once = tell_once
        self.holder = interceptors[-1].name if interceptors else ""
        """Who took longest with the latest message: for a hold of which nothing else tells by whom it is."""

    def run(self, message: Message, lane: "Lane", *, is_alone: bool) -> tuple[list[Item] | None, str | None]:
        """What the interceptors make of a message, and which of them held it longest, if that is worth a word.

        None: all of them have returned it. A message that is not alone is an element of a batch.
        """
        where = "" if is_alone else BATCH
        where = PIPE if lane.transport == "stdio" else where
        items: list[Item] | None = None
        slowest, most = self.holder, 0
        first = began = monotonic_ns()
        for interceptor in self._interceptors:
            if items is None:
                items = self._asked(interceptor, Item(message), message, lane, where)
            else:
                items = [
                    one for item in items for one in self._asked(interceptor, item, message, lane, where) or (item,)
                ]
            now = monotonic_ns()
            if now - began > most:
                slowest, most = interceptor.name, now - began
            began = now
        self.holder = slowest
        return items, slowest if began - first >= NOTABLE else None

    def _asked(
        self, interceptor: "Interceptor", item: Item, arrived: Message, lane: "Lane", where: str
    ) -> list[Item] | None:
        """The items that an interceptor puts in the place of one; None if it leaves that alone."""
        message = item.what
        if not isinstance(message, Message):
            return None
        try:
            returned = interceptor.edit(message, lane)
            if returned is message:
                return None
            return self._made_of(item, message, several(returned, message, arrived), interceptor.name, where)
        except BaseException as error:  # noqa: BLE001 - a bug of ours, or no memory: what others have done holds
            self._tell_once(f"internal error: {interceptor.name} has failed and is passed over ({described(error)})")
            return None

    def _made_of(
        self, item: Item, message: Message, returned: Sequence[Message | Action], by: str, where: str
    ) -> list[Item]:
        if not returned:
            return [Item(Drop(), together.names((item.by, by)), item.why)]
        items: list[Item] = []
        for one in returned:
            if one is message:
                items.append(item)
                continue
            misplaced = _misplaced(one, where)
            if isinstance(one, HttpAnswer) and not misplaced and any(other is message for other in returned):
                misplaced = "an HTTP answer cannot be given beside the message, which passes"
            if misplaced:
                self._tell_once(f"{by}: {misplaced}")
            if misplaced and not isinstance(one, Headed):
                if getattr(one, "message", message) is message and not any(other is message for other in returned):
                    items.append(item)
                continue
            what: Message | Action = one.message if isinstance(one, Headed | Told) else one
            why = "" if isinstance(one, Message) else one.why
            headers = dict(item.headers)
            if isinstance(one, Headed) and not misplaced:
                headers.update(one.headers)
            if what is message or not isinstance(what, Message):
                items.append(Item(what, together.names((item.by, by)), together.reasons((item.why, why)), headers))
            else:
                items.append(Item(what, by, why, headers))
        return items or [Item(Drop(), together.names((item.by, by)), item.why)]


def several(returned: Returned, message: Message, arrived: Message) -> list[Message | Action]:
    """What was returned for ``message``, one by one, with copies of all messages but that.

    ``arrived`` has come from outside; ``message`` is that, or what others have put in its place.
    """
    given: Sequence[Message | Action]
    given = () if returned is None else returned if isinstance(returned, Sequence) else (returned,)
    return [Drop(KEPT) if is_made(message) and _answers(one, message) else _own(one, message, arrived) for one in given]


def _misplaced(one: Message | Action, where: str) -> str:
    """What cannot be done there; empty if it can."""
    if isinstance(one, Message) or not where:
        return ""
    if isinstance(one, HttpAnswer):
        what = "has no place on pipes" if where == PIPE else "is for the whole of a batch"
        return f"an HTTP answer {what}; the message passes"
    if isinstance(one, Headed):
        what = "there are no headers on pipes" if where == PIPE else "an element of a batch has no headers of its own"
        return f"{what}; the message passes without"
    if isinstance(one, Text) and where == PIPE and b"\n" in one.data:
        return "a text of several lines cannot go on as one on pipes; the message passes without"
    return ""


def _own(one: Message | Action, message: Message, arrived: Message) -> Message | Action:
    direction = OTHER[arrived.frame.direction] if isinstance(one, Back) else arrived.frame.direction
    if isinstance(one, Message):
        return one if one is message else _copied(one, direction, arrived)
    inner: Message | None = getattr(one, "message", None)
    if inner is None or inner is message:
        return one
    action = copy.copy(one)
    action.message = _copied(inner, direction, arrived)  # type: ignore[union-attr]
    return action


def _copied(message: Message, direction: str, arrived: Message) -> Message:
    """The same message as an object of our own, in its direction; a request that was made gets an id."""
    own = replace(message, body=copy.deepcopy(message.body))
    if message.frame.direction != direction:
        own.frame = replace(message.frame, direction=direction)
    if not is_made(own):
        return own
    own.conversation, own.t = arrived.conversation, arrived.t
    if own.kind == REQUEST and isinstance(own.body, dict) and "id" not in own.body:
        named(own, own_id())
    return own


def named(message: Message, key: str) -> None:
    """Give a request that was made an id."""
    message.id, message.key = f'"{key}"', key
    rest = {name: value for name, value in message.body.items() if name not in ("jsonrpc", "id")}
    message.body = {"jsonrpc": "2.0", "id": key, **rest}


def _answers(one: Any, message: Message) -> bool:
    """True if this goes back to the hook that has made the request ``message``, which does not expect it."""
    if message.kind != REQUEST or not isinstance(one, Back) or one.message.kind not in (RESPONSE, ERROR):
        return False
    body = one.message.body
    return isinstance(body, dict) and body.get("id") == message.key
