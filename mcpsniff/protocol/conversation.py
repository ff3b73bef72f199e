r"""One client and one server talking: how they opened, what they agreed on, what they declared.

The life of a conversation is a table (MCP lifecycle page of each revision):

    closed --initialize--> handshake --initialize-result--> handshake --initialized--> active --end--> closing
                                     \--initialize-error--> failed
    closed --modern-request--> active                       (2026-07-28: no handshake)

``unknown`` is the state of a conversation that the capture joined late; nothing is concluded from what it lacks.
"""

from collections import OrderedDict
from typing import Any, Final

from mcpsniff.protocol.events import Close
from mcpsniff.protocol.exchanges import OTHER, Exchange
from mcpsniff.protocol.message import ERROR, NOTIFICATION, REQUEST, RESPONSE, Fact, Message
from mcpsniff.protocol.param_headers import ParamHeader, learn
from mcpsniff.protocol.revisions import (
    CLIENT_CAPABILITIES_KEY,
    CLIENT_INFO_KEY,
    LEGACY,
    PROTOCOL_VERSION_KEY,
    SERVER_INFO_KEY,
    is_published,
)
from mcpsniff.wire.frames import UNTERMINATED

CLOSED: Final = "closed"
HANDSHAKE: Final = "handshake"
ACTIVE: Final = "active"
CLOSING: Final = "closing"
FAILED: Final = "failed"
UNKNOWN: Final = "unknown"

STATES: Final = (CLOSED, HANDSHAKE, ACTIVE, CLOSING, FAILED, UNKNOWN)

TRANSITIONS: Final = {
    (CLOSED, "initialize"): HANDSHAKE,
    (CLOSED, "modern-request"): ACTIVE,
    (HANDSHAKE, "initialize-error"): FAILED,
    (HANDSHAKE, "initialized"): ACTIVE,
    (HANDSHAKE, "modern-request"): ACTIVE,
    (FAILED, "initialize"): HANDSHAKE,
    (FAILED, "modern-request"): ACTIVE,
    (ACTIVE, "initialize"): HANDSHAKE,
    (UNKNOWN, "initialize"): HANDSHAKE,
    (CLOSED, "end"): CLOSING,
    (HANDSHAKE, "end"): CLOSING,
    (ACTIVE, "end"): CLOSING,
    (FAILED, "end"): CLOSING,
    (UNKNOWN, "end"): CLOSING,
}
"""Where an event leads; a pair that is not here leaves the state as it is."""

OPENING_METHODS: Final = frozenset({"ping", "server/discover", "initialize"})

LEGACY_ERA: Final = "legacy"
MODERN_ERA: Final = "modern"

CROSSING_US: Final = 250_000
"""What is sent within this time of something from the other side may have crossed it on the way."""
GOODBYE_US: Final = 2_000_000
"""How long clients read on after they have closed the server's input (both SDK families)."""


