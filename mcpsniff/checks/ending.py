"""Checks of how a session ends: who writes after the end, who lingers, who dies."""

from typing import Final

from mcpsniff.checks import FRAMING, NOTE, SERVER, WARNING, Hit, Verdict, check
from mcpsniff.checks.words import duration, ending, signal_name, subject
from mcpsniff.protocol.conversation import Conversation
from mcpsniff.protocol.events import Close, StillRunning
from mcpsniff.protocol.message import Message
from mcpsniff.protocol.revisions import is_modern

ENDING_SIGNALS: Final = frozenset({"TERM", "INT", "HUP", "QUIT", "KILL"})


@check(
    "MCP117",
    "write-after-close",
    on=Message,
    when=("after-own-close", "after-peer-close"),
    severity=WARNING,
    group=FRAMING,
    spec="basic/lifecycle#shutdown",
)
def write_after_close(message: Message, _: Conversation) -> Verdict:
    """Something is written after the sender has closed the stream, or long after the other side has left.

    A client that has closed the server's input reads on for about two seconds (both SDK families), then it ends the
    process: what comes later is lost. A server whose output has ended cannot answer any more.

    Fix: On the end of the input, finish what is being answered and exit. Do not start work that takes longer, and do
    not send notifications from timers that still run.
    """
    own = message.fact("after-own-close")
    if own is not None and own.t is not None:
        return f"the {subject(message)} was sent {duration(message.t - own.t)} after its own stream had ended"
    left = message.fact("after-peer-close")
    waited = duration(message.t - left.t) if left is not None and left.t is not None else "some time"
    who = "the client had left" if message.direction == "s2c" else "the server's output had ended"
    return f"the {subject(message)} was sent {waited} after {who}; nobody may read it"


@check(
    "MCP118",
    "server-slow-exit",
    on=StillRunning,
    severity=WARNING,
    group=FRAMING,
    spec="basic/lifecycle#shutdown",
    blame=SERVER,
)
def server_slow_exit(moment: StillRunning, conversation: Conversation) -> Verdict:
    """The server does not end soon after its input has ended.

    On stdio the end of the input is the request to shut down (2026-07-28: SHOULD exit; earlier revisions only say what
    the client does next). After two seconds both SDK families send SIGTERM, then SIGKILL, and whatever the server
    still holds is not cleaned up. Servers that never notice pile up as orphans.

    Fix: Treat the end of stdin as the order to exit: cancel what runs, close what is open, return from main. Handles
    that keep the process alive (timers, sockets, threads) must not outlive the input.
    """
    severity = WARNING if is_modern(conversation.revision) else NOTE
    return Hit(f"the server still runs {duration(moment.waited_us)} after its input ended", severity)


@check(
    "MCP119",
    "server-died",
    on=Close,
    severity=WARNING,
    group=FRAMING,
    spec="basic/lifecycle#shutdown",
    blame=SERVER,
)
def server_died(close: Close, conversation: Conversation) -> Verdict:
    """The server's process ended on its own while it was needed: with requests open, by a signal, or at the start.

    Every open request is lost with it, and the client learns of it only by the end of the stream. An end after the
    client has closed the input, or after a signal that was passed on, is a normal shutdown and not meant here.

    Fix: Look at the last lines on stderr and at the exit status. A handler that raises must answer with an error, not
    end the process.
    """
    if close.how == "error":
        return f"the server {ending(close)}"
    if not close.ends_process or asked_to_end(close) or conversation.client_left_first or conversation.is_broken_off:
        return None
    lost = close.open_requests
    requests = f"{lost} open request{'s' if lost != 1 else ''}"
    if close.how == "killed":
        return f"the server {ending(close)}" + (f" with {requests}" if lost else "")
    return f"the server {ending(close)} with {requests}" if lost else None


def asked_to_end(close: Close | None) -> bool:
    """True if the process ended after a signal that mcpsniff sent or passed on and that asks for its end."""
    if close is None or not close.sent:
        return False
    killer = signal_name(close.signal).removeprefix("SIG") if close.how == "killed" else ""
    return killer in close.sent or not ENDING_SIGNALS.isdisjoint(close.sent)
