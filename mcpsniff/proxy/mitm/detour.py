"""Edit mode of the forward proxy: what is MCP goes through the relay on its way to the server.

    client ==TLS== mitmproxy -- relay -- leg of mitmproxy ==TLS== server

mitmproxy has looked into TLS and judges by content what is MCP (`select`). Such a request does not leave for its
server: it goes to the relay, over a pair of sockets, and the relay dials a leg (`legs`) to that server. The relay
records what passes, as it does for `mcpsniff http`; the tap only counts it. Everything else goes its direct way.
"""

import asyncio
import socket
from _thread import start_new_thread
from itertools import count
from typing import Any, Final, NamedTuple, cast

from mitmproxy.http import HTTPFlow

from mcpsniff.hooks.editor import Editor
from mcpsniff.proxy.address import Upstream
from mcpsniff.proxy.answers import Answer
from mcpsniff.proxy.connection import Connection
from mcpsniff.proxy.dial import UnreachableError
from mcpsniff.proxy.gate import Door, Gate
from mcpsniff.proxy.listener import Listener
from mcpsniff.proxy.mitm.engine import Engine
from mcpsniff.proxy.mitm.handshakes import Handshakes
from mcpsniff.proxy.mitm.legs import Legs, LegSocket, paired, streams
from mcpsniff.proxy.mitm.select import Select
from mcpsniff.proxy.mitm.tap import Tap, Verdict
from mcpsniff.proxy.mitm.trial import Trial
from mcpsniff.proxy.recorder import Recorder
from mcpsniff.proxy.relay.web.hub import Hub

type Peer = tuple[str, int]


ORIGINS: Final = 1024
"""Servers whose sessions are remembered."""


class Detours:
    """Decides which exchanges go through the relay, whose hooks are those of ``editor``. Lives in the engine's thread.

    ``tap`` and ``select`` are those of the forward proxy.
    """

    def __init__(self, editor: Editor, tap: Tap, select: Select) -> None:
        self.legs: Legs
        self.editor = editor
        self.numbers = count()
        """Numbers of connections, for all that is recorded."""
        self.live: set[Connection] = set()
        """What goes through the relay."""
        self.select = select
        self._tap = tap
        self._origins: dict[str, Origin] = {}
        self._shared: dict[tuple[str, str], int] = {}
        self._places = 0

    def set_out(self, engine: Engine, handshakes: Handshakes) -> None:
        """Connect to servers in this engine, one of whose addons is ``handshakes``."""
        self.legs = Legs(engine, handshakes)
        self._tap.defers = True

    @property
    def recorder(self) -> Recorder:
        """Where all is recorded."""
        return self._tap.recorder

    def is_undecided(self, flow: HTTPFlow) -> bool:
        """True while the body of a request may tell whether it is MCP."""
        return self._tap.verdict(flow) is Verdict.WAIT

    def decide(self, flow: HTTPFlow) -> None:
        """The body of a request is over."""
        self._tap.judge(flow)

    def place(self, flow: HTTPFlow) -> "Place | None":
        """Return where a request is to go instead of to its server; None: there.

        What comes in a stream may tell that it is MCP: such a request is on trial, and has a connection of its own.
        """
        verdict = self._tap.verdict(flow)
        is_on_trial = verdict is Verdict.WAIT and _may_be_stream(flow)
        if verdict is not Verdict.KEEP and not is_on_trial:
            return None
        request, sni = flow.request, flow.client_conn.sni
        upstream = Upstream(None, request.host, request.port, "", request.scheme)
        origin = self._origins.get(upstream.origin)
        if origin is None:
            origin = self._origins[upstream.origin] = Origin(self, upstream)
            if len(self._origins) > ORIGINS:
                del self._origins[next(iter(self._origins))]
        self._tap.leave(flow)
        key = flow.client_conn.id, f"{sni} {upstream.origin}"
        number = self._shared.get(key)
        if is_on_trial or number is None:
            number, self._places = self._places, self._places + 1
            if not is_on_trial:
                self._shared[key] = number
        trial = Trial(self.recorder, self.editor) if is_on_trial else None
        return Place(number, Passage(origin, sni, flow.client_conn.sockname, trial), flow.client_conn.peername)

    def forget(self, client: str) -> None:
        """A client's connection, by its id, is over."""
        for key in [key for key in self._shared if key[0] == client]:
            del self._shared[key]

    def answer(self, flow: HTTPFlow) -> "Refused | None":
        """What was answered in the server's place to a request that went through the relay, if that was."""
        place = flow.server_conn.address
        return place.passage.answer if isinstance(place, Place) else None

    def stop(self) -> None:
        """End all that goes through the relay, since mcpsniff ends; from any thread."""
        for connection in list(self.live):
            connection.stop()


