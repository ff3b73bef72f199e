"""HTTP/1 on a connection: its heads and bodies as documents, and its lengths made true again."""

import re
from collections.abc import Iterable
from typing import Final

from mcpsniff.export.redact.body import Body
from mcpsniff.export.redact.documents import HEAD, SAID, Account, Gatherer
from mcpsniff.export.redact.edits import ChannelEdits
from mcpsniff.export.redact.views import Edit
from mcpsniff.wire.frames import Span
from mcpsniff.wire.http1 import CHUNKED, LENGTH, Data, End, Head, Http1Connection, Part, Trailers, Undecoded

_LENGTH = re.compile(rb"(?im)^content-length[ \t]*:[ \t]*([0-9]{1,18})[ \t]*\r?$")
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,16})[ \t]*(?:;[^\n]*)?\r?\n\Z")
NOBODY: Final = -1


class Connection:
    """The two directions of a connection."""

    def __init__(self, account: Account, unread: "Unread") -> None:
        self._account = account
        self._unread = unread
        self._sides: dict[str, Side] = {}
        self._http: Http1Connection | None = None
        self._made_for = (NOBODY, NOBODY)

    def side(self, number: int, direction: str, edits: ChannelEdits, offset: int) -> "Side":
        """A direction of it begins (again): the channel with this number."""
        side = self._sides[direction] = Side(self, number, direction, edits, offset)
        return side

    @property
    def is_over(self) -> bool:
        """Whether all directions that were announced have ended."""
        return all(side.is_closed for side in self._sides.values())

    @property
    def account(self) -> Account:
        """Where documents go."""
        return self._account

    def left_out(self) -> None:
        """A body could not be read."""
        self._unread.bodies += 1

    @property
    def http(self) -> Http1Connection:
        """What splits both directions."""
        numbers = tuple(self._sides[way].number if way in self._sides else NOBODY - 1 for way in ("c2s", "s2c"))
        if self._http is None or numbers != self._made_for:
            self._made_for = (numbers[0], numbers[1])
            offsets = {way: side.offset for way, side in self._sides.items()}
            self._http = Http1Connection(
                *self._made_for, request_offset=offsets.get("c2s", 0), response_offset=offsets.get("s2c", 0)
            )
            for side in self._sides.values():
                if side.is_resumed:
                    self._http.gap(side.number)
        return self._http


class Unread:
    """What could not be searched."""

    def __init__(self) -> None:
        self.bodies = 0


