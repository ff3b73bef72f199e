"""What edit mode knows of one upstream: its sessions, over all connections, and their open streams.

A session over HTTP is known by its id (`Mcp-Session-Id`), in the transport of 2024-11-05 by the endpoint that its
stream has named, and where there is neither by the connection.
"""

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, Final

from mcpsniff.protocol.endpoints import resolved
from mcpsniff.protocol.http import SESSION_HEADER
from mcpsniff.protocol.param_headers import ParamHeader

if TYPE_CHECKING:
    from mcpsniff.hooks.editor import Editor, Outgoing
    from mcpsniff.hooks.talk import Talk
    from mcpsniff.proxy.listener import Listener
    from mcpsniff.proxy.relay.web.stream import EventStream
    from mcpsniff.wire.http1_parts import Head

SESSIONS_LIMIT: Final = 10_000
"""Sessions that are remembered."""

type Key = tuple[str, str | int]


class Session:
    """One client and one server over HTTP."""

    def __init__(self, talk: "Talk") -> None:
        self.talk = talk
        self.target = ""
        """Where the client sends its messages, as far as that is known."""
        self.is_legacy = False
        """True if answers come on the stream that was opened first (HTTP with SSE, 2024-11-05)."""
        self.latest: Head | None = None
        """The head of the client's latest request with a message, or of its stream."""
        self.streams: list[EventStream] = []
        """Open streams for what the server says on its own."""
        self.connections: set[int] = set()
        """Connections that it has used, as long as they are open."""
        self.is_over = False
        """The client has ended it."""

    def push(self, out: "Outgoing") -> bool:
        """Let a message to the client leave on a stream of the session; False if there is none."""
        return any(stream.push(out) for stream in reversed(self.streams))


class Hub:
    """Knows the sessions of the upstream that clients of ``listener`` reach; ``editor`` is given their messages.

    ``name`` stands for the upstream where sessions are told apart: the same id at two servers means two of them.
    """

    def __init__(self, editor: "Editor", listener: "Listener", name: str = "") -> None:
        self.editor = editor
        self.listener = listener
        self.tools: OrderedDict[str, tuple[ParamHeader, ...]] = OrderedDict()
        """The headers that tools ask for (2026-07-28)."""
        self._name = name or listener.upstream.url
        self._lock = Lock()
        self._sessions: OrderedDict[Key, Session] = OrderedDict()
        self._numbers = 0
        self._used: dict[int, set[Session]] = {}
        """By connection, as long as that is open."""

    @property
    def editors(self) -> str:
        """Who takes the time of messages, where nobody in particular has held one."""
        return self.editor.holder

    def session(self, head: "Head", connection: int) -> Session:
        """The session that a request belongs to."""
        session = self._session(head, connection)
        with self._lock:
            session.connections.add(connection)
            self._used.setdefault(connection, set()).add(session)
        return session

    def _session(self, head: "Head", connection: int) -> Session:
        named = head.get(SESSION_HEADER)
        with self._lock:
            if head.method == "POST" and head.target is not None:
                found = self._sessions.get(("endpoint", resolved(head.target, head.target)))
                if found is not None:
                    return found
            key: Key = ("connection", connection) if named is None else ("id", named)
            found = self._sessions.get(key)
            if found is not None:
                self._sessions.move_to_end(key)
                return found
            self._numbers += 1
            return self._keep(key, Session(self.editor.talk((self._name, self._numbers))))

    def named(self, session: Session, name: str, connection: int) -> None:
        """The server has given ``session`` this id."""
        with self._lock:
            if self._sessions.get(("connection", connection)) is session:
                del self._sessions["connection", connection]
            self._keep(("id", name), session)

    def endpoint(self, session: Session, stream: "Head", reference: str) -> None:
        """The stream that answers the request ``stream`` has named the endpoint of ``session``."""
        session.target = resolved(stream.target or "/", reference)
        session.is_legacy = True
        with self._lock:
            self._keep(("endpoint", session.target), session)

    def forget(self, connection: int) -> None:
        """A connection has ended, and with it what is known by it."""
        with self._lock:
            self._sessions.pop(("connection", connection), None)
            for session in self._used.pop(connection, ()):
                session.connections.discard(connection)

    def _keep(self, key: Key, session: Session) -> Session:
        self._sessions[key] = session
        self._sessions.move_to_end(key)
        if len(self._sessions) > SESSIONS_LIMIT:
            self._sessions.popitem(last=False)
        return session
