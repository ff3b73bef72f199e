"""Pairing where somebody changed something on the way: requests kept back, renamed or made, answers given for a peer.

Exchanges are those of what arrived; here is what the decoder does to them when a record says that something else left.
"""

from collections import OrderedDict

from mcpsniff.protocol.asker import Asker
from mcpsniff.protocol.exchange import OPEN, OTHER, Exchange, state_after, token_key
from mcpsniff.protocol.message import IdKey, Message

type Watch = OrderedDict[int, Exchange]
"""The open exchanges whose silence has not been reported, by request; the one that has been silent longest first."""


class EditedPairing:
    """What `mcpsniff.protocol.exchanges.Exchanges` does for edits."""

    _sides: dict[str, Asker]
    _waiting: Watch

    def keep_back(self, exchange: Exchange) -> None:
        """Its request did not go on, or not so that anybody could read it: nobody owes an answer."""
        exchange.unseen = True
        self._waiting.pop(exchange.request, None)

    def pause(self, exchange: Exchange) -> None:
        """Its request is held on purpose from now on."""
        self._waiting.pop(exchange.request, None)

    def go_on(self, exchange: Exchange, t: int) -> None:
        """Its request went on only now (microseconds)."""
        if exchange.state == OPEN and not exchange.lost:
            exchange.unseen = False
            exchange.t_alive = max(exchange.t_alive, t)
            self._waiting[exchange.request] = exchange
            self._waiting.move_to_end(exchange.request)

    def rename(self, exchange: Exchange, left: Message) -> None:
        """Its request went on as ``left``, maybe under another id or with another progress token."""
        asker = self._sides[exchange.direction]
        if left.key is not None and left.key != exchange.key:
            asker.rename(exchange, left.key)
        token = token_key(left.meta.get("progressToken"))
        if token is not None and token != exchange.token and exchange.state == OPEN:
            asker.tokens.offer_as(token, exchange)

    def find(self, direction: str, key: IdKey) -> Exchange | None:
        """The request of ``direction`` with that id which is open, or ended last."""
        asker = self._sides[direction]
        queue = asker.open.get(key)
        return queue[0] if queue else asker.renamed.get(key) or asker.finished.get(key)

    def holder(self, direction: str, token: IdKey) -> Exchange | None:
        """The request of ``direction`` to which progress with that token belongs."""
        tokens = self._sides[direction].tokens
        return tokens.holder(token) or tokens.last_holder(token)

    def ask_for(self, message: Message, by: str) -> list[Exchange]:
        """``by`` made a request, in the name of the side that sends on its direction; returns what ended."""
        ended = self._request(message, self._sides[message.direction])
        if message.link is not None:
            message.link.by = by
        return ended

    def answer_for(self, message: Message, by: str) -> list[Exchange]:
        """``by`` gave an answer in the name of the side that was asked; returns the exchange if that ended with it."""
        asker = self._sides[OTHER[message.direction]]
        exchange = None if message.key is None else asker.waited_for(message, message.key)
        if exchange is None:
            message.link = None if message.key is None else asker.finished.get(message.key)
            return []
        message.link = exchange
        exchange.response, exchange.answered_by = message.n, by
        self._end(exchange, state_after(message, exchange), message.t, message)
        return [exchange]

    def disturb(self, direction: str) -> None:
        """Something left in ``direction`` that its side did not say, and that may be taken for anything."""
        self._sides[direction].is_edited = True
        self._sides[direction].owed_errors = True

    def _request(self, message: Message, side: Asker) -> list[Exchange]:
        raise NotImplementedError

    def _end(self, exchange: Exchange, state: str, t: int, answer: Message | None = None) -> None:
        raise NotImplementedError
