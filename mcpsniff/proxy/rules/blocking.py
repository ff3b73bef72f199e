"""Rules that keep messages from the other side: block, drop; and the answer in its place, respond."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final

from mcpsniff.hooks.actions import Back, Drop, Returned, Told, answer, refuse
from mcpsniff.hooks.editor import Lane
from mcpsniff.protocol.message import NOTIFICATION, REQUEST, Message
from mcpsniff.protocol.revisions import PROTOCOL_VERSION_KEY
from mcpsniff.proxy.rules.listings import Used, bare_use, list_in, name_in, used_by
from mcpsniff.proxy.rules.matching import fields_of, matcher
from mcpsniff.proxy.rules.rule import EVERY, Rule, Turns, listed

UNKNOWN: Final = -32602
"""Invalid params: what the specification has servers say of a tool or prompt that they do not have."""
NOT_FOUND: Final = -32002
"""What it has them say of a resource, before 2026-07-28, which has -32602 for it."""

_BARE: Final = frozenset({"tool", "prompt", "uri", "method", "dir", "kind"})
"""Fields that a request answers by what it is about; others depend on what else it says."""


class Block(Rule):
    """Requests that match are refused, notifications dropped, and what only those could use is hidden in lists.

    Something is hidden if the bare request to use it matches, and the expression asks about nothing else. Then it is
    unknown here, and refused as the specification has servers refuse what they do not have.
    """

    acts_on = "requests and notifications"

    def __init__(self, name: str, expression: str, *, text: str = "", turns: Turns = EVERY, why: str = "") -> None:
        """``text``: what is said to whoever asks. Raises FilterError."""
        super().__init__(name, matcher(expression), turns=turns, why=why)
        self._text = text
        self._hides = fields_of(expression) <= _BARE and turns == EVERY

    def wants(self, message: Message) -> bool | None:
        """Also a list that has to become shorter, and completions of what is hidden."""
        if self.holds(message):
            return message.kind in (REQUEST, NOTIFICATION)
        if not self._hides:
            return None
        found = list_in(message)
        if found is not None:
            listing, items = found
            return True if any(self._is_hidden(Used(listing, name_in(item, listing) or "")) for item in items) else None
        used = used_by(message) if message.method == "completion/complete" else None
        return True if used is not None and self._is_hidden(used) else None

    def act(self, message: Message, lane: Lane) -> Returned:  # noqa: ARG002
        """Refuse, drop or hide."""
        if message.kind == REQUEST:
            return self._refused(message)
        found = list_in(message)
        if found is None:
            return Drop(self.reason("blocked"))
        listing, items = found
        names = [name_in(item, listing) or "" for item in items]
        hidden = [self._is_hidden(Used(listing, name)) for name in names]
        items[:] = [item for item, is_hidden in zip(items, hidden, strict=True) if not is_hidden]
        gone = [name for name, is_hidden in zip(names, hidden, strict=True) if is_hidden]
        return Told(message, self.reason(f"hidden: {listing.what} {listed(gone)}"))

    def _is_hidden(self, used: Used) -> bool:
        return self.holds(bare_use(used))

    def _refused(self, message: Message) -> Back:
        used = used_by(message)
        why = self.reason("blocked" if used is None else f"blocked: {used.listing.what} {listed([used.name])}")
        if used is None or not self._hides:
            return refuse(message, self._text or "Blocked by a rule of mcpsniff", why=why)
        what, name = used.listing.what, used.name
        if what != "resource":
            return refuse(message, self._text or f"Unknown {what}: {name}", code=UNKNOWN, why=why)
        code = UNKNOWN if PROTOCOL_VERSION_KEY in message.meta else NOT_FOUND
        return refuse(message, self._text or "Resource not found", code=code, data={"uri": name}, why=why)


class Dropping(Rule):
    """Messages that match do not go on."""

    def act(self, message: Message, lane: Lane) -> Returned:  # noqa: ARG002
        """Drop it."""
        return Drop(self.reason("dropped"))


class Respond(Rule):
    """Requests that match are answered in the receiver's place: by a result, or by an error."""

    acts_on = "requests"

    def __init__(
        self, name: str, expression: str, answering: Mapping[str, Any], *, turns: Turns = EVERY, why: str = ""
    ) -> None:
        """``answering``: the result, or ``{"error": {"code": …, "message": …}}``. Raises FilterError."""
        super().__init__(name, matcher(expression), turns=turns, why=why)
        self._answering = answering
        self._error = error_in(answering)

    def fits(self, message: Message) -> bool:
        """Only requests are answered."""
        return message.kind == REQUEST

    def act(self, message: Message, lane: Lane) -> Returned:  # noqa: ARG002
        """Answer it."""
        why = self.reason("answered")
        if self._error is None:
            return answer(message, deepcopy(dict(self._answering)), why)
        error = self._error
        return refuse(message, error["message"], code=error["code"], data=deepcopy(error.get("data")), why=why)


def error_in(answering: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The error of JSON-RPC that an answer is; None if it is a result."""
    error = answering.get("error") if len(answering) == 1 else None
    if not isinstance(error, dict) or not error.keys() <= {"code", "message", "data"}:
        return None
    is_error = type(error.get("code")) is int and isinstance(error.get("message"), str)
    return error if is_error else None
