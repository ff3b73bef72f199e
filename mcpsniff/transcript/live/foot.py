"""The foot of the live view: the requests that wait for their answer, and the event streams that are open.

Each has a clock that runs.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from mcpsniff.decoder import Event
from mcpsniff.protocol.exchanges import Exchange
from mcpsniff.protocol.http import STREAMING, Http
from mcpsniff.protocol.message import REQUEST, Message
from mcpsniff.transcript.layout import cells, cut, length
from mcpsniff.transcript.pretty import Line, Segment
from mcpsniff.transcript.safe import shortened, visible
from mcpsniff.transcript.units import count


class Waiting(NamedTuple):
    """A request that is open."""

    exchange: Exchange
    waited_us: int
    who: Segment | None = None
    """The session's label, where there are several."""


class Streaming(NamedTuple):
    """An event stream of the server's own that is open."""

    event: Http
    """Its beginning."""
    waited_us: int
    """How long it has been open."""
    who: Segment | None = None


type Going = Waiting | Streaming


class OpenRequests:
    """Knows which requests and streams are open among those that are shown."""

    def __init__(self) -> None:
        self._open: dict[int, Exchange] = {}
        self._streams: dict[int, Http] = {}
        """By the number of the HTTP exchange."""

    def feed(self, shown: Iterable[Event], events: Iterable[Event]) -> None:
        """Take the events of a moment, and those that are shown by now; the end of an exchange need not be shown."""
        for event in shown:
            if isinstance(event, Message) and event.kind == REQUEST:
                link = event.link
                if link is not None and link.request == event.n and not link.n:
                    self._open[event.n] = link
            elif isinstance(event, Http) and event.state == STREAMING:
                http = event.exchange
                if http.method == "GET" and not http.is_over:
                    self._streams[http.number] = event
        for event in events:
            if isinstance(event, Exchange):
                self._open.pop(event.request, None)
            elif isinstance(event, Http) and event.state != STREAMING:
                self._streams.pop(event.exchange.number, None)

    def waiting(self, now_us: int, who: Segment | None = None) -> Iterator[Going]:
        """What is open, the oldest first; ``now_us`` microseconds have gone by since the start."""
        for exchange in self._open.values():
            if exchange.is_kept_back:
                continue  # nobody will answer what did not go on
            yield Waiting(exchange, max(now_us - exchange.t_request, 0), who)
        for event in self._streams.values():
            yield Streaming(event, max(now_us - event.t, 0), who)


def foot_lines(going: Sequence[Going], width: int, height: int) -> list[Line]:
    """At most ``height`` lines, none wider than ``width``: the request that waits longest first, streams last."""
    ordered = sorted(going, key=lambda one: (isinstance(one, Streaming), -one.waited_us))
    if len(ordered) <= height:
        return [_line(one, width) for one in ordered]
    if height < 2:
        return [cut([("remark", _counted(ordered))], width)] if height else []
    more = f"… and {_counted(ordered[height - 1 :], 'more ')}"
    return [*(_line(one, width) for one in ordered[: height - 1]), cut([("remark", more)], width)]


def _counted(going: Sequence[Going], more: str = "") -> str:
    streams = sum([isinstance(one, Streaming) for one in going])
    nouns = ((len(going) - streams, "open request"), (streams, "open stream"))
    return ", ".join(count(number, more + noun) for number, noun in nouns if number)


def clock(us: int) -> str:
    """How long something waits, in a form that does not jump about: ``3.4 s``, ``2:05``, ``1:02:05``."""
    seconds = us // 1_000_000
    if seconds < 60:
        return f"{seconds}.{us // 100_000 % 10} s"
    minutes, seconds = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes}:{seconds:02}"
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"


def _line(one: Going, width: int) -> Line:
    line = _request(one) if isinstance(one, Waiting) else _stream(one)
    waited = clock(one.waited_us)
    line = cut(line, max(width - cells(waited) - 1, 0))
    gap = max(width - length(line) - cells(waited), 0)
    return cut([*line, ("", " " * gap), ("waited" if isinstance(one, Waiting) else "http", waited)], width)


def _stream(one: Streaming) -> Line:
    http = one.event.exchange
    line: Line = [("http", "│ ")]
    if one.who is not None:
        line += [one.who, ("", " ")]
    line.append(("http", f"stream #{one.event.n} {shortened(visible(http.target), 200)}"))
    line.append(("http", f"  {count(http.answered.events, 'event')} · conn {http.connection}"))
    return line


def _request(one: Waiting) -> Line:
    exchange = one.exchange
    line: Line = [("client", "→ ") if exchange.direction == "c2s" else ("server", "← ")]
    if one.who is not None:
        line += [one.who, ("", " ")]
    line.append(("method", shortened(visible(exchange.method), 200)))
    if exchange.target is not None:
        line.append(("target", " " + shortened(visible(exchange.target), 200)))
    line.append(("number", f"  #{exchange.request}"))
    line.append(("id", f" · id {shortened(visible(exchange.id), 40)}"))
    return line
