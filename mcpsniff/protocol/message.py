"""A message: one JSON-RPC object, or the batch or the noise that stood in its place."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mcpsniff.wire.frames import Frame, Span

if TYPE_CHECKING:
    from mcpsniff.protocol.exchanges import Exchange
    from mcpsniff.protocol.http import HttpExchange

REQUEST: Final = "request"
NOTIFICATION: Final = "notification"
RESPONSE: Final = "response"
ERROR: Final = "error"
BATCH: Final = "batch"
INVALID: Final = "invalid"

KINDS: Final = (REQUEST, NOTIFICATION, RESPONSE, ERROR, BATCH, INVALID)

type IdKey = str | int | tuple[str, object]
"""An id as pairing compares it: a string by value, a number by exact value, and the two never equal."""


SHOWN: Final = 200
"""Bytes of a message that stand in its repr."""


class Fact(NamedTuple):
    """Something that is true of a message because of what came before it."""

    name: str
    n: int | None = None
    """The message it refers to."""
    t: int | None = None
    """The moment it refers to, in microseconds."""
    text: str = ""


@dataclass(slots=True, repr=False)
class Message:
    """One message. Nobody changes it once the decoder has emitted it."""

    frame: Frame
    kind: str
    id: str | None
    """The id's own JSON token (``1``, ``1.0``, ``"1"``), None when the message has no id."""
    key: IdKey | None
    """The id as pairing compares it; None when there is none that could pair."""
    method: str | None
    body: Any
    """The parsed message; a dict for everything but a batch or an invalid message."""
    raw: bytes
    """The message's own JSON text."""
    flaws: tuple[str, ...]
    """What the bytes alone show to be wrong or odd."""
    batch: int | None = None
    """For an element of a batch: the batch's number."""
    n: int = 0
    t: int = 0
    conversation: int = 0
    revision: str | None = None
    """The revision that governs this message; None when nothing has settled it."""
    facts: tuple[Fact, ...] = ()
    link: "Exchange | None" = None
    """The exchange this message belongs to."""
    http: "HttpExchange | None" = None
    """Over HTTP: the HTTP exchange that carried it, in its request or in its response."""

    def __repr__(self) -> str:
        """What a failed assertion shows of it."""
        what = f"{self.kind} {self.method!r}" if self.method is not None else self.kind
        return (
            f"<#{self.n} {self.frame.direction} {what}: {self.raw[:SHOWN]!r}{'...' if len(self.raw) > SHOWN else ''}>"
        )

    @property
    def exchange(self) -> int | None:
        """The number of the request that began the exchange this message belongs to."""
        return None if self.link is None else self.link.request

    @property
    def spans(self) -> tuple[Span, ...]:
        """The recorded bytes of its frame."""
        return self.frame.spans

    @property
    def direction(self) -> str:
        """``c2s`` or ``s2c``."""
        return self.frame.direction

    @property
    def size(self) -> int:
        """Bytes of the message's JSON on the wire."""
        return self.frame.size if self.batch is None else len(self.raw)

    @property
    def params(self) -> Mapping[str, Any]:
        """The params, or an empty mapping where there are none or where they are no object."""
        return self._member("params")

    @property
    def result(self) -> Mapping[str, Any]:
        """The result, or an empty mapping where there is none or where it is no object."""
        return self._member("result")

    @property
    def error(self) -> Mapping[str, Any]:
        """The error, or an empty mapping where there is none or where it is no object."""
        return self._member("error")

    @property
    def meta(self) -> Mapping[str, Any]:
        """``_meta`` of the params or of the result, or an empty mapping."""
        meta = (self.params or self.result).get("_meta")
        return meta if isinstance(meta, dict) else {}

    def fact(self, name: str) -> Fact | None:
        """The fact of that name, if it is true of this message."""
        return next((fact for fact in self.facts if fact.name == name), None)

    def _member(self, name: str) -> Mapping[str, Any]:
        value = self.body.get(name) if isinstance(self.body, dict) else None
        return value if isinstance(value, dict) else {}
