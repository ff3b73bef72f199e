"""Checks of the opening: the handshake of the legacy revisions comes first, and in order."""

from typing import Final

from mcpsniff.checks import ERROR, LIFECYCLE, NOTE, WARNING, Hit, Verdict, check
from mcpsniff.checks.words import duration, identity, plain
from mcpsniff.protocol.conversation import CROSSING_US, Conversation
from mcpsniff.protocol.message import Message

INITIALIZATION: Final = "basic/lifecycle#initialization"


def _request(message: Message) -> str:
    return f"{plain(message.method or '', 40)} ({identity(message.id)})"


@check(
    "MCP301",
    "init-not-first",
    on=Message,
    when=("before-initialize",),
    severity=ERROR,
    group=LIFECYCLE,
    spec=INITIALIZATION,
)
def init_not_first(message: Message, _: Conversation) -> Verdict:
    """A request comes before initialize, which has to be the first one (told once per session).

    Up to 2025-11-25 a session begins with initialize; only ping and a probe by server/discover may come before it. The
    Python servers refuse such a request with -32602, the TypeScript ones serve it, so it works with one and not with
    the other. Requests of 2026-07-28 need no handshake, but each carries its protocol version in _meta.

    Fix: Send initialize first, wait for its result and send notifications/initialized; or put the envelope of
    2026-07-28 into every request.
    """
    return f"{_request(message)} was sent before initialize"


@check(
    "MCP304",
    "request-before-init-result",
    on=Message,
    when=("before-initialize-result",),
    severity=WARNING,
    group=LIFECYCLE,
    spec=INITIALIZATION,
)
def request_before_init_result(message: Message, _: Conversation) -> Verdict:
    """The client sends a request other than ping before it has the result of initialize.

    It SHOULD NOT: until the result is there, neither the protocol version nor the server's capabilities are known.
    Python servers refuse the request with -32602. Requests that are written together with initialize (within 250 ms)
    are graded as a note, since servers that read in order do answer them.

    Fix: Wait for the result of initialize, then send notifications/initialized, then everything else.
    """
    fact = message.fact("before-initialize-result")
    waited = message.t - fact.t if fact is not None and fact.t is not None else 0
    text = f"{_request(message)} was sent {duration(waited)} after initialize, before its result"
    return Hit(text, NOTE if waited <= CROSSING_US else WARNING)


@check(
    "MCP305",
    "initialized-missing",
    on=Message,
    when=("before-initialized",),
    severity=ERROR,
    group=LIFECYCLE,
    spec=INITIALIZATION,
)
def initialized_missing(message: Message, _: Conversation) -> Verdict:
    """The client goes to work without notifications/initialized (told once per session).

    The notification MUST follow the result of initialize. Servers may wait for it before they send requests of their
    own or serve any, and the Python servers refuse what comes before it.

    Fix: Send notifications/initialized right after the result of initialize, before any other request.
    """
    return f"{_request(message)} was sent without notifications/initialized before it"
