"""One side of a conversation as the one that asks: its open requests, its finished ids, its progress tokens."""

import json
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from typing import Final

from mcpsniff.protocol.exchange import OPEN, Exchange, token_key
from mcpsniff.protocol.finished import WINDOW, Finished, SharedWindow
from mcpsniff.protocol.message import Fact, IdKey, Message
from mcpsniff.protocol.outline import outline
from mcpsniff.protocol.tokens import ProgressTokens

OVERRIDDEN_LIMIT: Final = 1_000
"""Ids that a second id in the same request overrides, as far as they are remembered."""


class Asker:
    """One side's own requests: those that are open, those that have ended, and what was lost of them."""

    def __init__(self, window: int | SharedWindow = WINDOW) -> None:
        self.open: OrderedDict[IdKey, list[Exchange]] = OrderedDict()
        """By id; nearly always one each, so a list, which is a tenth of a deque."""
        self.open_count = 0
        self.finished: Finished[IdKey, Exchange] = Finished(window)
        self.tokens = ProgressTokens(window)
        self.overridden: OrderedDict[IdKey, Exchange] = OrderedDict()
        self.renamed: OrderedDict[IdKey, Exchange] = OrderedDict()
        """Requests that went on under another id, by that."""
        self.is_edited = False
        """True once something left for the other side that this side did not say and that nobody can read, or once an
        id was changed: who answers what nobody asked may mean that."""
        self.is_whole = True
        """False once bytes of this side were lost, or the capture began in the middle: requests may be missing."""
        self.last: Message | None = None
        self.owed_errors = False
        """True while something of this side that has no usable id may still be refused."""

    def waiting(self) -> Iterator[Exchange]:
        """All open exchanges."""
        return chain.from_iterable(self.open.values())

    def waited_for(self, message: Message, key: IdKey) -> Exchange | None:
        """The open request that ``message`` answers, if need be by an id that a second one in the request overrides."""
        queue = self.open.get(key)
        if queue is not None:
            return queue[0]
        exchange = self.renamed.get(key)
        if exchange is not None and exchange.state == OPEN:
            return exchange
        exchange = self.overridden.get(key)
        if exchange is None or exchange.state != OPEN:
            return None
        message.facts += (Fact("overridden-id", exchange.request),)
        return exchange

    def remember_overridden(self, message: Message, exchange: Exchange) -> None:
        """Note the ids that a request names before the one that counts."""
        for key in overridden_ids(message):
            self.overridden[key] = exchange
            if len(self.overridden) > OVERRIDDEN_LIMIT:
                self.overridden.popitem(last=False)

    def rename(self, exchange: Exchange, key: IdKey) -> None:
        """A request went on under another id."""
        self.is_edited = True
        self.renamed[key] = exchange
        if len(self.renamed) > OVERRIDDEN_LIMIT:
            self.renamed.popitem(last=False)


def overridden_ids(message: Message) -> list[IdKey]:
    """The ids that a message names before the one that counts, as pairing compares them."""
    text = message.raw.decode(errors="replace")
    found = []
    for name, start, stop in outline(text).members:
        if name == '"id"':
            with suppress(ValueError, RecursionError):
                found.append(token_key(json.loads(text[start:stop])))
    return [key for key in found if key is not None and key != message.key]
