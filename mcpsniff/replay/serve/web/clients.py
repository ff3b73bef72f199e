"""The clients of a replay over HTTP: whose request it is, and what is kept for each.

A recorded session id becomes a fresh one for each client; a server that gave none gives none now, and its clients are
told apart by where they come from and what they call themselves, as far as they can be.
"""

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from mcpsniff.protocol.message import RESPONSE, Message
from mcpsniff.protocol.talk import BARE, MODERN
from mcpsniff.replay.script import Scene, Talk, Web
from mcpsniff.replay.serve.performance import Performance
from mcpsniff.replay.serve.stage import Session, Stage
from mcpsniff.replay.serve.web.heads import SESSION_NAME
from mcpsniff.replay.serve.web.log import EventIds
from mcpsniff.replay.serve.web.route import DISCOVER, ENDED, KNOWN, NONE, UNKNOWN
from mcpsniff.replay.serve.web.streams import EventWriter, Stream, StreamPort

MOST_CLIENTS: Final = 1_000
"""Clients that are kept; of more, those that said nothing for longest are forgotten."""
OPENINGS: Final = ("initialize", DISCOVER)
"""The methods with which a client begins."""


class Client:
    """One client, and what it has to do with the recording."""

    def __init__(self, play: Session, stage: Stage, writer: EventWriter, expected: "Expected") -> None:
        self.play = play
        self.stream = Stream(writer, stage.tempo, self, lambda: expected(self))
        self.port = StreamPort(self.stream, stage)
        self.session: str | None = None
        """Its live session id; None if it has none."""
        self.header = SESSION_NAME
        """How the server spells the header for it."""
        self.streams_given = 0
        """How many GET streams it has had."""
        self.used = time.monotonic()

    @property
    def talk(self) -> Talk | None:
        """The recorded conversation that it goes through; None before it has said anything that was recorded."""
        return self.play.walk.talk

    def end(self) -> None:
        """It has left, or its session was ended."""
        self.play.left()
        self.stream.log.finish()


type Expected = Callable[[Client], Web | None]


class Clients:
    """All clients of one replay."""

    def __init__(self, stage: Stage, writer: EventWriter, expected: Expected) -> None:
        """``expected`` gives the recorded stream that a client will have when it asks for its next."""
        self._stage = stage
        self._expected = expected
        self._writer = writer
        self._sessions: OrderedDict[str, Client] = OrderedDict()
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._nameless: OrderedDict[tuple[str, str], Client] = OrderedDict()
        talks = stage.matcher.talks
        self.has_sessions = any(talk.kind not in (BARE, MODERN) and not talk.is_modern for talk in talks)
        """True if some clients are given session ids."""
        self.is_modern = any(talk.kind == MODERN or talk.is_modern for talk in talks)
        """True if something was recorded of a conversation without ``initialize``."""
        self.discovers = any(
            scene.method == DISCOVER and not scene.is_refused for talk in talks for scene in talk.requests()
        )
        """True if it was asked what the server speaks, and the server said something to it."""
        self.served = 0
        """How many there have been."""
        self._left = 0

    @property
    def ids(self) -> EventIds:
        """The event ids of all their streams."""
        return self._writer.ids

    @property
    def have_left(self) -> bool:
        """True if somebody has ended a session, and no other session goes on."""
        return self._left > 0 and not self._sessions

    def state(self, session: str | None) -> str:
        """What a session id is: NONE, KNOWN, ENDED or UNKNOWN."""
        if session is None:
            return NONE
        return KNOWN if session in self._sessions else ENDED if session in self._ended else UNKNOWN

    def named(self, session: str) -> Client | None:
        """The client of that session."""
        found = self._sessions.get(session)
        if found is not None:
            found.used = time.monotonic()
            self._sessions.move_to_end(session)
        return found

    def nameless(self, key: tuple[str, str], message: Message | None) -> Client:
        """The client that came from there, a new one if it opens a conversation; for servers without sessions."""
        client = self._nameless.get(key)
        if client is None or (message is not None and message.method in OPENINGS):
            client = self._nameless[key] = self.begin()
            _shorten(self._nameless, MOST_CLIENTS)
        self._nameless.move_to_end(key)
        client.used = time.monotonic()
        return client

    def begin(self) -> Client:
        """A client has come."""
        self.served += 1
        client = Client(self._stage.session(), self._stage, self._writer, self._expected)
        client.play.prologue(client.port)
        return client

    def name(self, client: Client, performance: Performance | None = None) -> str:
        """Give a client a session id, in the recorded spelling of the header."""
        scene = None if performance is None else performance.scene
        recorded = _given(scene)
        client.header, client.session = recorded[0], _fresh(recorded[1])
        self._sessions[client.session] = client
        for key in [key for key, other in self._nameless.items() if other is client]:
            del self._nameless[key]
        _shorten(self._sessions, MOST_CLIENTS)
        return client.session

    def end(self, client: Client) -> None:
        """A client's session is over."""
        if client.session is not None and self._sessions.pop(client.session, None) is not None:
            self._ended[client.session] = None
            while len(self._ended) > MOST_CLIENTS:
                self._ended.popitem(last=False)
        self._left += 1
        client.end()

    def end_all(self) -> None:
        """No client is served any more."""
        for client in (*self._sessions.values(), *self._nameless.values()):
            client.end()


def gives_session(performance: Performance, clients: Clients) -> bool:
    """True if the answer that a performance gives to ``initialize`` begins a session that has an id."""
    if performance.live is None or performance.live.method != "initialize":
        return False
    scene = performance.scene
    if scene is None:  # made up, since the capture lacks the handshake; or there is nothing like it
        return clients.has_sessions
    answer = scene.answer
    has_seen_id = not scene.is_refused and bool(_given(scene)[1])  # a client that hung up when it had seen the head
    is_granted = has_seen_id if answer is None else answer.kind == RESPONSE
    return scene.talk.kind not in (BARE, MODERN) and is_granted


def _given(scene: Scene | None) -> tuple[str, str]:
    """The session header as the recorded answer has it: its name, and the id."""
    web: Web | None = None if scene is None else scene.web
    response = None if web is None else web.http.response
    for name, value in () if response is None else response.headers:
        if name.lower() == SESSION_NAME.lower():
            return name, value
    return SESSION_NAME, ""


def _fresh(recorded: str) -> str:
    """A session id that nobody can guess; what the recorded one has that none may have, it has, too."""
    odd = "".join(c for c in recorded if not "!" <= c <= "~" and (c.isprintable() or c == "\t"))
    return secrets.token_hex(16) + (f"{odd}{secrets.token_hex(2)}" if odd else "")


def _shorten[K](clients: OrderedDict[K, Client], most: int) -> None:
    while len(clients) > most:
        _, forgotten = clients.popitem(last=False)
        forgotten.end()
