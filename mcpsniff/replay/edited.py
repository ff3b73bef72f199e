"""A session in which something was changed on the way, as its client saw it: what it sent, and what it got.

What left for the client stands in the place of what the server said; what the client said stays as it said it, also
where the server got something else. Who answers in the server's place, or asks in the client's, is no part of the
session of the client's that a replay plays again.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain

from mcpsniff.decoder import Event
from mcpsniff.protocol.edits import DROPPED, Edit
from mcpsniff.protocol.http import Http, HttpExchange
from mcpsniff.protocol.message import Message
from mcpsniff.wire.frames import Frame

TO_CLIENT = "s2c"


def as_the_client_saw(lists: Iterable[list[Event]]) -> Iterator[list[Event]]:
    """The events of a capture, all of them, with what left for the client in the place of what came for it."""
    events = list(chain.from_iterable(lists))
    edits = [(at, event) for at, event in enumerate(events) if isinstance(event, Edit)]
    if not edits:
        yield events
        return
    hidden: set[int] = set()
    """The numbers of frames that did not reach the client as they came."""
    left: dict[int, list[Message]] = defaultdict(list)
    """By the place of the event before which it is to stand."""
    places = _Places(events)
    for at, edit in edits:
        if edit.direction != TO_CLIENT or edit.kind != "rewrite" or _is_made(edit.http):
            continue
        if edit.of is not None and (edit.left or edit.change == DROPPED):
            hidden.add(edit.of.frame.n)
        left[places.of(edit, at)] += _messages(edit)
    for at, event in enumerate(events):
        yield [*left.get(at, ()), *_seen(event, hidden)]


class _Places:
    """Where things stand among events."""

    def __init__(self, events: list[Event]) -> None:
        self._by_number = {event.n: at for at, event in enumerate(events) if isinstance(event, Message | Edit)}
        self._frames: dict[int, list[tuple[int, int]]] = defaultdict(list)
        """By channel: where frames begin, and their places."""
        for at, event in enumerate(events):
            if isinstance(event, Frame) and event.spans:
                self._frames[event.spans[0].channel].append((event.spans[0].start, at))

    def of(self, edit: Edit, at: int) -> int:
        """Where what left stands: in the place of what came, over HTTP before what came after it on its stream."""
        if edit.of is not None:
            return self._by_number.get(edit.of.n, at)
        if edit.http is None or not edit.spans:
            return at
        start = edit.spans[0].start
        following = next((place for begin, place in self._frames[edit.spans[0].channel] if begin >= start), at)
        asked = None if edit.link is None else self._by_number.get(edit.link.request)
        return min(at, following if asked is None else max(following, asked + 1))


def _seen(event: Event, hidden: set[int]) -> Iterator[Event]:
    if isinstance(event, Edit):
        return
    if isinstance(event, Message):
        if event.frame.n not in hidden and not _is_made(event.http):
            yield event
    elif isinstance(event, Frame):
        if event.n not in hidden:
            yield event
    elif not (isinstance(event, Http) and _is_made(event.exchange)):
        yield event


def _messages(edit: Edit) -> Iterator[Message]:
    """What left for the client, each message with the number of what it stands for, by which its request knows it."""
    for message in edit.left:
        link = message.link
        stands_for = None if link is None or edit.of is None else link.response
        n = edit.n if stands_for is None or message.method is not None else stands_for
        yield replace(message, n=n, http=edit.http)


def _is_made(http: HttpExchange | None) -> bool:
    return http is not None and http.made_by is not None
