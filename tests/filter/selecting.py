"""Select by a filter from records, both ways."""

from collections.abc import Iterable, Sequence

from mcpsniff.capture.records import Record
from mcpsniff.decoder import Decoder, Event
from mcpsniff.protocol.events import Close, Note, Stderr
from mcpsniff.protocol.message import Message
from mcpsniff.transcript.filter import Filter, FilteredSession, LiveSelector, Selection, compile_filter
from mcpsniff.transcript.rows import HTTP, RowBuilder
from mcpsniff.wire.frames import EMPTY_LINE, Frame
from tests.transcript.rendering import capture

type Lists = list[list[Event]]


def decoded(records: Sequence[Record]) -> Lists:
    """The events as the decoder gives them, a list for each record, and for the end."""
    decoder = Decoder()
    return [*(decoder.feed(record) for record in records), decoder.finish()]


def offline(lists: Lists, chosen: Filter) -> list[Event]:
    selection = Selection(chosen)
    selection.learn(lists)
    return [event for events in selection.pick(lists) for event in events]


def live(lists: Lists, chosen: Filter) -> list[Event]:
    selector = LiveSelector(chosen)
    return [event for events in lists for event in selector.feed(events)] + selector.finish()


def select(
    records: Sequence[Record], expression: str, *, alone: bool = False, started: str | None = None
) -> list[Event]:
    """What is shown; the live selector must agree."""
    lists = decoded(records)
    shown = offline(lists, compile_filter(expression, alone=alone, started=started))
    assert same(live(lists, compile_filter(expression, alone=alone, started=started))) == same(shown)
    return shown


def shown_over_http(records: Sequence[Record], expression: str, *, alone: bool = False) -> tuple[int, int]:
    """How many messages `mcpsniff show` shows, and how many rows there are in the lane of HTTP."""
    source = capture(records, transport="http")
    source.keep()
    session = FilteredSession(source, compile_filter(expression, alone=alone))
    builder, shown = RowBuilder(), []
    for events in session.events():
        shown += builder.feed(events)
    shown += builder.finish()
    return sum(row.message is not None for row in shown), sum(row.kind == HTTP for row in shown)


def same(events: Iterable[Event]) -> list[int]:
    """For comparing selections of the very same events, whatever their order."""
    return sorted(map(id, events))


def messages(events: Iterable[Event]) -> list[int]:
    return [event.n for event in events if isinstance(event, Message)]


def others(events: Iterable[Event]) -> list[Event]:
    """Events besides messages that a transcript gives a row."""
    return [
        event
        for event in events
        if isinstance(event, Stderr | Close | Note) or (isinstance(event, Frame) and EMPTY_LINE in event.flaws)
    ]
