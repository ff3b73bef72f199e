"""How a message of HTTP that was held whole leaves: as it came, or with another head or body."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from mcpsniff.hooks.actions import HttpHead
from mcpsniff.proxy.relay.web.heads import Pairs, changed, cut_short, for_body, with_headers
from mcpsniff.proxy.relay.web.stream import OURS

if TYPE_CHECKING:
    from mcpsniff.protocol.message import Message
    from mcpsniff.proxy.relay.web.held import Errand, Held
    from mcpsniff.proxy.relay.web.hub import Hub
    from mcpsniff.proxy.relay.web.output import Output
    from mcpsniff.wire.http1_parts import Head


class Change(NamedTuple):
    """Another body, and why."""

    body: bytes
    by: str
    why: str
    us: int = 0


class Leaving:
    """A head on its way, ``raw`` as text, and perhaps all of its body after it: ``rest``."""

    def __init__(self, head: "Head", raw: bytes, rest: bytes, start: int) -> None:
        self.headers: Pairs = list(head.headers)
        self.status = head.status
        self._head = head
        self._raw = raw
        self._rest = rest
        self._start = start
        self._by = OURS
        self._why = ""
        self._body: Change | None = None

    def put(self, change: Change, held: "Held", keep: int | None = None) -> None:
        """Put another body in the place of the one that arrived; with ``keep`` it breaks off after so many bytes."""
        end = self._rest[held.stop - held.body :].removeprefix(b"\r").removeprefix(b"\n")
        framed = for_body(self._head, self.headers, change.body, is_coded=held.is_coded, end=end)
        if keep is not None:
            framed = cut_short(self._head, framed, change.body, keep)
        self._body = change._replace(body=framed)
        self._by, self._why = change.by, change.why

    def set(self, headers: Mapping[str, str | None], by: str, why: str = "") -> None:
        """Set and remove headers."""
        if headers:
            with_headers(self.headers, headers)
            self._by, self._why = by, why

    def edited(self, hub: "Hub", errand: "Errand", message: "Message | None") -> None:
        """Let edit hooks change the head."""
        head = HttpHead(
            self._head.direction,
            errand.head.method or "",
            errand.head.target or "",
            self.status,
            list(self.headers),
            message,
            errand.session.talk.number,
        )
        by = hub.editor.edit_head(head)
        if by:
            self.headers, self.status = [(str(name), str(value)) for name, value in head.headers], head.status
            self._by, self._why = by, ""

    def drop(self, output: "Output", by: str, why: str, us: int) -> None:
        """Record that nothing of it leaves."""
        with output.lock:
            length = len(self._raw) + len(self._rest)
            output.rewrite(self._start, length, b"", by, why, us=us)
            output.passed = self._start + length

    def leave(self, output: "Output", paced: float = 0.0) -> None:
        """Record what is another thing than what arrived, and write. Raises GoneError."""
        raw, rest, place = self._raw, self._rest, self._start + len(self._raw)
        with output.lock:
            other = changed(self._head, raw, self.headers, self.status)
            if other is not None:
                start, stop, data = other
                output.rewrite(self._start + start, stop - start, data, self._by, self._why)
                raw = raw[:start] + data + raw[stop:]
            body = self._body
            if body is not None:
                output.rewrite(place, len(rest), body.body, body.by, body.why, us=body.us)
            output.passed = place + len(rest)
            content = rest if body is None else body.body
            if paced:
                output.write(raw)
                output.write(content, paced)
            else:
                output.write(raw + content)


@dataclass(slots=True)
class Case:
    """A message that was held whole, and has been edited."""

    errand: "Errand"
    held: "Held"
    leaving: Leaving
    stop: int
    """Where it ends in the channel."""
    us: int
    """For how many microseconds hooks have held it."""
    message: "Message | None" = None
    """Of a request: what it said, or the first of a batch."""
    was: Any = None
    """The body of that before anybody changed it."""

    @property
    def length(self) -> int:
        """Bytes of the body with its framing."""
        return self.stop - self.held.body
