"""HTTP messages that were recorded as such: a channel for each body, with start line and headers in its ``meta``."""

from typing import TYPE_CHECKING, Any, Final

from mcpsniff.capture.labels import shown
from mcpsniff.capture.records import Record
from mcpsniff.decoder.channel import Channel, close_event, number_of, text_of
from mcpsniff.decoder.emitter import Event
from mcpsniff.decoder.flow import Flow
from mcpsniff.decoder.tcp import connection_of, responses_of
from mcpsniff.protocol.http import HttpExchange, origin_form
from mcpsniff.protocol.origins import server_of
from mcpsniff.wire.frames import GAP, Span
from mcpsniff.wire.http1_parts import CLOSE, CUT, Data, End, Head

if TYPE_CHECKING:
    from mcpsniff.decoder.web import Web

LONGEST: Final = 80
"""Characters of captured text in words about a channel."""


class BodyChannel(Channel):
    """The body of one request, or of one response."""

    def __init__(self, web: "Web", number: int, fields: dict[str, Any], offset: int = 0) -> None:
        super().__init__(number, fields)
        self.direction = "c2s" if self.kind == "http-request" else "s2c"
        meta = fields.get("meta")
        self._about: dict[str, Any] = meta if isinstance(meta, dict) else {}
        self._web = web
        self._offset = offset
        self._flaws: tuple[str, ...] = ()
        self.head: Head | None = None
        self.answers = number_of(fields.get("of"))
        """Of a response: the channel of its request."""
        answered = web.body_channel(self.answers) if self.direction == "s2c" else None
        self.request = None if answered is None else answered.head
        if answered is not None:
            self.flow: Flow = answered.flow
        else:
            server = server_of(text_of(self._about.get("scheme")), text_of(self._about.get("authority")))
            self.flow = Flow(web, connection_of(number, fields), server, web.limit)

    def begin(self, out: list[Event], t: int) -> None:
        """Its head, which came before its first byte; a response that never began has none."""
        if self.direction == "s2c" and not text_of(self._about.get("start")):
            return
        self.head = _head(self.direction, self._about, t)
        self.head.request = self.request
        if self.direction == "c2s":
            self.flow.requests(out, [self.head])
        else:
            self.flow.responses(out, [self.head])

    def feed(self, out: list[Event], t: int, data: bytes) -> None:
        """See `Channel`."""
        self._web.goes_on(out, self.number, t)
        part = Data(data, Span(self.number, self._offset, self._offset + len(data)), t)
        self._offset += len(data)
        if self.direction == "c2s":
            self.flow.requests(out, [part])
        else:
            self.flow.responses(out, [part])

    def close(self, out: list[Event], record: Record) -> None:
        """See `Channel`."""
        self._web.goes_on(out, self.number, record.t)
        close = close_event(self, record)
        complete = close.how in ("eof", "")
        end = End(record.t, complete, self._flaws if complete else (*self._flaws, CUT))
        if not complete:
            by_sender = close.how == "reset"
            by = "client" if by_sender == (self.direction == "c2s") else "server"
            self.flow.hang_up("mcpsniff" if close.is_ours else by, cuts=True)
        if self.direction == "c2s":
            self.flow.requests(out, [end])
            if not complete:
                self.flow.finish(out, record.t)
        else:
            self.flow.responses(out, [end])
            self.flow.finish(out, record.t)
        self._web.closed(out, self, close, record.t)

    def current(self) -> HttpExchange | None:
        """See `Channel`."""
        return self.flow.current(of_requests=self.direction == "c2s")

    def inject(self, out: list[Event], t: int, data: bytes, by: str) -> None:
        """What ``by`` said in the server's place, without any recorded bytes."""
        if self.direction == "c2s" or self.head is not None:
            return
        http = self.flow.next_to_answer()
        parts = responses_of(self.number, None if http is None else http.method, t, data)
        self.flow.answer_for(out, parts, by)

    def where(self) -> str:
        """See `Channel`."""
        head = self.head if self.direction == "c2s" else self.request
        if head is None:
            return "the body of a response" if self.direction == "s2c" else "the body of a request"
        path = origin_form(head.target or "").partition("?")[0]
        name = shown(f"{head.method} {path}"[:LONGEST])
        if self.direction == "c2s":
            return f"the request body of {name}"
        http = next(iter(self.flow.open.values()), None)  # one request is all that this flow has
        is_stream = http is not None and http.stream is not None
        carried = () if http is None or http.talk is None else http.talk.exchanges.carried_by(http)
        of = f" for #{carried[0].request} {shown(carried[0].method[:LONGEST])}" if carried else ""
        return f"the {'event stream' if is_stream else 'response body'} of {name}{of}"

    def gap(self, size: int, why: str) -> None:  # noqa: ARG002 - offsets count what was recorded
        """See `Channel`."""
        self._flaws = (GAP,)
        self.flow.gap(of_requests=self.direction == "c2s")
        if why != "secret":
            self._web.lose()

    def resume(self) -> None:
        """See `Channel`."""
        self._flaws = (GAP,)
        self.flow.gap(of_requests=self.direction == "c2s")


def _head(direction: str, about: dict[str, Any], t: int) -> Head:
    """The head that ``meta`` holds: ``start`` and ``headers``."""
    start = text_of(about.get("start"))
    words = start.split(" ", 2)
    words += [""] * (3 - len(words))
    is_request = direction == "c2s"
    status = int(words[1]) if not is_request and words[1].isdecimal() and len(words[1]) == 3 else None
    listed = about.get("headers")
    pairs = [pair for pair in listed if _is_pair(pair)] if isinstance(listed, list) else []
    return Head(
        direction,
        start.encode(errors="replace"),
        words[0] if is_request else None,
        words[1] if is_request else None,
        status,
        "" if is_request else words[2],
        words[2] if is_request else words[0],
        tuple((name, value) for name, value in pairs),
        (),
        t,
        t,
        (),
        CLOSE,
        None,
    )


def _is_pair(pair: Any) -> bool:
    return isinstance(pair, list) and len(pair) == 2 and all(isinstance(text, str) for text in pair)
