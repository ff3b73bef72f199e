"""Secrets in HTTP as it passes, one object per recorded channel: which bytes are a head, a body, or unknown.

Nothing is held back or moved: a chunk comes out as one chunk, with `*` for secrets. Only the compressed body of a token
endpoint, in which no secret can be told from the rest, is taken out and its size admitted as a gap.
"""

import re
from collections.abc import Callable
from typing import Any, Final

from mcpsniff.proxy.mask_body import (
    EVENT_STREAM,
    BodyScanner,
    is_coded,
    is_form,
    is_readable,
    is_token_path,
    media_type,
)
from mcpsniff.proxy.mask_head import HeadScanner
from mcpsniff.proxy.mask_marks import Marks
from mcpsniff.wire.http1 import Data, End, Head, Http1Connection, Part, Undecoded

type Entry = tuple[int, str, int | None, Any]
"""A record to be: t in microseconds, kind, channel, body."""
type Salt = Callable[[], bytes]

_BEGINS = re.compile(rb"(?:HTTP/1\.[01] |[A-Z]{3,20} [/*h])")
_TELLING: Final = {len(name): name for name in ("content-type", "content-encoding", "transfer-encoding")}
"""Headers that tell what a body is, by the lengths of their names."""
_HANDED_OVER: Final = 1024
"""Requests of one connection that are remembered until they are answered, since their bodies told what they are."""


class ChannelMask:
    """Masks one channel whose chunks are the body of an HTTP message, or part of a connection (`ConnectionSide`)."""

    def __init__(self, salt: Salt) -> None:
        self.marks = Marks(salt)
        self.removed = 0
        """Bytes taken out so far: recorded offsets are smaller by so much."""
        self.body: BodyScanner | None = None
        self.hands_over = False
        """The body that passes is compressed, and that of a token endpoint."""
        self._offset = 0
        self._cuts: list[tuple[int, int]] = []

    def chunk(self, t: int, channel: int, data: bytes) -> list[Entry]:
        """Return what is to be recorded instead of a chunk."""
        self.marks.base = self._offset - self.removed
        self.look(t, data)
        self._offset += len(data)
        masked = self.marks.masked(data)
        entries = self._without_cuts(t, channel, masked) if self._cuts else [(t, "chunk", channel, masked)]
        return entries + self.told(t, channel)

    def look(self, _t: int, data: bytes) -> None:
        """Look at all of a chunk: here it is body."""
        self.look_at_body(data, 0, len(data))

    def look_at_body(self, data: bytes, position: int, stop: int) -> None:
        """Look at a piece of a body."""
        if self.hands_over:
            self._cuts.append((position, stop))
            self.removed += stop - position
            self.marks.base -= stop - position
        elif self.body is not None and not self.body.is_done:
            self.body.scan(data, position, stop)

    def gap(self, _size: int) -> None:
        """Bytes are missing here."""
        if self.body is not None:
            self.body.lose()

    def finish(self, t: int, channel: int) -> list[Entry]:
        """The channel has ended: a secret that was open is over."""
        self.marks.end()
        return self.told(t, channel)

    def told(self, t: int, channel: int) -> list[Entry]:
        """Return records of the secrets that have ended."""
        return [(t, "mask", channel, body) for body in self.marks.take_records()]

    def begin_body(self, head: Head, target: str, asked: bool | None = None) -> None:
        """A body follows ``head``, of a message that belongs to a request for ``target``.

        ``asked`` tells how a response's request was `understood`.
        """
        self.body, self.hands_over = None, False
        codings: list[str] = []
        content_type: str | None = None
        for name, value in head.headers:
            wanted = _TELLING.get(len(name))  # so that few names need to be compared
            if wanted is None or name.lower() != wanted:
                continue
            if wanted != "content-type":
                codings.append(value)
            elif content_type is None:
                content_type = value
        media = media_type(content_type or "")
        if media == EVENT_STREAM:
            return
        is_sensitive = is_token_path(target) if asked is None else asked
        if codings and is_coded(codings):
            self.hands_over = is_sensitive or is_form(media)
        elif is_sensitive or is_readable(media):
            self.body = BodyScanner(self.marks, media, is_sensitive=is_sensitive)

    def understood(self) -> bool | None:
        """Say of a request, when its body has passed, whether the answer hands credentials over.

        True: it had some itself, or asked for some; False: it is a JSON-RPC message; None: its path must tell.
        """
        if self.hands_over or (self.body is not None and self.marks.found):
            return True
        return False if self.body is not None and self.body.is_message else None

    def _without_cuts(self, t: int, channel: int, data: bytes) -> list[Entry]:
        entries: list[Entry] = []
        done = 0
        for start, stop in self._cuts:
            if start > done:
                entries.append((t, "chunk", channel, data[done:start]))
            if entries and entries[-1][1] == "gap":
                entries[-1][3]["bytes"] += stop - start
            else:
                entries.append((t, "gap", channel, {"bytes": stop - start, "why": "secret"}))
            done = stop
        if done < len(data):
            entries.append((t, "chunk", channel, data[done:]))
        self._cuts = []
        return entries


