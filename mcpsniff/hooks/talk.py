"""What the editor remembers of one conversation: what is open, so that a held message knows what it belongs to."""

import os
from itertools import count
from threading import Lock
from typing import Any, Final

from mcpsniff.hooks.fitting import envelope_of, fit, revision_of
from mcpsniff.protocol.exchange import OTHER, Exchange, target_of, token_key
from mcpsniff.protocol.message import ERROR, REQUEST, RESPONSE, IdKey, Message

OPEN_LIMIT: Final = 100_000
"""Requests without an answer, of one conversation, that are remembered."""


class _Ids:
    """Ids that no other process gives: the client, the server or one between us may be mcpsniff, too."""

    def __init__(self) -> None:
        self.anew()

    def anew(self) -> None:
        """Begin with another random part."""
        self.prefix = f"mcpsniff-{os.urandom(4).hex()}-"
        self.numbers = count(1)


_IDS: Final = _Ids()
os.register_at_fork(after_in_child=_IDS.anew)


def own_id() -> str:
    """A new id for a request of our own: ``mcpsniff-``, a part that is random for each process, and a number."""
    return f"{_IDS.prefix}{next(_IDS.numbers)}"


def is_own_id(key: object) -> bool:
    """True of an id that `own_id` has given."""
    return isinstance(key, str) and key.startswith(_IDS.prefix)


class Talk:
    """What the editor remembers of one conversation. See `Editor.talk`."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._open: dict[tuple[str, IdKey], Exchange] = {}
        self._tokens: dict[tuple[str, IdKey], Exchange] = {}
        self._ours: dict[tuple[str, IdKey], str] = {}
        """Requests that hooks have made, by the direction they went and their id; who made them."""
        self._envelope: dict[str, Any] = {}
        self._lock = Lock()

    def place(self, message: Message, t: int) -> None:
        """Set what is known of a message because of what came before it: conversation, link, time."""
        message.conversation, message.t = self.number, t
        if message.kind == REQUEST and message.key is not None and message.method is not None:
            link = Exchange(
                0, self.number, message.direction, message.id or "", message.key, message.method, target_of(message),
                revision_of(message), t, t_alive=t,
            )  # fmt: skip
            if message.direction == "c2s":
                self._envelope = envelope_of(message)
            message.link = link
            self._enter(message, link)
        elif message.kind in (RESPONSE, ERROR) and message.key is not None:
            with self._lock:
                answered = self._open.pop((OTHER[message.direction], message.key), None)
                message.link = answered
                if answered is not None and answered.token is not None:
                    self._tokens.pop((answered.direction, answered.token), None)
            if answered is not None and answered.cancel is None:
                answered.t_end, answered.response = t, 0
        elif message.method == "notifications/progress":
            token = token_key(message.params.get("progressToken"))
            if token is not None:
                message.link = self._tokens.get((OTHER[message.direction], token))
        elif message.method == "notifications/cancelled":
            key = token_key(message.params.get("requestId"))
            if key is not None:
                message.link = cancelled = self._open.get((message.direction, key))
                if cancelled is not None:
                    cancelled.cancel = 0

    def made_by(self, message: Message) -> str | None:
        """Who has made the request that this answers; None if the other side has. Asked once."""
        if not self._ours or message.kind not in (RESPONSE, ERROR) or message.key is None:
            return None
        with self._lock:
            return self._ours.pop((OTHER[message.direction], message.key), None)

    def fit(self, message: Message, direction: str, arrived: Message) -> None:
        """Complete a message that a hook has made of one that arrived, as the revision in force asks."""
        fit(message, direction, message.link or arrived.link, self._envelope)

    def adopt(self, key: str, direction: str, by: str) -> str:
        """Let the answer to a request that a hook of ``by`` has made be kept; return an id that nobody else uses.

        That is ``key``, the one it has, if it is so.
        """
        with self._lock:
            while (direction, key) in self._open or (direction, key) in self._ours:
                key = own_id()
            self._ours[direction, key] = by
        return key

    def _enter(self, message: Message, link: Exchange) -> None:
        with self._lock:
            self._open[link.direction, link.key] = link
            if len(self._open) > OPEN_LIMIT:
                del self._open[next(iter(self._open))]
            token = token_key(message.meta.get("progressToken"))
            if token is not None:
                link.token = token
                self._tokens[link.direction, token] = link
                if len(self._tokens) > OPEN_LIMIT:
                    del self._tokens[next(iter(self._tokens))]
