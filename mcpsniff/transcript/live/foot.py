"""The foot of the live view: the requests that wait for their answer, each with a clock that runs."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from mcpsniff.decoder import Event
from mcpsniff.protocol.exchanges import Exchange
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


class OpenRequests:
    """Knows which requests are open among those that are shown."""

    def __init__(self) -> None:
        self._open: dict[int, Exchange] = {}

    def feed(self, shown: Iterable[Event], events: Iterable[Event]) -> None:
        """Take the events of a moment, and those that are shown by now; the end of an exchange need not be shown."""
        for event in shown:
            if isinstance(event, Message) and event.kind == REQUEST:
                link = event.link
                if link is not None and link.request == event.n and not link.n:
                    self._open[event.n] = link
        for event in events:
            if isinstance(event, Exchange):
                self._open.pop(event.request, None)

    def waiting(self, now_us: int, who: Segment | None = None) -> Iterator[Waiting]:
        """The open requests, the oldest first; ``now_us`` microseconds have gone by since the start."""
        for exchange in self._open.values():
            yield Waiting(exchange, max(now_us - exchange.t_request, 0), who)


def foot_lines(waiting: Sequence[Waiting], width: int, height: int) -> list[Line]:
    """At most ``height`` lines, none wider than ``width``, the request that waits longest first."""
    ordered = sorted(waiting, key=lambda one: -one.waited_us)
    if len(ordered) <= height:
        return [_line(one, width) for one in ordered]
    if height < 2:
        return [[("remark", count(len(ordered), "open request"))]] if height else []
    more = f"… and {count(len(ordered) - height + 1, 'more open request')}"
    return [*(_line(one, width) for one in ordered[: height - 1]), cut([("remark", more)], width)]


def clock(us: int) -> str:
    """How long something waits, in a form that does not jump about: ``3.4 s``, ``2:05``, ``1:02:05``."""
    seconds = us // 1_000_000
    if seconds < 60:
        return f"{seconds}.{us // 100_000 % 10} s"
    minutes, seconds = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes}:{seconds:02}"
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"


def _line(one: Waiting, width: int) -> Line:
    exchange, waited = one.exchange, clock(one.waited_us)
    line: Line = [("client", "→ ") if exchange.direction == "c2s" else ("server", "← ")]
    if one.who is not None:
        line += [one.who, ("", " ")]
    line.append(("method", shortened(visible(exchange.method), 200)))
    if exchange.target is not None:
        line.append(("target", " " + shortened(visible(exchange.target), 200)))
    line.append(("number", f"  #{exchange.request}"))
    line.append(("id", f" · id {shortened(visible(exchange.id), 40)}"))
    line = cut(line, max(width - cells(waited) - 1, 0))
    gap = max(width - length(line) - cells(waited), 0)
    return cut([*line, ("", " " * gap), ("waited", waited)], width)
