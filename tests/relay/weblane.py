"""One connection of edit mode over HTTP without sockets: bytes in, what leaves and what is recorded out."""

from base64 import b64decode
from collections import deque
from collections.abc import Callable
from contextlib import nullcontext
from threading import Condition
from types import SimpleNamespace
from typing import Any, cast

from mcpsniff.hooks.actions import HttpHead, Returned
from mcpsniff.hooks.editor import Editor, Outgoing
from mcpsniff.protocol.message import Message
from mcpsniff.proxy.address import parse_upstreams
from mcpsniff.proxy.endpoint import Origins
from mcpsniff.proxy.relay.web.held import Errand, Lane
from mcpsniff.proxy.relay.web.hub import Hub
from mcpsniff.proxy.relay.web.output import Output
from mcpsniff.proxy.relay.web.responses import Responses
from mcpsniff.wire.http1 import Head, Http1Splitter

UPSTREAM = parse_upstreams(["http://127.0.0.1:8000/mcp"])[0]


class Hook:
    """An interceptor that is one function."""

    name = "hook"

    def __init__(
        self, edit: Callable[[Message], Returned], edit_head: Callable[[HttpHead], object] | None = None
    ) -> None:
        self._edit, self._edit_head = edit, edit_head

    def edit(self, message: Message, lane: object) -> Returned:
        return self._edit(message)

    def edit_head(self, head: HttpHead) -> None:
        if self._edit_head is not None:
            self._edit_head(head)

    def begin(self, remark: Callable[[str], object]) -> None:
        """Nothing to be done."""

    def end(self) -> list[str]:
        return []


class Tape:
    """Stands for a recorder, and for the socket whose reader gets what leaves."""

    zero_ns = 0

    def __init__(self) -> None:
        self.marks: list[tuple[str, int, dict[str, Any]]] = []
        self.arrived = b""
        self.left = b""

    def mark(self, kind: str, channel: int, body: dict[str, Any]) -> None:
        self.marks.append((kind, channel, body))

    def sendall(self, data: bytes) -> None:
        self.left += data

    def clock(self) -> int:
        return 0

    def told(self) -> bytes:
        """What left, as the records tell it."""
        out, at = b"", 0
        rewrites = [body for kind, _, body in self.marks if kind == "rewrite"]
        for body in sorted(rewrites, key=lambda body: cast("int", body["start"])):
            assert body["start"] >= at, "rewrites overlap"
            data = body["data"]
            text = data.encode() if isinstance(data, str) else b64decode(data["b64"])
            out += self.arrived[at : body["start"]] + text
            at = body["start"] + body["length"]
        return out + self.arrived[at:]


class Answering:
    """The responses of one connection, to requests that have been sent; `backs`: what hooks say to the server."""

    def __init__(self, hook: Hook, *requests: bytes) -> None:
        self.tape = Tape()
        self.said: list[str] = []
        self.backs: list[Outgoing] = []
        listener = SimpleNamespace(
            upstream=UPSTREAM, origins=Origins(UPSTREAM, is_local=True), greeted=lambda _: None, recorder=self.tape
        )
        self.hub = Hub(Editor([cast("Any", hook)], self.said.append), cast("Any", listener))
        self.carrier = SimpleNamespace(
            hub=self.hub,
            listener=listener,
            recorder=self.tape,
            number=0,
            ends=SimpleNamespace(sources=(None, None)),
            gate=None,
            is_blind=False,
            is_waiting=False,
            errands=deque(),
            changed=Condition(),
            requests=SimpleNamespace(splitter=Http1Splitter(0, "c2s")),
            outputs=[None, Output(cast("Any", self.tape), 1, cast("Any", self.tape))],
            lane=lambda _, late: Lane(nullcontext, lambda: False, late),
            give_back=lambda _, out: self.backs.append(out),
            tell=lambda: None,
            now=lambda: 0,
        )
        self.responses = Responses(cast("Any", self.carrier))
        for request in requests:
            head = Http1Splitter(0, "c2s").feed(0, request)[0]
            assert isinstance(head, Head)
            self.carrier.errands.append(Errand(head, self.hub.session(head, 0)))
            self.responses.splitter.expect(head.method or "GET")

    def feed(self, data: bytes) -> bytes:
        """Bytes of the server arrive; return what leaves because of them."""
        before = len(self.tape.left)
        self.tape.arrived += data
        self.responses.read(0, data)
        return self.tape.left[before:]

    def finish(self) -> bytes:
        """The server has ended its side."""
        before = len(self.tape.left)
        self.responses.finish()
        return self.tape.left[before:]
