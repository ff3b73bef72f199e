"""`mcpsniff http`: a relay in front of servers that speak HTTP; those with TLS are `mcpsniff.proxy.mitm`'s.

The main thread listens and decides about beginnings and ends; each connection has two threads (`connection`), and each
capture one that stores. Nothing here decodes what is said: the live view does, in a process of its own.
"""

import errno
import gc
import os
import select
import sys
import time
from _thread import stack_size
from contextlib import suppress

from mcpsniff.capture.labels import shown
from mcpsniff.courtesy import SWITCH
from mcpsniff.errors import UsageError
from mcpsniff.proxy.address import parse_listen, parse_upstreams
from mcpsniff.proxy.listener import Listener
from mcpsniff.proxy.recording import Recording
from mcpsniff.proxy.say import say
from mcpsniff.proxy.signals import Signals, warn_if_deaf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Final

    from mcpsniff.proxy.address import Upstream
    from mcpsniff.proxy.connection import Connection
    from mcpsniff.proxy.interception import Interception
    from mcpsniff.proxy.listener import Dials
    from mcpsniff.proxy.liveview import LiveView
    from mcpsniff.proxy.mitm.place import Place
    from mcpsniff.proxy.observer import Observer

    type Served = Listener | Place

STACK: "Final" = 256 << 10
"""Bytes of stack for the threads of a connection: they call nothing deep, and there may be thousands of them."""
EDITING_STACK: "Final" = 8 << 20
"""Bytes of stack where edit hooks run in these threads, which may call anything."""
DRAIN: "Final" = 1.0
"""Seconds that connections have to come to a rest when we are told to end."""
REST: "Final" = 0.1
"""Seconds without a byte that make a rest, unless an answer is still to come."""
DESCRIPTORS: "Final" = 1 << 16
"""Descriptors that we ask for; a connection takes four, in edit mode eight."""
SHORTAGE: "Final" = 0.1
"""Seconds until connections are accepted again when the system had no room for one."""


def relay(words: "Sequence[str]", options: "Mapping[str, Any]") -> int:
    """Relay to the upstreams that ``words`` name until a signal ends it; then this process ends, with status 0.

    ``options`` holds the values of `mcpsniff.cli.options.HTTP`. Raises UsageError, before anything was begun, if they
    cannot be served so.
    """
    interception = _interception(options)
    listeners = _listeners(words, options, edits=interception is not None and interception.editor is not None)
    signals = Signals()
    status = os.EX_SOFTWARE
    try:
        session = _Session(listeners, options, signals, interception)
        session.run()
        status = os.EX_OK
    except Exception as error:  # noqa: BLE001 - a bug of ours: no traceback reaches the user
        say(f"internal error: {error!r}")
    finally:
        os._exit(status)


