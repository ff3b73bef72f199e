"""What messages of 2026-07-28 repeat in their ``_meta``: who speaks, in which revision, what that side can.

Where it is the same as in an earlier message of the same side, a transcript names that message and shows the rest.
"""

from collections import OrderedDict
from typing import Any, Final

from mcpsniff.protocol.message import Message
from mcpsniff.protocol.outline import outline

PREFIX: Final = "io.modelcontextprotocol/"
"""How the names of the envelope begin; other members of ``_meta`` are of this message alone."""
OWN: Final = PREFIX + "subscriptionId"
"""It begins like that, and is of this message alone, too."""
NAMES: Final = ("clientInfo", "serverInfo")
KNOWN: Final = 100
"""Clients and servers whose envelopes are remembered."""


class Envelopes:
    """Remembers for each client and server the envelope that was shown last."""

    def __init__(self) -> None:
        self._shown: OrderedDict[tuple[str, str], tuple[dict[str, Any], int]] = OrderedDict()

    def known(self, message: Message) -> int | None:
        """The number of the message that shows the envelope of this one, which left in the place of another."""
        envelope = {name: value for name, value in message.meta.items() if _is_common(name)}
        speaker = str([envelope.get(PREFIX + name) for name in NAMES])
        before = self._shown.get((message.direction, speaker))
        return before[1] if envelope and not message.flaws and before is not None and before[0] == envelope else None

    def repeats(self, message: Message) -> int | None:
        """The number of the message that shows the envelope of this one; None if it has none, or another one."""
        envelope = {name: value for name, value in message.meta.items() if _is_common(name)}
        if not envelope or message.flaws:
            return None
        speaker = str([envelope.get(PREFIX + name) for name in NAMES])
        before = self._shown.get((message.direction, speaker))
        if before is not None and before[0] == envelope:
            self._shown.move_to_end((message.direction, speaker))
            return before[1]
        self._shown[message.direction, speaker] = envelope, message.n
        if len(self._shown) > KNOWN:
            self._shown.popitem(last=False)
        return None


def without_envelope(text: str) -> str:
    """The text of ``params`` or of a result without the envelope in its ``_meta``; what is left keeps its spelling."""
    kept = []
    for name, start, stop in outline(text).members:
        value = text[start:stop]
        if name == '"_meta"':
            inner = [(key, value[a:b]) for key, a, b in outline(value).members if not _is_common(key[1:-1])]
            if not inner:
                continue
            value = _object(inner)
        kept.append((name, value))
    return _object(kept)


def _is_common(name: str) -> bool:
    return name.startswith(PREFIX) and name != OWN


def _object(members: list[tuple[str, str]]) -> str:
    return "{" + ",".join(f"{name}:{value}" for name, value in members) + "}"
