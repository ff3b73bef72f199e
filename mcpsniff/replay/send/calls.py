"""The requests that are on their way to a live server, and which of them a message belongs to."""

import asyncio
from dataclasses import dataclass, field

from mcpsniff.protocol.exchange import token_key
from mcpsniff.protocol.message import IdKey, Message
from mcpsniff.replay.send.link import Came, Refusal, Sent
from mcpsniff.replay.send.outcome import Outcome


@dataclass(slots=True, eq=False)
class Call:
    """One request of the client, sent again."""

    outcome: Outcome
    key: IdKey | None
    """Its live id; None if it has none that an answer could name."""
    id: str
    """Its live id as it is spelt."""
    token: IdKey | None
    """The progress token that it offers."""
    sent: Sent
    """The text that carries it."""
    sent_at: int
    """When it was sent, as `mcpsniff.replay.send.link.now_us` has it."""
    alive_at: int
    """The last sign of life: the sending, or its latest progress."""
    answer: Came | None = None
    refusal: Refusal | None = None
    progress: list[Message] = field(default_factory=list)
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once nothing more will come: it was answered or refused, or the server has gone."""
    waited: float = 0.0
    """Seconds that it had, if its time has run out."""
    late: bool = False
    """True if its time had run out before something came."""

    @property
    def is_open(self) -> bool:
        """True as long as an answer may come."""
        return not self.settled.is_set()


class Calls:
    """All calls of one conversation."""

    def __init__(self) -> None:
        self.all: list[Call] = []
        self._by_key: dict[IdKey, list[Call]] = {}
        self._by_token: dict[IdKey, Call] = {}

    def add(self, call: Call) -> None:
        """A request is about to be sent."""
        self.all.append(call)
        if call.key is not None:
            self._by_key.setdefault(call.key, []).append(call)
        if call.token is not None:
            self._by_token[call.token] = call

    def is_taken(self, key: IdKey | None) -> bool:
        """True if a request with this id is open."""
        return key is not None and any(call.is_open for call in self._by_key.get(key, ()))

    def of_answer(self, came: Came) -> Call | None:
        """The call that a message answers: by its id, and by the response it came in where that names no other.

        Also by an id that is the same but for its type, ``"1"`` for ``1``, which is an error of the server's.
        """
        candidates = [] if came.message.key is None else self._by_key.get(came.message.key, [])
        waiting = [call for call in candidates if call.answer is None]
        if waiting:
            return next((call for call in waiting if call.sent is came.sent), waiting[0])
        if came.message.key is not None and (twin := self._twin(came.message)) is not None:
            return twin
        if came.sent is None or came.message.key in {call.key for call in self.all if call.sent is came.sent}:
            return None
        inside = [call for call in self.all if call.sent is came.sent and call.is_open]
        return inside[0] if len(inside) == 1 and (came.status or 0) >= 400 else None

    def _twin(self, message: Message) -> Call | None:
        spelt = (message.id or "").strip('"')
        waiting = (call for call in self.all if call.is_open and call.answer is None)
        return next((call for call in waiting if call.key != message.key and call.id.strip('"') == spelt), None)

    def of_progress(self, message: Message) -> Call | None:
        """The call whose progress a notification tells."""
        token = token_key(message.params.get("progressToken"))
        return None if token is None else self._by_token.get(token)

    def of_sent(self, sent: Sent) -> list[Call]:
        """The calls that one text carried."""
        return [call for call in self.all if call.sent is sent]
