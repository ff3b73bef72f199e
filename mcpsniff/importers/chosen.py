"""Which exchanges of a file are MCP, or belong to it: known once the whole file was decoded.

JSON-RPC alone does not make an exchange one of MCP, since others speak that, too: somewhere at its server a method of
MCP must have been said. What has to do with a session, and the OAuth that leads to such a server, belongs to it.
"""

from collections.abc import Sequence
from typing import Final

from mcpsniff.capture.records import COMMENT, Header, Record
from mcpsniff.decoder import Decoder, Event
from mcpsniff.importers.heard import Account, Heard
from mcpsniff.importers.records import in_time, records_of
from mcpsniff.protocol.http import Http, HttpExchange
from mcpsniff.protocol.message import Message
from mcpsniff.protocol.revisions import METHODS

_FAMILIES: Final = tuple({f"{name.partition('/')[0]}/" for name in METHODS if "/" in name})
"""How the methods of MCP begin, later ones probably too."""


def mcp_of(exchanges: Sequence[Heard]) -> list[Heard]:
    """Those of ``exchanges`` that are MCP, or belong to it."""
    in_order = in_time(exchanges)
    decoder = Decoder(Header("", 1, "", "forward"))
    seen: dict[int, HttpExchange] = {}
    servers: set[str] = set()
    for t, kind, channel, body in records_of(in_order, Account(), apart=True).entries:
        if kind != COMMENT:
            _note(decoder.feed(Record(t, kind, channel, body)), seen, servers)
    _note(decoder.finish(), seen, servers)
    authorizations = {
        id(http.auth.authorization) for http in seen.values() if http.auth is not None and http.authority in servers
    }
    return [heard for number, heard in enumerate(in_order) if _belongs(seen.get(number), servers, authorizations)]


def _note(events: Sequence[Event], seen: dict[int, HttpExchange], servers: set[str]) -> None:
    """Take note of exchanges, by the numbers of their connections, and of servers at which a method of MCP was said."""
    for event in events:
        if isinstance(event, Http):
            seen[event.exchange.connection] = event.exchange
        elif isinstance(event, Message) and isinstance(event.http, HttpExchange):
            seen[event.http.connection] = event.http
            method = event.method
            if method is not None and (method in METHODS or method.startswith(_FAMILIES)):
                servers.add(event.http.authority)


def _belongs(http: HttpExchange | None, servers: set[str], authorizations: set[int]) -> bool:
    if http is None:
        return False
    if http.auth is not None and id(http.auth.authorization) in authorizations:
        return True
    return http.authority in servers and bool(http.talk or http.asked.messages or http.answered.messages)
