"""The one thing that the relay changes in a response: an `endpoint` event that would lead the client past us.

In the legacy transport (MCP 2024-11-05, HTTP with SSE) the first event of the stream names the address for all POSTs.
Where that is an absolute URL at the upstream, it is made relative **in equal length**: scheme, host and port are cut,
and as many bytes of an SSE comment line stand after the address, so that neither Content-Length nor the sizes of chunks
change. Any other stream passes as it is.

Only the address is held until its event is complete, and of other streams nothing; whoever feeds this decides for how
long (`HOLD_SECONDS`). No sockets here: bytes in, bytes out.
"""

import re

from mcpsniff.proxy.address import LOOPBACK, is_loopback
from mcpsniff.proxy.answers import as_data
from mcpsniff.wire.http1 import Data, End, Head, Http1Splitter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from mcpsniff.proxy.address import Upstream

HOLD_BYTES: "Final" = 64 << 10
"""Bytes that are held at most."""
HOLD_SECONDS: "Final" = 1.0
"""Seconds for which they are held at most."""
EVENT_STREAM: "Final" = "text/event-stream"

_LINE_END = re.compile(rb"\r\n|\r|\n")
_ABSOLUTE: "Final" = (b"http://", b"https://", b"//")
_ORIGIN = re.compile(rb"(https?:)?//(\[[0-9a-f:.]+\]|[^\[\]:@/?#\\\s]+)(?::([0-9]{1,5}))?(?=[/?#]|$)", re.IGNORECASE)
_BOM: "Final" = b"\xef\xbb\xbf"
_ENDPOINT: "Final" = b"endpoint"
_TELLING: "Final" = 32
"""Bytes at the beginning of a line that tell whether it is of interest."""


class Origins:
    """Which URLs are at the upstream: of its scheme, port and host, where all names of loopback are one."""

    def __init__(self, upstream: "Upstream", *, is_local: bool) -> None:
        self._scheme = f"{upstream.scheme}:".encode("ascii")
        self._default_port = upstream.default_port
        self._port = upstream.port
        self._host = upstream.host
        self._is_local = is_local

    def relative(self, url: bytes) -> bytes | None:
        """Return ``url`` without its origin, or None if it is not an absolute URL at the upstream."""
        found = _ORIGIN.match(url)
        if found is None or (found[1] or self._scheme).lower() != self._scheme:
            return None
        host = found[2].strip(b"[]").decode("latin-1").lower()
        port = int(found[3]) if found[3] else self._default_port
        if port != self._port or not (host == self._host or (self._is_local and _is_us(host))):
            return None
        rest = url[found.end() :]
        if rest.startswith((b"//", b"/\\")):  # relative, it would name a host
            return None
        return rest if rest.startswith(b"/") else b"/" + rest


def _is_us(host: str) -> bool:
    return host in LOOPBACK or is_loopback(host)


class EndpointWatch:
    """Looks at one response from its first byte, which is at ``offset`` of ``channel``."""

    def __init__(self, channel: int, offset: int, origins: Origins) -> None:
        self.is_over = False
        """True once there is nothing to look for any more: all further bytes are to be passed on blindly."""
        self._rewrites: list[dict[str, Any]] = []
        self._splitter = Http1Splitter(channel, "s2c", offset=offset)
        self._event: _FirstEvent | None = None
        self._origins = origins
        self._held = bytearray()
        self._held_from = offset
        """Where in the channel `_held` begins."""

    @property
    def is_holding(self) -> bool:
        """True while bytes are held that wait for the end of their event."""
        return bool(self._held)

    def feed(self, t: int, data: bytes) -> bytes:
        """Take what was read at ``t`` and return what is to be passed on."""
        self._held += data
        for part in self._splitter.feed(t, data):
            if isinstance(part, Head):
                if not part.interim:
                    self._begin(part)
            elif isinstance(part, Data) and self._event is not None:
                self._event.feed(part.data, part.span.start)
            elif self._event is not None or not isinstance(part, End):  # an interim response has an end, too
                self.is_over = True
            if self.is_over or (self._event is not None and self._event.verdict is not None):
                break
        event = self._event
        if event is not None and event.verdict:
            self._rewrite(event)
        if self.is_over or event is None or event.verdict is not None:
            # Without an event yet this is a head, which is never held.
            self.is_over = self.is_over or event is not None
            return self._pass_on(len(self._held))
        if event.held_from is None:
            return self._pass_on(len(self._held))
        if len(self._held) > HOLD_BYTES:
            return self.release()
        return self._pass_on(event.held_from - self._held_from)

    def take_rewrites(self) -> "list[dict[str, Any]]":
        """Return the bodies of rewrite records, without ``by``, for what was changed since the last call."""
        rewrites, self._rewrites = self._rewrites, []
        return rewrites

    def release(self) -> bytes:
        """Return what is held, as it is: it took too long, or too much, or the stream ended."""
        self.is_over = True
        return self._pass_on(len(self._held))

    def _begin(self, head: Head) -> None:
        """Look for an event if this response is an uncompressed stream of them."""
        kind = (head.get("content-type") or "").partition(";")[0].strip().lower()
        coding = (head.get("content-encoding") or "identity").strip().lower()
        if kind == EVENT_STREAM and coding == "identity" and head.status == 200:
            self._event = _FirstEvent(self._origins)
        else:
            self.is_over = True

    def _rewrite(self, event: "_FirstEvent") -> None:
        """Put the relative address in the place of the absolute one, wherever in the stream its pieces are."""
        for start, new in event.replacements():
            at = start - self._held_from
            self._held[at : at + len(new)] = new
            self._rewrites.append({"start": start, "length": len(new), "data": as_data(new)})

    def _pass_on(self, size: int) -> bytes:
        data = bytes(self._held[:size])
        del self._held[:size]
        self._held_from += size
        return data


