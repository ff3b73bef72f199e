"""A forward proxy that records what is MCP: the engine with its addons, the recording, and what was seen in all."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from mitmproxy.connection import Client
from mitmproxy.http import HTTPFlow

from mcpsniff.capture.content import NOTHING
from mcpsniff.capture.labels import shown
from mcpsniff.proxy.address import Upstream, is_loopback_address
from mcpsniff.proxy.address import authority as spelled
from mcpsniff.proxy.interception import prepare
from mcpsniff.proxy.listener import UNSPECIFIED
from mcpsniff.proxy.mitm.distrust import Distrust
from mcpsniff.proxy.mitm.engine import REST, Engine
from mcpsniff.proxy.mitm.forward_side import ForwardDesk, ForwardTap
from mcpsniff.proxy.mitm.handshakes import Address, Failure, Handshakes
from mcpsniff.proxy.mitm.hosts import Hosts
from mcpsniff.proxy.mitm.select import Select, besides, remember
from mcpsniff.proxy.mitm.trust import Authority, authority
from mcpsniff.proxy.mitm.unsecured import Unsecured
from mcpsniff.proxy.mitm.upstream import check_authorities
from mcpsniff.proxy.recording import Recording
from mcpsniff.proxy.say import say

if TYPE_CHECKING:
    from mcpsniff.hooks.editor import Editor
    from mcpsniff.proxy.mitm.detour import Detours
    from mcpsniff.proxy.observer import Observer

DRAIN: Final = 1.0
"""Seconds that connections have to come to a rest when we are told to end."""
REFUSED: Final = "a client refused mcpsniff's certificate for"
"""How a comment in a capture begins that tells of a client without trust in our authority."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a forward proxy has seen."""

    connections: int
    """Connections that clients made to it."""
    recorded: int
    """HTTP exchanges that are in the capture."""
    unrecorded: int
    """HTTP exchanges that passed without being written down."""
    hosts: Sequence[str]
    """Servers with which exchanges were recorded, by their origins."""
    others: Sequence[str]
    """Servers of what passed unrecorded, or without being looked into: by origins, or by host and port."""
    refusals: Sequence[tuple[str, str]]
    """Servers whose certificate, as we made it, a client refused, and how it said so."""
    troubles: Sequence[str]
    """Sentences about servers that were not reached, or not trusted."""
    suspects: Sequence[tuple[str, str]] = ()
    """Servers whose certificate a client is likely to have refused, and what it did."""
    disagreed: Sequence[tuple[str, str]] = ()
    """Servers for which there was no TLS with a client for another reason, and what it did."""
    unreached: Sequence[str] = ()
    """Servers of recorded requests that we answered, since they did not get there."""
    answered: int = 0
    """Recorded requests that we answered ourselves."""
    rejected: int = 0
    """Requests that we answered ourselves, and did not record."""
    rejections: Sequence[str] = ()
    """Sentences about why we answered requests ourselves, for another reason than a server that was not reached."""


