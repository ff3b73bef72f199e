"""What the editor remembers of one conversation: what is open, so that a held message knows what it belongs to."""

from threading import Lock
from typing import Any, Final

from mcpsniff.hooks.fitting import envelope_of, fit, revision_of
from mcpsniff.protocol.exchange import OTHER, Exchange, target_of, token_key
from mcpsniff.protocol.message import ERROR, REQUEST, RESPONSE, IdKey, Message

OPEN_LIMIT: Final = 100_000
"""Requests without an answer, of one conversation, that are remembered."""


class Talk:
    """What the editor remembers of one conversation. See `Editor.talk`."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._open: dict[tuple[str, IdKey], Exchange] = {}
        self._tokens: dict[tuple[str, IdKey], Exchange] = {}
        self._ours: dict[tuple[str, IdKey], str] = {}
        """Requests that hooks have made, by the direction they went and their id; who made them."""
        self._made = 0
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

    def adopt(self, message: Message, direction: str, by: str) -> None:
        """Give a request that a hook has made an id that nobody else uses."""
        with self._lock:
            self._made += 1
            message.id, message.key = f'"mcpsniff-{self._made}"', f"mcpsniff-{self._made}"
            while (direction, message.key) in self._open:
                self._made += 1
                message.id, message.key = f'"mcpsniff-{self._made}"', f"mcpsniff-{self._made}"
            self._ours[direction, message.key] = by
        body = message.body
        message.body = {"jsonrpc": "2.0", "id": message.key, **{k: v for k, v in body.items() if k != "jsonrpc"}}

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
