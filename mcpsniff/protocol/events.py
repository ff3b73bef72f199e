"""What the decoder emits besides frames, messages and exchanges, and the moments at which time alone says something."""

from dataclasses import dataclass, field
from typing import Any, Final

from mcpsniff.protocol.exchanges import Exchange
from mcpsniff.wire.frames import Span

_BY_US: Final = ("mcpsniff ", "broken off by ", "an edit hook ")
"""How the ``error`` of such a close begins, see the shells in `mcpsniff.proxy`."""


@dataclass(slots=True)
class Stderr:
    """One line that the server wrote to its standard error. Any text is allowed there (MCP transports, stdio)."""

    channel: int
    text: str
    spans: tuple[Span, ...]
    flaws: tuple[str, ...] = ()
    n: int = 0
    t: int = 0


@dataclass(slots=True)
class Close:
    """A channel has ended, or the process behind it (``how`` is then ``exit`` or ``killed``)."""

    channel: int
    kind: str
    """The channel's kind: stdin, stdout, stderr, tcp, http-request or http-response."""
    direction: str
    how: str
    """``eof``, ``reset``, ``aborted``, ``exit`` or ``killed``."""
    status: int | None = None
    signal: int | None = None
    error: str | None = None
    by: str | None = None
    sent: tuple[str, ...] = ()
    """Signals that mcpsniff sent or passed on before the end, such as ``TERM``."""
    open_requests: int = 0
    """Requests that this end left without an answer."""
    spans: tuple[Span, ...] = ()
    n: int = 0
    t: int = 0

    @property
    def is_ours(self) -> bool:
        """True if neither peer ended it: mcpsniff was stopped, or somebody let it break the connection off."""
        return (self.error or "").startswith(_BY_US)

    @property
    def ends_process(self) -> bool:
        """True if this says that the server's process has ended."""
        return self.how in ("exit", "killed")


@dataclass(slots=True)
class Note:
    """A record that is neither traffic nor an end: ``gap``, ``comment``, ``rewrite`` or ``mask``."""

    kind: str
    channel: int | None
    fields: dict[str, Any] = field(default_factory=dict)
    spans: tuple[Span, ...] = ()
    where: str = ""
    """What its channel carries, in words for people, such as ``the server's stdout``; empty if that is not known."""
    n: int = 0
    t: int = 0


@dataclass(slots=True)
class StillOpen:
    """A moment, not an event: a request has had no answer and no progress for the limit."""

    exchange: Exchange
    t: int
    waited_us: int


@dataclass(slots=True)
class StillRunning:
    """A moment, not an event: the client has closed the server's input and the server has not ended."""

    close: Close
    t: int
    waited_us: int
