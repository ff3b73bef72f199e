"""What all ways to a live server have in common: what is sent, what comes, and how it ends.

    send_stdio.StdioLink     the pipes of a command
    send_http.HttpLink       Streamable HTTP, all revisions
    send_sse.SseLink         HTTP+SSE of 2024-11-05
    send_links.open_link     the one that a target needs

A link carries JSON texts and knows of MCP only what its transport asks for (sessions, headers, streams). Whoever speaks
through it gives an `Ear`, to which it tells what comes.
"""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

from mcpsniff.errors import McpsniffError
from mcpsniff.protocol.jsonrpc import classify
from mcpsniff.protocol.message import ERROR, REQUEST, RESPONSE, IdKey, Message
from mcpsniff.protocol.reading import JsonReader
from mcpsniff.wire.frames import EMPTY_LINE, Frame

FRAME_LIMIT: Final = 256 * 1024 * 1024
"""Bytes of one message that are read."""
SHOWN: Final = 400
"""Characters of a refusal's body, or of a server's last words, that are told."""


class UnreachableError(McpsniffError):
    """The command does not start, or nobody answers at the URL; the text says why in one sentence."""

    exit_status = 3


class GoneError(Exception):
    """The server has gone: it takes nothing any more."""


@dataclass(frozen=True, slots=True, eq=False)
class Sent:
    """One JSON text for the server: a message, or a batch of them."""

    data: bytes
    messages: tuple[Message, ...]
    """What it says; of a batch its elements. `said` makes them of a text."""
    headers: tuple[tuple[str, str], ...] | None = None
    """The header fields with which it was recorded over HTTP; None if it was recorded on another transport."""
    params: Mapping[str, str] | None = None
    """What else goes into headers (``Mcp-Param-*`` of 2026-07-28), by name."""

    @property
    def open_keys(self) -> set[IdKey]:
        """The ids of its requests."""
        return {message.key for message in self.messages if message.kind == REQUEST and message.key is not None}

    @property
    def is_opening(self) -> bool:
        """True if it carries ``initialize``."""
        return any(message.method == "initialize" for message in self.messages)


class Came(NamedTuple):
    """One message of the server; a batch comes as its elements."""

    message: Message
    t: int
    """When, in microseconds of the clock of `now_us`."""
    sent: Sent | None = None
    """Over HTTP: the text in whose response it came."""
    status: int | None = None
    """Over HTTP: the status of the response."""


class Refusal(NamedTuple):
    """A text that the transport gave no answer to, nor will."""

    sent: Sent
    status: int | None
    """The HTTP status; None if the connection was lost."""
    why: str
    """In words, as after "the server": captured text may be in it."""


class Ear(Protocol):
    """Who listens to a link. None of its methods may raise."""

    def heard(self, came: Came) -> None:
        """A message has come."""

    def refused(self, refusal: Refusal) -> None:
        """A text was refused by the transport, or its response ended without an answer."""

    def accepted(self, sent: Sent, status: int) -> None:
        """Over HTTP: the response to a text has begun."""

    def wrote(self, text: str) -> None:
        """The server has written to its stderr."""

    def ended(self, why: str) -> None:
        """The server has gone, or the session is over: nothing more will come."""


class Link(Protocol):
    """A way to a live server. To be opened once, and closed in any case."""

    @property
    def transport(self) -> str:
        """``stdio``, ``http`` or ``sse``."""

    async def open(self) -> None:
        """Reach the server. Raises UnreachableError."""

    async def send(self, sent: Sent) -> None:
        """Send a text; returns when it is on its way, in the order of the calls.

        Raises GoneError when the server has gone, UnreachableError when it was never reached.
        """

    async def listen(self) -> None:
        """Open the stream for what the server says unasked, where the transport has one of its own."""

    async def drop(self, sent: Sent) -> bool:
        """Take no more of the response to a text, if the transport has one for each; False if it has not."""

    async def leave(self) -> None:
        """End the session where the transport has a way to; more may be sent, and is likely to be refused."""

    async def close(self) -> None:
        """Leave as a client does, and leave nothing behind."""


class Tape(Protocol):
    """Who keeps what passes over a link. None of its methods may raise."""

    def open(self, body: dict[str, Any]) -> int:
        """A channel begins, with the body of its record; gives its number."""

    def chunk(self, channel: int, data: bytes) -> None:
        """Bytes of it."""

    def close(self, channel: int, body: dict[str, Any]) -> None:
        """Its end, with the body of its record."""

    def connection(self) -> int:
        """The number of a new connection."""


class NoTape:
    """Keeps nothing."""

    def open(self, body: dict[str, Any]) -> int:  # noqa: ARG002
        """No channel."""
        return 0

    def chunk(self, channel: int, data: bytes) -> None:
        """Nothing."""

    def close(self, channel: int, body: dict[str, Any]) -> None:
        """Nothing."""

    def connection(self) -> int:
        """No connection."""
        return 0


def now_us() -> int:
    """Microseconds of the clock that everything here goes by: that of the event loop."""
    try:
        return int(asyncio.get_running_loop().time() * 1_000_000)
    except RuntimeError:  # nothing runs
        return time.monotonic_ns() // 1000


def read_messages(frame: Frame, reader: JsonReader) -> list[Message]:
    """The messages of a frame that came from the server: batches by their elements, empty lines left out."""
    if EMPTY_LINE in frame.flaws:
        return []
    first, *elements = classify(frame, reader)
    return elements or [first]


def said(data: bytes, reader: JsonReader | None = None) -> tuple[Message, ...]:
    """The messages that a JSON text of the client consists of."""
    return tuple(read_messages(text_frame(data, "c2s"), reader or JsonReader()))


def text_frame(data: bytes, direction: str) -> Frame:
    """A frame for a JSON text that no splitter has cut out."""
    t = now_us()
    return Frame(0, direction, "body", (), t, t, data, len(data))


def is_answer_to(message: Message, keys: set[IdKey]) -> bool:
    """True if the message answers a request with one of these ids."""
    return message.kind in (RESPONSE, ERROR) and message.key is not None and message.key in keys