class Side:
    """One direction."""

    def __init__(self, connection: Connection, number: int, direction: str, edits: ChannelEdits, offset: int) -> None:
        self.number = number
        self.offset = offset
        self.is_resumed = False
        self.is_closed = False
        self.connection = connection
        self._edits = edits
        self._raw = bytearray()
        self._base = self._end = offset
        """Offsets of the first byte in ``_raw``, and of the one after the last."""
        self._message: _Message | None = None
        self._other = Gatherer(connection.account, edits, SAID, "bytes that are no HTTP")
        self._who = "request" if direction == "c2s" else "response"

    def resume(self) -> None:
        """The capture begins in its middle."""
        self.is_resumed = True

    def feed(self, t: int, data: bytes) -> None:
        """What one read returned."""
        self._raw += data
        self._end += len(data)
        self._take(self.connection.http.feed(t, self.number, data))

    def gap(self, size: int) -> None:
        """Bytes are missing here."""
        if self._message is not None:
            self._message.body.gap()
        self._other.end()
        self.connection.http.gap(self.number, size)

    def close(self, t: int) -> None:
        """It has ended."""
        self._take(self.connection.http.finish(t, self.number))
        self._end_message()
        self._other.end()
        self.is_closed = True

    def _take(self, parts: Iterable[Part]) -> None:
        done = self._base
        for part in parts:
            if not isinstance(part, Undecoded):
                self._other.end()
            if isinstance(part, Head):
                self._end_message()
                (span,) = part.spans
                self._head(part, span)
                done = span.stop
            elif isinstance(part, Data):
                self._data(part)
                done = part.span.stop
            elif isinstance(part, Trailers):
                for span in part.spans:
                    self._read_head(span, f"trailers of a {self._who}")
                    done = span.stop
            elif isinstance(part, End):
                self._end_message()
                done = max([done, *(span.stop for span in part.spans)])
            else:
                for span in part.spans:
                    self._other.feed(self._bytes(span), span.start)
                    done = span.stop
        if done > self._base:
            del self._raw[: done - self._base]
            self._base = done

    def _head(self, head: Head, span: Span) -> None:
        raw = self._bytes(span)
        name = f"{head.method} {(head.target or '').partition('?')[0]}" if head.method else self._who
        self._read_head(span, f"the head of {name}")
        lengths = [
            Span(self.number, span.start + found.start(1), span.start + found.end(1))
            for found in _LENGTH.finditer(raw)
            if head.framing == LENGTH
        ]
        body = Body(self.connection.account, self._edits, head.headers, f"the body of {name}")
        self._message = _Message(
            body, lengths, len(self._edits), is_chunked=head.framing == CHUNKED, raw=raw, head=span
        )

    def _read_head(self, span: Span, where: str) -> None:
        for edit in self.connection.account.read(HEAD, self._bytes(span), where):
            self._edits.add(edit._replace(start=edit.start + span.start, stop=edit.stop + span.start))

    def _data(self, part: Data) -> None:
        if self._message is None:
            self._other.feed(part.data, part.span.start)
            return
        if part.lead is not None and self._message.is_chunked:
            lead = self._bytes(part.lead)
            if found := _SIZE.search(lead):
                digits = Span(self.number, part.lead.start + found.start(1), part.lead.start + found.end(1))
                self._message.chunks.append(_Chunk(part.lead.start, digits, int(found[1], 16), part.span.start))
        if self._message.chunks:
            self._message.chunks[-1].stop = part.span.stop
        self._message.body.feed(part.data, part.span.start)

    def _end_message(self) -> None:
        message, self._message = self._message, None
        if message is None:
            return
        if not message.body.end():
            self.connection.left_out()
        edits = self._edits.since(message.number)
        if not edits:
            return
        message.mend(self._edits, edits)

    def _bytes(self, span: Span) -> bytes:
        return bytes(self._raw[max(0, span.start - self._base) : max(0, span.stop - self._base)])


class _Chunk:
    """A chunk of a chunked body: its framing, and its bytes up to ``stop``."""

    def __init__(self, lead: int, digits: Span, size: int, start: int) -> None:
        self.lead = lead
        self.digits = digits
        self.size = size
        self.start = self.stop = start


class _Message:
    """The message that is being read."""

    def __init__(
        self, body: Body, lengths: list[Span], number: int, *, is_chunked: bool, raw: bytes, head: Span
    ) -> None:
        self.body = body
        self.lengths = lengths
        self.number = number
        """How many edits there were before its body."""
        self.is_chunked = is_chunked
        self.chunks: list[_Chunk] = []
        self._raw = raw
        self._head = head

    def mend(self, channel: ChannelEdits, edits: list[Edit]) -> None:
        """Make the lengths true: they grow by as much as the bytes that they tell of."""
        if self.is_chunked:
            self._mend_chunks(channel, edits)
            return
        grown = sum(_growth(edit) for edit in edits)
        for span in self.lengths:
            said = int(self._raw[span.start - self._head.start : span.stop - self._head.start])
            if grown:
                channel.add(Edit(span.start, span.stop, b"%d" % max(0, said + grown)))

    def _mend_chunks(self, channel: ChannelEdits, edits: list[Edit]) -> None:
        at = 0
        for number, chunk in enumerate(self.chunks):
            grown = 0
            inner = []
            while at < len(edits) and edits[at].start < chunk.stop:
                grown += _growth(edits[at])
                inner.append(edits[at])
                at += 1
            if not grown:
                continue
            if chunk.size + grown <= 0 and number and not any(edit.is_gap for edit in inner):
                # A chunk of no bytes would end the body: its framing goes, too.
                channel.add(Edit(chunk.lead, chunk.start, b""))
                continue
            channel.add(Edit(chunk.digits.start, chunk.digits.stop, b"%x" % max(0, chunk.size + grown)))


def _growth(edit: Edit) -> int:
    """By how many bytes the body grows; what is left out as a gap counts as if it was there."""
    return 0 if edit.is_gap else len(edit.new) - (edit.stop - edit.start)
