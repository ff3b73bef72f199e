"""Pair requests with what follows them: progress, the cancel, the answer, or nothing at all.

Each side numbers its own requests, so an id means something only together with its direction, and a response is looked
up among the requests of the *other* side (JSON-RPC 2.0 section 5). Ids compare by JSON type and exact value. The rules:

* two open requests with one id pair in order of sending, and both are marked ambiguous;
* a request that names its id twice goes by the last one, and an answer to an earlier one is taken for its answer;
* a cancel ends the exchange; an answer that comes anyway names its exchange but does not become its response;
* a request without an answer is abandoned when the stream that could have carried the answer ends.

What cannot be said of a message alone (this answer is the second one, nobody asked for that one) goes onto the message
as a `Fact`; whether that is a fault is for the checks to say.
"""

import json
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from mcpsniff.protocol.finished import WINDOW, Finished
from mcpsniff.protocol.message import ERROR, INVALID, NOTIFICATION, REQUEST, RESPONSE, Fact, IdKey, Message
from mcpsniff.protocol.outline import outline
from mcpsniff.protocol.reading import DUPLICATE_KEY
from mcpsniff.protocol.revisions import METHODS

OPEN: Final = "open"
ANSWERED: Final = "answered"
ERRORED: Final = "errored"
INPUT_REQUIRED: Final = "input-required"
CANCELLED: Final = "cancelled"
ABANDONED: Final = "abandoned"

STATES: Final = (OPEN, ANSWERED, ERRORED, INPUT_REQUIRED, CANCELLED, ABANDONED)

OTHER: Final = {"c2s": "s2c", "s2c": "c2s"}

OPEN_LIMIT: Final = 100_000
"""Open requests per direction that are remembered; beyond it the oldest is given up as abandoned."""

OVERRIDDEN_LIMIT: Final = 1_000
"""Ids that a second id in the same request overrides, as far as they are remembered."""

MADE_UP_IDS: Final = frozenset({"server-error"})
"""Ids that a server invents for an error it cannot correlate (Python SDK 1.x)."""


@dataclass(slots=True, eq=False)
class Exchange:
    """A request and what came of it. It changes while it is open and never after the decoder has emitted it."""

    request: int
    """The number of the request message."""
    conversation: int
    direction: str
    """The direction of the request."""
    id: str
    """The id's own JSON token."""
    key: IdKey
    method: str
    target: str | None
    revision: str | None
    t_request: int
    state: str = OPEN
    response: int | None = None
    progress: list[int] = field(default_factory=list)
    """The numbers of its progress notifications."""
    cancel: int | None = None
    t_end: int | None = None
    token: IdKey | None = None
    """The progress token it offered."""
    t_alive: int = 0
    """The last sign of life: the request or its latest progress."""
    ambiguous: bool = False
    late: int | None = None
    """The answer that came after the cancel."""
    n: int = 0
    t: int = 0

    @property
    def latency_us(self) -> int | None:
        """Microseconds from request to answer; None without an answer."""
        return None if self.response is None or self.t_end is None else self.t_end - self.t_request


