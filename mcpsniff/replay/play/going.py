"""What was open at a moment of a recording: requests without their answer, event streams of the server's own.

Rows are shown later than they are decoded, so each exchange is asked when it ended, not whether it has.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from mcpsniff.decoder import Event
from mcpsniff.protocol.exchange import Exchange
from mcpsniff.protocol.http import STREAMING, Http
from mcpsniff.protocol.message import REQUEST, Message
from mcpsniff.transcript.live.foot import Going, Streaming, Waiting

_FEW: Final = 64
"""So many that have ended may be kept."""


class Open:
    """Feed it all events, then ask what was open."""

    def __init__(self) -> None:
        self._requests: dict[int, Exchange] = {}
        """By the number of the request."""
        self._streams: dict[int, Http] = {}
        """By the number of the event that told of it."""
        self._cleared = 0

    def feed(self, events: Iterable[Event]) -> None:
        """Take events, which may lie ahead of what is shown."""
        for event in events:
            if isinstance(event, Message) and event.kind == REQUEST:
                if (link := event.link) is not None and link.request == event.n:
                    self._requests[event.n] = link
            elif isinstance(event, Http) and event.state == STREAMING and event.exchange.method == "GET":
                self._streams.setdefault(event.n, event)

    def clear(self, t: int) -> None:
        """Forget what had ended by then, if it has become much."""
        if len(self._requests) + len(self._streams) <= self._cleared + _FEW:
            return
        self._requests = {n: one for n, one in self._requests.items() if not _is_answered(one, t)}
        self._streams = {n: one for n, one in self._streams.items() if not _is_over(one, t)}
        self._cleared = len(self._requests) + len(self._streams)

    def at(self, t: int, shown: int) -> Iterator[Going]:
        """What was open at a moment, of what is shown up to the event with the number ``shown``; the oldest first."""
        for n, exchange in self._requests.items():
            if n <= shown and not _is_answered(exchange, t) and not exchange.was_kept_back(shown):
                yield Waiting(exchange, max(t - exchange.t_request, 0))
        for n, event in self._streams.items():
            if n <= shown and not _is_over(event, t):
                yield Streaming(event, max(t - event.t, 0))


def _is_answered(exchange: Exchange, t: int) -> bool:
    return bool(exchange.n) and exchange.t <= t


def _is_over(event: Http, t: int) -> bool:
    end = event.exchange.t_end
    return event.exchange.is_over and (end is None or end <= t)