class ForwardSession:
    """A forward proxy at ``listen`` (port 0: a free one) and its recording, called ``label``.

    ``options`` are those of the command: `RECORDING`, ``upstream_ca`` and ``insecure``, and maybe limits of a
    capture. ``only`` are the hosts that may be looked into (none: all); with ``everything`` what is no MCP is
    recorded, too. ``tell`` is given a sentence for each host that does not work out, when that happens; all are in
    `Seen`. Raises UsageError.
    """

    def __init__(
        self,
        options: Mapping[str, Any],
        *,
        listen: tuple[str, int],
        only: Sequence[str],
        everything: bool,
        label: str,
        tell: Callable[[str], object] | None = None,
    ) -> None:
        self._observer: Observer | None = None
        self._own_stdout = tell is not None and not options["quiet"]
        self.interception = prepare(options, "forward", say if tell is None else tell)
        hosts = Hosts(only)
        authorities = options.get("upstream_ca")
        self.recording = Recording("forward", (), {**options, "label": label})
        if self.interception is not None:
            self.interception.called(label)
        self._select = Select(hosts, everything=everything)
        self._tap = ForwardTap(self.recording.recorder, self._select)
        self._hosts = hosts
        self._watch = _Watch(self._select, hosts, tell)
        handshakes = Handshakes(self._stalled, self._watch.no_tls)
        left_out = lambda host: remember(self._select.passed, host)  # noqa: E731 - short
        watch = self._watch
        desk = ForwardDesk(
            self._tap, hosts, handshakes, left_out=left_out, trouble=watch.say, rejection=watch.say_rejection
        )
        self._tap.desk = desk
        editor = None if self.interception is None else self.interception.editor
        self._detours = self._tap.detours = None if editor is None else _detours(editor, self._tap, self._select)
        self._distrust = Distrust(self._refused, self._left)
        self._suspects: dict[str, str] = {}
        """What is left of the doubts about clients, at the end."""
        self._tell = tell
        self._authority: Authority | None = None
        host, port = listen
        self._engine = Engine(
            [self._tap, self._select, self._distrust, self._watch, handshakes, desk, Unsecured(self._watch.say)],
            modes=[f"regular@{host}:{port}"],
            options={
                "connection_strategy": "eager",  # some servers speak first, and what they offer decides about HTTP/2
                "ssl_insecure": bool(options.get("insecure")),
            },
            authorities=None if authorities is None else check_authorities(authorities),
        )
        handshakes.tls = self._engine.tls
        if self._detours is not None:
            self._detours.set_out(self._engine, handshakes)

    @property
    def ca_path(self) -> str:
        """The certificate that clients are to trust, in PEM form, once this was started."""
        return self.authority.path

    @property
    def authority(self) -> Authority:
        """The authority that signs for all servers, made if there is none. Raises McpsniffError."""
        if self._authority is None:
            self._authority = authority()
        return self._authority

    @property
    def listens_to_others(self) -> bool:
        """True if other machines can connect."""
        return not is_loopback_address(self._engine.addresses[0][0])

    @property
    def listens_everywhere(self) -> bool:
        """True if that is on all interfaces."""
        return self._engine.addresses[0][0] in UNSPECIFIED

    def start(self) -> str:
        """Begin to listen and to record; return the proxy's URL. Raises UsageError or McpsniffError."""
        assert self.authority
        self._engine.start()
        host, port = self._engine.addresses[0]
        url = f"http://{spelled(UNSPECIFIED.get(host, host), port)}"
        self.recording.start(listen=url)
        if self.interception is not None:
            self.interception.begin(self.recording.recorder)
            self._observer = self.interception.observe([self.recording.path], stdout_to_stderr=not self._own_stdout)
        return url

    def finish(self, wait: Callable[[float], object] = time.sleep) -> Seen:
        """Let what goes on come to a rest, end it, store the rest, and tell what was seen.

        ``wait`` waits for so many seconds or less, and returns True if nobody wants to wait any longer.
        """
        self._engine.stop_listening()
        if self.interception is not None:
            self.interception.let_go()
        until = time.monotonic() + DRAIN
        still_since, progress = time.monotonic(), -1
        while self._engine.connections and time.monotonic() < until:
            if self._tap.progress != progress:
                still_since, progress = time.monotonic(), self._tap.progress
            if not self._tap.is_waiting and time.monotonic() - still_since > REST:
                break
            if wait(0.02):
                break
        self._engine.call(self._conclude)
        if self._detours is not None:
            self._detours.stop()
        self._engine.call(self._tap.stop)
        self._engine.stop()
        if not self._tap.kept:
            through = "no MCP came through the proxy" if self._watch.connections else "no client used the proxy"
            through = "not every client had TLS" if self._has_refused else through
            through = "not every server was reached" if self._watch.troubles else through
            text = f"{NOTHING}: {through}; what was said past it is unknown"
            self._tap.remark(text)
        if self.interception is not None:
            self.interception.finish(say if self._tell is None else self._tell)
        self.recording.finish()
        if self._observer is not None:
            self._observer.finish(lambda seconds: bool(wait(seconds)))
        return self._sum_up()

    def _conclude(self) -> None:
        """Write into the capture which servers' certificates clients are likely to have refused: none came back."""
        for place, what in self._distrust.suspects:
            self._suspects[place] = what
            self._tap.remark(f"{REFUSED} {shown(place)}, it seems ({what})")

    @property
    def _has_refused(self) -> bool:
        return bool(self._distrust.refusals or self._suspects or self._distrust.disagreed)

    def _sum_up(self) -> Seen:
        """Return what was seen, once all is over."""
        tap, kept = self._tap, list(self._select.kept)
        apart = {*tap.unreached, *tap.astray}
        return Seen(
            self._watch.connections,
            tap.kept,
            tap.passed,
            [origin for origin in kept if origin in tap.reached or origin not in apart],
            [place for place in besides(self._select.passed, kept) if place not in tap.astray],
            list(self._distrust.refusals),
            list(self._watch.troubles),
            list(self._suspects.items()),
            list(self._distrust.disagreed.items()),
            list(tap.unreached),
            tap.own,
            tap.rejected,
            list(self._watch.rejections),
        )

    def _refused(self, place: str, words: str) -> None:
        """Tell of a client that does not trust us, at once and in the capture."""
        text = f"{REFUSED} {shown(place)} ({words})"
        self._tap.remark(text)
        if self._tell is not None:
            self._tell(f"{text}: let it trust {shown(self.ca_path)}; mcpsniff ca tells how, for each kind of client")

    def _left(self, place: str, words: str, is_suspect: bool) -> None:
        """Tell of a client that went away before it said anything; maybe it trusts us and comes back."""
        text = f"a client {words} for {shown(place)}"
        self._tap.remark(text)
        if self._tell is not None:
            doubt = "; if it always does, it may not trust mcpsniff's certificates (mcpsniff ca)"
            self._tell(text + doubt * is_suspect)

    def _stalled(self, _: Client, address: Address, text: str) -> None:
        """Tell of a server that lets clients wait; in the capture, too, unless it is none of ours."""
        if self._hosts.has(*address):
            self._tap.remark(text)
        if self._tell is not None:
            self._tell(text)


