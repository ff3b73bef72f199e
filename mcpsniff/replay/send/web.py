"""What both ways over HTTP share: one client session of aiohttp, redirects, reading bodies and event streams.

Nothing is taken from the environment: neither proxies nor credentials of ``.netrc``.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

import aiohttp

from mcpsniff.protocol.http import EVENT_STREAM, media_type
from mcpsniff.protocol.message import ERROR, Message
from mcpsniff.protocol.reading import JsonReader
from mcpsniff.replay.send.headers import Headers, merged
from mcpsniff.replay.send.link import FRAME_LIMIT, SHOWN, Came, NoTape, Sent, Tape, UnreachableError, now_us, text_frame
from mcpsniff.replay.send.link import read_messages as messages_of
from mcpsniff.replay.send.reach import named, reason, redirected
from mcpsniff.wire.frames import Frame, Span
from mcpsniff.wire.sse import EventSplitter

MOST_REDIRECTS: Final = 5
REFUSAL: Final = 1 << 20
"""Bytes of a refusal's body that are read."""
RETRY_MS: Final = 1000
"""How long a client waits before it asks for a stream again, unless the server says otherwise."""
_READ: Final = 1 << 16


class Wire:
    """The HTTP side of a link: requests to one origin, with what the user gave for each of them."""

    def __init__(
        self, url: str, hear: Callable[[Came], None], given: Headers, tape: Tape | None, timeout: float
    ) -> None:
        """``given`` are header fields that are sent with everything, and kept by no tape; ``timeout`` is in seconds."""
        self.url = url
        self._hear = hear
        self.reader = JsonReader()
        self._given = given
        self._tape = tape or NoTape()
        self._timeout = timeout
        self._session: aiohttp.ClientSession | None = None
        self.reached = False
        """True once the server has answered anything."""

    async def open(self) -> None:
        """Make ready; nothing is sent yet."""
        trace = aiohttp.TraceConfig()
        trace.on_request_chunk_sent.append(_written)
        trace.on_request_headers_sent.append(_written_head)
        self._session = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._timeout),
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            trace_configs=[trace],
            trust_env=False,
            read_bufsize=1 << 18,
            max_line_size=1 << 16,
            max_field_size=1 << 16,
        )

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    @asynccontextmanager
    async def ask(
        self,
        method: str,
        headers: Headers,
        data: bytes | None = None,
        *,
        url: str | None = None,
        written: asyncio.Event | None = None,
    ) -> AsyncIterator["Response"]:
        """Send a request and give the response, redirects within the origin followed, with its tape running.

        Raises UnreachableError if nobody was reached, and aiohttp.ClientError if the connection was lost.
        """
        assert self._session is not None
        target = url or self.url
        for _ in range(MOST_REDIRECTS + 1):
            taped = _Taped(self._tape, (method, target), headers, data, self._given)
            answer = await self._request(method, target, headers, data, written)
            try:
                taped.began(answer)
                self.reached = True
                location = answer.headers.get("Location", "")
                further = _within_origin(target, location) if answer.status in (307, 308) else None
                if further is None:
                    yield Response(answer, taped)
                    return
                taped.ended(whole=True)
                target = further
                if url is None:
                    self.url = further
            finally:
                taped.ended(whole=answer.content.at_eof())
                answer.close()
        raise aiohttp.ClientError("too many redirects")

    async def _request(
        self, method: str, url: str, headers: Headers, data: bytes | None, written: asyncio.Event | None
    ) -> aiohttp.ClientResponse:
        assert self._session is not None
        try:
            return await self._session.request(
                method,
                url,
                headers=merged(headers, self._given),
                data=data,
                allow_redirects=False,
                skip_auto_headers=("User-Agent", "Content-Type", "Accept-Encoding"),
                trace_request_ctx=written,
            )
        except (aiohttp.ClientConnectorError, aiohttp.InvalidURL, aiohttp.ConnectionTimeoutError, ValueError) as error:
            if self.reached:
                raise aiohttp.ClientConnectionError(str(error)) from None
            raise UnreachableError(f"cannot reach {named(url)}: {reason(error, url)}") from None

    async def messages(self, response: "Response", sent: Sent | None, *, most: int = FRAME_LIMIT) -> int:
        """Read a body of JSON to its end and tell what it says; gives the number of messages."""
        body = await response.read(most)
        if not body.strip():
            return 0
        found = messages_of(text_frame(body, "s2c"), self.reader)
        for message in found:
            self._hear(Came(message, now_us(), sent, response.status))
        return len(found)

    async def refusal(self, response: "Response", sent: Sent) -> str:
        """Read a refusal; tell the JSON-RPC errors in it. Gives its text, empty if there were such errors."""
        body = await response.read(REFUSAL)
        if body.strip():
            found = [message for message in messages_of(text_frame(body, "s2c"), self.reader) if _is_error(message)]
            for message in found:
                self._hear(Came(message, now_us(), sent, response.status))
            if found:
                return ""
        if (told := redirected(response.status, self.url, response.says("Location"))) is not None:
            return told
        text = body.decode(errors="replace").strip()
        return text if len(text) <= SHOWN else text[:SHOWN] + "…"


