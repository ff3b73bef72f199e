"""Messages of hooks to the server: each is a POST on a connection of its own, and recorded as one.

Nothing of it arrived from the client, so all that is sent is an insertion, and all that comes back is kept from the
client. What the server says there besides the answer goes to the client's own stream, if there is one.
"""

import socket
import time
from contextlib import nullcontext
from threading import Event, Thread
from typing import TYPE_CHECKING, Final

from mcpsniff.decoder.bodies import is_like_a_message
from mcpsniff.hooks.editor import ADDED, ANSWER_KEPT, Outgoing
from mcpsniff.protocol.http import EVENT_STREAM, media_type
from mcpsniff.protocol.reading import JsonReader
from mcpsniff.proxy.dial import UnreachableError
from mcpsniff.proxy.ends import spelled
from mcpsniff.proxy.relay.edit_records import LIMIT
from mcpsniff.proxy.relay.web.heads import field, set_header
from mcpsniff.proxy.relay.web.held import Held, Lane
from mcpsniff.proxy.relay.web.output import Output
from mcpsniff.proxy.relay.web.routing import made_true
from mcpsniff.wire.frames import Frame
from mcpsniff.wire.http1 import Data, End, Head, Http1Splitter
from mcpsniff.wire.sse import EventSplitter

if TYPE_CHECKING:
    from mcpsniff.proxy.relay.web.heads import Pairs
    from mcpsniff.proxy.relay.web.hub import Hub, Session

PATIENCE: Final = 10.0
"""Seconds that the server may take to begin its response before what comes after it goes on."""
LONGEST: Final = 120.0
"""Seconds for which its answer, or what else it says there, is waited for."""
LOOK: Final = 0.5
"""Seconds between two looks whether anybody still wants that."""
GIVEN_UP: Final = "mcpsniff waits no longer for an answer"
SHORTLY: Final = 0.01
"""Seconds that a server gets to take up a message that it has accepted: some say so first."""
_NOT_OURS: Final = frozenset({
    "content-length", "transfer-encoding", "content-encoding", "content-type", "connection", "keep-alive", "expect",
    "upgrade", "accept", "last-event-id", "trailer", "te",
})  # fmt: skip
"""Headers of the client's request that say something of its own body, connection or stream."""
_ROUTING: Final = ("mcp-method", "mcp-name", "mcp-param-")


def inject(hub: "Hub", session: "Session", out: Outgoing, *, waits: bool) -> None:
    """Send a message to the server, in ``session``. With ``waits`` return when the response to it has begun."""
    if session.latest is None:
        hub.editor.tell_once(f"{out.by}: a message to the server got lost, as nothing is known of the session yet")
        return
    errand = _Injection(hub, session, out)
    Thread(target=errand.run, daemon=True).start()
    if waits and errand.begun.wait(PATIENCE):
        time.sleep(SHORTLY)


