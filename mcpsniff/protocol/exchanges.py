"""Pair requests with what follows them: progress, the cancel, the answer, or nothing at all.

Each side numbers its own requests, so an id means something only together with its direction, and a response is looked
up among the requests of the *other* side (JSON-RPC 2.0 section 5). Ids compare by JSON type and exact value. The rules:

* two open requests with one id pair in order of sending, and both are marked ambiguous;
* a cancel ends the exchange; an answer that comes anyway names its exchange but does not become its response;
* a request that names its id twice goes by the last one, and an answer to an earlier one is taken for its answer;
* a request without an answer is abandoned when the stream that could have carried the answer ends;
* where bytes were lost, nothing is concluded from what was not seen.

What cannot be said of a message alone (this answer is the second one, nobody asked for that one) goes onto the message
as a `Fact`; whether that is a fault is for the checks to say.
"""

from collections import OrderedDict
from itertools import chain
from typing import Final

from mcpsniff.protocol.asker import Asker
from mcpsniff.protocol.edited_pairing import EditedPairing, Watch
from mcpsniff.protocol.exchange import (
    ABANDONED,
    ANSWERED,
    CANCELLED,
    ERRORED,
    INPUT_REQUIRED,
    OPEN,
    OTHER,
    STATES,
    Exchange,
    state_after,
    target_of,
    token_key,
)
from mcpsniff.protocol.finished import WINDOW, SharedWindow
from mcpsniff.protocol.message import ERROR, INVALID, NOTIFICATION, REQUEST, RESPONSE, Fact, IdKey, Message
from mcpsniff.protocol.reading import DUPLICATE_KEY

__all__ = [
    "ABANDONED",
    "ANSWERED",
    "CANCELLED",
    "ERRORED",
    "INPUT_REQUIRED",
    "OPEN",
    "OTHER",
    "STATES",
    "Exchange",
    "Exchanges",
    "Watch",
    "target_of",
    "token_key",
]

OPEN_LIMIT: Final = 100_000
"""Open requests per direction that are remembered; beyond it the oldest is given up as abandoned."""

MADE_UP_IDS: Final = frozenset({"server-error"})
"""Ids that a server invents for an error it cannot correlate (Python SDK 1.x)."""

_PARSE_ERROR: Final = -32700