class ConnectionSide(ChannelMask):
    """Masks one direction of a connection: 0 are its requests, 1 its responses."""

    def __init__(self, salt: Salt, connection: "ConnectionMask", direction: int) -> None:
        super().__init__(salt)
        self.connection = connection
        """Both directions."""
        self._direction = direction
        self._heads = HeadScanner(self.marks)
        self._region: type[Part] | None = None
        self._request = -1  # offset of the request whose body passes
        self._looked = 0
        self._after_gap = False

    def look(self, t: int, data: bytes) -> None:
        """Look at all of a chunk, each byte once, as what it turns out to be."""
        http = self.connection.http
        base = self._offset
        self._look_after_gap(data)
        for part in http.feed(t, self._direction, data):
            if isinstance(part, Data):
                start = part.span.start - base
                self._skip(start)
                self.look_at_body(data, start, start + len(part.data))
                self._looked = start + len(part.data)
            elif isinstance(part, End):
                if part.spans:
                    self._skip(part.spans[-1].stop - base)
                self._end_body()
            else:
                self._look_at_lines(data, part.spans[-1].stop - base, type(part))
                if isinstance(part, Head):
                    self._begin_body(part)
        side = (http.requests, http.responses)[self._direction]
        pending = side.pending
        if pending in {"head", "trailers"}:
            self._look_at_lines(data, len(data), Head)
        elif pending == "unknown":
            self._look_at_lines(data, len(data), Undecoded)
        self._looked = 0

    def gap(self, size: int) -> None:
        """``size`` bytes are missing here, and with them perhaps the beginning of a secret."""
        self.connection.http.gap(self._direction, size)
        self.look(0, b"")
        self._after_gap = True
        super().gap(size)

    def finish(self, t: int, channel: int) -> list[Entry]:
        """The channel has ended: a secret that was open is over."""
        self.connection.http.finish(t, self._direction)
        return super().finish(t, channel)

    def _look_after_gap(self, data: bytes) -> None:
        """Where heads may be, take the first line after a gap for the rest of a secret, unless a head begins there."""
        if self._after_gap:
            self._after_gap = False
            if not _BEGINS.match(data):
                self._heads.lose()
                self._region = Undecoded
            else:
                self._region = None

    def _skip(self, stop: int) -> None:
        """What comes before ``stop`` only frames a body."""
        self._looked = max(self._looked, stop)
        self._region = None

    def _look_at_lines(self, data: bytes, stop: int, region: type[Part]) -> None:
        """Look for header lines up to ``stop``."""
        if self._region is None:
            self._heads.begin()
        self._region = region
        self._heads.is_loose = region is Undecoded
        if stop <= self._looked:
            return
        if region is Undecoded and self.body is not None and not self.body.is_done:
            self.body.scan(data, self._looked, stop)  # after a gap in it: nobody knows where it goes on
        else:
            self._heads.scan(data, self._looked, stop)
        self._looked = stop

    def _begin_body(self, head: Head) -> None:
        self._region = None
        self.marks.end()
        self.marks.found = False
        handed_over = self.connection.handed_over
        request = head if self._direction == 0 else head.request
        target = (request and request.target) or ""
        place = request.spans[0].start if request else -1
        if self._direction == 0:
            self._request = place
        if self._direction == 0:
            self.begin_body(head, target)
            return
        self.begin_body(head, target, handed_over.get(place))
        if not head.interim:
            handed_over.pop(place, None)

    def _end_body(self) -> None:
        """A message is over."""
        self.marks.end()
        handed_over = self.connection.handed_over
        understood = self.understood() if self._direction == 0 else None
        if understood or (understood is False and self.body is not None and self.body.is_sensitive):
            handed_over[self._request] = understood
            if len(handed_over) > _HANDED_OVER:
                del handed_over[next(iter(handed_over))]
        self.body, self.hands_over, self._region = None, False, None


class ConnectionMask:
    """Both directions of one connection; what a response hands over depends on its request."""

    def __init__(self, salt: Salt) -> None:
        self.http = Http1Connection(0, 1)
        self.handed_over: dict[int, bool] = {}
        """How requests that wait for their answers were `understood`, by their offsets, where the path would not do."""
        self.sides = (ConnectionSide(salt, self, 0), ConnectionSide(salt, self, 1))
        self.open = 2
