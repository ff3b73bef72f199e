"""What is said after a client ran under `mcpsniff run`: what was seen, or why that may be nothing, and what to do then.

Nothing seen is never told as nothing said: a client may not heed the proxy settings that it was given.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from mcpsniff.capture.labels import shown
from mcpsniff.proxy.client_node import heeds_proxies, node_of, version_of

SOON: Final = 3.0
"""Seconds of a client's life below which it may have handed over to another process."""
MOST: Final = 5
"""Servers that are named."""


class Seen(Protocol):
    """What a forward proxy has seen."""

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
        """Servers of the recorded exchanges, by their origins."""

    @property
    def others(self) -> Sequence[str]:
        """Servers of what passed unrecorded, or without being looked into: by origins, or by host and port."""

    @property
    def refusals(self) -> Sequence[tuple[str, str]]:
        """Hosts whose certificate the client refused, as we made it, and its words (the TLS alert)."""

    @property
    def troubles(self) -> Sequence[str]:
        """Sentences about servers that were not reached, or not trusted."""


def summary(seen: Seen) -> str:
    """Return the sentence about what is recorded."""
    others = f"; {counted(seen.unrecorded, 'other exchange')} passed unrecorded" if seen.unrecorded else ""
    return f"saw {counted(seen.recorded, 'HTTP exchange')} of MCP with {_named(seen.hosts)}{others}"


def refused(seen: Seen) -> list[str]:
    """Return a sentence for each host to which the client did not connect because of our certificate."""
    return [
        f"the client refused mcpsniff's certificate for {shown(host)} ({shown(why)}): it does not trust mcpsniff's CA,"
        " since it has a store of its own or pins certificates; mcpsniff ca tells how to make it trust, and"
        " mcpsniff http needs no trust"
        for host, why in dict.fromkeys(seen.refusals)
    ]


def unseen(seen: Seen, only: Sequence[str], seconds: float) -> str:
    """Return the sentence for a client that ran for ``seconds`` and left nothing to record."""
    ran = f"the client ran for {seconds:.1f} s"
    if not seen.connections:
        return f"nothing is recorded: {ran} and never used the proxy that it was given, so what it said is unknown"
    through = f"{counted(seen.connections, 'connection')} through the proxy"
    if seen.troubles:
        return (
            f"nothing is recorded: {ran} and made {through} to {_named(seen.others)}; what it had to say to a server"
            " that was not reached is unknown"
        )
    if only:
        return (
            f"nothing is recorded: {ran} and made {through}, none with MCP to {' or '.join(map(shown, only))}"
            f" (--only); it went to {_named(seen.others)}: widen --only"
        )
    return f"nothing is recorded: {ran} and made {through} to {_named(seen.others)}, none with MCP in it"


def reasons(seen: Seen, command: Sequence[str], environment: Mapping[str, str], seconds: float) -> list[str]:
    """Return why nothing may have been seen, most likely first, and what to do about each."""
    if seen.refusals or seen.troubles:
        return []
    found = []
    if not seen.connections:
        node = node_of(command, environment)
        version = version_of(node) if node else None
        if node and version and not heeds_proxies(version):
            found.append(
                f"it runs on Node.js {version[0]}.{version[1]} ({shown(node)}), which ignores proxy settings;"
                " 22.21, 24.0 and newer heed them"
            )
        if seconds < SOON:
            found.append(
                "it may have handed over to a program that was running already (editors, browsers): end that first,"
                " or have it wait"
            )
        found.append(
            "it may ignore HTTPS_PROXY (Java, Electron and browsers, Python's aiohttp), or do so for servers on this"
            " machine (Go): give it the address of mcpsniff forward in its own proxy setting, or that of"
            " mcpsniff http URL in the place of the server's"
        )
    found.append(
        "a server that it starts itself, and talks to on pipes, is recorded by mcpsniff stdio -- COMMAND in its"
        " configuration; what such a server says to others passes unseen, unless that is mcpsniff run --: for"
        " mcp-remote, mcpsniff run -- npx mcp-remote URL --enable-proxy"
    )
    return found


def counted(number: int, noun: str) -> str:
    """Return ``3 exchanges``."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _named(hosts: Sequence[str]) -> str:
    """Return servers as text, the first few by name."""
    each = list(dict.fromkeys(hosts))
    names = ", ".join(map(shown, each[:MOST])) or "servers unknown"
    return names if len(each) <= MOST else f"{names} and {len(each) - MOST} more"
