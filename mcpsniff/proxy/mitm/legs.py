"""Legs: connections of the relay of edit mode to servers that speak TLS, which mitmproxy carries.

The relay (`mcpsniff.proxy.relay`) holds and changes messages in the clear. What it would dial is a leg: one end of a
pair of sockets, with an HTTP layer of mitmproxy on the other, and behind that the server. Nobody else can connect to a
leg, since there is no port.
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from inspect import isawaitable
from typing import Any, Final, Protocol

from mitmproxy.http import HTTPFlow, Request
from mitmproxy.proxy import commands, layer
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.mode_specs import ProxyMode
from mitmproxy.proxy.server_hooks import ServerConnectionHookData

from mcpsniff.proxy.address import Upstream, authority
from mcpsniff.proxy.answers import Answer
from mcpsniff.proxy.dial import Dialler, UnreachableError
from mcpsniff.proxy.listener import Listener
from mcpsniff.proxy.mitm.client_side import ClientSide, ReverseHttp
from mcpsniff.proxy.mitm.desk import NO_SERVER, explain, head_of, is_for_us
from mcpsniff.proxy.mitm.engine import Engine
from mcpsniff.proxy.mitm.handling import Handler
from mcpsniff.proxy.mitm.handshakes import Address, Failure, Handshakes
from mcpsniff.proxy.mitm.reverse import ALPN, give_an_end
from mcpsniff.proxy.mitm.upstream import check_authorities
from mcpsniff.proxy.say import say

OPENING: Final = 5.0
"""Seconds that the engine may take to begin a leg, which takes it no waiting."""
ROOM: Final = 256 << 10
"""Bytes that may be on their way between the relay and mitmproxy."""
_logger = logging.getLogger("mitmproxy")


class LegSocket(socket.socket):
    """The relay's end of a leg."""

    last_words: bytes | None = None
    """Our answer to the request that was sent last, once the leg has ended without one of the server's."""

    def getpeername(self) -> tuple[str, int]:
        """There is no address; some systems fail when the other end is closed, as if that had been a reset."""
        return "", 0


class Observer(Protocol):
    """Somebody who hears what a leg's server says before the relay does. Its methods do not raise."""

    def responseheaders(self, flow: HTTPFlow) -> None:
        """The head of a response is there, whose body will stream."""

    def answered(self, answer: Answer, *, is_told: bool) -> None:
        """A request was answered by us, in the server's place. ``is_told``: the user has heard why."""


class Leg:
    """A connection of the relay to ``upstream``; ``end`` is the relay's. An addon of its `LegHandler`, and a `Desk`."""

    def __init__(
        self, upstream: Upstream, end: LegSocket, handshakes: Handshakes, observer: Observer | None = None
    ) -> None:
        self.upstream = upstream
        self.end = end
        self._handshakes = handshakes
        self._observer = observer
        self._answers: dict[int, bytes] = {}

    # -- hooks of mitmproxy ------------------------------------------------------------------------------------------

    def server_connect(self, data: ServerConnectionHookData) -> None:
        """Offer HTTP/2, too: the relay speaks HTTP/1.1, whatever the server does."""
        data.server.alpn_offers = list(ALPN)

    def requestheaders(self, flow: HTTPFlow) -> None:
        """Let the body pass as it comes."""
        flow.request.stream = True

    def responseheaders(self, flow: HTTPFlow) -> None:
        """Let the body pass as it comes."""
        if flow.response is not None:
            flow.response.stream = True
            if self._observer is not None:
                self._observer.responseheaders(flow)
            give_an_end(flow)

    def error(self, flow: HTTPFlow) -> None:
        """An exchange has failed: say why, if that is for us to say."""
        answer = NO_SERVER if is_for_us(flow.error) else explain(flow, self.upstream, self._handshakes)
        if answer is not None:
            self._answers[id(flow.request)] = answer.to(head_of(flow.request))
            if self._observer is not None:
                self._observer.answered(answer, is_told=self._handshakes.failure(flow) is not None)

    # -- as a desk ---------------------------------------------------------------------------------------------------

    def screen(self, listen: tuple[str, int], request: Request, head: bytes) -> None:
        """See `Desk`: the relay has screened it."""

    def take_answer(self, request: Request | None) -> bytes | None:
        """See `Desk`."""
        return self._answers.pop(id(request), None)

    def late(self, request: Request, data: bytes) -> None:
        """See `Desk`: the relay has recorded it."""

    def stray(self, why: str) -> None:
        """See `Desk`: the relay writes down what it is answered."""


class _LegSide(ClientSide):
    """HTTP/1 with the relay, which is given our answers beside what the server says."""

    def __init__(self, context: Context, leg: Leg) -> None:
        super().__init__(context, leg)
        self._leg = leg

    def _say_last(self, answer: bytes) -> layer.CommandGenerator[None]:
        self._leg.end.last_words = answer
        self.state = self.done
        yield commands.CloseConnection(self.conn)


class LegHttp(ReverseHttp):
    """HTTP with the relay."""

    def __init__(self, context: Context, leg: Leg) -> None:
        super().__init__(context, leg)
        self._leg = leg

    def http1_side(self, context: Context) -> ClientSide:
        """See `ReverseHttp`."""
        return _LegSide(context, self._leg)


class LegHandler(Handler):
    """Serves one leg. Its hooks are called on ``addons`` alone, not on the engine's."""

    addons: Sequence[Any] = ()

    async def handle_hook(self, hook: commands.StartHook) -> None:
        """See mitmproxy."""
        with self.timeout_watchdog.disarm():
            for addon in self.addons:
                called = getattr(addon, hook.name, None)
                if called is None:
                    continue
                try:
                    result = called(*hook.args())
                    if isawaitable(result):
                        await result
                except Exception:  # as mitmproxy: it costs the hook, not the connection
                    _logger.exception("Addon error in %s", hook.name)


