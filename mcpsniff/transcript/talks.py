"""The conversations of a capture, as far as each is to be named: who talks with whom, in which revision and session.

Over HTTP there may be many. In 2026-07-28 each request stands for itself; those of one client are named together.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mcpsniff.decoder import Event
from mcpsniff.protocol.conversation import (
    ACTIVE,
    CLOSED,
    CLOSING,
    FAILED,
    HANDSHAKE,
    MODERN_ERA,
    UNKNOWN,
    Conversation,
)
from mcpsniff.protocol.message import REQUEST, Message
from mcpsniff.protocol.revisions import CLIENT_INFO_KEY, PROTOCOL_VERSION_KEY
from mcpsniff.transcript.safe import shortened
from mcpsniff.transcript.servers import Servers
from mcpsniff.transcript.units import count

NAMED: Final = 20
"""Conversations that are named; of the others only the number is known."""
PEERS: Final = 10
"""Clients and revisions that are told apart in requests of 2026-07-28 to one place."""
OTHERS: Final = "others"
LONGEST_ID: Final = 24

STATES: Final = {
    CLOSED: "not opened",
    HANDSHAKE: "not initialized yet",
    ACTIVE: "active",
    CLOSING: "ended",
    FAILED: "failed to open",
    UNKNOWN: "its beginning is not in the capture",
}


@dataclass(slots=True)
class Talk:
    """One conversation."""

    conversation: Conversation
    authority: str = ""
    """The server with which it is held, by its origin."""
    asked: dict[tuple[str, str], int] = field(default_factory=dict)
    """In 2026-07-28: requests by client and revision."""

    @property
    def number(self) -> int:
        """Its number."""
        return self.conversation.number

    def names(self, *, with_place: bool = False) -> Iterator[str]:
        """Who talks with whom and in which revision; captured text. One line, but one for each client of 2026-07-28.

        ``with_place``: say at which server that is.
        """
        known = self.conversation
        server = (peer(known.server_info) or "?") + (f" at {self.authority}" if with_place and self.authority else "")
        if known.era != MODERN_ERA:
            names = f"{peer(known.client_info) or '?'} → {server}"
            yield ", ".join(filter(None, (names, known.revision or known.requested_revision)))
            return
        for (client, revision), requests in self.asked.items():
            yield ", ".join(filter(None, (f"{client} → {server}", revision, count(requests, "request"))))
        if not self.asked:
            yield f"? → {server}"

    def told(self) -> str:
        """Its session and what became of it; captured text."""
        known = self.conversation
        if known.era == MODERN_ERA:
            return ""
        name = known.session_id or known.endpoint
        session = f"session {shortened(name, LONGEST_ID)}" if name else "no session id"
        return f"{session}, {STATES.get(known.state, known.state)}"


class Talks:
    """Feed it every event; the first NAMED conversations over HTTP are known then."""

    def __init__(self) -> None:
        self.named: dict[int, Talk] = {}
        self.servers = Servers()
        """Where all of them are held."""
        self.count = 0
        self._latest = 0

    def feed(self, events: Iterable[Event]) -> None:
        """Take events."""
        events = list(events)
        self.servers.feed(events)
        for event in events:
            if isinstance(event, Message) and event.http is not None and event.http.talk is not None:
                self._message(event, event.http.talk.conversation, event.http.authority)

    def names(self, talk: Talk) -> Iterator[str]:
        """See `Talk.names`; with the server's address where there are several."""
        return talk.names(with_place=self.servers.are_several)

    def _message(self, message: Message, conversation: Conversation, authority: str) -> None:
        number = conversation.number
        talk = self.named.get(number)
        if talk is None:
            if number > self._latest:  # they are numbered as they begin
                self._latest = number
                self.count += 1
                if len(self.named) < NAMED:
                    talk = self.named[number] = Talk(conversation, authority)
            if talk is None:
                return
        if message.kind == REQUEST and message.direction == "c2s" and PROTOCOL_VERSION_KEY in message.meta:
            _count(talk.asked, message.meta)


def _count(asked: dict[tuple[str, str], int], meta: Mapping[str, Any]) -> None:
    info = meta.get(CLIENT_INFO_KEY)
    key = (peer(info) if isinstance(info, dict) else "") or "?", str(meta.get(PROTOCOL_VERSION_KEY))[:40]
    if key not in asked and len(asked) >= PEERS:
        key = OTHERS, ""
    asked[key] = asked.get(key, 0) + 1


def peer(info: Mapping[str, Any]) -> str:
    """Name and version, and the title in brackets; captured text, empty where there is none."""
    names = [info[key] for key in ("name", "version") if isinstance(info.get(key), str) and info[key].strip()]
    title = info.get("title")
    if isinstance(title, str) and title and title not in names:
        names.append(f"({title})")
    return " ".join(names)