class Place(tuple[str, int]):
    """Where mitmproxy is to connect to: ``passage``. As a tuple it is an address of a server, told by ``number``."""

    passage: "Passage"
    client: Peer

    def __new__(cls, number: int, passage: "Passage", client: Peer) -> "Place":
        """``client`` is the address of the client."""
        place = super().__new__(cls, ("the relay of mcpsniff", number))
        place.passage, place.client = passage, client
        return place

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Let the passage begin, and connect to it. Raises OSError."""
        theirs, ours = paired()
        passage = self.passage
        connection = Connection(cast(Listener, passage), theirs, self.client, next(passage.numbers))
        passage.live.add(connection)
        try:
            start_new_thread(connection.run, ())
        except RuntimeError as error:
            passage.live.discard(connection)
            theirs.close()
            ours.close()
            raise OSError(str(error)) from None
        return await streams(ours)


class Refused(NamedTuple):
    """An answer of ours, and whether the user has been told why there is one."""

    answer: Answer
    is_told: bool


class Origin:
    """One server as edit mode knows it. To `Hub` it is what a `Listener` is for `mcpsniff http`."""

    def __init__(self, detours: Detours, upstream: Upstream) -> None:
        self.detours = detours
        self.upstream = upstream
        self.recorder = detours.recorder
        self.numbers = detours.numbers
        self.live = detours.live
        self.dialler = self.origins = self
        self.is_loopback = False
        self.host = None
        """`Host` is what the client sent."""
        self.hub = Hub(detours.editor, cast(Listener, self), upstream.origin)

    def dial(self) -> tuple[LegSocket, Peer]:
        """Connect to the server for a request of our own."""
        return self.opened()

    def opened(self, sni: str | None = None, observer: "Passage | None" = None) -> tuple[LegSocket, Peer]:
        """Connect to the server. Raises UnreachableError."""
        try:
            leg = self.detours.legs.open(self.upstream, sni=sni, observer=observer)
        except (OSError, TimeoutError) as error:
            raise UnreachableError([str(error) or "no answer"]) from None
        return leg, (self.upstream.host, self.upstream.port)

    def local_address(self, _client: socket.socket) -> Peer:
        """See `Listener`: nobody came in for such a request."""
        return "", 0

    def relative(self, _url: bytes) -> bytes | None:
        """See `Origins`: servers keep their addresses here."""
        return None


class Passage:
    """One connection through the relay: to `Connection` and what it uses, a `Listener`. To its leg, an observer."""

    def __init__(self, origin: Origin, sni: str | None, listen: Peer, trial: Trial | None) -> None:
        self.upstream = origin.upstream
        self.dialler = self
        self.origins = origin
        self.is_loopback = False
        self.live, self.numbers = origin.live, origin.numbers
        self.recorder: Any = origin.recorder if trial is None else trial.recorder
        self.hub: Any = origin.hub if trial is None else _TriedHub(origin.hub, trial)
        self.host = None
        """`Host` stays what the client sent."""
        self.answer: Refused | None = None
        """What its leg has answered in the server's place; nothing came after that."""
        self._origin = origin
        self._sni = sni
        self._listen = listen
        self._trial = trial

    # -- as a listener -----------------------------------------------------------------------------------------------

    def dial(self) -> tuple[LegSocket, Peer]:
        """Connect to the server."""
        return self._origin.opened(self._sni, self)

    def gate(self, _client: socket.socket, _channel: int) -> Gate | None:
        """See `Listener`: a client of a proxy may ask for whatever it likes."""
        return None

    def door(self, _client: socket.socket) -> Door | None:
        """See `gate`."""
        return None

    def guard(self, _client: socket.socket) -> Door | None:
        """See `gate`."""
        return None

    def local_address(self, _client: socket.socket) -> Peer:
        """Where the client came in."""
        return self._listen

    def greeted(self, _data: bytes) -> None:
        """See `Listener`: what a server says first is mitmproxy's business."""

    # -- as the observer of a leg ------------------------------------------------------------------------------------

    def answered(self, answer: Answer, *, is_told: bool) -> None:
        """See `mcpsniff.proxy.mitm.legs.Observer`."""
        self.answer = Refused(answer, is_told)

    def responseheaders(self, flow: HTTPFlow) -> None:
        """See `mcpsniff.proxy.mitm.legs.Observer`: see by what the server says whether it is MCP."""
        trial, select = self._trial, self._origin.detours.select
        if trial is None or flow.response is None or trial.verdict is not Verdict.WAIT:
            return
        verdict = select.begin(flow)
        trial.decide(select.more(flow, "s2c", b"") if verdict is Verdict.WAIT else verdict)
        if trial.verdict is not Verdict.WAIT:
            return

        def judged(data: bytes) -> bytes:
            try:
                trial.decide(select.more(flow, "s2c", data) if data else Verdict.DROP)
            except Exception:  # noqa: BLE001 - what is not known to belong here is not written down
                trial.decide(Verdict.DROP)
            return data

        flow.response.stream = judged


class _TriedHub:
    """A hub whose editor is that of a trial."""

    def __init__(self, hub: Hub, trial: Trial) -> None:
        self._hub = hub
        self.editor = trial.editor

    def __getattr__(self, name: str) -> Any:
        return getattr(self._hub, name)


def _may_be_stream(flow: HTTPFlow) -> bool:
    return flow.request.method == "GET" and "text/event-stream" in flow.request.headers.get("accept", "").lower()