class _Session:
    """All listeners, their captures, and the live view of these."""

    def __init__(
        self,
        listeners: "list[Served]",
        options: "Mapping[str, Any]",
        signals: Signals,
        interception: "Interception | None",
    ) -> None:
        self._listeners = listeners
        self._interception = interception
        self._signals = signals
        self._view: LiveView | None = None
        self._observer: Observer | None = None
        self._recordings: list[Recording] = []
        for listener in listeners:
            recording = Recording("http", (), {**options, "label": options["label"] or listener.upstream.label})
            listener.recorder = recording.recorder
            self._recordings.append(recording)
        if interception is not None:
            interception.called(*[options["label"] or listener.upstream.label for listener in listeners])
            _intercept(interception, listeners)
        self._quiet = options["quiet"]
        self._announce(quiet=self._quiet)

    def run(self) -> None:
        """Relay until a signal ends it, and leave captures that are complete."""
        _make_room(STACK if self._interception is None else EDITING_STACK)
        poll = select.poll()
        poll.register(self._signals.descriptor, select.POLLIN)
        plain = [listener for listener in self._listeners if isinstance(listener, Listener)]
        by_descriptor = {listener.socket.fileno(): listener for listener in plain}
        for descriptor in by_descriptor:
            poll.register(descriptor, select.POLLIN)
        told = False
        while True:
            for descriptor, _ in poll.poll():
                listener = by_descriptor.get(descriptor)
                if listener is not None:
                    if not listener.accept():
                        if not told:
                            say("no more connections can be accepted at the moment (ulimit -n?); those that are go on")
                        told = True
                        time.sleep(SHORTAGE)
                elif self._signals.arrived():
                    self._end()
                    return
                else:
                    for process in (self._view, self._observer):
                        if process is not None:
                            process.look()

    def _announce(self, *, quiet: bool) -> None:
        """Open the captures, and tell the address for the client. Quietly the address alone, for a script."""
        for listener, recording in zip(self._listeners, self._recordings, strict=True):
            upstream = listener.upstream
            recording.start(upstream=upstream.url, listen=listener.address)
            if quiet:
                continue
            _tell(2, f"mcpsniff: give the client {listener.address} in the place of {shown(upstream.url)}\n")
            if listener.listens_to_others:
                who = "whoever reaches this machine"
                _tell(2, f"mcpsniff: warning: {who} can use {shown(upstream.origin)} through that port\n")
        if self._interception is not None:
            self._observer = self._interception.observe([one.path for one in self._recordings], stdout_to_stderr=quiet)
        if quiet:
            _tell(1, "".join([f"{listener.address}\n" for listener in self._listeners]))
        else:
            from mcpsniff.proxy.liveview import LiveView

            warn_if_deaf()
            paths = [recording.path for recording in self._recordings if recording.path is not None]
            desk = None if self._interception is None else self._interception.desk
            self._view = LiveView(paths, desk) if paths else None

    def _end(self) -> None:
        """Let what is going on come to a rest, then end it, store the rest, and wait for what is made of it."""
        began = time.monotonic()
        if self._interception is not None:
            self._interception.let_go()
        for listener in self._listeners:
            listener.close()
        until = began + DRAIN
        still_since, progress = began, -1
        while time.monotonic() < until and not self._signals.wait(0.02):
            live: list[Connection | Place] = []
            for listener in self._listeners:
                live += list(listener.live)
            now = sum([connection.progress for connection in live])
            if now != progress:
                still_since, progress = time.monotonic(), now
            is_waiting = any(connection.is_waiting for connection in live)
            if not live or (not is_waiting and time.monotonic() - still_since > REST):
                break
        self._signals.leave_at_once()
        for listener in self._listeners:
            going_on: list[Connection | Place] = list(listener.live)
            for connection in going_on:
                connection.stop()
        if self._interception is not None:
            self._interception.finish(say)
        for recording in self._recordings:
            recording.finish()
        self._signals.are_noticed()
        for process in (self._view, self._observer):
            if process is not None:
                process.finish(self._signals.wait)
        from mcpsniff.proxy.remains import PATIENCE, account_for

        labels = [listener.upstream.label for listener in self._listeners]
        recordings = dict(zip(labels, self._recordings, strict=True))
        account_for(recordings, self._signals.wait, began + PATIENCE, quiet=self._quiet)


def _interception(options: "Mapping[str, Any]") -> "Interception | None":
    """Load what is to edit or to observe messages, if anything is. Raises UsageError."""
    from mcpsniff.proxy.interception import NAMES

    if not any(options.get(name) for name in NAMES):
        return None
    from mcpsniff.proxy.interception import let_addons_print, prepare

    let_addons_print(quiet=options["quiet"])
    return prepare(options, "http", say)


def _intercept(interception: "Interception", listeners: "Sequence[Served]") -> None:
    """Let the edit hooks, if there are any, stand in line at each listener."""
    interception.begin(*[listener.recorder for listener in listeners])
    if interception.editor is None:
        return
    from mcpsniff.proxy.relay.web.hub import Hub

    for listener in listeners:
        if isinstance(listener, Listener):
            listener.hub = Hub(interception.editor, listener)