def _is_error(message: Message) -> bool:
    """True for an error of JSON-RPC; what else servers give with a refusal often has an ``error``, too (OAuth's)."""
    if message.kind != ERROR or message.body.get("jsonrpc") != "2.0":
        return False
    error = message.body.get("error")
    return isinstance(error, Mapping) and "code" in error


class Response:
    """A response, whose bytes are kept by the tape as they are read."""

    def __init__(self, answer: aiohttp.ClientResponse, taped: "_Taped") -> None:
        self.status = answer.status
        self.media_type = media_type(answer.headers.get("Content-Type"))
        self._answer = answer
        self._taped = taped

    @property
    def is_stream(self) -> bool:
        """True if it is an event stream."""
        return self.media_type == EVENT_STREAM

    def says(self, name: str) -> str | None:
        """The first value of a header field."""
        return self._answer.headers.get(name)

    async def read(self, most: int) -> bytes:
        """Its body, at most so many bytes of it."""
        parts, size = [], 0
        try:
            async for piece in self._answer.content.iter_any():
                parts.append(piece[: most - size])
                size += len(parts[-1])
                if size >= most:
                    break
        finally:  # the tape gets it whole, so that what is not to be kept can be found
            self._taped.piece(b"".join(parts))
        return b"".join(parts)

    async def events(self, splitter: EventSplitter) -> AsyncIterator[Frame]:
        """The blocks of an event stream as they come, those without an event included."""
        pending, offset = bytearray(), 0
        async for piece in self._answer.content.iter_any():
            pending += piece
            spans = (Span(0, offset, offset + len(piece)),)
            offset += len(piece)
            frames = splitter.feed(now_us(), piece, spans)
            if (
                frames or len(pending) > FRAME_LIMIT
            ):  # the tape gets whole events, in which what is not to be kept can be found
                self._taped.piece(bytes(pending))
                pending.clear()
            for frame in frames:
                yield frame
        if pending:
            self._taped.piece(bytes(pending))


class _Taped:
    """One HTTP exchange on a tape, without what the user gave."""

    def __init__(
        self, tape: Tape, start: tuple[str, str], headers: Headers, data: bytes | None, given: Headers
    ) -> None:
        method, url = start
        place = urlsplit(url)
        target = (place.path or "/") + (f"?{place.query}" if place.query else "")
        pairs = [["Host", place.netloc.rpartition("@")[2]], *map(list, headers)]
        pairs += [[name, "*" * max(3, len(value))] for name, value in given]
        if data is not None:
            pairs.append(["Content-Length", str(len(data))])
        self._about = {"authority": place.netloc.rpartition("@")[2], "scheme": place.scheme}
        self._tape = tape
        self._connection = tape.connection()
        meta = {"start": f"{method} {target} HTTP/1.1", "headers": pairs, **self._about}
        self._asked = tape.open({"kind": "http-request", "dir": "c2s", "conn": self._connection, "meta": meta})
        if data:
            tape.chunk(self._asked, data)
        tape.close(self._asked, {"how": "eof"})
        self._said: int | None = None
        self._is_over = False

    def began(self, answer: aiohttp.ClientResponse) -> None:
        """The head of the response is there."""
        pairs = [[name.decode("latin-1"), value.decode("latin-1")] for name, value in answer.raw_headers]
        coding = answer.headers.get("Content-Encoding")
        meta: dict[str, Any] = {"start": f"HTTP/1.1 {answer.status} {answer.reason or ''}", "headers": pairs}
        meta |= {**self._about, **({"uncoded": coding} if coding else {})}
        about = {"kind": "http-response", "dir": "s2c", "conn": self._connection, "of": self._asked}
        self._said = self._tape.open({**about, "meta": meta})

    def piece(self, data: bytes) -> None:
        """Bytes of its body."""
        if self._said is not None and data:
            self._tape.chunk(self._said, data)

    def ended(self, *, whole: bool) -> None:
        """It is over; only the first call counts."""
        if self._said is not None and not self._is_over:
            self._is_over = True
            self._tape.close(self._said, {"how": "eof"} if whole else {"how": "aborted", "error": "the client left"})


async def first_of(event: asyncio.Event, task: "asyncio.Task[None]", timeout: float) -> None:
    """Wait until the event is set, the task is over, or so many seconds have passed."""
    waiting = asyncio.create_task(event.wait())
    await asyncio.wait((waiting, task), timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()


async def _written(_session: Any, context: Any, _params: Any) -> None:
    if isinstance(context.trace_request_ctx, asyncio.Event):
        context.trace_request_ctx.set()


async def _written_head(_session: Any, context: Any, params: Any) -> None:
    if isinstance(context.trace_request_ctx, asyncio.Event) and params.method != "POST":
        context.trace_request_ctx.set()


def _within_origin(url: str, location: str) -> str | None:
    """Where a redirect leads, if it stays with the server; a redirect elsewhere is not followed with what we send."""
    try:
        target = urljoin(url, location)
        one, other = urlsplit(url), urlsplit(target)
    except ValueError:
        return None
    return target if location and (one.scheme, one.netloc) == (other.scheme, other.netloc) else None
