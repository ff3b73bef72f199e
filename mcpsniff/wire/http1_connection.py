"""The two directions of one HTTP/1.1 connection, read together.

A response cannot be read without its request: HEAD and CONNECT decide whether a body follows (RFC 9112 section 6.3),
and after 101 or a tunnel both directions are no HTTP any more.
"""

from collections import deque

from mcpsniff.wire.http1_parts import HTTP2, TUNNEL, UNASKED_RESPONSE, UPGRADED, Head, Part, Undecoded
from mcpsniff.wire.http1_splitter import REQUESTS_LIMIT, Http1Splitter


class Http1Connection:
    """Splits both channels of one connection and says of each response which request it answers (`Head.request`)."""

    def __init__(
        self, request_channel: int, response_channel: int, *, request_offset: int = 0, response_offset: int = 0
    ) -> None:
        self.requests = Http1Splitter(request_channel, "c2s", offset=request_offset)
        self.responses = Http1Splitter(response_channel, "s2c", offset=response_offset)
        self._waiting: deque[Head] = deque()
        self._uncertain = request_offset > 0 or response_offset > 0
        self._lost_responses = False

    def feed(self, t: int, channel: int, data: bytes) -> list[Part]:
        """Take what one read on ``channel`` returned at ``t``; return the parts of that channel."""
        if channel == self.requests.channel:
            parts = self.requests.feed(t, data)
            self._after_requests(parts)
        else:
            parts = self.responses.feed(t, data)
            self._after_responses(parts)
        return parts

    def gap(self, channel: int, size: int = 0) -> None:
        """``size`` bytes (0: unknown) are missing here on ``channel``."""
        self._uncertain = True
        if channel == self.requests.channel:
            self.requests.gap(size)
        else:
            self.responses.gap(size)
            self._lost_responses = True

    def expect(self, parts: list[Part]) -> None:
        """A request that is not among the bytes fed was sent: its response comes."""
        self._after_requests(parts)

    def withdraw(self, request: Head | None) -> None:
        """No response to this request comes: somebody has answered it, and the server has not seen it."""
        for place, head in enumerate(self._waiting):
            if head is request:
                del self._waiting[place]
                self.responses.withdraw(place)
                return

    def finish(self, t: int, channel: int) -> list[Part]:
        """``channel`` has ended at ``t``."""
        if channel == self.requests.channel:
            parts = self.requests.finish(t)
            self._after_requests(parts)
        else:
            parts = self.responses.finish(t)
            self._after_responses(parts)
        return parts

    def _after_requests(self, parts: list[Part]) -> None:
        for part in parts:
            if isinstance(part, Undecoded):
                self._uncertain = True
            if not isinstance(part, Head):
                continue
            if self._lost_responses:  # a client that asks again has had its answers: they were in the gap
                self._waiting.clear()
                self.responses.forget()
                self._lost_responses = False
            if len(self._waiting) < REQUESTS_LIMIT:
                self._waiting.append(part)
            self.responses.expect(part.method or "GET")
        if self.requests.is_http2 and not self.responses.is_http2:
            self.responses.tunnel(HTTP2)

    def _after_responses(self, parts: list[Part]) -> None:
        for part in parts:
            if not isinstance(part, Head):
                continue
            if part.interim:
                part.request = self._waiting[0] if self._waiting else None
                continue
            part.request = self._waiting.popleft() if self._waiting else None
            if part.request is None and not self._uncertain and not self.requests.pending:
                part.flaws = (*part.flaws, UNASKED_RESPONSE)
            if part.framing == TUNNEL:
                self.requests.tunnel(UPGRADED if part.status == 101 else TUNNEL)
            elif part.request is not None and part.request.method == "CONNECT":
                self.requests.untunnel()
