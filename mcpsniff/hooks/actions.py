"""What an edit hook may return besides the message itself, and how it makes messages of its own.

    return message                          # passes; changed if its body was changed
    return None                             # is dropped
    return [notification("..."), message]   # others before or after it
    return refuse(message, "not today")     # is answered in the receiver's place

What does not fit a transport (a status of HTTP on a pipe) is told once and the message passes.
"""

import copy as copies
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from mcpsniff.protocol.message import ERROR, NOTIFICATION, REQUEST, RESPONSE, Message
from mcpsniff.wire.frames import Frame

MADE: Final = "made"
"""The framing of a message that never stood on a wire."""
REFUSED: Final = -32000
"""The code of an error by which a request is refused: JSON-RPC leaves -32000 to -32099 to implementations."""


@dataclass(slots=True)
class Back:
    """``message`` goes back to the side that the message at hand came from: an answer, or anything else."""

    message: Message
    why: str = ""
    """In a few words, for the transcript; so in all actions."""


@dataclass(slots=True)
class Raw:
    """These bytes go on as they are, without the framing of the transport: noise, half a line, no UTF-8."""

    data: bytes
    why: str = ""


@dataclass(slots=True)
class Text:
    """This text goes on in the transport's framing, where the JSON of ``message`` would, or besides if that is None.

    It need not be JSON. On pipes it must be one line.
    """

    data: bytes
    message: Message | None = None
    why: str = ""


@dataclass(slots=True)
class Later:
    """The message goes on after the next one of its direction, or after so many seconds if none comes."""

    message: Message
    seconds: float
    why: str = ""


@dataclass(slots=True)
class Cut:
    """Only the first ``keep`` bytes of the message's frame go on.

    Over HTTP its body or stream breaks off there, within its framing, and with it the connection: it is seen to be
    incomplete. On a pipe the next line follows.
    """

    message: Message
    keep: int
    why: str = ""


@dataclass(slots=True)
class Paced:
    """The message goes on slowly, at so many bytes per second."""

    message: Message
    bytes_per_second: float
    why: str = ""


@dataclass(slots=True)
class Headed:
    """The message goes on with other headers, where HTTP carries it alone: name to value, None removes one."""

    message: Message
    headers: Mapping[str, str | None]
    why: str = ""


@dataclass(slots=True)
class HttpAnswer:
    """The HTTP request that carries the message is answered like this in the server's place."""

    status: int
    headers: Sequence[tuple[str, str]] = ()
    body: bytes = b""
    why: str = ""


@dataclass(slots=True)
class Stall:
    """Nothing goes on in this direction of this pipe, body or stream from here on, and it does not end."""

    why: str = ""


@dataclass(slots=True)
class Disconnect:
    """The connection is broken off here; on pipes the pipe ends."""

    why: str = ""


@dataclass(slots=True)
class Drop:
    """The message does not go on; None says the same without a reason."""

    why: str = ""


@dataclass(slots=True)
class Told:
    """``message`` goes on, and the record says ``why`` it was changed, or held."""

    message: Message
    why: str = ""


type Action = Back | Raw | Text | Later | Cut | Paced | Headed | HttpAnswer | Stall | Disconnect | Drop | Told
type Returned = Message | Action | Sequence[Message | Action] | None


@dataclass(slots=True)
class HttpHead:
    """The head of an HTTP request or response, for `mcp_edit_head`; changes to ``headers`` and ``status`` count."""

    direction: str
    """``c2s``: a request, ``s2c``: a response."""
    method: str
    """That of the request, also of a response's."""
    target: str
    status: int | None = None
    headers: list[tuple[str, str]] = field(default_factory=list)
    """Names as they are spelt, values, in order."""
    message: Message | None = None
    """The first message in its body, of a request; None if there is none, or it is not known yet."""
    conversation: int = 0

    def get(self, name: str) -> str | None:
        """The first value of a header, whatever the case of its name."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)

    def set(self, name: str, value: str | None) -> None:
        """Put one value in the place of all that a header has; None removes it."""
        place = next((at for at, (key, _) in enumerate(self.headers) if key.lower() == name.lower()), None)
        kept = [pair for pair in self.headers if pair[0].lower() != name.lower()]
        if value is not None:
            kept.insert(len(kept) if place is None else place, (name, value))
        self.headers[:] = kept


def answer(message: Message, result: Mapping[str, Any], why: str = "") -> Back:
    """Answer a request in the receiver's place. Raises ValueError if ``message`` is no request."""
    return Back(_answering(message, RESPONSE, {"result": dict(result)}), why)


def refuse(message: Message, text: str, *, code: int = REFUSED, data: Any = None, why: str = "") -> Back:
    """Answer a request with an error in the receiver's place. Raises ValueError if ``message`` is no request."""
    error = {"code": code, "message": text, **({} if data is None else {"data": data})}
    return Back(_answering(message, ERROR, {"error": error}), why)


def back(message: Message, why: str = "") -> Back:
    """Send ``message`` to the side that the message at hand came from."""
    return Back(message, why)


def request(method: str, params: Mapping[str, Any] | None = None) -> Message:
    """A request of our own. It gets an id that nobody else uses, and its answer is kept from the other side."""
    return made(REQUEST, {"jsonrpc": "2.0", "method": method, **_params(params)})


def notification(method: str, params: Mapping[str, Any] | None = None) -> Message:
    """A notification of our own."""
    return made(NOTIFICATION, {"jsonrpc": "2.0", "method": method, **_params(params)})


def copy(message: Message) -> Message:
    """The same message once more, with a body of its own to change; a request keeps its id."""
    return replace(message, body=copies.deepcopy(message.body))


def made(kind: str, body: Any) -> Message:
    """A message of our own with this body."""
    frame = Frame(-1, "", MADE, (), 0, 0, b"", 0)
    method = body.get("method") if isinstance(body, dict) else None
    return Message(frame, kind, None, None, method, body, b"", ())


def is_made(message: Message) -> bool:
    """True of a message that an edit hook has made."""
    return message.frame.framing == MADE


def _params(params: Mapping[str, Any] | None) -> dict[str, Any]:
    return {} if params is None else {"params": dict(params)}


def _answering(message: Message, kind: str, payload: dict[str, Any]) -> Message:
    if message.kind != REQUEST or not isinstance(message.body, dict):
        raise ValueError(f"only a request can be answered, not a {message.kind}")
    answering = made(kind, {"jsonrpc": "2.0", "id": message.body.get("id"), **payload})
    answering.id, answering.key, answering.link = message.id, message.key, message.link
    return answering
