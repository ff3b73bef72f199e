"""What a forward proxy has seen, and the words for it that `mcpsniff run` and `mcpsniff forward` have in common."""

from collections.abc import Sequence
from typing import Final, Protocol

from mcpsniff.capture.labels import shown

MOST: Final = 5
"""Servers that are named."""
PORTS: Final = {"http": 80, "https": 443}


class Seen(Protocol):
    """What a forward proxy has seen. Servers are named by their origins, or by host and port."""

    @property
    def connections(self) -> int:
        """Connections that a client made to it."""

    @property
    def recorded(self) -> int:
        """HTTP exchanges that are in the capture."""

    @property
    def unrecorded(self) -> int:
        """HTTP exchanges that passed without being written down."""

    @property
    def hosts(self) -> Sequence[str]:
        """Servers with which exchanges were recorded."""

    @property
    def others(self) -> Sequence[str]:
        """Servers of what passed unrecorded, or without being looked into."""

    @property
    def refusals(self) -> Sequence[tuple[str, str]]:
        """Servers whose certificate, as we made it, the client refused, and its words (the TLS alert)."""

    @property
    def troubles(self) -> Sequence[str]:
        """Sentences about servers that were not reached, or not trusted."""

    @property
    def suspects(self) -> Sequence[tuple[str, str]]:
        """Servers whose certificate the client is likely to have refused, and what it did."""

    @property
    def disagreed(self) -> Sequence[tuple[str, str]]:
        """Servers for which there was no TLS with the client for another reason, and what it did."""

    @property
    def unreached(self) -> Sequence[str]:
        """Servers of recorded requests that we answered, since they did not get there."""

    @property
    def answered(self) -> int:
        """Recorded requests that we answered ourselves."""

    @property
    def rejected(self) -> int:
        """Requests that we answered ourselves, and did not record."""

    @property
    def rejections(self) -> Sequence[str]:
        """Sentences about why we answered requests ourselves, but for servers that were not reached."""


def counted(number: int, noun: str) -> str:
    """Return ``3 exchanges``."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def named(hosts: Sequence[str], otherwise: str = "servers unknown") -> str:
    """Return servers as text, the first few by name."""
    each = list(dict.fromkeys(hosts))
    names = ", ".join(map(shown, each[:MOST])) or otherwise
    return names if len(each) <= MOST else f"{names} and {len(each) - MOST} more"


def exchanges(seen: Seen, kind: str = "") -> str:
    """Return what is recorded: exchanges of a ``kind`` (`` of MCP``), and requests that came to nothing."""
    whole = seen.recorded - seen.answered
    parts = [f"{counted(whole, 'HTTP exchange')}{kind} with {named(seen.hosts)}"] if whole else []
    if seen.answered:
        where = f"did not reach {named(seen.unreached)}" if seen.unreached else "mcpsniff answered itself"
        parts.append(f"{counted(seen.answered, 'HTTP request')}{'' if parts else kind} that {where}")
    return ", and ".join(parts)


def besides(seen: Seen) -> str:
    """Return what is not recorded, to follow the sentence on what is; maybe nothing."""
    passed = f"; {counted(seen.unrecorded, 'other exchange')} passed unrecorded" if seen.unrecorded else ""
    own = counted(seen.rejected, "other request")
    return f"{passed}; mcpsniff itself answered {own}, unrecorded" if seen.rejected else passed


def not_trusting(seen: Seen) -> list[str]:
    """Return the servers for which there was no TLS with a client, each once."""
    return list(dict.fromkeys(place for place, _ in (*seen.refusals, *seen.suspects, *seen.disagreed)))


def left_out(seen: Seen, only: Sequence[str]) -> list[str]:
    """Return the servers that ``only`` (the words of `--only`) left out."""
    if not only:
        return []
    from mcpsniff.proxy.mitm.hosts import Hosts  # and with it mitmproxy

    hosts = Hosts(only)
    return [place for place in dict.fromkeys(seen.others) if not hosts.has(*_address(place))]


def widened(places: Sequence[str]) -> str:
    """Return the options that let servers be looked into, the first few."""
    words = dict.fromkeys(place.rpartition("://")[2] for place in places)
    return " ".join(f"--only {shown(word)}" for word in list(words)[:MOST])


def _address(place: str) -> tuple[str, int]:
    """Return host and port of an origin, or of a host with its port."""
    scheme, _, authority = place.rpartition("://")
    host, colon, port = authority.rpartition(":")
    if not colon or not port.isdecimal():
        host, port = authority, str(PORTS.get(scheme, 443))
    return host.strip("[]"), int(port)