def _detours(editor: "Editor", tap: ForwardTap, select: Select) -> "Detours":
    """Return what leads messages past the hooks of ``editor``."""
    from mcpsniff.proxy.mitm.detour import Detours

    return Detours(editor, tap, select)


class _Watch:
    """An addon that counts clients, knows where they go, and says why servers are not reached."""

    def __init__(self, select: Select, hosts: Hosts, tell: Callable[[str], object] | None) -> None:
        self.connections = 0
        self.troubles: dict[str, None] = {}
        """What was said of servers, each sentence once."""
        self.rejections: dict[str, None] = {}
        """What was said of requests that we answered ourselves, likewise."""
        self._select = select
        self._hosts = hosts
        self._tell = tell

    def client_connected(self, _client: Client) -> None:
        """A client came."""
        self.connections += 1

    def http_connect(self, flow: HTTPFlow) -> None:
        """A client wants a tunnel to a host."""
        if self._hosts.has(flow.request.host, flow.request.port):
            remember(self._select.passed, spelled(flow.request.host, flow.request.port, 0))

    def no_tls(self, _: Client, address: Address, failure: Failure) -> None:
        """TLS with a server has failed."""
        self.say(failure.answer(Upstream(None, *address, "", "https"), "").error)

    def say(self, text: str) -> None:
        """Say something of a server, once."""
        self._say(self.troubles, text)

    def say_rejection(self, text: str) -> bool:
        """Say something of a request that we answer, once; return whether it was new."""
        return self._say(self.rejections, text)

    def _say(self, said: dict[str, None], text: str) -> bool:
        text = shown(text)
        if not text or text in said:
            return False
        remember(said, text)
        if self._tell is not None:
            self._tell(text)
        return True
