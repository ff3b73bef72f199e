"""Checks of progress and cancellation."""

from mcpsniff.checks import ERROR, INFO, ORDERING, WARNING, Hit, Verdict, check
from mcpsniff.checks.words import call, duration, value
from mcpsniff.protocol.conversation import CROSSING_US, Conversation
from mcpsniff.protocol.exchanges import CANCELLED
from mcpsniff.protocol.message import Message
from mcpsniff.protocol.revisions import is_modern


@check(
    "MCP421",
    "progress-unknown-token",
    on=Message,
    when=("progress-unknown-token",),
    severity=ERROR,
    group=ORDERING,
    spec="basic/utilities/progress#progress-flow",
)
def progress_unknown_token(message: Message, _: Conversation) -> Verdict:
    """A progress notification names a token that the other side never offered.

    Progress may be sent only for a request that carries ``_meta.progressToken``, with that token. The receiver cannot
    tell what the notification is about and drops it.

    Fix: Take the token from the request's ``params._meta.progressToken``, with its type; send no progress when there
    is none.
    """
    other = "client" if message.direction == "s2c" else "server"
    return f"the progress token {value(message.params.get('progressToken'))} was never offered by the {other}"


@check(
    "MCP422",
    "progress-after-end",
    on=Message,
    when=("progress-after-end",),
    severity=ERROR,
    group=ORDERING,
    spec="basic/utilities/progress#behavior-requirements",
)
def progress_after_end(message: Message, _: Conversation) -> Verdict:
    """Progress is reported for a request that has ended.

    It must stop with the answer (in 2025-11-25: with the task). Within 250 ms it may have crossed on the way and is
    graded as information. After a cancel it is a warning, since the receiver only SHOULD stop.

    Fix: Await all progress before answering, and stop timers and callbacks of a request when it ends.
    """
    fact, exchange = message.fact("progress-after-end"), message.link
    token = value(message.params.get("progressToken"))
    if fact is None or fact.t is None or exchange is None:
        return f"progress for token {token} came after its request had ended"
    late = message.t - fact.t
    cancelled = exchange.state == CANCELLED
    severity = INFO if late <= CROSSING_US else WARNING if cancelled else ERROR
    end = "was cancelled" if cancelled else "ended"
    return Hit(f"progress for token {token} came {duration(late)} after {call(exchange)} {end}", severity)


@check(
    "MCP430",
    "answer-after-cancel",
    on=Message,
    when=("answer-after-cancel",),
    severity=WARNING,
    group=ORDERING,
    spec="basic/utilities/cancellation#behavior-requirements",
)
def answer_after_cancel(message: Message, _: Conversation) -> Verdict:
    """A request is answered although it was cancelled.

    Its receiver SHOULD NOT answer any more (up to 2025-11-25; a warning), and MUST NOT in 2026-07-28 (an error). An
    answer within 250 ms crossed the cancel on the way, which is normal and graded as information. The sender ignores
    it either way.

    Fix: Stop the handler when the cancel arrives and drop what it returns. Python SDK 1.x servers answer every
    cancelled request with an error of code 0; nothing in the server's own code can change that.
    """
    fact, exchange = message.fact("answer-after-cancel"), message.link
    if fact is None or fact.t is None or exchange is None:
        return None
    late = message.t - fact.t
    severity = INFO if late <= CROSSING_US else ERROR if is_modern(message.revision) else WARNING
    text = f"{call(exchange)} was answered {duration(late)} after it was cancelled"
    if message.error.get("code") == 0 and "cancelled" in str(message.error.get("message")):
        text += ' (code 0 "Request cancelled" is what Python SDK 1.x servers send)'
    return Hit(text, severity)