def _listeners(words: "Sequence[str]", options: "Mapping[str, Any]", *, edits: bool) -> "list[Served]":
    """Listen for each upstream, for edit mode or not. Raises UsageError."""
    upstreams = parse_upstreams(words)
    places = [parse_listen(word) for word in options["listen"]]
    if len(places) > len(upstreams):
        raise UsageError(f"{len(places)} times --listen for {len(upstreams)} upstream{'s' * (len(upstreams) > 1)}")
    if len(upstreams) > 1:
        for name in ("output", "label"):
            if options[name]:
                raise UsageError(f"--{name} is for one upstream; several are told apart by NAME=URL")
    listeners: list[Served] = []
    try:
        for upstream, where in zip(upstreams, [*places, *[("127.0.0.1", 0)] * len(upstreams)], strict=False):
            listeners.append(_listener(upstream, where, options, listeners, edits=edits))
        _begin_tls(listeners, options)
        for listener in listeners:
            if listener.is_its_own_upstream:
                raise UsageError(f"{shown(listener.upstream.url)} is where mcpsniff itself is to listen")
    except UsageError:
        for listener in listeners:
            listener.close()
        raise
    return listeners


def _listener(
    upstream: "Upstream",
    where: tuple[str, int],
    options: "Mapping[str, Any]",
    others: "Sequence[Served]",
    *,
    edits: bool,
) -> "Served":
    """Listen for one upstream, or prepare that if mitmproxy is to do it. Raises UsageError."""
    keep_host = None if options["host_header"] is None else options["host_header"] == "keep"
    host, port = where
    try:
        dialler: Dials | None = None
        if upstream.scheme == "https" and edits:
            from mcpsniff.proxy.mitm.legs import LegDialler

            dialler = LegDialler(upstream)
        elif upstream.scheme == "https":
            from mcpsniff.proxy.mitm.place import Place

            if any(other.occupies(host, port) for other in others):
                raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
            return Place(upstream, host, port, keep_host=keep_host, allowed=options["allow_host"])
        return Listener(upstream, host, port, keep_host=keep_host, allowed=options["allow_host"], dialler=dialler)
    except OSError as error:
        from mcpsniff.proxy.portowner import cannot_listen

        ours = [other.upstream.label for other in others if other.occupies(host, port)]
        raise UsageError(cannot_listen(host, port, error, ours)) from None


def _begin_tls(listeners: "Sequence[Served]", options: "Mapping[str, Any]") -> None:
    """See to the upstreams that need TLS, if there are any. Raises UsageError."""
    places = [listener for listener in listeners if not isinstance(listener, Listener)]
    secure = [one for one in listeners if isinstance(one, Listener) and one.upstream.scheme == "https"]
    if secure:
        from mcpsniff.proxy.mitm import legs

        legs.serve(secure, options)
    elif places:
        from mcpsniff.proxy.mitm.reverse import serve

        serve(places, options)
    elif options["insecure"] or options["upstream_ca"] is not None:
        name = "--insecure" if options["insecure"] else "--upstream-ca"
        raise UsageError(f"{name} is for upstreams with https://, and there is none")


def _tell(descriptor: int, text: str) -> None:
    """Write what must not get lost, unless nobody is there."""
    rest = text.encode("utf-8", "backslashreplace")
    with suppress(OSError):
        while rest:
            rest = rest[os.write(descriptor, rest) :]


def _make_room(stack: int) -> None:
    """Prepare for many connections: descriptors as many as allowed, stacks of a size, no collections in their midst."""
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if most == resource.RLIM_INFINITY else min(most, DESCRIPTORS)
    with suppress(OSError, ValueError):  # macOS has a smaller limit than it tells
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
    stack_size(stack)
    sys.setswitchinterval(SWITCH)
    gc.collect()
    gc.freeze()
