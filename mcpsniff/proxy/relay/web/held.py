"""A message of HTTP that is held whole: its head, and a body that may be one message of JSON-RPC."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from mcpsniff.capture.labels import shown
from mcpsniff.decoder.bodies import FORM, is_like_a_message
from mcpsniff.protocol.http import EVENT_STREAM, is_json_type, media_type
from mcpsniff.proxy.gate import is_own_page
from mcpsniff.proxy.relay.edit_records import LIMIT
from mcpsniff.wire.body import BodyDecoder
from mcpsniff.wire.frames import BOM, CODING_UNKNOWN, DECODE_CAP, INVALID_UTF8, Frame, Span
from mcpsniff.wire.http1_parts import CHUNKED, CLOSE, LENGTH, NONE, Data, Head
from mcpsniff.wire.ndjson import BYTE_ORDER_MARK, JSON_WHITE_SPACE, is_utf8

if TYPE_CHECKING:
    from mcpsniff.hooks.editor import Outgoing
    from mcpsniff.proxy.relay.web.hub import Session

TOO_LARGE: Final = f"a message of more than {LIMIT >> 20} MiB"
ENDLESS: Final = 1 << 62
"""Bytes that no stream comes to."""


class Lane:
    """See `mcpsniff.hooks.editor.Lane`."""

    transport = "http"

    def __init__(
        self,
        holding: Callable[[], AbstractContextManager[object]],
        is_gone: Callable[[], bool],
        late: "Callable[[Outgoing], object]",
        begin: Callable[[int, int, str, str], object] | None = None,
    ) -> None:
        """``begin`` records that a hold begins; see `Output.begin`."""
        self.late = late
        self.was_held = False
        """True if somebody has waited on purpose with the message at hand."""
        self._holding = holding
        self._is_gone = is_gone
        self._begin = begin
        self._place: tuple[int, int] | None = None

    def at_hand(self, start: int, length: int) -> None:
        """A message is about to be edited, which is there in the channel."""
        self._place = start, length
        self.was_held = False

    def holding(self) -> AbstractContextManager[object]:
        """See `mcpsniff.hooks.editor.Lane`."""
        self.was_held = True
        return self._holding()

    def held(self, by: str, why: str = "") -> None:
        """See `mcpsniff.hooks.editor.Lane`."""
        if self._begin is not None and self._place is not None:
            self._begin(*self._place, by, why)

    @property
    def is_gone(self) -> bool:
        """See `mcpsniff.hooks.editor.Lane`."""
        return self._is_gone()


@dataclass(slots=True, eq=False)
class Errand:
    """A request on its way, and what is still to be known of it when its response comes."""

    head: Head
    session: "Session"
    method: str | None = None
    """Of its message, if that is one request."""
    is_batch: bool = False
    backs: "list[Outgoing]" = field(default_factory=list)
    """What hooks have said to the client, to be said with the response."""
    has_continued: bool = False
    """The client has been told by us to send the body."""
    is_begun: bool = False
    """The head of the response has come."""
    is_screened: bool = False
    """Requests of pages from elsewhere have been refused before."""

    @property
    def page(self) -> str | None:
        """The origin of the page that has asked, if that may read what we answer ourselves."""
        origin = self.head.get("origin")
        return origin if origin is not None and (self.is_screened or is_own_page(origin)) else None

    @property
    def accepts_events(self) -> bool:
        """True if the client takes an event stream for an answer."""
        return EVENT_STREAM in ", ".join(self.head.all("accept")).lower()

    @property
    def accepts_json(self) -> bool:
        """True if the client takes a JSON body for an answer."""
        accepts = ", ".join(self.head.all("accept")).lower()
        return not accepts or "json" in accepts or "*/*" in accepts


class Held:
    """What is held. ``start`` is where its head begins in the channel, ``body`` where that ends."""

    def __init__(self, head: Head) -> None:
        self.head = head
        self.start = head.spans[0].start
        self.body = head.spans[-1].stop
        self.size = 0
        self.unread = ""
        """What it is, if it could not be read; known after `text` or `frame`."""
        self.spans: list[Span] = []
        self._pieces: list[bytes] = []
        self._t_first = head.t_last
        self._t_last = head.t_last
        self._is_like: bool | None = None

    def add(self, part: Data) -> None:
        """Take the next piece of the body."""
        if not self._pieces:
            self._t_first = part.t
        self._t_last = part.t
        self._pieces.append(part.data)
        self.size += len(part.data)
        if self.spans and self.spans[-1].stop == part.span.start:
            self.spans[-1] = self.spans[-1]._replace(stop=part.span.stop)
        else:
            self.spans.append(part.span)

    @property
    def stop(self) -> int:
        """Where the bytes of the body end that have come; the framing after them does not count."""
        return self.spans[-1].stop if self.spans else self.body

    @property
    def is_unlike(self) -> bool:
        """True if what has come begins no message. It may have no end, where its head does not say what it is."""
        if self._is_like is None and not media_type(self.head.get("content-type")):
            pieces = decoder_of(self.head).pieces(b"".join(self._pieces))
            text = next(filter(None, (piece.lstrip(JSON_WHITE_SPACE) for piece in pieces)), b"")
            if text:
                self._is_like = text.startswith((b"{", b"[")) or BYTE_ORDER_MARK.startswith(text[:3])
        return self._is_like is False

    @property
    def is_coded(self) -> bool:
        """True if a content coding has to be removed from the body."""
        return bool(_codings(self.head))

    def text(self) -> bytes | None:
        """The body without its coding; None if that cannot be removed wholly."""
        data = b"".join(self._pieces)
        codings = _codings(self.head)
        if not codings:
            return data
        decoder = BodyDecoder(codings, limit=LIMIT)
        text = decoder.feed(data) + decoder.finish()
        if not decoder.flaws:
            return text
        if CODING_UNKNOWN in decoder.flaws:
            self.unread = _coded_otherwise("a body", codings)
        else:
            self.unread = TOO_LARGE if DECODE_CAP in decoder.flaws else "a body whose content coding is damaged"
        return None

    def frame(self) -> Frame | None:
        """The message in the body; None if there is none."""
        text = self.text()
        if text is None or not is_like_a_message(text):
            return None
        flaws = [BOM] if text.startswith(BYTE_ORDER_MARK) else []
        flaws += [] if is_utf8(text, cut=False) else [INVALID_UTF8]
        return Frame(
            self.spans[0].channel,
            self.head.direction,
            "body",
            tuple(self.spans),
            self._t_first,
            self._t_last,
            text,
            len(text),
            tuple(flaws),
            _codings(self.head) or None,
        )


def may_be_a_message(head: Head) -> bool:
    """True if what follows ``head`` is to be held until it is known whether it is a message."""
    return _is_sought(head) and (head.length or 0) <= LIMIT


def unread(head: Head, request: Head) -> str:
    """What follows ``head``, if it is known already that no hook will see it though it may be meant to; else empty."""
    if _is_sought(head):
        return TOO_LARGE if (head.length or 0) > LIMIT else ""
    if media_type(head.get("content-type")) != EVENT_STREAM or head.status is None or is_event_stream(head, request):
        return ""
    if BodyDecoder(_codings(head)).flaws:
        return _coded_otherwise("an event stream", _codings(head))
    return "an event stream for HTTP/1.0" if head.framing == LENGTH else ""


def _coded_otherwise(what: str, codings: str) -> str:
    return f"{what} with a content coding that cannot be read here ({shown(codings)})"


def _is_sought(head: Head) -> bool:
    """True if what follows ``head`` is of a kind that may be a message."""
    if head.framing == NONE:
        return False
    kind = media_type(head.get("content-type"))
    if head.direction == "c2s":
        return head.method == "POST" and head.framing in (LENGTH, CHUNKED) and kind != FORM and not _is_bulk(kind)
    return is_json_type(kind) or not kind


def is_event_stream(head: Head, request: Head) -> bool:
    """True if events follow ``head``, one after the other as they are said, and can be read and written again."""
    if media_type(head.get("content-type")) != EVENT_STREAM or head.framing not in (CHUNKED, CLOSE, LENGTH):
        return False
    is_old = request.version.upper() == "HTTP/1.0" or head.version.upper() == "HTTP/1.0"
    return not BodyDecoder(_codings(head)).flaws and not (head.framing == LENGTH and is_old)


def is_coded(head: Head) -> bool:
    """True if the body that follows ``head`` has a content coding."""
    return bool(_codings(head))


def decoder_of(head: Head) -> BodyDecoder:
    """What removes the coding of the event stream that follows ``head``: all of it, as it is held by the event."""
    return BodyDecoder(_codings(head), limit=ENDLESS, stream=True)


def _codings(head: Head) -> str:
    names = [name.strip() for value in head.all("content-encoding") for name in value.split(",")]
    return ", ".join([name for name in names if name.lower() not in ("", "identity")])


def _is_bulk(kind: str) -> bool:
    return kind.startswith(("multipart/", "image/", "audio/", "video/")) or kind == "application/octet-stream"