class _FirstEvent:
    """Reads an event stream up to the end of its first event (WHATWG HTML 9.2.6), or until that is none of ours."""

    def __init__(self, origins: Origins) -> None:
        self.verdict: bool | None = None
        """None while it is open, then whether the event is to be changed."""
        self.held_from: int | None = None
        """Where in the channel the address begins that must not leave yet; None if there is none so far."""
        self._origins = origins
        self._line = bytearray()
        """The line so far; of a line that is of no interest only its beginning."""
        self._runs: list[tuple[int, int]] = []
        """Where in `_line` a run of recorded bytes begins, and where in the channel that is."""
        self._may_have_bom = True
        self._after_cr = False
        self._is_endpoint = False
        self._url = b""
        self._url_runs: list[tuple[int, int]] = []
        """Of the address: where in the channel its pieces are, and their sizes."""
        self._url_end = b""
        """The line end after the address."""

    def feed(self, data: bytes, start: int) -> None:
        """Take bytes of the body that are at ``start`` of the channel and beyond."""
        at = 0
        if self._after_cr:
            at = int(data.startswith(b"\n"))
            if at and self._url_end == b"\r":
                self._url_end = b"\r\n"
        while self.verdict is None and at < len(data):
            found = _LINE_END.search(data, at)
            stop = found.start() if found else len(data)
            self._go_on(data[at:stop], start + at)
            if found is None:
                self._after_cr = False
                return
            self._after_cr = found[0] == b"\r" and found.end() == len(data)
            at = found.end()
            if self.verdict is None:
                self._take_line(found[0])

    def replacements(self) -> list[tuple[int, bytes]]:
        """Return what is to stand in the place of the address, by where in the channel: as many bytes."""
        relative = self._relative()
        assert relative is not None
        pieces = []
        at = 0
        for start, size in self._url_runs:
            pieces.append((start, relative[at : at + size]))
            at += size
        return pieces

    def _go_on(self, piece: bytes, start: int) -> None:
        """Add to the line, and decide on its beginning if that is enough."""
        if not piece or (len(self._line) >= _TELLING and self.held_from is None):
            return
        self._runs.append((len(self._line), start))
        self._line += piece
        line, bom = self._content(_TELLING)
        if line.startswith(b"data:"):
            value = line[_value_at(line) :].lower()
            if not value.startswith(_ABSOLUTE) and not any(form.startswith(value) for form in _ABSOLUTE):
                self.verdict = False
            elif value and not self._url:
                self.held_from = self._place(bom + _value_at(line))
        elif line.startswith(b"event:") and not _ENDPOINT.startswith(line[6:].removeprefix(b" ")[: len(_ENDPOINT) + 1]):
            self.verdict = False

    def _take_line(self, line_end: bytes) -> None:
        """Read the line that is complete."""
        line, bom = self._content()
        name, _, value = line.partition(b":")
        if not line:
            self._dispatch()
        elif name == b"event":
            self._is_endpoint = value.removeprefix(b" ") == _ENDPOINT
            if not self._is_endpoint:
                self.verdict = False
        elif name == b"data":
            if self._url or not value:
                self.verdict = False  # an address of two lines is none
            else:
                self._take_url(line, bom, line_end)
        self._may_have_bom = False
        self._line.clear()
        self._runs.clear()

    def _take_url(self, line: bytes, bom: int, line_end: bytes) -> None:
        """Keep the address that ``line``, a data line, holds, and where it is."""
        skip = bom + _value_at(line)
        self._url, self._url_end = line[skip - bom :], line_end
        ends = [*(at for at, _ in self._runs[1:]), len(self._line)]
        for (at, start), end in zip(self._runs, ends, strict=True):
            first = max(at, skip)
            if first < end:
                self._url_runs.append((start + first - at, end - first))
        if self._origins.relative(self._url) is None:
            self.verdict = False

    def _dispatch(self) -> None:
        """Decide at an empty line, if it ends an event: a block without data is none."""
        if self._url:
            self.verdict = self._is_endpoint and self._relative() is not None
        self._is_endpoint = False

    def _content(self, size: int | None = None) -> tuple[bytes, int]:
        """Return the line, or its first ``size`` bytes, without the stream's byte order mark, and the mark's size."""
        line = bytes(self._line if size is None else self._line[:size])
        if self._may_have_bom and line.startswith(_BOM):
            return line[len(_BOM) :], len(_BOM)
        return line, 0

    def _place(self, at: int) -> int:
        """Return where in the channel byte ``at`` of the line is."""
        begins, start = next(run for run in reversed(self._runs) if run[0] <= at)
        return start + at - begins

    def _relative(self) -> bytes | None:
        """Return the relative address and a comment line, as long as the absolute one; None if that cannot be."""
        relative = self._origins.relative(self._url)
        room = 0 if relative is None else len(self._url) - len(relative) - len(self._url_end)
        return None if relative is None or room < 1 else relative + self._url_end + b":".ljust(room)


def _value_at(line: bytes) -> int:
    """Return where in a data line its value begins: one space after the colon does not count."""
    return 6 if line[5:6] == b" " else 5
