"""What one capture comes to, for a comparison with another: who talked, what was declared, asked and found."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from mcpsniff.checks import Finding
from mcpsniff.decoder import Decoder, Event
from mcpsniff.protocol.edits import Edit
from mcpsniff.protocol.events import Note
from mcpsniff.protocol.exchange import Exchange
from mcpsniff.protocol.message import ERROR, REQUEST, RESPONSE, Message
from mcpsniff.protocol.revisions import (
    CLIENT_CAPABILITIES_KEY,
    CLIENT_INFO_KEY,
    PROTOCOL_VERSION_KEY,
    SERVER_INFO_KEY,
)
from mcpsniff.replay.reading import FRAME_LIMIT
from mcpsniff.transcript.edit_counts import EditCounts
from mcpsniff.transcript.latency import Latencies
from mcpsniff.transcript.session import Source


class Listed(NamedTuple):
    """A method that lists definitions."""

    member: str
    """Where in the result they are."""
    key: str
    """What tells them apart."""
    noun: str


LISTS: Final = {
    "tools/list": Listed("tools", "name", "tool"),
    "resources/list": Listed("resources", "uri", "resource"),
    "resources/templates/list": Listed("resourceTemplates", "uriTemplate", "resource template"),
    "prompts/list": Listed("prompts", "name", "prompt"),
}

OPENINGS: Final = frozenset({"initialize", "server/discover"})
"""Requests whose answers say what a server is; they are compared as that."""


@dataclass(slots=True, eq=False)
class Ask:
    """A request and its answer."""

    request: Message
    exchange: Exchange
    answer: Message | None = None
    listed: int = 0
    """For a request that is one page of a list: which list, counted from 1."""


@dataclass(slots=True, eq=False)
class Listing:
    """A list as it came, page by page."""

    number: int
    elements: list[Any] = field(default_factory=list)
    is_complete: bool = False


@dataclass(slots=True, eq=False)
class Server:
    """One server of a capture, and those who talked to it."""

    authority: str
    """Its origin over HTTP; empty for a wrapped process."""
    opening: dict[str, Any] = field(default_factory=dict)
    """What the peers said of themselves last: infos, capabilities, instructions, and all ``revisions``."""
    asks: list[Ask] = field(default_factory=list)
    lists: dict[str, Listing] = field(default_factory=dict)
    """By method: the last complete list."""
    latencies: dict[tuple[str, str], Latencies] = field(default_factory=dict)
    """By direction and method."""
    _going: dict[tuple[int, str], Listing] = field(default_factory=dict)
    """By conversation and method: the list that is being asked for."""
    _count: int = 0

    def message(self, message: Message, asks: dict[int, Ask]) -> None:
        """Take a message; ``asks`` are the requests that may still be answered, by number."""
        link = message.link
        if link is None:
            return
        if message.kind == REQUEST and link.request == message.n:
            ask = asks[message.n] = Ask(message, link)
            self.asks.append(ask)
            self._request(message)
        elif message.kind in (RESPONSE, ERROR) and link.response == message.n and link.request in asks:
            ask = asks[link.request]
            ask.answer = message
            if link.latency_us is not None:
                self.latencies.setdefault((link.direction, link.method), Latencies()).add(link.latency_us)
            if message.kind == RESPONSE and message.direction == "s2c":
                self._result(ask, message)

    def _request(self, message: Message) -> None:
        if message.direction != "c2s":
            return
        if message.method == "initialize":
            self._say("clientInfo", message.params.get("clientInfo"))
            self._say("clientCapabilities", message.params.get("capabilities"))
        elif PROTOCOL_VERSION_KEY in message.meta:
            self._revision(message.meta[PROTOCOL_VERSION_KEY])
            self._say("clientInfo", message.meta.get(CLIENT_INFO_KEY))
            self._say("clientCapabilities", message.meta.get(CLIENT_CAPABILITIES_KEY))

    def _result(self, ask: Ask, message: Message) -> None:
        method, result = ask.exchange.method, message.result
        self._say("serverInfo", message.meta.get(SERVER_INFO_KEY))
        if method in OPENINGS:
            self._revision(result.get("protocolVersion"))
            self._say("serverInfo", result.get("serverInfo"))
            self._say("serverCapabilities", result.get("capabilities"))
            for name, value in result.items():
                if name not in ("protocolVersion", "serverInfo", "capabilities", "_meta"):
                    self._say(name, value)
        elif method in LISTS:
            self._page(ask, LISTS[method].member)

    def _page(self, ask: Ask, member: str) -> None:
        """One page of a list: the first has no cursor in its request, the last none in its result."""
        key = ask.exchange.conversation, ask.exchange.method
        elements = ask.answer.result.get(member) if ask.answer is not None else None
        if "cursor" not in ask.request.params:
            self._count += 1
            self._going[key] = Listing(self._count)
        listing = self._going.get(key)
        if listing is None or not isinstance(elements, list) or ask.answer is None:
            return
        listing.elements += elements
        ask.listed = listing.number
        if "nextCursor" not in ask.answer.result:
            self.lists[ask.exchange.method] = self._going.pop(key)

    def _say(self, name: str, value: Any) -> None:
        if value is not None:
            self.opening[name] = value

    def _revision(self, revision: Any) -> None:
        if isinstance(revision, str) and revision not in (known := self.opening.setdefault("revisions", [])):
            known.append(revision)


@dataclass(slots=True)
class Found:
    """All findings of one code, by the one to blame."""

    first: Finding
    count: int = 0


@dataclass(slots=True)
class Facts:
    """What a capture comes to."""

    path: str
    label: str
    transport: str
    messages: int = 0
    servers: dict[str, Server] = field(default_factory=dict)
    """By authority, in the order in which they were first talked to."""
    findings: dict[tuple[str, str], Found] = field(default_factory=dict)
    """By code and blame."""
    edits: EditCounts = field(default_factory=EditCounts)
    """What was changed on the way. What is compared is what came."""
    lacks: list[str] = field(default_factory=list)
    """What the capture does not have, in words."""


def read_facts(source: Source) -> Facts:
    """Read a capture whole. All its requests and answers are in memory then. Raises CaptureError as reading does."""
    header = source.header
    facts = Facts(source.path, header.label or "", header.transport or "stdio")
    asks: dict[int, Ask] = {}
    gaps = 0
    decoder = Decoder(header, joined_late=source.joined_late, frame_limit=FRAME_LIMIT)
    for record in source.records():
        gaps += _take(facts, decoder.feed(record), asks)
    gaps += _take(facts, decoder.finish(), asks)
    facts.lacks += [f"line {damage.line} of {os.path.basename(damage.path)}: {damage.text}" for damage in source.damage]
    if source.joined_late:
        facts.lacks.append("its first parts are missing")
    if gaps:
        facts.lacks.append(f"it has {gaps:,} gap{'s' * (gaps > 1)}")
    return facts


def _take(facts: Facts, events: Iterable[Event], asks: dict[int, Ask]) -> int:
    """Take events; return how many gaps are among them."""
    gaps = 0
    for event in events:
        if isinstance(event, Message):
            facts.messages += 1
            authority = "" if event.http is None else event.http.authority
            server = facts.servers.get(authority)
            if server is None:
                server = facts.servers[authority] = Server(authority)
            server.message(event, asks)
        elif isinstance(event, Exchange):
            asks.pop(event.request, None)
        elif isinstance(event, Finding):
            facts.findings.setdefault((event.code, event.blame), Found(event)).count += 1
        elif isinstance(event, Edit):
            facts.edits.feed(event)
        elif isinstance(event, Note) and event.kind == "gap":
            gaps += 1
    return gaps
