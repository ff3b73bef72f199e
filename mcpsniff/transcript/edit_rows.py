"""Rows for what was changed on the way: what left in the place of a message, or besides it, by whom and why."""

import re
from collections.abc import Iterator
from typing import Final

from mcpsniff.checks.words import doer
from mcpsniff.protocol.edits import ADDED, ANSWERED_BY, CHANGED, DROPPED, HEAD, HELD, Edit, spoilt
from mcpsniff.protocol.exchange import ANSWER, ASKED, GARBLED, Exchange
from mcpsniff.protocol.message import BATCH, INVALID, REQUEST, Message
from mcpsniff.transcript.lanes import Lanes
from mcpsniff.transcript.row import EDIT, Row
from mcpsniff.transcript.units import count, duration

TOUCHES_SHOWN: Final = 2
REASON: Final = 120
"""Characters of a reason beside the message that it led to."""
ASKERS: Final = {"c2s": "client", "s2c": "server"}
_LEAVES_LATER: Final = re.compile(r"fault (?:\S+ \+ )*reorder\b")
_SAID: Final = {CHANGED: "changed", DROPPED: "dropped", HELD: "held"}


def edit_row(edit: Edit, lanes: Lanes) -> Row | None:
    """The row of an edit; None for what only makes another one true, and for what is too short to matter."""
    if edit.is_quiet:
        return None
    row = Row(edit.n, edit.t, EDIT, edit.direction, message=edit.message)
    row.title, row.target = _subject(edit)
    row.words = tuple(_words(edit))
    row.remark = _remark(edit)
    row.conversation = edit.conversation or None
    if edit.message is not None:
        row.id, row.size = edit.message.id, len(edit.message.raw)
    link = edit.link
    row.exchange = None if link is None else link.request
    if link is None:
        row.lanes = lanes.touch(None)
    elif edit.change == ADDED and link.request == edit.n:
        row.lanes = lanes.begin(link.request)
    elif edit.change == ANSWERED_BY or link.response == edit.n:
        row.lanes = lanes.end(link.request)
    else:
        row.lanes = lanes.touch(link.request)
    return row


def touch_words(exchange: Exchange | None, n: int) -> tuple[str, ...]:
    """What was done to an exchange on the way before event ``n``; captured text in them is harmless."""
    touches = () if exchange is None else [touch for touch in exchange.touches if touch.n < n and not touch.is_quiet]
    words = []
    for touch in touches[:TOUCHES_SHOWN]:
        part = "another answer" if (touch.part, touch.change) == (ANSWER, ADDED) else touch.part
        change = "added" if touch.change == ANSWERED_BY else "cut" if touch.change == GARBLED else touch.change
        words.append(f"{part} {change} by {doer(touch.by, touch.why, REASON).replace('#', '')}")
    more = len(touches) - TOUCHES_SHOWN
    return (*words, f"and {count(more, 'more change')}") if more > 0 else tuple(words)


def lost_words(exchange: Exchange) -> str:
    """What kept the answer from who asked; harmless text."""
    touch = exchange.undelivered
    if touch is None:
        return ""
    change = {GARBLED: "cut", CHANGED: "given another id"}.get(touch.change, touch.change)
    if touch.change == HELD:
        gave_up = f"the {ASKERS[exchange.direction]} gave up while the" if exchange.gave_up is not None else "the"
        return f"{gave_up} answer was held by {doer(touch.by, touch.why, REASON)}"
    return f"answer {change} by {doer(touch.by, touch.why, REASON)}"


def _subject(edit: Edit) -> tuple[str, str | None]:
    """Method and target of what left, else of what came."""
    if edit.change == HEAD:
        return ("head of a request" if edit.direction == "c2s" else "head of a response"), None
    message = edit.message or edit.of
    if message is None and edit.http is not None and edit.http.status is not None and not edit.left:
        return f"HTTP {edit.http.status}", None
    if message is None:
        return (count(len(edit.left), "message") if edit.left else "bytes"), None
    if message.kind == BATCH:
        return "batch", None
    if message.kind == INVALID and message.link is None:
        return "not a message", None
    link = message.link or edit.link
    method = message.method or (message.kind if link is None else link.method)
    return method, None if link is None else link.target


def _words(edit: Edit) -> Iterator[str]:
    yield from _done(edit)
    if edit.change == HELD and edit.held_us and edit.link is not None and edit.link.undelivered is not None:
        yield f"the {ASKERS[edit.link.direction]} had given up"
    elif edit.lost and edit.change != HELD and not _LEAVES_LATER.match(edit.why):
        askers = dict.fromkeys(ASKERS[exchange.direction] for exchange in edit.lost)
        yield f"the {' and the '.join(askers)} got no answer"


def _done(edit: Edit) -> Iterator[str]:
    link, of = edit.link, edit.of
    if edit.change == HELD:
        yield f"held #{of.n}" if of is not None else "held"
        if edit.held_us:
            yield f"for {duration(edit.held_us)}"
        return
    if edit.change == ANSWERED_BY and link is not None:
        yield f"{link.state} #{link.request}"
    elif edit.change == HEAD:
        yield "changed"
    elif of is not None:
        yield f"{_SAID.get(edit.change, 'changed')} #{of.n}"
        if (more := len([one for one in edit.left if one.batch is None]) - 1) > 0:
            yield f"{count(more, 'message')} more left with it"
    elif edit.change == ADDED:
        if link is not None and _was_dropped(edit, link):
            yield f"sent later for #{link.request}"
            return
        yield "added"
        if link is not None and link.request != edit.n:
            yield f"{'again ' if _is_request(edit.message) else ''}for #{link.request}"
    else:
        yield edit.change
    if edit.held_us:
        yield f"held for {duration(edit.held_us)}"
    if any(spoilt(message, of) for message in edit.left):
        yield "not valid JSON-RPC"
    elif edit.is_no_utf8:
        yield "not UTF-8"


def _was_dropped(edit: Edit, link: Exchange) -> bool:
    """True if what left had been taken out before, to leave now."""
    part = ASKED if _is_request(edit.message) else ANSWER
    before = [touch for touch in link.touches if touch.n < edit.n and touch.part == part]
    return bool(before) and before[-1].change == DROPPED


def _is_request(message: Message | None) -> bool:
    return message is not None and message.kind == REQUEST


def _remark(edit: Edit) -> str:
    """Who did it, what changed, and why; captured text."""
    members = ", ".join(edit.members)
    if edit.why.startswith("fault ") and len(edit.names) == 1:
        return " · ".join(filter(None, (f"by {edit.why}", members)))
    return " · ".join(filter(None, (f"by {edit.by or 'mcpsniff'}", members, edit.why)))
