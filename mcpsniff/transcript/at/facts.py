"""What is known of one event, as names and values for its page."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from mcpsniff.capture.records import Header
from mcpsniff.checks import Finding
from mcpsniff.protocol.by_revision import REVISION_FLAWS
from mcpsniff.protocol.edits import ANSWERED_BY, CHANGES, Edit
from mcpsniff.protocol.events import Close, Note, Stderr
from mcpsniff.protocol.exchange import Exchange
from mcpsniff.protocol.http import Http
from mcpsniff.protocol.message import Message
from mcpsniff.transcript.at.found import Found
from mcpsniff.transcript.at.http import Known, http_facts
from mcpsniff.transcript.edit_rows import ASKERS, lost_words
from mcpsniff.transcript.jsonl import FLAWS
from mcpsniff.transcript.summary import is_refused
from mcpsniff.transcript.units import count, duration, moment
from mcpsniff.wire.frames import Frame, Span

_MEANINGS: Final = {name: meaning for *_, flaws in FLAWS for name, meaning in flaws.items()} | REVISION_FLAWS
_WAYS: Final = {"c2s": "client to server", "s2c": "server to client"}


def facts(found: Found, header: Header) -> Iterator[Known]:
    """All that is known of the event, in the order in which it is shown."""
    event = found.event
    if isinstance(event, Finding):
        return
    at = event.t_last if isinstance(event, Frame) else event.t
    yield Known("time", moment(at), f"{_clock(header, at)} UTC")
    if isinstance(event, Frame | Message | Exchange | Edit):
        yield Known("direction", "", _WAYS.get(event.direction, event.direction))
    if found.message is not None:
        yield from _message(found.message)
    if found.frame is not None:
        yield from _frame(found.frame)
    if found.exchange is not None:
        yield from _exchange(found.exchange)
    if found.http is not None:
        yield from http_facts(found.http, event if isinstance(event, Http) else None)
    if isinstance(event, Close):
        yield from _close(event)
    if isinstance(event, Edit):
        yield from _edit(event)
    if isinstance(event, Note):
        yield Known("channel", "" if event.channel is None else str(event.channel))
        for name, value in list(event.fields.items())[:20]:
            known = count(len(value), "byte") if isinstance(value, bytes) else str(value)[:200]
            yield Known(name, known)
    if isinstance(event, Stderr | Close | Note | Http) and event.spans:
        yield Known("bytes", "", places(event.spans))
    flaws = found.message.flaws if found.message else getattr(found.frame or event, "flaws", ())
    for flaw in flaws:
        yield Known("flaw", flaw, _MEANINGS.get(flaw, ""))


def places(spans: tuple[Span, ...]) -> str:
    """``channel 1, byte 312 up to 394``."""
    shown = [f"channel {span.channel}, byte {span.start:,} up to {span.stop:,}" for span in spans[:5]]
    return "; ".join(shown) + (f" and {len(spans) - 5:,} more pieces" if len(spans) > 5 else "")


def _clock(header: Header, t: int) -> str:
    try:
        return f"{datetime.fromisoformat(header.started) + timedelta(microseconds=t):%Y-%m-%d %H:%M:%S.%f}"
    except (ValueError, OverflowError):
        return "?"


def _message(message: Message) -> Iterator[Known]:
    yield Known("kind", "", message.kind)
    if message.method is not None:
        yield Known("method", message.method)
    if message.id is not None:
        yield Known("id", message.id)
    if message.batch is not None:
        yield Known("batch", "", f"an element of #{message.batch}")
    yield Known("revision", message.revision or "", "" if message.revision else "nothing has settled it")
    for fact in message.facts:
        about = "" if fact.n is None else f"#{fact.n}"
        yield Known("fact", fact.name, " · ".join(part for part in (about, fact.text) if part))


def _frame(frame: Frame) -> Iterator[Known]:
    took = "" if frame.t_last == frame.t_first else f", arrived within {duration(frame.t_last - frame.t_first)}"
    yield Known("frame", "", f"#{frame.n}, {frame.framing}, {count(frame.size, 'byte')} without its end{took}")
    if frame.coding:
        yield Known("coding", frame.coding)
    if frame.sse is not None:
        yield Known("event", frame.sse.event)
        if frame.sse.id is not None:
            yield Known("event id", frame.sse.id)
        if frame.sse.retry is not None:
            yield Known("retry", "", duration(frame.sse.retry * 1000))
        yield from (Known("comment", comment) for comment in frame.sse.comments[:20])
    yield Known("bytes", "", places(frame.spans))


def _exchange(exchange: Exchange) -> Iterator[Known]:
    latency = "" if exchange.latency_us is None else f" after {duration(exchange.latency_us)}"
    state = f"refused with HTTP {exchange.status}" if is_refused(exchange) else exchange.state
    yield Known("exchange", "", f"of request #{exchange.request}: {state}{latency}")
    if exchange.by is not None:
        yield Known("asked by", exchange.by, "not by its sender")
    if exchange.answered_by is not None:
        yield Known("answered by", exchange.answered_by, "not by the peer that was asked")
    if exchange.held_us:
        yield Known("held", "", f"for {duration(exchange.held_us)}, which is not counted above")
    if exchange.undelivered is not None:
        yield Known("answer", "", f"did not reach the {ASKERS[exchange.direction]}: {lost_words(exchange)}")
    yield from _touches(exchange)


def _edit(edit: Edit) -> Iterator[Known]:
    yield Known("edit", edit.change, CHANGES[edit.change])
    if edit.of is not None:
        yield Known("of", "", f"#{edit.of.n}, {edit.of.kind}")
    yield from (Known("changed", member) for member in edit.members)
    if edit.held_us:
        yield Known("held", "", f"for {duration(edit.held_us)}")
    for message in edit.left:
        yield from (Known("flaw", flaw, f"of what left: {_MEANINGS.get(flaw, '')}") for flaw in message.flaws)


def _touches(exchange: Exchange) -> Iterator[Known]:
    for touch in exchange.touches:
        by = f"by {touch.by}" + (f": {touch.why}" if touch.why else "")
        change = "given" if touch.change == ANSWERED_BY else touch.change
        yield Known("edited", "", f"#{touch.n}, its {touch.part} was {change} {by}")


def _close(close: Close) -> Iterator[Known]:
    yield Known("channel", str(close.channel), close.kind)
    yield Known("how", close.how)
    for name in ("status", "signal", "error", "by"):
        if (value := getattr(close, name)) is not None:
            yield Known(name, str(value))
    if close.sent:
        yield Known("sent", ", ".join(close.sent))
    if close.open_requests:
        yield Known("left open", "", count(close.open_requests, "request"))
