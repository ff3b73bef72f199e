"""Put events together that are shown or passed over as one, and decide about each such unit as early as is certain.

A unit is an exchange (its request, progress, cancel and answer, their frames, the exchange itself, all findings on
them), or else a single event with its frame and its findings. What is kept per event is up to the caller: the event
itself for a live view, its place for a first pass over a long capture. The rules:

* a batch comes along with any of its elements, and what is true of the batch is true of each of them;
* a unit is decided when the events of its record are there, an exchange when its verdict is certain or it has ended,
  a line that is no JSON when the decoder has judged it (see `mcpsniff.protocol.fragments`);
* what follows an exchange that has ended (a second answer, a late one) goes with it: it is shown if the exchange was,
  or if the exchange together with it matches, and then the exchange is shown too, if it is one of the latest;
* a finding that comes only after its event was decided is treated in the same way;
* what was changed on the way goes with the exchange that it was changed of;
* an HTTP exchange goes with the request that it carried: what is true of either is true of both, but that it is an
  HTTP exchange (``kind:http``), which decides about itself alone.

So the outcome does not depend on how the events are cut into lists, as long as a list holds all that a record led to.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, MutableSequence
from typing import Final

from mcpsniff.checks import Finding
from mcpsniff.decoder import Event
from mcpsniff.protocol.edits import Edit
from mcpsniff.protocol.events import Close
from mcpsniff.protocol.exchanges import Exchange
from mcpsniff.protocol.http import Http
from mcpsniff.protocol.message import BATCH, INVALID, REQUEST, Message
from mcpsniff.transcript.filter.expression import Filter
from mcpsniff.wire.frames import EMPTY_LINE, INCOMPLETE, Frame

UNJUDGED: Final = 300
"""Lines without JSON per channel that wait for their findings; the decoder holds fewer."""
ENDED: Final = 10_000
"""Exchanges of which it is remembered after their end whether they matched; the decoder remembers as many."""
AT_HAND: Final = 100
AT_HAND_SIZE: Final = 65_536
"""Exchanges that did not match, of at most so many bytes, that are kept in case something follows that does."""


class Unit[T]:
    """Events that are shown or passed over together."""

    __slots__ = (
        "batches",
        "carriers",
        "elements",
        "ended",
        "follows",
        "kept",
        "mask",
        "of",
        "request",
        "shown",
        "size",
        "unjudged",
    )

    def __init__(self, kept: MutableSequence[T], request: int | None = None) -> None:
        self.kept = kept
        self.request = request
        """For an exchange: the number of the request."""
        self.mask = 0
        self.shown: bool | None = None
        self.ended = request is None
        self.unjudged = 0
        """Parts that the decoder may still find something about."""
        self.batches: list[Unit[T]] = []
        """Batches of which it has an element."""
        self.elements = 0
        self.follows: Unit[T] | None = None
        """The exchange that it follows, which had ended before."""
        self.of: Unit[T] | None = None
        """Of an HTTP exchange: what it carried."""
        self.carriers: list[Unit[T]] = []
        """The HTTP exchanges that carried it and are not decided."""
        self.size = 0


class Groups[T]:
    """Feed it pairs of an event and what is to be kept of it; it gives what was kept of those that are shown."""

    def __init__(self, chosen: Filter, make: Callable[[], MutableSequence[T]]) -> None:
        self._filter = chosen
        self._make = make
        self._nothing = make()
        self._out: list[T] = []
        self._touched: dict[int, Unit[T]] = {}
        self._recent: dict[int, Unit[T]] = {}
        self._frame: Unit[T] | None = None
        self._batch: Unit[T] | None = None
        self._requests: dict[int, Unit[T]] = {}
        self._ended: OrderedDict[int, Unit[T]] = OrderedDict()
        self._at_hand: deque[Unit[T]] = deque()
        self._lines: dict[int, deque[tuple[int, Unit[T]]]] = {}
        self._unjudged: dict[int, Unit[T]] = {}
        self._judged: set[int] = set()
        self._closes: dict[int, Unit[T]] = {}
        self._carried: OrderedDict[int, Unit[T]] = OrderedDict()
        """What HTTP exchanges carried first, by their numbers."""

    def feed(self, events: Iterable[tuple[Event, T]]) -> list[T]:
        """Take what one record led to, or several; give what is certain to be shown."""
        for event, item in events:
            self._take(event, item)
        self._settle()
        return self._given()

    def finish(self) -> list[T]:
        """Nothing more comes: give what is left. A finding about the end may still be fed."""
        for channel in self._lines:
            self._judged.add(channel)
        self._end_closes()
        for unit in self._requests.values():
            self._end_request(unit)
        self._settle()
        return self._given()

    # -- events ----------------------------------------------------------------------------------------------------

    def _take(self, event: Event, item: T) -> None:
        if isinstance(event, Message):
            self._message(event, item)
        elif isinstance(event, Finding):
            self._finding(event, item)
        elif isinstance(event, Exchange):
            self._exchange(event, item)
        elif isinstance(event, Http) and not self._filter.alone:
            self._http(event, item)
        elif isinstance(event, Edit) and event.link is not None and not self._filter.alone:
            self._edit(event, event.link, item)
        else:
            self._settle()
            self._recent.clear()
            unit = self._single()
            self._add(unit, event, event.n, item)
            if isinstance(event, Frame):
                self._frame = None if EMPTY_LINE in event.flaws else unit
            elif isinstance(event, Close):
                self._close(event, unit)

    def _message(self, message: Message, item: T) -> None:
        frame, self._frame = self._frame, None
        if message.kind == BATCH and not self._filter.alone:
            self._batch = unit = self._single() if frame is None else frame
        else:
            unit = self._unit_of(message)
            if message.batch is not None and self._batch is not None:
                self._put_into(self._batch, unit)
            if frame is not None:
                self._merge(frame, unit)
        self._add(unit, message, message.n, item)
        self._watch(message, unit)
        if message.http is not None and message.direction == "c2s" and message.kind != BATCH:
            self._carried.setdefault(message.http.number, unit)
            if len(self._carried) > ENDED:
                self._carried.popitem(last=False)

    def _edit(self, edit: Edit, link: Exchange, item: T) -> None:
        """What was changed on the way goes with its exchange; a request that somebody made begins one."""
        self._settle()
        self._recent.clear()
        unit = self._requests.get(link.request)
        if unit is None and link.request == edit.n:
            unit = self._requests[edit.n] = Unit(self._make(), edit.n)
            unit.unjudged += 1
        self._add(unit or self._follower(self._ended.get(link.request)), edit, edit.n, item)

    def _http(self, event: Http, item: T) -> None:
        """An HTTP exchange, decided by itself together with what it carried."""
        self._settle()
        self._recent.clear()
        unit = self._single()
        http = event.exchange
        unit.of = self._carried.get(http.number) or self._carried.get(http.origin)
        self._add(unit, event, event.n, item)

    def _unit_of(self, message: Message) -> Unit[T]:
        """The unit that a message belongs to."""
        link = message.link
        begins = link is not None and message.kind == REQUEST and link.request == message.n
        if link is None or (self._filter.alone and not begins):
            return self._single()
        if begins:
            unit = self._requests[message.n] = Unit(self._make(), None if self._filter.alone else message.n)
            unit.unjudged += 1  # that it has waited too long is found out later
            return unit
        if link.request in self._requests:
            return self._requests[link.request]
        return self._follower(self._ended.get(link.request))

    def _exchange(self, exchange: Exchange, item: T) -> None:
        unit = self._requests.get(exchange.request)
        if unit is not None:
            self._end_request(unit)
        if unit is None or self._filter.alone:
            self._requests.pop(exchange.request, None)
            unit = self._single()
        self._add(unit, exchange, exchange.n, item)

    def _end_request(self, unit: Unit[T]) -> None:
        unit.ended = True
        unit.unjudged -= 1
        self._touch(unit)

    def _finding(self, finding: Finding, item: T) -> None:
        at = finding.at
        unit = self._recent.get(at) or self._unjudged.get(at) or self._requests.get(at) or self._closes.get(at)
        if unit is None or (unit.shown is False and unit.ended):
            unit = self._follower(unit)
        self._add(unit, finding, None, item)

    def _close(self, close: Close, unit: Unit[T]) -> None:
        """A server that outlives its input is found out later; until then its end of input is not judged."""
        self._judged.add(close.channel)
        if close.ends_process:
            self._end_closes()
        elif close.kind == "stdin":
            unit.unjudged += 1
            self._closes[close.n] = unit

    def _end_closes(self) -> None:
        for unit in self._closes.values():
            unit.unjudged -= 1
            self._touch(unit)
        self._closes = {}

    def _watch(self, message: Message, unit: Unit[T]) -> None:
        """Lines that may be pieces of one message get their findings only when the next lines have been seen."""
        channel = message.frame.channel
        if message.kind != INVALID or message.frame.framing != "line" or not INCOMPLETE.isdisjoint(message.flaws):
            if channel in self._lines:
                self._judged.add(channel)
            return
        unit.unjudged += 1
        self._unjudged[message.n] = unit
        lines = self._lines.setdefault(channel, deque())
        lines.append((message.n, unit))
        if len(lines) > UNJUDGED:
            self._judge(*lines.popleft())

    def _judge(self, n: int, unit: Unit[T]) -> None:
        del self._unjudged[n]
        unit.unjudged -= 1
        self._touch(unit)

    # -- units -----------------------------------------------------------------------------------------------------

    def _single(self) -> Unit[T]:
        return Unit(self._make())

    def _follower(self, ended: Unit[T] | None) -> Unit[T]:
        """A unit that goes with one which is decided already."""
        unit = self._single()
        if ended is not None:
            unit.mask, unit.shown, unit.follows = ended.mask, ended.shown or None, ended
        return unit

    def _add(self, unit: Unit[T], event: Event, n: int | None, item: T) -> None:
        mask = self._filter.mask(event)
        unit.mask |= mask
        if unit.of is not None:
            self._lend(unit.of, mask & ~self._filter.of_http_alone)
        if isinstance(event, Frame):
            unit.size += event.size
        if n is not None:
            self._recent[n] = unit
        self._touch(unit)
        if unit.shown is None:
            unit.kept.append(item)
        elif unit.shown:
            self._out.append(item)

    def _lend(self, unit: Unit[T], mask: int) -> None:
        """What is true of an HTTP exchange is true of what it carried, also when that has ended."""
        unit.mask |= mask
        if unit.shown is False and mask and self._filter.verdict(unit.mask):
            self._show(unit)
        self._touch(unit)

    def _merge(self, frame: Unit[T], unit: Unit[T]) -> None:
        """The frame goes with the message that it carries."""
        unit.mask |= frame.mask
        unit.size += frame.size
        self._touched.pop(id(frame), None)
        for n in [n for n, other in self._recent.items() if other is frame]:
            self._recent[n] = unit
        if unit.shown is None:
            unit.kept.extend(frame.kept)
        elif unit.shown:
            self._out.extend(frame.kept)

    def _put_into(self, batch: Unit[T], unit: Unit[T]) -> None:
        batch.elements += 1
        self._touched.pop(id(batch), None)
        unit.mask |= batch.mask & self._filter.inherited
        if unit.shown:
            self._show(batch)
        elif unit.shown is None:
            unit.batches.append(batch)

    def _touch(self, unit: Unit[T]) -> None:
        if not unit.elements:
            self._touched[id(unit)] = unit

    # -- decisions -------------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """A record's events are complete: decide what can be decided."""
        self._frame = self._batch = None
        for channel in self._judged:
            for n, unit in self._lines.pop(channel, ()):
                self._judge(n, unit)
        self._judged.clear()
        touched, self._touched = self._touched, {}
        for unit in touched.values():
            self._decide(unit)

    def _decide(self, unit: Unit[T]) -> None:
        if unit.of is not None:
            self._decide_http(unit, unit.of)
            return
        if unit.shown is None:
            undecided = 0 if unit.ended else self._filter.late
            undecided |= self._filter.on_findings if unit.unjudged else 0
            verdict = self._filter.verdict(unit.mask, undecided)
            if verdict:
                if unit.follows is not None:
                    self._show(unit.follows)
                self._show(unit)
            elif verdict is False:
                unit.shown = False
                if unit.request is None or not unit.ended or unit.size > AT_HAND_SIZE:
                    self._drop(unit)
        carriers, unit.carriers = unit.carriers, []
        for carrier in carriers:
            self._decide_http(carrier, unit)
        if unit.request is not None and unit.ended and not unit.unjudged and unit.request in self._requests:
            self._end(unit, unit.request)

    def _decide_http(self, unit: Unit[T], of: Unit[T]) -> None:
        """Decide about an HTTP exchange; if what it carried is undecided, it may have to wait for that."""
        if unit.shown is not None:
            return
        undecided = 0 if of.ended else self._filter.late
        undecided |= self._filter.on_findings if of.unjudged else 0
        verdict = self._filter.verdict(unit.mask | of.mask, undecided)
        if verdict:
            self._show(unit)
        elif verdict is False:
            unit.shown = False
            self._drop(unit)
        else:
            of.carriers.append(unit)

    def _end(self, unit: Unit[T], request: int) -> None:
        """Of an exchange that has ended only the outcome is remembered, of the latest also the events."""
        del self._requests[request]
        self._ended[request] = unit
        if len(self._ended) > ENDED:
            self._ended.popitem(last=False)
        if unit.shown is False:
            self._at_hand.append(unit)
            if len(self._at_hand) > AT_HAND:
                self._drop(self._at_hand.popleft())

    def _show(self, unit: Unit[T]) -> None:
        if not unit.shown:
            for batch in unit.batches:
                self._show(batch)
            self._out.extend(unit.kept)
            unit.shown = True
        self._drop(unit)

    def _drop(self, unit: Unit[T]) -> None:
        unit.kept, unit.batches, unit.follows = self._nothing, [], None

    def _given(self) -> list[T]:
        given, self._out = self._out, []
        return given
