"""Pairing over HTTP: which request a message belongs to when HTTP says more than the ids do.

A response in the body or on the stream of a POST answers a request of that POST, whatever else has its id; an error
without an id there refuses it. On other streams ids decide, as on pipes. A request is given up when nothing can bring
its answer any more:

* its POST was answered by something else than a message or a stream, or by a stream that ended and had no event ids
  (with ids it can be resumed, and the request stays open until the session ends);
* but not by 202, which says that the answer comes on another stream;
* in 2026-07-28 always when its POST is over: cancelled if the client hung up, for that is how one cancels there.

Where several clients may use the same ids (servers without sessions), a cancel names one of several open requests. It
ends the one of its own connection, else the one whose POST is over; if there is no such, all of them stay open, and the
first whose POST ends without an answer is the one that was cancelled.
"""

from collections.abc import Sequence
from itertools import chain
from typing import Final

from mcpsniff.protocol.asker import Asker
from mcpsniff.protocol.broadcasts import Broadcasts
from mcpsniff.protocol.exchange import ABANDONED, CANCELLED, ERRORED, OPEN, Exchange
from mcpsniff.protocol.exchanges import MADE_UP_IDS, Exchanges, Watch
from mcpsniff.protocol.finished import WINDOW, SharedWindow
from mcpsniff.protocol.http import GET, LOST, POST, HttpExchange, Stream
from mcpsniff.protocol.message import ERROR, NOTIFICATION, REQUEST, Fact, IdKey, Message

ACCEPTED: Final = 202
MCPSNIFF: Final = "mcpsniff"