class Exchanges:
    """The exchanges of one conversation, in both directions."""

    def __init__(self, *, joined_late: bool = False, open_limit: int = OPEN_LIMIT) -> None:
        self._joined_late = joined_late
        self._open_limit = open_limit
        self._open: dict[str, OrderedDict[IdKey, list[Exchange]]] = {"c2s": OrderedDict(), "s2c": OrderedDict()}
        self._finished: dict[str, Finished[IdKey, Exchange]] = {"c2s": Finished(), "s2c": Finished()}
        self._tokens: dict[str, dict[IdKey, Exchange]] = {"c2s": {}, "s2c": {}}
        self._finished_tokens: dict[str, Finished[IdKey, Exchange]] = {"c2s": Finished(), "s2c": Finished()}
        self._task_tokens: OrderedDict[tuple[str, IdKey], Exchange] = OrderedDict()
        self._overridden: OrderedDict[tuple[str, IdKey], Exchange] = OrderedDict()
        self._waiting: OrderedDict[int, Exchange] = OrderedDict()
        self._last: dict[str, Message] = {}

    def observe(self, message: Message) -> list[Exchange]:
        """Place a message: set its facts and its link, and return the exchanges that ended with it."""
        ended: list[Exchange] = []
        if message.kind == REQUEST:
            ended = self._request(message)
        elif message.kind == NOTIFICATION:
            if message.method == "notifications/progress":
                self._progress(message)
            elif message.method == "notifications/cancelled":
                ended = self._cancel(message)
        elif message.kind in (RESPONSE, ERROR) or (message.kind == INVALID and _closes_a_request(message)):
            ended = self._answer(message)
        self._last[message.direction] = message
        return ended

    def open_requests(self, direction: str) -> int:
        """How many requests of that direction wait for an answer."""
        return sum(map(len, self._open[direction].values()))

    def abandon(self, t: int, direction: str) -> list[Exchange]:
        """The stream that carried the answers to requests of ``direction`` has ended: give up on them."""
        waiting = [exchange for queue in self._open[direction].values() for exchange in queue]
        waiting.sort(key=lambda exchange: exchange.request)
        for exchange in waiting:
            self._end(exchange, ABANDONED, t)
        return waiting

    def still_open(self) -> list[Exchange]:
        """All open exchanges, in order of their requests."""
        both = (queue for table in self._open.values() for queue in table.values())
        return sorted((exchange for queue in both for exchange in queue), key=lambda exchange: exchange.request)

    def oldest_sign_of_life(self) -> int | None:
        """When the exchange that has been silent longest was last heard of; None if none is waited for."""
        for exchange in self._waiting.values():
            return exchange.t_alive
        return None

    def pop_silent(self) -> Exchange:
        """Take the exchange that has been silent longest off the watch; it is reported once."""
        return self._waiting.popitem(last=False)[1]

    # -- requests --------------------------------------------------------------------------------------------------

    def _request(self, message: Message) -> list[Exchange]:
        if message.key is None or message.method is None:
            return []
        table, key = self._open[message.direction], message.key
        exchange = Exchange(
            message.n,
            message.conversation,
            message.direction,
            message.id or "",
            key,
            message.method,
            target_of(message),
            message.revision,
            message.t,
            t_alive=message.t,
        )
        message.link = exchange
        queue = table.get(key)
        if queue is not None:
            exchange.ambiguous = True
            for earlier in queue:
                earlier.ambiguous = True
            message.facts += (Fact("id-open", queue[-1].request),)
            queue.append(exchange)
        else:
            if key in self._finished[message.direction]:
                before = self._finished[message.direction].get(key)
                cancelled = before is not None and before.state == CANCELLED
                name = "id-reused-after-cancel" if cancelled else "id-reused"
                message.facts += (Fact(name, None if before is None else before.request),)
            table[key] = [exchange]
        self._offer_token(message, exchange)
        if DUPLICATE_KEY in message.flaws:
            self._remember_overridden(message, exchange)
        self._waiting[exchange.request] = exchange
        return self._shed(message.t, table)

    def _offer_token(self, message: Message, exchange: Exchange) -> None:
        meta = message.params.get("_meta")
        if isinstance(meta, dict) and "progressToken" in meta:
            exchange.token = token_key(meta["progressToken"])
            if exchange.token is not None:
                self._tokens[message.direction][exchange.token] = exchange

    def _shed(self, t: int, table: OrderedDict[IdKey, list[Exchange]]) -> list[Exchange]:
        if len(table) <= self._open_limit:
            return []
        oldest = next(iter(table.values()))[0]
        self._end(oldest, ABANDONED, t)
        return [oldest]

    # -- answers ---------------------------------------------------------------------------------------------------

    def _answer(self, message: Message) -> list[Exchange]:
        asker = OTHER[message.direction]
        if message.key is None:
            self._uncorrelated(message, asker)
            return []
        queue = self._open[asker].get(message.key)
        if queue is None and self._overridden:
            queue = self._by_overridden_id(message, asker)
        if queue is None:
            self._unexpected(message, message.key, asker)
            return []
        exchange = queue[0]
        if len(queue) > 1:
            message.facts += (Fact("ambiguous", exchange.request),)
        message.link = exchange
        exchange.response = message.n
        if message.kind != RESPONSE:
            state = ERRORED
        else:
            state = INPUT_REQUIRED if message.result.get("resultType") == INPUT_REQUIRED_RESULT else ANSWERED
        if exchange.token is not None and isinstance(message.result.get("task"), dict):
            # 2025-11-25 tasks: the token stays valid until the task is terminal.
            self._task_tokens[asker, exchange.token] = exchange
            if len(self._task_tokens) > WINDOW:
                self._task_tokens.popitem(last=False)
        self._end(exchange, state, message.t)
        return [exchange]

    def _remember_overridden(self, message: Message, exchange: Exchange) -> None:
        for key in overridden_ids(message):
            self._overridden[message.direction, key] = exchange
            if len(self._overridden) > OVERRIDDEN_LIMIT:
                self._overridden.popitem(last=False)

    def _by_overridden_id(self, message: Message, asker: str) -> list[Exchange] | None:
        """The open request that names the id of ``message`` as well, before the id that it goes by."""
        exchange = None if message.key is None else self._overridden.get((asker, message.key))
        if exchange is None or exchange.state != OPEN:
            return None
        message.facts += (Fact("overridden-id", exchange.request),)
        return [exchange]

    def _unexpected(self, message: Message, key: IdKey, asker: str) -> None:
        """An answer that no open request waits for: late, second, misspelt, misdirected or out of nowhere."""
        finished = self._finished[asker]
        if key in finished:
            exchange = finished.get(key)
            if exchange is None:
                message.facts += (Fact("answered-twice"),)
                return
            message.link = exchange
            if exchange.state == CANCELLED and exchange.late is None:
                exchange.late = message.n
                message.facts += (Fact("answer-after-cancel", exchange.request, exchange.t_end),)
            elif exchange.response is not None or exchange.late is not None:
                message.facts += (Fact("answered-twice", exchange.response or exchange.late),)
            return
        if self._joined_late:
            return
        twin = _other_type(key)
        if twin is not None and (twin in self._open[asker] or twin in finished):
            queue = self._open[asker].get(twin)
            message.facts += (Fact("id-type-differs", queue[0].request if queue else None),)
        elif key in self._open[message.direction]:
            message.facts += (Fact("wrong-side", self._open[message.direction][key][0].request),)
        elif message.kind == ERROR and key in MADE_UP_IDS:
            message.facts += (Fact("uncorrelated"),)
        else:
            message.facts += (Fact("unknown-id"),)

    def _uncorrelated(self, message: Message, asker: str) -> None:
        """An answer without an id that could pair. After a notification it answers what must not be answered."""
        if message.id not in (None, "null"):
            return
        last = self._last.get(asker)
        if last is not None and last.kind == NOTIFICATION and not _is_parse_error(message):
            message.facts += (Fact("notification-answered", last.n),)
        elif message.kind == ERROR:
            message.facts += (Fact("uncorrelated"),)

    # -- progress and cancel ---------------------------------------------------------------------------------------

    def _progress(self, message: Message) -> None:
        key = token_key(message.params.get("progressToken"))
        asker = OTHER[message.direction]
        if key is None:
            return
        exchange = self._tokens[asker].get(key) or self._task_tokens.get((asker, key))
        if exchange is not None:
            message.link = exchange
            if exchange.state == OPEN:
                exchange.progress.append(message.n)
                exchange.t_alive = message.t
                if exchange.request in self._waiting:
                    self._waiting.move_to_end(exchange.request)
        elif key in self._finished_tokens[asker]:
            message.link = self._finished_tokens[asker].get(key)
            ended = message.link.t_end if message.link is not None else None
            message.facts += (Fact("progress-after-end", message.exchange, ended),)
        elif not self._joined_late:
            message.facts += (Fact("progress-unknown-token"),)

    def _cancel(self, message: Message) -> list[Exchange]:
        key = token_key(message.params.get("requestId"))
        queue = None if key is None else self._open[message.direction].get(key)
        if key is None or queue is None:
            if key is not None and key in self._finished[message.direction]:
                message.link = self._finished[message.direction].get(key)
                message.facts += (Fact("cancel-after-end", message.exchange),)
            elif not self._joined_late:
                message.facts += (Fact("cancel-unknown"),)
            return []
        exchange = queue[0]
        message.link = exchange
        exchange.cancel = message.n
        self._end(exchange, CANCELLED, message.t)
        return [exchange]

    def _end(self, exchange: Exchange, state: str, t: int) -> None:
        exchange.state = state
        exchange.t_end = t
        table = self._open[exchange.direction]
        queue = table[exchange.key]
        queue.remove(exchange) if len(queue) > 1 else table.pop(exchange.key)
        self._finished[exchange.direction].add(exchange.key, exchange)
        self._waiting.pop(exchange.request, None)
        token = exchange.token
        if token is not None and self._tokens[exchange.direction].get(token) is exchange:
            del self._tokens[exchange.direction][token]
            if (exchange.direction, token) not in self._task_tokens:
                self._finished_tokens[exchange.direction].add(token, exchange)


