"""The places of a capture at which something else stands than what was said: redacted, or masked by the recorder."""

from collections import deque
from collections.abc import Iterator
from typing import Any, Final

from mcpsniff.capture.reader import Capture
from mcpsniff.capture.records import MASK, OPEN, REDACT, Record
from mcpsniff.decoder import Decoder, Event
from mcpsniff.protocol.events import Stderr
from mcpsniff.protocol.http import Http
from mcpsniff.protocol.message import Message
from mcpsniff.wire.frames import Span

WAYS: Final = {"c2s": "client to server", "s2c": "server to client"}
RECENT: Final = 200
"""Spans of messages that are remembered for the records after them."""
KEPT: Final = 10_000
"""Places that wait for the message that they are in; older ones are told without it."""


def places(capture: Capture) -> list[str]:
    """Return, in words, each place of ``capture`` that was redacted or masked; none if it is as it was recorded.

    Such as ``#12 client to server, request tools/call: token (params.arguments.key)``. Captured text in them is not
    made harmless. The capture is read once.
    """
    listing = _Listing(capture)
    told = [f"the header: {what}" for what in _of_header(capture)]
    for record in capture.records():
        told += listing.record(record)
    return told + listing.rest()


def _of_header(capture: Capture) -> Iterator[str]:
    for name in ("argv", "upstream", "listen"):
        value = getattr(capture.header, name) or ()
        words = (value,) if isinstance(value, str) else value
        if any("***" in word for word in words):
            yield f"masked ({name})"


class _Listing:
    """Waits, for each place, for the message or head that it is in."""

    def __init__(self, capture: Capture) -> None:
        self._decoder = Decoder(capture.header, joined_late=capture.joined_late)
        self._waiting: list[tuple[Span, str]] = []
        self._recent: deque[tuple[Span, str]] = deque(maxlen=RECENT)

    def record(self, record: Record) -> list[str]:
        """The places that are known with this record."""
        told: list[str] = []
        for event in self._decoder.feed(record):
            told += self._heard(event)
        if record.kind == OPEN:
            told += [f"channel {record.channel}: masked {what} (head)" for what in _masked(record.body)]
        if record.kind not in (MASK, REDACT):
            return told
        fields = record.body
        what, at = str(fields.get("what")), fields.get("at")
        words = f"masked {what}" if record.kind == MASK else f"redacted {what}"
        words += f" ({at})" if at else ""
        start, length = fields.get("start"), fields.get("length")
        if record.channel is None or type(start) is not int or type(length) is not int:
            where = "" if record.channel is None else f"channel {record.channel}: "
            return [*told, where + words]
        span = Span(record.channel, start, start + length)
        known = next((where for other, where in reversed(self._recent) if _overlap(span, other)), None)
        if known is not None:
            return [*told, f"{known}: {words}"]
        self._waiting.append((span, words))
        if len(self._waiting) > KEPT:
            told.append(_alone(self._waiting.pop(0)))
        return told

    def rest(self) -> list[str]:
        """The places of which it is not known what they are in."""
        told: list[str] = []
        for event in self._decoder.finish():
            told += self._heard(event)
        return told + [_alone(one) for one in self._waiting]

    def _heard(self, event: Event) -> list[str]:
        """Take note of where an event is; the places in it."""
        spans, words = _place_of(event)
        if not spans:
            return []
        told = []
        rest = []
        for waiting in self._waiting:
            if any(_overlap(waiting[0], span) for span in spans):
                told.append(f"{words}: {waiting[1]}")
            else:
                rest.append(waiting)
        self._waiting = rest
        self._recent.extend((span, words) for span in spans)
        return told


def _place_of(event: Event) -> tuple[tuple[Span, ...], str]:
    if isinstance(event, Message):
        link = event.link
        answered = f"{event.kind} to {link.method}" if link is not None and not event.method else event.kind
        kind = f"{event.kind} {event.method}" if event.method else answered
        return event.frame.spans, f"#{event.n} {WAYS.get(event.direction, event.direction)}, {kind}"
    if isinstance(event, Stderr):
        return event.spans, f"#{event.n} stderr"
    if isinstance(event, Http):
        http = event.exchange
        return event.spans, f"#{event.n} {http.method} {http.path}"
    return (), ""


def _masked(body: Any) -> Iterator[str]:
    meta = body.get("meta")
    masked = meta.get("masked") if isinstance(meta, dict) else None
    for one in masked if isinstance(masked, list) else ():
        if isinstance(one, dict):
            yield str(one.get("what"))


def _alone(place: tuple[Span, str]) -> str:
    span, words = place
    return f"channel {span.channel}, byte {span.start}: {words}"


def _overlap(one: Span, other: Span) -> bool:
    return one.channel == other.channel and one.start < other.stop and other.start < one.stop