class Conversation:
    """What is known of one conversation so far. Checks read it; only the decoder feeds it."""

    is_shared = False
    """Over HTTP without a session: True if messages of several clients may have been taken for one conversation."""

    is_broken_off = False
    """True once mcpsniff has ended a stream of it: neither peer did."""

    is_kept_back = False
    """True while what the client said last has not gone on: the server need not have seen that the client left."""

    _has_losses = False
    """True once bytes were lost that may be of this conversation."""

    def __init__(self, number: int, *, joined_late: bool = False, over_http: bool = False) -> None:
        self.number = number
        self.joined_late = joined_late
        self.over_http = over_http
        """True where messages come on several connections, whose order among each other says little."""
        self.session_id: str | None = None
        """Over HTTP: the session id that the server gave, or that the client named first."""
        self.endpoint: str | None = None
        """Over HTTP+SSE: path and query to which the client is to send its messages."""
        self.state = UNKNOWN if joined_late else CLOSED
        self.era: str | None = None
        self.requested_revision: str | None = None
        self.revision: str | None = None
        """The revision agreed on in the handshake, or the one of the latest modern request."""
        self.revisions: list[str] = []
        """Every revision that governed something, in order of appearance."""
        self.client_info: dict[str, Any] = {}
        self.server_info: dict[str, Any] = {}
        self.client_capabilities: dict[str, Any] | None = None
        self.server_capabilities: dict[str, Any] | None = None
        self.instructions: str | None = None
        self.is_served = False
        """True once the server has answered anything with a result."""
        self.initialize_answered = False
        """True once the server has answered ``initialize`` with a result."""
        self.agreed_at: int | None = None
        """When it did so last, in microseconds."""
        self.initialized = False
        """True once the client has sent ``notifications/initialized``, be it too early."""
        self.early_requests = 0
        """Requests of the client before ``initialize`` (pings and probes aside)."""
        self.unconfirmed_requests = 0
        """Requests of the client between the result of ``initialize`` and ``notifications/initialized``."""
        self.unconfirmed_since: int | None = None
        """When the first of those was sent, in microseconds."""
        self.told_unconfirmed = False
        self.initialize_at: int | None = None
        """When the latest ``initialize`` was sent, in microseconds."""
        self.closed_at: dict[str, int] = {}
        """When each direction ended, in microseconds."""
        self.client_left_at: int | None = None
        """When the client ended the session, by closing the server's input or by reading no more."""
        self.process_end: Close | None = None
        """How the server's process ended, or why it could not be started."""
        self.frame_flaws: set[tuple[int, str]] = set()
        """Channel and flaw of every frame so far; some flaws are worth a word only once per channel."""
        self.param_headers: OrderedDict[str, tuple[ParamHeader, ...]] = OrderedDict()
        """In 2026-07-28: the headers for which tools ask, by tool."""
        self.told: set[str] = set()
        """Codes of the checks that speak only once, and have."""

    def govern(self, message: Message) -> str | None:
        """The revision that governs ``message``; None when nothing has settled it."""
        if message.kind == REQUEST:
            named = message.meta.get(PROTOCOL_VERSION_KEY)
            if isinstance(named, str):
                return named
            if message.method == "initialize":
                asked = message.params.get("protocolVersion")
                return asked if isinstance(asked, str) and is_published(asked) else self.revision
        elif message.link is not None and message.kind in (RESPONSE, ERROR):
            return message.link.revision or self.revision
        return self.revision

    def place(self, message: Message) -> tuple[Fact, ...]:
        """What is true of ``message`` because of the moment at which it comes; to be asked before `observe`."""
        if self.state == ACTIVE and self.era == LEGACY_ERA:
            return ()
        found: tuple[Fact, ...] = ()
        if self.state == CLOSING:
            found = self._after_close(message)
        elif message.kind == REQUEST and message.direction == "c2s":
            found = self._before_work(message)
        if self.era == MODERN_ERA:
            if message.kind == REQUEST and message.direction == "s2c":
                found += (Fact("modern-server-request"),)
            elif message.kind in (RESPONSE, ERROR) and message.direction == "c2s":
                found += (Fact("modern-client-response"),)
        return found

    def _before_work(self, message: Message) -> tuple[Fact, ...]:
        """A request of the client that does not wait for the handshake; a fault that goes on is told once."""
        if self.era == MODERN_ERA or self._may_be_of_another() or not is_working_request(message):
            return ()
        if self.state == CLOSED:
            return () if self.early_requests else (Fact("before-initialize"),)
        if self.state != HANDSHAKE:
            return ()
        if self.is_shared:
            return ()
        if not self.initialize_answered:
            return (Fact("before-initialize-result", t=self.initialize_at),)
        if self.over_http:  # the notification may be on its way on another connection
            since, told = self.unconfirmed_since, self.told_unconfirmed
            if since is None or told or message.t - since <= CROSSING_US:
                return ()
            self.told_unconfirmed = True
            return (Fact("before-initialized"),)
        return () if self.unconfirmed_requests else (Fact("before-initialized"),)

    def _may_be_of_another(self) -> bool:
        """True where connections were seen in part: what is taken for this conversation may belong to another."""
        return self.over_http and (self.joined_late or self._has_losses)

    def _after_close(self, message: Message) -> tuple[Fact, ...]:
        """A message on a stream that has ended, or to somebody who has left some time ago."""
        if UNTERMINATED in message.frame.flaws or message.batch is not None or self.over_http:
            return ()  # its bytes came before the end; for the elements of a batch the batch stands
        if self.is_broken_off:
            return ()  # who writes on has not been told yet
        own = self.closed_at.get(message.direction)
        if own is not None:
            return (Fact("after-own-close", t=own),)
        if message.direction == "s2c":
            left, patience = self.client_left_at, GOODBYE_US
        else:
            left, patience = self.closed_at.get(OTHER[message.direction]), CROSSING_US
        return (Fact("after-peer-close", t=left),) if left is not None and message.t - left > patience else ()

    def observe(self, message: Message, asked: Exchange | None) -> None:
        """Learn from a message; ``asked`` is the exchange that it answers, if it answers one."""
        if message.kind == REQUEST:
            self._request(message)
        elif message.kind == NOTIFICATION:
            if message.method == "notifications/initialized" and message.direction == "c2s":
                self.initialized = True
                if self.initialize_answered:
                    self._enter("initialized")
        elif asked is not None and message.kind == RESPONSE:
            self._result(message, asked.method)
        elif asked is not None and message.kind == ERROR and asked.method == "initialize":
            self._enter("initialize-error")

    def lose(self) -> None:
        """Bytes are missing from the capture: the opening, where it was not over, may have been among them."""
        self._has_losses = True
        if self.state in (CLOSED, HANDSHAKE, FAILED):
            self.state = UNKNOWN

    def end(self, close: Close) -> None:
        """A stream has ended, or the process behind it."""
        self.closed_at.setdefault(close.direction, close.t)
        ended_by_client = ("eof", "reset") if close.direction == "c2s" else ("aborted",)
        self.is_broken_off = self.is_broken_off or close.is_ours
        if not close.is_ours and close.how in ended_by_client and self.client_left_at is None:
            self.client_left_at = close.t
        if close.ends_process or close.how == "error":
            self.process_end = close
        self._enter("end")

    def join_late(self) -> None:
        """What was said before is not in the capture."""
        self.joined_late = True
        if self.state == CLOSED:
            self.state = UNKNOWN

    def leave(self, t: int, by: str | None) -> None:
        """Over HTTP: the session has ended at ``t``, by the ``client`` or the ``server``; None if that is not known."""
        self.closed_at.setdefault("s2c" if by == "server" else "c2s", t)
        if by == "client" and self.client_left_at is None:
            self.client_left_at = t
        self._enter("end")

    def assume(self, revision: str | None) -> None:
        """Over HTTP: a request names ``revision``, which counts where nothing better is known."""
        if self.revision is None and self.state == UNKNOWN and revision in LEGACY:
            self.era = LEGACY_ERA
            self._settle(revision)

    def be_modern(self) -> None:
        """Over HTTP: a request says by its headers alone that it is one of 2026-07-28."""
        if self.era is None:
            self.era = MODERN_ERA
            self._enter("modern-request")

    @property
    def client_left_first(self) -> bool:
        """True if the client ended the session while the server's output had not ended yet."""
        if self.client_left_at is None:
            return False
        server_ended_at = self.closed_at.get("s2c")
        return server_ended_at is None or self.client_left_at <= server_ended_at

    def _enter(self, event: str) -> None:
        self.state = TRANSITIONS.get((self.state, event), self.state)

    def _request(self, message: Message) -> None:
        if message.direction != "c2s":
            return
        meta = message.meta
        if PROTOCOL_VERSION_KEY in meta:
            self._modern_request(meta)
        elif message.method == "initialize":
            if self.era == MODERN_ERA:
                self.revision = None  # that of a probe
            self.era = LEGACY_ERA
            self.initialize_at = message.t
            self.initialize_answered = self.initialized = self.told_unconfirmed = False
            self.unconfirmed_since = None
            self.requested_revision = _text(message.params.get("protocolVersion"))
            self.client_info = _object(message.params.get("clientInfo"))
            self.client_capabilities = _object(message.params.get("capabilities"))
            self._enter("initialize")
        elif is_working_request(message):
            if self.state == CLOSED:
                self.early_requests += 1
            elif self.state == HANDSHAKE and self.initialize_answered:
                self.unconfirmed_requests += 1
                if self.unconfirmed_since is None:
                    self.unconfirmed_since = message.t

    def _modern_request(self, meta: Any) -> None:
        if self.era == LEGACY_ERA and self.initialize_answered:
            return  # one request of the other era does not undo a handshake: revisions are judged per request
        self.era = MODERN_ERA
        named = _text(meta.get(PROTOCOL_VERSION_KEY))
        if self.revision is None or is_published(named):  # a version that is refused settles nothing
            self._settle(named)
        self.client_info = _object(meta.get(CLIENT_INFO_KEY)) or self.client_info
        self.client_capabilities = _object(meta.get(CLIENT_CAPABILITIES_KEY))
        self._enter("modern-request")

    def _result(self, message: Message, method: str) -> None:
        result = message.result
        if message.direction == "s2c":
            self.is_served = True
        if method == "initialize":
            self.initialize_answered = True
            self.agreed_at = message.t
            self._settle(_text(result.get("protocolVersion")))
            self.server_info = _object(result.get("serverInfo"))
            self.server_capabilities = _object(result.get("capabilities"))
            self.instructions = _text(result.get("instructions"))
            if self.initialized:  # a client that did not wait for the result
                self._enter("initialized")
        elif method == "server/discover":
            self.server_capabilities = _object(result.get("capabilities"))
            self.instructions = _text(result.get("instructions"))
        elif method == "tools/list" and self.era == MODERN_ERA:
            learn(self.param_headers, result.get("tools"))
        if self.era == MODERN_ERA:
            self.server_info = _object(message.meta.get(SERVER_INFO_KEY)) or self.server_info

    def _settle(self, revision: str | None) -> None:
        if revision is not None:
            self.revision = revision
            if revision not in self.revisions and len(self.revisions) < 100:
                self.revisions.append(revision)


def is_working_request(message: Message) -> bool:
    """True for a request that belongs to the work of a session, not to opening it: no ping, no probe.

    A request without a usable id, and a notification with one, are faults of their own and open nothing.
    """
    method = message.method or ""
    if message.key is None or method in OPENING_METHODS or method.startswith("notifications/"):
        return False
    return PROTOCOL_VERSION_KEY not in message.meta


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
