"""What is said after a client ran under `mcpsniff run`: what was seen, or why that may be nothing, and what to do then.

Nothing seen is never told as nothing said: a client may not heed the proxy settings that it was given.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from mcpsniff.capture.labels import shown
from mcpsniff.proxy.client_node import heeds_proxies, node_of, version_of
from mcpsniff.proxy.seen import Seen, besides, counted, exchanges, left_out, named, not_trusting, widened

SOON: Final = 3.0
"""Seconds of a client's life below which it may have handed over to another process."""
WHAT_TO_DO: Final = "mcpsniff ca tells how to make it trust, and mcpsniff http needs no trust"


def summary(seen: Seen) -> str:
    """Return the sentence about what is recorded."""
    return f"saw {exchanges(seen, ' of MCP')}{besides(seen)}"


def refused(seen: Seen) -> list[str]:
    """Return a sentence for each server with which the client has no TLS, most likely because of our certificate."""
    certain = [
        f"the client refused mcpsniff's certificate for {shown(place)} ({shown(why)}): it does not trust mcpsniff's CA,"
        f" since it has a store of its own or pins certificates; {WHAT_TO_DO}"
        for place, why in dict.fromkeys(seen.refusals)
    ]
    likely = [
        f"the client {shown(what)} for {shown(place)}: it may not trust mcpsniff's certificates, since it has a store"
        f" of its own or pins certificates; {WHAT_TO_DO}"
        for place, what in dict.fromkeys(seen.suspects)
    ]
    return certain + likely + [f"the client {shown(what)} for {shown(place)}" for place, what in seen.disagreed]


def unseen(seen: Seen, only: Sequence[str], seconds: float) -> str:
    """Return the sentence for a client that ran for ``seconds`` and left nothing to record."""
    ran = f"the client ran for {seconds:.1f} s"
    if not seen.connections:
        return f"nothing is recorded: {ran} and never used the proxy that it was given, so what it said is unknown"
    through = f"{counted(seen.connections, 'connection')} through the proxy"
    if seen.troubles:
        return (
            f"nothing is recorded: {ran} and made {through} to {named(seen.others)}; what it had to say to a server"
            " that was not reached is unknown"
        )
    apart = not_trusting(seen)
    if apart:
        return f"nothing is recorded: {ran} and made {through}; what it had to say to {named(apart)} is unknown"
    aside = left_out(seen, only)
    if aside:
        return (
            f"nothing is recorded: {ran} and made {through}, none with MCP to {' or '.join(map(shown, only))}"
            f" (--only); it went to {named(aside)}: add {widened(aside)}"
        )
    if seen.others:
        return f"nothing is recorded: {ran} and made {through} to {named(seen.others)}, none with MCP in it"
    return f"nothing is recorded: {ran} and made {through}, none to a server{_own(seen)}"


def _own(seen: Seen) -> str:
    return f"; mcpsniff itself answered {counted(seen.rejected, 'request')}" if seen.rejected else ""


def reasons(
    seen: Seen, only: Sequence[str], command: Sequence[str], environment: Mapping[str, str], seconds: float
) -> list[str]:
    """Return why nothing may have been seen, most likely first, and what to do about each.

    There are none where what was seen explains it, which is told by then.
    """
    if seen.troubles or not_trusting(seen) or left_out(seen, only):
        return []
    if seen.rejections and not seen.others:
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
