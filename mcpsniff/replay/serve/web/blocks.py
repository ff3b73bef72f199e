"""Blocks of an event stream for what is said again: with the recorded fields, or in the recorded bytes.

Made anew, a block has the recorded event name, id, reconnection time and comments, and its data in as many lines as the
text has. In the recorded bytes it also has the recorded line ends and field order, and is cut where the reads of the
recording were cut; only an id that has to be another one is exchanged, wherever it stands.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from mcpsniff.replay.script import Line, Piece, Script
from mcpsniff.wire.frames import UNTERMINATED, Frame, ServerSentEvent, Span
from mcpsniff.wire.http1_parts import CHUNKED

_LINE_END: Final = re.compile(rb"\r\n|\r|\n")
_ID_LINE: Final = re.compile(rb"(?:^(?:\xef\xbb\xbf)?|(?<=[\r\n]))id: ?([^\r\n]*)")
_PLAIN: Final = ServerSentEvent()
_BETWEEN_CHUNKS: Final = re.compile(rb"(?:\r\n[0-9A-Fa-f]{1,16}[^\r\n]{0,64}\r\n)?(?=\n)")
_LOOKS_BYTES: Final = 100
"""How far after a CR its LF is looked for, the framing of a chunk between them."""


class Edit(NamedTuple):
    """Bytes from ``start`` up to ``stop`` that are to be others."""

    start: int
    stop: int
    data: bytes


def block(sse: ServerSentEvent | None, data: bytes | None, event_id: str | None, *, whole: bool = True) -> bytes:
    """A block with these fields and this data; None: without data, so that readers see no event.

    Readers take CR for a line end too, so one in the data, which is white space between tokens of JSON, becomes LF.
    """
    fields = _PLAIN if sse is None else sse
    parts = [b": " + comment.encode(errors="replace") if comment else b":" for comment in fields.comments]
    if data is not None:
        parts.append(b"event: " + fields.event.encode(errors="replace"))
    if event_id is not None:
        parts.append(b"id: " + event_id.encode(errors="replace"))
    if fields.retry is not None:
        parts.append(b"retry: %d" % fields.retry)
    if data is not None:
        parts += [b"data: " + line for line in _LINE_END.split(data)]
    return b"\n".join(parts) + (b"\n\n" if whole else b"")


def block_of(frame: Frame, data: bytes | None, event_id: str | None) -> bytes:
    """The block of a recorded event with ``data`` in the place of what it said, and this id if it had one."""
    sse = frame.sse
    whole = UNTERMINATED not in frame.flaws
    said = data if sse is None or sse.dispatched or not whole else None
    if not whole and not said:
        said = None
    return block(sse, said, event_id if sse is not None and sse.id is not None else None, whole=whole)


class Bytes:
    """The recorded bytes of a capture, as they are to be sent again."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._chunked = {
            web.number for web in script.webs if web.http.response is not None and web.http.response.framing == CHUNKED
        }

    def event(self, line: Line, data: bytes, event_id: str | None, *, is_batch: bool = False) -> tuple[Piece, ...]:
        """The recorded block of an event in its recorded pieces; none if its bytes are not to be had as they were.

        ``data`` is what it says now; ``is_batch`` says that this is the whole batch of which the line is an element.
        """
        frame = line.frame
        if frame is None or frame.coding is not None or (_is_part(line) and not is_batch):
            return ()
        pieces = self._pieces(frame, with_line_feed=True)
        whole = _whole(pieces)
        edits = [] if line.message is None else _exchange(whole, _said(line, is_batch=is_batch), data)
        if edits is None:
            return ()
        if frame.sse is not None and frame.sse.id is not None and event_id not in (None, frame.sse.id):
            found = list(_ID_LINE.finditer(whole))
            edits += [Edit(*found[-1].span(1), str(event_id).encode(errors="replace"))] if found else []
        return cut_again(pieces, sorted(edits))

    def body(self, line: Line, data: bytes, *, is_batch: bool = False) -> tuple[Piece, ...]:
        """The recorded pieces of a whole body; none if its bytes are not to be had as they were."""
        frame = line.frame
        if frame is None or frame.coding is not None or line.message is None or (_is_part(line) and not is_batch):
            return ()
        pieces = self._pieces(frame)
        edits = _exchange(_whole(pieces), _said(line, is_batch=is_batch), data)
        return () if edits is None else cut_again(pieces, edits)

    def _pieces(self, frame: Frame, *, with_line_feed: bool = False) -> list[Piece]:
        pieces = self._script.pieces(frame.spans)
        if with_line_feed and pieces and pieces[-1].data.endswith(b"\r"):
            *before, last = pieces
            feed, is_next = self._line_feed(frame)
            is_one = is_next and all(piece.t == last.t for piece in feed)
            pieces = [*before, Piece(last.t, last.data + _whole(feed))] if is_one else [*pieces, *feed]
        return pieces

    def _line_feed(self, frame: Frame) -> tuple[list[Piece], bool]:
        """The LF of the CR with which a block ends, which may be read apart; and whether no framing is between them."""
        span = frame.spans[-1]
        after = self._script.pieces((Span(span.channel, span.stop, span.stop + _LOOKS_BYTES),))
        found = _BETWEEN_CHUNKS.match(_whole(after))
        if found is None or (found[0] and frame.http not in self._chunked):
            return [], True
        place = span.stop + found.end()
        return self._script.pieces((Span(span.channel, place, place + 1),)), not found[0]