class Exchanges(EditedPairing):
    """The exchanges of one conversation, in both directions.

    ``watch`` and ``window`` are given where conversations share them.
    """

    def __init__(
        self,
        *,
        joined_late: bool = False,
        open_limit: int = OPEN_LIMIT,
        watch: Watch | None = None,
        window: int | SharedWindow = WINDOW,
    ) -> None:
        self._open_limit = open_limit
        self._sides = {"c2s": Asker(window), "s2c": Asker(window)}
        self._waiting: Watch = OrderedDict() if watch is None else watch
        for side in self._sides.values():
            side.is_whole = not joined_late

    def observe(self, message: Message) -> list[Exchange]:
        """Place a message: set its facts and its link, and return the exchanges that ended with it."""
        ended: list[Exchange] = []
        sender = self._sides[message.direction]
        if message.kind == REQUEST:
            ended = self._request(message, sender)
        elif message.kind == NOTIFICATION:
            if message.method == "notifications/progress":
                self._progress(message)
            elif message.method == "notifications/cancelled":
                ended = self._cancel(message, sender)
            elif message.method == "notifications/tasks/status":
                self._sides[OTHER[message.direction]].tokens.watch_task(message, None)
        elif message.kind in (RESPONSE, ERROR) or (message.kind == INVALID and _closes_a_request(message)):
            ended = self._answer(message)
        elif message.kind == INVALID:
            sender.owed_errors = True
        sender.last = message
        return ended

    def lose(self, direction: str) -> None:
        """Bytes of ``direction`` are missing from the capture: what was in them is not known."""
        side = self._sides[direction]
        side.is_whole = False
        side.last = None
        side.owed_errors = True
        for exchange in chain(side.waiting(), self._sides[OTHER[direction]].waiting()):
            exchange.unseen = exchange.lost = True
            self._waiting.pop(exchange.request, None)

    def open_requests(self, direction: str) -> int:
        """How many requests of that direction wait for an answer that was not lost."""
        return sum(not exchange.unseen for exchange in self._sides[direction].waiting())

    def abandon(self, t: int, direction: str) -> list[Exchange]:
        """The stream that carried the answers to requests of ``direction`` has ended: give up on them."""
        given_up = sorted(self._sides[direction].waiting(), key=lambda exchange: exchange.request)
        for exchange in given_up:
            self._end(exchange, ABANDONED, t)
        return given_up

    def still_open(self) -> list[Exchange]:
        """All open exchanges, in order of their requests."""
        both = chain.from_iterable(side.waiting() for side in self._sides.values())
        return sorted(both, key=lambda exchange: exchange.request)

    # -- requests --------------------------------------------------------------------------------------------------

    def _request(self, message: Message, side: Asker) -> list[Exchange]:
        if message.key is None or message.method is None:
            side.owed_errors = True
            return []
        exchange = Exchange(
            message.n,
            message.conversation,
            message.direction,
            message.id or "",
            message.key,
            message.method,
            target_of(message),
            message.revision,
            message.t,
            t_alive=message.t,
        )
        message.link = exchange
        self._enter(message, exchange, side)
        side.tokens.offer(message, exchange)
        if DUPLICATE_KEY in message.flaws:
            side.remember_overridden(message, exchange)
        self._waiting[exchange.request] = exchange
        if side.open_count <= self._open_limit:
            return []
        oldest = next(iter(side.open.values()))[0]
        self._end(oldest, ABANDONED, message.t)
        return [oldest]

    def _enter(self, message: Message, exchange: Exchange, side: Asker) -> None:
        """Put a request among the open ones; say whether its id was used before."""
        key = exchange.key
        side.open_count += 1
        queue = side.open.get(key)
        if queue is not None:
            before = queue[-1]  # all others are ambiguous since it came
            before.ambiguous = exchange.ambiguous = True
            self._tell_reuse(message, "id-reused" if before.unseen else "id-open", before)
            queue.append(exchange)
            return
        side.open[key] = [exchange]
        if key in side.finished:
            ended = side.finished.get(key)
            if ended is not None and ended.state == CANCELLED and ended.late is None:
                exchange.predecessor, exchange.ambiguous = ended, True
            self._tell_reuse(message, "id-reused", ended)

    def _tell_reuse(self, message: Message, name: str, earlier: Exchange | None) -> None:
        message.facts += (Fact(name, None if earlier is None else earlier.request),)

    # -- answers ---------------------------------------------------------------------------------------------------

    def _answer(self, message: Message) -> list[Exchange]:
        asker = self._sides[OTHER[message.direction]]
        if message.key is None:
            self._uncorrelated(message, asker)
            return []
        exchange = self._waited_for(message, message.key, asker)
        if exchange is None:
            self._unexpected(message, message.key, asker)
            return []
        if exchange.ambiguous and not self._is_certain(message, exchange):
            message.facts += (Fact("ambiguous", exchange.request),)
        message.link = exchange
        exchange.response = message.n
        self._end(exchange, state_after(message, exchange), message.t, message)
        asker.tokens.watch_task(message, exchange)
        return [exchange]

    def _waited_for(self, message: Message, key: IdKey, asker: Asker) -> Exchange | None:
        return asker.waited_for(message, key)

    def _is_certain(self, message: Message, exchange: Exchange) -> bool:  # noqa: ARG002 - over HTTP more is known
        return False

    def _unexpected(self, message: Message, key: IdKey, asker: Asker) -> None:
        """An answer that no open request waits for: late, second, misspelt, misdirected or out of nowhere."""
        if key in asker.finished:
            self._answered_before(message, asker.finished.get(key), asker)
            return
        if not asker.is_whole or asker.is_edited:
            return
        twin = _other_type(key)
        own = self._sides[message.direction].open
        if twin is not None and (twin in asker.open or twin in asker.finished):
            queue = asker.open.get(twin)
            message.facts += (Fact("id-type-differs", queue[0].request if queue else None),)
        elif key in own:
            message.facts += (Fact("wrong-side", own[key][0].request),)
        elif message.kind == ERROR and key in MADE_UP_IDS:
            message.facts += (Fact("uncorrelated"),)
        else:
            message.facts += (Fact("unknown-id"),)

    def _answered_before(self, message: Message, exchange: Exchange | None, asker: Asker) -> None:
        """The request has ended already: by a cancel that crossed this answer, or by an earlier answer."""
        if exchange is not None and exchange.predecessor is not None and exchange.predecessor.late is None:
            exchange = exchange.predecessor
        self._after_end(message, exchange, asker)

    def _after_end(self, message: Message, exchange: Exchange | None, asker: Asker) -> None:
        """It is this exchange that has ended already."""
        message.link = exchange
        if exchange is not None and exchange.state == CANCELLED and exchange.late is None:
            exchange.late = message.n
            message.facts += (Fact("answer-after-cancel", exchange.request, exchange.t_end),)
        elif asker.is_whole and (exchange is None or exchange.response is not None or exchange.late is not None):
            earlier = None if exchange is None else exchange.response or exchange.late
            message.facts += (Fact("answered-twice", earlier),)

    def _uncorrelated(self, message: Message, asker: Asker) -> None:
        """An answer without an id that could pair.

        It may refuse something that could not be understood; where there is nothing of the kind and no open request,
        it answers a notification, and those must not be answered.
        """
        if message.id not in (None, "null"):
            return
        last = asker.last
        refuses = message.kind == ERROR and (
            asker.owed_errors or asker.is_edited or asker.open_count > 0 or message.error.get("code") == _PARSE_ERROR
        )
        if last is not None and last.kind == NOTIFICATION and not refuses:
            message.facts += (Fact("notification-answered", last.n),)
        elif message.kind == ERROR and not asker.is_edited:
            message.facts += (Fact("uncorrelated"),)
            asker.owed_errors = False

    # -- progress and cancel ---------------------------------------------------------------------------------------

    def _progress(self, message: Message) -> None:
        token = token_key(message.params.get("progressToken"))
        asker = self._sides[OTHER[message.direction]]
        if token is None:
            return
        exchange = asker.tokens.holder(token)
        if exchange is not None:
            message.link = exchange
            if exchange.state == OPEN:
                exchange.progress.append(message.n)
                exchange.t_alive = message.t
                if exchange.request in self._waiting:
                    self._waiting.move_to_end(exchange.request)
        elif not asker.is_whole or asker.is_edited:
            return
        elif asker.tokens.was_offered(token):
            message.link = asker.tokens.last_holder(token)
            ended = message.link.t_end if message.link is not None else None
            message.facts += (Fact("progress-after-end", message.exchange, ended),)
        else:
            message.facts += (Fact("progress-unknown-token"),)

    def _cancel(self, message: Message, side: Asker) -> list[Exchange]:
        key = token_key(message.params.get("requestId"))
        queue = None if key is None else side.open.get(key)
        if key is None or queue is None:
            if key is not None and key in side.finished:
                message.link = side.finished.get(key)
                message.facts += (Fact("cancel-after-end", message.exchange),)
                if message.link is not None and message.link.gave_up is None:
                    message.link.gave_up = message.t
            elif side.is_whole:
                message.facts += (Fact("cancel-unknown"),)
            return []
        exchange = self._cancelled_by(message, key, queue)
        if exchange is None:
            return []
        message.link = exchange
        exchange.cancel = message.n
        self._end(exchange, CANCELLED, message.t)
        return [exchange]

    def _cancelled_by(self, message: Message, key: IdKey, queue: list[Exchange]) -> Exchange | None:  # noqa: ARG002
        """Which of the open requests with one id is cancelled; None if that cannot be said."""
        return queue[0]

    def _end(self, exchange: Exchange, state: str, t: int, answer: Message | None = None) -> None:
        exchange.state = state
        exchange.t_end = t
        side = self._sides[exchange.direction]
        queue = side.open[exchange.key]
        queue.remove(exchange)
        if not queue:
            del side.open[exchange.key]
        side.open_count -= 1
        if not exchange.is_refused:  # nobody has seen that id
            side.finished.add(exchange.key, exchange)
        side.tokens.ended(exchange, answer)
        self._waiting.pop(exchange.request, None)


def _closes_a_request(message: Message) -> bool:
    """A malformed answer still ends the wait: the asker's SDK drops it or takes it, but nothing more will come."""
    return "result-and-error" in message.flaws or ("no-payload" in message.flaws and message.key is not None)


def _other_type(key: IdKey) -> IdKey | None:
    """The id that an SDK with loose typing would take for the same one: 7 and "7"."""
    if isinstance(key, int):
        return str(key) if key.bit_length() < 1400 else None
    if isinstance(key, str) and key.isascii() and key.removeprefix("-").isdecimal() and len(key) < 400:
        return int(key)
    return None
