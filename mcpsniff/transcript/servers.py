"""The servers that were spoken to over HTTP, by their origins, and how they are named where there are several."""

from collections.abc import Iterable, Sequence
from typing import Final

from mcpsniff.decoder import Event
from mcpsniff.protocol.http import UNDECODED, Http
from mcpsniff.protocol.message import Message
from mcpsniff.transcript.units import count

KNOWN: Final = 200
"""Servers that are told apart."""
SHOWN: Final = 5
"""Servers that are named in one line."""


class Servers:
    """Feed it every event; it knows where MCP was spoken then, and who else was asked, in order."""

    def __init__(self) -> None:
        self._exchanges: dict[str, int] = {}
        """HTTP exchanges by origin."""
        self._of_mcp: dict[str, None] = {}

    def feed(self, events: Iterable[Event]) -> None:
        """Take events."""
        for event in events:
            if isinstance(event, Message):
                if event.http is not None:
                    self.add(event.http.authority, is_mcp=True)
            elif isinstance(event, Http) and event.is_first and event.state != UNDECODED:
                http = event.exchange
                self.add(http.authority, is_mcp=http.talk is not None, exchanges=1)

    def add(self, origin: str, *, is_mcp: bool, exchanges: int = 0) -> None:
        """Take note of a server."""
        if not origin or (origin not in self._exchanges and len(self._exchanges) >= KNOWN):
            return
        self._exchanges[origin] = self._exchanges.get(origin, 0) + exchanges
        if is_mcp:
            self._of_mcp[origin] = None

    @property
    def spoken(self) -> list[str]:
        """Where MCP was spoken; where none was, all that were asked anything. Captured text."""
        return list(self._of_mcp or self._exchanges)

    @property
    def besides(self) -> list[str]:
        """Who else was asked, such as an authorization server. Captured text."""
        return [origin for origin in self._exchanges if origin not in self._of_mcp] if self._of_mcp else []

    @property
    def are_several(self) -> bool:
        """True if MCP was spoken with more than one."""
        return len(self._of_mcp) > 1

    @property
    def are_several_asked(self) -> bool:
        """True if more than one was asked anything."""
        return len(self._exchanges) > 1

    def lines(self) -> Iterable[str]:
        """What was asked of each, where there are several; captured text is in it."""
        if self.are_several_asked:
            each = [f"{origin} ({count(times, 'exchange')})" for origin, times in self._exchanges.items()]
            yield f"servers: {listed(each)}"


def listed(names: Sequence[str], most: int = SHOWN) -> str:
    """The first of ``names``, and how many more there are."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def route(names: Sequence[str]) -> str:
    """One server by its origin; several with how many they are."""
    return listed(names) if len(names) < 2 else f"{len(names):,} servers: {listed(names)}"


def short(origin: str) -> str:
    """A server in few characters: without scheme, and without the port of https; captured text."""
    scheme, slashes, place = origin.partition("://")
    if not slashes:
        return origin
    has_port = place.rpartition(":")[2].isdecimal()
    return place if scheme == "https" or has_port else f"{place}:80"