def _is_part(line: Line) -> bool:
    """True for an element of a batch, which has no bytes of its own that could be sent alone."""
    return line.message is not None and line.message.batch is not None


def _said(line: Line, *, is_batch: bool) -> bytes:
    """The text of a recorded line, or of the batch that it is an element of."""
    assert line.message is not None
    return line.batch.message.raw if is_batch and line.batch is not None else line.message.raw


def _whole(pieces: Sequence[Piece]) -> bytes:
    return b"".join(piece.data for piece in pieces)


def _exchange(whole: bytes, recorded: bytes, live: bytes) -> list[Edit] | None:
    """Where ``recorded`` stands in ``whole``, line by line, and what is to stand there; None if it is not found."""
    if recorded == live:
        return []
    old, new = _LINE_END.split(recorded), _LINE_END.split(live)
    if len(old) != len(new):
        return None
    edits = []
    position = 0
    for before, after in zip(old, new, strict=True):
        position = whole.find(before, position)
        if position < 0:
            return None
        if before != after:
            edits.append(_narrow(position, before, after))
        position += len(before)
    return edits


def _narrow(position: int, before: bytes, after: bytes) -> Edit:
    """The edit that makes ``before``, at this position, ``after``, without what is the same at both ends."""
    head = _same(before, after, min(len(before), len(after)))
    tail = _same(before, after, min(len(before), len(after)) - head, from_end=True)
    return Edit(position + head, position + len(before) - tail, after[head : len(after) - tail])


def _same(one: bytes, other: bytes, most: int, *, from_end: bool = False) -> int:
    """How many bytes are the same from the beginning, or from the end, at most ``most``."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if from_end:
            is_same = one[len(one) - middle : len(one) - low] == other[len(other) - middle : len(other) - low]
        else:
            is_same = one[low:middle] == other[low:middle]
        low, high = (middle, high) if is_same else (low, middle - 1)
    return low


def cut_again(pieces: Sequence[Piece], edits: Sequence[Edit]) -> tuple[Piece, ...]:
    """The pieces with the edits, which are in order; a cut inside of what is exchanged comes before it."""
    whole = _whole(pieces)
    cuts, position = [], 0
    for piece in pieces[:-1]:
        position += len(piece.data)
        cuts.append(position)
    parts: list[bytes] = []
    at = shift = 0
    moved: list[int] = []
    moves = list(edits)
    for edit in edits:
        parts += [whole[at : edit.start], edit.data]
        at = edit.stop
    said = b"".join((*parts, whole[at:]))
    for cut in cuts:
        while moves and cut >= moves[0].stop:
            edit = moves.pop(0)
            shift += len(edit.data) - (edit.stop - edit.start)
        inside = bool(moves) and cut > moves[0].start
        moved.append((moves[0].start if inside else cut) + shift)
    bounds = pairwise([0, *moved, len(said)])
    return tuple(Piece(piece.t, said[a:b]) for piece, (a, b) in zip(pieces, bounds, strict=True) if b > a)
