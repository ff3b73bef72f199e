"""Progress tokens: which exchange a token belongs to, and when it ceases to mean anything.

A token is offered by a request in ``_meta.progressToken`` and ends with it. In 2025-11-25 a request that is answered
with a task keeps its token until the task is terminal. Two open requests may offer one token (a fault of its own);
then progress belongs to the later one, and the token lives as long as either.
"""

from collections import OrderedDict
from typing import Final

from mcpsniff.protocol.exchange import Exchange, token_key
from mcpsniff.protocol.finished import WINDOW, Finished, SharedWindow
from mcpsniff.protocol.message import NOTIFICATION, IdKey, Message
from mcpsniff.protocol.revisions import R_2025_11_25

TERMINAL: Final = frozenset({"completed", "failed", "cancelled"})
"""The final states of a task (2025-11-25, tasks)."""


class ProgressTokens:
    """The progress tokens that one side has offered."""

    def __init__(self, window: int | SharedWindow = WINDOW) -> None:
        self._held: dict[IdKey, OrderedDict[int, Exchange]] = {}
        self._finished: Finished[IdKey, Exchange] = Finished(window)
        self._tasks: OrderedDict[str, Exchange] = OrderedDict()

    def offer(self, request: Message, exchange: Exchange) -> None:
        """Note the token that a request offers, if it offers one."""
        meta = request.params.get("_meta")
        if isinstance(meta, dict) and "progressToken" in meta:
            exchange.token = token_key(meta["progressToken"])
            if exchange.token is not None:
                self._held.setdefault(exchange.token, OrderedDict())[exchange.request] = exchange

    def offer_as(self, token: IdKey, exchange: Exchange) -> None:
        """Its request went on with another token, in the place of its own."""
        self._drop(exchange)
        exchange.token = token
        self._held.setdefault(token, OrderedDict())[exchange.request] = exchange

    def holder(self, token: IdKey) -> Exchange | None:
        """The exchange that progress with ``token`` belongs to; None if the token is not valid now."""
        holders = self._held.get(token)
        return None if holders is None else next(reversed(holders.values()))

    def was_offered(self, token: IdKey) -> bool:
        """True if ``token`` was valid at some time."""
        return token in self._finished

    def last_holder(self, token: IdKey) -> Exchange | None:
        """The exchange that held ``token`` last, as far as that is remembered."""
        return self._finished.get(token)

    def ended(self, exchange: Exchange, answer: Message | None) -> None:
        """An exchange has ended, by ``answer`` or without one."""
        if exchange.token is None:
            return
        task = answer.result.get("task") if answer is not None else None
        if isinstance(task, dict) and exchange.revision in (None, R_2025_11_25) and isinstance(task.get("taskId"), str):
            self._tasks[task["taskId"]] = exchange
            if len(self._tasks) > WINDOW:
                self._drop(self._tasks.popitem(last=False)[1])
        else:
            self._drop(exchange)

    def watch_task(self, message: Message, asked: Exchange | None) -> None:
        """See whether ``message``, which answers ``asked`` or notifies, says that a task is over."""
        if not self._tasks:
            return
        said = message.params if message.kind == NOTIFICATION else message.result
        if asked is not None and asked.method == "tasks/result":
            task, over = asked.target, True
        else:
            task, over = said.get("taskId"), said.get("status") in TERMINAL
        exchange = self._tasks.pop(task, None) if over and isinstance(task, str) else None
        if exchange is not None:
            self._drop(exchange)

    def _drop(self, exchange: Exchange) -> None:
        token = exchange.token
        holders = self._held.get(token) if token is not None else None
        if token is None or holders is None or exchange.request not in holders:
            return
        del holders[exchange.request]
        if not holders:
            del self._held[token]
            self._finished.add(token, exchange)