class _Injection:
    """One such message on its way."""

    def __init__(self, hub: "Hub", session: "Session", out: Outgoing) -> None:
        self.begun = Event()
        """Set when the response has begun, or there will be none."""
        self._hub = hub
        self._session = session
        self._out = out
        self._recorder = hub.listener.recorder
        self._channel = 2 * next(hub.listener.numbers)
        self._lane = Lane(nullcontext, lambda: False, session.push)
        self._reader = JsonReader()
        self._began = self._seen = time.monotonic()
        """When it began, and when the client was last known to be there."""

    def run(self) -> None:
        """Send it, and take the response. Nothing is raised."""
        try:
            self._run()
        except UnreachableError as error:
            self._lost(str(error))
        except OSError as error:
            self._lost(error.strerror or str(error))
        finally:
            self.begun.set()

    def _run(self) -> None:
        request = _request(self._hub, self._session, self._out)
        connection, address = self._hub.listener.dialler.dial()
        recorder, channel = self._recorder, self._channel
        meta = {"client": "mcpsniff", "server": spelled(address), "upstream": self._hub.listener.upstream.origin}
        ends = {"kind": "tcp", "conn": channel // 2, "meta": meta}
        recorder.mark("open", channel, {**ends, "dir": "c2s"})
        recorder.mark("open", channel + 1, {**ends, "dir": "s2c", "of": channel})
        how = {"how": "eof"}
        try:
            output = Output(recorder, channel, connection)
            output.rewrite(0, 0, request, self._out.by, self._out.why)
            connection.settimeout(LONGEST)
            connection.sendall(request)
            connection.settimeout(LOOK)
            if not self._responses(connection):
                how = {"how": "aborted", "error": GIVEN_UP}
        except OSError:
            how = {"how": "reset"}
            raise
        finally:
            recorder.mark("close", channel, {"how": "eof"})
            recorder.mark("close", channel + 1, how)
            connection.close()

    def _receive(self, connection: socket.socket) -> bytes | None:
        """What the server says next; None if nobody waits for it any longer."""
        while True:
            now = time.monotonic()
            if self._session.connections:
                self._seen = now
            if self._session.is_over or now - self._seen > PATIENCE:
                return None
            if now - self._began > LONGEST:
                self._hub.editor.tell_once(f"{self._out.by}: the server has not answered a message of its own")
                return None
            try:
                return connection.recv(1 << 16)
            except TimeoutError:
                continue

    def _responses(self, connection: socket.socket) -> bool:
        """Read the response to its end; False if that is not waited for."""
        splitter = Http1Splitter(self._channel + 1, "s2c")
        splitter.expect("POST")
        kept = Output(self._recorder, self._channel + 1, connection)
        body: _Body | None = None
        offset = 0
        while True:
            data = self._receive(connection)
            if data is None:
                return False
            now = (self._recorder.clock() - self._recorder.zero_ns) // 1000
            if data:
                self._recorder.settle(self._recorder.note(self._channel + 1, data), bulk=False)
                kept.rewrite(offset, len(data), b"", self._out.by, ANSWER_KEPT)
                offset += len(data)
            for part in splitter.feed(now, data) if data else splitter.finish(now):
                if isinstance(part, Head) and not part.interim:
                    self._begun(part)
                    body = _Body(part)
                elif isinstance(part, Data) and body is not None:
                    for frame in body.feed(part):
                        self._take(frame)
                elif isinstance(part, End) and body is not None:
                    for frame in body.end():
                        self._take(frame)
                    return True
            if not data:
                return True

    def _begun(self, head: Head) -> None:
        self.begun.set()
        if head.status is not None and head.status >= 400:
            self._hub.editor.tell_once(f"{self._out.by}: the server refused a message of its own: status {head.status}")

    def _take(self, frame: Frame) -> None:
        """Something that the server said there: the answer is kept, all else goes to the client."""
        if not is_like_a_message(frame.payload):
            return
        edit = self._hub.editor.edit(frame, self._session.talk, self._lane, self._reader)
        if edit is None:
            leaving = [Outgoing(ADDED, self._out.by, "", frame.payload, None)]
        else:
            leaving = [out for out in edit.leaving if out.action is None]
        for out in leaving:
            if not self._session.push(out):
                self._hub.editor.tell_once(
                    f"{self._out.by}: what the server said to a message of its own got lost, as the client has no"
                    " stream for it"
                )

    def _lost(self, why: str) -> None:
        self._hub.editor.tell_once(f"{self._out.by}: a message to the server got lost: {why}")


class _Body:
    """The body of the response."""

    def __init__(self, head: Head) -> None:
        is_stream = media_type(head.get("content-type")) == EVENT_STREAM
        self._events = EventSplitter(-1, "s2c", limit=LIMIT) if is_stream else None
        self._held = Held(head)

    def feed(self, part: Data) -> list[Frame]:
        if self._events is None:
            self._held.add(part)
            return []
        return self._events.feed(part.t, part.data, (part.span,))

    def end(self) -> list[Frame]:
        frame = self._held.frame() if self._events is None else None
        return [] if frame is None else [frame]


def _request(hub: "Hub", session: "Session", out: Outgoing) -> bytes:
    """The message as a POST like the client's own."""
    like = session.latest
    assert like is not None
    body = out.data
    headers: Pairs = [pair for pair in like.headers if pair[0].lower() not in _NOT_OURS]
    has_routing = any(name.lower() == "mcp-method" for name, _ in headers)
    headers = [pair for pair in headers if not pair[0].lower().startswith(_ROUTING)]
    headers += [("Content-Type", "application/json"), ("Accept", f"application/json, {EVENT_STREAM}")]
    if has_routing and out.message is not None and out.message.method is not None:
        headers.append(("Mcp-Method", out.message.method))
        made_true(headers, None, out.message, hub.tools)
    if hub.listener.host is not None:
        set_header(headers, "Host", hub.listener.host)
    for name, value in out.headers.items():
        set_header(headers, name, value)
    headers += [("Content-Length", str(len(body))), ("Connection", "close")]
    target = session.target or like.target or "/"
    lines = [f"POST {target} HTTP/1.1\r\n".encode("latin-1", "replace"), *[field(*pair) for pair in headers], b"\r\n"]
    return b"".join(lines) + body
