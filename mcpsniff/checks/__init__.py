"""The check registry: what a check is, how one registers, and how they are run.

A check is one small function that looks at one thing and says in one sentence what is wrong with it, or nothing.
It keeps no state: whatever it needs to know of the past is on what it receives. Its docstring is its documentation:
the first paragraph states the fault, the second why it matters, the third (``Fix: ...``) what to do.

    @check("MCP101", "stdio-not-json", on=Message, when=("not-json",), severity=ERROR, group=FRAMING, spec="...")
    def stdio_not_json(message: Message, conversation: Conversation) -> Verdict:

``when`` names the flaws, facts and (for exchanges, also of HTTP) states that call the check, ``methods`` the methods of
messages, ``over`` the size of frames; without any of them every item of the type does. Blame falls on the sender of the
bytes unless the check says otherwise. A check that raises is switched off for the run and reported once as MCP901; the
others do not notice.
"""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from mcpsniff.checks.about import first_k, message_of, method_answered
from mcpsniff.protocol.conversation import Conversation
from mcpsniff.protocol.edits import Edit
from mcpsniff.protocol.exchanges import Exchange
from mcpsniff.protocol.http import Http, HttpExchange
from mcpsniff.protocol.message import Message
from mcpsniff.protocol.reading import TOO_DEEP
from mcpsniff.protocol.revisions import is_within
from mcpsniff.wire.frames import INCOMPLETE, Frame, Span

ERROR: Final = "error"
WARNING: Final = "warning"
NOTE: Final = "note"
INFO: Final = "info"

SEVERITIES: Final = {
    ERROR: "a MUST is broken, provable from these bytes",
    WARNING: "a SHOULD is broken, or a MUST under an assumption",
    NOTE: "unusual but allowed",
    INFO: "a milestone",
}

FRAMING: Final = "framing"
JSONRPC: Final = "jsonrpc"
LIFECYCLE: Final = "lifecycle"
ORDERING: Final = "ordering"
HTTP: Final = "http"
FEATURES: Final = "features"
TIMING: Final = "timing"
RECORDER: Final = "recorder"

CLIENT: Final = "client"
SERVER: Final = "server"
NETWORK: Final = "network"
MCPSNIFF: Final = "mcpsniff"


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault at one place. ``at`` is the number of the event it hangs on, ``k`` its place among those there."""

    code: str
    name: str
    severity: str
    group: str
    blame: str
    text: str
    at: int
    k: int
    t: int
    message: int | None = None
    frame: int | None = None
    spans: tuple[Span, ...] = ()
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Hit:
    """What a check says when one sentence is not enough."""

    text: str
    severity: str | None = None
    blame: str | None = None
    fix: str = ""  # what to do about this one, if not what the check says of all


type Verdict = str | Hit | list[str | Hit] | None


@dataclass(frozen=True, slots=True)
class Check:
    """A registered check."""

    code: str
    name: str
    on: type
    severity: str
    group: str
    function: Callable[[Any, Conversation], Verdict]
    when: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    since: str | None = None
    until: str | None = None
    spec: str = ""
    blame: str | None = None
    framing: str | None = None
    in_part: bool = False
    """True if the check may judge a frame of which the observer has only a part."""
    over: int | None = None
    """A check of frames: called only for those with a payload of more bytes than this."""
    http: str | None = None
    """A check of messages: called for every one of this direction that HTTP carries."""
    once: bool = False
    """True if the check speaks only once in a conversation: of a habit, not of a slip."""

    @property
    def doc(self) -> str:
        """The check's docstring, without its indentation."""
        return inspect.getdoc(self.function) or ""

    @property
    def summary(self) -> str:
        """The first paragraph of the docstring: the fault in one sentence."""
        return self.doc.split("\n\n", 1)[0].replace("\n", " ")

    @property
    def fix(self) -> str:
        """What to do about it: the paragraph that starts with ``Fix:``."""
        for paragraph in self.doc.split("\n\n"):
            if paragraph.startswith("Fix:"):
                return paragraph.removeprefix("Fix:").strip().replace("\n", " ")
        return ""


REGISTRY: Final[dict[str, Check]] = {}


