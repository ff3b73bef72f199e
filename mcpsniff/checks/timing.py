"""Checks of our own on time: what the specification leaves to the peers and users want to know."""

from mcpsniff.checks import CLIENT, MCPSNIFF, NOTE, SERVER, TIMING, Hit, Verdict, check
from mcpsniff.checks.words import call, done, duration, quoted
from mcpsniff.protocol.conversation import Conversation
from mcpsniff.protocol.message import Message

PATIENCE_US = 10_000_000
"""A cancel after this long without an answer is taken for a time-out, not for a change of mind."""


@check(
    "MCP801",
    "call-given-up",
    on=Message,
    methods=("notifications/cancelled",),
    severity=NOTE,
    group=TIMING,
    spec="basic/utilities/cancellation",
)
def call_given_up(message: Message, _: Conversation) -> Verdict:
    """A request was cancelled because its answer did not come in time.

    Clients cancel what takes too long: the TypeScript SDK after 60 s, the Python SDK when a time-out is set. To the
    user it looks like a tool that failed; the cause is whoever did not answer, or whoever changed something on the way.

    Fix: Look at what the receiver was doing in that time (its stderr stands between the rows); let long work report
    progress, which clients may count as a sign of life.
    """
    exchange = message.link
    if exchange is None or exchange.cancel != message.n:
        return None
    waited = message.t - exchange.t_request
    reason = message.params.get("reason")
    says_so = isinstance(reason, str) and any(word in reason.lower() for word in ("timed out", "timeout", "time-out"))
    if waited < PATIENCE_US and not says_so:
        return None
    why = f" (reason: {quoted(reason)})" if isinstance(reason, str) else ""
    waiting = CLIENT if exchange.direction == "c2s" else SERVER
    receiver = SERVER if waiting == CLIENT else CLIENT
    if exchange.cause is not None:
        receiver, why = MCPSNIFF, f"{why}; {done(exchange.cause)}"
    return Hit(
        f"the {waiting} gave up on {call(exchange)} after {duration(waited)} without an answer{why}", None, receiver
    )
