"""A channel of a capture: it makes frames of its bytes, and events of those."""

from typing import Any, Final

from mcpsniff.capture.records import Record
from mcpsniff.decoder.emitter import Event
from mcpsniff.protocol.events import Close
from mcpsniff.protocol.http import HttpExchange

_CARRIES: Final = {"stdin": "the server's stdin", "stdout": "the server's stdout", "stderr": "the server's stderr"}


class Channel:
    """One direction of one stream, as its ``open`` record describes it."""

    def __init__(self, number: int, fields: dict[str, Any]) -> None:
        self.number = number
        self.kind = text_of(fields.get("kind"))
        self.direction = "c2s" if fields.get("dir") == "c2s" else "s2c"

    def where(self) -> str:
        """What it carries, in words for people; captured text in them is harmless."""
        return _CARRIES.get(self.kind, "")

    def current(self) -> HttpExchange | None:
        """Over HTTP: the exchange whose request, or response, goes on here, or is the next to come."""
        return None

    def feed(self, out: list[Event], t: int, data: bytes) -> None:
        """What one read returned at ``t`` (microseconds)."""
        raise NotImplementedError

    def close(self, out: list[Event], record: Record) -> None:
        """It has ended, or the process behind it."""
        raise NotImplementedError

    def gap(self, size: int, why: str) -> None:
        """``size`` bytes (0: unknown) are missing here."""
        raise NotImplementedError

    def resume(self) -> None:
        """The capture begins in its middle: what was going on is not whole."""
        raise NotImplementedError


def close_event(channel: Channel, record: Record) -> Close:
    """The event that a ``close`` record of ``channel`` is."""
    fields = record.body if isinstance(record.body, dict) else {}
    sent = fields.get("sent")
    return Close(
        channel.number,
        channel.kind,
        channel.direction,
        text_of(fields.get("how")),
        number_of(fields.get("status")),
        number_of(fields.get("signal")),
        text_of(fields.get("error")) or None,
        text_of(fields.get("by")) or None,
        tuple(str(name) for name in sent) if isinstance(sent, list) else (),
    )


def text_of(value: Any) -> str:
    """``value`` if it is a text, else nothing."""
    return value if isinstance(value, str) else ""


def number_of(value: Any) -> int | None:
    """``value`` if it is an integer, else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None
