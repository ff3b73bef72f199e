"""Rules that change messages that go on: set, remove, replace, delay, header."""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, Final

from mcpsniff.hooks.actions import Headed, HttpHead, Returned, Told
from mcpsniff.hooks.arrivals import Arrivals, wait_until
from mcpsniff.hooks.editor import Lane
from mcpsniff.protocol.message import ERROR, NOTIFICATION, REQUEST, RESPONSE, Message
from mcpsniff.protocol.paths import Pattern
from mcpsniff.proxy.rules.matching import Matcher
from mcpsniff.proxy.rules.places import leads_in, places, removed, values_in
from mcpsniff.proxy.rules.rule import EVERY, Rule, Turns, listed

_KINDS: Final = {"params": (REQUEST, NOTIFICATION), "result": (RESPONSE,), "error": (ERROR,)}
"""Which messages have such a member, or may get one."""


class Setting(Rule):
    """Values at places of messages that match are set; objects on the way to them are made where they are missing."""

    acts_on = "messages that have such a place"

    def __init__(
        self,
        name: str,
        holds: Matcher,
        values: Sequence[tuple[Pattern, Any]],
        *,
        turns: Turns = EVERY,
        why: str = "",
    ) -> None:
        super().__init__(name, holds, turns=turns, why=why)
        self._values = values

    def fits(self, message: Message) -> bool:
        """There is such a place."""
        return any(next(self._places(message, pattern), None) is not None for pattern, _ in self._values)

    def act(self, message: Message, lane: Lane) -> Returned:  # noqa: ARG002
        """Set them."""
        paths = []
        for pattern, value in self._values:
            found = list(self._places(message, pattern))
            for container, key, missing in found:
                new = deepcopy(value)
                for name in reversed(missing):
                    new = {name: new}
                container[key] = new
            paths += [pattern.text] if found else []
        return Told(message, self.reason(f"set {listed(paths)}"))

    def _places(self, message: Message, pattern: Pattern) -> Iterator[tuple[Any, Any, tuple[str, ...]]]:
        return iter(()) if not _may_have(message, pattern) else places(message.body, pattern, making=True)


class Removing(Rule):
    """Members and elements of messages that match are removed."""

    acts_on = "messages that have such a member"

    def __init__(
        self, name: str, holds: Matcher, patterns: Sequence[Pattern], *, turns: Turns = EVERY, why: str = ""
    ) -> None:
        super().__init__(name, holds, turns=turns, why=why)
        self._patterns = patterns

    def fits(self, message: Message) -> bool:
        """There is something to remove."""
        return any(next(places(message.body, pattern), None) is not None for pattern in self._patterns)

    def act(self, message: Message, lane: Lane) -> Returned:  # noqa: ARG002
        """Remove them."""
        gone = [pattern.text for pattern in self._patterns if removed(message.body, pattern)]
        return Told(message, self.reason(f"removed {listed(gone)}"))


class Replacing(Rule):
    """Texts in the strings of params, result or error are replaced; names of members stay."""

    acts_on = "messages that have such a text"

    def __init__(
        self, name: str, holds: Matcher, texts: Mapping[str, str], *, turns: Turns = EVERY, why: str = ""
    ) -> None:
        super().__init__(name, holds, turns=turns, why=why)
        self._texts = texts

    def fits(self, message: Message) -> bool:
        """There is such a text."""
        return any(self._is_in(value) for _, _, value in values_in(message.body, tuple(_KINDS)))

    def act(self, message: Message, lane: Lane) -> Returned:  # noqa: ARG002
        """Replace them."""
        count = 0
        for container, key, value in list(values_in(message.body, tuple(_KINDS))):
            if self._is_in(value):
                new = value
                for old, other in self._texts.items():
                    new = new.replace(old, other)
                container[key] = new
                count += 1
        return Told(message, self.reason(f"replaced texts in {count} string{'' if count == 1 else 's'}"))

    def _is_in(self, value: Any) -> bool:
        return isinstance(value, str) and any(old in value for old in self._texts)


class Delaying(Rule):
    """Messages that match are held for some time, counted from when they arrived."""

    def __init__(self, name: str, holds: Matcher, us: int, *, turns: Turns = EVERY, why: str = "") -> None:
        super().__init__(name, holds, turns=turns, why=why)
        self._us = us
        self._arrivals = Arrivals()

    def edit(self, message: Message, lane: Lane) -> Returned:
        """Note when it came, whichever it is."""
        self._arrivals.of(message)
        return super().edit(message, lane)

    def act(self, message: Message, lane: Lane) -> Returned:
        """Hold it."""
        why = self.reason("delayed")
        wait_until(self._arrivals.due(message, self._us), lane, self.name, why)
        return Told(message, why)


class HeaderOfMessages(Rule):
    """The HTTP requests of messages that match get other headers."""

    acts_on = "messages of the client"

    def __init__(
        self, name: str, holds: Matcher, headers: Mapping[str, str | None], *, turns: Turns = EVERY, why: str = ""
    ) -> None:
        super().__init__(name, holds, turns=turns, why=why)
        self._headers = headers

    def fits(self, message: Message) -> bool:
        """Answers of the server have no request of their own."""
        return message.direction == "c2s"

    def act(self, message: Message, lane: Lane) -> Returned:  # noqa: ARG002
        """Say which."""
        return Headed(message, self._headers, self.reason(f"header {listed(list(self._headers))}"))


class HeaderOfAll(Rule):
    """All HTTP requests get other headers."""

    acts_on = "HTTP requests"
    unit = "HTTP request"

    def __init__(self, name: str, headers: Mapping[str, str | None], *, turns: Turns = EVERY) -> None:
        super().__init__(name, lambda _: False, turns=turns)
        self._headers = headers

    def act(self, message: Message, lane: Lane) -> Returned:  # noqa: ARG002
        """Messages stay as they are."""
        return message

    def edit_head(self, head: HttpHead) -> None:
        """Change the head of a request."""
        if head.direction == "c2s" and self.counted(is_meant=True):
            for name, value in self._headers.items():
                head.set(name, value)


def _may_have(message: Message, pattern: Pattern) -> bool:
    """False for a place in params of an answer, and the like: nobody means that it is to be made."""
    kinds = _KINDS.get(leads_in(pattern))
    return kinds is None or message.kind in kinds