class Legs:
    """Makes legs in ``engine``, whose addons need not know of them, with ``handshakes`` as one of their addons."""

    def __init__(self, engine: Engine, handshakes: Handshakes) -> None:
        self._engine = engine
        self._handshakes = handshakes
        self._tasks: set[asyncio.Task[None]] = set()

    def open(self, upstream: Upstream, *, sni: str | None = None, observer: Observer | None = None) -> LegSocket:
        """Return the relay's end of a new leg to ``upstream``, from any thread but the engine's. Raises OSError.

        ``sni`` is the name to ask for in TLS, if that is not the host's. The server is connected to at the first
        request.
        """
        end, theirs = paired()
        leg = Leg(upstream, end, self._handshakes, observer)
        begun: Future[None] = self._engine.submit(self._serve(leg, theirs, sni))
        try:
            begun.result(OPENING)
        except BaseException:
            begun.cancel()
            theirs.close()
            end.close()
            raise
        return end

    async def _serve(self, leg: Leg, theirs: socket.socket, sni: str | None) -> None:
        reader, writer = await streams(theirs)
        task = asyncio.get_running_loop().create_task(self._handle(leg, reader, writer, sni))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _handle(
        self, leg: Leg, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, sni: str | None
    ) -> None:
        upstream = leg.upstream
        place = authority(upstream.host, upstream.port, 0)
        mode = ProxyMode.parse(f"reverse:{upstream.scheme}://{place}")
        handler = self._engine.handler(LegHandler, reader, writer, mode)
        handler.addons = [leg, self._handshakes, *self._engine.common]
        context = handler.layer.context
        context.server.address = (upstream.host, upstream.port)
        context.server.tls = upstream.scheme == "https"
        context.server.sni = sni or upstream.host
        context.client.sni = sni
        context.layers.clear()
        handler.layer = LegHttp(context, leg)
        await self._engine.serve(handler)


def paired() -> tuple[LegSocket, socket.socket]:
    """Return the relay's end of a new connection, and the engine's. Raises OSError."""
    ours, theirs = socket.socketpair()
    for each in (ours, theirs):  # some systems have room for 8 KiB only
        each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, ROOM)
    return LegSocket(fileno=ours.detach()), theirs


async def streams(end: socket.socket) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return the engine's end as asyncio has it."""
    end.setblocking(False)
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    transport, _ = await loop.create_connection(lambda: protocol, sock=end)
    return reader, _Writer(transport, protocol, reader, loop)


class _Writer(asyncio.StreamWriter):
    """The engine's end of a leg, which has no address; mitmproxy wants to see one."""

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """See `asyncio.StreamWriter`."""
        return ("127.0.0.1", 0) if name in {"peername", "sockname"} else super().get_extra_info(name, default)


def begin(
    options: Mapping[str, Any],
    stalled: Callable[[Address, str], object],
    failed: Callable[[Address, Failure], object],
) -> tuple[Engine, Legs]:
    """Start an engine that listens nowhere, for legs alone; ``options`` are those of the command.

    ``stalled`` is given a sentence about each server that lets one wait, ``failed`` why there is no TLS with one.
    Raises UsageError.
    """
    authorities = options["upstream_ca"]
    handshakes = Handshakes(
        lambda _client, address, text: stalled(address, text),
        lambda _client, address, failure: failed(address, failure),
    )
    engine = Engine(
        [],
        modes=[],
        options={"ssl_insecure": bool(options["insecure"])},
        authorities=None if authorities is None else check_authorities(authorities),
    )
    handshakes.tls = engine.tls
    engine.start()
    return engine, Legs(engine, handshakes)


def serve(listeners: Sequence[Listener], options: Mapping[str, Any]) -> Engine:
    """Let ``listeners``, whose diallers are `LegDialler`, reach their upstreams. Raises UsageError."""
    told: set[str] = set()

    def of(address: Address) -> list[Listener]:
        return [each for each in listeners if (each.upstream.host, each.upstream.port) == address]

    def stalled(address: Address, text: str) -> None:
        say(text)
        for listener in of(address):
            listener.recorder.mark("comment", None, {"text": text, "by": "mcpsniff"})

    def failed(address: Address, failure: Failure) -> None:
        for listener in of(address):
            text = failure.answer(listener.upstream, listener.upstream.target.partition("?")[0]).error
            if text not in told:
                told.add(text)
                say(text)

    engine, legs = begin(options, stalled, failed)
    for listener in listeners:
        if isinstance(listener.dialler, LegDialler):
            listener.dialler.legs = legs
    return engine


class LegDialler:
    """Dials legs to ``upstream``, for a listener of the relay: in the place of a `mcpsniff.proxy.dial.Dialler`."""

    def __init__(self, upstream: Upstream) -> None:
        self.legs: Legs
        """To be set before a client is let in."""
        self.is_loopback = Dialler(upstream).is_loopback
        """True if the upstream is on this machine."""
        self._upstream = upstream

    def dial(self) -> tuple[socket.socket, tuple[str, int]]:
        """Return a new leg, and the upstream as it is named: its address is not known yet. Raises UnreachableError."""
        try:
            return self.legs.open(self._upstream), (self._upstream.host, self._upstream.port)
        except (OSError, TimeoutError) as error:
            raise UnreachableError([str(error) or "no answer"]) from None
