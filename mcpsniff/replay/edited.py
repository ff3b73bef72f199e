"""A session in which something was changed on the way, as its client saw it: what it sent, and what it got.

What left for the client stands in the place of what the server said; what the client said stays as it said it, also
where the server got something else. Who answers in the server's place, or asks in the client's, is no part of the
session of the client's that a replay plays again.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from mcpsniff.decoder import Event
from mcpsniff.protocol.edits import DROPPED, Edit
from mcpsniff.protocol.http import Http, HttpExchange
from mcpsniff.protocol.message import Message
from mcpsniff.wire.frames import Frame

TO_CLIENT = "s2c"


def as_the_client_saw(lists: Iterable[list[Event]]) -> Iterator[list[Event]]:
    """The events of a capture, all of them, with what left for the client in the place of what came for it."""
    kept = list(lists)
    edits = [event for events in kept for event in events if isinstance(event, Edit)]
    if not edits:
        yield from kept
        return
    hidden = _hidden(edits)
    for events in kept:
        yield [one for event in events for one in _seen(event, hidden)]


def _hidden(edits: list[Edit]) -> set[int]:
    """The frames, and by those the messages, that did not reach the client as they came."""
    return {
        edit.of.frame.n for edit in edits if edit.direction == TO_CLIENT and edit.of is not None and _replaces(edit)
    }


def _replaces(edit: Edit) -> bool:
    return edit.kind == "rewrite" and (bool(edit.left) or edit.change == DROPPED)


def _seen(event: Event, hidden: set[int]) -> Iterator[Event]:
    if isinstance(event, Edit):
        if event.direction == TO_CLIENT and not _is_made(event.http):
            yield from _messages(event)
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
