"""`mcpsniff forward`: a forward proxy that stands until a signal ends it, with a live view of what it records."""

import os
import select
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from mcpsniff.capture.labels import shown
from mcpsniff.proxy.address import authority, is_loopback_address, parse_listen
from mcpsniff.proxy.interception import let_addons_print
from mcpsniff.proxy.liveview import LiveView
from mcpsniff.proxy.mitm.forward import ForwardSession
from mcpsniff.proxy.remains import PATIENCE, account_for
from mcpsniff.proxy.say import say
from mcpsniff.proxy.seen import Seen, besides, counted, exchanges, left_out, named, not_trusting, widened
from mcpsniff.proxy.signals import Signals, warn_if_deaf

LABEL: Final = "forward"
"""What the capture is called unless it is said otherwise."""


def stand(options: Mapping[str, Any]) -> int:
    """Serve until a signal ends it; then this process ends, with status 0.

    ``options`` holds the values of `mcpsniff.cli.options.FORWARD`. Raises McpsniffError, before anything was begun, if
    that cannot be served.
    """
    if options.get("addon"):
        let_addons_print(quiet=options["quiet"])
    listen = ("127.0.0.1", 0) if options["listen"] is None else parse_listen(options["listen"])
    label = options["label"] or LABEL
    session = ForwardSession(
        options, listen=listen, only=options["only"], everything=options["all"], label=label, tell=say
    )
    signals = Signals()
    url = session.start()
    status = os.EX_SOFTWARE
    try:
        _serve(session, url, options, signals)
        status = os.EX_OK
    except Exception as error:  # noqa: BLE001 - a bug of ours: no traceback reaches the user
        say(f"internal error: {error!r}")
    finally:
        os._exit(status)


def _serve(session: ForwardSession, url: str, options: Mapping[str, Any], signals: Signals) -> None:
    quiet, recording = options["quiet"], session.recording
    _announce(session, url, quiet=quiet)
    desk = None if session.interception is None else session.interception.desk
    view = None if quiet or recording.path is None else LiveView([recording.path], desk)
    poll = select.poll()
    poll.register(signals.descriptor, select.POLLIN)
    while True:
        poll.poll()
        if signals.arrived():
            break
        if view is not None:
            view.look()
    began = time.monotonic()
    seen = session.finish(signals.wait)
    signals.are_noticed()
    if view is not None:
        view.finish(signals.wait)
    if not quiet:
        say(summary(seen, options["only"]))
    label = options["label"] or LABEL
    account_for({label: recording}, signals.wait, began + PATIENCE, quiet=quiet)


def _announce(session: ForwardSession, url: str, *, quiet: bool) -> None:
    """Tell where the proxy is and what clients are to trust. Quietly the address alone, for a script."""
    if quiet:
        with suppress(OSError):
            os.write(1, f"{url}\n".encode())
        return
    made = ", made just now" if session.authority.is_new else ""
    say(f"the proxy is {url} - give it to the client, or set HTTP_PROXY and HTTPS_PROXY to it")
    say(f"what it signs is to be trusted by the client: {shown(session.ca_path)}{made} (mcpsniff ca tells how)")
    if session.listens_everywhere:
        other = outward(url)
        where = f"at {other}" if other else "by its name or address"
        say(f"it listens on all interfaces: other machines reach it {where}, this one as above")
    if session.listens_to_others:
        say("warning: whoever reaches this machine can use that proxy, and be recorded")
    warn_if_deaf()


def outward(url: str) -> str | None:
    """Return a proxy's URL as other machines have it: with the address by which this one reaches others, if any."""
    family, elsewhere = (socket.AF_INET6, "2001:db8::1") if "[" in url else (socket.AF_INET, "192.0.2.1")
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((elsewhere, 9))  # which sends nothing (RFC 5737, RFC 3849)
            address = probe.getsockname()[0]
    except OSError:
        return None
    port = int(url.rpartition(":")[2])
    return None if is_loopback_address(address) else f"http://{authority(address, port)}"


def summary(seen: Seen, only: Sequence[str] = ()) -> str:
    """Return the sentence about what passed; ``only`` are the hosts that were to be looked into."""
    if not seen.connections:
        return "no client has used the proxy"
    if seen.recorded:
        return f"recorded {exchanges(seen)}{besides(seen)}"
    if seen.troubles:
        return (
            f"nothing is recorded: what clients had to say to a server that was not reached is unknown{besides(seen)}"
        )
    apart, aside = not_trusting(seen), left_out(seen, only)
    if apart:
        return f"nothing is recorded: what a client had to say to {named(apart)} is unknown{besides(seen)}"
    if aside:
        names = " or ".join(map(shown, only))
        return f"none of what passed was MCP to {names} (--only); it went to {named(aside)}: add {widened(aside)}"
    if seen.unrecorded:
        passed = f"{counted(seen.unrecorded, 'exchange')} passed unrecorded ({named(seen.others)})"
        return f"none of what passed was MCP: {passed}; --all records everything"
    if seen.rejected:
        return f"nothing is recorded: mcpsniff itself answered {counted(seen.rejected, 'request')}"
    return f"nothing is recorded: no HTTP went through the proxy{f' to {named(seen.others)}' if seen.others else ''}"