INPUT_REQUIRED_RESULT: Final = "input_required"


def _closes_a_request(message: Message) -> bool:
    """A malformed answer still ends the wait: the asker's SDK drops it or takes it, but nothing more will come."""
    return "result-and-error" in message.flaws or ("no-payload" in message.flaws and message.key is not None)


def _is_parse_error(message: Message) -> bool:
    return message.error.get("code") == -32700


def _other_type(key: IdKey) -> IdKey | None:
    """The id that an SDK with loose typing would take for the same one: 7 and "7"."""
    if isinstance(key, int):
        return str(key)
    if isinstance(key, str) and key.removeprefix("-").isdecimal() and len(key) < 400:
        return int(key)
    return None


def token_key(value: Any) -> IdKey | None:
    """A progress token or a requestId as pairing compares it; None if it is neither a string nor a number."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else ("number", value)
    return None


def overridden_ids(message: Message) -> list[IdKey]:
    """The ids that a message names before the one that counts, as pairing compares them."""
    text = message.raw.decode(errors="replace")
    found = []
    for name, start, stop in outline(text).members:
        if name == '"id"':
            with suppress(ValueError, RecursionError):
                found.append(token_key(json.loads(text[start:stop])))
    return [key for key in found if key is not None and key != message.key]


def target_of(message: Message) -> str | None:
    """What the call is about, such as the tool's name or the resource's URI."""
    method = METHODS.get(message.method or "")
    if method is None or method.target is None:
        return None
    value = message.params.get(method.target)
    if isinstance(value, dict):
        value = value.get("name", value.get("uri"))
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None