class HttpExchanges(Exchanges):
    """The exchanges of one conversation over HTTP. Every message it is given has its HTTP exchange.

    ``one_client`` says that all requests come from one client, so that its ids are its own fault; without it that is
    certain only of requests on one connection.
    """

    def __init__(
        self,
        *,
        joined_late: bool = False,
        one_client: bool = True,
        watch: Watch | None = None,
        window: int | SharedWindow = WINDOW,
    ) -> None:
        super().__init__(joined_late=joined_late, watch=watch, window=window)
        self.one_client = one_client
        self._carried: dict[int, list[Exchange]] = {}
        """The open requests of the client, by the HTTP exchange that carried them."""
        self._of_post: dict[int, list[Exchange]] = {}
        """All requests, also those that have ended, of each POST that is going on."""
        self._cancels: dict[tuple[str, IdKey], list[int]] = {}
        """By direction and id: cancels of which it is not known yet which of the open requests they mean."""
        self._broadcasts = Broadcasts()
        self._has_lost = joined_late
        """True once bytes were lost that may be of this conversation: an answer may come on what was torn by it."""

    def lose(self, direction: str) -> None:
        """See `Exchanges`."""
        super().lose(direction)
        self._has_lost = True

    def responded(self, http: HttpExchange) -> None:
        """The response to a POST has begun."""
        for exchange in self._carried.get(http.number, ()):
            exchange.status = http.status

    def carried_by(self, http: HttpExchange) -> Sequence[Exchange]:
        """The requests in the body of a POST that wait for an answer."""
        return self._carried.get(http.origin, ())

    def over(self, http: HttpExchange, t: int, *, modern: bool, last: bool, elsewhere: bool) -> list[Exchange]:
        """A POST, or a stream that goes on with that of a POST, is over: end what nothing can answer any more.

        ``last`` says that the session has ended, so that nothing can be resumed; ``elsewhere`` that answers come on
        another stream anyway.
        """
        self._of_post.pop(http.number, None)
        carried = self._carried.get(http.origin, [])
        if not carried:
            return []
        resumable = http.stream is not None and http.stream.is_resumable
        if elsewhere and not last:
            return []
        owed = next((one for one in carried if ("c2s", one.key) not in self._cancels and not one.is_kept_back), None)
        if owed is not None:
            http.tell("ended-unanswered", owed.request)
        if not (modern or last) and (resumable or http.status == ACCEPTED):
            return []
        state = CANCELLED if modern and http.ended_by == "client" else ABANDONED
        ended = list(carried)
        for exchange in ended:
            exchange.status = http.status if exchange.status is None else exchange.status
            exchange.lost = exchange.lost or http.state == LOST
            exchange.unseen = exchange.unseen or exchange.lost or http.ended_by == MCPSNIFF
            self._end(exchange, state, t)
        return ended

    def end_session(self, t: int, going_on: set[int], by: str | None) -> list[Exchange]:
        """The session has ended: give up on everything but the requests whose own HTTP exchange is still going on."""
        waiting = chain.from_iterable(side.waiting() for side in self._sides.values())
        ended = [one for one in waiting if one.direction == "s2c" or one.http not in going_on]
        ended.sort(key=lambda exchange: exchange.request)
        for exchange in ended:
            exchange.unseen = exchange.unseen or by not in ("client", "server")
            self._end(exchange, ABANDONED, t)
        return ended

    def observe(self, message: Message) -> list[Exchange]:
        """See `Exchanges`."""
        ended = super().observe(message)
        stream = None if message.http is None else message.http.stream
        if stream is not None and message.direction == "s2c" and message.kind in (REQUEST, NOTIFICATION):
            self._place_call(message, stream)
        return ended

    # -- what HTTP adds to the rules -------------------------------------------------------------------------------

    def _request(self, message: Message, side: Asker) -> list[Exchange]:
        ended = super()._request(message, side)
        exchange, http = message.link, message.http
        if exchange is not None and http is not None:
            exchange.http, exchange.connection, exchange.authority = http.number, http.connection, http.authority
            exchange.unseen = exchange.lost = http.is_torn or self._has_lost
            if message.direction == "c2s":
                http.requests += 1
                self._carried.setdefault(http.number, []).append(exchange)
                self._of_post.setdefault(http.number, []).append(exchange)
        return ended

    def _tell_reuse(self, message: Message, name: str, earlier: Exchange | None) -> None:
        http = message.http
        same = earlier is not None and http is not None and earlier.connection == http.connection
        if same or self.one_client:  # a server without sessions counts anew for each client, too
            super()._tell_reuse(message, name, earlier)

    def _cancelled_by(self, message: Message, key: IdKey, queue: list[Exchange]) -> Exchange | None:
        http = message.http
        if self.one_client or http is None or (len(queue) == 1 and not queue[0].ambiguous):
            return super()._cancelled_by(message, key, queue)
        own = next((one for one in queue if one.connection == http.connection), None)
        if own is not None:
            return own
        ended = self._sides[message.direction].finished.get(key)
        if ended is not None and (ended.connection == http.connection or ended.state == ABANDONED):
            message.link = ended
            return None
        over = next((one for one in queue if one.direction == "c2s" and one.http not in self._of_post), None)
        if over is None:
            self._cancels.setdefault((message.direction, key), []).append(message.n)
        return over

    def _waited_for(self, message: Message, key: IdKey, asker: Asker) -> Exchange | None:
        certain = next((one for one in asker.open.get(key, ()) if self._is_certain(message, one)), None)
        if certain is not None or self._ended_here(message) is not None:
            return certain
        return super()._waited_for(message, key, asker)

    def _ended_here(self, message: Message) -> Exchange | None:
        """The request of the POST that brings this answer, if it has ended already."""
        if message.http is None or message.direction == "c2s":
            return None
        carried = self._of_post.get(message.http.origin, ())
        return next((one for one in reversed(carried) if one.key == message.key and one.state != OPEN), None)

    def _unexpected(self, message: Message, key: IdKey, asker: Asker) -> None:
        ended = self._ended_here(message)
        if ended is None:
            super()._unexpected(message, key, asker)
        else:
            self._after_end(message, ended, asker)

    def _is_certain(self, message: Message, exchange: Exchange) -> bool:
        return message.http is not None and exchange.http == message.http.origin

    def _answer(self, message: Message) -> list[Exchange]:
        refused = self._refused_by(message)
        if refused is None:
            ended = super()._answer(message)
            self._place_answer(message)
            return ended
        message.link = refused
        refused.response = message.n
        message.facts += (Fact("answered-by-http", refused.request),)
        self._end(refused, ERRORED, message.t, message)
        return [refused]

    def _refused_by(self, message: Message) -> Exchange | None:
        """The request that an error without a usable id refuses, since it stands in the response to it."""
        http = message.http
        if http is None or message.kind != ERROR or message.frame.framing != "body" or message.direction == "c2s":
            return None
        nameless = message.key is None and message.id in (None, "null")
        if not nameless and (message.key not in MADE_UP_IDS or message.key in self._sides["c2s"].open):
            return None
        carried = self._carried.get(http.number, ())
        return carried[0] if len(carried) == 1 else None

    def _uncorrelated(self, message: Message, asker: Asker) -> None:
        if message.http is None or not message.http.is_refused:  # the body of a refusal belongs to the refusal
            super()._uncorrelated(message, asker)

    def _place_answer(self, message: Message) -> None:
        """Say whether an answer came where answers do not belong."""
        http, exchange = message.http, message.link
        stream = None if http is None else http.stream
        if stream is None or exchange is None or message.direction == "c2s":
            return
        if stream.kind == GET:
            message.facts += (Fact("answer-on-get-stream", exchange.request),)
        elif stream.kind == POST and exchange.http not in (None, stream.origin):
            message.facts += (Fact("answer-on-foreign-stream", exchange.request),)

    def _place_call(self, message: Message, stream: Stream) -> None:
        """Say whether a request or a notification of the server came where it does not belong."""
        exchange = message.link
        is_progress = exchange is not None and exchange.direction == "c2s"
        if exchange is not None and is_progress and stream.kind == POST and exchange.http not in (None, stream.origin):
            message.facts += (Fact("progress-on-foreign-stream", exchange.request),)
        if stream.answered is not None and not self._carried.get(stream.origin):
            message.facts += (Fact("after-response", stream.answered),)
        twice = self._broadcasts.see(message, stream) if self.one_client else None
        if twice is not None:
            message.facts += (twice,)

    def _end(self, exchange: Exchange, state: str, t: int, answer: Message | None = None) -> None:
        if exchange.http is not None and exchange.direction == "c2s":
            carried = self._carried.get(exchange.http, [])
            if exchange in carried:
                carried.remove(exchange)
                if not carried:
                    del self._carried[exchange.http]
        if answer is not None and answer.http is not None and answer.http.number == exchange.http:
            exchange.status = answer.http.status
        place = (exchange.direction, exchange.key)
        cancels = self._cancels.get(place)
        if cancels and state == ABANDONED:
            exchange.cancel, state = cancels.pop(0), CANCELLED
        super()._end(exchange, state, t, answer)
        if cancels is not None and (not cancels or exchange.key not in self._sides[exchange.direction].open):
            del self._cancels[place]