def check(
    code: str,
    name: str,
    *,
    on: type,
    severity: str,
    group: str,
    when: Iterable[str] = (),
    methods: Iterable[str] = (),
    since: str | None = None,
    until: str | None = None,
    spec: str = "",
    blame: str | None = None,
    framing: str | None = None,
    in_part: bool = False,
    over: int | None = None,
    http: str | None = None,
    once: bool = False,
) -> Callable[[Callable[[Any, Conversation], Verdict]], Callable[[Any, Conversation], Verdict]]:
    """Register the decorated function as a check. Raises ValueError if the code or the name is taken."""

    def register(function: Callable[[Any, Conversation], Verdict]) -> Callable[[Any, Conversation], Verdict]:
        if code in REGISTRY or any(other.name == name for other in REGISTRY.values()):
            raise ValueError(f"{code} {name} is registered already")
        REGISTRY[code] = Check(
            code,
            name,
            on,
            severity,
            group,
            function,
            tuple(when),
            tuple(methods),
            since,
            until,
            spec,
            blame,
            framing,
            in_part,
            over,
            http,
            once,
        )
        return function

    return register


# The observer's own limits: what is missing or unread must not be blamed on a peer.
_UNSEEN: Final = INCOMPLETE | {TOO_DEEP}


class Runner:
    """Runs the registered checks over what a decoder produces; one runner per decoder."""

    def __init__(self, checks: Iterable[Check] | None = None) -> None:
        self._off: set[str] = set()
        self._always: dict[type, list[Check]] = {}
        self._by_word: dict[tuple[type, str], list[Check]] = {}
        self._by_method: dict[str, list[Check]] = {}
        self._by_size: list[Check] = []
        self._over_http: dict[str, list[Check]] = {}
        self._smallest: float = float("inf")
        for one in REGISTRY.values() if checks is None else checks:
            self._index(one)

    def _index(self, one: Check) -> None:
        for word in one.when:
            self._by_word.setdefault((one.on, word), []).append(one)
        for method in one.methods:
            self._by_method.setdefault(method, []).append(one)
        if one.over is not None:
            self._by_size.append(one)
            self._smallest = min(self._smallest, one.over)
        if one.http is not None:
            self._over_http.setdefault(one.http, []).append(one)
        if not one.when and not one.methods and one.over is None and one.http is None:
            self._always.setdefault(one.on, []).append(one)

    def message(self, message: Message, conversation: Conversation) -> list[Finding]:
        """Findings on a message."""
        called = self._always.get(Message, ())
        method = message.method or method_answered(message)
        if method in self._by_method:
            called = [*called, *self._by_method[method]]
        if message.flaws or message.facts:
            # What follows from an edit is no fault of the sender.
            is_edited = message.link is not None and bool(message.link.touches)
            words = [*message.flaws, *(fact.name for fact in message.facts if not is_edited)]
            called = [*called, *(one for word in words for one in self._by_word.get((Message, word), ()))]
        if message.http is not None:
            called = [*called, *self._over_http.get(message.direction, ())]
        if not called:
            return []
        return self._run(called, message, conversation, message.n, message.t, message.frame, message.revision)

    def frame(self, frame: Frame, conversation: Conversation) -> list[Finding]:
        """Findings on a frame."""
        called = self._always.get(Frame, [])
        if frame.flaws:
            called = [*called, *(one for word in frame.flaws for one in self._by_word.get((Frame, word), ()))]
        if frame.size > self._smallest:
            called = [*called, *(one for one in self._by_size if frame.size > (one.over or 0))]
        if not called:
            return []
        return self._run(called, frame, conversation, frame.n, frame.t_last, frame, conversation.revision)

    def item(self, item: Any, conversation: Conversation, at: int, t: int) -> list[Finding]:
        """Findings on anything else the decoder produces: an exchange, a close, a moment, stderr, a note."""
        called = self._always.get(type(item), [])
        words = (item.state,) if type(item) is Exchange else getattr(item, "flaws", ())
        if isinstance(item, Edit):
            words = (item.change,)
        if words:
            called = [*called, *(one for word in words for one in self._by_word.get((type(item), word), ()))]
        revision = getattr(item, "revision", conversation.revision)
        return self._run(called, item, conversation, at, t, None, revision) if called else []

    def http(self, event: Http, conversation: Conversation) -> list[Finding]:
        """Findings on an HTTP exchange: checks without ``when`` see its first event only, where the heads are known.

        One whose request somebody made on the way says nothing of the client, and little of the server.
        """
        if event.exchange.made_by is not None:
            return []
        called = self._always.get(Http, []) if event.is_first else []
        words = [event.state, *(fact.name for fact in event.facts), *event.flaws]
        called = [*called, *(one for word in words for one in self._by_word.get((Http, word), ()))]
        if not called:
            return []
        step = event.exchange.auth
        revision = conversation.revision or event.exchange.version or (None if step is None else step.revision)
        return self._run(called, event, conversation, event.n, event.t, None, revision)

    def _run(  # noqa: PLR0917
        self,
        called: Iterable[Check],
        item: Any,
        conversation: Conversation,
        at: int,
        t: int,
        frame: Frame | None,
        revision: str | None,
    ) -> list[Finding]:
        findings: list[Finding] = []
        ran: set[str] = set()
        first = first_k(item)
        unseen = bool(frame is not None and frame.flaws and not _UNSEEN.isdisjoint(frame.flaws)) or bool(
            isinstance(item, Message) and item.flaws and not _UNSEEN.isdisjoint(item.flaws)
        )
        http = item.http if isinstance(item, Message) else getattr(item, "exchange", None)
        is_torn = isinstance(http, HttpExchange) and http.is_torn
        for one in called:
            if one.code in ran or one.code in self._off or (unseen and not one.in_part):
                continue
            if is_torn and one.group == HTTP:
                continue  # whose heads and bodies these are is not certain
            ran.add(one.code)
            if one.framing is not None and frame is not None and frame.framing != one.framing:
                continue
            if (one.since or one.until) and not is_within(revision, one.since, one.until):
                continue
            if one.once and one.code in conversation.told:
                continue
            for hit in self._ask(one, item, conversation):
                if one.once:
                    conversation.told.add(one.code)
                findings.append(self._finding(one, hit, item, frame, at, first + len(findings), t))
        return findings

    def _ask(self, one: Check, item: Any, conversation: Conversation) -> Iterable[Hit]:
        try:
            verdict = one.function(item, conversation)
            verdicts = verdict if isinstance(verdict, list) else [verdict]
            return [Hit(hit) if isinstance(hit, str) else hit for hit in verdicts if hit is not None]
        except Exception as error:  # noqa: BLE001 - a broken check must not end the analysis
            self._off.add(one.code)
            return [Hit(f"{type(error).__name__}: {error}", severity="MCP901")]

    def _finding(  # noqa: PLR0917
        self, one: Check, hit: Hit, item: Any, frame: Frame | None, at: int, k: int, t: int
    ) -> Finding:
        if hit.severity == "MCP901":
            text = f"check {one.code} {one.name} failed and is off for this run: {hit.text}"
            return Finding("MCP901", "check-failed", WARNING, RECORDER, MCPSNIFF, text, at, k, t)
        return Finding(
            one.code,
            one.name,
            hit.severity or one.severity,
            one.group,
            hit.blame or one.blame or _sender(item, frame),
            hit.text,
            at,
            k,
            t,
            message_of(item),
            frame.n if frame is not None else None,
            getattr(item, "spans", ()),
            hit.fix,
        )


def _sender(item: Any, frame: Frame | None) -> str:
    direction = frame.direction if frame is not None else getattr(item, "direction", "s2c")
    return CLIENT if direction == "c2s" else SERVER


def load() -> dict[str, Check]:
    """Import every module of built-in checks and return the registry."""
    from mcpsniff.checks import (  # noqa: F401
        auth_metadata,
        auth_requests,
        auth_tokens,
        ending,
        features,
        framing,
        http_events,
        http_framing,
        http_headers,
        http_origin,
        http_reach,
        http_sessions,
        http_statuses,
        http_streams,
        jsonrpc,
        lifecycle,
        ordering,
        progress,
        recorder,
        text,
        timing,
    )

    return REGISTRY
